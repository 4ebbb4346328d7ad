"""The side of the nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    ConfigRecordValues,
    Context,
    Message,
    MetricRecord,
    MetricRecordValues,
    RecordDict,
)
from flwr.clientapp import ClientApp

import fedlink

from . import protocol
from .protocol import KEY, METRICS, ProtocolError

Train = Callable[[Message, Context], Message]
Mod = Callable[[Message, Context, Train], Message]
Rate = Callable[[Context], float]

#: The key of a node's rate in its configuration, in bit/s.
RATE_KEY = "uplink-bps"

#: The record and its entry in the node's state that hold the state of its device.
STATE, BYTES = "fedlink-device", "state"

#: Metrics of training that the server takes notice of, as in ``FedAvg``'s apps.
LOSS_KEY, EXAMPLES_KEY = "train_loss", "num-examples"


def configured_rate(context: Context) -> float:
    """The rate in bit/s by the node's configuration (``--node-config 'uplink-bps=2e6'``)."""
    rate = context.node_config.get(RATE_KEY)
    if not isinstance(rate, (int, float)) or isinstance(rate, bool):
        raise ProtocolError(
            f"the server needs this node's uplink rate: set {RATE_KEY} in its --node-config, or give "
            "UpdateAwareClientApp(rate=…) a function that returns it"
        )
    return protocol.finite({RATE_KEY: rate}, RATE_KEY)


def update_reply(
    message: Message, update: npt.ArrayLike, loss: float | None = None, examples: int | None = None
) -> Message:
    """A reply of training that gives Δ itself, as a flat vector, in place of the trained model; with its
    training loss and the number of its training samples, if they are wanted."""
    record = ArrayRecord({"0": Array(np.ascontiguousarray(update, dtype=np.float32))})
    content = RecordDict({protocol.UPDATE: record})
    metrics: dict[str, MetricRecordValues] = {}
    if loss is not None:
        metrics[LOSS_KEY] = float(loss)
    if examples is not None:
        metrics[EXAMPLES_KEY] = int(examples)
    if metrics:
        content[METRICS] = MetricRecord(metrics)
    return Message(content, reply_to=message)


class UpdateAwareClientApp(ClientApp):
    """A ``ClientApp`` that takes part in update-aware scheduling.

    The function under ``@app.train()`` stays as it is for ``FedAvg``: it gets the model and returns the
    trained one, with its metrics. The app takes the difference, keeps it on the node, reports the numbers
    that the policy needs, and sends the compressed update if and when the server requests it. Functions under
    ``@app.evaluate()`` and ``@app.query()`` are called as ever.

    Mods of ``@app.train(mods=…)`` see the trained model before the difference is taken, so clipping and noise
    belong there; mods of the app see the transmitted messages.

    ``rate`` returns the node's uplink rate in bit/s when the server requests it (``DeclaredUplink``); without
    it the rate is read from ``uplink-bps`` in the node's configuration. ``compressor`` is the custom
    compression scheme (class or factory) if the server's strategy has one. ``loss_key`` is the name of the
    training loss among the metrics of training.
    """

    def __init__(
        self,
        *,
        rate: Rate | None = None,
        compressor: Any = None,
        loss_key: str = LOSS_KEY,
        mods: list[Mod] | None = None,
    ) -> None:
        super().__init__(mods=mods)
        self._rate = rate or configured_rate
        self._compressor, self._loss_key = compressor, loss_key
        self._evaluates = False
        #: The device of a run, and the configuration that it was made of. Its state is loaded for each
        #: message: one app may serve many nodes.
        self._device: tuple[str, fedlink.Device] | None = None
        self._lock = Lock()
        super().query(protocol.HELLO)(self._hello)
        super().train(protocol.UPLOAD)(self._upload)
        super().train()(_stock_server)

    def __getstate__(self) -> dict[str, Any]:
        """The app without its lock and its device, neither of which can be sent to another process."""
        return {**self.__dict__, "_lock": None, "_device": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = Lock()

    def train(self, action: str = "default", *, mods: list[Mod] | None = None) -> Callable[[Train], Train]:
        """Registers the training function; with another ``action``, as ``ClientApp`` does."""
        if action != "default":
            return super().train(action, mods=mods)
        register = super().train(protocol.COMPUTE)

        def decorator(train: Train) -> Train:
            inner = train
            for mod in reversed(mods or []):
                inner = _modded(mod, inner)
            register(lambda message, context: self._compute(inner, message, context))
            return train

        return decorator

    def evaluate(self, action: str = "default", *, mods: list[Mod] | None = None) -> Callable[[Train], Train]:
        """Registers an evaluation function, as ``ClientApp`` does."""
        self._evaluates = self._evaluates or action == "default"
        return super().evaluate(action, mods=mods)

    def _hello(self, message: Message, context: Context) -> Message:
        """The number of this device, its abilities, and its rate."""
        request = protocol.checked_request(message)
        answer: dict[str, MetricRecordValues] = {
            "version": protocol.VERSION,
            "device": int(context.node_config.get("partition-id", -1)),
            "evaluates": int(self._evaluates),
        }
        if request.get("declared"):
            answer["rate"] = self._declared(context)
        return Message(RecordDict({KEY: MetricRecord(answer)}), reply_to=message)

    def _declared(self, context: Context) -> float:
        rate = float(self._rate(context))
        if not (math.isfinite(rate) and rate > 0):
            raise ProtocolError(f"the uplink rate must be above 0 and finite, not {rate} bit/s")
        return rate

    def _compute(self, train: Train, message: Message, context: Context) -> Message:
        """Phase 1: train, keep Δ, report the requested numbers."""
        request = protocol.checked_request(message)
        number = protocol.whole(request, "round", 1, protocol.MAX_ROUNDS)
        device = protocol.whole(request, "device", 0, protocol.MAX_DEVICES - 1)
        alone_bits, asks = protocol.real(request, "alone_bits"), protocol.asks_of(request)
        acknowledged = None
        if "acknowledged" in request:
            acknowledged = protocol.whole(request, "acknowledged", 0, protocol.MAX_ROUNDS)
        ours = self._device_of(request)
        model = protocol.only_model(message.content)
        before = {name: array.copy() for name, array in protocol.floating(model).items()}
        begun = monotonic()
        trained = train(message, context)
        seconds = monotonic() - begun
        if trained.has_error():
            return trained
        update = protocol.update_of(before, trained.content)
        metrics = _metrics(trained.content)
        loss = _number(metrics, self._loss_key)
        examples = _number(metrics, EXAMPLES_KEY)
        asked = [ask for ask in asks if ask in protocol.LOSSES]
        if asked and loss is None:
            raise ProtocolError(
                f"the policy needs the training loss: return {self._loss_key!r} among the metrics of "
                "training, or give its name as UpdateAwareClientApp(loss_key=…)"
            )
        if loss is not None and asked:
            # The range that the server reads.
            protocol.answers({"answers": [loss]}, ["loss"])
        with self._lock:
            ours.load(_state(context))
            report = ours.report(
                asks, update, 0.0 if loss is None else loss, alone_bits, number - 1, device, acknowledged
            )
            _keep(ours, context)
        answer: dict[str, MetricRecordValues] = {"seconds": seconds}
        # Flower cannot count the bytes of an empty list.
        if asks:
            answer["answers"] = [float(value) for value in report.answers]
        if loss is not None:
            answer["loss"] = loss
        if examples is not None:
            answer["examples"] = int(examples)
        if "declared" in request:
            answer["rate"] = self._declared(context)
        if report.lost_state:
            answer["forget"] = 1
        content = RecordDict({KEY: MetricRecord(answer)})
        if metrics:
            content[METRICS] = metrics
        return Message(content, reply_to=message)

    def _upload(self, message: Message, context: Context) -> Message:
        """Phase 2: send Δ, compressed."""
        request = protocol.checked_request(message)
        ours = self._device_of(request)
        number = protocol.whole(request, "round", 1, protocol.MAX_ROUNDS)
        protocol.whole(request, "device", 0, protocol.MAX_DEVICES - 1)
        budget = protocol.real(request, "budget")
        limit = protocol.whole(request, "limit", 0, 2**53) if "limit" in request else math.inf
        with self._lock:
            ours.load(_state(context))
            waiting = ours.waiting
            if waiting != number - 1:
                lost = ConfigRecord({"lost": "none" if waiting is None else f"of round {waiting + 1}"})
                return Message(RecordDict({KEY: lost}), reply_to=message)
            encoded = ours.send(budget)
            # A node does not learn whether a message arrives. The server does not count one that does not.
            ours.settle(True)
            _keep(ours, context)
        answer: dict[str, ConfigRecordValues] = {"silent": True}
        if encoded.payload is not None:
            if len(encoded.payload) > limit:
                raise ProtocolError(
                    f"the update has {len(encoded.payload)} bytes, and the server reads {limit} at most"
                )
            level, bits, entries = int(encoded.level), float(encoded.bits), int(encoded.entries)
            answer = {"payload": encoded.payload, "level": level, "bits": bits, "entries": entries}
        return Message(RecordDict({KEY: ConfigRecord(answer)}), reply_to=message)

    def _device_of(self, request: dict[str, object]) -> fedlink.Device:
        """A device with the compression of the server's request."""
        told = request.get("encoder")
        with self._lock:
            if self._device is None or self._device[0] != told:
                config, scheme = protocol.encoder_of(request)
                self._device = str(told), self._new_device(config, scheme)
            return self._device[1]

    def _new_device(self, config: dict[str, Any], scheme: str | None) -> fedlink.Device:
        layers = protocol.take_layers(config)
        if scheme is None:
            try:
                return fedlink.Device(config, layers=layers)
            except (TypeError, ValueError) as problem:
                raise ProtocolError(f"encoder: {problem}") from problem
        if self._compressor is None:
            raise ProtocolError(
                f"the server's compressor {scheme!r} is not fedlink's: give it to the nodes too, "
                "UpdateAwareClientApp(compressor=…)"
            )
        compressor = self._compressor
        # An object serves one device; a function that gives it, any number.
        part = (lambda: compressor) if isinstance(compressor, fedlink.Compressor) else compressor
        return fedlink.Device(config, parts={scheme: part})


def _state(context: Context) -> bytes:
    """The state of the node's device; empty if it has sent nothing."""
    state = context.state.config_records.get(STATE, ConfigRecord()).get(BYTES, b"")
    if isinstance(state, bytes):
        return state
    raise ProtocolError(f"the state of this node must be bytes, not {protocol.shown(state)}")


def _keep(device: fedlink.Device, context: Context) -> None:
    """Keeps the state of a device on its node."""
    context.state[STATE] = ConfigRecord({BYTES: device.save()})


def _metrics(content: RecordDict) -> MetricRecord | None:
    """The metrics of training; of several records none could be distinguished from another, as in
    ``FedAvg``."""
    records = list(content.metric_records.values())
    if len(records) > 1:
        raise ProtocolError(f"training must reply with one MetricRecord at most, not {len(records)}")
    return records[0] if records else None


def _number(metrics: MetricRecord | None, name: str) -> float | None:
    """The metric called ``name``, if there is one; it must be finite."""
    value = None if metrics is None else metrics.get(name)
    return protocol.finite({name: value}, name) if isinstance(value, (int, float)) else None


def _stock_server(message: Message, context: Context) -> Message:
    raise ProtocolError(
        "this node is an UpdateAwareClientApp, but the server is still stock Flower: use "
        "fedlink.flower.UpdateAwareStrategy there in place of FedAvg"
    )


def _modded(mod: Mod, train: Train) -> Train:
    return lambda message, context: mod(message, context, train)

"""The side of the nodes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Message,
    MetricRecord,
    MetricRecordValues,
    RecordDict,
)
from flwr.clientapp import ClientApp

import fedlink

from . import protocol
from .protocol import KEY, ProtocolError

Train = Callable[[Message, Context], Message]
Mod = Callable[[Message, Context, Train], Message]
Rate = Callable[[Context], float]

#: Where a node's configuration says how fast it can send, in bit/s.
RATE_KEY = "uplink-bps"

#: In the node's state: Δ, and the round that it belongs to.
KEPT, KEPT_ROUND = "fedlink-update", "fedlink-round"


def configured_rate(context: Context) -> float:
    """The rate in bit/s by the node's configuration (``--node-config 'uplink-bps=2e6'``)."""
    rate = context.node_config.get(RATE_KEY)
    if not isinstance(rate, (int, float)) or isinstance(rate, bool):
        raise ProtocolError(
            f"the server asks for this node's uplink rate: set {RATE_KEY} in its --node-config, or give "
            "UpdateAwareClientApp(rate=…) a function that measures it"
        )
    return float(rate)


def update_reply(message: Message, update: npt.ArrayLike) -> Message:
    """A reply of training that gives Δ itself, as a flat vector, in place of the trained model."""
    record = ArrayRecord({"0": Array(np.ascontiguousarray(update, dtype=np.float32))})
    return Message(RecordDict({protocol.UPDATE: record}), reply_to=message)


class UpdateAwareClientApp(ClientApp):
    """A ``ClientApp`` that takes part in update-aware scheduling.

    The function under ``@app.train()`` stays as it is for ``FedAvg``: it gets the model and returns the trained one.
    The app takes the difference, keeps it on the node, reports one number, and sends the compressed update if and
    when the server asks for it.

    Mods of ``@app.train(mods=…)`` see the trained model before the difference is taken, so clipping and noise belong
    there; mods of the app see the messages that really go over the air.

    ``rate`` gives the node's uplink rate in bit/s when the server asks for it (``MeasuredUplink``); without it the
    rate is read from ``uplink-bps`` in the node's configuration.
    """

    def __init__(self, *, rate: Rate | None = None, mods: list[Mod] | None = None) -> None:
        super().__init__(mods=mods)
        self._rate = rate or configured_rate
        super().query(protocol.HELLO)(self._hello)
        super().train(protocol.UPLOAD)(_upload)

    def train(self, action: str = "default", *, mods: list[Mod] | None = None) -> Callable[[Train], Train]:
        """Registers the training function; with an ``action`` of your own, as ``ClientApp`` does."""
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

    def _hello(self, message: Message, context: Context) -> Message:
        """Which device this is, and how fast it can send."""
        request = protocol.one_record(message)
        device = context.node_config.get("partition-id", -1)
        answer: dict[str, MetricRecordValues] = {"device": int(device)}
        if request.get("measured"):
            answer["rate"] = self._measured(context)
        return Message(RecordDict({KEY: MetricRecord(answer)}), reply_to=message)

    def _measured(self, context: Context) -> float:
        rate = float(self._rate(context))
        if not (math.isfinite(rate) and rate > 0):
            raise ProtocolError(f"the uplink rate must be above 0 and finite, not {rate} bit/s")
        return rate

    def _compute(self, train: Train, message: Message, context: Context) -> Message:
        """Phase 1: train, keep Δ, report one number."""
        request = protocol.one_record(message)
        (model,) = message.content.array_records.values()
        before = {name: array.copy() for name, array in protocol.floating(model).items()}
        trained = train(message, context)
        if trained.has_error():
            return trained
        update = protocol.update_of(before, trained.content)
        context.state[KEPT] = ArrayRecord({"0": Array(update)})
        context.state[KEPT_ROUND] = ConfigRecord({"round": protocol.whole(request, "round", 1, 2**62)})

        answer: dict[str, MetricRecordValues] = {}
        bits = request.get("bits")
        if "seconds" in request:
            answer["rate"] = rate = self._measured(context)
            bits = rate * protocol.real(request, "seconds")
        answer["report"] = _report(request.get("report"), update, bits)
        return Message(RecordDict({KEY: MetricRecord(answer)}), reply_to=message)


def _report(kind: object, update: protocol.Update, bits_alone: object) -> float:
    """The one number that the policy asks for."""
    if kind == protocol.NOTHING:
        return 0.0
    if kind == protocol.NORM:
        return float(fedlink.norm(update))
    if kind == protocol.QUANTISED_NORM and isinstance(bits_alone, float):
        q = fedlink.largest_q(update.size, bits_alone)
        indices, value = fedlink.dsgd(update, q)
        return float(np.float32(abs(float(value)) * math.sqrt(len(indices))))
    raise ProtocolError(f"there is no report {kind!r}; is the server's fedlink of the same version?")


def _upload(message: Message, context: Context) -> Message:
    """Phase 2: send Δ, compressed."""
    request = protocol.one_record(message)
    kept_round = context.state.config_records.get(KEPT_ROUND, ConfigRecord()).get("round")
    kept = context.state.array_records.get(KEPT)
    if kept is None or kept_round != request.get("round"):
        answer = ConfigRecord({"lost": f"of round {kept_round!r}" if kept_round else "none"})
        return Message(RecordDict({KEY: answer}), reply_to=message)
    (update,) = protocol.floating(kept).values()
    payload = fedlink.encode(update, protocol.whole(request, "q", 1, max(1, update.size // 2)))
    # Sent is sent: what a node holds goes over its internal link with every message.
    del context.state[KEPT], context.state[KEPT_ROUND]
    return Message(RecordDict({KEY: ConfigRecord({"payload": payload})}), reply_to=message)


def _modded(mod: Mod, train: Train) -> Train:
    return lambda message, context: mod(message, context, train)

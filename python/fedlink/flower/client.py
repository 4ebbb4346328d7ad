"""The side of the nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
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

#: Where a node's configuration gives its rate, in bit/s.
RATE_KEY = "uplink-bps"

#: In the node's state: Δ with its residual, the round that it belongs to, and the residual of the node.
KEPT, KEPT_ROUND, RESIDUAL = "fedlink-update", "fedlink-round", "fedlink-residual"

#: With ``ef21`` too: h, what was sent last, and their rounds.
STATE, PENDING, STATE_ROUND = "fedlink-state", "fedlink-pending", "fedlink-state-round"

#: Metrics of training that the server takes notice of, as in ``FedAvg``'s apps.
LOSS_KEY, EXAMPLES_KEY = "train_loss", "num-examples"


def configured_rate(context: Context) -> float:
    """The rate in bit/s by the node's configuration (``--node-config 'uplink-bps=2e6'``)."""
    rate = context.node_config.get(RATE_KEY)
    if not isinstance(rate, (int, float)) or isinstance(rate, bool):
        raise ProtocolError(
            f"the server asks for this node's uplink rate: set {RATE_KEY} in its --node-config, or give "
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
    trained one, with its metrics. The app takes the difference, keeps it on the node, reports what the policy
    asks for, and sends the compressed update if and when the server asks for it. Functions under
    ``@app.evaluate()`` and ``@app.query()`` are called as ever.

    Mods of ``@app.train(mods=…)`` see the trained model before the difference is taken, so clipping and noise
    belong there; mods of the app see the messages that really go over the air.

    ``rate`` gives the node's uplink rate in bit/s when the server asks for it (``DeclaredUplink``); without
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
        super().query(protocol.HELLO)(self._hello)
        super().train(protocol.UPLOAD)(self._upload)
        super().train()(_stock_server)

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
        """Which device this is, what it can do, and its rate."""
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
        """Phase 1: train, keep Δ, report what is asked."""
        request = protocol.checked_request(message)
        number = protocol.whole(request, "round", 1, protocol.MAX_ROUNDS)
        device = protocol.whole(request, "device", 0, protocol.MAX_DEVICES - 1)
        alone_bits, asks = protocol.real(request, "alone_bits"), protocol.asks_of(request)
        config, encoder = self._encoder(request)
        model = protocol.only_model(message.content)
        before = {name: array.copy() for name, array in protocol.floating(model).items()}
        begun = monotonic()
        trained = train(message, context)
        seconds = monotonic() - begun
        if trained.has_error():
            return trained
        update = protocol.update_of(before, trained.content)
        feedback, forget = config["compress"]["feedback"], False
        if feedback == "ef21":
            update, forget = _innovation(update, encoder, request, context)
        elif feedback == "momentum":
            update = _with_momentum(update, config, context)
        elif feedback != "off":
            update = _with_residual(update, context)
            if feedback == "always":
                # As if it were not scheduled; if it is, what it sends is taken off.
                context.state[RESIDUAL] = ArrayRecord({"0": Array(update)})
        context.state[KEPT] = ArrayRecord({"0": Array(update)})
        context.state[KEPT_ROUND] = ConfigRecord({"round": number})

        metrics = _metrics(trained.content)
        loss = _number(metrics, self._loss_key)
        examples = _number(metrics, EXAMPLES_KEY)
        asked = [ask for ask in asks if ask in protocol.LOSSES]
        if asked and loss is None:
            raise ProtocolError(
                f"the policy asks for the training loss: return {self._loss_key!r} among the metrics of "
                "training, or give its name as UpdateAwareClientApp(loss_key=…)"
            )
        if loss is not None and asked:
            # The range that the server reads.
            protocol.answers({"answers": [loss]}, ["loss"])
        answers = encoder.report(
            asks,
            update,
            0.0 if loss is None else loss,
            alone_bits,
            number - 1,
            device,
        )
        answer: dict[str, MetricRecordValues] = {"seconds": seconds}
        # Flower cannot count the bytes of an empty list.
        if asks:
            answer["answers"] = [float(value) for value in answers]
        if loss is not None:
            answer["loss"] = loss
        if examples is not None:
            answer["examples"] = int(examples)
        if "declared" in request:
            answer["rate"] = self._declared(context)
        if forget:
            answer["forget"] = 1
        content = RecordDict({KEY: MetricRecord(answer)})
        if metrics:
            content[METRICS] = metrics
        return Message(content, reply_to=message)

    def _upload(self, message: Message, context: Context) -> Message:
        """Phase 2: send Δ, compressed."""
        request = protocol.checked_request(message)
        config, encoder = self._encoder(request)
        kept_round = context.state.config_records.get(KEPT_ROUND, ConfigRecord()).get("round")
        kept = context.state.array_records.get(KEPT)
        number = protocol.whole(request, "round", 1, protocol.MAX_ROUNDS)
        if kept is None or kept_round != number:
            lost = ConfigRecord({"lost": f"of round {kept_round!r}" if kept_round else "none"})
            return Message(RecordDict({KEY: lost}), reply_to=message)
        (update,) = protocol.floating(kept).values()
        device = protocol.whole(request, "device", 0, protocol.MAX_DEVICES - 1)
        encoded = encoder.encode(update, protocol.real(request, "budget"), number - 1, device)
        _keep(config, update, encoded.dense(update.size), number, context)
        # Sent is sent: what a node holds goes over its internal link with every message.
        del context.state[KEPT], context.state[KEPT_ROUND]
        answer: dict[str, ConfigRecordValues] = {"silent": True}
        if encoded.payload is not None:
            level, bits, entries = int(encoded.level), float(encoded.bits), int(encoded.entries)
            answer = {"payload": encoded.payload, "level": level, "bits": bits, "entries": entries}
        return Message(RecordDict({KEY: ConfigRecord(answer)}), reply_to=message)

    def _encoder(self, request: dict[str, object]) -> tuple[dict[str, Any], fedlink.Encoder]:
        """How the server wants updates compressed."""
        config, scheme = protocol.encoder_of(request)
        layers = protocol.take_layers(config)
        if scheme is None:
            try:
                return config, fedlink.Encoder(config, layers=layers)
            except (TypeError, ValueError) as problem:
                raise ProtocolError(f"encoder: {problem}") from problem
        if self._compressor is None:
            raise ProtocolError(
                f"the server's compressor {scheme!r} is not fedlink's: give it to the nodes too, "
                "UpdateAwareClientApp(compressor=…)"
            )
        compressor = self._compressor
        # An object serves one encoder; a function that gives it, any number.
        part = (lambda: compressor) if isinstance(compressor, fedlink.Compressor) else compressor
        return config, fedlink.Encoder(config, parts={scheme: part})


def _kept(name: str, update: protocol.Update, context: Context) -> list[protocol.Update]:
    """The vectors that the node keeps under a name; none: it keeps nothing."""
    record = context.state.array_records.get(name)
    vectors = [] if record is None else list(protocol.floating(record).values())
    for kept in vectors:
        if kept.size != update.size:
            raise ProtocolError(
                f"the residual has {kept.size} entries, but the model {update.size}: it is another run's"
            )
    return vectors


def _with_residual(update: protocol.Update, context: Context) -> protocol.Update:
    """Δ and the residual of the node."""
    for kept in _kept(RESIDUAL, update, context):
        update = update + kept
        protocol.check_finite(update)
    return update


def _with_momentum(update: protocol.Update, config: dict[str, Any], context: Context) -> protocol.Update:
    """v = z + (μ·u + Δ)."""
    vectors = _kept(RESIDUAL, update, context)
    if len(vectors) != 2:
        return update
    momentum, total = vectors
    update = total + (np.float32(_parameter(config, "momentum", "mu", 0.9)) * momentum + update)
    protocol.check_finite(update)
    return update


def _innovation(
    update: protocol.Update, encoder: fedlink.Encoder, request: dict[str, object], context: Context
) -> tuple[protocol.Update, bool]:
    """v = Δ − κ^gap·h, and whether this node has lost the h that the server speaks of: both sides then start
    again from zero."""
    number = protocol.whole(request, "round", 1, protocol.MAX_ROUNDS)
    acknowledged = protocol.whole(request, "acknowledged", 0, 2**62)

    def factor(gap: int) -> np.float32:
        return np.float32(encoder.age_factor(max(gap, 0)))

    states = _kept(STATE, update, context)
    rounds = context.state.config_records.get(STATE_ROUND, ConfigRecord())
    own = protocol.whole(rounds, "round", 0, protocol.MAX_ROUNDS) if "round" in rounds else 0
    pending = _kept(PENDING, update, context)
    if pending and protocol.whole(rounds, "pending", 1, 2**62) == acknowledged:
        # The last upload counts: the same operations as the server's.
        h = states[0] if states else np.zeros_like(update)
        states, own = [h * factor(acknowledged - own) + pending[0]], acknowledged
    lost = own != acknowledged
    if lost or not states:
        states, own = [], 0
    for name in (STATE, PENDING):
        if name in context.state:
            del context.state[name]
    if states:
        context.state[STATE] = ArrayRecord({"0": Array(states[0])})
        update = update - factor(number - own) * states[0]
        protocol.check_finite(update)
    context.state[STATE_ROUND] = ConfigRecord({"round": own})
    return update, lost and acknowledged > 0


def _keep(
    config: dict[str, Any], update: protocol.Update, sent: protocol.Update, number: int, context: Context
) -> None:
    """What the node keeps after it has sent ``sent`` of ``update`` in a round."""
    feedback = config["compress"]["feedback"]
    if feedback == "off":
        return
    if feedback == "ef21":
        # Whether it counts, the server acknowledges with its next call.
        own = context.state.config_records.get(STATE_ROUND, ConfigRecord()).get("round", 0)
        context.state[PENDING] = ArrayRecord({"0": Array(sent)})
        context.state[STATE_ROUND] = ConfigRecord({"round": own, "pending": number})
        return
    if feedback == "momentum":
        vectors = _kept(RESIDUAL, update, context)
        total = vectors[1] if len(vectors) == 2 else np.zeros_like(update)
        waiting = sent == 0
        momentum, total = np.where(waiting, update - total, 0), np.where(waiting, update, 0)
        kept = {"0": Array(momentum.astype(np.float32)), "1": Array(total.astype(np.float32))}
        context.state[RESIDUAL] = ArrayRecord(kept)
        return
    rest = update - sent
    if feedback == "decay":
        rest = np.float32(_parameter(config, "decay", "lambda", 0.9)) * rest
    context.state[RESIDUAL] = ArrayRecord({"0": Array(rest)})


def _parameter(config: dict[str, Any], part: str, key: str, default: float) -> float:
    """A key of the table of a kind of error feedback; the encoder has checked it."""
    table = config["compress"].get(part, {})
    return float(table.get(key, default))


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

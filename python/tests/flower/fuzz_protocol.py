"""Random and mutated messages against every reader of ``fedlink.flower.protocol``, on both sides.

A reader answers with a value of its documented type and range, or with a ``ProtocolError``; anything else is
a finding. Every case follows from its number alone, so that a finding is repeated by
``--first NUMBER --executions 1``.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy.strategy_utils import aggregate_metricrecords
from flwr.supercore.task_identity import TaskIdentity

from fedlink.flower import UpdateAwareClientApp, protocol
from fedlink.flower.grid import WatchedGrid
from fedlink.flower.metrics import alike
from fedlink.flower.protocol import KEY, ProtocolError
from fedlink.flower.record import NodeRecord, RoundRecord
from fedlink.flower.round import Round
from fedlink.flower.strategy import UpdateAwareStrategy
from fedlink.flower.uplink import DeclaredUplink

DEVICES = 4

#: The configuration that a server sends to its nodes, as a correct message has it.
ENCODER = {
    "compress": {"scheme": "d-sgd", "feedback": "off", "budget": "formula"},
    "run": {"seed": 0},
    "custom": {},
}

NAMES = [
    "version", "device", "evaluates", "rate", "declared", "round", "asks", "alone_bits", "encoder", "answers",
    "seconds", "loss", "examples", "payload", "level", "bits", "entries", "silent", "lost", "budget", "",
]  # fmt: skip

INTEGERS = [
    0, 1, -1, 2, 3, 127, 2**31, 2**32 - 1, 2**32, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 2**1030,
]  # fmt: skip
FLOATS = [0.0, -0.0, 1.0, 0.5, -1.5, 1e-320, 1e39, 3.5e38, 1e308, -1e308, math.inf, -math.inf, math.nan]
TEXTS = [
    "", "norm", "loss", "norm loss", "compressed-norm", "norm norm", "\0", "é" * 40, "{", "null", "[]", "{}",
    "3",
    '{"compress": 3}', '{"compress": {"scheme": []}, "custom": []}', json.dumps(ENCODER), "[" * 3000,
]  # fmt: skip

#: A model of two layers and a counter. Valid messages are written once, since writing takes longer than
#: reading.
LAYERS = {
    "a": Array(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)),
    "b": Array(np.array([0.5], np.float64)),
    "steps": Array(np.array([3], np.int64)),
}
#: Arrays in place of its first layer.
OTHERS = [
    Array(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3).T.copy()),
    Array(np.full((2, 3), np.nan)),
    Array(np.zeros((0, 3))),
    Array(np.zeros(())),
]
ZEROS = Array(np.zeros(3, np.float32))


def copy(array: Array) -> Array:
    """The same array in an object of its own."""
    return Array(dtype=array.dtype, shape=array.shape, stype=array.stype, data=array.data)


class Case:
    """One case: everything in it is drawn from its number."""

    def __init__(self, number: int) -> None:
        self.rng = random.Random(number)

    def scalar(self) -> Any:
        """A value of any kind that a record may hold."""
        rng = self.rng
        return rng.choice(
            [
                lambda: rng.choice(INTEGERS),
                lambda: rng.choice(FLOATS),
                lambda: struct.unpack("<d", rng.randbytes(8))[0],
                lambda: rng.randrange(-(2**63), 2**63),
                lambda: rng.random() < 0.5,
                lambda: rng.choice(TEXTS),
                lambda: rng.randbytes(rng.randrange(12)),
            ]
        )()

    def value(self) -> Any:
        """A scalar or a list of scalars of one kind, as Flower's records allow."""
        if self.rng.random() < 0.75:
            return self.scalar()
        first = self.scalar()
        others = [self.scalar() for _ in range(self.rng.randrange(4))]
        return [first] + [value for value in others if type(value) is type(first)]

    def mutate(self, values: dict[str, Any]) -> dict[str, Any]:
        """A correct record with up to three entries changed, left out or added."""
        values = dict(values)
        for _ in range(self.rng.randrange(4)):
            name = self.rng.choice([*values, *NAMES])
            if self.rng.random() < 0.25:
                values.pop(name, None)
            else:
                values[name] = self.value()
        return values

    def record(self, values: dict[str, Any]) -> ConfigRecord | MetricRecord | ArrayRecord:
        """A record of any kind; entries that a kind cannot hold are left out."""
        kind = self.rng.choice([ConfigRecord, ConfigRecord, MetricRecord, MetricRecord, ArrayRecord])
        if kind is ArrayRecord:
            return ArrayRecord({"0": self.array(ZEROS)})
        record = kind()
        for name, value in values.items():
            try:
                record[name] = value
            except (TypeError, ValueError):
                continue
        return record

    def array(self, right: Array) -> Array:
        """An array as it was sent, or with its bytes, header or description changed."""
        rng = self.rng
        data = right.data
        choice = rng.randrange(8)
        if choice == 0:
            data = bytes(rng.randbytes(rng.randrange(200)))
        elif choice == 1:
            data = data[: rng.randrange(len(data) + 1)]
        elif choice == 2:
            at = rng.randrange(len(data))
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif choice == 3:
            header = rng.choice(
                [
                    "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % rng.choice(INTEGERS),
                    "{'descr': '%s', 'fortran_order': True, 'shape': (3,), }"
                    % rng.choice("|O <f2 >f8 <f16 |S3 <U2 <M8[s] |V4 <c8 x <i4".split()),
                    "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }",
                    "{'shape': (3,)}", "(" * 300, "3", "",
                ]
            )  # fmt: skip
            data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data[-12:]
        stype = rng.choice(["numpy.ndarray"] * 9 + ["torch.Tensor"])
        return Array(dtype=right.dtype, shape=right.shape, stype=stype, data=data)

    def model(self) -> ArrayRecord:
        """A model of two layers and a counter, most often right."""
        layers = dict(LAYERS)
        if self.rng.random() < 0.2:
            layers["a"] = self.rng.choice(OTHERS)
        if self.rng.random() < 0.1:
            del layers["b"]
        plain = self.rng.random() < 0.5
        made = copy if plain else self.array
        return ArrayRecord({name: made(layer) for name, layer in layers.items()})

    def content(self, values: dict[str, Any]) -> RecordDict:
        """A message's content with fedlink's record, perhaps others, perhaps none."""
        content = RecordDict()
        if self.rng.random() < 0.95:
            content[KEY] = self.record(self.mutate(values))
        for name in self.rng.sample(["arrays", "update", "metrics", "config", "more"], self.rng.randrange(3)):
            is_model = self.rng.random() < 0.6
            content[name] = self.model() if is_model else self.record(self.mutate({"train_loss": 0.5}))
        return content


def request(**values: Any) -> dict[str, Any]:
    """A correct request of the server."""
    return {"version": protocol.VERSION, "round": 1, "device": 0, "encoder": json.dumps(ENCODER), **values}


def message(content: RecordDict, kind: str) -> Message:
    made = Message(content, 1, kind)
    made.metadata.__dict__["_message_id"] = "1"
    return made


def allowed(read: Callable[[], Any]) -> Any:
    """The result of a reader; None if it rejects the message as it may."""
    try:
        return read()
    except ProtocolError as problem:
        assert 0 < len(str(problem)) < 2000, "a problem in a few words"
        return None


def is_number(value: object, low: float = -math.inf) -> bool:
    return value is None or (type(value) is float and math.isfinite(value) and value >= low)


def readers(case: Case) -> None:
    """Every reader by itself on one record."""
    right = {"version": 2, "device": 1, "rate": 1e6, "answers": [1.0], "bits": 5.0, "level": 3}
    content = case.content(right)
    mail = message(content, "query.x")
    record = protocol.record_of(mail)
    assert type(record) is dict
    assert type(protocol.size_of(mail)) is int and protocol.size_of(mail) >= 0
    allowed(lambda: protocol.check_version(record, "the node"))
    checked = allowed(lambda: protocol.checked_request(mail))
    assert checked is None or checked["version"] == protocol.VERSION
    name = case.rng.choice(NAMES)
    low, high = sorted(case.rng.choice(INTEGERS[:9]) for _ in range(2))
    whole = allowed(lambda: protocol.whole(record, name, low, high))
    assert whole is None or (type(whole) is int and low <= whole <= high)
    assert is_number(allowed(lambda: protocol.real(record, name)), 0)
    above = allowed(lambda: protocol.real(record, name, above=0.0))
    assert above is None or (is_number(above) and above > 0)
    assert is_number(allowed(lambda: protocol.finite(record, name)))
    asks = case.rng.choice([[], ["norm"], ["loss"], ["norm", "loss"]])
    numbers = allowed(lambda: protocol.answers(record, asks))
    if numbers is not None:
        assert len(numbers) == len(asks) and all(is_number(value) for value in numbers)
        assert all(np.isfinite(np.float32(value)) for value in numbers)
        assert all(value >= 0 for ask, value in zip(asks, numbers) if ask != "loss")


def models(case: Case) -> None:
    """The readers of models and updates."""
    before = case.model()
    parameters = allowed(lambda: protocol.floating(before))
    theta = allowed(lambda: protocol.theta_of(before))
    assert (parameters is None) == (theta is None)
    if parameters is None or theta is None:
        return
    assert theta.dtype == np.float32 and theta.size == sum(array.size for array in parameters.values())
    again = allowed(lambda: protocol.model_of(theta, before))
    assert again is not None and list(again) == list(before)
    update = allowed(lambda: protocol.update_of(parameters, case.content({})))
    if update is not None:
        assert update.dtype == np.float32 and update.shape == theta.shape and np.isfinite(update).all()


def node(case: Case) -> None:
    """A node's app: it answers every request with a message or rejects it."""
    app = UpdateAwareClientApp()
    replies = {
        "arrays": case.model(),
        "metrics": case.record(case.mutate({"train_loss": 0.5, "num-examples": 10})),
    }

    @app.train()
    def train(asked: Message, _: Context) -> Message:
        return Message(RecordDict(replies), reply_to=asked)

    context = Context(0, 1, {"partition-id": 0, "uplink-bps": case.scalar()}, RecordDict(), {})
    compute = case.content(request(alone_bits=500.0, asks="norm loss"))
    if not compute.array_records:
        compute["model"] = case.model()
    for content, kind in [
        (case.content({"version": protocol.VERSION, "declared": True}), f"query.{protocol.HELLO}"),
        (compute, f"train.{protocol.COMPUTE}"),
        (case.content(request(budget=500.0)), f"train.{protocol.UPLOAD}"),
    ]:
        reply = allowed(lambda content=content, kind=kind: app(message(content, kind), context))
        assert reply is None or isinstance(reply, Message)


class Server:
    """The server's readers of reports and uploads."""

    def __init__(self) -> None:
        self.strategy = UpdateAwareStrategy(
            "bn2", 1, uplink=DeclaredUplink(DEVICES, 1.0), config={"learn.aggregate": "by-size"}
        )
        federation = self.strategy._begin(ArrayRecord({"0": Array(np.zeros(40, dtype=np.float32))}))
        self.round = Round(federation, RoundRecord(1), 0.0, WatchedGrid(None, str, max))

    def __call__(self, case: Case) -> None:
        strategy = self.strategy
        strategy.nodes.device_of.clear()
        right = {"version": 2, "device": 1, "evaluates": 1, "rate": 1e6}
        hello = protocol.record_of(message(case.content(right), "query"))
        record = NodeRecord(7, None, "hello")
        if strategy.nodes.introduce(record, hello):
            assert 0 <= strategy.nodes.device_of[7] < DEVICES
        else:
            assert record.reason
        right = {"answers": [1.0], "seconds": 0.5, "loss": 0.5, "examples": 10, "rate": 1e6}
        report = protocol.record_of(message(case.content(right), "query"))
        record = NodeRecord(7, 1, "compute")

        def read() -> bool:
            self.round.read_report(record, report, ["norm"])
            return True

        if allowed(read):
            assert is_number(record.report, 0) and is_number(record.train_loss)
            assert record.examples is not None and 1 <= record.examples <= 2**53
        right = {"payload": b"\1\2\3", "level": 2, "bits": 20.0, "entries": 2}
        answer = protocol.record_of(message(case.content(right), "query"))
        record = NodeRecord(7, 1, "upload")
        upload = self.round.read_upload(record, answer)
        if upload is not None:
            assert record.q is not None and 0 <= record.q <= 2**53 and is_number(record.bits, 0)
        metrics = case.record(case.mutate({"train_loss": 0.5, "num-examples": 10}))
        if isinstance(metrics, MetricRecord):
            right = MetricRecord({"train_loss": 0.5, "num-examples": 10})
            kept, problems = alike({1: right, 2: metrics, 3: right}, "num-examples")
            assert len(kept) + len(problems) == 3 and len(kept) >= 2
            assert all(len(problem) < 1000 and problem.isprintable() for problem in problems.values())
            aggregate_metricrecords([RecordDict({"metrics": one}) for one in kept], "num-examples")


def fuzz(first: int, executions: int, seconds: float = math.inf, note: Callable[[int], None] = id) -> int:
    """Tries cases from number ``first`` on; the number of those tried, which ``note`` is given now and then.
    An exception names the case."""
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1
    parts = [readers, models, node, Server()]
    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for number in range(first, first + executions):
            done = number - first
            if done % 1000 == 0:
                note(done)
            if time.monotonic() - begun > seconds:
                return done
            try:
                parts[number % len(parts)](Case(number))
            except Exception as problem:
                raise AssertionError(f"case {number} is a finding") from problem
    return executions


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--executions", type=int, default=2**62, help="how many cases to try")
    parser.add_argument("--minutes", type=float, default=math.inf, help="how long to try")
    parser.add_argument("--all", action="store_true", help="go on after a finding, and list each of them")
    options = parser.parse_args()
    if not options.all:
        # A finding ends it with its exception. A user who stops it sees its progress.
        def note(done: int) -> None:
            print(f"{done} executions", flush=True)

        note(fuzz(options.first, options.executions, 60 * options.minutes, note))
        return 0
    findings = 0
    for number in range(options.first, options.first + options.executions):
        try:
            fuzz(number, 1)
        except AssertionError:
            traceback.print_exc()
            findings += 1
    print(f"{options.executions} executions")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

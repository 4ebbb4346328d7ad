"""A grid of nodes in this process: real apps, real messages, and every way in which a node can fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from fedlink.flower import protocol

Train = Callable[[Message, Context], Message]


@dataclass
class FakeNode:
    """A node: its app and its state."""

    app: ClientApp
    context: Context
    #: Changes a reply on its way, by kind of message; None loses it.
    on_reply: dict[str, Callable[[Message], Message | None]] = field(default_factory=dict)


class FakeGrid(Grid):
    """Delivers messages at once. ``log`` has (kind, node, bytes up) of every reply."""

    def __init__(self) -> None:
        # Messages carry their sender; in a deployment the SuperLink sets it for the process.
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1
        self.nodes: dict[int, FakeNode] = {}
        self.log: list[tuple[str, int, int]] = []
        self.between: Callable[[], None] = lambda: None
        #: The public keys of nodes, in PEM.
        self.keys: dict[int, bytes] = {}
        #: Nodes that are busy: their messages wait.
        self.asleep: set[int] = set()
        self._waiting: list[Message] = []
        self._count = 0
        self._replies: dict[str, Message] = {}

    def add(self, node_id: int, app: ClientApp, **config: int | float) -> FakeNode:
        """A node of this number; ``partition_id`` and the like are its configuration."""
        named = {name.replace("_", "-"): value for name, value in config.items()}
        self.nodes[node_id] = FakeNode(app, Context(0, node_id, named, RecordDict(), {}))
        return self.nodes[node_id]

    def kinds(self) -> Counter[str]:
        """The number of replies of each kind."""
        return Counter(kind for kind, _, _ in self.log)

    def asked(self, kind: str) -> list[int]:
        """The nodes that replied to this kind of message."""
        return sorted(node for name, node, _ in self.log if name == kind)

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def get_nodes(self) -> Iterable[NodeInfo]:
        return [NodeInfo(node_id=node, public_key=self.keys.get(node, b"")) for node in self.get_node_ids()]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        messages = list(messages)
        if any(message.metadata.message_type.endswith(protocol.UPLOAD) for message in messages):
            self.between()
        for message in messages:
            self._count += 1
            message.metadata.__dict__["_message_id"] = f"message-{self._count}"
            if message.metadata.dst_node_id in self.asleep:
                self._waiting.append(message)
            else:
                self._answer(message)
        return [message.metadata.message_id for message in messages]

    def wake(self, node_id: int) -> None:
        """The node answers the messages that have waited for it."""
        self.asleep.discard(node_id)
        mine = [message for message in self._waiting if message.metadata.dst_node_id == node_id]
        self._waiting = [message for message in self._waiting if message not in mine]
        for message in mine:
            self._answer(message)

    def _answer(self, message: Message) -> None:
        reply = self._deliver(message)
        if reply is not None:
            self._replies[message.metadata.message_id] = reply

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        there = [
            self._replies.pop(message_id) for message_id in sorted(message_ids) if message_id in self._replies
        ]
        # In no particular order.
        return there[::-1]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        return self.pull_messages(self.push_messages(messages))

    def _deliver(self, message: Message) -> Message | None:
        node_id = message.metadata.dst_node_id
        kind = message.metadata.message_type.split(".")[-1]
        node = self.nodes.get(node_id)
        if node is None:
            return Message(Error(ErrorCode.NODE_UNAVAILABLE, "gone"), reply_to=message)
        try:
            reply = node.app(message, node.context)
        except Exception as error:
            reply = Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, repr(error)), reply_to=message)
        reply = node.on_reply.get(kind, lambda reply: reply)(reply)
        if reply is not None and reply.has_content():
            self.log.append((kind, node_id, protocol.size_of(reply)))
        return reply

    def set_run(self, run: object) -> None:
        raise NotImplementedError

    @property
    def run(self) -> object:
        raise NotImplementedError

    def create_message(self, *_: object, **__: object) -> Message:
        raise NotImplementedError


def model(*arrays: np.ndarray) -> ArrayRecord:
    """Arrays as Flower sends them."""
    return ArrayRecord({f"layer{i}": Array(array) for i, array in enumerate(arrays)})


def content(values: dict) -> RecordDict:
    """A reply with these numbers in our record."""
    return RecordDict({protocol.KEY: MetricRecord(values)})


def stock_training(shift: Callable[[int, int], list[np.ndarray]]) -> Train:
    """Training as in an app for FedAvg: it returns the model, moved by ``shift(device, round)``."""

    def train(message: Message, context: Context) -> Message:
        device, server_round = context.node_config["partition-id"], message.content["config"]["server-round"]
        arrays = [array.numpy() for array in message.content["arrays"].values()]
        moved = [array + change for array, change in zip(arrays, shift(device, server_round))]
        metrics = MetricRecord({"num-examples": 10, "train_loss": 0.5})
        return Message(RecordDict({"arrays": model(*moved), "metrics": metrics}), reply_to=message)

    return train

"""Requests to nodes and their answers, within the limits of their phases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flwr.app import Message, MessageType, RecordDict
from flwr.serverapp import Grid

from . import protocol
from .nodes import GONE, Answer, Asked, Nodes
from .record import NodeRecord, Outcome


@dataclass(frozen=True)
class Limits:
    """The limits of the phases in seconds; None is that of the run."""

    hello: float | None
    compute: float | None
    upload: float | None
    evaluate: float | None
    start: float | None


class Exchange:
    """Sends requests that expire with the limit of their phase, and reads the answers."""

    def __init__(self, nodes: Nodes, limits: Limits) -> None:
        self.nodes, self.limits = nodes, limits
        #: The limit of the run.
        self.timeout: float | None = None

    def limit(self, message_type: str, timeout: float | None) -> float | None:
        """The seconds to wait for a type of message if the caller passes ``timeout``."""
        if message_type.startswith(MessageType.EVALUATE):
            own = self.limits.evaluate
        elif message_type.endswith(protocol.HELLO):
            own = self.limits.hello
        elif message_type.endswith(protocol.UPLOAD):
            own = self.limits.upload
        else:
            own = self.limits.compute
        return timeout if own is None else own

    def message(self, content: RecordDict, node: NodeRecord, kind: str) -> Message:
        """A request that expires with the limit of its phase, so that no node works on an old one."""
        message_type = f"train.{kind}"
        return Message(content, node.node_id, message_type, ttl=self.limit(message_type, self.timeout))

    def replies(self, grid: Grid, asked: list[Asked]) -> list[Message]:
        """Sends messages and waits for the replies."""
        messages = [message for _, message in asked]
        return list(grid.send_and_receive(messages, timeout=self.timeout)) if messages else []

    def ask(self, grid: Grid, asked: list[Asked]) -> list[Answer | None]:
        """Sends messages and waits for the answers."""
        return self.answers(asked, self.replies(grid, asked), grid)

    def answers(
        self, asked: list[Asked], replies: Iterable[Message], grid: Grid | None
    ) -> list[Answer | None]:
        """The answer of each node; for None the node's record has the reason."""
        replied = {reply.metadata.reply_to_message_id: reply for reply in replies}
        seconds = getattr(grid, "seconds", {})
        answers: list[Answer | None] = []
        for node, message in asked:
            message_id = message.metadata.message_id
            reply = replied.get(message_id)
            node.down_bytes += protocol.size_of(message)
            if node.phase != "hello":
                setattr(node, f"{node.phase}_seconds", seconds.get(message_id))
            answers.append(None if reply is None else answer_of(node, reply))
            if reply is None:
                node.outcome, node.reason = Outcome.ABSENT, "no answer in time"
                if grid is not None:
                    self.nodes.late(grid, node, message)
        return answers


def answer_of(node: NodeRecord, reply: Message) -> Answer | None:
    """fedlink's part of a reply; for None the node's record has the reason."""
    if reply.has_error():
        node.outcome = Outcome.ABSENT if reply.error.code in GONE else Outcome.FAILED
        node.reason = reason_of(reply.error.reason or f"error {reply.error.code}")
    elif reply.metadata.src_node_id != node.node_id:
        node.outcome = Outcome.REJECTED
        node.reason = f"node {reply.metadata.src_node_id} answered for it"
    else:
        node.up_bytes += protocol.size_of(reply)
        return protocol.record_of(reply)
    return None


def reason_of(reason: str) -> str:
    """The error of a node on one line, with the remedy if there is one."""
    if f"registered with name '{protocol.HELLO}'" in reason:
        return (
            "its app is still stock Flower: use fedlink.flower.UpdateAwareClientApp there in place of "
            f"ClientApp ({protocol.plain(reason)})"
        )
    return protocol.plain(reason)

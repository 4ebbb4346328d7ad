"""The nodes of a federation: the device that each one is, and those that cannot take part in a round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from logging import WARNING

from flwr.app import Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid
from flwr.supercore import log

from . import protocol
from .identity import Identities
from .protocol import KEY, ProtocolError
from .record import NodeRecord, Outcome

#: Errors of a reply that mean: nobody is there.
GONE = (ErrorCode.NODE_UNAVAILABLE, ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE)

#: fedlink's part of a node's reply.
Answer = dict[str, object]

#: A request to a node, and what becomes of it.
Asked = tuple[NodeRecord, Message]


@dataclass
class Nodes:
    """All nodes that a run has met.

    A node is greeted once. One that was rejected is not greeted again while it stays connected. One that left
    a request without an answer is *busy*: it gets no work until it answers that request or a greeting, which
    waits for it at the SuperLink.
    """

    devices: int
    #: Whether nodes must declare a rate.
    declared: bool
    #: The keys of devices.
    identities: Identities = field(default_factory=Identities)
    #: The key of every node that is there, as the SuperLink has it.
    keys: dict[int, bytes] = field(default_factory=dict)
    #: The device of every node, in the order of acquaintance: of two nodes that are one device, the later is
    #: the restarted one.
    device_of: dict[int, int] = field(default_factory=dict)
    #: The declared rates, by device.
    rates: dict[int, float] = field(default_factory=dict)
    #: The nodes with an evaluation function.
    evaluates: set[int] = field(default_factory=set)
    #: The last problem of each node; a node that has taken part since is not in it.
    problems: dict[int, str] = field(default_factory=dict)
    #: The nodes that a greeting rejected.
    rejected: set[int] = field(default_factory=set)
    #: The requests whose answers show that a busy node is free.
    busy: dict[int, set[str]] = field(default_factory=dict)

    def current(self) -> dict[int, int]:
        """The device of every node; of two nodes that are one device, the later."""
        latest = {device: node for node, device in self.device_of.items()}
        return {node: device for device, node in latest.items()}

    def label(self, node_id: int) -> str:
        device = self.device_of.get(node_id)
        return f"node {node_id}" if device is None else f"device {device}"

    def greeting(self, node_id: int) -> Message:
        """The first message to a node. It stays valid longer than the server waits for the answer, so that a
        busy node finds it."""
        content = RecordDict({KEY: protocol.request(declared=self.declared)})
        return Message(content, node_id, f"query.{protocol.HELLO}")

    def strangers(self, present: Iterable[int]) -> list[int]:
        """The nodes to be greeted."""
        known = self.device_of.keys() | self.rejected | self.busy.keys()
        return sorted(set(present) - known)

    def keep(self, present: set[int]) -> None:
        """Forgets what was wrong with nodes that are gone; if they come back, they are greeted again."""
        self.problems = {node: problem for node, problem in self.problems.items() if node in present}
        self.rejected &= present
        self.busy = {node: requests for node, requests in self.busy.items() if node in present}

    def introduce(self, node: NodeRecord, answer: Answer) -> bool:
        """Takes a node's answer to its greeting; of one that is rejected, the record has the reason."""
        try:
            device = self._device(answer)
            if problem := self.identities.admit(device, self.keys.get(node.node_id, b"")):
                raise ProtocolError(problem)
            rate = protocol.real(answer, "rate", above=0.0) if self.declared else 0.0
        except ProtocolError as error:
            node.outcome, node.reason = Outcome.REJECTED, f"{error}"
            self.reject(node)
            return False
        if device in self.device_of.values():
            log(WARNING, "node %d takes the place of device %d", node.node_id, device)
        self.device_of[node.node_id] = device
        self.rates[device] = rate
        if answer.get("evaluates"):
            self.evaluates.add(node.node_id)
        self.problems.pop(node.node_id, None)
        return True

    def _device(self, answer: Answer) -> int:
        """The device that a node says it is, or the first free one."""
        protocol.check_version(answer, "the node")
        device = protocol.whole(answer, "device", -1, self.devices - 1)
        if device >= 0:
            return device
        taken = set(self.device_of.values())
        free = next(number for number in range(len(taken) + 1) if number not in taken)
        if free >= self.devices:
            raise ProtocolError(f"it has no partition-id, and all {self.devices} devices are taken")
        return free

    def reject(self, node: NodeRecord) -> None:
        """Notes that a node was rejected at its greeting."""
        self.rejected.add(node.node_id)
        log(WARNING, "node %d is rejected: %s", node.node_id, node.reason)
        self.problems[node.node_id] = f"{self.label(node.node_id)}: {node.reason}"

    def late(self, grid: Grid, node: NodeRecord, message: Message) -> None:
        """Notes that a node has not answered in time. A greeting waits for it at the SuperLink, unless this
        was one."""
        requests = {message.metadata.message_id}
        if node.phase != "hello":
            requests.update(grid.push_messages([self.greeting(node.node_id)]))
        self.busy[node.node_id] = requests

    def freed(self, grid: Grid) -> list[tuple[NodeRecord, Message]]:
        """The busy nodes that have answered since, each with an answer, and are busy no longer."""
        answers = []
        for node_id, requests in list(self.busy.items()):
            for reply in grid.pull_messages(set(requests)):
                gone = reply.has_error() and reply.error.code in GONE
                if gone:
                    requests.discard(reply.metadata.reply_to_message_id)
                elif self.busy.pop(node_id, None) is not None:
                    answers.append((NodeRecord(node_id, self.device_of.get(node_id), "hello"), reply))
            if not requests:
                # Nothing waits for it any more: it is greeted anew.
                self.busy.pop(node_id, None)
        return answers

"""The side of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from logging import INFO, WARNING
from time import sleep
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result
from flwr.supercore import log

import fedlink

from . import protocol
from .policy import Asked, Named
from .protocol import KEY, ProtocolError
from .record import NodeRecord, Outcome, RoundRecord
from .uplink import MOST_DEVICES, Uplink

#: Errors of a reply that mean: nobody is there.
GONE = (ErrorCode.NODE_UNAVAILABLE, ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE)

#: What ``FedAvg`` takes and a policy decides.
NOT_OURS = ("fraction_train", "min_train_nodes", "train_metrics_aggr_fn")


#: Our part of a node's reply.
Answer = dict[str, object]


@dataclass
class _Round:
    """A round between its two phases."""

    arrays: ArrayRecord
    dim: int
    record: RoundRecord
    uploads: list[_Upload] = field(default_factory=list)


@dataclass
class _Upload:
    """A node that is to send, and what its update is read and judged by."""

    node: NodeRecord
    message: Message
    report: float
    q: int
    q_alone: int
    """What it could send if it were alone."""


class UpdateAwareStrategy(FedAvg):
    """Schedules nodes by channel and by update, and has the scheduled few send compressed updates.

    ``policy`` is one of ``bc``, ``bn2``, ``bc-bn2`` and ``bn2-c``, or a ``fedlink.Policy`` of your own; ``k`` nodes are
    scheduled in a round, with ``bc-bn2`` out of ``kc`` candidates (by default max(10, 2k)). ``uplink`` says where the
    state of the links comes from: ``SimulatedUplink`` or ``MeasuredUplink``.

    The first round begins when ``min_available_nodes`` are there (all devices of a simulated uplink, else ``k``);
    later ones with whoever is. The first phase waits ``compute_timeout`` seconds for its answers, the second (and the
    first, if it has no limit of its own) the ``timeout`` of :meth:`start`. Nodes that do not answer, fail or send
    what cannot be true are left out: :attr:`records` and the metrics of the round say who and why.

    Evaluation is that of ``FedAvg`` (``fraction_evaluate`` and the rest), off unless asked for.
    """

    def __init__(
        self,
        policy: str | fedlink.Policy = "bn2-c",
        k: int = 1,
        *,
        uplink: Uplink,
        kc: int | None = None,
        compute_timeout: float | None = None,
        min_available_nodes: int | None = None,
        fraction_evaluate: float = 0.0,
        **fedavg: Any,
    ) -> None:
        if not isinstance(k, int) or k < 1:
            raise ValueError(f"k must be a whole number from 1, not {k!r}")
        if uplink.devices is not None and k > uplink.devices:
            raise ValueError(f"k = {k} of {uplink.devices} devices cannot be scheduled")
        if kc is not None and policy != "bc-bn2":
            raise ValueError("kc, how many candidates the channel lets through, goes with policy='bc-bn2' alone")
        if kc is None and policy == "bc-bn2":
            kc = max(10, 2 * k)
        if kc is not None and kc < k:
            raise ValueError(f"kc must be at least k = {k}, not {kc}")
        if not isinstance(policy, (str, fedlink.Policy)):
            given = type(policy).__name__
            raise TypeError(f"policy: must be a name or an object of a subclass of fedlink.Policy, but is {given}")
        self._policy = Asked(Named(policy, kc) if isinstance(policy, str) else policy)
        if wrong := [name for name in NOT_OURS if name in fedavg]:
            raise TypeError(f"leave out {', '.join(wrong)}: who trains is for the policy to say")
        least = min_available_nodes if min_available_nodes is not None else uplink.devices or k
        super().__init__(fraction_evaluate=fraction_evaluate, min_available_nodes=least, **fedavg)
        self.policy, self.k, self.kc, self.uplink = policy, k, kc, uplink
        self.compute_timeout = compute_timeout
        #: What became of every node, round by round.
        self.records: list[RoundRecord] = []
        self._timeout: float | None = None
        # In the order of acquaintance: of two nodes that are one device, the later is the restarted one.
        self._device_of: dict[int, int] = {}
        self._rates: dict[int, float] = {}
        self._round: _Round | None = None

    def summary(self) -> None:
        """Logs how nodes are scheduled."""
        kc = "" if self.kc is None else f", kc = {self.kc}"
        policy = self.policy if isinstance(self.policy, str) else type(self.policy).__name__
        log(INFO, "\t├──> Scheduling: %s, k = %d%s", policy, self.k, kc)
        log(INFO, "\t├──> Uplink: %s", self.uplink)
        begin = "\t└──> Nodes to begin with: %d; evaluated on: %.2f of them"
        log(INFO, begin, self.min_available_nodes, self.fraction_evaluate)

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Runs all rounds, as every Flower strategy does; ``timeout`` limits each phase."""
        self._timeout = timeout
        return super().start(
            grid, initial_arrays, num_rounds, timeout, train_config, evaluate_config, evaluate_fn
        )

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Runs the first phase, schedules, and gives the messages of the second."""
        this = self._round = _Round(arrays, protocol.dimension(arrays), RoundRecord(server_round))
        self.records.append(this.record)
        node_of = self._meet(grid, this.record)
        if node_of:
            config["server-round"] = server_round
            reported = self._compute(this, config, grid, node_of)
            if reported:
                self._schedule(this, reported, node_of)
        log(
            INFO,
            "configure_train: %d of %d nodes are to send: devices %s",
            len(this.uploads),
            len(node_of),
            [upload.node.device for upload in this.uploads],
        )
        return [upload.message for upload in this.uploads]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """θ + (1/K)·Σ Δ̂ over the K whose update arrived, the silent included."""
        this = self._round
        if this is None or this.record.round != server_round:
            return None, None
        arrived: list[protocol.Step] = []
        asked = [(upload.node, upload.message) for upload in this.uploads]
        for upload, answer in zip(this.uploads, self._answers(asked, replies)):
            if answer is not None and (update := self._read_update(this.dim, upload, answer)) is not None:
                upload.node.outcome = Outcome.SENT
                arrived.append(update)
        count = len(arrived) + len(this.record.having(Outcome.SILENT))
        share = np.float32(1.0) / np.float32(max(count, 1))
        model = protocol.added(this.arrays, [(places, share * value) for places, value in arrived])
        for node in this.record.nodes:
            if node.reason:
                log(WARNING, "round %d, device %s: %s (%s)", server_round, node.device, node.outcome, node.reason)
        return model, this.record.metrics()

    def _meet(self, grid: Grid, record: RoundRecord) -> dict[int, int]:
        """Waits for nodes, asks new ones which device they are, and gives the node of every device that is there."""
        needed = self.min_available_nodes if len(self.records) == 1 else 1
        while len(present := list(grid.get_node_ids())) < needed:
            log(INFO, "Waiting for nodes to connect: %d connected (minimum required: %d).", len(present), needed)
            sleep(1)
        greeting = RecordDict({KEY: ConfigRecord({"measured": self.uplink.measured})})
        asked = [
            (NodeRecord(node_id, None, "hello"), Message(greeting, node_id, f"query.{protocol.HELLO}"))
            for node_id in sorted(set(present) - self._device_of.keys())
        ]
        for (node, _), answer in zip(asked, self._ask(grid, asked)):
            if answer is None or not self._introduce(node, answer):
                record.nodes.append(node)
        there = set(present)
        return {device: node_id for node_id, device in self._device_of.items() if node_id in there}

    def _introduce(self, node: NodeRecord, answer: Answer) -> bool:
        try:
            device = protocol.whole(answer, "device", -1, (self.uplink.devices or MOST_DEVICES) - 1)
            rate = protocol.real(answer, "rate", above=0.0) if self.uplink.measured else 0.0
        except ProtocolError as problem:
            node.outcome, node.reason = Outcome.REJECTED, f"{problem}"
            return False
        if device < 0:
            taken = set(self._device_of.values())
            device = next(number for number in range(len(taken) + 1) if number not in taken)
        if device in self._device_of.values():
            log(WARNING, "node %d takes the place of device %d", node.node_id, device)
        self._device_of[node.node_id] = device
        self._rates[device] = rate
        return True

    def _ask(self, grid: Grid, asked: list[tuple[NodeRecord, Message]]) -> list[Answer | None]:
        """Sends messages of the first phase and waits for the answers."""
        if not asked:
            return []
        timeout = self._timeout if self.compute_timeout is None else self.compute_timeout
        replies = grid.send_and_receive([message for _, message in asked], timeout=timeout)
        return self._answers(asked, replies)

    def _compute(
        self, this: _Round, config: ConfigRecord, grid: Grid, node_of: dict[int, int]
    ) -> dict[int, NodeRecord]:
        """Phase 1: candidates train and report. Gives those who did, by device, in the policy's order."""
        t = this.record.round - 1
        links = self.uplink.links(t, list(node_of), self.k, self._rates)
        asked: dict[int, tuple[NodeRecord, Message]] = {}
        for device in self._policy.candidates(t, links, min(self.k, links.devices)):
            if device not in node_of:
                continue
            node = NodeRecord(node_of[device], device, "compute", gain=float(links.gains[device]))
            request = ConfigRecord({"round": this.record.round, "report": self._policy.report})
            request.update(self.uplink.request(links, device))
            content = RecordDict({self.arrayrecord_key: this.arrays, self.configrecord_key: config, KEY: request})
            asked[device] = node, Message(content, node.node_id, f"train.{protocol.COMPUTE}")
        this.record.nodes.extend(asked[device][0] for device in sorted(asked))
        reported = {}
        for (device, (node, _)), answer in zip(asked.items(), self._ask(grid, list(asked.values()))):
            if answer is None:
                continue
            try:
                node.report = protocol.real(answer, "report")
                if self.uplink.measured:
                    self._rates[device] = protocol.real(answer, "rate", above=0.0)
            except ProtocolError as problem:
                node.outcome, node.reason = Outcome.REJECTED, f"{problem}"
            else:
                node.outcome = Outcome.NOT_SCHEDULED
                reported[device] = node
        return reported

    def _schedule(self, this: _Round, reported: dict[int, NodeRecord], node_of: dict[int, int]) -> None:
        """The policy picks k of those who reported; their share of the airtime says how many bits each may send."""
        t = this.record.round - 1
        failed = {node.device for node in this.record.nodes} - reported.keys()
        links = self.uplink.links(t, [device for device in node_of if device not in failed], self.k, self._rates)
        reports = {device: node.report or 0.0 for device, node in reported.items()}
        chosen, weights = self._policy.select(t, reports, links, min(self.k, len(reports)))
        slots = fedlink.split_slots(weights, links.capacities[chosen], links.airtime, whole=links.whole)
        for device, weight, slot in zip(chosen, weights.tolist(), slots.tolist()):
            node, capacity = reported[device], float(links.capacities[device])
            node.capacity, node.weight, node.share = capacity / links.unit, weight, slot * links.unit
            node.budget = slot * capacity
            node.q = q = fedlink.largest_q(this.dim, node.budget)
            if q == 0:
                node.outcome = Outcome.SILENT
                continue
            node.bits = fedlink.dsgd_bits(this.dim, q)
            node.outcome, node.phase = Outcome.ABSENT, "upload"
            request = RecordDict({KEY: ConfigRecord({"round": this.record.round, "q": q})})
            message = Message(request, node.node_id, f"train.{protocol.UPLOAD}")
            q_alone = fedlink.largest_q(this.dim, float(links.alone[device]))
            this.uploads.append(_Upload(node, message, reports[device], q, q_alone))

    def _read_update(self, dim: int, upload: _Upload, answer: Answer) -> protocol.Step | None:
        """The places and the value of an update that arrived, or None with the reason noted."""
        node = upload.node
        if "lost" in answer:
            node.outcome = Outcome.LOST_UPDATE
            node.reason = f"it was restarted between the phases; the update it has is {answer['lost']}"
            return None
        payload = answer.get("payload")
        node.outcome = Outcome.REJECTED
        if not isinstance(payload, bytes):
            node.reason = "there is no payload in its answer"
            return None
        node.payload_bytes = len(payload)
        try:
            places, value = fedlink.decode(payload, dim, upload.q)
        except ValueError as error:
            node.reason = f"its payload cannot be read: {error}"
            return None
        problem = fedlink.audit(
            self._policy.report, upload.report, places, value, dim, upload.q, upload.q_alone
        )
        if problem is not None:
            node.reason = problem
            return None
        return places, np.float32(value)

    @staticmethod
    def _answers(
        asked: list[tuple[NodeRecord, Message]], replies: Iterable[Message]
    ) -> list[Answer | None]:
        """What each node answered; for None the node's record says why."""
        heard = {reply.metadata.reply_to_message_id: reply for reply in replies}
        answers: list[Answer | None] = []
        for node, message in asked:
            reply = heard.get(message.metadata.message_id)
            answer = None
            if reply is None:
                node.outcome, node.reason = Outcome.ABSENT, "no answer in time"
            elif reply.has_error():
                node.outcome = Outcome.ABSENT if reply.error.code in GONE else Outcome.FAILED
                node.reason = reply.error.reason or f"error {reply.error.code}"
            elif reply.metadata.src_node_id != node.node_id:
                node.outcome, node.reason = Outcome.REJECTED, f"node {reply.metadata.src_node_id} answered for it"
            else:
                try:
                    answer = protocol.one_record(reply)
                except ProtocolError as problem:
                    node.outcome, node.reason = Outcome.REJECTED, f"{problem}"
            answers.append(answer)
        return answers

"""A round: training and reports, scheduling, uploads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from logging import INFO
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.supercore import log

import fedlink

from . import protocol
from .exchange import Exchange
from .nodes import Answer, Asked
from .protocol import KEY, METRICS, ProtocolError
from .record import NodeRecord, Outcome, RoundRecord
from .uplink import SimulatedUplink, Uplink

#: Outcomes of a scheduled node that has sent nothing.
FAILED_TO_SEND = (Outcome.ABSENT, Outcome.FAILED, Outcome.LOST_UPDATE)


@dataclass(frozen=True)
class Federation:
    """The parts of a run that all its rounds use."""

    server: fedlink.Server
    uplink: Uplink
    exchange: Exchange
    #: The configuration, every default written out.
    config: dict[str, Any]
    #: The part of the configuration that nodes need to compress, as every request has it.
    encoder: str
    #: The name of the weight among the metrics of training.
    weighted_by: str

    @property
    def size(self) -> int:
        """The entries of the model."""
        return int(self.server.theta.size)

    @property
    def rates(self) -> dict[int, float]:
        """The declared rates, by device."""
        return self.exchange.nodes.rates


@dataclass
class Round:
    """A round between its two phases."""

    of: Federation
    record: RoundRecord
    begun: float
    grid: Grid
    #: The nodes that trained and reported, by device, in the policy's order.
    reported: dict[int, NodeRecord] = field(default_factory=dict)
    #: Their reports.
    reports: dict[int, list[float]] = field(default_factory=dict)
    #: The metrics of their training.
    metrics: dict[int, MetricRecord] = field(default_factory=dict)
    #: The requests to the scheduled devices.
    uploads: list[Asked] = field(default_factory=list)
    #: The scheduled devices, in the policy's order.
    schedule: list[int] = field(default_factory=list)

    def compute(self, records: dict[str, ArrayRecord | ConfigRecord], node_of: dict[int, int]) -> None:
        """Candidates train and report. ``records`` are the model and the configuration of their app."""
        server, uplink, exchange = self.of.server, self.of.uplink, self.of.exchange
        if isinstance(uplink, SimulatedUplink):
            gains = server.links(server.rounds_done).estimates
            call = server.begin(present=sorted(node_of))
        else:
            gains, capacities = uplink.links(self.of.rates)
            call = server.begin(present=sorted(node_of), gains=gains, capacities=capacities)
        acknowledged = dict(zip(call.candidates.tolist(), call.acknowledged))
        asked: dict[int, Asked] = {}
        for device, alone_bits in zip(call.candidates.tolist(), call.alone_bits.tolist()):
            node = NodeRecord(node_of[device], device, "compute", gain=float(gains[device]))
            request = protocol.request(
                round=self.record.round, device=device, alone_bits=alone_bits, encoder=self.of.encoder
            )
            if call.asks:
                request["asks"] = " ".join(call.asks)
            if device in acknowledged:
                request["acknowledged"] = acknowledged[device]
            if uplink.declared:
                request["declared"] = True
            content = RecordDict({**records, KEY: request})
            asked[device] = node, exchange.message(content, node, protocol.COMPUTE)
        self.record.nodes.extend(node for node, _ in asked.values())
        replies = exchange.replies(self.grid, list(asked.values()))
        metrics_of = {reply.metadata.src_node_id: reply.content for reply in replies if reply.has_content()}
        answers = exchange.answers(list(asked.values()), replies, self.grid)
        for (device, (node, _)), answer in zip(asked.items(), answers):
            if answer is None:
                continue
            try:
                self.read_report(node, answer, call.asks)
            except ProtocolError as problem:
                node.outcome, node.reason = Outcome.REJECTED, f"{problem}"
                continue
            if acknowledged.get(device) and "forget" in answer:
                # It has lost its half of the state, so both sides start again from zero.
                server.forget(device)
            node.outcome = Outcome.NOT_SCHEDULED
            self.reported[device] = node
            metrics = metrics_of[node.node_id].metric_records.get(METRICS)
            if metrics is not None:
                self.metrics[device] = metrics

    def read_report(self, node: NodeRecord, answer: Answer, asks: list[str]) -> None:
        """Reads and checks the report of a candidate."""
        answers = protocol.answers(answer, asks)
        rate = protocol.real(answer, "rate", above=0.0) if self.of.uplink.declared else None
        loss = protocol.finite(answer, "loss") if "loss" in answer else None
        examples = protocol.whole(answer, "examples", 1, 2**53) if "examples" in answer else None
        if examples is None and self.of.config["learn"]["aggregate"] == "by-size":
            raise ProtocolError(
                f'learn.aggregate = "by-size" needs its samples: return {self.of.weighted_by!r} '
                "among the metrics of training"
            )
        node.train_seconds = protocol.real(answer, "seconds") if "seconds" in answer else None
        node.train_loss, node.examples = loss, examples
        node.report = answers[0] if answers else 0.0
        if node.device is not None:
            self.reports[node.device] = answers
        if rate is not None and node.device is not None:
            self.of.rates[node.device] = rate

    def select(self) -> None:
        """The server schedules among those that reported, and grants each its bits."""
        server, uplink = self.of.server, self.of.uplink
        devices = list(self.reported)
        answers = np.array([self.reports[device] for device in devices], dtype=np.float32)
        answers = answers.reshape(len(devices), len(server.asks))
        sizes = {device: node.examples for device, node in self.reported.items() if node.examples is not None}
        links = {}
        if not isinstance(uplink, SimulatedUplink):
            links["gains"], links["capacities"] = uplink.links(self.of.rates)
        for grant in server.report(devices, answers, samples=sizes, **links):
            self.uploads.append(self._granted(self.reported[grant.device], grant))
            self.schedule.append(grant.device)

    def _granted(self, node: NodeRecord, grant: fedlink.Grant) -> Asked:
        """The request to a scheduled node."""
        unit = self.of.uplink.unit
        node.capacity, node.bit_weight, node.granted = (
            grant.capacity / unit,
            grant.bit_weight,
            grant.symbols * unit,
        )
        node.budget, node.power, node.airtime_seconds = grant.budget, grant.power, grant.seconds
        if self.of.uplink.declared:
            node.power, node.airtime_seconds = None, grant.airtime * unit
        node.outcome, node.phase = Outcome.ABSENT, "upload"
        request = protocol.request(
            round=self.record.round,
            device=grant.device,
            budget=float(grant.budget),
            limit=protocol.payload_limit(self.of.size),
            encoder=self.of.encoder,
        )
        return node, self.of.exchange.message(RecordDict({KEY: request}), node, protocol.UPLOAD)

    def read_uploads(self, asked: list[Asked], replies: Iterable[Message]) -> list[fedlink.Upload]:
        """The uploads; if a node sent nothing, its record has the reason."""
        uploads = []
        for (node, _), answer in zip(asked, self.of.exchange.answers(asked, replies, self.grid)):
            if answer is not None and (upload := self.read_upload(node, answer)) is not None:
                uploads.append(upload)
        return uploads

    def read_upload(self, node: NodeRecord, answer: Answer) -> fedlink.Upload | None:
        device = int(node.device or 0)
        if "lost" in answer:
            node.outcome = Outcome.LOST_UPDATE
            has = protocol.plain(str(answer["lost"]))
            node.reason = f"it was restarted between the phases; the update it has is {has}"
            return None
        node.outcome = Outcome.REJECTED
        if answer.get("silent") is True:
            node.q, node.bits, node.entries = 0, 0.0, 0
            return fedlink.Upload(device)
        payload = answer.get("payload")
        if not isinstance(payload, bytes):
            # It arrived and cannot be read: the server counts it as bytes that no codec reads.
            payload, answer = b"", {"level": 1, "bits": 0.0, "entries": 0}
            node.reason = "there is no payload in its answer"
        elif len(payload) > (limit := protocol.payload_limit(self.of.size)):
            node.reason = f"its payload has {len(payload)} bytes, and {limit} are the most"
            payload, answer = b"", {"level": 1, "bits": 0.0, "entries": 0}
        try:
            node.q = protocol.whole(answer, "level", 1, 2**53)
            node.bits = protocol.real(answer, "bits")
            node.entries = protocol.whole(answer, "entries", 0, 2**53)
        except ProtocolError as problem:
            node.q, node.bits, node.entries, payload = 1, 0.0, 0, b""
            node.reason = f"{problem}"
        node.payload_bytes = len(payload)
        return fedlink.Upload(device, payload=payload, level=node.q, bits=node.bits, entries=node.entries)

    def substitutes(self) -> list[fedlink.Upload]:
        """Offers the symbols of those that failed before they sent to nodes that have trained, once."""
        failed = [node for node, _ in self.uploads if node.outcome in FAILED_TO_SEND]
        server = self.of.server
        asked: list[Asked] = []
        for node in failed:
            grant = server.substitute(int(node.device or 0))
            if grant is None:
                continue
            other = self.reported[grant.device]
            other.substitute_for = node.device
            self.schedule[self.schedule.index(int(node.device or 0))] = grant.device
            # It is no longer scheduled: another one is in its place.
            node.capacity = node.bit_weight = node.granted = node.budget = None
            node.power = node.airtime_seconds = None
            asked.append(self._granted(other, grant))
        if not asked:
            return []
        log(
            INFO,
            "round %d: devices %s send in the place of others",
            self.record.round,
            [n.device for n, _ in asked],
        )
        return self.read_uploads(asked, self.of.exchange.replies(self.grid, asked))


def judge(node: NodeRecord, arrival: str) -> None:
    """Notes how the server handled a node's upload; of one that was lost the record has the reason
    already."""
    if arrival == "used":
        node.outcome = Outcome.SENT
    elif arrival == "silent":
        node.outcome = Outcome.SILENT
    elif arrival == "flagged":
        node.reason = f"its update contradicts its report of {node.report:g} (defense.audit)"
    elif arrival == "undecodable":
        node.reason = node.reason or "its payload cannot be read"

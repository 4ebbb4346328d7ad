"""The result of every node in a round."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from flwr.app import MetricRecord, MetricRecordValues


class Outcome(str, Enum):
    """The outcome of a round for a node that received a request."""

    SENT = "sent"
    """Its update arrived and was used."""
    SILENT = "silent"
    """Scheduled, but its budget holds nothing: it adds zero and still counts."""
    NOT_SCHEDULED = "not-scheduled"
    """It trained and reported; others were scheduled."""
    ABSENT = "absent"
    """It did not answer in time, or is gone."""
    FAILED = "failed"
    """Its app raised an error."""
    LOST_UPDATE = "lost-update"
    """Scheduled, but it no longer has the update of this round: it was restarted in between."""
    REJECTED = "rejected"
    """It answered with something that cannot be true or cannot be read."""

    def __str__(self) -> str:
        return self.value


#: The outcomes of a round that went wrong for the node.
PROBLEMS = (Outcome.ABSENT, Outcome.FAILED, Outcome.LOST_UPDATE, Outcome.REJECTED)


@dataclass
class NodeRecord:
    """One node in one round."""

    node_id: int
    """Flower's number of the node."""
    device: int | None
    """Its number among the devices; None if it never gave one."""
    phase: str
    """The last phase it was asked in: ``hello``, ``compute`` or ``upload``."""
    outcome: Outcome = Outcome.ABSENT
    reason: str = ""
    """The error, if there was one."""
    gain: float | None = None
    """Its link as a candidate: the channel's power gain, or its rate in bit/s."""
    capacity: float | None = None
    """Bits per symbol, or bits per second."""
    report: float | None = None
    """The first number that it reported; 0 if nothing is asked."""
    bit_weight: float | None = None
    """w: bits are granted in proportion to it."""
    granted: float | None = None
    """Its symbols, or its seconds."""
    power: float | None = None
    """P, the power that it sends with over a simulated uplink: watts if ``radio.bandwidth_hz`` is set."""
    airtime_seconds: float | None = None
    """The seconds for which it sends over the uplink that its budget is of: with ``radio.bandwidth_hz``, or
    by declared rates. Flower's own time is in ``upload_seconds``."""
    budget: float | None = None
    """R, the bits it may send."""
    q: int | None = None
    """The level of the compression, by its own account; 0 if silent."""
    bits: float | None = None
    """The cost of the update by the scheme's count, as the node reports it."""
    entries: int | None = None
    """Entries of Δ̂ that it sent, by its own account."""
    payload_bytes: int | None = None
    """The encoded update as it arrived."""
    substitute_for: int | None = None
    """The scheduled device that failed before it sent, if this one was offered its symbols."""
    train_loss: float | None = None
    """Its training loss, if it gave one."""
    examples: int | None = None
    """Its training samples, if it gave them."""
    train_seconds: float | None = None
    """The seconds for which it trained, by its own clock."""
    compute_seconds: float | None = None
    """From the request to train until its report was here, waiting included."""
    upload_seconds: float | None = None
    """From the request to send until its update was here, waiting included."""
    down_bytes: int = 0
    """The contents of all messages to it, as Flower counts them; what is on the socket is more."""
    up_bytes: int = 0
    """The contents of all its replies."""


#: The columns of ``rounds.csv`` beyond those of a transmission: fields of a :class:`NodeRecord`.
NODE_COLUMNS = (
    "node_id",
    "phase",
    "outcome",
    "reason",
    "substitute_for",
    "train_loss",
    "examples",
    "airtime_seconds",
    "train_seconds",
    "compute_seconds",
    "upload_seconds",
    "payload_bytes",
    "up_bytes",
    "down_bytes",
)


@dataclass
class RoundRecord:
    """One round, counted from 1."""

    round: int
    nodes: list[NodeRecord] = field(default_factory=list)
    """Those that were asked for anything, by device."""
    trained: int = 0
    """Devices that trained and reported."""
    train_loss: float | None = None
    """Their mean training loss, weighted as ``learn.aggregate`` specifies; None unless all of them gave
    one."""
    seconds: float | None = None
    """Wall-clock time of the round, evaluation left out."""

    def having(self, *outcomes: Outcome) -> list[NodeRecord]:
        """The nodes for which the round ended in one of these ways."""
        return [node for node in self.nodes if node.outcome in outcomes]

    @property
    def scheduled(self) -> list[NodeRecord]:
        """The nodes that were to send, whether they did or not."""
        return [node for node in self.nodes if node.budget is not None]

    def metrics(self) -> MetricRecord:
        """The round as Flower keeps it: counts, bits, and the devices for each outcome that occurred."""
        sent = self.having(Outcome.SENT)
        metrics: dict[str, MetricRecordValues] = {
            "scheduled": len(self.scheduled),
            "sent": len(sent),
            "problems": len(self.having(*PROBLEMS)),
            "bits": float(sum(node.bits or 0.0 for node in sent)),
            "payload-bytes": sum(node.payload_bytes or 0 for node in sent),
            "up-bytes": sum(node.up_bytes for node in self.nodes),
            "down-bytes": sum(node.down_bytes for node in self.nodes),
        }
        for outcome in Outcome:
            devices = [node.device for node in self.having(outcome) if node.device is not None]
            if devices:
                metrics[f"{outcome}-devices"] = devices
        return MetricRecord(metrics)

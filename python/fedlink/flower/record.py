"""What became of every node in a round."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from flwr.app import MetricRecord, MetricRecordValues


class Outcome(str, Enum):
    """How a round ended for a node that was spoken to."""

    SENT = "sent"
    """Its update arrived and counts."""
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
    """Its number among the devices; None if it never told."""
    phase: str
    """The last phase it was spoken to in: ``hello``, ``compute`` or ``upload``."""
    outcome: Outcome = Outcome.ABSENT
    reason: str = ""
    """What went wrong, if anything did."""
    gain: float | None = None
    """What it was judged by as a candidate: the channel's power gain, or the measured rate in bit/s."""
    capacity: float | None = None
    """Bits a symbol, or bits a second."""
    report: float | None = None
    """The one number of the first phase."""
    weight: float | None = None
    """w, what its share of the bits is proportional to."""
    share: float | None = None
    """Its symbols, or its seconds."""
    budget: float | None = None
    """R, the bits it may send."""
    q: int | None = None
    """The parameter of the quantiser that fits into the budget."""
    bits: float | None = None
    """r(q), what the update costs by the formula."""
    payload_bytes: int | None = None
    """What really arrived."""


@dataclass
class RoundRecord:
    """One round, counted from 1."""

    round: int
    nodes: list[NodeRecord] = field(default_factory=list)
    """Those that were spoken to, by device."""

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
        }
        for outcome in Outcome:
            devices = [node.device for node in self.having(outcome) if node.device is not None]
            if devices:
                metrics[f"{outcome}-devices"] = devices
        return MetricRecord(metrics)

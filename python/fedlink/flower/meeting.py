"""The beginning of a round: the nodes that are there, new ones greeted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from logging import INFO
from time import monotonic, sleep

from flwr.serverapp import Grid
from flwr.supercore import log

from .exchange import Exchange, answer_of
from .folder import Folder
from .grid import NAMED, REMIND_EVERY
from .nodes import Nodes
from .record import NodeRecord, Outcome, RoundRecord

#: The reason of a node that gets no work.
BUSY = "it is busy with a request of an earlier round"


class NobodyTakesPart(RuntimeError):
    """There is no node that could take part in the run."""


@dataclass
class Meeting:
    """Waits for nodes at the beginning of a round."""

    exchange: Exchange
    #: The nodes that the first round needs.
    needed: int
    folder: Folder | None

    @property
    def nodes(self) -> Nodes:
        return self.exchange.nodes

    def meet(self, grid: Grid, record: RoundRecord, first: bool) -> dict[int, int]:
        """Waits for nodes, greets new ones, and returns the node of every device that can work. ``first`` is
        the first round since the start."""
        needed = self.needed if first else 1
        start, limit = self.exchange.limits.start, self.exchange.timeout
        limit = start if first and start is not None else limit
        begun, reminded = monotonic(), 0.0
        while True:
            self.nodes.keys = {node.node_id: node.public_key for node in grid.get_nodes()}
            present = set(self.nodes.keys)
            self._greet(grid, record, present)
            node_of = {device: node for node, device in self.nodes.current().items() if node in present}
            free = {device: node for device, node in node_of.items() if node not in self.nodes.busy}
            if len(present) >= needed and (free or not node_of):
                break
            waited = monotonic() - begun
            if limit is not None and waited > limit:
                raise NobodyTakesPart(self._missing(first, node_of, needed, limit))
            if not reminded or waited - reminded >= REMIND_EVERY:
                reminded = max(waited, 0.1)
                log(INFO, "%s (%.0f s)", self._missing(first, node_of, needed, None), waited)
            sleep(min(1.0, limit or 1.0))
        if not node_of:
            raise NobodyTakesPart("no node can take part:\n" + "\n".join(self.nodes.problems.values()))
        busy = {device: node for device, node in node_of.items() if device not in free}
        record.nodes += [NodeRecord(node, device, "hello", reason=BUSY) for device, node in busy.items()]
        return free

    def _greet(self, grid: Grid, record: RoundRecord, present: set[int]) -> None:
        """Greets the nodes that are new, and reads the answers of busy ones."""
        self.nodes.keep(present)
        late = [(node, answer_of(node, reply)) for node, reply in self.nodes.freed(grid)]
        answers = [(node, answer) for node, answer in late if node.device is None]
        asked = [
            (NodeRecord(node_id, None, "hello"), self.nodes.greeting(node_id))
            for node_id in self.nodes.strangers(present)
        ]
        answers += zip([node for node, _ in asked], self.exchange.ask(grid, asked))
        for node, answer in answers:
            if answer is not None and self.nodes.introduce(node, answer):
                if self.folder is not None:
                    self.folder.keep_keys(self.nodes.identities)
            else:
                record.nodes.append(node)
                self.nodes.problems[node.node_id] = f"node {node.node_id}: {node.reason}"
                if node.outcome is Outcome.FAILED:
                    self.nodes.rejected.add(node.node_id)

    def _missing(self, first: bool, node_of: Mapping[int, int], needed: int, limit: float | None) -> str:
        """The nodes that a round waits for, in words."""
        if not first:
            state = "all nodes are busy" if node_of else "all nodes are gone"
            return state + ("" if limit is None else f", and none came back within {limit:.0f} s")
        missing = [str(device) for device in range(self.nodes.devices) if device not in node_of]
        named = ", ".join(missing[:NAMED])
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        state = f"{len(node_of)} of {needed} nodes are here; missing: devices {named}{more}"
        if limit is None:
            return f"waiting for nodes to connect: {state}"
        problems = "".join(f"\n{problem}" for problem in self.nodes.problems.values())
        return f"{state}, after {limit:.0f} s. Start them, or lower min_available_nodes.{problems}"

    def check_hope(self, node_of: dict[int, int], record: RoundRecord) -> None:
        """Stops a run in which every node that is there has failed."""
        for node in record.nodes:
            if node.outcome in (Outcome.FAILED, Outcome.REJECTED):
                self.nodes.problems[node.node_id] = f"{self.nodes.label(node.node_id)}: {node.reason}"
            elif node.outcome is Outcome.NOT_SCHEDULED:
                self.nodes.problems.pop(node.node_id, None)
        if all(node_id in self.nodes.problems for node_id in node_of.values()):
            raise NobodyTakesPart("every node failed:\n" + "\n".join(self.nodes.problems.values()))

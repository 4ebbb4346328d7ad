"""The records of a run in a folder, written as they come, and the state that a stopped run resumes from."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import fedlink

from .identity import Identities
from .record import NODE_COLUMNS, NodeRecord, RoundRecord

if TYPE_CHECKING:
    Row = dict[str, object]

#: A row for each node that received a request in a round: a transmission's columns and a node's.
ROUNDS = "rounds.csv"
#: A row for each round.
RESULTS = "results.csv"
#: The configuration, every default written out.
CONFIG = "config.json"
#: The run in numbers, digest included.
SUMMARY = "summary.json"
#: The fingerprints of the keys of devices.
KEYS = "keys.json"
#: The state from which a stopped run resumes.
STATE = "server.bin"
#: The same in a folder of version 0.2.
OLD_STATE = "session.bin"


class Folder:
    """The folder of a run's records; files are complete or unchanged."""

    def __init__(self, path: str | os.PathLike[str], resume: bool) -> None:
        self.path = Path(path)
        if resume and (self.path / OLD_STATE).exists() and not (self.path / STATE).exists():
            (self.path / OLD_STATE).rename(self.path / STATE)
        self.resumes = resume and (self.path / STATE).exists()
        #: The rounds and the state of the server at the last good evaluation.
        self._good = 0, b""
        if not resume and (self.path / ROUNDS).exists():
            raise FileExistsError(
                f"{self.path} has the records of a run: give resume=True to resume it, or another folder"
            )

    def begin(self, server: fedlink.Server) -> None:
        """Opens the records of a new run, or restores the server of a stopped one."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._open(server)
        self._good = server.rounds_done, server.save()

    def _open(self, server: fedlink.Server) -> None:
        if self.resumes:
            self._check(server)
            server.load((self.path / STATE).read_bytes())
            # A round that was written but not saved is run again; one that was saved before its evaluation
            # gets its row.
            self._truncate(ROUNDS, server.rounds_done)
            written = self._truncate(RESULTS, server.rounds_done)
            numbers = server.rounds()["round"].tolist()
            self._append(
                RESULTS, [_round_row(server, i, None) for i, t in enumerate(numbers) if t not in written]
            )
            return
        self._replace(CONFIG, server.config_json().encode())
        for name in (ROUNDS, RESULTS):
            self._replace(name, b"")

    def _check(self, server: fedlink.Server) -> None:
        """Refuses a run with another configuration than the one that is resumed."""
        try:
            there = json.loads((self.path / CONFIG).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            # The state alone decides then.
            return
        before, now = dict(_keys(there)), dict(_keys(json.loads(server.config_json())))
        different = [
            f"{key} is {before.get(key, 'not set')} there and {now.get(key, 'not set')} here"
            for key in sorted(before.keys() | now.keys())
            if before.get(key) != now.get(key)
        ]
        if different:
            raise ValueError(
                f"{self.path} is of a run with another configuration: {'; '.join(different[:8])}. "
                "Resume with the same configuration and the same num_rounds, or give another folder"
            )

    def keep_keys(self, identities: Identities) -> None:
        """Writes the fingerprints of the keys of devices."""
        if identities.binds:
            found = {str(device): key for device, key in sorted(identities.of_device.items())}
            self._replace(KEYS, json.dumps(found, indent=1).encode())

    def restore_keys(self, identities: Identities) -> None:
        """Binds devices as the run that is resumed did."""
        path = self.path / KEYS
        if not (self.resumes and identities.first_come and path.exists()):
            return
        found = json.loads(path.read_text(encoding="utf-8"))
        identities.of_device.update((int(device), str(key)) for device, key in found.items())

    def add(self, server: fedlink.Server, record: RoundRecord) -> None:
        """Writes the round that was delivered last, then the state after it."""
        self._append(ROUNDS, _node_rows(server, record))
        self.save(server)

    def evaluated(self, server: fedlink.Server, record: RoundRecord) -> None:
        """Writes the row of a round once it is complete, evaluation included."""
        self._append(RESULTS, [_round_row(server, -1, record.seconds)])
        self.save(server)
        self._good = server.rounds_done, server.save()

    def roll_back(self) -> int:
        """Makes the state after the last good evaluation the one to resume from; the round of it."""
        self._replace(STATE, self._good[1])
        return self._good[0]

    def save(self, server: fedlink.Server) -> None:
        """Writes the state that later rounds depend on."""
        self._replace(SUMMARY, server.outcome_json().encode())
        self._replace(STATE, server.save())

    def _append(self, name: str, rows: Iterable[Row]) -> None:
        rows = list(rows)
        if not rows:
            return
        with (self.path / name).open("a+", newline="", encoding="utf-8") as file:
            file.seek(0)
            # The columns of the first row stay, whatever metrics come later.
            columns = next(csv.reader(file), None)
            file.seek(0, os.SEEK_END)
            writer = csv.DictWriter(
                file, columns or list(rows[0]), extrasaction="ignore", lineterminator="\n"
            )
            if columns is None:
                writer.writeheader()
            writer.writerows(rows)
            file.flush()
            os.fsync(file.fileno())

    def _truncate(self, name: str, rounds: int) -> set[int]:
        """Leaves the complete rows up to round ``rounds``, and gives their rounds."""
        # The texts of nodes in folders of earlier versions have any length.
        limit = csv.field_size_limit(2**31 - 1)
        try:
            with (self.path / name).open(newline="", encoding="utf-8") as file:
                lines = list(csv.reader(file))
        finally:
            csv.field_size_limit(limit)
        if not lines:
            return set()
        at = lines[0].index("round")
        kept = [line for line in lines[1:] if len(line) == len(lines[0]) and int(line[at]) <= rounds]
        beside = self.path / f"{name}.new"
        with beside.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([lines[0], *kept])
        beside.replace(self.path / name)
        return {int(line[at]) for line in kept}

    def _replace(self, name: str, content: bytes) -> None:
        beside = self.path / f"{name}.new"
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path / name)


def _keys(table: dict[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The keys of a configuration with their values, such as ``("schedule.k", 4)``."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _round_row(server: fedlink.Server, index: int, seconds: float | None) -> Row:
    """The row of a round, by its index among those that are done."""
    rows = server.rounds()
    return {name: _cell(rows[name][index]) for name in rows.column_names} | {"seconds": _cell(seconds)}


def _node_rows(server: fedlink.Server, record: RoundRecord) -> list[Row]:
    """A row for each node of the round. Those that were not scheduled have no transmission."""
    table = server.transmissions()
    columns = {name: table[name] for name in table.column_names}
    rows = [i for i, number in enumerate(columns["round"]) if number == record.round]
    sent = {int(columns["device"][i]): {name: _cell(columns[name][i]) for name in columns} for i in rows}

    def row(node: NodeRecord) -> Row:
        known = {"round": record.round, "device": node.device, "report": node.report, "gain": node.gain}
        transmission = (
            sent.get(-1 if node.device is None else node.device) if node.budget is not None else None
        )
        first = transmission or {name: _cell(known.get(name)) for name in columns}
        return first | {name: _cell(getattr(node, name)) for name in NODE_COLUMNS}

    return [row(node) for node in record.nodes]


def _cell(value: object) -> object:
    """The text of a value: empty if it is unknown, and words for outcomes."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@")):
        # A spreadsheet would compute it.
        return f"'{value}"
    # NaN, which is not equal to itself, is a value that was not measured.
    return "" if value is None or value != value else value

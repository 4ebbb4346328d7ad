"""Which settings reach a goal at the least cost, by simulation within a budget."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _fedlink
from ._parts import Part, collect
from ._progress import Progress
from ._run import Experiment, _path, _read


class Plan:
    """The answer of a plan: its folder, and the same numbers as tables."""

    #: The folder of its files: ``plan.html``, ``best.toml``, ``decision.json``, ``candidates.parquet``, ….
    folder: Path
    #: ``decision.json``.
    decision: dict[str, Any]
    #: The text that the command prints.
    text: str

    def __init__(self, outcome: _fedlink.PlanOutcome) -> None:
        self.folder = Path(outcome.folder)
        self.decision = json.loads(outcome.decision)
        self.text = outcome.text

    @property
    def recommended(self) -> dict[str, Any] | None:
        """The recommended settings with their costs on fresh seeds; None if nothing reaches the goal."""
        found: dict[str, Any] | None = self.decision["recommended"]
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """The recommended settings, for ``fedlink.simulate`` and ``fedlink.run``; empty if there are none."""
        return dict(self.recommended["settings"]) if self.recommended else {}

    @property
    def finalists(self) -> list[dict[str, Any]]:
        """The finalists with their costs on fresh seeds."""
        return list(self.decision["finalists"])

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """Every candidate: its settings, its link budget, where it left and why."""
        return list(self.decision["candidates"])

    @property
    def importance(self) -> list[dict[str, Any]]:
        """The worth of each setting: the best candidate with it, relative to the recommended one."""
        return list(self.decision["knobs"])

    @property
    def sensitivities(self) -> list[dict[str, Any]]:
        """The recommended settings under other assumptions."""
        return list(self.decision["sensitivities"])

    def to_pandas(self) -> Any:
        """The candidates as a data frame, as in ``candidates.csv``."""
        import pandas

        return pandas.read_csv(self.folder / "candidates.csv")

    def plot_pareto(self, ax: Any = None) -> Any:
        """The finalists by the costs of two goals, with their intervals; the axes of matplotlib."""
        goals = self.decision["goals"]
        if len(goals) < 2:
            raise ValueError("a Pareto front needs two goals; the plan has one")
        ax = _axes(ax)
        for one in self.decision["candidates"]:
            costs = [cost and cost["value"] for cost in one["costs"]]
            if len(costs) >= 2 and None not in costs[:2]:
                ax.plot(costs[0], costs[1], ".", color="0.7")
        for one in self.finalists:
            x, y = one["costs"][:2]
            if x["value"] is not None and y["value"] is not None:
                ax.errorbar(
                    x["value"], y["value"], xerr=_error(x), yerr=_error(y), fmt="o", label=one["label"]
                )
        ax.set_xlabel(goals[0])
        ax.set_ylabel(goals[1])
        ax.legend()
        return ax

    def plot_importance(self, ax: Any = None) -> Any:
        """The cost of each value of each key, relative to the recommended one; the axes of matplotlib."""
        ax = _axes(ax)
        facts = [fact for fact in self.importance if fact["ratio"] is not None]
        names = [f"{fact['key']} = {fact['value']}" for fact in facts]
        ax.barh(names, [fact["ratio"] for fact in facts])
        ax.axvline(1.0, color="0.5")
        ax.invert_yaxis()
        ax.set_xlabel("cost, relative to the recommended settings")
        return ax

    def __repr__(self) -> str:
        return f"<fedlink.Plan in {self.folder}>\n{self.text}".rstrip()

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(str(self.folder))}</p><pre>{html.escape(self.text)}</pre>"


def plan(
    scenario: Experiment,
    *,
    goal: str | Sequence[str],
    subject_to: Sequence[str] = (),
    over: Mapping[str, Sequence[Any] | str] | None = None,
    budget: str = "200runs",
    error_rate: float = 0.05,
    parts: Mapping[str, Part] | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    threads: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Plan:
    """The settings that reach a goal at the least cost, as ``fedlink plan`` finds them.

    ``scenario`` is a preset, the path of a file, TOML text, or a dictionary of keys, with one configuration.
    ``goal`` is a cost until conditions hold, or several for a Pareto front; ``subject_to`` are limits;
    ``over`` maps keys to the values to search, a sequence or a range such as ``"1..40"``. ``budget`` is a
    time (``"15min"``) or a number of full runs (``"200runs"``), of which the latter gives the same decisions
    on every machine. Ctrl-C saves the runs: ``resume=True`` continues in ``out``.

    >>> plan = fedlink.plan("hall.toml", goal="seconds until accuracy >= 0.85", budget="15min")
    >>> fedlink.simulate({**scenario, **plan.settings})
    """
    registered, _ = collect(parts=parts, strict=True)
    name, text, given = _read(scenario)
    with Progress(0, progress) as bar:
        outcome = _fedlink.plan(
            name,
            text,
            {**given, **(settings or {})},
            registered,
            goals=[goal] if isinstance(goal, str) else list(goal),
            subject_to=list(subject_to),
            over=[f"{key}={_values(values)}" for key, values in (over or {}).items()],
            budget=budget,
            error_rate=error_rate,
            out=_path(out),
            resume=resume,
            force=force,
            threads=threads,
            data_dir=_path(data_dir),
            progress=bar.show,
        )
    if not outcome.decision:
        raise KeyboardInterrupt(f"stopped; resume=True and out={os.fspath(outcome.folder)!r} resume it")
    return Plan(outcome)


def _values(values: Sequence[Any] | str) -> str:
    if isinstance(values, str):
        return values
    return ",".join(value if isinstance(value, str) else json.dumps(value) for value in values)


def _error(cost: Mapping[str, Any]) -> Any:
    ends = (cost["low"], cost["high"])
    if None in ends:
        return None
    return [[cost["value"] - ends[0]], [ends[1] - cost["value"]]]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]

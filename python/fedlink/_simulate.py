"""A run and what it leaves."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any

from . import _fedlink
from ._config import Config, read
from ._parts import Compressor, Policy, Task
from ._progress import Progress
from ._system import digest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Size of the curve in ``_repr_html_``.
WIDTH, HEIGHT = 360, 150


def simulate(
    config: Config,
    progress: bool = True,
    policy: Policy | None = None,
    compressor: Compressor | None = None,
    task: Task | None = None,
) -> Result:
    """Runs a configuration to its end.

    ``config`` is a dictionary (``{"schedule.k": 5}`` or ``{"schedule": {"k": 5}}``), TOML text, or the path of a
    file; what it does not say has its default, and ``fedlink config`` prints every key. ``policy``, ``compressor``
    and ``task`` are parts of your own in place of those that it names; with a task, ``data.devices`` is the task's.

    The digest is the one that ``fedlink run`` prints for the same configuration. Other Python threads go on while a
    round is computed, and Ctrl-C ends the run after the round. An exception in a part of your own comes out as it is.

    >>> result = fedlink.simulate({"schedule.policy": "bc", "run.rounds": 20})
    >>> result.rounds.to_pandas()
    >>> result.plot()
    """
    for name, part, kind in [
        ("policy", policy, Policy),
        ("compressor", compressor, Compressor),
        ("task", task, Task),
    ]:
        if part is not None and not isinstance(part, kind):
            given = type(part).__name__
            raise TypeError(f"{name}: must be an object of a subclass of fedlink.{kind.__name__}, but is {given}")
    settings = {} if task is None else {"data.devices": task.devices}
    run = _fedlink.Simulation(*read(config, settings), policy=policy, compressor=compressor, task=task)
    with Progress(run.rounds_to_do, progress) as bar:
        while run.rounds_done < run.rounds_to_do:
            bar.update(run.step())
    return Result(run)


class Result:
    """A run that is done."""

    #: The configuration, every default written out.
    config: dict[str, Any]
    #: The run in numbers: ``final_accuracy``, ``bits_per_round``, ``scheduled`` (how often each device was), ….
    summary: dict[str, Any]
    #: SHA-256 over every record and the last model: equal only for runs that agree in every bit.
    digest: str
    #: One row for each round. ``test_accuracy`` and ``test_loss`` are null (NaN) where nobody looked.
    rounds: _fedlink.Table
    #: One row for each transmission: who sent what over which channel.
    transmissions: _fedlink.Table
    #: θ(T).
    theta: npt.NDArray[np.float32]

    def __init__(self, run: _fedlink.Simulation) -> None:
        self.config = json.loads(run.config_json())
        self.summary = json.loads(run.outcome_json())
        self.digest = self.summary.pop("digest")
        self.rounds, self.transmissions, self.theta = run.rounds(), run.transmissions(), run.theta()

    @property
    def theta_digest(self) -> str:
        """``fedlink.digest`` of θ(T)."""
        return digest(self.theta)

    def _curve(self, x: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        import numpy

        columns = {"round": "round", "bits": "total_bits"}
        if x not in columns:
            raise ValueError(f'x: must be "round" or "bits", but is {x!r}')
        accuracy = self.rounds["test_accuracy"]
        seen = ~numpy.isnan(accuracy)
        return self.rounds[columns[x]][seen], accuracy[seen]

    def plot(self, ax: Any = None, x: str = "round", **style: Any) -> Any:
        """Draws test accuracy by round, or by bits sent (``x="bits"``), with matplotlib; returns the axes."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("plot needs matplotlib: pip install fedlink[plot]") from error
        if ax is None:
            ax = plt.figure(figsize=(6, 3.5), layout="constrained").add_subplot()
        style.setdefault("label", self.config["schedule"]["policy"])
        places, accuracy = self._curve(x)
        ax.plot(places, 100 * accuracy, **style)
        ax.set_xlabel("round" if x == "round" else "bits sent")
        ax.set_ylabel("test accuracy, %")
        ax.grid(alpha=0.3)
        return ax

    def __repr__(self) -> str:
        accuracy = self.summary["final_accuracy"]
        shown = "not evaluated" if accuracy is None else f"{accuracy:.2%}"
        return f"<fedlink.Result: {shown} after {self.summary['rounds']} rounds, digest {self.digest[:12]}>"

    def _repr_html_(self) -> str:
        summary, schedule = self.summary, self.config["schedule"]

        def percent(share: float | None) -> str:
            return "–" if share is None else f"{share:.2%}"

        rows = [
            ("policy, K", f"{schedule['policy']}, {schedule['k']}"),
            ("rounds", summary["rounds"]),
            ("final accuracy", percent(summary["final_accuracy"])),
            ("best accuracy", percent(summary["best_accuracy"])),
            ("bits a round", f"{summary['bits_per_round']:.0f}"),
            ("worst average power", f"{summary['worst_average_power']:.2f}"),
            ("digest", self.digest[:12]),
        ]
        cells = "".join(f"<tr><th>{name}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows)
        return (
            '<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:center">'
            f"<table>{cells}</table>{self._svg()}</div>"
        )

    def _svg(self) -> str:
        """Test accuracy by round, from 0 to 100 %."""
        places, accuracy = self._curve("round")
        if len(places) == 0:
            return ""
        left, bottom = 44, HEIGHT - 22

        def x(place: float) -> float:
            return left + (WIDTH - left - 8) * place / float(places[-1])

        def y(share: float) -> float:
            return bottom - (bottom - 8) * share

        points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(places, accuracy))
        lines = "".join(
            f'<line x1="{left}" x2="{WIDTH - 8}" y1="{y(share):.1f}" y2="{y(share):.1f}" stroke="currentColor" '
            f'stroke-opacity="0.2"/><text x="{left - 6}" y="{y(share) + 4:.1f}" text-anchor="end">{share:.0%}</text>'
            for share in (0, 0.5, 1)
        )
        return (
            f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="test accuracy by round" '
            f'font-size="11" fill="currentColor">{lines}'
            f'<polyline points="{points}" fill="none" stroke="#3b7dd8" stroke-width="2"/>'
            f'<text x="{left}" y="{HEIGHT - 6}">test accuracy by round</text>'
            f'<text x="{WIDTH - 8}" y="{HEIGHT - 6}" text-anchor="end">{places[-1]}</text></svg>'
        )

"""A run and its results."""

from __future__ import annotations

import html
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _fedlink
from ._config import Config, read
from ._costs import Costs
from ._data import Data, as_dataset
from ._fairness import Fairness
from ._interrupt import Interrupt
from ._parts import Part, Task, check_task, collect, part_name, task_sizes
from ._progress import Progress
from ._system import digest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Width of the curve in ``_repr_html_``, in pixels.
WIDTH = 400

#: Rounds between checkpoints.
CHECKPOINT_EVERY = 100


def simulate(
    config: Config,
    *,
    policy: Part = None,
    compressor: Part = None,
    fading: Part = None,
    data: Data | None = None,
    partition: Sequence[Any] | None = None,
    task: Task | None = None,
    parts: Mapping[str, Part] | None = None,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = CHECKPOINT_EVERY,
    log_rounds: str | None = None,
) -> Result:
    """Runs a configuration to its end.

    ``config`` is a dictionary (``{"schedule.k": 5}`` or ``{"schedule": {"k": 5}}``), TOML text, or the path
    of a file; missing keys have their defaults, and ``fedlink config`` prints every key.

    ``policy``, ``compressor`` and ``fading`` are custom parts in place of those that it names: a subclass of
    ``fedlink.Policy``, ``fedlink.Compressor`` or ``fedlink.Fading``, or a function that makes an object of
    one. ``fading`` may also be an array of M × T gains. ``parts`` are parts that the configuration names by
    the keys of this dictionary. ``data`` is ``(x_train, y_train, x_test, y_test)``, ``partition`` the indices
    of the training samples of every device, ``task`` training of your own instead of data and model; with the
    latter two ``data.devices`` is theirs.

    The digest is the one that ``fedlink run`` prints for the same configuration. Other Python threads run on
    while a round is computed. Ctrl-C ends the run after the round: ``KeyboardInterrupt`` has the rounds that
    are done as its attribute ``result``. An exception in a custom part comes out as it is.

    ``checkpoint`` is a file in which the run is saved every ``checkpoint_every`` rounds, at Ctrl-C and at its
    end. If it is there, the run resumes from it and ends with the same bits. Use only checkpoints that you
    trust: the state of a custom policy is unpickled.

    ``log_rounds="all"`` keeps every device of every round with its link, its report and the numbers that the
    policy decided by, as ``fedlink run --log-rounds all`` does: ``result.devices``. A checkpoint does not
    hold this log.

    >>> result = fedlink.simulate({"schedule.policy": "bc", "run.rounds": 20})
    >>> result.rounds.to_pandas()
    >>> result.plot()
    """
    if log_rounds not in (None, "all"):
        raise ValueError(f'log_rounds: must be None or "all", but is {log_rounds!r}')
    if log_rounds is not None and checkpoint is not None:
        raise ValueError("log_rounds: a checkpoint does not hold the log; leave one of the two out")
    try:
        run = _start(config, policy, compressor, fading, data, partition, task, parts)
        if log_rounds is not None:
            run.log_all()
        return _run(run, progress, checkpoint, checkpoint_every)
    finally:
        if isinstance(task, Task):
            task.end()


def _run(
    run: _fedlink.Simulation,
    progress: bool,
    checkpoint: str | os.PathLike[str] | None,
    checkpoint_every: int,
) -> Result:
    if checkpoint is not None and os.path.exists(checkpoint):
        with open(checkpoint, "rb") as file:
            run.load(file.read())
    first = run.rounds_done
    with Interrupt() as interrupt, Progress(run.rounds_to_do, progress, first) as bar:
        try:
            while run.rounds_done < run.rounds_to_do and not interrupt.asked:
                bar.update(run.step())
                due = run.rounds_done % checkpoint_every == 0
                if checkpoint is not None and due and run.rounds_done < run.rounds_to_do:
                    _save(run, checkpoint)
        except KeyboardInterrupt as stop:
            # The second Ctrl-C: the round that was running is lost.
            stop.result = Result(run)  # type: ignore[attr-defined]
            raise
    if checkpoint is not None and run.rounds_done > first:
        _save(run, checkpoint)
    result = Result(run)
    if run.rounds_done < run.rounds_to_do:
        stopped = KeyboardInterrupt(
            f"stopped after {run.rounds_done} of {run.rounds_to_do} rounds; see its result"
        )
        stopped.result = result  # type: ignore[attr-defined]
        raise stopped
    for warning in result.summary["warnings"]:
        warnings.warn(warning, RuntimeWarning, stacklevel=3)
    return result


def _start(
    config: Config,
    policy: Part,
    compressor: Part,
    fading: Part,
    data: Data | None,
    partition: Sequence[Any] | None,
    task: Task | None,
    parts: Mapping[str, Part] | None,
) -> _fedlink.Simulation:
    if task is not None and not isinstance(task, Task):
        hint = f"; give an object: {task.__name__}(…)" if isinstance(task, type) else ""
        raise TypeError(
            f"task: must be an object of a subclass of fedlink.Task, but is {_described(task)}{hint}"
        )
    check_task(task, data, partition)
    registered, chosen = collect(policy, compressor, fading, partition, parts)
    settings: dict[str, Any] = dict(chosen)
    named = None
    if task is not None:
        settings.update(task_sizes(task))
        named = task, part_name(type(task))
    given = None
    if isinstance(data, str):
        settings["data.dataset"] = data
    elif data is not None:
        given = as_dataset(data)
    return _fedlink.Simulation(*read(config, settings), registered, named, given)


def _described(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"


def _save(run: _fedlink.Simulation, checkpoint: str | os.PathLike[str]) -> None:
    """Writes a checkpoint, complete or not at all."""
    partial = f"{os.fspath(checkpoint)}.partial-{os.getpid()}"
    with open(partial, "wb") as file:
        file.write(run.save())
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, checkpoint)


#: The x-axes of ``Result.plot``: the column, and the label of the axis.
AXES = {
    "round": ("round", "round"),
    "bits": ("total_bits", "bits sent"),
    "seconds": ("total_seconds", "seconds"),
    "joules": ("total_joules", "joules of all devices"),
}


class Result(Costs, Fairness):
    """A run that is done, or the part of it that is."""

    #: The configuration, every default written out.
    config: dict[str, Any]
    #: The run in numbers: ``final_accuracy``, ``bits_per_round``, ``scheduled`` (rounds per device), ….
    summary: dict[str, Any]
    #: SHA-256 over every record and the last model: equal only for runs that agree in every bit.
    digest: str
    #: One row for each round. ``test_accuracy`` and ``test_loss`` are null (NaN) in rounds without an
    #: evaluation.
    rounds: _fedlink.Table
    #: One row for each transmission: its sender, its content and its channel.
    transmissions: _fedlink.Table
    #: With ``log_rounds="all"`` one row for each device in each round: the columns of ``transmissions``, and
    #: the numbers that the policy decided by (``score``, ``probability``, ``threshold``, ``queue``,
    #: ``order``); otherwise None.
    devices: _fedlink.Table | None
    #: θ(T).
    theta: npt.NDArray[np.float32]

    def __init__(self, run: _fedlink.Simulation) -> None:
        self.config = json.loads(run.config_json())
        self.summary = json.loads(run.outcome_json())
        self.digest = self.summary.pop("digest")
        self.rounds, self.transmissions, self.theta = run.rounds(), run.transmissions(), run.theta()
        self.devices = run.devices()

    @property
    def theta_digest(self) -> str:
        """``fedlink.digest`` of θ(T)."""
        return digest(self.theta)

    def _curve(self, x: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        import numpy

        if x not in AXES:
            known = ", ".join(f'"{name}"' for name in AXES)
            raise ValueError(f"x: must be one of {known}, but is {x!r}")
        if x in ("seconds", "joules") and self.phases is None:
            problem = f"there are no {x} without radio.bandwidth_hz; set it, or choose another axis"
            raise ValueError(f"x: {problem}")
        accuracy = self.rounds["test_accuracy"]
        seen = ~numpy.isnan(accuracy)
        return self.rounds[AXES[x][0]][seen], accuracy[seen]

    def plot(self, ax: Any = None, x: str = "round", **style: Any) -> Any:
        """Draws test accuracy with matplotlib by ``x``: "round", "bits", "seconds" or "joules"; returns the
        axes."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("plot needs matplotlib: pip install matplotlib") from error
        if ax is None:
            ax = plt.figure(figsize=(6, 3.5), layout="constrained").add_subplot()
        style.setdefault("label", self.config["schedule"]["policy"])
        rounds, accuracy = self._curve(x)
        ax.plot(rounds, 100 * accuracy, **style)
        ax.set_xlabel(AXES[x][1])
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

        to_target = summary["rounds_to_target"]
        rows = [
            ("policy, K", f"{schedule['policy']}, {schedule['k']}"),
            ("rounds", summary["rounds"]),
            ("final accuracy", percent(summary["final_accuracy"])),
            ("best accuracy", percent(summary["best_accuracy"])),
            (f"rounds to {100 * summary['target']:g} %", "–" if to_target is None else to_target),
            ("bits per round", f"{summary['bits_per_round']:.0f}"),
            ("highest average power of a device", f"{summary['worst_average_power']:.3g}"),
        ]
        if self.phases is not None:
            rows += [
                ("seconds", f"{self.seconds:.6g}"),
                ("joules", f"{self.joules:.6g}"),
                ("joules of the device that spent the most", f"{self.worst_device_joules:.6g}"),
            ]
        rows.append(("digest", self.digest[:12]))
        cells = "".join(f"<tr><th>{name}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows)
        return (
            '<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:center">'
            f"<table>{cells}</table>{self._svg()}</div>"
        )

    def _svg(self) -> str:
        """Test accuracy by round, as in the folder of an experiment."""
        rounds, accuracy = self._curve("round")
        if len(rounds) == 0:
            return ""
        svg = _fedlink.accuracy_svg([(float(x), float(y)) for x, y in zip(rounds, accuracy)])
        scaled = svg.replace("<svg ", '<svg style="width:100%;height:auto" ', 1)
        return f'<div style="width:{WIDTH}px">{scaled}</div>'

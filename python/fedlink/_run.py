"""Experiments as the ``fedlink`` command runs them: presets and files, sweeps, seeds, claims, folders."""

from __future__ import annotations

import html
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Union

from . import _fedlink
from ._config import is_path
from ._costs import Costs
from ._fairness import Fairness
from ._goals import Comparison, GoalValue
from ._data import Data, as_dataset
from ._parts import Part, Registered, Task, _kind_of, _registered, check_task, collect, register_task
from ._progress import Progress

#: A preset, the path of a file, TOML text, or a dictionary of keys.
Experiment = Union[str, "os.PathLike[str]", Mapping[str, Any]]

#: Rounds between checkpoints.
CHECKPOINT_EVERY = 100


@dataclass(frozen=True)
class Run(Costs, Fairness):
    """One seed of a curve."""

    seed: int
    #: "finished", "interrupted" or "diverged".
    status: str
    #: The run in numbers: ``final_accuracy``, ``digest``, ….
    summary: dict[str, Any]
    #: One row for each evaluated round.
    rounds: _fedlink.Table

    @property
    def digest(self) -> str:
        """SHA-256 over every record and the last model, as that of ``fedlink.simulate`` at the same
        configuration and seed."""
        return str(self.summary["digest"])


@dataclass(frozen=True)
class Curve:
    """One curve of an experiment: a combination of the swept values, with a run for each seed."""

    label: str
    #: Its value of every swept key.
    keys: dict[str, str]
    #: Its configuration at the first seed.
    config: dict[str, Any]
    runs: list[Run]


class Study:
    """The results of an experiment: its folder, and the same numbers as objects."""

    #: The folder of its files: ``report.html``, ``results.csv``, ``summary.json``, ``plots/``, ….
    folder: Path
    #: The curves that have at least one run; none for figures of the bound.
    curves: list[Curve]
    #: ``summary.json``: one entry for each curve, with means and intervals over the seeds. None for a share
    #: (``share``).
    summary: Any
    #: The claims on the curves, with verdicts; None if there are none.
    claims: dict[str, Any] | None
    #: The text that the command prints.
    text: str

    def __init__(self, outcome: _fedlink.StudyOutcome) -> None:
        self._outcome = outcome
        self.folder = Path(outcome.folder)
        self.summary = json.loads(outcome.summary) if outcome.summary else None
        self.claims = json.loads(outcome.claims) if outcome.claims else None
        self.text = outcome.text
        self.curves = [
            Curve(
                curve.label,
                dict(curve.keys),
                json.loads(curve.config),
                [Run(run.seed, run.status, json.loads(run.outcome), run.rounds) for run in curve.runs],
            )
            for curve in outcome.curves
        ]

    @property
    def runs(self) -> list[Run]:
        """The runs of all curves, curve by curve."""
        return [run for curve in self.curves for run in curve.runs]

    def curve(self, label: str) -> Curve:
        """The curve with this label."""
        for curve in self.curves:
            if curve.label == label:
                return curve
        raise KeyError(
            f"there is no curve {label!r}; there are {', '.join(curve.label for curve in self.curves)}"
        )

    def goal(self, text: str) -> list[GoalValue]:
        """The value of a goal for every curve: a condition, and the cost until it holds.

        A run that did not reach the goal is not dropped: it is censored at its end.

        >>> for value in study.goal("rounds until accuracy >= 0.8 for 3 evaluations"):
        ...     print(value)
        """
        return [GoalValue._of(found) for found in json.loads(self._outcome.goal(text))]

    def compare(self, left: str | Curve, right: str | Curve, goal: str) -> Comparison:
        """Two curves (or their labels) compared by a goal, at the seeds that both have.

        >>> study.compare("bc", "bn2-c", "seconds until accuracy >= 0.8").p
        """
        labels = [curve.label for curve in self.curves]
        sides = [side.label if isinstance(side, Curve) else side for side in (left, right)]
        indices = [labels.index(self.curve(side).label) for side in sides]
        found = json.loads(self._outcome.compare(indices[0], indices[1], goal))
        return Comparison._of(sides[0], sides[1], goal, found)

    def __repr__(self) -> str:
        return f"<fedlink.Study in {self.folder}>\n{self.text}".rstrip()

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(str(self.folder))}</p><pre>{html.escape(self.text)}</pre>"


@dataclass(frozen=True)
class Rerun:
    """A stored run that was made again."""

    #: Its name in ``runs/``.
    name: str
    #: The settings that distinguish it from the others.
    label: str
    #: The stored digest, and that of the new run, with the round of the first row that differs if only rows
    #: do.
    stored: str
    repeated: str
    #: The program that made each, if they differ.
    stored_by: str = ""
    repeated_by: str = ""

    @property
    def same(self) -> bool:
        """Whether both are the same to the bit."""
        return self.stored == self.repeated


@dataclass(frozen=True)
class Verified:
    """The claims of an experiment, judged by the runs in its folder."""

    #: Each claim with its verdict: "holds", "does not hold", "undecided" or "refused".
    claims: list[dict[str, Any]]
    #: Published values, beside the measured ones.
    expected: list[dict[str, Any]]
    #: Runs that are not finished.
    missing: int
    #: The same for people.
    text: str
    #: The runs that were made again (``rerun=N``).
    reruns: list[Rerun] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<fedlink.Verified>\n{self.text}".rstrip()


def run(
    experiment: Experiment,
    *,
    parts: Mapping[str, Part] | None = None,
    fading: Part = None,
    data: Data | None = None,
    partition: Sequence[Any] | None = None,
    task: Task | Callable[..., Task] | None = None,
    out: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    quick: bool = False,
    resume: bool = False,
    force: bool = False,
    share: str | None = None,
    threads: int | None = None,
    log_rounds: bool | Literal["all"] = False,
    nondeterministic: bool = False,
    keep_state: bool = False,
    latex: bool = False,
    checkpoint_every: int = CHECKPOINT_EVERY,
    data_dir: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **former: Any,
) -> Study:
    """Runs an experiment and writes its folder, as ``fedlink run`` does, figures of the bound included.

    ``experiment`` is a preset (``"fig2"``), the path of a file, TOML text, or a dictionary of keys. ``parts``
    are custom parts by the names that it gives them; an experiment that names none of them is extended by
    them. ``settings`` are keys that go before those of the experiment; a list of values is swept.

    ``fading``, ``data`` and ``partition`` are those of ``fedlink.simulate``, for every curve: a law or gains
    (M × T, or M × T × seeds), arrays, and the training samples of every device. The folder has their digests.
    ``merge`` and ``verify`` take them too.

    ``task`` is training of your own in place of data and model: a subclass of ``fedlink.Task``, or a function
    that makes an object of one (``task=lambda seed: …`` with the seed of the run), so that every run gets its
    own. An object is for an experiment of one run. Runs with a task are made one after the other. The folder
    has the task's source, its data as far as the task holds them, and the sizes that it states.

    ``out`` is the folder (by default a new one under ``results/``), which ``resume`` continues and ``force``
    replaces if fedlink wrote everything in it. With ``resume`` the experiment may have grown: more seeds,
    swept values or rounds; ``keep_state`` keeps the states from which more rounds can continue.
    ``share="3/10"`` runs the third of ten shares only; ``fedlink.merge`` puts them together. The other
    keywords are those of the command. Settings that are seldom meant, which the command notes before its
    runs, are warnings (``RuntimeWarning``). Ctrl-C saves the runs so far: ``KeyboardInterrupt`` has them as
    its attribute ``result``, and ``resume=True`` continues to the same bits.

    The folder records the identity of every custom part: the source of its class and of the user's modules
    that it imports, its arguments and constants. ``resume`` refuses a part that differs. The first rounds of
    one run with each set of custom parts are made twice. It is an error if both are not the same to the bit,
    unless ``nondeterministic``; the results then note it.

    >>> study = fedlink.run("fig2", parts={"pf": ProportionalFair}, quick=True, seeds=3)
    >>> study.folder / "report.html"
    """
    for keyword in former:
        problem = "is called share=" if keyword == "cell" else "is not a keyword of run"
        raise TypeError(f"run: {keyword}= {problem}")
    registered, chosen = _given(parts, fading, data, partition, task)
    name, text, given = _read(experiment)
    with Progress(0, progress) as bar:
        outcome = _fedlink.run(
            name,
            text,
            {**given, **(settings or {})},
            chosen,
            registered,
            out=_path(out),
            seeds=seeds,
            quick=quick,
            resume=resume,
            force=force,
            share=share,
            threads=threads,
            log_rounds=log_rounds,
            nondeterministic=nondeterministic,
            keep_state=keep_state,
            latex=latex,
            checkpoint_every=checkpoint_every,
            data_dir=_path(data_dir),
            progress=bar.show,
        )
    study = Study(outcome)
    if outcome.stopped:
        stopped = KeyboardInterrupt(f"stopped; resume=True and out={os.fspath(study.folder)!r} resume it")
        stopped.result = study  # type: ignore[attr-defined]
        raise stopped
    return study


def check(part: Part, **own: Any) -> list[str]:
    """The findings about a custom part, as ``fedlink check``: its contract is tested, and a short run with
    it is made twice. Each finding begins with the fact that it contradicts; an empty list is none.

    ``own`` are keys of its table, the keywords of its class.

    >>> fedlink.check(ProportionalFair, memory=0.8)
    []
    """
    kind = _kind_of("part", part)
    one = _registered(kind, part, "part", strict=True)
    return _fedlink.check([one], one.name, own)


def merge(
    folder: str | os.PathLike[str],
    *,
    parts: Mapping[str, Part] | None = None,
    fading: Part = None,
    data: Data | None = None,
    partition: Sequence[Any] | None = None,
    task: Task | Callable[..., Task] | None = None,
    partial: bool = False,
    log_rounds: bool | Literal["all"] = False,
    latex: bool = False,
    data_dir: str | os.PathLike[str] | None = None,
) -> Study:
    """Puts the runs in a folder together that were made share by share (``run(…, share="1/4")``), as
    ``fedlink merge``.

    It is an error if some are missing, unless ``partial``.
    """
    registered, _ = _given(parts, fading, data, partition, task)
    outcome = _fedlink.merge(
        os.fspath(folder),
        registered,
        partial=partial,
        log_rounds=log_rounds,
        latex=latex,
        data_dir=_path(data_dir),
    )
    return Study(outcome)


def verify(
    folder: str | os.PathLike[str],
    claims: Experiment | None = None,
    *,
    rerun: int = 0,
    rerun_seed: int | None = None,
    parts: Mapping[str, Part] | None = None,
    fading: Part = None,
    data: Data | None = None,
    partition: Sequence[Any] | None = None,
    task: Task | Callable[..., Task] | None = None,
    threads: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
) -> Verified:
    """Judges the claims of the experiment in ``folder``, or those of another, by the runs there, as
    ``fedlink verify``.

    With ``rerun`` so many finished runs are made again, chosen at random by ``rerun_seed`` (by default the
    time), and their digests and rows are compared: ``Verified.reruns``. Then nothing need be claimed.
    """
    name, text = None, None
    if claims is not None:
        if isinstance(claims, Mapping):
            raise TypeError("claims: must be a preset, the path of a file or TOML text")
        name, text, _ = _read(claims)
    silent = rerun > 0 and claims is None
    found, words, missing = _fedlink.verify(os.fspath(folder), name, text, silent=silent)
    judged = json.loads(found)
    reruns = []
    if rerun > 0:
        registered, _ = _given(parts, fading, data, partition, task)
        seed = int(time.time()) if rerun_seed is None else rerun_seed
        made = _fedlink.rerun(
            os.fspath(folder), registered, count=rerun, seed=seed, threads=threads, data_dir=_path(data_dir)
        )
        reruns = [Rerun(name, label, stored, *(other or (stored,))) for name, label, stored, other in made]
    return Verified(judged.get("claims", []), judged.get("expected", []), missing, words, reruns)


def status(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The progress of the runs in ``folder``, as ``fedlink status --json``: ``done``, ``running``,
    ``waiting`` and ``failed`` of ``of``, ``seconds_left``, the ``best`` curve so far, the progress against
    the ``goals``, and the state of each of ``runs``.
    """
    return json.loads(_fedlink.status(os.fspath(folder)))  # type: ignore[no-any-return]


def _given(
    parts: Mapping[str, Part] | None,
    fading: Part,
    data: Data | None,
    partition: Sequence[Any] | None,
    task: Task | Callable[..., Task] | None,
) -> tuple[list[Registered], dict[str, Any]]:
    """The parts for the library, and the settings that choose those that hold for every curve."""
    check_task(task, data, partition)
    registered, chosen = collect(fading=fading, partition=partition, parts=parts, strict=True)
    if isinstance(data, str):
        chosen["data.dataset"] = data
    elif data is not None:
        registered.append(Registered("data", "arrays", "", as_dataset(data)))
        chosen["data.dataset"] = "arrays"
    if task is not None:
        one, settings = register_task(task)
        registered.append(one)
        chosen.update(settings)
    return registered, chosen


def _read(experiment: Experiment) -> tuple[str, str | None, Mapping[str, Any]]:
    """The name of an experiment, its text unless it is a preset, and settings."""
    if isinstance(experiment, Mapping):
        return "config", "", experiment
    if isinstance(experiment, str) and not is_path(experiment):
        if "\n" in experiment or "=" in experiment:
            return "config", experiment, {}
        return experiment, None, {}
    if isinstance(experiment, (str, os.PathLike)):
        path = os.fspath(experiment)
        with open(path, encoding="utf-8") as file:
            return os.path.basename(path), file.read(), {}
    kind = type(experiment).__name__
    raise TypeError(f"experiment: must be a preset, a path, TOML text or a dictionary, but is of type {kind}")


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)

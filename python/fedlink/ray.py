"""The runs of an experiment on a Ray cluster.

>>> fedlink.ray.sweep("fig1.toml", out="fig1")

Every task is one share of the experiment, ``fedlink.run(…, share="I/N")``; its results are sent back to the
driver, and ``fedlink.merge`` puts all of them together. So no folder needs to be shared, and the numbers are
those of ``fedlink run``, to the bit.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from . import _run
from ._parts import Part, identified

try:
    import ray
except ImportError as error:  # pragma: no cover
    raise ImportError("fedlink.ray needs Ray: pip install 'ray>=2.55,<3'") from error

#: A share's files, by their path in the folder of the experiment.
Files = dict[str, bytes]

#: Shares for each task that can run at a time: small enough that the last ones to end are short.
SHARES_PER_SLOT = 4


def sweep(
    experiment: _run.Experiment,
    out: str | os.PathLike[str],
    *,
    parts: Mapping[str, Part] | None = None,
    settings: Mapping[str, Any] | None = None,
    quick: bool = False,
    seeds: int | None = None,
    shares: int | None = None,
    threads: int = 1,
    max_retries: int = 3,
    log_rounds: bool | Literal["all"] = False,
    latex: bool = False,
    data_dir: str | os.PathLike[str] | None = None,
) -> _run.Study:
    """Runs an experiment on a Ray cluster; ``out`` is the folder of its results.

    ``experiment``, ``parts``, ``settings``, ``quick``, ``seeds``, ``log_rounds`` and ``latex`` are those of
    ``fedlink.run``; parts travel to the workers as Ray's arguments do. The experiment is cut into ``shares``,
    by default four for every task of ``threads`` CPUs that the cluster can run at a time. A share whose
    worker is lost is started again, up to ``max_retries`` times. A folder that was begun is resumed: its runs
    are not repeated.

    ``data_dir`` is the folder of data sets on every machine. Without a running Ray, one is started on this
    machine.

    >>> fedlink.ray.sweep("demo", out="demo", settings={"run.rounds": 50}, seeds=3)
    """
    for name, value in (("threads", threads), ("shares", 1 if shares is None else shares)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name}: must be a whole number from 1, but is {value!r}")
    folder = Path(out)
    name, text, given = _run._read(experiment)
    options: dict[str, Any] = {
        "parts": identified(parts),
        "settings": {**given, **(settings or {})},
        "quick": quick,
        "seeds": seeds,
        "log_rounds": log_rounds,
        "threads": threads,
        "data_dir": None if data_dir is None else os.fspath(data_dir),
    }

    if not ray.is_initialized():
        ray.init()
    if shares is None:
        shares = SHARES_PER_SLOT * max(1, int(ray.cluster_resources().get("CPU", 1)) // threads)
    done = ray.put(_finished(folder))
    task = ray.remote(_share).options(num_cpus=threads, max_retries=max_retries)
    waiting = [
        task.remote(name, text, options, f"{number}/{shares}", done) for number in range(1, shares + 1)
    ]
    try:
        while waiting:
            ended, waiting = ray.wait(waiting)
            _write(folder, ray.get(ended[0]))
    except ray.exceptions.RayTaskError as error:
        raise error.as_instanceof_cause() from None
    finally:
        for unfinished in waiting:
            ray.cancel(unfinished, force=True)
    return _run.merge(folder, parts=parts, log_rounds=log_rounds, latex=latex, data_dir=data_dir)


def _share(name: str, text: str | None, options: dict[str, Any], share: str, done: Files) -> Files:
    """Runs a share in a folder of its own; gives the files that it left and that were not there before, or
    not so."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "out")
        _write(folder, done)
        experiment: _run.Experiment = name
        if text is not None:
            path = Path(scratch, name if name.endswith(".toml") else f"{name}.toml")
            path.write_text(text, encoding="utf-8")
            experiment = path
        _run.run(experiment, share=share, out=folder, progress=False, **options)
        return {path: content for path, content in _finished(folder).items() if done.get(path) != content}


def _finished(folder: Path) -> Files:
    """The content of an experiment's folder: its configuration, and the runs that are done."""
    first = [folder / "config.toml", folder / "data.json"]
    # A folder of version 0.1 or 0.2 keeps its runs in cells/.
    runs = folder / "cells" if (folder / "cells").is_dir() else folder / "runs"
    kept = [*first, *runs.glob("*.json"), *runs.glob("*.rounds.csv"), *(folder / "parts").rglob("*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept if path.is_file()}


def _write(folder: Path, files: Files) -> None:
    """Writes files, each complete or not at all."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
        partial.write_bytes(content)
        partial.replace(path)

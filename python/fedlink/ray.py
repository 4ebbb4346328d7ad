"""The runs of an experiment on a Ray cluster.

>>> fedlink.ray.sweep("fig1.toml", out="fig1")

Every task is one share of the experiment, run by the ``fedlink`` command as ``fedlink run FILE --cell I/N``; what a
share leaves is sent back to the driver, and ``fedlink merge`` puts all of it together. So no folder needs to be shared,
and the numbers are those of ``fedlink run FILE``, to the bit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

try:
    import ray
except ImportError as error:  # pragma: no cover
    raise ImportError("fedlink.ray needs Ray: pip install 'fedlink[ray]'") from error

#: A share's files, by their path in the folder of the experiment.
Files = dict[str, bytes]

#: Exit codes of the command with which there are results: done, and a curve diverged.
WITH_RESULTS = (0, 3)

#: Shares for each task that can run at a time: small enough that the last ones to end are short.
SHARES_PER_SLOT = 4


class SweepError(RuntimeError):
    """The ``fedlink`` command could not do its part; the message is the command's own."""


def sweep(
    experiment: str | Path,
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    quick: bool = False,
    seeds: int | None = None,
    shares: int | None = None,
    threads: int = 1,
    max_retries: int = 3,
    log_rounds: bool = False,
    data_dir: str | Path | None = None,
    command: str | Path = "fedlink",
) -> Path:
    """Runs an experiment, a preset or a TOML file, on a Ray cluster; returns the folder ``out`` with its results.

    ``settings`` (``{"run.rounds": 50}``), ``quick``, ``seeds`` and ``log_rounds`` are those of ``fedlink run``. The
    experiment is cut into ``shares``, by default four for every task of ``threads`` CPUs that the cluster can run at a
    time. A share whose worker is lost is started again, up to ``max_retries`` times. A folder that was begun is taken
    up: what is in it is not run again.

    ``command`` is the ``fedlink`` program on every machine, ``data_dir`` where its data sets are. Without a running
    Ray, one is started on this machine.

    >>> fedlink.ray.sweep("demo", out="demo", settings={"run.rounds": 50}, seeds=3)
    """
    for name, value in (("threads", threads), ("shares", 1 if shares is None else shares)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name}: must be a whole number from 1, but is {value!r}")
    out = Path(out)
    path = Path(experiment)
    is_file = path.suffix == ".toml" or path.is_file()
    text = path.read_text() if is_file else None
    options = [f"--set={key}={_word(value)}" for key, value in (settings or {}).items()]
    options += ["--quick"] if quick else []
    options += ["--log-rounds"] if log_rounds else []
    options += [f"--seeds={seeds}"] if seeds is not None else []
    data = [f"--data-dir={data_dir}"] if data_dir is not None else []

    if not ray.is_initialized():
        ray.init()
    if shares is None:
        shares = SHARES_PER_SLOT * max(1, int(ray.cluster_resources().get("CPU", 1)) // threads)
    done = ray.put(_finished(out))
    task = ray.remote(_share).options(num_cpus=threads, max_retries=max_retries)
    arguments = [*options, *data, f"--threads={threads}", "--quiet"]
    name = path.name if is_file else str(experiment)
    waiting = [
        task.remote(str(command), name, text, arguments, f"{number}/{shares}", done)
        for number in range(1, shares + 1)
    ]
    try:
        while waiting:
            ended, waiting = ray.wait(waiting)
            _write(out, ray.get(ended[0]))
    except ray.exceptions.RayTaskError as error:
        raise error.as_instanceof_cause() from None
    finally:
        for unfinished in waiting:
            ray.cancel(unfinished, force=True)
    _run([str(command), "merge", str(out), "--quiet", *data, *(["--log-rounds"] if log_rounds else [])])
    return out


def _share(command: str, name: str, text: str | None, arguments: list[str], share: str, done: Files) -> Files:
    """Runs a share in a folder of its own; gives the files that it left and that were not there before."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "out")
        _write(folder, done)
        if text is not None:
            name = str(Path(place, name))
            Path(name).write_text(text)
        _run([command, "run", name, f"--cell={share}", f"--out={folder}", *arguments])
        return {path: content for path, content in _finished(folder).items() if path not in done}


def _run(command: list[str]) -> None:
    program = shutil.which(command[0])
    if program is None:
        raise SweepError(
            f"there is no program {command[0]!r} on {os.uname().nodename}; install fedlink's command on every "
            "machine of the cluster, or say where it is with command=…"
        )
    ended = subprocess.run([program, *command[1:]], capture_output=True, text=True)
    if ended.returncode not in WITH_RESULTS:
        raise SweepError(ended.stderr.strip() or f"{' '.join(command)} ended with {ended.returncode}")


def _finished(folder: Path) -> Files:
    """What there is in the folder of an experiment: its configuration, and the runs that are done."""
    kept = [folder / "config.toml", *(folder / "cells").glob("*.cell"), *(folder / "cells").glob("*.rounds.csv")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept if path.is_file()}


def _write(folder: Path, files: Files) -> None:
    """Writes files, each complete or not at all."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
        partial.write_bytes(content)
        partial.replace(path)


def _word(value: Any) -> str:
    """A value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)

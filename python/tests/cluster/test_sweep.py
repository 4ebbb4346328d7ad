"""A sweep on a local Ray cluster of two workers against `fedlink run`."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
import ray

import fedlink.ray

PROGRAM = os.environ.get("FEDLINK_PROGRAM", str(Path(__file__).resolve().parents[3] / "target/debug/fedlink"))

EXPERIMENT = """
[learn]
model = "softmax"
state = "reset"
[data]
devices = 6
samples_per_device = 50
[run]
rounds = 6
evaluate_every = 3
seeds = 2
[sweep]
"schedule.policy" = ["bc", "bn2", "bn2-c"]
"schedule.k" = [1, 2]
"""


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory):
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Otherwise Ray's workers have a lower priority than all other processes.
    os.environ["RAY_worker_niceness"] = "0"
    # Ray keeps its folder; this one goes with those of the tests.
    folder = str(tmp_path_factory.mktemp("ray"))
    # A worker that is killed leaves its files in its temporary folder.
    workers = {"env_vars": {"TMPDIR": str(tmp_path_factory.mktemp("workers"))}}
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        _temp_dir=folder,
        runtime_env=workers,
    )
    yield
    ray.shutdown()


@pytest.fixture
def experiment(tmp_path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(EXPERIMENT)
    return path


def swept(*arguments, **options) -> Path:
    return fedlink.ray.sweep(*arguments, **options).folder


def run(experiment: Path, out: Path, *options: str) -> Path:
    subprocess.run([PROGRAM, "run", experiment, "--out", out, "--quiet", *options], check=True)
    return out


def assert_same(folder: Path, reference: Path) -> None:
    """Every number that is not a time is the same."""
    assert (folder / "results.csv").read_bytes() == (reference / "results.csv").read_bytes()
    runs = [json.loads((path / "manifest.json").read_text()) for path in (folder, reference)]
    digests = [[(r["curve"], r["seed"], r["status"], r["digest"]) for r in each["runs"]] for each in runs]
    assert digests[0] == digests[1] and all(each["complete"] for each in runs)


def test_a_sweep_gives_the_same_as_the_command(experiment, tmp_path):
    folder = swept(experiment, tmp_path / "swept", shares=5, log_rounds=True)
    reference = run(experiment, tmp_path / "run", "--log-rounds")
    assert_same(folder, reference)
    with (folder / "results.csv").open() as file:
        assert len({(row["curve"], row["seed"]) for row in csv.DictReader(file)}) == 12
    assert (folder / "rounds.csv").read_bytes() == (reference / "rounds.csv").read_bytes()
    assert not list(folder.rglob("*partial*"))


def test_settings_are_those_of_the_command(experiment, tmp_path):
    folder = swept(
        experiment, tmp_path / "swept", settings={"run.rounds": 4, "radio.symbols": 900}, seeds=1
    )
    assert_same(
        folder,
        run(experiment, tmp_path / "run", "--set=run.rounds=4", "--set=radio.symbols=900", "--seeds=1"),
    )


def test_finished_runs_are_not_repeated(experiment, tmp_path):
    reference = run(experiment, tmp_path / "run")
    begun = tmp_path / "swept"
    subprocess.run([PROGRAM, "run", experiment, "--share", "1/3", "--out", begun, "--quiet"], check=True)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in (begun / "runs").glob("*.json")}
    assert 0 < len(before) < 12
    assert_same(swept(experiment, begun), reference)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in before} == before


def test_a_share_whose_worker_is_killed_is_started_again(experiment, tmp_path):
    killed: list[int] = []

    def kill_a_worker() -> None:
        """Kills the first worker that is seen at a share."""
        deadline = time.monotonic() + 120
        while not killed and time.monotonic() < deadline:
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    # Ray names a worker by its task.
                    if b"ray::_share" in (process / "cmdline").read_bytes():
                        time.sleep(0.2)
                        os.kill(int(process.name), signal.SIGKILL)
                        killed.append(int(process.name))
                        return
                except OSError:
                    continue
            time.sleep(0.002)

    # Long enough to be caught at it.
    settings = {"run.rounds": 400}
    killer = threading.Thread(target=kill_a_worker)
    killer.start()
    folder = swept(experiment, tmp_path / "swept", settings=settings, shares=4)
    killer.join()
    assert killed
    assert_same(folder, run(experiment, tmp_path / "run", "--set=run.rounds=400"))


def test_an_impossible_run_raises_the_error_of_the_library(experiment, tmp_path):
    with pytest.raises(ValueError, match="schedule.k"):
        fedlink.ray.sweep(experiment, tmp_path / "out", settings={"data.devices": 1})


def test_custom_parts_travel_to_the_workers(experiment, tmp_path):
    import numpy

    class Oldest(fedlink.Policy):
        """The devices that have waited longest; defined here, so that it can only be sent by value."""

        def candidates(self, view):
            return numpy.sort(numpy.argsort(-view.ages, kind="stable")[: view.k])

        def select(self, view, reports):
            return reports.devices, numpy.ones(len(reports))

    options = {"parts": {"oldest": Oldest}, "settings": {"schedule.policy": ["bc", "oldest"]}}
    study = fedlink.ray.sweep(experiment, tmp_path / "swept", shares=3, **options)
    alone = fedlink.run(experiment, out=tmp_path / "alone", progress=False, **options)
    assert_same(study.folder, alone.folder)
    assert [curve.label for curve in study.curves] == ["bc k=1", "bc k=2", "oldest k=1", "oldest k=2"]


@pytest.mark.parametrize("wrong", [{"threads": 0}, {"shares": 0}, {"shares": 1.5}])
def test_numbers_that_cannot_be_are_refused(experiment, tmp_path, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        fedlink.ray.sweep(experiment, tmp_path / "out", **wrong)

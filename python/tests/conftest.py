"""Common code of the tests."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SMALL = {
    "learn.model": "softmax",
    "learn.state": "reset",
    "data.devices": 8,
    "data.samples_per_device": 60,
    "learn.batch": 16,
    "radio.symbols": 500,
    "schedule.k": 2,
    "run.rounds": 4,
    "run.evaluate_every": 2,
}


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Tests that are terminated end as with Ctrl-C: the processes that they started end with them. Their
    folders are in one folder, which pytest would keep of the last three runs."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if config.option.basetemp is None:
        config.option.basetemp = tempfile.mkdtemp(prefix="fedlink-tests-")
        config.add_cleanup(lambda: _remove_unless_failed(config))
    # Ray, which Flower starts, keeps its folders.
    os.environ.setdefault("RAY_TMPDIR", str(config.option.basetemp))


def pytest_sessionfinish(session, exitstatus):
    session.config.stash[FAILED] = exitstatus == pytest.ExitCode.TESTS_FAILED


FAILED = pytest.StashKey[bool]()


def _remove_unless_failed(config):
    """The output of a failed test shows why it failed."""
    if config.stash.get(FAILED, False):
        print(f"what the tests wrote is kept in {config.option.basetemp}")
    else:
        shutil.rmtree(config.option.basetemp, ignore_errors=True)


@pytest.fixture
def small():
    """A configuration that takes a moment."""
    return dict(SMALL)


@pytest.fixture
def command():
    """Runs the ``fedlink`` command of this build."""
    program = os.environ.get("FEDLINK_PROGRAM", str(ROOT / "target/debug/fedlink"))

    def run(*arguments, **options):
        return subprocess.run(
            [program, *map(str, arguments)], check=True, capture_output=True, text=True, **options
        )

    return run

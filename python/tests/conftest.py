"""What the tests share."""

import os
import signal
import subprocess
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


def pytest_configure():
    """Tests that are terminated end as with Ctrl-C: what they have started ends with them."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


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

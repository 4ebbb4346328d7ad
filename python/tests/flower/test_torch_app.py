"""A stock PyTorch app, with the lines changed that docs/flower.md gives."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from fake_grid import FakeGrid
from flwr.app import Context, RecordDict

from fedlink.flower import UpdateAwareClientApp

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs" / "flower.md"
NODES = 4
MODULES = ("task", "client_app", "server_app")


@pytest.fixture
def app(tmp_path) -> Path:
    """The app for FedAvg, with the lines changed."""
    folder = tmp_path / "app"
    shutil.copytree(HERE / "stock_torch_app", folder, ignore=shutil.ignore_patterns("__pycache__"))
    diffs = re.findall(r"^```diff\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    changes = [change for diff in diffs for change in re.findall(r"^-(.*)\n\+(.*)\n", diff, re.M)]
    assert len(changes) == 4
    for file in (folder / "client_app.py", folder / "server_app.py"):
        text = file.read_text()
        for stock, ours in changes:
            text = text.replace(f"{stock}\n", f"{ours}\n")
        file.write_text(text)
    both = (folder / "client_app.py").read_text() + (folder / "server_app.py").read_text()
    assert all(f"{ours}\n" in both and f"{stock}\n" not in both for stock, ours in changes)
    return folder


def check(result: dict, rounds: int, min_accuracy: float) -> None:
    assert result["accuracy"][str(rounds)] >= min_accuracy > 3 * result["accuracy"]["0"], result["accuracy"]
    outcomes = [[node["outcome"] for node in record["nodes"]] for record in result["rounds"]]
    assert [sorted(words) for words in outcomes] == [["not-scheduled"] * 2 + ["sent"] * 2] * rounds
    senders = {
        node["device"] for record in result["rounds"] for node in record["nodes"] if node["outcome"] == "sent"
    }
    assert senders <= set(range(NODES))
    # The counter of batch normalization is no parameter: nobody sends it.
    assert result["counter"] == 0


def test_it_learns_on_a_grid_in_this_process(app, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(app))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    import client_app
    import server_app

    assert isinstance(client_app.app, UpdateAwareClientApp)
    grid = FakeGrid()
    for device in range(NODES):
        grid.add(device + 1, client_app.app, partition_id=device)
    out = tmp_path / "out"
    server_app.app(grid, Context(0, 0, {}, RecordDict(), {"rounds": 10, "timeout": 30, "out": str(out)}))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name)
    check(json.loads((out / "result.json").read_text()), 10, 0.9)

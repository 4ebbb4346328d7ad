"""Records are saved as they come, and a run that was stopped continues as if it never had been."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from fake_grid import FakeGrid, model, stock_training
from flwr.app import MetricRecord

import fedlink
from fedlink.flower import SimulatedUplink, UpdateAwareClientApp, UpdateAwareStrategy, protocol
from fedlink.flower.record import NODE_COLUMNS

DEVICES, DIM = 6, 50


def shift(device: int, server_round: int) -> list[np.ndarray]:
    random = np.random.default_rng([device, server_round])
    return [(0.1 * (1 + device) * random.standard_normal(DIM)).astype(np.float32)]


def grid_of() -> FakeGrid:
    grid = FakeGrid()
    for device in range(DEVICES):
        app = UpdateAwareClientApp()
        app.train()(stock_training(shift))
        grid.add(device + 10, app, partition_id=device)
    return grid


def evaluate(number: int, arrays) -> MetricRecord:
    return MetricRecord({"accuracy": 0.1 * number, "loss": float(np.abs(arrays["layer0"].numpy()).sum())})


class Stopped(Exception):
    pass


def run(folder, rounds: int = 6, stop_at: int | None = None, grid: FakeGrid | None = None, **options):
    options.setdefault("policy", "round-robin")
    strategy = UpdateAwareStrategy(
        k=2, uplink=SimulatedUplink(devices=DEVICES, symbols=300, seed=3), records=folder, **options
    )

    def evaluation(number: int, arrays) -> MetricRecord:
        if number == stop_at:
            raise Stopped
        return evaluate(number, arrays)

    start = model(np.zeros(DIM, dtype=np.float32))
    result = strategy.start(grid or grid_of(), start, num_rounds=rounds, timeout=5, evaluate_fn=evaluation)
    return strategy, result


def rows_of(path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_round_is_in_the_folder_as_soon_as_it_is_done(tmp_path):
    with pytest.raises(Stopped):
        run(tmp_path, stop_at=4)
    rows = rows_of(tmp_path / "rounds.csv")
    assert [int(row["round"]) for row in rows] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [int(row["round"]) for row in rows_of(tmp_path / "results.csv")] == [1, 2, 3]


def test_the_records_are_those_of_the_server_and_of_the_nodes(tmp_path):
    strategy, _ = run(tmp_path, policy="bn2")
    rows = rows_of(tmp_path / "rounds.csv")
    sent = [row for row in rows if row["outcome"] in ("sent", "silent")]
    table = strategy.server.transmissions()
    assert list(rows[0]) == [*table.column_names, *NODE_COLUMNS]
    for name in ("round", "device", "q", "budget", "bits", "report", "bit_weight", "symbols"):
        expected = sorted(zip(table["round"].tolist(), table["device"].tolist(), table[name].tolist()))
        assert [(int(row["round"]), int(row["device"]), float(row[name])) for row in sent] == expected, name
    # All train; those that are not scheduled have no transmission, and the rest of the record.
    waited = [row for row in rows if row["outcome"] == "not-scheduled"]
    assert len(rows) == 6 * DEVICES and len(waited) == 6 * (DEVICES - 2)
    assert all(row["budget"] == "" and float(row["report"]) > 0 and float(row["gain"]) > 0 for row in waited)
    for row in rows:
        assert float(row["train_loss"]) == 0.5 and int(row["examples"]) == 10
        assert float(row["compute_seconds"]) >= float(row["train_seconds"]) >= 0
        assert int(row["up_bytes"]) > int(row["payload_bytes"] or 0) and int(row["down_bytes"]) > 4 * DIM
    assert all(float(row["upload_seconds"]) >= 0 for row in sent)
    assert all((row["payload_bytes"] == "") == (row["outcome"] == "silent") for row in sent)
    results = rows_of(tmp_path / "results.csv")
    assert [float(row["test_accuracy"]) for row in results] == pytest.approx([0.1 * t for t in range(1, 7)])
    assert [float(row["train_loss"]) for row in results] == [0.5] * 6
    assert all(float(row["seconds"]) > 0 for row in results)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["digest"] == strategy.server.digest and summary["rounds"] == 6
    assert json.loads((tmp_path / "config.json").read_text())["schedule"]["policy"] == "bn2"


@pytest.mark.parametrize("policy", ["round-robin", "random", "bn2-c"])
@pytest.mark.parametrize("stop_at", [1, 4])
def test_a_run_that_was_stopped_continues_with_the_state_of_its_policy(tmp_path, policy, stop_at):
    config = {"learn.server_optimizer": "momentum", "compress.scheme": "stc"}
    whole, expected = run(tmp_path / "whole", policy=policy, config=config)
    with pytest.raises(Stopped):
        run(tmp_path / "stopped", stop_at=stop_at, policy=policy, config=config)
    resumed, result = run(tmp_path / "stopped", resume=True, policy=policy, config=config)
    assert fedlink.digest(protocol.theta_of(result.arrays)) == fedlink.digest(
        protocol.theta_of(expected.arrays)
    )
    assert [record.round for record in resumed.records] == list(range(stop_at + 1, 7))
    assert list(result.train_metrics_clientapp) == list(range(stop_at + 1, 7))
    assert list(result.evaluate_metrics_serverapp) == list(range(stop_at, 7))
    names = [name for name in rows_of(tmp_path / "whole" / "rounds.csv")[0] if not name.endswith("seconds")]
    first, second = (
        [[row[name] for name in names] for row in rows_of(tmp_path / folder / "rounds.csv")]
        for folder in ("whole", "stopped")
    )
    # A hello is once in a run, and a run that is resumed sends it again.
    assert first == second


def test_a_round_that_was_written_but_not_saved_is_run_again(tmp_path):
    with pytest.raises(Stopped):
        run(tmp_path, stop_at=3)
    path = tmp_path / "rounds.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[-1].replace("3,", "4,", 1), "4,1,0."]))
    run(tmp_path, resume=True)
    assert [int(row["round"]) for row in rows_of(path)] == [t for t in range(1, 7) for _ in range(2)]


def test_a_run_that_is_over_is_not_run_again(tmp_path):
    strategy, first = run(tmp_path)
    grid = grid_of()
    again, result = run(tmp_path, resume=True, grid=grid)
    assert again.server.digest == strategy.server.digest and not grid.log
    assert protocol.theta_of(result.arrays).tobytes() == protocol.theta_of(first.arrays).tobytes()


def test_the_state_of_a_folder_of_version_0_2_takes_its_new_name(tmp_path):
    with pytest.raises(Stopped):
        run(tmp_path / "stopped", stop_at=3)
    (tmp_path / "stopped" / "server.bin").rename(tmp_path / "stopped" / "session.bin")
    resumed, _ = run(tmp_path / "stopped", resume=True)
    whole, _ = run(tmp_path / "whole")
    assert [record.round for record in resumed.records] == [4, 5, 6]
    assert fedlink.digest(resumed.server.theta) == fedlink.digest(whole.server.theta)
    assert not (tmp_path / "stopped" / "session.bin").exists()
    with pytest.raises(AttributeError, match=r"is strategy\.server"):
        resumed.session  # noqa: B018


def test_the_records_of_another_run_are_not_written_over(tmp_path):
    run(tmp_path, rounds=1)
    with pytest.raises(FileExistsError, match="resume=True to resume it, or another folder"):
        run(tmp_path)
    with pytest.raises(ValueError):
        run(tmp_path, rounds=1, resume=True, policy="bn2")

"""A radio in units on real nodes: the same schedule, budgets and model as in `simulate`, and airtime in
seconds."""

from __future__ import annotations

import csv
import warnings

import numpy as np
import pytest
from fake_grid import FakeGrid
from flwr.app import Array, ArrayRecord, MetricRecord

import fedlink
from fedlink.flower import DeclaredUplink, Outcome, UpdateAwareClientApp, UpdateAwareStrategy, update_reply

DEVICES, ROUNDS = 6, 5

CELL = {
    "data.dataset": "digits",
    "data.devices": DEVICES,
    "data.samples_per_device": 60,
    "learn.model": "softmax",
    "learn.state": "reset",
    "run.evaluate_every": 1,
    "run.rounds": ROUNDS,
    "run.seed": 5,
    "schedule.k": 2,
    "radio.bandwidth_hz": 1e6,
    "radio.uplink_s": 0.001,
    "cell.layout": "disc",
    "cell.radius_m": 700,
    "cell.pathloss": "3gpp-macro",
    "cell.shadowing_db": 8,
}

#: The columns that a run and its simulation have in common; only the bytes differ, which a simulation need
#: not write.
COLUMNS = (
    "round", "device", "report", "gain", "capacity", "bit_weight", "symbols", "budget", "bits", "q",
    "entries", "arrival", "power", "airtime",
)  # fmt: skip


def start(config, records=None, **options):
    system = fedlink.System(config | {"schedule.policy": "bc"})

    def train(message, context):
        t = message.content["config"]["server-round"] - 1
        device = context.node_config["partition-id"]
        update, loss = system.train(message.content["arrays"]["theta"].numpy(), t, device)
        return update_reply(message, update, loss, examples=60)

    def evaluate(number, arrays):
        accuracy, loss = system.evaluate(arrays["theta"].numpy())
        return MetricRecord({"accuracy": accuracy, "loss": loss})

    grid = FakeGrid()
    for device in range(DEVICES):
        app = UpdateAwareClientApp()
        app.train()(train)
        grid.add(10 + device, app, partition_id=device)
    strategy = UpdateAwareStrategy(config=config, records=records, **options)
    initial = ArrayRecord({"theta": Array(system.theta0())})
    result = strategy.start(grid, initial, num_rounds=ROUNDS, timeout=30, evaluate_fn=evaluate)
    return strategy, result.arrays["theta"].numpy()


@pytest.mark.parametrize(
    "policy, keys",
    [
        ("bc", {}),
        ("bn2", {"radio.power_policy": "equal-energy"}),
        ("bn2-c", {"radio.rate": "gap"}),
        ("round-robin", {"radio.access": "fdma"}),
        ("random", {"radio.correlation": 0.9, "radio.power_policy": "inversion"}),
        ("bn2", {"radio.mode": "payload", "radio.payload_bits": 3000}),
    ],
)
def test_nodes_are_scheduled_and_send_as_in_simulate(policy, keys):
    config = CELL | {"schedule.policy": policy} | keys
    if keys.get("radio.mode") == "payload":
        del config["radio.uplink_s"]
    strategy, theta = start(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = fedlink.simulate(config, progress=False)
    for name in COLUMNS:
        expected = reference.transmissions[name].tolist()
        assert strategy.server.transmissions()[name].tolist() == expected, name
    assert fedlink.digest(theta) == reference.theta_digest


def test_packets_that_the_channel_would_lose_arrive():
    config = CELL | {"schedule.policy": "bc", "radio.rate": "finite-blocklength", "radio.csi_error": 0.1}
    strategy, _ = start(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        simulated = fedlink.simulate(config, progress=False)
    sent = strategy.server.transmissions()
    for name in ("device", "gain", "symbols", "budget", "power", "airtime"):
        assert sent[name].tolist() == simulated.transmissions[name].tolist()
    assert "outage" in simulated.transmissions["arrival"].tolist()
    assert set(sent["arrival"].tolist()) <= {"used", "silent"}


def test_records_have_power_and_airtime_in_seconds(tmp_path):
    strategy, _ = start(CELL | {"schedule.policy": "bc"}, records=tmp_path / "records")
    scheduled = [node for record in strategy.records for node in record.scheduled]
    assert scheduled and all(node.outcome in (Outcome.SENT, Outcome.SILENT) for node in scheduled)
    power = DEVICES / 2 * 10 ** ((7.8 - 30) / 10)
    for record in strategy.records:
        assert sum(node.airtime_seconds for node in record.scheduled) == pytest.approx(0.001, rel=1e-12)
    for node in scheduled:
        assert node.power == pytest.approx(power, rel=1e-12)
        assert node.airtime_seconds == pytest.approx(node.granted * 1e-6, rel=1e-12)
    with (tmp_path / "records/rounds.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["outcome"] in ("sent", "silent")]
    written = [(int(row["device"]), float(row["airtime_seconds"]), float(row["power"])) for row in rows]
    assert written == [(node.device, node.airtime_seconds, node.power) for node in scheduled]
    # There is no simulated clock: seconds and joules per round are left empty.
    with (tmp_path / "records/results.csv").open(newline="", encoding="utf-8") as file:
        rounds = list(csv.DictReader(file))
    assert len(rounds) == ROUNDS and all(row["total_seconds"] == row["total_joules"] == "" for row in rounds)
    assert all(float(row["seconds"]) > 0 for row in rounds)


def test_the_reference_leaves_the_radio_out():
    strategy, theta = start_reference(CELL | {"schedule.policy": "bn2", "radio.csi_error": 0.1})
    assert all(len(record.having(Outcome.SENT)) == DEVICES for record in strategy.records)
    assert "bandwidth_hz" not in strategy.config["radio"]
    assert np.isfinite(theta).all() and theta.any()


def start_reference(config):
    strategy = UpdateAwareStrategy.reference(config=config)
    grid = FakeGrid()
    for device in range(DEVICES):
        app = UpdateAwareClientApp()

        @app.train()
        def train(message, context):
            update = np.full(20, 0.1, np.float32)
            return update_reply(message, update, 0.5, examples=60)

        grid.add(10 + device, app, partition_id=device)
    initial = ArrayRecord({"theta": Array(np.zeros(20, np.float32))})
    result = strategy.start(grid, initial, num_rounds=2, timeout=30)
    return strategy, result.arrays["theta"].numpy()


def test_declared_rates_and_a_radio_in_units_exclude_each_other():
    with pytest.raises(ValueError, match="radio.symbols.*radio.bandwidth_hz"):
        UpdateAwareStrategy("bc", 2, uplink=DeclaredUplink(DEVICES, 0.5), config={"radio.bandwidth_hz": 1e6})

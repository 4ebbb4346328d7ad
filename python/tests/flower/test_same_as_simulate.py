"""The same seed gives the same run on nodes as in `simulate`: who is scheduled, what is sent, the model to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from fake_grid import FakeGrid
from flwr.app import Array, ArrayRecord

import fedlink
from fedlink.flower import Outcome, SimulatedUplink, UpdateAwareClientApp, UpdateAwareStrategy, update_reply

ROUNDS, DEVICES, SYMBOLS, SEED = 6, 6, 600, 11


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("policy, k", [("bc", 1), ("bc", 3), ("bn2", 2), ("bc-bn2", 2), ("bn2-c", 1), ("bn2-c", 3)])
def test_nodes_compute_what_simulate_computes(policy, k, whole):
    kc = {"schedule.kc": 4} if policy == "bc-bn2" else {}
    config = {
        "data.dataset": "digits",
        "data.devices": DEVICES,
        "data.samples_per_device": 60,
        "learn.model": "softmax",
        "learn.state": "reset",
        "radio.symbols": SYMBOLS,
        "radio.power": 0.7,
        "radio.noise": 1.3,
        "radio.slots": "whole" if whole else "real",
        "schedule.policy": policy,
        "schedule.k": k,
        "run.rounds": ROUNDS,
        "run.seed": SEED,
    } | kc
    reference = fedlink.simulate(config, progress=False)
    system = fedlink.System(config)

    def train(message, context):
        t = message.content["config"]["server-round"] - 1
        update = system.train(message.content["arrays"]["theta"].numpy(), t, context.node_config["partition-id"])
        return update_reply(message, update)

    grid = FakeGrid()
    for device in range(DEVICES):
        app = UpdateAwareClientApp()
        app.train()(train)
        grid.add(77 * (DEVICES - device), app, partition_id=device)
    uplink = SimulatedUplink(devices=DEVICES, symbols=SYMBOLS, power=0.7, noise=1.3, seed=SEED, whole=whole)
    strategy = UpdateAwareStrategy(policy, k, uplink=uplink, kc=kc.get("schedule.kc"))
    start = ArrayRecord({"theta": Array(system.theta0())})
    result = strategy.start(grid, start, num_rounds=ROUNDS, timeout=30)

    sent = reference.transmissions
    expected = [sent[name].tolist() for name in ("round", "device", "q", "budget", "report", "weight", "symbols")]
    nodes = [(record.round, node) for record in strategy.records for node in record.scheduled]
    assert all(node.outcome in (Outcome.SENT, Outcome.SILENT) for _, node in nodes)
    found = zip(*((t, n.device, n.q, n.budget, n.report, n.weight, n.share) for t, n in nodes))
    assert [list(column) for column in found] == expected
    theta = result.arrays["theta"].numpy()
    assert theta.tobytes() == np.asarray(reference.theta).tobytes()
    assert fedlink.digest(theta) == reference.theta_digest != fedlink.digest(system.theta0())

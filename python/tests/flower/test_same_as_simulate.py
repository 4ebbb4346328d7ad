"""The same seed gives the same run on nodes as in `simulate`: who is scheduled, what is sent, the model to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from fake_grid import FakeGrid
from flwr.app import Array, ArrayRecord
from own_policies import OWN

import fedlink
from fedlink.flower import Outcome, SimulatedUplink, UpdateAwareClientApp, UpdateAwareStrategy, update_reply

ROUNDS, DEVICES, SYMBOLS, SEED = 6, 6, 600, 11


def check_that_nodes_compute_what_simulate_computes(k, whole=False, kc=None, **policies):
    """``policies``: the one of the configuration by name, or two equal objects, ``simulated`` and ``on_nodes``."""
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
        "schedule.policy": policies.get("name", "bc"),
        "schedule.k": k,
        "run.rounds": ROUNDS,
        "run.seed": SEED,
    } | ({} if kc is None else {"schedule.kc": kc})
    reference = fedlink.simulate(config, progress=False, policy=policies.get("simulated"))
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
    policy = policies.get("name") or policies["on_nodes"]
    strategy = UpdateAwareStrategy(policy, k, uplink=uplink, kc=kc)
    start = ArrayRecord({"theta": Array(system.theta0())})
    result = strategy.start(grid, start, num_rounds=ROUNDS, timeout=30)

    sent = reference.transmissions
    names = ("round", "device", "q", "budget", "report", "weight", "symbols")
    # The record lists nodes by device, whatever the order in which a policy names them.
    expected = sorted(zip(*(sent[name].tolist() for name in names)))
    nodes = [(record.round, node) for record in strategy.records for node in record.scheduled]
    assert all(node.outcome in (Outcome.SENT, Outcome.SILENT) for _, node in nodes)
    assert [(t, n.device, n.q, n.budget, n.report, n.weight, n.share) for t, n in nodes] == expected
    theta = result.arrays["theta"].numpy()
    assert theta.tobytes() == np.asarray(reference.theta).tobytes()
    assert fedlink.digest(theta) == reference.theta_digest != fedlink.digest(system.theta0())


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("policy, k", [("bc", 1), ("bc", 3), ("bn2", 2), ("bc-bn2", 2), ("bn2-c", 1), ("bn2-c", 3)])
def test_nodes_compute_what_simulate_computes(policy, k, whole):
    kc = 4 if policy == "bc-bn2" else None
    check_that_nodes_compute_what_simulate_computes(k, whole, kc, name=policy)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("own", OWN, ids=lambda own: own.__name__)
def test_nodes_compute_what_simulate_computes_by_a_policy_of_your_own(own, k):
    check_that_nodes_compute_what_simulate_computes(k, simulated=own(), on_nodes=own())

"""The same configuration gives the same run on nodes as in `simulate`: schedules, uploads, every record and
the model to the bit."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from custom_parts import CUSTOM, EveryThird
from fake_grid import FakeGrid
from flwr.app import Array, ArrayRecord, MetricRecord

import fedlink
from fedlink.flower import Outcome, SimulatedUplink, UpdateAwareClientApp, UpdateAwareStrategy, update_reply

ROUNDS, DEVICES, SYMBOLS, SEED = 6, 6, 600, 11


def check_that_nodes_compute_as_simulate(
    k, whole=False, policy=None, compressor=None, symbols=SYMBOLS, **keys
):
    """``policy`` and ``compressor``: names, or custom parts; ``keys``: further ones of the configuration."""
    named = {"schedule.policy": policy} if isinstance(policy, str) else {}
    parts = {"policy": None if named else policy, "compressor": compressor}
    learned = {
        "data.dataset": "digits",
        "data.samples_per_device": 60,
        "learn.model": "softmax",
        "learn.state": "reset",
        "run.evaluate_every": 1,
    } | {name.replace("__", "."): value for name, value in keys.items()}
    config = (
        learned
        | named
        | {
            "data.devices": DEVICES,
            "radio.symbols": symbols,
            "radio.power": 0.7,
            "radio.noise": 1.3,
            "radio.slots": "whole" if whole else "real",
            "schedule.k": k,
            "run.rounds": ROUNDS,
            "run.seed": SEED,
        }
    )
    reference = fedlink.simulate(config, progress=False, **parts)
    system = fedlink.System(config | {"schedule.policy": "bc", "compress.feedback": "off"})

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
        app = UpdateAwareClientApp(compressor=compressor)
        app.train()(train)
        grid.add(77 * (DEVICES - device), app, partition_id=device)
    uplink = SimulatedUplink(devices=DEVICES, symbols=symbols, power=0.7, noise=1.3, seed=SEED, whole=whole)
    strategy = UpdateAwareStrategy(policy, k, uplink=uplink, config=learned, compressor=compressor)
    start = ArrayRecord({"theta": Array(system.theta0())})
    result = strategy.start(grid, start, num_rounds=ROUNDS, timeout=30, evaluate_fn=evaluate)

    sent = reference.transmissions
    names = ("round", "device", "q", "budget", "report", "bit_weight", "symbols", "bits", "entries")
    # The record lists nodes by device, in whatever order a policy names them.
    expected = sorted(zip(*(sent[name].tolist() for name in names)))
    nodes = [(record.round, node) for record in strategy.records for node in record.scheduled]
    assert all(node.outcome in (Outcome.SENT, Outcome.SILENT) for _, node in nodes)
    found = [
        (t, n.device, n.q, n.budget, n.report, n.bit_weight, n.granted, n.bits, n.entries) for t, n in nodes
    ]
    assert found == expected
    theta = result.arrays["theta"].numpy()
    assert theta.tobytes() == np.asarray(reference.theta).tobytes()
    assert fedlink.digest(theta) == reference.theta_digest != fedlink.digest(system.theta0())
    assert strategy.server.digest == reference.digest


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    "policy, k", [("bc", 1), ("bc", 3), ("bn2", 2), ("bc-bn2", 2), ("bn2-c", 1), ("bn2-c", 3)]
)
def test_nodes_compute_the_same_as_simulate(policy, k, whole):
    keys = {"schedule__bc-bn2__kc": 4} if policy == "bc-bn2" else {}
    check_that_nodes_compute_as_simulate(k, whole, policy, **keys)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("policy", ["round-robin", "random"])
def test_policies_with_state_or_randomness_do_too(policy, k):
    check_that_nodes_compute_as_simulate(k, policy=policy)


@pytest.mark.parametrize("budget", ["formula", "wire"])
@pytest.mark.parametrize(
    "scheme", ["d-sgd", "random-sparse", "top-k", "stc", "rand-k", "ternary", "sign", "qsgd", "eden"]
)
def test_every_scheme_does_too(scheme, budget):
    # The coarsest update of QSGD takes some thousand bits.
    symbols = 5000 if scheme == "qsgd" else SYMBOLS
    check_that_nodes_compute_as_simulate(
        2, policy="bn2-c", symbols=symbols, compress__scheme=scheme, compress__budget=budget
    )


def registered(kind):
    """The names of all parts of a kind."""
    command = [sys.executable, "-m", "fedlink", "list", kind]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]


def test_the_registry_has_the_rules_of_error_feedback():
    assert {"off", "scheduled", "always", "decay", "momentum", "ef21"} <= set(registered("feedbacks"))
    assert "feedbacks" not in registered("feedbacks")


@pytest.mark.parametrize("feedback", registered("feedbacks"))
def test_every_rule_of_error_feedback_does_too(feedback):
    check_that_nodes_compute_as_simulate(
        2, policy="bn2", compress__feedback=feedback, compress__scheme="stc"
    )


@pytest.mark.parametrize("feedback", ["scheduled", "decay", "momentum", "ef21"])
def test_error_feedback_does_too_where_only_the_scheduled_train(feedback):
    check_that_nodes_compute_as_simulate(
        2, policy="round-robin", compress__feedback=feedback, compress__scheme="stc"
    )


@pytest.mark.parametrize("aggregate", ["by-size", "median", "trimmed-mean"])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum"])
def test_aggregation_rules_and_server_optimizers_do_too(aggregate, optimizer):
    check_that_nodes_compute_as_simulate(
        3,
        policy="random",
        learn__aggregate=aggregate,
        learn__server_optimizer=optimizer,
        learn__server_rate=0.5,
        defense__clip="median",
        defense__participation_cap=True,
    )


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("custom", CUSTOM, ids=lambda custom: custom.__name__)
def test_custom_policies_do_too(custom, k):
    check_that_nodes_compute_as_simulate(k, policy=custom)


def test_a_custom_compressor_does_too():
    check_that_nodes_compute_as_simulate(2, policy="bn2", compressor=EveryThird)

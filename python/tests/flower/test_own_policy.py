"""Policies of the user's own on nodes. That they schedule as in `simulate` is tested in test_same_as_simulate.py."""

from __future__ import annotations

import numpy as np
import pytest
from fake_grid import FakeGrid, content, model
from flwr.app import Message
from own_policies import OWN, ByQuantisedNorm, FairRoundRobin, LargestLast

import fedlink
from fedlink.flower import (
    MeasuredUplink,
    Outcome,
    SimulatedUplink,
    UpdateAwareClientApp,
    UpdateAwareStrategy,
    update_reply,
)
from fedlink.flower.protocol import COMPUTE

DEVICES, DIM, K = 6, 40, 2


def grid_of(**config) -> FakeGrid:
    grid = FakeGrid()
    for device in range(DEVICES):
        app = UpdateAwareClientApp()
        app.train()(lambda message, context: update_reply(message, np.full(DIM, 1.0 + context.node_id)))
        grid.add(device, app, partition_id=device, **config)
    return grid


def run(policy: fedlink.Policy, grid: FakeGrid, rounds: int = 1, **options) -> UpdateAwareStrategy:
    options.setdefault("uplink", SimulatedUplink(devices=DEVICES, symbols=10**5))
    strategy = UpdateAwareStrategy(policy, K, **options)
    strategy.start(grid, model(np.zeros(DIM, dtype=np.float32)), num_rounds=rounds, timeout=30)
    return strategy


@pytest.mark.parametrize("own", OWN, ids=lambda own: own.__name__)
def test_the_run_goes_on_when_a_device_is_gone_and_it_keeps_its_number(own):
    grid = grid_of()
    grid.between = lambda: grid.nodes.pop(1, None)
    strategy = run(own(), grid, rounds=6)
    later = [[node.device for node in record.having(Outcome.SENT)] for record in strategy.records[1:]]
    assert all(len(sent) == K and 1 not in sent for sent in later), later
    assert {5} < {device for sent in later for device in sent}


@pytest.mark.parametrize("own", OWN, ids=lambda own: own.__name__)
def test_measured_links_do_as_well(own):
    options = {"uplink": MeasuredUplink(deadline=1.0), "min_available_nodes": DEVICES}
    strategy = run(own(), grid_of(uplink_bps=1e4), rounds=3, **options)
    assert [len(record.having(Outcome.SENT)) for record in strategy.records] == [K] * 3


def test_a_candidate_that_fails_is_shown_as_a_dead_link_and_cannot_be_selected():
    seen = []

    class Watching(ByQuantisedNorm):
        def select(self, candidates, reports, channels, k):
            seen.append((candidates.tolist(), np.flatnonzero(channels.gains == 0).tolist(), channels.devices))
            return super().select(candidates, reports, channels, k)

    grid = grid_of()
    grid.nodes[3].on_reply[COMPUTE] = lambda reply: None
    run(Watching(), grid)
    assert seen == [([0, 1, 2, 4, 5], [3], DEVICES)]


def reports_ten_times(reply: Message) -> Message:
    reply.content = content({"report": 10 * reply.content["fedlink"]["report"]})
    return reply


@pytest.mark.parametrize(
    "own, outcome",
    [(LargestLast, Outcome.REJECTED), (ByQuantisedNorm, Outcome.REJECTED), (FairRoundRobin, Outcome.SENT)],
)
def test_norms_are_audited_and_nothing_is_not(own, outcome):
    grid = grid_of()
    for node in grid.nodes.values():
        node.on_reply[COMPUTE] = reports_ten_times
    (record,) = run(own(), grid).records
    assert {node.outcome for node in record.scheduled} == {outcome}


class Broken(Exception):
    pass


def broken(*_):
    raise Broken("on purpose")


@pytest.mark.parametrize("method", ["candidates", "report", "select"])
def test_an_exception_in_a_policy_comes_out_as_it_is(method):
    with pytest.raises(Broken, match="on purpose"):
        run(type("Policy", (ByQuantisedNorm,), {method: broken})(), grid_of())


RULES = [
    ("select", ([0, 0], [1, 1]), ValueError, "round 1: device 0 is scheduled twice"),
    ("select", ([0], [1]), ValueError, "1 devices and 1 weights, but K = 2"),
    ("select", ([0, 1], [1]), ValueError, "2 devices and 1 weights, but K = 2"),
    ("select", ([0, 99], [1, 1]), ValueError, "device 99 is scheduled but was no candidate"),
    ("select", ([0, -1], [1, 1]), ValueError, "-1"),
    ("select", ([0, 1], [1, -1]), ValueError, "weight"),
    ("select", ([0, 1], [1, float("nan")]), ValueError, "NaN"),
    ("select", ([0, 0.5], [1, 1]), TypeError, "policy.select: devices: must be"),
    ("select", None, TypeError, "a pair"),
    ("candidates", [0, 6], ValueError, "candidate 6 does not exist"),
    ("candidates", [0, 0, 1], ValueError, "candidate 0 is named twice"),
    ("candidates", [0], ValueError, "1 candidates, but K = 2"),
    ("candidates", "all", (TypeError, ValueError), "policy.candidates: must be"),
    ("report", "size", ValueError, "policy.report: must be"),
]


@pytest.mark.parametrize("method, answer, kind, reason", RULES)
def test_a_policy_that_breaks_the_rules_is_told_so_as_in_simulate(method, answer, kind, reason):
    policy = type("Policy", (ByQuantisedNorm,), {method: lambda self, *_: answer})
    with pytest.raises(kind, match=reason):
        run(policy(), grid_of())
    config = {"learn.model": "softmax", "data.devices": DEVICES, "schedule.k": K, "run.rounds": 1}
    with pytest.raises(kind):
        fedlink.simulate(config, progress=False, policy=policy())


@pytest.mark.parametrize("policy", [None, 3, LargestLast])
def test_what_is_no_policy_is_refused(policy):
    with pytest.raises(TypeError, match="a name or an object of a subclass of fedlink.Policy"):
        UpdateAwareStrategy(policy, K, uplink=SimulatedUplink(devices=DEVICES))


def test_kc_is_for_the_policy_itself_to_say():
    with pytest.raises(ValueError, match="kc"):
        run(LargestLast(), grid_of(), kc=4)

"""Custom policies on nodes. That they schedule as in `simulate` is tested in test_same_as_simulate.py."""

from __future__ import annotations

import numpy as np
import pytest
from custom_parts import CUSTOM, ByCompressedNorm, EveryThird, LargestLast, LongestWaiting
from fake_grid import FakeGrid, content, model
from flwr.app import Message

import fedlink
from fedlink.flower import (
    DeclaredUplink,
    NobodyTakesPart,
    Outcome,
    SimulatedUplink,
    UpdateAwareClientApp,
    UpdateAwareStrategy,
    update_reply,
)
from fedlink.flower.protocol import COMPUTE

DEVICES, DIM, K = 6, 40, 2


def grid_of(compressor=None, **config) -> FakeGrid:
    grid = FakeGrid()
    for device in range(DEVICES):
        app = UpdateAwareClientApp(compressor=compressor)
        app.train()(
            lambda message, context: update_reply(message, np.full(DIM, 1.0 + context.node_id), loss=0.5)
        )
        grid.add(device, app, partition_id=device, **config)
    return grid


def run(policy, grid: FakeGrid, rounds: int = 1, **options) -> UpdateAwareStrategy:
    options.setdefault("uplink", SimulatedUplink(devices=DEVICES, symbols=10**5))
    strategy = UpdateAwareStrategy(policy, K, **options)
    strategy.start(grid, model(np.zeros(DIM, dtype=np.float32)), num_rounds=rounds, timeout=0.5)
    return strategy


@pytest.mark.parametrize("custom", CUSTOM, ids=lambda custom: custom.__name__)
def test_the_run_continues_when_a_device_is_gone_and_it_keeps_its_number(custom):
    grid = grid_of()
    grid.between = lambda: grid.nodes.pop(1, None)
    strategy = run(custom, grid, rounds=12)
    later = [[node.device for node in record.having(Outcome.SENT)] for record in strategy.records[1:]]
    assert all(len(sent) == K and 1 not in sent for sent in later), later
    assert {device for sent in later for device in sent} & {5}


@pytest.mark.parametrize("custom", CUSTOM, ids=lambda custom: custom.__name__)
def test_declared_links_do_as_well(custom):
    strategy = run(
        custom, grid_of(uplink_bps=1e4), rounds=3, uplink=DeclaredUplink(devices=DEVICES, deadline=1.0)
    )
    assert [len(record.having(Outcome.SENT)) for record in strategy.records] == [K] * 3


def test_its_name_is_that_of_its_class():
    strategy = run(LargestLast, grid_of())
    assert strategy.policy == strategy.config["schedule"]["policy"] == "largest-last"
    assert "largest-last" in strategy.config["custom"]


def test_a_candidate_that_fails_is_shown_as_a_zero_gain_link_and_cannot_be_selected():
    seen = []

    class Watching(ByCompressedNorm):
        def select(self, view, reports):
            seen.append((reports.devices.tolist(), np.flatnonzero(view.gains == 0).tolist(), view.devices))
            assert 3 not in view.eligible
            return super().select(view, reports)

    grid = grid_of()
    grid.nodes[3].on_reply[COMPUTE] = lambda reply: None
    run(Watching, grid)
    assert seen == [([0, 1, 2, 4, 5], [3], DEVICES)]


def reports_ten_times(reply: Message) -> Message:
    answers = [10 * answer for answer in reply.content["fedlink"].get("answers", [])]
    reply.content = content({"answers": answers} if answers else {})
    return reply


@pytest.mark.parametrize(
    "custom, outcome",
    [(LargestLast, Outcome.REJECTED), (ByCompressedNorm, Outcome.REJECTED), (LongestWaiting, Outcome.SENT)],
)
def test_norms_are_audited_and_nothing_is_not(custom, outcome):
    grid = grid_of()
    for node in grid.nodes.values():
        node.on_reply[COMPUTE] = reports_ten_times
    (record,) = run(custom, grid).records
    assert {node.outcome for node in record.scheduled} == {outcome}


class Broken(Exception):
    pass


def broken(*_):
    raise Broken("on purpose")


@pytest.mark.parametrize("method", ["candidates", "asks", "select"])
def test_an_exception_in_a_policy_is_raised_unchanged(method):
    with pytest.raises(Broken, match="on purpose"):
        run(type("Policy", (ByCompressedNorm,), {method: broken}), grid_of())


RULES = [
    ("select", ([0, 0], [1, 1]), ValueError, "round 1: device 0 is scheduled twice"),
    ("select", ([0, 1, 2], [1, 1, 1]), ValueError, "3 devices, but K = 2"),
    ("select", ([0, 1], [1]), (TypeError, ValueError), "1 bit weights for 2 devices"),
    ("select", ([0, 99], [1, 1]), ValueError, "device 99 is scheduled but was no candidate"),
    ("select", ([0, -1], [1, 1]), ValueError, "-1"),
    ("select", ([0, 1], [1, -1]), ValueError, "weight"),
    ("select", ([0, 1], [1, float("nan")]), ValueError, "NaN"),
    ("select", ([0, 0.5], [1, 1]), TypeError, "select: devices: must be"),
    ("select", None, TypeError, "must return"),
    ("candidates", [0, 6], ValueError, "candidate 6 does not exist"),
    ("candidates", [0, 0, 1], ValueError, "candidate 0 is named twice"),
    ("candidates", "all", (TypeError, ValueError), "candidates: must"),
    ("asks", ["size"], ValueError, "asks: must return"),
]


@pytest.mark.parametrize("method, answer, kind, reason", RULES)
def test_a_policy_that_breaks_the_rules_is_the_same_error_as_in_simulate(method, answer, kind, reason):
    policy = type("Policy", (ByCompressedNorm,), {method: lambda self, *_: answer})
    with pytest.raises(kind, match=reason):
        run(policy, grid_of())
    config = {"learn.model": "softmax", "data.devices": DEVICES, "schedule.k": K, "run.rounds": 1}
    with pytest.raises(kind):
        fedlink.simulate(config, progress=False, policy=policy)


def test_a_policy_may_schedule_fewer_than_k():
    policy = type("Policy", (ByCompressedNorm,), {"select": lambda self, view, reports: ([4], [1.0])})
    (record,) = run(policy, grid_of()).records
    assert [node.device for node in record.having(Outcome.SENT)] == [4]
    nobody = type("Policy", (ByCompressedNorm,), {"select": lambda self, view, reports: ([], [])})
    strategy = run(nobody, grid_of(), rounds=2)
    assert [record.scheduled for record in strategy.records] == [[], []] and strategy.server.rounds_done == 2


@pytest.mark.parametrize("policy", [3, 0.5, object()])
def test_an_object_that_is_no_policy_is_refused(policy):
    with pytest.raises(TypeError, match="policy"):
        UpdateAwareStrategy(policy, K, uplink=SimulatedUplink(devices=DEVICES))


def test_a_custom_policy_that_was_stopped_continues_with_its_state(tmp_path):
    scheduled = []
    for rounds, options in [(6, {}), (6, {"records": tmp_path}), (6, {"records": tmp_path, "resume": True})]:
        grid = grid_of()
        strategy = UpdateAwareStrategy(
            LongestWaiting, K, uplink=SimulatedUplink(devices=DEVICES, symbols=10**5), **options
        )

        def stop(number, arrays):
            if options and "resume" not in options and number == 3:
                raise Broken

        start = model(np.zeros(DIM, dtype=np.float32))
        try:
            strategy.start(grid, start, num_rounds=rounds, timeout=0.5, evaluate_fn=stop)
        except Broken:
            pass
        scheduled.append([[node.device for node in record.scheduled] for record in strategy.records])
    whole, first, second = scheduled
    assert len(first) == 3 and first + second == whole


def test_a_custom_compressor_is_needed_on_both_sides_and_named_where_it_is_missing():
    strategy = run("bn2", grid_of(EveryThird), rounds=2, compressor=EveryThird)
    assert strategy.config["compress"]["scheme"] == "every-third"
    sent = [node for record in strategy.records for node in record.having(Outcome.SENT)]
    assert len(sent) == 2 * K and all(node.bits == 40.0 * node.entries for node in sent)
    with pytest.raises(
        NobodyTakesPart, match=r"'every-third' is not fedlink's.*UpdateAwareClientApp\(compressor="
    ):
        run("bn2", grid_of(), compressor=EveryThird)


@pytest.mark.parametrize(
    "options, key",
    [({"audit": True}, "defense.audit"), ({"config": {"compress.budget": "wire"}}, "compress.budget")],
)
def test_options_that_a_custom_compressor_lacks_are_refused(options, key):
    with pytest.raises(ValueError, match=key):
        UpdateAwareStrategy(
            "bn2", K, uplink=SimulatedUplink(devices=DEVICES), compressor=EveryThird, **options
        )

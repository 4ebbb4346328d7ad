"""Nodes that vanish, fail, lie, send garbage or forget: the round goes on with who is left, and the record says so."""

from __future__ import annotations

import numpy as np
import pytest
from fake_grid import FakeGrid, content, model
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict

from fedlink.flower import MeasuredUplink, Outcome, SimulatedUplink, UpdateAwareClientApp, UpdateAwareStrategy
from fedlink.flower import protocol, update_reply
from fedlink.flower.protocol import COMPUTE, HELLO, KEY, UPLOAD

DEVICES, DIM = 5, 40


def update(device: int) -> np.ndarray:
    """A few large entries in places of its own; the higher the device, the larger."""
    values = np.zeros(DIM, dtype=np.float32)
    values[device * 8 : device * 8 + 4] = 1.0 + device
    return values


def grid_of(devices: int = DEVICES, **config) -> FakeGrid:
    grid = FakeGrid()
    for device in range(devices):
        app = UpdateAwareClientApp()
        app.train()(lambda message, context: update_reply(message, update(context.node_config["partition-id"])))
        grid.add(device + 100, app, partition_id=device, **config)
    return grid


def run(grid: FakeGrid, rounds: int = 1, k: int = 2, policy: str = "bn2", **options):
    options.setdefault("uplink", SimulatedUplink(devices=DEVICES, symbols=10**6))
    options.setdefault("min_available_nodes", 1)
    strategy = UpdateAwareStrategy(policy, k, **options)
    start = model(np.zeros(DIM, dtype=np.float32))
    result = strategy.start(grid, start, num_rounds=rounds, timeout=30)
    arrays = result.arrays if len(result.arrays) else start
    return strategy, arrays["layer0"].numpy(), result


def mean_of(*devices: int) -> np.ndarray:
    return sum(update(device) for device in devices) / np.float32(len(devices))


def outcomes(strategy, number: int = 1) -> dict[int, Outcome]:
    return {node.node_id - 100: node.outcome for node in strategy.records[number - 1].nodes}


def test_the_largest_updates_arrive_when_all_goes_well():
    strategy, theta, _ = run(grid_of())
    assert (theta == mean_of(3, 4)).all()
    sent, waited = Outcome.SENT, Outcome.NOT_SCHEDULED
    assert outcomes(strategy) == {0: waited, 1: waited, 2: waited, 3: sent, 4: sent}


def test_a_node_that_vanishes_between_the_phases_is_left_out():
    grid = grid_of()
    grid.between = lambda: grid.nodes.pop(104, None)
    strategy, theta, result = run(grid, rounds=2)
    assert outcomes(strategy)[4] is Outcome.ABSENT and outcomes(strategy)[3] is Outcome.SENT
    assert result.train_metrics_clientapp[1]["absent-devices"] == [4]
    assert result.train_metrics_clientapp[1]["problems"] == 1
    # In the next round it is not there any more, and the next best takes its place.
    assert 4 not in outcomes(strategy, 2)
    assert (theta == update(3) + mean_of(2, 3)).all()


@pytest.mark.parametrize("kind, phase", [(HELLO, "hello"), (COMPUTE, "compute"), (UPLOAD, "upload")])
def test_a_node_that_does_not_answer_in_time_is_left_out(kind, phase):
    grid = grid_of()
    grid.nodes[104].on_reply[kind] = lambda reply: None
    strategy, theta, _ = run(grid)
    node = next(node for node in strategy.records[0].nodes if node.node_id == 104)
    assert (node.outcome, node.phase, node.reason) == (Outcome.ABSENT, phase, "no answer in time")
    assert (theta == (update(3) if kind == UPLOAD else mean_of(2, 3))).all()


def test_an_app_that_raises_an_error_is_told_by_its_words():
    grid = grid_of()
    app = UpdateAwareClientApp()

    @app.train()
    def train(message, context):
        raise RuntimeError("the disk is full")

    grid.nodes[104].app = app
    strategy, theta, _ = run(grid)
    node = strategy.records[0].nodes[-1]
    assert node.outcome is Outcome.FAILED and "the disk is full" in node.reason
    assert (theta == mean_of(2, 3)).all()


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_training_that_diverged_is_not_reported_as_a_large_update(number):
    grid = grid_of()
    app = UpdateAwareClientApp()
    app.train()(lambda message, context: update_reply(message, np.full(DIM, number)))
    grid.nodes[104].app = app
    strategy, theta, _ = run(grid)
    node = strategy.records[0].nodes[-1]
    assert node.outcome is Outcome.FAILED and "diverged" in node.reason
    assert (theta == mean_of(2, 3)).all()


def test_a_node_that_was_restarted_has_lost_its_update_and_says_so():
    grid = grid_of()
    grid.between = lambda: setattr(grid.nodes[104].context, "state", RecordDict())
    strategy, theta, result = run(grid)
    assert outcomes(strategy)[4] is Outcome.LOST_UPDATE
    assert result.train_metrics_clientapp[1]["lost-update-devices"] == [4]
    assert (theta == update(3)).all()


def test_an_update_of_another_round_is_not_sent():
    grid = grid_of()

    def forget() -> None:
        grid.nodes[104].context.state["fedlink-round"] = ConfigRecord({"round": 77})

    grid.between = forget
    strategy, theta, _ = run(grid)
    assert outcomes(strategy)[4] is Outcome.LOST_UPDATE
    assert "of round 77" in next(node for node in strategy.records[0].nodes if node.device == 4).reason
    assert (theta == update(3)).all()


def test_a_restarted_node_with_another_number_takes_the_place_of_its_device():
    grid = grid_of()

    def restart() -> None:
        if 999 not in grid.nodes:
            old = grid.nodes[104]
            grid.add(999, old.app, partition_id=4)
            # The old number is still listed for a while; nobody answers under it.
            old.on_reply = {kind: lambda reply: None for kind in (HELLO, COMPUTE, UPLOAD)}

    grid.between = restart
    strategy, theta, _ = run(grid, rounds=2)
    assert outcomes(strategy)[4] is Outcome.ABSENT
    second = strategy.records[1]
    assert [(node.node_id, node.device) for node in second.having(Outcome.SENT)] == [(103, 3), (999, 4)]
    assert 104 not in [node.node_id for node in second.nodes]
    assert (theta == update(3) + mean_of(3, 4)).all()


def garbage(values: dict) -> object:
    return lambda reply: Message(content(values), reply_to=_request(reply))


def _request(reply: Message) -> Message:
    """The message that a reply answers, as far as a reply needs it."""
    asked = Message(RecordDict(), reply.metadata.src_node_id, reply.metadata.message_type)
    asked.metadata.__dict__["_message_id"] = reply.metadata.reply_to_message_id
    return asked


def replaced(record: RecordDict):
    return lambda reply: Message(record, reply_to=_request(reply))


@pytest.mark.parametrize(
    "answer",
    [
        RecordDict(),
        RecordDict({KEY: ArrayRecord([np.zeros(3)])}),
        content({}),
        content({"report": float("nan")}),
        content({"report": float("inf")}),
        content({"report": -1.0}),
        content({"report": [1.0, 2.0]}),
        RecordDict({KEY: ConfigRecord({"report": "large"})}),
        RecordDict({KEY: ConfigRecord({"report": True})}),
    ],
)
def test_a_report_that_is_no_number_is_rejected(answer):
    grid = grid_of()
    grid.nodes[104].on_reply[COMPUTE] = replaced(answer)
    strategy, theta, result = run(grid)
    assert outcomes(strategy)[4] is Outcome.REJECTED
    assert result.train_metrics_clientapp[1]["rejected-devices"] == [4]
    assert (theta == mean_of(2, 3)).all()


@pytest.mark.parametrize(
    "answer",
    [
        RecordDict(),
        content({"payload": 3.0}),
        RecordDict({KEY: ConfigRecord({"payload": "text"})}),
        RecordDict({KEY: ConfigRecord({"payload": b"\0"})}),
        RecordDict({KEY: ConfigRecord({"payload": b"\xff" * 100_000})}),
        RecordDict({KEY: ConfigRecord({"payload": bytes(range(40))})}),
    ],
)
def test_a_payload_that_cannot_be_read_is_rejected(answer):
    grid = grid_of()
    grid.nodes[104].on_reply[UPLOAD] = replaced(answer)
    strategy, theta, _ = run(grid)
    assert outcomes(strategy)[4] is Outcome.REJECTED
    assert (theta == update(3)).all()


@pytest.mark.parametrize("policy", ["bn2", "bn2-c"])
def test_whoever_reports_far_more_than_it_has_is_found_out(policy):
    grid = grid_of()
    grid.nodes[100].on_reply[COMPUTE] = garbage({"report": 1e4})
    strategy, theta, _ = run(grid, policy=policy)
    liar = strategy.records[0].nodes[0]
    assert liar.outcome is Outcome.REJECTED and "reported 10000" in liar.reason
    assert (theta == update(4)).all()


def test_whoever_sends_more_than_it_reported_is_found_out():
    grid = grid_of()
    grid.nodes[104].on_reply[COMPUTE] = garbage({"report": 9.0})  # it is 10
    strategy, theta, _ = run(grid)
    assert outcomes(strategy)[4] is Outcome.REJECTED
    assert (theta == update(3)).all()


def test_nobody_can_answer_for_another():
    grid = grid_of()

    def forged(reply: Message) -> Message:
        reply.metadata.__dict__["_src_node_id"] = 103
        return reply

    grid.nodes[104].on_reply[COMPUTE] = forged
    strategy, theta, _ = run(grid)
    assert outcomes(strategy)[4] is Outcome.REJECTED
    assert (theta == mean_of(2, 3)).all()


def test_a_device_number_that_does_not_exist_is_rejected():
    grid = grid_of()
    grid.nodes[104].context.node_config["partition-id"] = 5
    strategy, theta, _ = run(grid)
    node = strategy.records[0].nodes[0]
    assert node.outcome is Outcome.REJECTED and node.phase == "hello" and "from -1 to 4" in node.reason
    assert (theta == mean_of(2, 3)).all()


def test_a_node_that_cannot_tell_its_rate_is_told_what_to_set():
    strategy, theta, _ = run(grid_of(), uplink=MeasuredUplink(deadline=1.0))
    assert {node.outcome for node in strategy.records[0].nodes} == {Outcome.FAILED}
    assert "uplink-bps" in strategy.records[0].nodes[0].reason
    assert not theta.any()


@pytest.mark.parametrize("kind", [HELLO, COMPUTE, UPLOAD])
def test_if_nobody_is_left_the_model_stays_and_the_run_goes_on(kind):
    grid = grid_of()
    for node in grid.nodes.values():
        node.on_reply[kind] = lambda reply: None
    strategy, theta, result = run(grid, rounds=2)
    assert not theta.any()
    assert len(strategy.records) == 2 and result.train_metrics_clientapp[2]["sent"] == 0


def test_a_stock_app_without_the_helper_is_named():
    from flwr.clientapp import ClientApp

    grid = grid_of()
    grid.nodes[104].app = ClientApp()
    strategy, theta, _ = run(grid)
    assert strategy.records[0].nodes[0].outcome is Outcome.FAILED
    assert protocol.HELLO in strategy.records[0].nodes[0].reason
    assert (theta == mean_of(2, 3)).all()

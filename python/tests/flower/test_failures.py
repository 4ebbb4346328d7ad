"""Nodes that vanish, fail, report falsely, send garbage or lose their state: the round continues with the
remaining nodes, and the record has the reason."""

from __future__ import annotations

import time

import numpy as np
import pytest
from fake_grid import FakeGrid, content, model
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg

import fedlink
from fedlink.flower import (
    DeclaredUplink,
    NobodyTakesPart,
    Outcome,
    SimulatedUplink,
    UpdateAwareClientApp,
    UpdateAwareStrategy,
    grid as watched,
    protocol,
    update_reply,
)
from fedlink.flower.protocol import COMPUTE, HELLO, KEY, UPLOAD

DEVICES, DIM = 5, 40

#: Seconds until a reply counts as missing; nodes in this process answer at once.
TIMEOUT = 0.2


def update(device: int) -> np.ndarray:
    """A few large entries at indices of its own; the higher the device, the larger."""
    values = np.zeros(DIM, dtype=np.float32)
    values[device * 8 : device * 8 + 4] = 1.0 + device
    return values


def grid_of(devices: int = DEVICES, **config) -> FakeGrid:
    grid = FakeGrid()
    for device in range(devices):
        app = UpdateAwareClientApp()
        app.train()(
            lambda message, context: update_reply(message, update(context.node_config["partition-id"]))
        )
        grid.add(device + 100, app, partition_id=device, **config)
    return grid


def run(grid: FakeGrid, rounds: int = 1, k: int = 2, policy: str = "bn2", **options):
    options.setdefault("uplink", SimulatedUplink(devices=DEVICES, symbols=10**6))
    options.setdefault("min_available_nodes", 1)
    strategy = UpdateAwareStrategy(policy, k, **options)
    start = model(np.zeros(DIM, dtype=np.float32))
    result = strategy.start(grid, start, num_rounds=rounds, timeout=TIMEOUT)
    return strategy, result.arrays["layer0"].numpy(), result


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
    strategy, theta, result = run(grid, rounds=2, substitute=False)
    assert outcomes(strategy)[4] is Outcome.ABSENT and outcomes(strategy)[3] is Outcome.SENT
    assert result.train_metrics_clientapp[1]["absent-devices"] == [4]
    assert result.train_metrics_clientapp[1]["problems"] == 1
    # In the next round it is not there any more, and the next best is scheduled.
    assert 4 not in outcomes(strategy, 2)
    assert (theta == update(3) + mean_of(2, 3)).all()


def test_the_share_of_a_node_that_fails_before_it_sends_goes_to_one_that_has_trained():
    grid = grid_of()
    grid.between = lambda: grid.nodes.pop(104, None)
    strategy, theta, _ = run(grid)
    (record,) = strategy.records
    failed, other = record.nodes[4], record.nodes[2]
    assert failed.outcome is Outcome.ABSENT and failed.budget is None and failed.phase == "upload"
    assert other.outcome is Outcome.SENT and other.substitute_for == 4 and other.phase == "upload"
    # The same symbols over its own link.
    gains = strategy.server.links(0).gains
    granted = [node.granted for node in record.scheduled]
    assert [node.device for node in record.scheduled] == [2, 3] and sum(granted) == pytest.approx(
        10**6, rel=1e-9
    )
    assert other.budget == pytest.approx(other.granted * np.log2(1 + gains[2] * DEVICES / 2), rel=1e-9)
    assert (theta == mean_of(2, 3)).all()
    assert sorted(strategy.server.transmissions()["device"].tolist()) == [2, 3]


def test_there_is_no_substitute_where_only_the_scheduled_train_or_the_others_fail_too():
    def without(*nodes):
        def gone() -> None:
            for node in nodes:
                grid.nodes.pop(node, None)

        return gone

    grid = grid_of()
    grid.between = without(100, 101, 102, 103, 104)
    strategy, theta, _ = run(grid, policy="bc")
    (record,) = strategy.records
    assert not theta.any() and len(record.scheduled) == 2
    assert {node.outcome for node in record.scheduled} == {Outcome.ABSENT}
    grid = grid_of()
    grid.between = without(102, 104)
    strategy, theta, _ = run(grid)
    assert outcomes(strategy)[2] is Outcome.ABSENT and outcomes(strategy)[4] is Outcome.ABSENT
    assert (theta == update(3)).all()


@pytest.mark.parametrize("kind, phase", [(HELLO, "hello"), (COMPUTE, "compute"), (UPLOAD, "upload")])
def test_a_node_that_does_not_answer_in_time_is_left_out(kind, phase):
    grid = grid_of()
    grid.nodes[104].on_reply[kind] = lambda reply: None
    strategy, theta, _ = run(grid)
    node = next(node for node in strategy.records[0].nodes if node.node_id == 104)
    assert (node.outcome, node.phase, node.reason) == (Outcome.ABSENT, phase, "no answer in time")
    # In the last phase the next best sends in its place.
    assert (theta == mean_of(2, 3)).all()


def test_the_log_names_the_nodes_that_the_server_waits_for(monkeypatch):
    lines = []
    monkeypatch.setattr(watched, "REMIND_EVERY", 0.1)
    monkeypatch.setattr(watched, "log", lambda level, text, *values: lines.append(text % values))
    grid = grid_of()
    grid.nodes[103].on_reply[COMPUTE] = lambda reply: None
    run(grid, compute_timeout=0.5)
    assert "waiting for device 3 (0 s)" in lines


def test_every_phase_has_its_own_time_limit():
    grid = grid_of()
    app = UpdateAwareClientApp()
    app.train()(lambda message, context: update_reply(message, update(4)))
    app.evaluate()(
        lambda message, context: Message(
            RecordDict({"metrics": MetricRecord({"num-examples": 1})}), reply_to=message
        )
    )
    grid.nodes[104].app = app
    grid.nodes[104].on_reply = {COMPUTE: lambda reply: None, "evaluate": lambda reply: None}
    strategy = UpdateAwareStrategy(
        "bn2",
        2,
        uplink=SimulatedUplink(devices=DEVICES, symbols=10**6),
        compute_timeout=0.1,
        evaluate_timeout=0.1,
    )
    begun = time.monotonic()
    strategy.start(grid, model(np.zeros(DIM, dtype=np.float32)), num_rounds=1, timeout=600)
    assert time.monotonic() - begun < 60
    assert outcomes(strategy)[4] is Outcome.ABSENT


def test_an_app_that_raises_an_error_is_reported_with_its_message():
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


def test_a_node_that_was_restarted_has_lost_its_update_and_reports_it():
    grid = grid_of()
    grid.between = lambda: setattr(grid.nodes[104].context, "state", RecordDict())
    strategy, theta, result = run(grid)
    assert outcomes(strategy)[4] is Outcome.LOST_UPDATE
    assert result.train_metrics_clientapp[1]["lost-update-devices"] == [4]
    assert (theta == mean_of(2, 3)).all()


def test_an_update_of_another_round_is_not_sent():
    grid = grid_of()

    def restart() -> None:
        other = fedlink.Device({})
        other.report([], np.ones(3, np.float32), 0.5, 1.0, 76, 4)
        grid.nodes[104].context.state["fedlink-device"] = ConfigRecord({"state": other.save()})

    grid.between = restart
    strategy, theta, _ = run(grid)
    assert outcomes(strategy)[4] is Outcome.LOST_UPDATE
    assert "of round 77" in next(node for node in strategy.records[0].nodes if node.device == 4).reason
    assert (theta == mean_of(2, 3)).all()


def test_a_restarted_node_with_another_number_becomes_its_device():
    grid = grid_of()

    def restart() -> None:
        if 999 not in grid.nodes:
            old = grid.nodes[104]
            grid.add(999, old.app, partition_id=4)
            # The old number is still listed for a while; no node answers under it.
            old.on_reply = {kind: lambda reply: None for kind in (HELLO, COMPUTE, UPLOAD)}

    grid.between = restart
    strategy, theta, _ = run(grid, rounds=2, substitute=False)
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
        content({"answers": [float("nan")]}),
        content({"answers": [float("inf")]}),
        content({"answers": [1e39]}),
        content({"answers": [-1.0]}),
        content({"answers": [1.0, 2.0]}),
        content({"answers": 1.0}),
        content({"answers": [1.0], "loss": float("nan")}),
        content({"answers": [1.0], "examples": 0}),
        RecordDict({KEY: ConfigRecord({"answers": "large"})}),
        RecordDict({KEY: ConfigRecord({"answers": [True]})}),
    ],
)
def test_a_report_that_is_no_number_is_rejected(answer):
    grid = grid_of()
    grid.nodes[104].on_reply[COMPUTE] = replaced(answer)
    strategy, theta, result = run(grid)
    assert outcomes(strategy)[4] is Outcome.REJECTED
    assert result.train_metrics_clientapp[1]["rejected-devices"] == [4]
    assert (theta == mean_of(2, 3)).all()


def payload(content: bytes, **claims) -> RecordDict:
    return RecordDict(
        {KEY: ConfigRecord({"payload": content, "level": 20, "bits": 60.0, "entries": 4} | claims)}
    )


@pytest.mark.parametrize(
    "answer",
    [
        RecordDict(),
        content({"payload": 3.0}),
        RecordDict({KEY: ConfigRecord({"payload": "text"})}),
        RecordDict({KEY: ConfigRecord({"payload": b"good for nothing"})}),
        payload(b""),
        payload(b"\0"),
        payload(b"\xff" * 100_000),
        payload(bytes(range(40))),
        payload(b"\1\2", bits=float("nan")),
        payload(b"\1\2", bits=1e30),
        payload(b"\1\2", level=-1),
        payload(b"\1\2", entries="many"),
    ],
)
def test_a_payload_that_cannot_be_read_is_rejected(answer):
    grid = grid_of()
    grid.nodes[104].on_reply[UPLOAD] = replaced(answer)
    strategy, theta, _ = run(grid)
    rejected = strategy.records[0].nodes[4]
    assert rejected.outcome is Outcome.REJECTED and rejected.reason
    # It counts and adds nothing, as in `simulate`.
    assert (theta == update(3) / 2).all()
    assert (
        dict(zip(*(strategy.server.transmissions()[name] for name in ("device", "arrival"))))[4]
        == "undecodable"
    )


@pytest.mark.parametrize("policy", ["bn2", "bn2-c"])
def test_a_node_that_reports_far_more_than_it_has_is_flagged(policy):
    grid = grid_of()
    grid.nodes[100].on_reply[COMPUTE] = garbage({"answers": [1e4]})
    strategy, theta, _ = run(grid, policy=policy)
    false_report = strategy.records[0].nodes[0]
    assert false_report.outcome is Outcome.REJECTED and "report of 10000" in false_report.reason
    assert (theta == update(4) / 2).all()


def test_a_node_that_sends_more_than_it_reported_is_flagged():
    grid = grid_of()
    grid.nodes[104].on_reply[COMPUTE] = garbage({"answers": [9.0]})  # it is 10
    strategy, theta, _ = run(grid)
    assert outcomes(strategy)[4] is Outcome.REJECTED
    assert (theta == update(3) / 2).all()


def test_a_node_that_is_flagged_repeatedly_is_excluded():
    grid = grid_of()
    grid.nodes[100].on_reply[COMPUTE] = garbage({"answers": [1e4]})
    strategy, theta, _ = run(grid, rounds=4, config={"defense.strikes": 2})
    assert [outcomes(strategy, t).get(0) for t in (1, 2, 3, 4)] == [
        Outcome.REJECTED,
        Outcome.REJECTED,
        None,
        None,
    ]
    assert strategy.server.excluded == [0]
    assert (theta == update(4) + 2 * mean_of(3, 4)).all()


def test_without_the_audit_a_report_is_believed():
    grid = grid_of()
    grid.nodes[100].on_reply[COMPUTE] = garbage({"answers": [1e4]})
    strategy, theta, _ = run(grid, audit=False)
    assert outcomes(strategy)[0] is Outcome.SENT
    assert (theta == mean_of(0, 4)).all()


def test_no_node_can_answer_for_another():
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


def test_a_node_without_a_rate_logs_the_key_to_set_and_the_run_stops():
    with pytest.raises(NobodyTakesPart, match="uplink-bps"):
        run(grid_of(), uplink=DeclaredUplink(devices=DEVICES, deadline=1.0))


@pytest.mark.parametrize("kind", [COMPUTE, UPLOAD])
def test_if_no_node_is_left_the_model_stays_and_the_run_continues(kind):
    grid = grid_of()
    for node in grid.nodes.values():
        node.on_reply[kind] = lambda reply: None
    strategy, theta, result = run(grid, rounds=2)
    assert not theta.any()
    assert len(strategy.records) == 2 and result.train_metrics_clientapp[2]["sent"] == 0
    assert strategy.server.rounds_done == 2


def test_if_no_node_can_be_met_the_run_stops():
    grid = grid_of()
    for node in grid.nodes.values():
        node.on_reply[HELLO] = lambda reply: None
    with pytest.raises(NobodyTakesPart, match="node 100: no answer in time"):
        run(grid)


def test_if_every_node_fails_the_run_stops_with_their_words():
    grid = grid_of()
    app = UpdateAwareClientApp()

    @app.train()
    def train(message, context):
        raise RuntimeError("the disk is full")

    for node in grid.nodes.values():
        node.app = app
    with pytest.raises(NobodyTakesPart, match="device 3: .*the disk is full"):
        run(grid, rounds=5)


def test_if_all_nodes_go_away_the_run_stops():
    grid = grid_of()
    grid.between = grid.nodes.clear
    with pytest.raises(NobodyTakesPart, match="all nodes are gone"):
        run(grid, rounds=5)


def test_a_stock_app_is_named_as_the_other_half_of_the_migration():
    grid = grid_of()
    grid.nodes[104].app = ClientApp()
    strategy, theta, _ = run(grid)
    node = strategy.records[0].nodes[0]
    assert node.outcome is Outcome.FAILED
    assert "still stock Flower: use fedlink.flower.UpdateAwareClientApp" in node.reason
    assert (theta == mean_of(2, 3)).all()
    for node in grid.nodes.values():
        node.app = ClientApp()
    with pytest.raises(NobodyTakesPart, match="still stock Flower: use fedlink.flower.UpdateAwareClientApp"):
        run(grid)


def test_a_stock_server_is_named_as_the_other_half_of_the_migration():
    grid = grid_of()
    reasons = []
    for node in grid.nodes.values():
        node.on_reply["train"] = lambda reply: reasons.append(reply.error.reason) or reply
    FedAvg(fraction_evaluate=0.0).start(
        grid, model(np.zeros(DIM, dtype=np.float32)), num_rounds=1, timeout=TIMEOUT
    )
    assert len(reasons) == DEVICES
    assert all("still stock Flower: use fedlink.flower.UpdateAwareStrategy" in reason for reason in reasons)


@pytest.mark.parametrize("old", ["the node's", "the server's"])
def test_messages_of_another_version_are_one_clear_error(old, monkeypatch):
    grid = grid_of()
    if old == "the node's":
        for node in grid.nodes.values():
            node.on_reply[HELLO] = garbage({"device": 0})
    else:
        made = protocol.request
        monkeypatch.setattr(
            protocol, "request", lambda **values: ConfigRecord({**made(**values), "version": 7})
        )
    version = 1 if old == "the node's" else 7
    with pytest.raises(
        NobodyTakesPart, match=f"uses version {version} of fedlink's messages.* version 2: install the same"
    ):
        run(grid)


@pytest.mark.parametrize("kind", [COMPUTE, UPLOAD])
def test_every_request_has_the_version(kind):
    node = grid_of().nodes[100]
    request = Message(RecordDict({KEY: ConfigRecord({"round": 1, "version": 1})}), 100, f"train.{kind}")
    with pytest.raises(protocol.ProtocolError, match="uses version 1"):
        node.app(request, node.context)


def test_a_node_that_dies_does_not_stop_evaluation_by_the_others():
    def evaluate(message, context):
        device = context.node_config["partition-id"]
        metrics = MetricRecord({"num-examples": 1 + device, "accuracy": float(device)})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    grid = grid_of()
    for node in grid.nodes.values():
        node.app.evaluate()(evaluate)
    # It dies in the second round: before that it is one of all that are waited for.
    rounds = []
    grid.between = lambda: rounds.append(1) or (len(rounds) == 2 and grid.nodes.pop(104))
    strategy, _, result = run(grid, rounds=3, min_available_nodes=DEVICES, substitute=False)
    assert [len(record.having(Outcome.SENT)) for record in strategy.records] == [2, 1, 2]
    accuracies = [metrics["accuracy"] for metrics in result.evaluate_metrics_clientapp.values()]
    # Weighted by examples, as in FedAvg.
    everybody, left = (sum(m * (m + 1) for m in range(n)) / sum(range(1, n + 1)) for n in (5, 4))
    assert accuracies == pytest.approx([everybody, left, left])

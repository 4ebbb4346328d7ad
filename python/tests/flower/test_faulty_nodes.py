"""Nodes with faulty metrics, texts and timing: each costs a round at most its limit, and the log names it."""

from __future__ import annotations

import csv
import time

import numpy as np
import pytest
from fake_grid import FakeGrid, model
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

from fedlink.flower import (
    Diverged,
    NobodyTakesPart,
    Outcome,
    SimulatedUplink,
    UpdateAwareStrategy,
    meeting,
    protocol,
    strategy,
)
from fedlink.flower.metrics import alike
from fedlink.flower.protocol import COMPUTE, HELLO, UPLOAD, plain
from test_failures import DEVICES, DIM, garbage, grid_of, mean_of, outcomes, run, update


@pytest.fixture
def lines(monkeypatch) -> list[str]:
    """The lines that the strategy logs."""
    found: list[str] = []
    for module in (strategy, meeting):
        monkeypatch.setattr(module, "log", lambda level, text, *values: found.append(text % values))
    return found


def with_metrics(grid: FakeGrid, metrics_of) -> FakeGrid:
    """Every node trains and evaluates with these metrics."""
    for node_id, node in grid.nodes.items():
        metrics = MetricRecord(metrics_of(node_id - 100))

        def train(message: Message, context, metrics=metrics) -> Message:
            arrays = [array.numpy() for array in message.content["arrays"].values()]
            moved = model(*[array + update(context.node_config["partition-id"]) for array in arrays])
            return Message(RecordDict({"arrays": moved, "metrics": metrics}), reply_to=message)

        def evaluate(message: Message, _, metrics=metrics) -> Message:
            return Message(RecordDict({"metrics": metrics}), reply_to=message)

        # The functions of the first registration stay; the app of each node is new.
        node.app = type(node.app)()
        node.app.train()(train)
        node.app.evaluate()(evaluate)
    return grid


FAULTY = [
    (
        {"num-examples": 10, "train_loss": 0.5, "speed": 3.0},
        "its metrics are num-examples, speed, train_loss",
    ),
    ({"train_loss": 0.5}, "its metrics are train_loss, those of most nodes num-examples, train_loss"),
    ({"num-examples": 0, "train_loss": 0.5}, "its num-examples must be above 0, not 0"),
    ({"num-examples": -3, "train_loss": 0.5}, "its num-examples must be above 0, not -3"),
    ({"num-examples": 10, "train_loss": 0.5, "own": float("nan")}, "its metric own is not finite"),
    ({"num-examples": 10, "train_loss": 0.5, "own": [1.0, 1e400]}, "its metric own is not finite"),
    ({"num-examples": [1], "train_loss": 0.5}, "its num-examples must be above 0, not [1]"),
    ({"num-examples": 10, "x" * 400: 0.5}, "of a metric is longer than 300 or not printable"),
    ({f"m{i}": 0.5 for i in range(65)}, "it has 65 metrics, and 64 are the most"),
]


@pytest.mark.parametrize("metrics, problem", FAULTY)
def test_a_node_with_other_metrics_loses_them_and_the_round_continues(metrics, problem, lines):
    sound = {"num-examples": 10, "train_loss": 0.5}
    grid = with_metrics(
        grid_of(), lambda device: metrics if device == 1 else sound | {"train_loss": 1.0 * device}
    )
    strategy, theta, result = run(grid, rounds=2)
    assert (theta == 2 * mean_of(3, 4)).all(), "every round was aggregated"
    named = [line for line in lines if "device 1: its metrics are left out" in line]
    # A node that the app itself refuses (a number of samples that cannot be) never gets that far.
    if outcomes(strategy)[1] is not Outcome.REJECTED:
        assert len(named) == 4 and all(problem in line for line in named), lines
    # The mean over the other four, of training and of evaluation.
    assert result.train_metrics_clientapp[2]["train_loss"] == pytest.approx((0 + 2 + 3 + 4) / 4)
    assert result.evaluate_metrics_clientapp[2]["train_loss"] == pytest.approx((0 + 2 + 3 + 4) / 4)


def test_metrics_without_any_weight_count_the_same():
    kept, problems = alike({7: MetricRecord({"a": 1.0}), 9: MetricRecord({"a": 3.0})}, "num-examples")
    assert not problems and [dict(one) for one in kept] == [
        {"a": 1.0, "num-examples": 1},
        {"a": 3.0, "num-examples": 1},
    ]
    assert alike({}, "num-examples") == ([], {})


def test_a_reply_to_an_evaluation_without_one_record_of_metrics_is_left_out(lines):
    grid = with_metrics(grid_of(), lambda device: {"num-examples": 10, "accuracy": float(device)})
    for records in (RecordDict(), RecordDict({"a": MetricRecord({"x": 1}), "b": MetricRecord({"x": 1})})):
        grid.nodes[104].on_reply["evaluate"] = lambda reply, records=records: Message(
            records, reply_to=_of(reply)
        )
        _, _, result = run(grid)
        assert result.evaluate_metrics_clientapp[1]["accuracy"] == pytest.approx((0 + 1 + 2 + 3) / 4)
        assert any("device 4: its metrics are left out: there are" in line for line in lines)


def _of(reply: Message) -> Message:
    """The request of a reply."""
    request = Message(RecordDict(), reply.metadata.src_node_id, reply.metadata.message_type)
    request.metadata.__dict__["_message_id"] = reply.metadata.reply_to_message_id
    return request


def test_a_node_that_hangs_in_the_greeting_costs_one_short_limit_and_is_not_greeted_again():
    grid = grid_of()
    greeted = []
    grid.nodes[104].on_reply[HELLO] = lambda reply: greeted.append(1)
    begun = time.monotonic()
    strategy = UpdateAwareStrategy(
        "bn2",
        2,
        uplink=SimulatedUplink(devices=DEVICES, symbols=10**6),
        min_available_nodes=1,
        hello_timeout=0.2,
    )
    strategy.start(grid, model(np.zeros(DIM, dtype=np.float32)), num_rounds=4, timeout=600)
    assert time.monotonic() - begun < 60
    assert greeted == [1]
    assert [node.outcome for node in strategy.records[0].nodes if node.node_id == 104] == [Outcome.ABSENT]
    assert all(104 not in [node.node_id for node in record.nodes] for record in strategy.records[1:])


def test_a_rejected_node_is_not_greeted_again_until_it_was_away():
    grid = grid_of()
    grid.nodes[104].context.node_config["partition-id"] = 77
    greeted = []
    grid.nodes[104].on_reply[HELLO] = lambda reply: greeted.append(1) or reply
    rounds = []

    def between() -> None:
        rounds.append(1)
        if len(rounds) == 2:
            away.append(grid.nodes.pop(104))
        elif len(rounds) == 3:
            away[0].context.node_config["partition-id"] = 4
            grid.nodes[104] = away[0]

    away: list = []
    grid.between = between
    strategy, _, _ = run(grid, rounds=4)
    assert len(greeted) == 2, "once at first, and once after it came back"
    assert 4 not in outcomes(strategy, 3) and outcomes(strategy, 4)[4] is Outcome.SENT


def test_a_straggler_gets_no_work_while_it_is_busy_and_works_again_when_it_is_free():
    grid = grid_of()
    rounds: list[int] = []
    computes: list[int] = []

    def compute(reply: Message) -> Message | None:
        computes.append(1 + len(rounds))
        if rounds:
            return reply
        # It exceeds the limit, and what comes for it waits.
        grid.asleep.add(104)
        return None

    def between() -> None:
        rounds.append(1)
        if len(rounds) == 2:
            grid.wake(104)

    grid.nodes[104].on_reply[COMPUTE] = compute
    grid.between = between
    strategy, theta, _ = run(grid, rounds=4, compute_timeout=0.5)
    assert outcomes(strategy, 1)[4] is Outcome.ABSENT
    second = next(node for node in strategy.records[1].nodes if node.node_id == 104)
    assert second.outcome is Outcome.ABSENT and "busy with a request of an earlier round" in second.reason
    assert outcomes(strategy, 3)[4] is Outcome.SENT and outcomes(strategy, 4)[4] is Outcome.SENT
    assert computes == [1, 3, 4]
    assert (theta == 2 * mean_of(2, 3) + 2 * mean_of(3, 4)).all()
    # Only the first round waited for it.
    assert [record.seconds > 0.5 for record in strategy.records] == [True, False, False, False]


def test_a_round_in_which_all_nodes_are_busy_waits_for_the_first_free_one():
    grid = grid_of()
    rounds: list[int] = []

    def compute(reply: Message) -> Message | None:
        if rounds:
            return reply
        grid.asleep.update(grid.nodes)
        return None

    for node in grid.nodes.values():
        node.on_reply[COMPUTE] = compute
    looks: list[int] = []
    known = grid.get_node_ids

    def ids():
        looks.append(1)
        if len(looks) == 4:
            rounds.append(1)
            grid.wake(103)
        return known()

    grid.get_node_ids = ids
    strategy, theta, _ = run(grid, rounds=2, compute_timeout=0.1, min_available_nodes=DEVICES)
    assert outcomes(strategy, 2)[3] is Outcome.SENT and (theta == update(3)).all()


def test_a_request_expires_with_the_limit_of_its_phase():
    grid = grid_of()
    ttl: dict[str, set[float]] = {}
    pushed = grid.push_messages

    def push(messages):
        messages = list(messages)
        for message in messages:
            ttl.setdefault(message.metadata.message_type.split(".")[-1], set()).add(message.metadata.ttl)
        return pushed(messages)

    grid.push_messages = push
    run(grid, compute_timeout=7.0, upload_timeout=3.0)
    assert ttl[COMPUTE] == {7.0} and ttl[UPLOAD] == {3.0}


def test_an_update_has_a_limit_of_its_own():
    grid = grid_of()
    grid.nodes[104].on_reply[UPLOAD] = lambda reply: None
    strategy = UpdateAwareStrategy(
        "bn2",
        2,
        uplink=SimulatedUplink(devices=DEVICES, symbols=10**6),
        min_available_nodes=1,
        upload_timeout=0.2,
        substitute=False,
    )
    begun = time.monotonic()
    strategy.start(grid, model(np.zeros(DIM, dtype=np.float32)), num_rounds=1, timeout=600)
    assert time.monotonic() - begun < 60 and outcomes(strategy)[4] is Outcome.ABSENT


def test_a_first_round_without_enough_nodes_ends_after_its_limit_and_names_the_missing_devices():
    grid = grid_of(3)
    with pytest.raises(NobodyTakesPart, match=r"3 of 5 nodes are here; missing: devices 3, 4, after 0 s"):
        run(grid, min_available_nodes=5, start_timeout=0.3)


def test_the_log_names_the_devices_that_the_first_round_waits_for(lines):
    with pytest.raises(NobodyTakesPart):
        run(grid_of(2), min_available_nodes=5, start_timeout=0.3)
    assert any(
        "waiting for nodes to connect: 2 of 5 nodes are here; missing: devices 2, 3, 4" in x for x in lines
    )


@pytest.mark.parametrize("text", ["x" * 3_000_000, "a\nb\x1b[31mred", "=cmd|' /C calc'!A0", "\ud800"])
def test_the_text_of_a_node_is_one_short_line_and_its_run_can_be_resumed(text, tmp_path):
    def failing() -> FakeGrid:
        grid = grid_of()
        app = type(grid.nodes[104].app)()

        @app.train()
        def train(message, context):
            raise RuntimeError(text)

        grid.nodes[104].app = app
        # The text as it is, without Python's quotes around it.
        grid.nodes[104].on_reply[COMPUTE] = lambda reply: _with_reason(reply, text)
        return grid

    folder = tmp_path / "records"
    interrupted(failing(), folder)
    with (folder / "rounds.csv").open(newline="", encoding="utf-8") as file:
        reasons = [line["reason"] for line in csv.DictReader(file) if line["node_id"] == "104"]
    assert len(reasons) == 2
    assert all(len(reason) <= 301 and reason.isprintable() and reason[0] not in "=+-@" for reason in reasons)
    strategy, _, _ = run(failing(), rounds=3, records=folder, resume=True)
    assert [record.round for record in strategy.records] == [3]


def interrupted(grid: FakeGrid, folder) -> None:
    """A run of three rounds that stops in the third."""
    rounds: list[int] = []

    def between() -> None:
        rounds.append(1)
        if len(rounds) == 3:
            raise KeyboardInterrupt

    grid.between = between
    with pytest.raises(KeyboardInterrupt):
        run(grid, rounds=3, records=folder)


def _with_reason(reply: Message, text: str) -> Message:
    assert reply.has_error()
    reply.error.__dict__["_reason"] = text
    return reply


def test_a_folder_with_an_endless_field_can_be_resumed(tmp_path):
    folder = tmp_path / "records"
    interrupted(grid_of(), folder)
    path = folder / "rounds.csv"
    first, *rest = path.read_text().splitlines()
    path.write_text(
        "\n".join([first, *(line.replace("not-scheduled", "x" * 200_000) for line in rest)]) + "\n"
    )
    strategy, _, _ = run(grid_of(), rounds=3, records=folder, resume=True)
    assert [record.round for record in strategy.records] == [3]


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), 3.8e28])
def test_an_evaluation_that_explodes_stops_the_run_at_the_last_good_model(loss, tmp_path):
    losses = {1: 2.0, 2: 1.5, 3: loss}

    def started(**options):
        strategy = UpdateAwareStrategy(
            "bn2", 2, uplink=SimulatedUplink(devices=DEVICES, symbols=10**6), records=tmp_path, **options
        )
        evaluate = lambda number, arrays: (
            MetricRecord({"accuracy": 0.5, "loss": losses[number]}) if number else None
        )
        start = model(np.zeros(DIM, dtype=np.float32))
        return strategy, lambda: strategy.start(
            grid_of(), start, num_rounds=3, timeout=0.2, evaluate_fn=evaluate
        )

    strategy, go = started()
    with pytest.raises(Diverged, match=r"after round 3 is .*devices 3, 4 sent.*has the model of round 2"):
        go()
    losses[3] = 1.0
    strategy, go = started(resume=True)
    result = go()
    assert [record.round for record in strategy.records] == [3] and strategy.server.rounds_done == 3
    assert (result.arrays["layer0"].numpy() == 3 * mean_of(3, 4)).all()


def test_the_log_states_the_entries_of_an_update_and_warns_of_few(lines, monkeypatch):
    run(grid_of())
    assert "round 1: an update has 4 of 40 entries on average" in lines
    monkeypatch.setattr(strategy, "TINY", 0.2)
    run(grid_of(), rounds=2)
    assert len([line for line in lines if "less than 20 % of the model's entries" in line]) == 1


def test_an_exclusion_is_logged_when_it_happens(lines):
    grid = grid_of()
    grid.nodes[100].on_reply[COMPUTE] = garbage({"answers": [1e4]})
    run(grid, rounds=4, config={"defense.strikes": 2})
    assert [line for line in lines if "excluded" in line] == [
        "round 2: device 0 is excluded from here on (defense.strikes)"
    ]


def test_a_resumed_run_with_other_keys_names_them(tmp_path):
    interrupted(grid_of(), tmp_path)
    problem = r"schedule.k is 2 there and 3 here"
    with pytest.raises(ValueError, match=problem):
        run(grid_of(), rounds=3, k=3, records=tmp_path, resume=True)
    with pytest.raises(ValueError, match="run.rounds is 3 there and 4 here"):
        run(grid_of(), rounds=4, records=tmp_path, resume=True)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("short", "short"),
        ("a\tb\n", "a\\tb"),
        ("x" * 301, "x" * 299 + "…"),
        ("\x1b[1m", "\\x1b[1m"),
        ("", ""),
    ],
)
def test_plain_text_is_printable_and_short(text, shown):
    assert plain(text) == shown and len(plain(text * 1000)) <= protocol.MAX_TEXT


def test_an_answer_that_is_no_metrics_leaves_the_arrays_alone():
    grid = with_metrics(grid_of(), lambda device: {"num-examples": 10})
    grid.nodes[103].on_reply[COMPUTE] = (
        lambda reply: reply.content.array_records.update({"more": ArrayRecord([np.zeros(3)])}) or reply
    )
    _, theta, _ = run(grid)
    assert (theta == mean_of(3, 4)).all()

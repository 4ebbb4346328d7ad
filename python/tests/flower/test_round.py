"""Rounds on a grid in this process, all going well."""

from __future__ import annotations

import numpy as np
import pytest
from fake_grid import FakeGrid, model, stock_training
from flwr.app import ConfigRecord, Message, MetricRecord, RecordDict
from reference import bits, bn2_c, largest_q

from fedlink.flower import (
    DeclaredUplink,
    Outcome,
    SimulatedUplink,
    UpdateAwareClientApp,
    UpdateAwareStrategy,
    protocol,
    update_reply,
)

DEVICES = 8
SHAPES = [(5, 12), (12,), (1, 7)]
DIM = 79


def shift(device: int, server_round: int) -> list[np.ndarray]:
    """The update of a device: different in every round, larger for higher device numbers."""
    random = np.random.default_rng([device, server_round])
    scale = 0.1 * (1 + device % 5)
    return [(scale * random.standard_normal(shape)).astype(np.float32) for shape in SHAPES]


def start_model() -> list[np.ndarray]:
    random = np.random.default_rng(1)
    # Multiples of 1/1024: the model plus an update minus the model is then close to the update.
    return [np.round(random.standard_normal(shape) * 1024).astype(np.float32) / 1024 for shape in SHAPES]


def grid_of(train=None, devices: int = DEVICES, **config) -> FakeGrid:
    grid = FakeGrid()
    for device in range(devices):
        app = UpdateAwareClientApp()
        app.train()(train or stock_training(shift))
        # Node numbers are unrelated to devices.
        grid.add(1000 - 7 * device, app, partition_id=device, **config)
    return grid


def strategy_of(policy: str = "bn2-c", k: int = 2, **options) -> UpdateAwareStrategy:
    options.setdefault("uplink", SimulatedUplink(devices=DEVICES, symbols=400, seed=5))
    return UpdateAwareStrategy(policy, k, **options)


def flat(arrays) -> np.ndarray:
    return protocol.flat(array.numpy() for array in arrays.values())


def test_a_round_is_the_one_that_naive_code_computes_too():
    grid, strategy = grid_of(), strategy_of()
    before = start_model()
    result = strategy.start(grid, model(*before), num_rounds=1, timeout=30)

    uplink = strategy.uplink
    capacities = np.log2(1 + strategy.server.links(0).gains * DEVICES / 2)
    trained = {m: protocol.flat(b + s for b, s in zip(before, shift(m, 1))) for m in range(DEVICES)}
    updates = {m: after - protocol.flat(before) for m, after in trained.items()}
    chosen, step = bn2_c(updates, capacities, uplink.symbols, 2)
    assert [node.device for node in strategy.records[0].having(Outcome.SENT)] == chosen
    assert np.allclose(flat(result.arrays) - protocol.flat(before), step, rtol=0, atol=1e-6)
    assert np.count_nonzero(step) > 0


KC = {"schedule.bc-bn2.kc": 4}


@pytest.mark.parametrize(
    "policy, trained, asked", [("bc", 2, 0), ("bc-bn2", 4, 1), ("bn2", 8, 1), ("bn2-c", 8, 1)]
)
def test_only_candidates_train_and_only_the_scheduled_upload_and_the_bytes_show_it(policy, trained, asked):
    grid, strategy = grid_of(), strategy_of(policy, config=KC)
    strategy.start(grid, model(*start_model()), num_rounds=3, timeout=30)
    assert grid.kinds() == {protocol.HELLO: DEVICES, protocol.COMPUTE: 3 * trained, protocol.UPLOAD: 3 * 2}
    # Numbers and their names: a number is 8 bytes. The model is 316.
    ours = asked * (len("answers") + 8) + len("seconds") + 8 + len("loss") + 8 + len("examples") + 8
    metrics = len("num-examples") + 8 + len("train_loss") + 8
    assert {size for kind, _, size in grid.log if kind == protocol.COMPUTE} == {ours + metrics}
    sent = [node for record in strategy.records for node in record.having(Outcome.SENT)]
    assert len(sent) == 6
    uploads = sorted(size for kind, _, size in grid.log if kind == protocol.UPLOAD)
    numbers = len("level") + 8 + len("bits") + 8 + len("entries") + 8
    assert uploads == sorted(len("payload") + node.payload_bytes + numbers for node in sent)
    assert sorted(node.up_bytes - ours - metrics for node in sent) == uploads
    for node in sent:
        assert bits(DIM, node.q) <= node.budget and node.q == largest_q(DIM, node.budget)
        # The codec takes a few bits more than the formula, and whole bytes.
        assert node.payload_bytes <= (node.bits + 16) / 8


@pytest.mark.parametrize("policy", ["bc", "bc-bn2", "bn2", "bn2-c"])
def test_the_record_adds_up(policy):
    grid, strategy = grid_of(), strategy_of(policy, config=KC, k=3)
    result = strategy.start(grid, model(*start_model()), num_rounds=2, timeout=30)
    for number, record in enumerate(strategy.records, 1):
        assert record.round == number and len(record.scheduled) == 3
        assert sum(node.granted for node in record.scheduled) == pytest.approx(400, rel=1e-12)
        ratios = [node.budget / node.bit_weight for node in record.scheduled]
        assert ratios == pytest.approx([ratios[0]] * 3, rel=1e-9)
        metrics = result.train_metrics_clientapp[number]
        assert metrics["scheduled"] == 3 and metrics["problems"] == 0
        assert metrics["payload-bytes"] == sum(node.payload_bytes for node in record.having(Outcome.SENT))
        assert metrics["sent-devices"] == [node.device for node in record.having(Outcome.SENT)]


def test_whole_symbols_are_whole():
    strategy = strategy_of(k=3, uplink=SimulatedUplink(devices=DEVICES, symbols=61, seed=5, whole=True))
    strategy.start(grid_of(), model(*start_model()), num_rounds=2, timeout=30)
    shares = [[node.granted for node in record.scheduled] for record in strategy.records]
    assert all(share == int(share) for shared in shares for share in shared)
    assert [sum(shared) for shared in shares] == [61, 61]


def test_a_silent_device_adds_nothing_and_still_counts():
    # One entry of 79 takes log2(79) + 33 = 39.3 bits: enough symbols for the larger updates only.
    strategy = strategy_of("bn2", k=4, uplink=SimulatedUplink(devices=DEVICES, symbols=120, seed=5))
    grid = grid_of()
    before = start_model()
    result = strategy.start(grid, model(*before), num_rounds=1, timeout=30)
    record = strategy.records[0]
    silent, sent = record.having(Outcome.SILENT), record.having(Outcome.SENT)
    assert silent and sent and len(silent) + len(sent) == 4
    assert grid.kinds()[protocol.UPLOAD] == 4 and all(node.payload_bytes is None for node in silent)
    assert all(node.q == 0 and node.budget < bits(DIM, 1) for node in silent)
    moved = flat(result.arrays) - protocol.flat(before)
    values = {m: protocol.flat(s) for m, s in ((node.device, shift(node.device, 1)) for node in sent)}
    largest = max(np.abs(update).max() for update in values.values())
    assert 0 < np.abs(moved).max() <= largest / 4 + 1e-6


def test_counters_stay_and_other_types_keep_theirs():
    def train(message: Message, context) -> Message:
        arrays = {name: array.numpy() for name, array in message.content["arrays"].items()}
        moved = [arrays["layer0"] + 1, arrays["layer1"] + 7, arrays["layer2"] + np.float64(0.5)]
        return Message(RecordDict({"arrays": model(*moved)}), reply_to=message)

    uplink = SimulatedUplink(devices=1, symbols=5000)
    strategy = strategy_of("bn2", k=1, uplink=uplink)
    start = model(np.zeros(4, np.float32), np.array([3, 4]), np.zeros(4))
    result = strategy.start(grid_of(train, devices=1), start, num_rounds=1, timeout=30)
    dtypes = [array.numpy().dtype for array in result.arrays.values()]
    assert dtypes == [np.float32, np.int64, np.float64]
    assert result.arrays["layer1"].numpy().tolist() == [3, 4]
    # Of eight positive entries the four largest are kept.
    assert result.arrays["layer0"].numpy().tolist() == [1, 1, 1, 1]
    assert result.arrays["layer2"].numpy().tolist() == [0, 0, 0, 0]


def test_mods_of_training_see_the_model_and_mods_of_the_app_see_the_messages():
    seen = []

    def clip(message, context, call_next):
        reply = call_next(message, context)
        seen.append(("inner", list(reply.content)))
        return reply

    def watch(message, context, call_next):
        reply = call_next(message, context)
        seen.append(("outer", list(reply.content)))
        return reply

    app = UpdateAwareClientApp(mods=[watch])
    app.train(mods=[clip])(stock_training(shift))
    grid = FakeGrid()
    grid.add(1, app, partition_id=0)
    strategy_of(k=1, uplink=SimulatedUplink(devices=1)).start(
        grid, model(*start_model()), num_rounds=1, timeout=30
    )
    ours = [protocol.KEY]
    report = [*ours, "metrics"]
    assert seen == [("outer", ours), ("inner", ["arrays", "metrics"]), ("outer", report), ("outer", ours)]


def test_a_node_without_a_partition_id_becomes_the_first_free_device():
    grid = FakeGrid()
    app = UpdateAwareClientApp()
    app.train()(lambda message, context: update_reply(message, np.ones(DIM)))
    grid.add(5, app, partition_id=0)
    grid.add(6, app)
    grid.add(7, app)
    strategy = strategy_of("bn2", k=3, uplink=SimulatedUplink(devices=3))
    strategy.start(grid, model(*start_model()), num_rounds=1, timeout=30)
    assert [(node.node_id, node.device) for node in strategy.records[0].nodes] == [(5, 0), (6, 1), (7, 2)]


def test_declared_links_share_the_deadline_so_that_bits_follow_the_weights():
    grid = FakeGrid()
    rates = {0: 1e3, 1: 4e3, 2: 500.0, 3: 2e3}
    for device, rate in rates.items():
        app = UpdateAwareClientApp()
        app.train()(stock_training(shift))
        grid.add(device + 1, app, partition_id=device, uplink_bps=rate)
    strategy = strategy_of("bn2", k=3, uplink=DeclaredUplink(devices=4, deadline=0.5))
    strategy.start(grid, model(*start_model()), num_rounds=2, timeout=30)
    for record in strategy.records:
        assert [node.device for node in record.scheduled] == [1, 2, 3]  # the largest norms
        assert sum(node.granted for node in record.scheduled) == pytest.approx(0.5, rel=1e-9)
        for node in record.scheduled:
            assert node.capacity == pytest.approx(rates[node.device], rel=1e-12)
            assert node.budget == pytest.approx(rates[node.device] * node.granted, rel=1e-12)
        ratios = [node.budget / node.bit_weight for node in record.scheduled]
        assert ratios == pytest.approx([ratios[0]] * 3, rel=1e-9)


def test_the_rate_of_this_round_counts_and_the_last_one_given_picks_candidates():
    now = {"rate": 1e4}
    grid = FakeGrid()
    for device in range(2):
        app = UpdateAwareClientApp(
            rate=(lambda context: now["rate"]) if device == 0 else (lambda context: 2e3)
        )
        app.train()(stock_training(shift))
        grid.add(device + 1, app, partition_id=device)
    strategy = strategy_of("bc", k=1, uplink=DeclaredUplink(devices=2, deadline=1.0))
    # Given in the second round, too late not to be its candidate.
    rounds = []
    between = lambda: rounds.append(1) or (len(rounds) == 1 and now.update(rate=1e3))
    grid.between = between
    strategy.start(grid, model(*start_model()), num_rounds=3, timeout=30)
    chosen = [record.scheduled[0] for record in strategy.records]
    assert [node.device for node in chosen] == [0, 0, 1]
    assert [node.budget for node in chosen] == pytest.approx([1e4, 1e3, 2e3], rel=1e-9)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"policy": "best"}, "schedule.policy"),
        ({"k": 0}, "schedule.k"),
        ({"k": 9}, "schedule.k"),
        ({"policy": "bc-bn2", "k": 2, "config": {"schedule.bc-bn2.kc": 1}}, "schedule.bc-bn2.kc"),
        ({"config": {"compress.scheme": "zip"}}, "compress.scheme"),
        ({"config": {"schedule.sloth": 1}}, "schedule.sloth"),
        ({"config": {"adversary.share": 0.5}}, "adversary.share"),
    ],
)
def test_impossible_schedules_are_refused_at_once(change, message):
    with pytest.raises(ValueError, match=message):
        strategy_of(**change)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"fraction_train": 0.5}, "fraction_train: the policy selects the nodes that train"),
        ({"kc": 4}, "schedule.bc-bn2.kc"),
        ({"resume": True}, "records"),
        ({"uplink": None}, "the number of devices"),
    ],
)
def test_arguments_that_go_nowhere_are_refused(change, message):
    with pytest.raises(TypeError, match=message):
        strategy_of(**change)


@pytest.mark.parametrize(
    "make",
    [
        lambda: strategy_of(uplink=SimulatedUplink(devices=0)),
        lambda: strategy_of(uplink=SimulatedUplink(devices=4, symbols=0)),
        lambda: strategy_of(uplink=SimulatedUplink(devices=4, noise=0.0)),
        lambda: strategy_of(uplink=SimulatedUplink(devices=4, power=float("nan"))),
        lambda: DeclaredUplink(devices=4, deadline=0.0),
        lambda: DeclaredUplink(devices=4, deadline=float("inf")),
    ],
)
def test_a_link_that_cannot_be_is_refused(make):
    with pytest.raises(ValueError):
        make()


def test_a_configuration_in_a_file_is_all_that_is_needed(tmp_path):
    text = """
    data.devices = 8
    radio.symbols = 400
    run.seed = 5
    schedule.policy = "bn2-c"
    schedule.k = 2
    """
    (tmp_path / "mine.toml").write_text(text)
    thetas = []
    for strategy in (
        strategy_of(),
        UpdateAwareStrategy(config=text),
        UpdateAwareStrategy(config=tmp_path / "mine.toml"),
        UpdateAwareStrategy("bn2-c", config=text.replace("bn2-c", "bc")),
    ):
        result = strategy.start(grid_of(), model(*start_model()), num_rounds=2, timeout=30)
        thetas.append(flat(result.arrays).tobytes())
    assert len(set(thetas)) == 1


def test_a_model_that_was_changed_between_rounds_is_refused():
    strategy = strategy_of()
    strategy.start(grid_of(), model(*start_model()), num_rounds=1, timeout=30)
    with pytest.raises(ValueError, match="not the one that the last round left"):
        strategy.configure_train(2, model(*start_model()), ConfigRecord(), grid_of())


def by_device(message, context) -> Message:
    """Training whose loss and number of samples identify the device."""
    device = context.node_config["partition-id"]
    reply = stock_training(shift)(message, context)
    reply.content["metrics"] = MetricRecord({"num-examples": 10 * (1 + device), "train_loss": 0.1 * device})
    return reply


def test_metrics_of_training_are_averaged_over_all_that_trained_as_in_fedavg():
    result = strategy_of().start(grid_of(by_device), model(*start_model()), num_rounds=1, timeout=30)
    sizes = [1 + device for device in range(DEVICES)]
    expected = sum(0.1 * device * size for device, size in enumerate(sizes)) / sum(sizes)
    assert result.train_metrics_clientapp[1]["train_loss"] == pytest.approx(expected)


def test_a_function_that_sums_up_metrics_of_training_is_called_as_in_fedavg():
    def largest(records, weighted_by):
        assert weighted_by == "num-examples" and len(records) == DEVICES
        return MetricRecord({"worst": max(record["metrics"]["train_loss"] for record in records)})

    strategy = strategy_of(train_metrics_aggr_fn=largest)
    result = strategy.start(grid_of(by_device), model(*start_model()), num_rounds=1, timeout=30)
    assert result.train_metrics_clientapp[1]["worst"] == pytest.approx(0.7)


def test_updates_can_count_by_examples():
    strategy = UpdateAwareStrategy.reference(
        uplink=SimulatedUplink(devices=DEVICES), config={"learn.aggregate": "by-size"}
    )
    before = start_model()
    result = strategy.start(grid_of(by_device), model(*before), num_rounds=1, timeout=30)
    sizes = [1 + device for device in range(DEVICES)]
    updates = [protocol.flat(shift(device, 1)) for device in range(DEVICES)]
    expected = sum(size * update for size, update in zip(sizes, updates)) / sum(sizes)
    assert np.allclose(flat(result.arrays) - protocol.flat(before), expected, rtol=0, atol=1e-5)
    losses = [0.1 * device * size for device, size in enumerate(sizes)]
    assert strategy.records[0].train_loss == pytest.approx(sum(losses) / sum(sizes))


def test_by_size_without_examples_is_an_error_with_the_remedy():
    grid = grid_of(lambda message, context: update_reply(message, np.ones(DIM)))
    with pytest.raises(RuntimeError, match="num-examples"):
        strategy_of(config={"learn.aggregate": "by-size"}).start(
            grid, model(*start_model()), num_rounds=1, timeout=30
        )


def test_the_reference_schedules_every_node_and_sends_updates_whole():
    strategy = UpdateAwareStrategy.reference(
        "bn2-c", 2, uplink=SimulatedUplink(devices=DEVICES, symbols=4, seed=5)
    )
    before = start_model()
    result = strategy.start(grid_of(), model(*before), num_rounds=1, timeout=30)
    expected = np.mean([protocol.flat(shift(device, 1)) for device in range(DEVICES)], axis=0)
    assert np.allclose(flat(result.arrays) - protocol.flat(before), expected, rtol=0, atol=1e-6)
    assert [node.entries for node in strategy.records[0].having(Outcome.SENT)] == [DIM] * DEVICES


def test_only_nodes_with_an_evaluation_function_receive_requests():
    def evaluate(message, context):
        return Message(
            RecordDict({"metrics": MetricRecord({"num-examples": 1, "loss": 2.0})}), reply_to=message
        )

    grid = grid_of()
    for node in list(grid.nodes.values())[:3]:
        node.app.evaluate()(evaluate)
    result = strategy_of().start(grid, model(*start_model()), num_rounds=2, timeout=30)
    assert grid.kinds()["evaluate"] == 6
    assert [metrics["loss"] for metrics in result.evaluate_metrics_clientapp.values()] == [2.0, 2.0]
    silent = grid_of()
    for node in silent.nodes.values():
        node.app.evaluate()(evaluate)
    strategy_of(fraction_evaluate=0.0).start(silent, model(*start_model()), num_rounds=1, timeout=30)
    assert "evaluate" not in silent.kinds()

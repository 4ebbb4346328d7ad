"""Rounds on other people's nodes: order of calls, absence, loss, audit, resume, measured links."""

import json

import numpy as np
import pytest

import fedlink

DIM = 500


@pytest.fixture
def config(small):
    return {**small, "schedule.policy": "bn2"}


def start(config, **parts):
    return fedlink.Server(config, np.zeros(DIM, np.float32), **parts)


def update_of(device, t=0):
    return np.random.default_rng([device, t]).standard_normal(DIM).astype(np.float32)


def reported(server, node, call, only=None):
    devices = [int(m) for m in call.candidates if only is None or m in only]
    bits = dict(zip(call.candidates.tolist(), call.alone_bits))
    answers = [node.report(call.asks, update_of(m, call.t), 0.5, bits[m], call.t, m) for m in devices]
    return server.report(devices, answers)


def play(server, node, encoder=None):
    call = server.begin()
    grants = reported(server, node, call)
    sent = [
        node.encode(update_of(g.device, call.t), g.budget, call.t, g.device).upload(g.device) for g in grants
    ]
    return server.deliver(sent, len(call.candidates), 0.5)


def test_grants_add_up(config):
    server, node = start(config), fedlink.Encoder(config)
    call = server.begin()
    assert (call.t, call.k, call.asks) == (0, 2, ["norm"]) and call.candidates.tolist() == list(range(8))
    gains, capacities = server.links(0)
    assert call.alone_bits == pytest.approx(500 * capacities)
    grants = reported(server, node, call)
    assert len(grants) == 2 and sum(grant.symbols for grant in grants) == pytest.approx(500)
    for grant in grants:
        assert grant.capacity == capacities[grant.device] and grant.budget == grant.symbols * grant.capacity
        assert (grant.power, grant.airtime, grant.weight) == (4.0, grant.symbols, None)
        assert grant.bit_weight == pytest.approx(np.linalg.norm(update_of(grant.device)), rel=1e-6)
    assert server.deliver([], 8, 0.5) == ["lost", "lost"]
    assert (server.theta == 0).all() and server.rounds()["lost"].tolist() == [2]


def test_a_node_that_is_absent_or_does_not_answer_is_not_scheduled(config):
    server, node = start(config), fedlink.Encoder(config)
    call = server.begin(present=[1, 3, 5])
    assert call.candidates.tolist() == [1, 3, 5]
    grants = reported(server, node, call, only=[5, 1])
    assert {grant.device for grant in grants} == {1, 5}
    # The order of answers does not matter, nor does that of uploads.
    sent = [node.encode(update_of(g.device), g.budget, 0, g.device).upload(g.device) for g in grants]
    assert server.deliver(sent[::-1], 2, 0.5) == ["used", "used"]
    call = server.begin(present=[])
    assert call.candidates.size == 0 and server.report([], []) == [] and server.deliver([], 0, 0.0) == []
    assert server.rounds_done == 2


def test_a_round_that_is_abandoned_leaves_no_trace(config):
    server, other, node = start(config), start(config), fedlink.Encoder(config)
    call = server.begin()
    reported(server, node, call)
    assert play(server, node) == play(other, node) == ["used", "used"]
    assert server.digest == other.digest


def test_calls_in_the_wrong_order_are_refused(config):
    server, node = start(config), fedlink.Encoder(config)
    with pytest.raises(RuntimeError, match="no round has begun"):
        server.report([0], [[1.0]])
    with pytest.raises(RuntimeError, match="no device has reported"):
        server.deliver([], 0, 0.0)
    with pytest.raises(RuntimeError, match="evaluated"):
        server.evaluated(0.5, 0.5)
    with pytest.raises(ValueError, match="t: must be in 0..=0"):
        server.begin(1)
    play(server, node)
    server.begin()
    with pytest.raises(RuntimeError, match="after deliver, before begin"):
        server.evaluated(0.5, 0.5)


def test_answers_and_uploads_that_cannot_be_are_refused(config):
    server, node = start(config), fedlink.Encoder(config)
    call = server.begin(present=[0, 1, 2])
    refused = [
        (lambda: server.report([0, 7], [[1.0], [1.0]]), RuntimeError, "no candidate"),
        (lambda: server.report([0, 0], [[1.0], [1.0]]), RuntimeError, "twice"),
        (lambda: server.report([0], [[np.nan]]), ValueError, "answers: entry 0 is NaN"),
        (lambda: server.report([0, 1], [1.0, 2.0]), ValueError, "a row for each of 2 devices"),
        (lambda: server.report([0], [["x"]]), TypeError, "answers"),
        (lambda: server.begin(gains=np.ones(8)), ValueError, "give both"),
        (lambda: server.begin(gains=np.ones(7), capacities=np.ones(8)), ValueError, "gains: has 7 entries"),
        (lambda: server.begin(gains=-np.ones(8), capacities=np.ones(8)), ValueError, "at least 0"),
        (lambda: server.begin(present=[8]), ValueError, "no device 8"),
    ]
    for call_it, kind, reason in refused:
        call = server.begin(present=[0, 1, 2])
        with pytest.raises(kind, match=reason):
            call_it()
    call = server.begin(present=[0, 1, 2])
    grants = reported(server, node, call)
    other = next(m for m in range(3) if m not in {grant.device for grant in grants})
    with pytest.raises(RuntimeError, match="not scheduled"):
        server.deliver([fedlink.Upload(other)], 3, 0.5)


def test_bytes_that_cannot_be_decoded_and_claims_beyond_the_budget_count_as_nothing(config):
    server, node = start({**config, "defense.audit": True, "defense.strikes": 2}), fedlink.Encoder(config)
    for t in range(2):
        grants = reported(server, node, server.begin())
        first, second = grants
        good = node.encode(update_of(first.device, t), first.budget, t, first.device)
        greedy = fedlink.Upload(second.device, good.payload, good.level, 2 * second.budget, good.entries)
        garbage = fedlink.Upload(first.device, b"\xff" * 40, 3, 10.0, 3)
        assert server.deliver([garbage, greedy], 8, 0.5) == ["undecodable", "undecodable"]
        assert (server.theta == 0).all()
        if t == 0:
            struck = {first.device, second.device}
            assert server.excluded == []
    caught = {m for m in server.excluded}
    assert caught <= struck
    assert not set(server.begin().candidates.tolist()) & caught


def test_an_inflated_report_is_flagged(config):
    config = {**config, "defense.audit": True, "schedule.k": 1}
    server, node = start(config), fedlink.Encoder(config)
    call = server.begin()
    answers = np.float32([[np.linalg.norm(update_of(m))] for m in range(8)])
    answers[3] = 1e6
    (grant,) = server.report(call.candidates, answers)
    assert grant.device == 3
    sent = node.encode(update_of(3), grant.budget, 0, 3)
    assert server.deliver([sent.upload(3)], 8, 0.5) == ["flagged"]
    assert (server.theta == 0).all()


def test_a_measured_uplink_goes_before_the_configured_one(config):
    server = start({**config, "schedule.policy": "bc", "schedule.k": 1})
    capacities = np.full(8, 0.5)
    capacities[6] = 2.0
    call = server.begin(gains=capacities, capacities=capacities)
    assert call.candidates.tolist() == [6] and call.alone_bits.tolist() == [1000.0]
    (grant,) = server.report([6], np.zeros((1, 0), np.float32))
    assert grant.budget == 1000.0 and grant.symbols == 500.0


@pytest.mark.parametrize("policy", ["round-robin", "random", "bn2"])
def test_a_saved_session_resumes_to_the_same_digest(config, policy):
    config = {**config, "schedule.policy": policy, "learn.server_optimizer": "momentum"}
    node = fedlink.Encoder(config)
    whole, first, second = start(config), start(config), start(config)
    for _ in range(6):
        play(whole, node)
    for _ in range(3):
        play(first, node)
    first.evaluated(0.5, 1.0, {"recall": 0.25})
    whole_rounds = whole.rounds()
    second.load(first.save())
    assert second.rounds_done == 3 and (second.theta == first.theta).all()
    assert second.rounds()["recall"][-1] == 0.25
    for _ in range(3):
        play(first, node)
        play(second, node)
    assert second.digest == first.digest and (second.theta == whole.theta).all()
    assert second.rounds()["bits"].tolist() == whole_rounds["bits"].tolist()
    other = start({**config, "run.seed": 1})
    with pytest.raises(ValueError, match="another configuration"):
        other.load(first.save())
    with pytest.raises(ValueError, match="damaged"):
        other.load(first.save()[:-1])
    assert other.rounds_done == 0


def test_a_custom_policy_and_compressor_run_on_nodes(config):
    class Last(fedlink.Policy):
        def candidates(self, view):
            return view.eligible[-2:]

        def select(self, view, reports):
            return reports.devices, np.ones(len(reports))

    class Half(fedlink.Compressor):
        def encode(self, update, budget, rng):
            return update / 2, 1.0

    server, node = start(config, policy=Last, compressor=Half), fedlink.Encoder(config, compressor=Half)
    assert server.config["schedule"]["policy"] == "last" and server.config["compress"]["scheme"] == "half"
    assert play(server, node) == ["used", "used"]
    expected = (update_of(6) / 2 + update_of(7) / 2) / 2
    assert server.theta == pytest.approx(expected, rel=1e-5, abs=1e-7)
    assert server.transmissions()["bits"].tolist() == [1.0, 1.0]
    # A node need not know the server's policy.
    again = fedlink.Encoder(server.config, parts={"half": Half})
    assert again.encode(update_of(0), 10.0, 0, 0).entries == DIM


def test_a_node_can_keep_the_unsent_part(config):
    node = fedlink.Encoder(config)
    update = update_of(1)
    sent = node.encode(update, 500.0, 0, 1)
    indices, values = sent.own
    assert sent.entries == len(indices) == len(values) and sent.bits <= 500 and sent.level >= 1
    residual = update - sent.dense(DIM)
    assert (residual[indices] == update[indices] - values).all()
    rest = np.setdiff1d(np.arange(DIM), indices)
    assert (residual[rest] == update[rest]).all()
    silent = node.encode(update, 1.0, 0, 1)
    assert (silent.payload, silent.level, silent.bits, silent.own) == (None, 0, 0.0, None)
    assert (silent.dense(DIM) == 0).all()
    with pytest.raises(ValueError, match="dim"):
        sent.dense(3)


def test_a_device_without_error_feedback_is_an_encoder(config):
    device, encoder = fedlink.Device(config), fedlink.Encoder(config)
    update = update_of(1)
    report = device.report(["norm"], update, 0.5, 900.0, 0, 1)
    assert not report.lost_state
    assert (report.answers == encoder.report(["norm"], update, 0.5, 900.0, 0, 1)).all()
    assert device.waiting == 0
    sent, expected = device.send(500.0), encoder.encode(update, 500.0, 0, 1)
    assert device.waiting is None
    assert (sent.payload, sent.level, sent.bits) == (expected.payload, expected.level, expected.bits)
    with pytest.raises(RuntimeError, match="no update waits"):
        device.send(500.0)


def test_a_device_adds_the_unsent_part_to_its_next_update(config):
    config = {**config, "compress.feedback": "scheduled"}
    device, encoder = fedlink.Device(config), fedlink.Encoder(config)
    update = update_of(1)
    device.report([], update, 0.5, 900.0, 0, 1)
    rest = update - device.send(500.0).dense(DIM)
    lost = fedlink.Device(config)
    lost.load(device.save())
    for one, arrived, expected in ((device, True, update + rest), (lost, False, update)):
        one.settle(arrived)
        answers = one.report(["norm"], update, 0.5, 900.0, 1, 1).answers
        assert (answers == encoder.report(["norm"], expected, 0.5, 900.0, 1, 1)).all()


def test_a_device_goes_on_in_another_process(config):
    config = {**config, "compress.feedback": "momentum"}
    device, state = fedlink.Device(config), b""
    for t in range(3):
        device.report([], update_of(t), 0.5, 900.0, t, 1)
        other = fedlink.Device(config)
        other.load(state)
        other.report([], update_of(t), 0.5, 900.0, t, 1)
        again = fedlink.Device(config)
        again.load(other.save())
        assert again.waiting == t and again.send(500.0).payload == device.send(500.0).payload
        device.settle(True)
        again.settle(True)
        state = again.save()
        assert state == device.save()
    with pytest.raises(ValueError, match="saved: is not the state of a device"):
        device.load(b"\xff\xff")
    with pytest.raises(RuntimeError, match="another run"):
        device.report([], np.ones(3, np.float32), 0.5, 900.0, 3, 1)


def test_a_device_that_has_lost_its_state_reports_it(config):
    device = fedlink.Device({**config, "compress.feedback": "ef21"})
    assert device.report([], update_of(1), 0.5, 900.0, 4, 1, acknowledged=3).lost_state
    assert not device.report([], update_of(1), 0.5, 900.0, 4, 1, acknowledged=0).lost_state
    with pytest.raises(RuntimeError, match="must give the round"):
        device.report([], update_of(1), 0.5, 900.0, 4, 1)
    with pytest.raises(ValueError, match="acknowledged"):
        device.report([], update_of(1), 0.5, 900.0, 4, 1, acknowledged=-1)


def test_the_mean_loss_is_weighted_as_updates_are(config):
    losses = {0: 1.0, 3: 5.0}
    assert start(config).mean_loss(losses) == 3.0 and start(config).mean_loss({}) == 0.0
    by_size = start({**config, "learn.aggregate": "by-size"}, samples=[3, 1, 1, 1, 1, 1, 1, 1])
    assert by_size.mean_loss(losses) == 2.0


def test_the_payload_fits_the_budget_if_it_must(config):
    tight = fedlink.Encoder({**config, "compress.budget": "wire"})
    for budget in (60.0, 200.0, 571.7, 900.0):
        sent = tight.encode(update_of(2), budget, 0, 2)
        bits = int.from_bytes(sent.payload, "big").bit_length() if sent.payload else 0
        assert bits <= budget


def test_sample_counts_decide_the_weights(config):
    config = {**config, "learn.aggregate": "by-size", "schedule.policy": "bc"}
    node = fedlink.Encoder(config)
    thetas = []
    for samples in (None, [1] * 8, list(range(1, 9))):
        server = start(config, samples=samples)
        play(server, node)
        thetas.append(server.theta)
    assert (thetas[0] == thetas[1]).all() and (thetas[0] != thetas[2]).any()
    with pytest.raises(ValueError, match="samples: has 3 entries, but data.devices is 8"):
        start(config, samples=[1, 2, 3])
    with pytest.raises(ValueError, match="samples: device 0 has none"):
        start(config, samples=[0] * 8)


def test_an_outcome_is_that_of_a_simulation(config):
    server, node = start(config), fedlink.Encoder(config)
    play(server, node)
    outcome = json.loads(server.outcome_json())
    assert outcome["rounds"] == 1 and outcome["digest"] == server.digest and sum(outcome["scheduled"]) == 2
    assert json.loads(server.config_json()) == server.config
    assert (server.devices, server.k, server.dim, server.symbols, server.power) == (8, 2, DIM, 500, 4.0)
    assert server.rounds_to_do == 4 and server.asks == ["norm"] and server.warnings == []


def test_low_rank_sends_outer_products_of_the_given_layers():
    config = {
        "data.devices": 2,
        "schedule.policy": "bc",
        "compress.scheme": "low-rank",
        "radio.symbols": 400,
        "run.seed": 5,
    }
    layers = [(20, 4, 3), (12,)]
    factors = np.random.default_rng(1).normal(size=(2, 20)).astype(np.float32)
    matrix = np.outer(factors[0], np.sign(factors[1][:12]))
    update = np.concatenate([matrix.ravel(), np.zeros(12)]).astype(np.float32)
    server = fedlink.Server(config, np.zeros(252, np.float32), layers=layers)
    node = fedlink.Encoder(server.config, layers=layers)
    call = server.begin()
    grants = server.report(call.candidates, [node.report(call.asks, update, 0.5, bits, call.t, m)
                                              for m, bits in zip(call.candidates, call.alone_bits)])
    sent = [node.encode(update, grant.budget, call.t, grant.device) for grant in grants]
    assert server.deliver([one.upload(g.device) for one, g in zip(sent, grants)], 1, 0.5) == ["used"]
    # The server decodes the node's upload, which is far more accurate than one without the layers.
    assert np.array_equal(server.theta, sent[0].dense(252))
    blind = fedlink.Encoder(server.config).encode(update, grants[0].budget, call.t, grants[0].device)
    error = [np.linalg.norm(update - one.dense(252)) for one in (sent[0], blind)]
    assert error[0] < 0.5 * error[1]
    with pytest.raises(ValueError, match="layers: have 252 numbers together, but theta0 has 250"):
        fedlink.Server(config, np.zeros(250, np.float32), layers=layers)
    with pytest.raises(ValueError, match="layers: have 252 numbers together, but update has 9"):
        node.encode(np.ones(9, np.float32), 500.0, 0, 0)


def test_the_name_of_version_0_2_is_refused_with_the_new_one():
    for name, now in [("radio", "link_budget"), ("PlanCell", "BoundPoint"), ("PlanPoint", "BoundPoint")]:
        with pytest.raises(AttributeError, match=rf"fedlink\.{name} is called fedlink\.{now}"):
            getattr(fedlink, name)
    with pytest.raises(TypeError, match="run: cell= is called share="):
        fedlink.run("demo", cell="1/2")
    with pytest.raises(AttributeError, match=r"fedlink\.Session is called fedlink\.Server"):
        fedlink.Session  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'Sesion'"):
        fedlink.Sesion  # noqa: B018

"""The numbers that a policy decides by, the channel in detail, and link budgets over seeds."""

import numpy
import pytest

import fedlink

SMALL = {
    "data.devices": 8,
    "data.samples_per_device": 20,
    "learn.model": "softmax",
    "learn.local_steps": 1,
    "schedule.k": 3,
    "run.rounds": 4,
}


class Noting(fedlink.Policy):
    """The devices with the largest norm, which notes it as its score."""

    def __init__(self):
        self.others = []

    def candidates(self, view):
        view.note("threshold", 7.5)
        return numpy.arange(view.devices)

    def asks(self):
        return ["norm"]

    def select(self, view, reports):
        score = numpy.full(view.devices, numpy.nan)
        score[reports.devices] = reports["norm"]
        view.note("score", score)
        rows = numpy.argsort(-reports["norm"], kind="stable")[: view.k]
        return reports.devices[rows], numpy.ones(len(rows))

    def observe(self, record):
        devices = {*record.transmissions["device"].tolist(), *record.others["device"].tolist()}
        self.others.append((len(record.others), len(devices), record.others["report"].min()))


def test_the_log_has_every_device_with_the_numbers_that_the_policy_noted():
    result = fedlink.simulate(SMALL, policy=Noting, log_rounds="all", progress=False)
    log = result.devices
    assert len(log) == 8 * 4
    assert numpy.array_equal(log["score"], log["report"].astype(float))
    assert (log["threshold"] == 7.5).all() and numpy.isnan(log["queue"]).all()
    assert (log["arrival"] == "not-scheduled").sum() == 5 * 4
    plain = fedlink.simulate(SMALL, policy=Noting, progress=False)
    assert plain.devices is None and plain.digest == result.digest


def test_a_built_in_policy_shows_its_probabilities():
    result = fedlink.simulate({**SMALL, "schedule.policy": "optimal"}, log_rounds="all", progress=False)
    p = result.devices["probability"].reshape(4, 8)
    assert numpy.allclose(p.sum(axis=1), 3)


def test_observe_gets_the_devices_that_were_not_scheduled_with_their_reports():
    made = []

    def policy():
        made.append(Noting())
        return made[-1]

    fedlink.simulate(SMALL, policy=policy, progress=False)
    assert [(others, all) for others, all, _ in made[-1].others] == [(5, 8)] * 4
    assert all(report > 0 for _, _, report in made[-1].others)


def test_a_wrong_note_or_log_is_an_error():
    class Wrong(Noting):
        def candidates(self, view):
            view.note(*self.note)
            return numpy.arange(view.devices)

    short = ("score", [1.0, 2.0])
    for note, problem in [(("scores", 1.0), "must be one of"), (short, "one for each of the 8")]:
        Wrong.note = note
        with pytest.raises(ValueError, match=problem):
            fedlink.simulate(SMALL, policy=Wrong, progress=False)
    with pytest.raises(ValueError, match="log_rounds"):
        fedlink.simulate(SMALL, log_rounds="some")
    with pytest.raises(ValueError, match="checkpoint"):
        fedlink.simulate(SMALL, log_rounds="all", checkpoint="x")


def test_amplitudes_give_the_gains_of_blocks_and_of_the_band():
    radio = {
        "data.devices": 6,
        "radio.bandwidth_hz": 3.6e6,
        "radio.uplink_s": 0.01,
        "radio.snr_db": 10.0,
        "radio.access": "ofdma",
        "radio.profile": "tdl-c300",
        "radio.antennas": 2,
    }
    links = fedlink.System(radio).links(3)
    h, blocks = links.amplitudes, links.block_gains
    assert h.shape == (6, 2, blocks.shape[1]) and numpy.iscomplexobj(h)
    assert numpy.allclose((abs(h) ** 2).sum(axis=1), blocks, rtol=1e-9)
    assert numpy.allclose(blocks.mean(axis=1), links.gains, rtol=1e-9)
    flat = fedlink.System({"radio.antennas": 2, "radio.correlation": 0.5}).links(0)
    assert flat.block_gains is None and flat.amplitudes.shape[1:] == (2, 1)
    assert numpy.allclose((abs(flat.amplitudes) ** 2).sum(axis=(1, 2)), flat.gains)
    assert fedlink.System({}).links(0).amplitudes is None


def test_a_link_budget_over_seeds_has_the_means_of_each():
    config = {"radio.snr_db": [20, 0], "data.devices": 6, "schedule.k": 2, "run.seed": 3}
    both = fedlink.link_budget(config, policies=["random", "age"], seeds=2, rounds=20)
    assert both.policies["policy"].tolist() == ["random", "age"]
    alone = [
        fedlink.link_budget({**config, "run.seed": seed}, policies=["random", "age"], rounds=20)
        for seed in (3, 4)
    ]
    spread = both.spread
    rows = (spread["policy"] == "random") & (spread["number"] == "bits")
    bits = [one.policies["bits"][0] for one in alone]
    assert spread["mean"][rows][0] == pytest.approx(numpy.mean(bits))
    assert spread["low"][rows][0] < min(bits) and len(alone[0].spread) == 0
    assert both.policies["uploads_1"] + both.policies["uploads_2"] == pytest.approx([1, 1])
    with pytest.raises(TypeError, match="policies"):
        fedlink.link_budget(config, policies="random")

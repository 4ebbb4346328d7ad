"""The radio in units: links, powers, SNRs, seconds and joules, against numbers worked out here."""

import math
import warnings

import numpy as np
import pytest

import fedlink

#: A ring of eight devices at 500 m; two of them send in a round of 5 ms over 1 MHz.
RING = {
    "learn.model": "softmax",
    "learn.state": "reset",
    "learn.batch": 16,
    "learn.local_steps": 3,
    "data.devices": 8,
    "data.samples_per_device": 60,
    "schedule.k": 2,
    "run.rounds": 3,
    "run.evaluate_every": 1,
    "radio.bandwidth_hz": 1e6,
    "cell.layout": "ring",
    "cell.radius_m": 500,
    "cell.pathloss": "3gpp-macro",
}

#: kT·W with a noise figure of 5 dB.
NOISE = 10 ** ((-174 + 5 - 30) / 10) * 1e6
#: M·P̄/K with P̄ = 7.8 dBm.
POWER = 8 / 2 * 10 ** ((7.8 - 30) / 10)


def test_the_links_of_a_cell_are_those_of_the_formulas():
    links = fedlink.System(RING).links(3)
    assert links.t == 3 and len(links) == 8
    assert links.noise == pytest.approx(NOISE, rel=1e-12, abs=0)
    np.testing.assert_allclose(np.hypot(links.x_m, links.y_m), 500, rtol=1e-12)
    np.testing.assert_allclose(links.distance_m, 500, rtol=1e-12)
    loss = 128.1 + 37.6 * math.log10(0.5)
    np.testing.assert_allclose(links.path_loss_db, loss, rtol=1e-12)
    assert links.shadowing_db.tolist() == [0.0] * 8 and links.line_of_sight.dtype == bool
    np.testing.assert_allclose(links.mean_gains, 10 ** (-loss / 10), rtol=1e-12)
    # The fading on top is the one of the radio without units.
    np.testing.assert_allclose(links.gains / links.mean_gains, fedlink.gains(8, 3), rtol=1e-12)
    np.testing.assert_allclose(links.powers, POWER, rtol=1e-12)
    np.testing.assert_allclose(links.snrs, links.gains * POWER / NOISE, rtol=1e-9)
    np.testing.assert_allclose(links.capacities, np.log2(1 + links.snrs), rtol=1e-12)


def test_with_exact_knowledge_the_estimates_are_the_truth():
    links = fedlink.System(RING).links(0)
    assert links.estimates.tolist() == links.gains.tolist()
    assert links.true_snrs.tolist() == links.snrs.tolist()
    assert links.true_capacities.tolist() == links.capacities.tolist()


def test_a_round_is_the_same_alone_and_after_others():
    config = {**RING, "radio.correlation": 0.9, "cell.shadowing_db": 8, "radio.csi_error": 0.1}
    system = fedlink.System(config)
    in_order = [system.links(t) for t in range(6)]
    alone = fedlink.System(config).links(5)
    assert alone.gains.tolist() == in_order[5].gains.tolist()
    assert alone.estimates.tolist() == in_order[5].estimates.tolist()
    assert in_order[4].gains.tolist() != in_order[5].gains.tolist()


def test_estimates_with_an_error_have_their_own_snr_and_back_off():
    system = fedlink.System({**RING, "radio.csi_error": 0.2, "radio.backoff_db": 3.0})
    links = system.links(1)
    exact = fedlink.System(RING).links(1)
    assert links.gains.tolist() == exact.gains.tolist()
    assert not np.allclose(links.estimates, links.gains, rtol=0.01, atol=0)
    backoff = 10 ** (-3.0 / 10)
    np.testing.assert_allclose(links.snrs, backoff * links.estimates * POWER / NOISE, rtol=1e-9)
    np.testing.assert_allclose(links.capacities, np.log2(1 + links.snrs), rtol=1e-12)
    np.testing.assert_allclose(links.true_snrs, links.gains * POWER / NOISE, rtol=1e-9)
    np.testing.assert_allclose(links.true_capacities, np.log2(1 + links.true_snrs), rtol=1e-12)


def test_estimates_have_the_mean_of_their_law():
    # ĥ ~ CN(0, 1 − ε): the mean of ĝ is 1 − ε.
    system = fedlink.System({**RING, "data.devices": 40, "radio.csi_error": 0.3})
    relative = np.concatenate([system.links(t).estimates / system.links(t).mean_gains for t in range(200)])
    assert relative.mean() == pytest.approx(0.7, abs=4 * 0.7 / math.sqrt(relative.size))


def test_without_a_cell_nothing_is_placed():
    links = fedlink.System({"data.devices": 5, "schedule.k": 1}).links(0)
    assert [links.x_m, links.y_m, links.distance_m, links.path_loss_db, links.line_of_sight] == [None] * 5
    assert links.mean_gains.tolist() == [1.0] * 5 and links.powers.tolist() == [5.0] * 5
    np.testing.assert_allclose(links.capacities, fedlink.capacity(links.gains, 5.0, 1.0), rtol=1e-15)
    assert "x_m" not in links.table.column_names


def test_two_groups_have_the_mean_snrs_that_were_given():
    system = fedlink.System({"data.devices": 10, "radio.snr_db": [20, 0]})
    links = system.links(0)
    np.testing.assert_allclose(links.mean_gains * links.powers / links.noise, [100.0] * 5 + [1.0] * 5)


def test_links_show_as_a_table():
    links = fedlink.System(RING).links(0)
    text = repr(links)
    assert text.startswith("<fedlink.Links of 8 devices in round t = 0>") and "path_loss_db" in text
    assert "116.781" in text
    assert links.table["capacity"].tolist() == links.capacities.tolist()
    assert links.table["line_of_sight"].tolist() == links.line_of_sight.tolist()
    assert "<th>line_of_sight</th>" in links._repr_html_()
    frame = links.table.to_pandas()
    assert frame["line_of_sight"].dtype == bool and len(frame) == 8


@pytest.mark.parametrize("t, error", [(-1, ValueError), (2**32, ValueError), ("1", TypeError)])
def test_a_round_that_cannot_be_is_refused(t, error):
    with pytest.raises(error, match="t: must be"):
        fedlink.System(RING).links(t)


def test_a_session_grants_power_airtime_and_seconds():
    system = fedlink.System(RING)
    server = fedlink.Server({**RING, "schedule.policy": "bc"}, system.theta0())
    links = server.links(0)
    gains, capacities = links
    assert gains.tolist() == links.estimates.tolist() == system.links(0).gains.tolist()
    call = server.begin()
    grants = server.report(call.candidates, np.zeros((len(call.candidates), 0)))
    assert sum(grant.seconds for grant in grants) == pytest.approx(0.005, rel=1e-12)
    for grant in grants:
        assert grant.power == pytest.approx(POWER, rel=1e-12)
        assert grant.seconds == pytest.approx(grant.airtime * 1e-6, rel=1e-12)
        assert grant.budget == pytest.approx(grant.airtime * capacities[grant.device], rel=1e-12)


def test_without_units_a_grant_has_no_seconds(small):
    server = fedlink.Server({**small, "schedule.policy": "bc"}, np.zeros(50, np.float32))
    call = server.begin()
    assert server.report(call.candidates, np.zeros((2, 0)))[0].seconds is None


def test_a_policy_sees_powers_and_snrs_of_every_device():
    seen = []

    class Best(fedlink.Policy):
        def candidates(self, view):
            seen.append((view.t, view.power, view.powers, view.snrs, view.capacities, view.gains, view.noise))
            return np.sort(np.argsort(-view.snrs, kind="stable")[: view.k])

        def select(self, view, reports):
            return reports.devices, np.ones(len(reports))

    inverted = {**RING, "radio.power_policy": "inversion", "cell.layout": "disc", "cell.shadowing_db": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fedlink.simulate(inverted, policy=Best, progress=False)
    system = fedlink.System(inverted)
    for t, power, powers, snrs, capacities, gains, noise in seen:
        links = system.links(t)
        assert powers.tolist() == links.powers.tolist() and len(set(powers.tolist())) > 1
        assert power == pytest.approx(powers.mean(), rel=1e-12)
        assert snrs.tolist() == links.snrs.tolist()
        np.testing.assert_allclose(snrs, gains * powers / noise, rtol=1e-12)
        np.testing.assert_allclose(capacities, np.log2(1 + snrs), rtol=1e-12)
    assert len(seen) == 3


TIMED = {
    **RING,
    "schedule.policy": "bn2",
    "clock.compute": "rate",
    "clock.rate.samples_per_s": 100.0,
    "clock.downlink": "broadcast",
    "clock.broadcast.bps": 1e6,
    "clock.report_bits": 32,
    "clock.report_efficiency": 0.5,
    "energy.compute_w": 2.0,
    "energy.circuit_w": 0.1,
    "energy.pa_efficiency": 0.4,
    "energy.receive_w": 0.3,
}


def test_the_seconds_and_joules_of_a_run_are_those_worked_out_by_hand():
    result = fedlink.simulate(TIMED, progress=False)
    dim, rounds, devices = result.theta.size, 3, 8
    down, train = 32 * dim / 1e6, 3 * 16 / 100
    report = 32 * devices / 0.5 / 1e6
    np.testing.assert_allclose(result.rounds["down_s"], down, rtol=1e-12)
    np.testing.assert_allclose(result.rounds["train_s"], train, rtol=1e-12)
    np.testing.assert_allclose(result.rounds["report_s"], report, rtol=1e-12)
    np.testing.assert_allclose(result.rounds["up_s"], 0.005, rtol=1e-12)
    each = down + train + report + 0.005
    np.testing.assert_allclose(result.rounds["total_seconds"], each * np.arange(1, 4), rtol=1e-12)
    assert result.seconds == pytest.approx(rounds * each, rel=1e-12)
    assert result.phases == pytest.approx(
        {"down_s": 3 * down, "train_s": 3 * train, "report_s": 3 * report, "up_s": 0.015}, rel=1e-12
    )
    sending = POWER / 0.4 + 0.1
    assert result.energy == pytest.approx(
        {
            "compute_j": rounds * devices * 2.0 * train,
            "report_j": rounds * sending * report,
            "transmit_j": rounds * sending * 0.005,
            "receive_j": rounds * devices * 0.3 * down,
            "idle_j": 0.0,
        },
        rel=1e-9,
    )
    assert result.rounds["total_joules"][-1] == pytest.approx(result.joules, rel=1e-12)
    assert result.outages == result.late == 0


def test_the_energy_of_the_devices_adds_up():
    result = fedlink.simulate({**TIMED, "energy.idle_w": 0.01}, progress=False)
    by_kind = result.device_energy
    assert set(by_kind) == set(result.energy) and all(len(joules) == 8 for joules in by_kind.values())
    for kind, joules in by_kind.items():
        assert joules.sum() == pytest.approx(result.energy[kind], rel=1e-9)
    by_device = sum(by_kind.values())
    assert by_device.sum() == pytest.approx(result.joules, rel=1e-9)
    assert result.worst_device_joules == pytest.approx(by_device.max(), rel=1e-12)
    airtime = result.transmissions["airtime"] * 1e-6
    transmit = np.bincount(result.transmissions["device"], weights=airtime * (POWER / 0.4 + 0.1), minlength=8)
    np.testing.assert_allclose(by_kind["transmit_j"], transmit, rtol=1e-9)


def test_without_units_there_are_no_seconds_and_no_joules(small):
    result = fedlink.simulate(small, progress=False)
    assert [result.seconds, result.joules, result.phases, result.energy] == [None] * 4
    assert result.device_energy is None and result.worst_device_joules is None
    assert np.isnan(result.rounds["total_seconds"]).all() and np.isnan(result.rounds["idle_j"]).all()
    with pytest.raises(ValueError, match="no seconds without radio.bandwidth_hz"):
        result.plot(x="seconds")


def test_late_uploads_and_outages_are_counted():
    late = fedlink.simulate(
        {
            **TIMED,
            "schedule.policy": "bc",
            "clock.rate.samples_per_s": [90.0, 110.0],
            "clock.deadline_s": 0.74,
        },
        progress=False,
    )
    assert late.late == np.sum(late.transmissions["arrival"] == "late") == late.rounds["late"].sum() > 0
    wrong = {**RING, "radio.csi_error": 0.3, "run.rounds": 6, "schedule.policy": "random"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lost = fedlink.simulate(wrong, progress=False)
    assert lost.outages == np.sum(lost.transmissions["arrival"] == "outage") > 0
    # The outcome of an upload follows from the truth and the estimate of the link.
    system = fedlink.System(wrong)
    for t, device, arrival in zip(*(lost.transmissions[name] for name in ("round", "device", "arrival"))):
        links = system.links(int(t) - 1)
        carried = links.true_capacities[device] >= links.capacities[device]
        assert (arrival == "outage") == (not carried)


def test_a_notebook_shows_seconds_and_joules():
    result = fedlink.simulate(TIMED, progress=False)
    html = result._repr_html_()
    assert f"<th>seconds</th><td>{result.seconds:.6g}</td>" in html
    assert f"<th>joules</th><td>{result.joules:.6g}</td>" in html


@pytest.mark.parametrize("x, label", [("seconds", "seconds"), ("joules", "joules of all devices")])
def test_a_curve_can_be_drawn_by_seconds_and_joules(x, label):
    import matplotlib

    matplotlib.use("agg")
    result = fedlink.simulate(TIMED, progress=False)
    axes = result.plot(x=x)
    assert axes.get_xlabel() == label
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), result.rounds[f"total_{x}"])


def test_the_runs_of_an_experiment_have_their_costs(tmp_path):
    study = fedlink.run(TIMED, out=tmp_path / "out", progress=False)
    run = study.curves[0].runs[0]
    result = fedlink.simulate(TIMED, progress=False)
    assert run.seconds == result.seconds and run.joules == result.joules
    assert run.worst_device_joules == result.worst_device_joules
    assert run.rounds["total_seconds"].tolist() == result.rounds["total_seconds"].tolist()


class Flat(fedlink.Fading):
    """The same gain for all, over this number of antennas."""

    def __init__(self, antennas=1):
        self.antennas = antennas

    def gain(self, t, device):
        return float(self.antennas)


def test_a_custom_fading_law_works_in_a_cell_with_a_downlink():
    config = {**TIMED, "clock.broadcast.bps": 0.0}
    by_class = fedlink.simulate(config, fading=Flat, progress=False)
    by_object = fedlink.simulate(config, fading=Flat(), progress=False)
    by_array = fedlink.simulate(config, fading=np.ones((8, 3)), progress=False)
    assert by_class.digest == by_object.digest == by_array.digest
    # 46 dBm over 20 MHz at a noise figure of 9 dB, all devices alike.
    gain = 10 ** (-(128.1 + 37.6 * math.log10(0.5)) / 10)
    snr = 10 ** ((46 - 30) / 10) * gain / (10 ** ((-174 + 9 - 30) / 10) * 20e6)
    seconds = 32 * by_class.theta.size / (20e6 * math.log2(1 + snr))
    np.testing.assert_allclose(by_class.rounds["down_s"], seconds, rtol=1e-9)


def test_antennas_of_a_custom_law_make_estimates_more_exact():
    def spread(antennas):
        config = {**RING, "radio.csi_error": 0.2, "run.rounds": 40}
        server = fedlink.Server(config, np.zeros(5, np.float32), fading=Flat(antennas))
        links = [server.links(t) for t in range(40)]
        relative = np.concatenate([one.estimates / one.gains for one in links])
        return relative.std()

    assert spread(16) < 0.5 * spread(1)
    with pytest.raises(ValueError, match="Flat.antennas: must be in 1..=1024, but is 0"):
        fedlink.simulate(RING, fading=lambda: Flat(0), progress=False)


def test_the_link_budget_of_a_ring_is_that_of_the_formulas():
    budget = fedlink.link_budget(TIMED, rounds=400)
    devices = budget.devices
    assert budget.rounds == budget.policy_rounds == 400
    assert budget.symbols == 5000 and budget.uplink_s == 0.005
    assert budget.noise == pytest.approx(NOISE, rel=1e-12, abs=0) and budget.dim == 7850
    np.testing.assert_allclose(devices["path_loss_db"], 128.1 + 37.6 * math.log10(0.5), rtol=1e-12)
    np.testing.assert_allclose(devices["power"], POWER, rtol=1e-12)
    mean_snr = POWER * 10 ** (-(128.1 + 37.6 * math.log10(0.5)) / 10) / NOISE
    # 3200 draws of an exponential with that mean.
    found = np.mean(10 ** (devices["snr_db"] / 10))
    assert found == pytest.approx(mean_snr, rel=4 / math.sqrt(3200))
    np.testing.assert_allclose(devices["rate_bps"], devices["capacity"] * 1e6, rtol=1e-12)
    np.testing.assert_allclose(devices["bits_alone"], devices["capacity"] * 5000, rtol=1e-9)
    np.testing.assert_allclose(devices["bits_shared"], devices["capacity"] * 5000 / 2, rtol=1e-9)
    assert devices["lost"].tolist() == [0.0] * 8
    system = fedlink.System(TIMED)
    capacities = np.array([system.links(t).capacities for t in range(400)])
    np.testing.assert_allclose(devices["capacity"], capacities.mean(axis=0), rtol=1e-12)
    assert fedlink.dsgd_bits(7850, 1) == pytest.approx(budget.smallest_bits, abs=2e-3)
    silent = capacities * 2500 < budget.smallest_bits
    np.testing.assert_allclose(devices["silent"], silent.mean(axis=0), rtol=1e-12)


def test_the_costs_of_a_policy_without_reports_are_those_of_its_run():
    config = {**TIMED, "energy.idle_w": 0.01, "clock.rate.samples_per_s": [50.0, 200.0], "run.rounds": 5}
    for policy in ("bc", "random", "round-robin"):
        config["schedule.policy"] = policy
        budget, run = fedlink.link_budget(config, rounds=5), fedlink.simulate(config, progress=False)
        policies = budget.policies
        row = policies["policy"].tolist().index(policy)
        assert policies["seconds"][row] == pytest.approx(run.seconds / 5, rel=1e-12)
        assert policies["joules"][row] == pytest.approx(run.joules / 5, rel=1e-12)
        for name in ("down_s", "train_s", "report_s", "up_s"):
            assert policies[name][row] == pytest.approx(run.phases[name] / 5, rel=1e-12)
        assert policies["bits"][row] == pytest.approx(run.transmissions["budget"].sum() / 5, rel=1e-12)
        assert policies["trained"][row] == pytest.approx(run.rounds["trained"].mean(), rel=1e-12)
        assert budget.scheduled[policy].tolist() == run.summary["scheduled"]
        # Reports take time where they are needed, and all devices must train for them.
        other = policies["policy"].tolist().index("bn2")
        assert policies["report_s"][other] == pytest.approx(32 * 8 / 0.5 / 1e6, rel=1e-12)
        assert policies["trained"][other] == 8.0


def test_estimates_with_an_error_show_as_losses():
    with pytest.warns(RuntimeWarning, match="csi_error"):
        wrong = fedlink.link_budget({**RING, "radio.csi_error": 0.3}, rounds=300)
    # Without a back-off nearly half of the estimates are above the truth.
    assert 0.3 < wrong.devices["lost"].mean() < 0.6
    assert (wrong.policies["lost"] > 0.2).all()


def test_the_link_budget_without_units_has_no_seconds(small):
    budget = fedlink.link_budget(small, rounds=20)
    assert budget.bandwidth_hz is None and budget.rounds == 20
    assert "seconds" not in budget.policies.column_names and "x_m" not in budget.devices.column_names
    assert repr(budget).startswith(
        "<fedlink.LinkBudget: 500 symbols per round, P̄ = 1, σ² = 1, means over 20 rounds>"
    )
    assert "<th>snr_db</th>" in budget._repr_html_()


def test_of_a_sweep_the_first_values_are_taken():
    text = """
        [data]
        devices = 8
        [learn]
        model = "softmax"
        [sweep]
        "schedule.policy" = ["bc", "random"]
        "schedule.k" = [2, 4]
    """
    budget = fedlink.link_budget(text, rounds=10)
    assert budget.keys == {"schedule.policy": "bc", "schedule.k": "2"}
    assert "schedule.k = 2" in repr(budget)
    assert budget.scheduled["bc"].sum() == 20
    assert fedlink.link_budget(text, settings={"schedule.k": 4}, rounds=10).scheduled["bc"].sum() == 40


def test_custom_parts_have_a_link_budget_too():
    class First(fedlink.Policy):
        def candidates(self, view):
            return np.arange(view.k)

        def select(self, view, reports):
            return reports.devices, np.ones(len(reports))

    config = {**RING, "schedule.policy": "first"}
    budget = fedlink.link_budget(config, fading=Flat, parts={"first": First}, rounds=30)
    assert "first" in budget.policies["policy"].tolist()
    assert budget.scheduled["first"].tolist() == [30, 30] + [0] * 6
    mean_snr = POWER * 10 ** (-(128.1 + 37.6 * math.log10(0.5)) / 10) / NOISE
    np.testing.assert_allclose(budget.devices["snr_db"], 10 * math.log10(mean_snr), rtol=1e-12)
    # An array of gains begins again where it ends.
    gains = np.random.default_rng(1).exponential(size=(8, 3))
    of_array = fedlink.link_budget(RING, fading=gains, rounds=9).devices["snr_db"]
    np.testing.assert_allclose(of_array, 10 * np.log10(mean_snr * gains.mean(axis=1)), rtol=1e-9)


def test_an_experiment_without_a_link_budget_is_refused():
    with pytest.raises(ValueError, match="experiment: fig4 is about the bound"):
        fedlink.link_budget("fig4")
    with pytest.raises(ValueError, match="rounds: must be in"):
        fedlink.link_budget(RING, rounds=0)
    with pytest.raises(ZeroDivisionError):
        fedlink.link_budget(RING, fading=type("Broken", (fedlink.Fading,), {"gain": lambda *_: 1 / 0}))

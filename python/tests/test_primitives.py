"""Every formula against an independent computation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedlink

floats = st.floats(-100, 100, width=32)
updates = st.lists(floats | st.sampled_from([0.0, 1.0, -1.0]), min_size=2, max_size=40).map(np.float32)


def brute_dsgd(update, q):
    """Section III of the paper, word for word: q largest, q smallest, the side with the larger mean."""
    order = sorted(range(len(update)), key=lambda i: (-update[i], i))[:q]
    top = sorted(i for i in order if update[i] > 0)
    order = sorted(range(len(update)), key=lambda i: (update[i], i))[:q]
    bottom = sorted(i for i in order if update[i] < 0)
    mean = lambda kept: math.fsum(abs(float(update[i])) for i in kept) / len(kept) if kept else 0.0
    if mean(top) >= mean(bottom):
        return top, mean(top)
    return bottom, -mean(bottom)


@given(updates, st.data())
def test_dsgd_keeps_the_same_entries_as_the_paper(update, data):
    q = data.draw(st.integers(0, len(update) // 2))
    indices, value = fedlink.dsgd(update, q)
    kept, mean = brute_dsgd(update.tolist(), q)
    assert indices.tolist() == kept
    assert value == pytest.approx(mean, rel=1e-6)
    dense = np.zeros_like(update)
    dense[indices] = value
    assert (fedlink.dsgd_dense(update, q) == dense).all()


@given(updates, st.data())
def test_an_encoded_update_is_decoded(update, data):
    q = data.draw(st.integers(0, len(update) // 2))
    payload = fedlink.encode(update, q)
    indices, value = fedlink.decode(payload, len(update), q)
    sent, mean = fedlink.dsgd(update, q)
    assert indices.tolist() == sent.tolist()
    assert q == 0 or value == mean
    assert 8 * len(payload) <= fedlink.dsgd_bits(len(update), q) + 33 if q else payload == b""


@given(st.integers(1, 300), st.data())
def test_bits_are_those_of_exact_integers(dim, data):
    q = data.draw(st.integers(0, dim // 2))
    assert fedlink.dsgd_bits(dim, q) == pytest.approx(math.log2(math.comb(dim, q)) + 33, abs=1e-10)


@given(st.integers(1, 200), st.floats(0, 400), st.sampled_from(["d-sgd", "random-sparse"]))
def test_the_largest_q_is_the_one_a_scan_finds(dim, bits, scheme):
    cost = {
        "d-sgd": lambda q: math.log2(math.comb(dim, q)) + 33,
        "random-sparse": lambda q: math.log2(math.comb(dim, q)) + 33 * q,
    }[scheme]
    max_q = dim // 2 if scheme == "d-sgd" else dim
    near = [q for q in range(1, max_q + 1) if abs(cost(q) - bits) < 1e-9]
    if not near:
        assert fedlink.largest_q(dim, bits, scheme) == max(
            [q for q in range(1, max_q + 1) if cost(q) <= bits], default=0
        )


@given(st.integers(1, 200), st.floats(0, 8000))
def test_the_largest_level_is_that_of_the_formula_where_there_is_one(dim, bits):
    padded = 1 << (dim - 1).bit_length()
    assert fedlink.largest_q(dim, bits, "rand-k") == min(dim, int(bits // 32))
    assert fedlink.largest_q(dim, bits, "sign") == max(0, min(dim, math.floor(bits - 32)))
    assert fedlink.largest_q(dim, bits, "eden") == max(0, min(padded, math.floor(bits - 32)))
    for scheme in ["qsgd", "low-rank"]:
        with pytest.raises(ValueError, match="depends on the update"):
            fedlink.largest_q(dim, bits, scheme)


def test_an_audit_draws_the_same_as_both_ends():
    update = np.random.default_rng(3).normal(size=60).astype(np.float32)
    config = {"compress.scheme": "rand-k", "run.seed": 7}
    budget, t, device = 32.0 * 9, 4, 2
    sent = fedlink.Encoder(config).encode(update, budget, t, device)
    indices, values = sent.own
    known = {"dim": 60, "budget": budget, "alone_bits": budget, "scheme": "rand-k"}
    report = float(fedlink.norm(update))
    assert fedlink.audit("norm", report, indices, values, **known, seed=7, t=t, device=device) is None
    compressed = float(np.linalg.norm(values.astype(np.float64)))
    right = {"seed": 7, "t": t, "device": device}
    assert fedlink.audit("compressed-norm", compressed, indices, values, **known, **right) is None
    found = fedlink.audit("compressed-norm", 9 * compressed, indices, values, **known, **right)
    assert "allows at most" in found


def test_capacity_is_shannons():
    gains = [0.0, 1e-12, 0.3, 2.0, 50.0]
    expected = [math.log1p(g * 40 / 2) / math.log(2) for g in gains]
    assert fedlink.capacity(gains, 40, 2).tolist() == pytest.approx(expected, rel=1e-14)


weights = st.lists(st.floats(0, 1e6), min_size=1, max_size=20)


@given(weights, st.data(), st.integers(1, 10**6))
def test_slots_add_up_and_make_bits_proportional_to_weights(weights, data, symbols):
    capacities = data.draw(st.lists(st.floats(1e-3, 20), min_size=len(weights), max_size=len(weights)))
    slots = fedlink.split_slots(weights, capacities, symbols)
    assert slots.sum() == pytest.approx(symbols)
    if max(weights) > 0:
        bits = slots * capacities
        # Of weights only the ratios count: the largest is 1, lest the smallest numbers there are give
        # infinity.
        ratios = np.array(weights) / max(weights)
        expected = ratios * (symbols / (ratios / capacities).sum())
        assert bits == pytest.approx(expected, rel=1e-6, abs=1e-9)
    whole = fedlink.split_slots(weights, capacities, symbols, whole=True)
    assert whole.sum() == symbols and (whole == np.floor(whole)).all() and (abs(whole - slots) <= 1).all()


def test_a_link_next_to_nothing_gets_nothing():
    assert fedlink.split_slots([1, 1], [5e-324, 1], 10).tolist() == [0, 10]


@given(st.data(), st.integers(1, 12))
def test_select_agrees_with_sorting(data, devices):
    number = st.integers(0, 5).map(float)  # few values, so that there are ties
    gains = data.draw(st.lists(number, min_size=devices, max_size=devices))
    norms = data.draw(st.lists(number, min_size=devices, max_size=devices))
    k = data.draw(st.integers(1, devices))
    kc = data.draw(st.integers(k, devices))
    best = lambda values, among, count: sorted(sorted(among, key=lambda m: (-values[m], m))[:count])
    everyone = range(devices)
    expected = {
        "bc": (best(gains, everyone, k), None, best(gains, everyone, k)),
        "bn2": (best(norms, everyone, k), norms, list(everyone)),
        "bc-bn2": (best(norms, best(gains, everyone, kc), k), norms, best(gains, everyone, kc)),
        "bn2-c": (best(norms, everyone, k), norms, list(everyone)),
    }
    for policy, (winners, shares, asked) in expected.items():
        chosen, given_weights = fedlink.select(policy, k, gains, norms, kc=kc)
        assert chosen.tolist() == winners
        assert given_weights.tolist() == [1.0 if shares is None else shares[m] for m in winners]
        assert fedlink.candidates(policy, k, gains, kc=kc).tolist() == asked


def test_the_bound_is_the_theorems_recursion():
    m, k, tau, mu, l, g, gamma, x = 50, 4, 3, 0.5, 4.0, 2.0, 1.5, 100.0
    losses = fedlink.bound(
        devices=m, k=k, tau=tau, mu=mu, l=l, g=g, gamma=gamma, distance0=x, rounds=40, rate=0.1, rho=0.25
    )
    assert len(losses) == 41
    eta, rho = 0.1, 0.25
    for loss in losses:
        assert loss == pytest.approx(l / 2 * x, rel=1e-12)
        a = 1 - mu * rho * eta * (tau - eta * (tau - 1))
        b = (
            (m - k) * rho * eta**2 * tau**2 * g**2 / (k * (m - 1))
            + rho * (1 + mu * (1 - eta)) * eta**2 * g**2 * tau * (tau - 1) * (2 * tau - 1) / 6
            + rho * eta**2 * (tau**2 + tau - 1) * g**2
            + 2 * rho * eta * (tau - 1) * gamma
        )
        x = a * x + b


def test_a_rate_may_be_a_number_text_or_an_array():
    same = [
        fedlink.bound(rounds=30, rate=rate, rho=0.5) for rate in (0.1, "0.1", [0.1] * 30, np.full(30, 0.1))
    ]
    assert all((losses == same[0]).all() for losses in same)


def test_the_plan_is_the_best_of_its_grid_and_the_commands(command):
    import json

    plan = fedlink.bound_plan(devices=12, rounds=60, taus=(1, 4), gamma=2.0)
    assert plan.best == min(plan.points, key=lambda point: (point.loss, point.k, point.tau))
    assert [(point.k, point.tau) for point in plan.points] == [
        (k, tau) for k in range(1, 13) for tau in range(1, 5)
    ]
    shown = json.loads(
        command(
            "bound", "plan", "--devices", 12, "--rounds", 60, "--tau", "1..4", "--gamma", 2, "--json"
        ).stdout
    )
    assert [point["loss"] for point in shown["points"]] == [point.loss for point in plan.points]
    assert shown["eta"] == plan.rate
    assert plan.by_horizon[-1].loss == plan.best.loss


def test_the_reports_that_a_policy_needs_are_known():
    asked = {policy: fedlink.asks(policy) for policy in ("bc", "bn2", "bc-bn2", "bn2-c", "random")}
    assert asked == {
        "bc": [],
        "bn2": ["norm"],
        "bc-bn2": ["norm"],
        "bn2-c": ["compressed-norm"],
        "random": [],
    }


@given(st.integers(0, 50), st.integers(0, 20))
def test_gains_are_those_of_a_run(round, seed):
    system = fedlink.System(
        {"data.devices": 5, "data.samples_per_device": 10, "learn.model": "softmax", "run.seed": seed}
    )
    assert fedlink.gains(5, round, seed).tolist() == system.gains(round).tolist()
    assert fedlink.gains(5, round, seed, fading="static").tolist() == [1.0] * 5


@given(updates, st.data())
def test_no_honest_device_is_accused_and_a_gross_lie_is(update, data):
    dim = len(update)
    if dim < 4 or not update.any():
        return
    q, alone = sorted(data.draw(st.tuples(st.integers(1, dim // 2), st.integers(1, dim // 2))))
    indices, value = fedlink.dsgd(update, q)
    if value == 0:
        return
    known = {"dim": dim, "budget": fedlink.dsgd_bits(dim, q), "alone_bits": fedlink.dsgd_bits(dim, alone)}
    largest = lambda bits: fedlink.largest_q(dim, bits)
    if (largest(known["budget"]), largest(known["alone_bits"])) != (q, alone):
        return
    alone_norm = float(np.linalg.norm(fedlink.dsgd_dense(update, alone).astype(np.float64)))
    assert fedlink.audit("norm", fedlink.norm(update), indices, value, **known) is None
    assert fedlink.audit("compressed-norm", alone_norm, indices, value, **known) is None
    assert "allows at most" in fedlink.audit("norm", 1e9, indices, value, **known)
    assert "takes at least" in fedlink.audit("norm", 0.0, indices, value, **known)

"""Any input: a ValueError or a TypeError with the reason, or an answer. Never a crash."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import fedlink

update = np.float32([0.5, -4, 1.5, 0, -2])

REFUSED = [
    (
        lambda: fedlink.dsgd(update.astype(np.float64), 1),
        TypeError,
        "update: must be an array of float32, but is of float64",
    ),
    (lambda: fedlink.dsgd([0.5, 1.0], 1), TypeError, "float32"),
    (lambda: fedlink.dsgd(update.reshape(1, 5), 1), ValueError, "update: must have one dimension, but has 2"),
    (lambda: fedlink.dsgd(np.float32([1, np.nan]), 1), ValueError, "update: entry 1 is NaN"),
    (lambda: fedlink.dsgd(np.float32([np.inf, 1]), 1), ValueError, "update: entry 0 is inf"),
    (lambda: fedlink.dsgd(update, 3), ValueError, r"q: must be in 0..=2, but is 3"),
    (lambda: fedlink.dsgd(update, -1), ValueError, "q: must be in 0..=2, but is -1"),
    (lambda: fedlink.dsgd(update, 10**30), ValueError, "q: must be in"),
    (lambda: fedlink.dsgd(update, 1.5), TypeError, "q: must be a whole number, but is of type float"),
    (lambda: fedlink.dsgd("text", 1), ValueError, "one dimension"),
    (lambda: fedlink.dsgd(None, 1), ValueError, "one dimension"),
    (lambda: fedlink.dsgd_bits(0, 0), ValueError, "dim"),
    (lambda: fedlink.dsgd_bits(10, 6), ValueError, "q: must be in 0..=5"),
    (lambda: fedlink.largest_q(10, float("nan")), ValueError, "bits"),
    (lambda: fedlink.largest_q(10, -1.0), ValueError, "bits"),
    (lambda: fedlink.largest_q(10, 10**400), ValueError, "too large"),
    (lambda: fedlink.largest_q(10, 100, "d-sdg"), ValueError, "d-sdg.*did you mean .d-sgd"),
    (lambda: fedlink.capacity([-1.0], 1, 1), ValueError, "gains: entry 0 is -1, but must be at least 0"),
    (lambda: fedlink.capacity([1.0], 0, 1), ValueError, "power"),
    (lambda: fedlink.capacity([1.0], 1, float("inf")), ValueError, "noise"),
    (lambda: fedlink.capacity([1e308], 1e308, 1), ValueError, "too large for a float"),
    (lambda: fedlink.capacity(["a"], 1, 1), TypeError, "gains: must be an array of real numbers"),
    (lambda: fedlink.capacity([1j], 1, 1), TypeError, "gains"),
    (
        lambda: fedlink.split_slots([1], [1, 2], 10),
        ValueError,
        "capacities: has 2 entries, but weights has 1",
    ),
    (lambda: fedlink.split_slots([], [], 10), ValueError, "weights: is empty"),
    (lambda: fedlink.split_slots([1], [1], 0), ValueError, "symbols"),
    (lambda: fedlink.select("bn3", 1, [1.0], [1.0]), ValueError, "bn3.*did you mean"),
    (lambda: fedlink.select("bn2", 2, [1.0], [1.0]), ValueError, "k: must be in 1..=1, but is 2"),
    (lambda: fedlink.select("bn2", 1, [1.0]), ValueError, "norms: bn2 chooses by the reports of devices"),
    (
        lambda: fedlink.select("bn2", 1, [1.0, 2.0], [1.0]),
        ValueError,
        "norms: has 1 entries, but gains has 2",
    ),
    (lambda: fedlink.select("bn2", 1, [1.0], [1e300]), ValueError, "as float32"),
    (lambda: fedlink.select("bc", 1, []), ValueError, "gains: is empty"),
    (lambda: fedlink.select("bc-bn2", 2, [1.0, 2, 3], [1, 2, 3], kc=1), ValueError, "kc: must be in 2..=3"),
    (lambda: fedlink.decode(b"", 5, 2), ValueError, "payload"),
    (lambda: fedlink.decode(b"\x00" * 100, 5, 2), ValueError, "payload"),
    (lambda: fedlink.decode(fedlink.encode(update, 2)[:-1], 5, 2), ValueError, "payload"),
    (lambda: fedlink.decode(fedlink.encode(update, 2) + b"x", 5, 2), ValueError, "payload"),
    (lambda: fedlink.decode("text", 5, 2), TypeError, "payload"),
    (lambda: fedlink.audit("size", 1.0, [0], 1.0, 9, 40.0, 40.0), ValueError, "ask: must be one of"),
    (lambda: fedlink.audit("norm", 1.0, [9], 1.0, 9, 40.0, 40.0), ValueError, "index 9 is out of range"),
    (lambda: fedlink.audit("norm", 1.0, [0], 1.0, 9, -1.0, 40.0), ValueError, "budget"),
    (lambda: fedlink.gains(3, 0, fading="rayliegh"), ValueError, "did you mean .rayleigh"),
    (lambda: fedlink.bound(k=200), ValueError, "k: must be in 1..=100"),
    (lambda: fedlink.bound(rate=2.0), ValueError, "rate"),
    (lambda: fedlink.bound(rate="exp("), ValueError, "rate: expected a number"),
    (lambda: fedlink.bound(rate=[0.1]), ValueError, "rate: has 1 entries for 1000 rounds"),
    (lambda: fedlink.bound(rho=1.5), ValueError, "rho"),
    (lambda: fedlink.bound(mu=float("nan")), ValueError, "mu"),
    (lambda: fedlink.bound(choice="worst"), ValueError, "choice"),
    (lambda: fedlink.bound_plan(ks=(5, 2)), ValueError, "ks"),
    (lambda: fedlink.bound_plan(target=-1.0), ValueError, "target"),
    (lambda: fedlink.bound_plan(color="red"), TypeError, "color"),
    (lambda: fedlink.simulate(5), TypeError, "config: must be a dictionary"),
    (lambda: fedlink.simulate({"schedule.kk": 5}), ValueError, "did you mean schedule.k?"),
    (lambda: fedlink.simulate({"schedule": {"polcy": "bc"}}), ValueError, "did you mean schedule.policy?"),
    (lambda: fedlink.simulate({"schedule.k": "many"}), ValueError, "schedule.k"),
    (lambda: fedlink.simulate({"schedule.k": 0}), ValueError, "schedule.k"),
    (lambda: fedlink.simulate({"schedule.k": object()}), ValueError, "schedule.k: a value of type object"),
    (lambda: fedlink.simulate({1: 2}), TypeError, "keys must be text"),
    (lambda: fedlink.simulate({"run.seeds": 3}), ValueError, "run.seeds"),
    (lambda: fedlink.simulate({"data.dataset": "no-such-data"}), ValueError, "neither a known data set"),
    (lambda: fedlink.simulate("[schedule]\nk = -1"), ValueError, "schedule"),
    (lambda: fedlink.simulate({}, policy="bn22"), ValueError, "schedule.policy: is .bn22.*did you mean"),
    (lambda: fedlink.simulate({"schedule.k": [1, 2]}), ValueError, "makes 2 curves, but exactly one"),
    (lambda: fedlink.simulate("demo"), ValueError, "config"),
    (lambda: fedlink.simulate({}, task=object()), TypeError, "task"),
]


@pytest.mark.parametrize("call, kind, reason", REFUSED)
def test_impossible_arguments_are_refused_with_the_reason(call, kind, reason):
    with pytest.raises(kind, match=reason):
        call()


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        fedlink.simulate(tmp_path / "none.toml")
    with pytest.raises(FileNotFoundError):
        fedlink.simulate(str(tmp_path / "none.toml"))
    # A path is no setting, whatever its file contains.
    with pytest.raises(FileNotFoundError):
        fedlink.simulate(str(tmp_path / "k=5.toml"))


def test_a_system_refuses_arguments_that_do_not_fit_it(small):
    system = fedlink.System(small)
    theta = system.theta0()
    refused = [
        (
            lambda: system.train(theta[:-1], 0, 0),
            "theta: has 7849 entries, but the model has 7850 parameters",
        ),
        (lambda: system.train(theta, 0, 8), "device: must be in 0..=7, but is 8"),
        (lambda: system.train(theta, -1, 0), "round"),
        (lambda: system.samples(8), "device: must be in 0..=7, but is 8"),
        (lambda: system.gains(2**40), "round"),
    ]
    for call, reason in refused:
        with pytest.raises(ValueError, match=reason):
            call()
    with pytest.raises(TypeError):
        system.evaluate(theta.astype(np.float64))
    with pytest.raises(ValueError, match="learn.state"):
        fedlink.System({**small, "learn.state": "keep"}).train(theta, 0, 0)


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.complex_numbers(),
    st.lists(st.floats(), max_size=6),
    st.lists(st.integers(), max_size=6),
    st.lists(st.lists(st.floats(), max_size=2), max_size=2),
    arrays.arrays(arrays.scalar_dtypes(), arrays.array_shapes(max_dims=2, max_side=6)),
    arrays.arrays(np.float32, st.integers(0, 8)),
    arrays.arrays(np.float64, st.integers(0, 8)),
    st.sampled_from(["bc", "bn2", "bc-bn2", "bn2-c", "d-sgd", "random-sparse", "best"]),
)

FUNCTIONS = [
    (fedlink.dsgd, 2, 2),
    (fedlink.dsgd_dense, 2, 2),
    (fedlink.dsgd_bits, 2, 2),
    (fedlink.largest_q, 2, 3),
    (fedlink.capacity, 3, 3),
    (fedlink.split_slots, 3, 4),
    (fedlink.candidates, 3, 4),
    (fedlink.asks, 1, 1),
    (fedlink.audit, 7, 8),
    (fedlink.select, 3, 5),
    (fedlink.encode, 2, 2),
    (fedlink.decode, 3, 3),
]


@settings(max_examples=1500, deadline=None)
@given(st.data())
def test_any_arguments_give_an_answer_or_a_reason(data):
    function, fewest, largest = data.draw(st.sampled_from(FUNCTIONS))
    arguments = data.draw(st.lists(anything, min_size=fewest, max_size=largest))
    try:
        function(*arguments)
    except (ValueError, TypeError) as error:
        assert str(error)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from("k tau mu l g gamma distance0 rate rho dim symbols power noise seed".split()),
        anything,
    )
)
def test_any_parameters_of_the_bound_give_an_answer_or_a_reason(parameters):
    try:
        assert np.isfinite(fedlink.bound(rounds=5, devices=8, **parameters)).all()
    except (ValueError, TypeError) as error:
        assert str(error)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=64), st.integers(1, 10**6), st.integers(0, 10**4))
def test_any_payload_gives_an_update_or_a_reason(payload, dim, q):
    try:
        indices, value = fedlink.decode(payload, dim, q)
    except ValueError as error:
        assert str(error)
    else:
        assert (np.diff(indices) > 0).all() and all(0 <= i < dim for i in indices) and np.isfinite(value)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["schedule.k", "schedule.policy", "learn.rate", "radio.symbols", "x", "run"]),
        anything,
    )
)
def test_any_configuration_is_read_or_refused(config):
    try:
        # No data of that name: a configuration that is read is rejected there at the latest, before anything
        # runs.
        fedlink.simulate({**config, "data.dataset": "no-such-data"})
    except (ValueError, TypeError) as error:
        assert str(error)
    else:
        raise AssertionError("there is no such data set")

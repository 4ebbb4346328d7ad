"""Custom parts: policies, compressors, fading laws and tasks written in Python."""

import pickle
import traceback

import numpy as np
import pytest

import fedlink

POLICIES = ["bc", "bn2", "bc-bn2", "bn2-c"]


class PythonBn2(fedlink.Policy):
    """BN2, written by a user."""

    def asks(self):
        return ["norm"]

    def select(self, view, reports):
        norms = reports["norm"]
        order = sorted(range(len(reports)), key=lambda i: (-norms[i], reports.devices[i]))[: view.k]
        order.sort(key=lambda i: reports.devices[i])
        return reports.devices[order], norms[order]


class PythonPolicy(fedlink.Policy):
    """Any policy of the library by its primitives."""

    def __init__(self, of):
        self.of = of

    def candidates(self, view):
        return fedlink.candidates(self.of, view.k, view.gains)

    def asks(self):
        return fedlink.asks(self.of)

    def select(self, view, reports):
        norms = np.zeros(view.devices, dtype=np.float32)
        if reports.values.shape[1]:
            norms[reports.devices] = reports.values[:, 0]
        return fedlink.select(self.of, view.k, view.gains, norms)


@pytest.mark.parametrize("state", ["keep", "reset"])
def test_bn2_written_in_python_gives_the_digest_of_bn2(small, state):
    config = {**small, "schedule.policy": "bn2", "learn.state": state}
    assert fedlink.simulate(config, policy=PythonBn2).digest == fedlink.simulate(config).digest


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_by_its_primitives_gives_its_digest(small, policy):
    config = {**small, "schedule.policy": policy}
    custom = fedlink.simulate(config, policy=lambda: PythonPolicy(policy))
    assert custom.digest == fedlink.simulate(config).digest


def test_a_part_is_called_by_its_class_or_by_the_name_given(small):
    class Named(PythonBn2):
        name = "bn2-by-hand"

    cases = [
        ({"policy": PythonBn2}, "python-bn2"),
        ({"policy": PythonBn2()}, "python-bn2"),
        ({"policy": lambda: PythonBn2()}, "python-bn2"),
        ({"policy": Named}, "bn2-by-hand"),
        ({"parts": {"mine": PythonBn2}, "policy": "mine"}, "mine"),
    ]
    for given, name in cases:
        result = fedlink.simulate(small, **given)
        assert result.config["schedule"]["policy"] == name
        assert "PythonBn2" in result.config["custom"][name] or "Named" in result.config["custom"][name]
        assert name in result._repr_html_()
    assert "custom" not in fedlink.simulate(small).config


def test_a_name_of_the_library_or_one_that_a_file_cannot_have_is_refused(small):
    class Random(PythonBn2):
        pass

    with pytest.raises(
        ValueError, match="'random' is the name of one of the library's own|\"random\" is the name"
    ):
        fedlink.simulate(small, policy=Random)
    # A configuration identifies parts by their names alone, whatever their kind.
    with pytest.raises(ValueError, match="is the name of one of the library's own"):
        fedlink.simulate(small, policy=type("Mean", (PythonBn2,), {}))
    with pytest.raises(ValueError, match="letters, digits"):
        fedlink.simulate(small, parts={"a.b": PythonBn2})
    with pytest.raises(ValueError, match="nobody"):
        fedlink.simulate(small, policy="nobody")


class Keeps(fedlink.Policy):
    """Round robin, kept in the object."""

    def __init__(self, step=1):
        self.next, self.step = 0, step

    def candidates(self, view):
        chosen = [(self.next + i) % view.devices for i in range(view.k)]
        self.next = (self.next + self.step * view.k) % view.devices
        return chosen

    def select(self, view, reports):
        return reports.devices, np.ones(len(reports))


def test_a_class_is_made_anew_for_every_run_and_an_object_serves_one(small):
    assert fedlink.simulate(small, policy=Keeps).digest == fedlink.simulate(small, policy=Keeps).digest
    policy = Keeps()
    first = fedlink.simulate(small, policy=policy)
    assert first.digest == fedlink.simulate(small, policy=Keeps).digest
    with pytest.raises(ValueError, match="this Keeps object has served a run.*give the class Keeps"):
        fedlink.simulate(small, policy=policy)
    with pytest.raises(ValueError, match="this PythonDsgd object has served a run"):
        compressor = PythonDsgd()
        for _ in range(2):
            fedlink.simulate(small, compressor=compressor)


def test_the_keys_of_a_part_are_the_keywords_of_its_class(small):
    config = {**small, "schedule.policy": "mine", "schedule.mine.step": 3}
    by_key = fedlink.simulate(config, parts={"mine": Keeps})
    assert by_key.digest == fedlink.simulate(small, policy=lambda: Keeps(step=3)).digest
    assert by_key.config["schedule"]["mine"] == {"step": 3}
    misspelled = r"schedule\.mine\.stpe: is not a key; did you mean schedule\.mine\.step\?"
    with pytest.raises(ValueError, match=misspelled):
        fedlink.simulate({**config, "schedule.mine.stpe": 3}, parts={"mine": Keeps})


def test_a_policy_sees_all_that_the_server_knows(small):
    seen = []

    class Watching(fedlink.Policy):
        def candidates(self, view):
            seen.append(view)
            return view.eligible

        def asks(self):
            return ["norm", "loss"]

        def select(self, view, reports):
            assert reports.values.shape == (8, 2) and reports.values.dtype == np.float32
            assert (reports["loss"] == reports.values[:, 1]).all() and (reports["norm"] > 0).all()
            with pytest.raises(KeyError, match="was not requested"):
                reports["compressed-norm"]
            return reports.devices[: view.k], np.ones(view.k)

    result = fedlink.simulate({**small, "run.seed": 4}, policy=Watching)
    assert [view.t for view in seen] == [0, 1, 2, 3]
    system = fedlink.System({**small, "run.seed": 4})
    for view in seen:
        assert (view.k, view.devices, view.dim, view.symbols) == (2, 8, 7850, 500)
        assert (view.average_power, view.power, view.noise) == (1.0, 4.0, 1.0)
        assert (view.gains == system.gains(view.t)).all()
        assert (view.capacities == system.capacities(view.t)).all()
        assert view.may_send.all() and view.eligible.tolist() == list(range(8))
        assert [view.samples(m) for m in range(8)] == [60] * 8
        assert view.scheduled.tolist() == [view.t] * 2 + [0] * 6
        assert view.ages.tolist() == [0] * 2 + [view.t] * 6
    with pytest.raises(IndexError, match="below 8"):
        seen[0].samples(8)
    assert np.isnan(seen[0].losses).all() and (seen[1].losses > 0).all()
    draws = [view.rng().integers(2**60) for view in seen]
    assert len(set(draws)) == 4
    assert draws[0] == seen[0].rng(0).integers(2**60) != seen[0].rng(1).integers(2**60)
    assert len({view.fixed_rng().integers(2**60) for view in seen}) == 1
    assert result.config["schedule"]["policy"] == "watching"


def test_a_policy_observes_the_record_of_a_round(small):
    observed = []

    class Observing(PythonBn2):
        def observe(self, record):
            observed.append(
                (record.round, record.trained, record.loss, record.transmissions["device"].tolist())
            )

    result = fedlink.simulate(small, policy=Observing)
    assert [round for round, *_ in observed] == [1, 2, 3, 4]
    assert {trained for _, trained, *_ in observed} == {8}
    assert [loss for *_, loss, _ in observed] == result.rounds["train_loss"].tolist()
    assert sum((devices for *_, devices in observed), []) == result.transmissions["device"].tolist()


def test_shares_of_a_policy_count_in_the_model(small):
    class Shares(fedlink.Policy):
        def __init__(self, form):
            self.form = form

        def select(self, view, reports):
            devices = reports.devices[: view.k]
            if self.form == "picks":
                return [fedlink.Pick(int(m), 1.0, 0.25) for m in devices]
            return (devices, np.ones(2), np.full(2, 0.25)) if self.form == "three" else (devices, np.ones(2))

    runs = {form: fedlink.simulate(small, policy=lambda: Shares(form)) for form in ("picks", "three", "two")}
    assert runs["picks"].digest == runs["three"].digest != runs["two"].digest
    assert runs["picks"].transmissions["weight"].tolist() == [0.25] * 8
    assert np.isnan(runs["two"].transmissions["weight"]).all()
    # A mean of two counts one half each: a quarter of the same first updates is half as far from θ(0).
    one = {**small, "run.rounds": 1}
    start = fedlink.System(small).theta0()
    far = [
        np.abs(fedlink.simulate(one, policy=lambda: Shares(f)).theta - start).sum() for f in ("two", "three")
    ]
    assert far[0] == pytest.approx(2 * far[1], rel=1e-4)


def test_weights_that_are_all_zero_are_reported(small):
    class Zero(fedlink.Policy):
        def select(self, view, reports):
            return reports.devices[: view.k], np.zeros(view.k)

    with pytest.warns(RuntimeWarning, match="in 4 rounds every bit weight of policy zero was 0"):
        fedlink.simulate(small, policy=Zero)


def test_the_state_of_a_policy_is_in_a_checkpoint(small, tmp_path):
    failed = tmp_path / "failed"

    class Fails(Keeps):
        def observe(self, record):
            if record.round == 3 and not failed.exists():
                failed.touch()
                raise RuntimeError("on purpose")

    config, path = {**small, "run.rounds": 6}, tmp_path / "run.ckpt"
    whole = fedlink.simulate(config, policy=Keeps)
    with pytest.raises(RuntimeError, match="on purpose"):
        fedlink.simulate(config, policy=Fails, checkpoint=path, checkpoint_every=2)
    resumed = fedlink.simulate(config, policy=Fails, checkpoint=path)
    assert resumed.digest == whole.digest and len(resumed.rounds) == 6

    class Lambda(Keeps):
        def __init__(self):
            super().__init__()
            self.f = lambda: None

    with pytest.raises(TypeError, match="Lambda keeps a value that cannot be pickled.*define save"):
        fedlink.simulate(small, policy=Lambda, checkpoint=tmp_path / "other.ckpt")


class PythonDsgd(fedlink.Compressor):
    def encode(self, update, budget, rng):
        q = fedlink.largest_q(update.size, budget)
        if q == 0:
            return None, 0
        return fedlink.dsgd(update, q), fedlink.dsgd_bits(update.size, q)


@pytest.mark.parametrize("policy", ["bc", "bn2-c"])
def test_dsgd_as_a_python_compressor_gives_the_digest_of_dsgd(small, policy):
    config = {**small, "schedule.policy": policy}
    custom = fedlink.simulate(config, compressor=PythonDsgd)
    assert custom.theta_digest == fedlink.simulate(config).theta_digest
    assert custom.config["compress"]["scheme"] == "python-dsgd"
    assert custom.transmissions["bits"].tolist() == fedlink.simulate(config).transmissions["bits"].tolist()


class Lottery(fedlink.Compressor):
    """Random entries, by the generator that belongs to the device and round."""

    def encode(self, update, budget, rng):
        q = int(budget // 64)
        if q == 0:
            return None, 0
        indices = np.sort(rng.choice(update.size, q, replace=False))
        return (indices, update[indices]), 64.0 * q


def test_random_numbers_of_a_compressor_are_the_same_in_every_run(small):
    runs = [fedlink.simulate({**small, "run.seed": seed}, compressor=Lottery).digest for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_bits_are_counted_by_the_library_if_the_compressor_does_not(small):
    import math

    def sending(what):
        return type(
            "Sends", (fedlink.Compressor,), {"encode": lambda self, update, budget, rng: (what(update), None)}
        )

    config = {**small, "schedule.policy": "bc", "run.rounds": 1, "radio.symbols": 10**7}
    cases = [
        (lambda update: (np.arange(9), update[:9]), math.log2(math.comb(7850, 9)) + 9 * 33, 9),
        (lambda update: (np.arange(9), 0.5), math.log2(math.comb(7850, 9)) + 33, 9),
        (lambda update: update, 33 * 7850, 7850),
        (lambda update: None, 0, 0),
        (lambda update: (np.arange(0), 0.5), 0, 0),
    ]
    for what, bits, entries in cases:
        sent = fedlink.simulate(config, compressor=sending(what)).transmissions
        assert (
            sent["bits"].tolist() == pytest.approx([bits] * 2) and sent["entries"].tolist() == [entries] * 2
        )
        assert set(sent["arrival"]) == {"used" if entries else "silent"}


def sparse(indices, values, bits=10.0):
    return (np.asarray(indices), np.asarray(values, dtype=np.float32)), bits


@pytest.mark.parametrize("policy", ["bc", "bn2-c"])
@pytest.mark.parametrize(
    "answer, kind, reason",
    [
        (sparse([0], [1.0], float("nan")), ValueError, "spent NaN bits"),
        (sparse([0], [1.0], -1.0), ValueError, "spent -1 bits"),
        (sparse([0], [1.0], 1e12), ValueError, "spent 1000000000000 bits, but was granted"),
        (sparse([1, 0], [1.0, 2.0]), ValueError, "index 0 is out of order"),
        (sparse([1, 1], [1.0, 2.0]), ValueError, "index 1 appears twice"),
        (sparse([7850], [1.0]), ValueError, "index 7850 is out of range: the model has 7850 parameters"),
        (sparse([0, 1], [1.0]), ValueError, "1 values for 2 indices"),
        (sparse([0], [np.nan]), ValueError, "Wrong.encode: values: entry 0 is NaN"),
        ((np.zeros(9, np.float32), 1.0), ValueError, "9 entries, but the model has 7850 parameters"),
        ((np.zeros(7850), 1.0), TypeError, "Wrong.encode: entries: must be an array of float32"),
        (None, TypeError, r"Wrong.encode: must return \(what, bits\).* returned NoneType"),
        ((1, 2, 3), TypeError, r"Wrong.encode: must return \(what, bits\)"),
        ((None, "many"), TypeError, "Wrong.encode: bits must be a number or None, but is of type str"),
    ],
)
def test_a_compressor_that_breaks_the_rules_is_named(small, policy, answer, kind, reason):
    wrong = type("Wrong", (fedlink.Compressor,), {"encode": lambda self, *a: answer})
    with pytest.raises(kind, match=reason) as caught:
        fedlink.simulate({**small, "schedule.policy": policy}, compressor=wrong)
    assert "wrong" in str(caught.value).lower()


def test_an_audit_of_an_unknown_scheme_is_refused(small):
    with pytest.raises(ValueError, match="defense.audit"):
        fedlink.simulate({**small, "defense.audit": True}, compressor=PythonDsgd)
    with pytest.raises(ValueError, match="radio.wire"):
        fedlink.simulate({**small, "radio.wire": True}, compressor=PythonDsgd)


class Even(fedlink.Fading):
    def gain(self, t, device):
        return 1.0 + 0.5 * ((t + device) % 3)


def test_gains_may_come_from_a_class_or_from_an_array_either_way_round(small):
    config = {**small, "schedule.policy": "bc"}
    table = np.array([[Even().gain(t, m) for t in range(4)] for m in range(8)])
    by_class = fedlink.simulate(config, fading=Even)
    for array in (table, table.T, np.asfortranarray(table), table.tolist(), np.pad(table, ((0, 0), (0, 3)))):
        assert fedlink.simulate(config, fading=array).digest == by_class.digest
    sent = by_class.transmissions
    assert sent["gain"].tolist() == [Even().gain(t - 1, m) for t, m in zip(sent["round"], sent["device"])]
    assert by_class.config["radio"]["fading"] == "even"
    by_array = fedlink.simulate(config, fading=table)
    assert by_array.config["radio"]["fading"] == "array" and "8 × 4" in by_array.config["custom"]["array"]
    named = fedlink.simulate({**config, "radio.fading": "measured"}, parts={"measured": table})
    assert named.digest == by_class.digest


def test_a_custom_fading_law_multiplies_the_mean_gains(small, tmp_path):
    path = tmp_path / "gains.txt"
    path.write_text(" ".join(["2"] * 8))
    sent = fedlink.simulate({**small, "radio.mean_gains": path}, fading=Even).transmissions
    assert sent["gain"].tolist() == [2 * Even().gain(t - 1, m) for t, m in zip(sent["round"], sent["device"])]


@pytest.mark.parametrize(
    "fading, kind, reason",
    [
        (np.ones((3, 5)), ValueError, r"is 3 × 5, but must be 8 × 4 \(data.devices × run.rounds\)"),
        (np.ones((8, 3)), ValueError, "ends after 3 rounds, but run.rounds is 4"),
        (np.ones(8), ValueError, "M × T, or M × T × seeds, but has 1 dimensions"),
        (-np.ones((8, 4)), ValueError, r"entry \(0, 0\) is -1"),
        (np.full((8, 4), np.inf), ValueError, r"entry \(0, 0\) is inf"),
        (
            type("Bad", (fedlink.Fading,), {"gain": lambda *a: None}),
            TypeError,
            "Bad.gain: must return a number, but",
        ),
        (
            type("Bad", (fedlink.Fading,), {"gain": lambda *a: -1.0}),
            ValueError,
            "Bad.gain: must return a finite",
        ),
        (
            type("Bad", (fedlink.Fading,), {"gain": lambda *a: float("nan")}),
            ValueError,
            "returned NaN for t = 0",
        ),
        (object(), TypeError, "fading: must be a subclass of fedlink.Fading"),
    ],
)
def test_gains_that_cannot_be_are_refused(small, fading, kind, reason):
    with pytest.raises(kind, match=reason):
        fedlink.simulate(small, fading=fading)


def manual_run(system, server, rounds, evaluate_every):
    """The round of `fedlink.System`'s documentation."""
    node = fedlink.Encoder(server.config)
    for t in range(rounds):
        call = server.begin()
        trained = {int(m): system.train(server.theta, t, m) for m in call.candidates}
        answers = [
            node.report(call.asks, *trained[int(m)], bits, t, m)
            for m, bits in zip(call.candidates, call.alone_bits)
        ]
        grants = server.report(call.candidates, answers)
        sent = [node.encode(trained[g.device][0], g.budget, t, g.device).upload(g.device) for g in grants]
        server.deliver(sent, len(trained), sum(loss for _, loss in trained.values()) / len(trained))
        if (t + 1) % evaluate_every == 0:
            server.evaluated(*system.evaluate(server.theta))


@pytest.mark.parametrize("policy", [*POLICIES, "random", "round-robin"])
@pytest.mark.parametrize("scheme", ["d-sgd", "random-sparse"])
def test_rounds_by_a_session_are_those_of_simulate(small, policy, scheme):
    config = {**small, "schedule.policy": policy, "compress.scheme": scheme, "data.partition": "classes"}
    system, result = fedlink.System(config, seed=5), fedlink.simulate({**config, "run.seed": 5})
    server = fedlink.Server(system.config, system.theta0())
    manual_run(system, server, 4, 2)
    assert server.digest == result.digest
    assert fedlink.digest(server.theta) == system.digest(result.theta) == result.theta_digest
    for table, other in ((server.rounds(), result.rounds), (server.transmissions(), result.transmissions)):
        for name in table.column_names:
            if name != "wire_bits":
                np.testing.assert_array_equal(table[name], other[name])


def test_a_system_survives_pickling(small):
    system = fedlink.System(small, seed=2)
    again = pickle.loads(pickle.dumps(system))
    assert again.config == system.config and again.config["run"]["seed"] == 2
    assert (again.gains(3) == system.gains(3)).all() and (again.theta0() == system.theta0()).all()


class SystemTask(fedlink.Task):
    """The library's own training, by way of Python."""

    def __init__(self, system):
        self.system, self.devices = system, system.devices

    def theta0(self):
        return self.system.theta0()

    def samples(self, device):
        return self.system.samples(device)

    def train(self, theta, round, device):
        return self.system.train(theta, round, device)

    def evaluate(self, theta):
        return self.system.evaluate(theta)


class CohortTask(SystemTask):
    cohort = 3
    seen: list = []

    def train_cohort(self, theta, round, devices):
        self.seen.append(len(devices))
        trained = [self.system.train(theta, round, device) for device in devices]
        return np.stack([update for update, _ in trained]), [loss for _, loss in trained]


def test_a_task_may_be_called_as_a_part_of_the_library(small):
    task = type("Mean", (SystemTask,), {})(fedlink.System(small))
    config = fedlink.simulate(small, task=task).config
    assert config["learn"]["model"] == "mean-task" and config["learn"]["aggregate"] == "mean"


@pytest.mark.parametrize("kind", [SystemTask, CohortTask])
@pytest.mark.parametrize("feedback", ["off", "always"])
def test_a_python_task_goes_through_the_same_rounds(small, kind, feedback):
    task = kind(fedlink.System(small))
    config = {**small, "schedule.policy": "bn2-c", "compress.feedback": feedback, "data.devices": 1}
    custom, built_in = fedlink.simulate(config, task=task), fedlink.simulate({**config, "data.devices": 8})
    assert custom.digest == built_in.digest
    assert (
        custom.config["learn"]["model"] == custom.config["data"]["dataset"] == fedlink._parts.part_name(kind)
    )
    assert custom.config["custom"] == {fedlink._parts.part_name(kind): "task"}
    # A task depends on its arguments alone, so it may serve again.
    assert fedlink.simulate(config, task=task).digest == custom.digest
    assert kind is SystemTask or set(CohortTask.seen) == {3, 2}


class Momentum(fedlink.Task):
    """Devices pull θ to their number, faster and faster: each keeps its speed."""

    devices, keeps_state = 5, True

    def theta0(self):
        return np.zeros(40, np.float32)

    def train(self, theta, round, device, state):
        speed = np.frombuffer(state, np.float32) if state else np.zeros(40, np.float32)
        speed = np.float32(0.5) * speed + np.float32(0.1) * (np.float32(device) - theta)
        return speed, float(np.abs(speed).mean()), speed.tobytes()

    def evaluate(self, theta):
        distance = float(np.abs(theta - 2).mean())
        return {"accuracy": 1 / (1 + distance), "loss": distance, "largest": float(theta.max())}


class MomentumCohort(Momentum):
    cohort = 2

    def train_cohort(self, theta, round, devices, states):
        trained = [self.train(theta, round, device, state) for device, state in zip(devices, states)]
        updates, losses, states = zip(*trained)
        return np.stack(updates), losses, list(states)


def test_a_task_may_keep_state_and_a_checkpoint_has_it(tmp_path):
    config = {"schedule.k": 2, "run.rounds": 9, "run.evaluate_every": 3, "schedule.policy": "random"}
    results = [fedlink.simulate(config, task=task()) for task in (Momentum, Momentum, MomentumCohort)]
    assert len({result.theta_digest for result in results}) == 1
    assert results[0].digest == results[1].digest
    # A device that keeps state trains in every round.
    assert results[0].rounds["trained"].tolist() == [5] * 9

    class Stops(Momentum):
        def evaluate(self, theta):
            if stop:
                raise RuntimeError("on purpose")
            return super().evaluate(theta)

    stop, path = True, tmp_path / "run.ckpt"
    with pytest.raises(RuntimeError, match="on purpose"):
        fedlink.simulate(config, task=Stops(), checkpoint=path, checkpoint_every=2)
    stop = False
    resumed = fedlink.simulate(config, task=Stops(), checkpoint=path)
    assert resumed.digest == results[0].digest


def test_metrics_of_a_task_are_columns(small):
    result = fedlink.simulate({"schedule.k": 2, "run.rounds": 4, "run.evaluate_every": 2}, task=Momentum())
    largest = result.rounds["largest"]
    assert np.isnan(largest[[0, 2]]).all() and largest[3] == result.theta.max()


class Broken(Exception):
    pass


def broken(*_):
    raise Broken("on purpose")


def comes_out(call):
    with pytest.raises(Broken, match="on purpose") as caught:
        call()
    assert any(frame.name == "broken" for frame in traceback.extract_tb(caught.value.__traceback__))


@pytest.mark.parametrize("method", ["candidates", "asks", "select", "observe", "__init__"])
def test_an_exception_in_a_policy_is_raised_with_its_traceback(small, method):
    policy = type("Policy", (PythonBn2,), {method: broken})
    comes_out(lambda: fedlink.simulate(small, policy=policy))


@pytest.mark.parametrize("policy", ["bc", "bn2-c"])
def test_an_exception_in_a_compressor_is_raised_with_its_traceback(small, policy):
    compressor = type("Compressor", (PythonDsgd,), {"encode": broken})
    comes_out(lambda: fedlink.simulate({**small, "schedule.policy": policy}, compressor=compressor))


def test_an_exception_in_a_fading_law_is_raised_with_its_traceback(small):
    comes_out(lambda: fedlink.simulate(small, fading=type("F", (fedlink.Fading,), {"gain": broken})))


@pytest.mark.parametrize("method", ["theta0", "train", "evaluate", "samples"])
def test_an_exception_in_a_task_is_raised_with_its_traceback(small, method):
    task = type("Task", (SystemTask,), {method: broken})(fedlink.System(small))
    comes_out(lambda: fedlink.simulate({**small, "learn.aggregate": "by-size"}, task=task))


@pytest.mark.parametrize(
    "answer, kind, reason",
    [
        (
            ([0, 0], [1, 1]),
            ValueError,
            "policy wrong broke its contract in round 1: device 0 is scheduled twice",
        ),
        (([0, 1, 2], [1, 1, 1]), ValueError, "it schedules 3 devices, but K = 2"),
        (([0, 99], [1, 1]), ValueError, "no candidate"),
        (([0, -1], [1, 1]), ValueError, "Wrong.select: devices: entry 1 is -1"),
        (([0, 1], [1, -1]), ValueError, "the bit weight of device 1 is -1"),
        (([0, 1], [1, float("nan")]), ValueError, "Wrong.select: bit weights: entry 1 is NaN"),
        (([0, 1], [1, 1], [1, -1]), ValueError, "the weight of device 1 is -1"),
        (([0, 1], [1]), TypeError, "1 bit weights for 2 devices"),
        (([0, 1], [1, 1], [1]), TypeError, "1 weights for 2 devices"),
        (None, TypeError, r"Wrong.select: must return \(devices, bit_weights\).* returned NoneType"),
        (5, TypeError, "returned int"),
        ((1, 2, 3, 4), TypeError, "tuple of 4 items"),
    ],
)
def test_a_policy_that_breaks_the_rules_is_named(small, answer, kind, reason):
    policy = type("Wrong", (fedlink.Policy,), {"select": lambda self, *a: answer})
    with pytest.raises(kind, match=reason):
        fedlink.simulate(small, policy=policy)


@pytest.mark.parametrize(
    "method, answer, kind, reason",
    [
        ("candidates", [0, 0], ValueError, "candidate 0 is named twice"),
        ("candidates", [8], ValueError, "candidate 8 does not exist"),
        ("candidates", None, ValueError, "Wrong.candidates: must have one dimension"),
        ("candidates", [0.5], TypeError, "Wrong.candidates: must be an array of whole numbers"),
        ("asks", ["size"], ValueError, "Wrong.asks: must return some of .*norm.* but returned \"size\""),
        ("asks", 5, TypeError, "Wrong.asks: must return a list of text, but returned int"),
    ],
)
def test_the_error_states_the_value_that_a_policy_must_return(small, method, answer, kind, reason):
    policy = type("Wrong", (PythonBn2,), {method: lambda self, *a: answer})
    with pytest.raises(kind, match=reason):
        fedlink.simulate(small, policy=policy)


def test_a_policy_may_schedule_no_device(small):
    policy = type("Nobody", (fedlink.Policy,), {"select": lambda self, *a: []})
    result = fedlink.simulate(small, policy=policy)
    assert len(result.transmissions) == 0 and sum(result.summary["scheduled"]) == 0


@pytest.mark.parametrize(
    "method, answer, kind, reason",
    [
        (
            "train",
            (np.zeros(3, np.float32), 0.0),
            ValueError,
            "Wrong.train: update has 3 entries, but theta0 has 7850",
        ),
        ("train", (np.zeros(7850), 0.0), TypeError, "Wrong.train: update: must be an array of float32"),
        ("train", (np.full(7850, np.nan, np.float32), 0.0), ValueError, "NaN"),
        ("train", None, TypeError, r"Wrong.train: must return \(update, loss\), but returned NoneType"),
        (
            "train",
            (np.zeros(7850, np.float32), None),
            TypeError,
            "the loss must be a number, but is of type NoneType",
        ),
        ("train", (1, 2, 3), TypeError, "but returned 3 items"),
        ("evaluate", 0.5, TypeError, r"Wrong.evaluate: must return \(accuracy, loss\) or a dictionary"),
        ("evaluate", {"loss": 1.0}, TypeError, '"accuracy" is not in it'),
        ("evaluate", {"loss": 1.0, "accuracy": None}, TypeError, "values than numbers"),
        ("theta0", None, ValueError, "Wrong.theta0: must have one dimension"),
        ("samples", 0, ValueError, "Wrong.samples: must be in 1"),
    ],
)
def test_a_task_that_returns_nonsense_is_named(small, method, answer, kind, reason):
    task = type("Wrong", (SystemTask,), {method: lambda self, *a: answer})(fedlink.System(small))
    with pytest.raises(kind, match=reason):
        fedlink.simulate(small, task=task)


def test_an_abstract_part_names_the_method_to_define(small):
    for given in ({"policy": fedlink.Policy}, {"compressor": fedlink.Compressor}, {"fading": fedlink.Fading}):
        abstract = type("Mine", tuple(given.values()), {})
        with pytest.raises(NotImplementedError, match="Mine must .*: define"):
            fedlink.simulate(small, **{next(iter(given)): abstract})


def test_a_class_where_an_object_is_wanted_and_other_mistakes_are_errors(small):
    cases = [
        ({"task": SystemTask}, TypeError, r"task: must be an object.*give an object: SystemTask\(…\)"),
        ({"task": 5}, TypeError, "task: must be an object of a subclass of fedlink.Task, but is of type int"),
        ({"policy": 5}, TypeError, "policy: must be a subclass of fedlink.Policy, or a function"),
        (
            {"policy": PythonDsgd},
            TypeError,
            "policy: must be a subclass of fedlink.Policy.* is the class PythonDsgd",
        ),
        ({"policy": dict}, TypeError, "policy: must be a subclass of fedlink.Policy.* is the class dict"),
        (
            {"policy": lambda: 5},
            TypeError,
            "policy: must make an object of fedlink.Policy, but made of type int",
        ),
        ({"parts": {"x": 5}}, TypeError, r"parts\['x'\]: must be a subclass"),
    ]
    for given, kind, reason in cases:
        with pytest.raises(kind, match=reason):
            fedlink.simulate(small, **given)


def test_a_policy_can_set_k_and_receives_the_updates_that_arrived():
    class Fewer(fedlink.Policy):
        def __init__(self):
            self.sums, self.capacities = {}, []

        def round_k(self, view):
            assert view.capacity_at(0, view.k) == view.capacities[0]
            assert view.capacity_at(0, 1) > view.capacity_at(0, 2)
            with pytest.raises(IndexError, match="k in 1..=4"):
                view.capacity_at(0, 5)
            self.capacities.append([view.capacity_at(m, 2) for m in range(view.devices)])
            return 2

        def candidates(self, view):
            # The round is that of a run with K = 2.
            assert view.k == 2 and view.capacities.tolist() == self.capacities[-1]
            return view.eligible[: view.k]

        def select(self, view, reports):
            return reports.devices, np.ones(len(reports))

        def receive(self, device, update):
            assert update.dtype == np.float32
            self.sums[device] = self.sums.get(device, 0) + update

    policy = Fewer()
    config = {
        "data.devices": 6, "data.samples_per_device": 20, "learn.model": "softmax",
        "schedule.k": 4, "run.rounds": 3,
    }
    result = fedlink.simulate(config, policy=policy)
    assert sorted(policy.sums) == [0, 1]
    # The mean of the two, three times, is the change of θ.
    moved = result.theta - fedlink.System(config).theta0()
    assert np.allclose(moved, sum(policy.sums.values()) / 2, atol=1e-6)


def test_a_policy_without_round_k_has_no_other_capacities():
    class Curious(Keeps):
        def candidates(self, view):
            with pytest.raises(ValueError, match="define round_k"):
                view.capacity_at(0, 1)
            return super().candidates(view)

    fedlink.simulate({"data.devices": 4, "run.rounds": 1, "learn.model": "softmax"}, policy=Curious)

"""Whole runs: the command's numbers, parts of one's own, Ctrl-C, tables."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback

import numpy as np
import pytest

import fedlink

POLICIES = ["bc", "bn2", "bc-bn2", "bn2-c"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("state", ["keep", "reset"])
def test_the_digest_is_the_commands(small, command, tmp_path, policy, state):
    config = {**small, "schedule.policy": policy, "learn.state": state, "run.seed": 3}
    settings = [word for key, value in config.items() for word in ("--set", f"{key}={value}")]
    shown = json.loads(command("run", "--json", "--quiet", "--out", tmp_path / "out", *settings).stdout)
    result = fedlink.simulate(config)
    (curve,) = [curve for curve in shown if curve["policy"] == policy]
    run = curve["runs"][0]
    assert result.digest == run["digest"]
    for key in ("final_accuracy", "bits_per_round", "scheduled"):
        assert result.summary[key] == run[key]


def test_a_dictionary_a_text_and_a_file_are_one_configuration(tmp_path):
    text = """
        [schedule]
        k = 2
        [data]
        devices = 4
        samples_per_device = 20
        [learn]
        model = "softmax"
        batch = 10
        [run]
        rounds = 2
    """
    path = tmp_path / "my.toml"
    path.write_text(text)
    nested = {
        "schedule": {"k": np.int64(2)},
        "data": {"devices": 4, "samples_per_device": 20},
        "learn": {"model": "softmax", "batch": 10},
        "run.rounds": 2,
    }
    digests = {fedlink.simulate(config).digest for config in (nested, text, path, str(path))}
    assert len(digests) == 1


class PythonBn2(fedlink.Policy):
    """BN2, written by a user."""

    def select(self, candidates, reports, channels, k):
        order = sorted(range(len(candidates)), key=lambda i: (-reports[i], candidates[i]))[:k]
        order.sort(key=lambda i: candidates[i])
        return candidates[order], reports[order]


class PythonPolicy(fedlink.Policy):
    """Any policy of the library by its primitives."""

    def __init__(self, name):
        self.name = name

    def candidates(self, channels, k):
        return fedlink.candidates(self.name, k, channels.gains)

    def report(self):
        return fedlink.report_kind(self.name)

    def select(self, candidates, reports, channels, k):
        norms = np.zeros(channels.devices, dtype=np.float32)
        norms[candidates] = reports
        return fedlink.select(self.name, k, channels.gains, norms)


@pytest.mark.parametrize("state", ["keep", "reset"])
def test_bn2_written_in_python_gives_the_digest_of_bn2(small, state):
    config = {**small, "schedule.policy": "bn2", "learn.state": state}
    assert fedlink.simulate(config, policy=PythonBn2()).digest == fedlink.simulate(config).digest


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_by_its_primitives_gives_its_digest(small, policy):
    config = {**small, "schedule.policy": policy}
    assert fedlink.simulate(config, policy=PythonPolicy(policy)).digest == fedlink.simulate(config).digest


class PythonDsgd(fedlink.Compressor):
    def bits(self, dim, q):
        return fedlink.dsgd_bits(dim, q)

    def largest_q(self, dim, budget):
        return fedlink.largest_q(dim, budget)

    def compress(self, update, q, chance):
        return fedlink.dsgd(update, q)


def test_dsgd_as_a_python_compressor_gives_the_digest_of_dsgd(small):
    config = {**small, "schedule.policy": "bn2-c"}
    assert fedlink.simulate(config, compressor=PythonDsgd()).digest == fedlink.simulate(config).digest


def test_a_compressor_finds_the_largest_q_by_its_costs(small):
    class Costs(fedlink.Compressor):
        def bits(self, dim, q):
            return 7.0 * q

    assert [Costs().largest_q(10, budget) for budget in (0, 6.9, 7, 20.9, 21, 1e9)] == [0, 0, 1, 2, 3, 10]


class Lottery(fedlink.Compressor):
    """q random entries, drawn by the number that belongs to the device and round."""

    def bits(self, dim, q):
        return 64.0 * q

    def compress(self, update, q, chance):
        places = np.sort(np.random.default_rng(chance).choice(len(update), q, replace=False))
        return places, update[places]


def test_chance_in_a_compressor_is_the_same_in_every_run(small):
    runs = [fedlink.simulate({**small, "run.seed": seed}, compressor=Lottery()).digest for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def manual_run(system, policy, rounds):
    """The round of `fedlink.System`'s documentation, for any policy."""
    theta, kind = system.theta0(), fedlink.report_kind(policy)
    for t in range(rounds):
        gains = system.gains(t)
        asked = fedlink.candidates(policy, system.k, gains)
        updates = {m: system.train(theta, t, m) for m in asked}
        norms = np.zeros(system.devices, dtype=np.float32)
        norms[asked] = [system.report(kind, updates[m], t, m) for m in asked]
        devices, weights = fedlink.select(policy, system.k, gains, norms)
        capacities = system.capacities(t)[devices]
        budgets = fedlink.split_slots(weights, capacities, system.symbols) * capacities
        sent = [system.compress(updates[m], bits, t, m)[1:] for m, bits in zip(devices, budgets)]
        theta = system.aggregate(theta, devices, sent)
    return theta


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("scheme", ["d-sgd", "random-sparse"])
def test_rounds_by_the_parts_of_a_system_are_those_of_simulate(small, policy, scheme):
    config = {**small, "schedule.policy": policy, "compress.scheme": scheme, "data.partition": "classes"}
    system, result = fedlink.System(config, seed=5), fedlink.simulate({**config, "run.seed": 5})
    theta = manual_run(system, policy, 4)
    assert fedlink.digest(theta) == system.digest(result.theta) == result.theta_digest
    accuracy, loss = system.evaluate(theta)
    assert (accuracy, loss) == (result.summary["final_accuracy"], result.summary["final_loss"])
    assert result.transmissions["gain"][:2].tolist() == system.gains(0)[result.transmissions["device"][:2]].tolist()


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

    def train(self, theta, round, device):
        return self.system.train(theta, round, device), 0.0

    def evaluate(self, theta):
        return self.system.evaluate(theta)


@pytest.mark.parametrize("feedback", ["off", "always"])
def test_a_python_task_goes_through_the_same_rounds(small, feedback):
    task = SystemTask(fedlink.System(small))
    config = {**small, "schedule.policy": "bn2-c", "compress.feedback": feedback, "data.devices": 1}
    own, built_in = fedlink.simulate(config, task=task), fedlink.simulate({**config, "data.devices": 8})
    assert own.theta_digest == built_in.theta_digest
    assert own.summary["scheduled"] == built_in.summary["scheduled"]
    assert own.summary["final_accuracy"] == built_in.summary["final_accuracy"]


class Broken(Exception):
    pass


def broken(*_):
    raise Broken("on purpose")


@pytest.mark.parametrize("method", ["candidates", "report", "select"])
def test_an_exception_in_a_policy_comes_out_with_its_traceback(small, method):
    policy = type("Policy", (PythonBn2,), {method: broken})()
    with pytest.raises(Broken, match="on purpose") as caught:
        fedlink.simulate(small, policy=policy)
    assert any(frame.name == "broken" for frame in traceback.extract_tb(caught.value.__traceback__))


@pytest.mark.parametrize("method", ["bits", "largest_q", "compress"])
def test_an_exception_in_a_compressor_comes_out_with_its_traceback(small, method):
    compressor = type("Compressor", (PythonDsgd,), {method: broken})()
    with pytest.raises(Broken) as caught:
        fedlink.simulate(small, compressor=compressor)
    assert any(frame.name == "broken" for frame in traceback.extract_tb(caught.value.__traceback__))


@pytest.mark.parametrize("method", ["theta0", "train", "evaluate", "size_of"])
def test_an_exception_in_a_task_comes_out_with_its_traceback(small, method):
    task = type("Task", (SystemTask,), {method: broken})(fedlink.System(small))
    with pytest.raises(Broken) as caught:
        fedlink.simulate({**small, "learn.aggregate": "by-size"}, task=task)
    assert any(frame.name == "broken" for frame in traceback.extract_tb(caught.value.__traceback__))


@pytest.mark.parametrize(
    "answer, reason",
    [
        (lambda c, r, ch, k: ([0, 0], [1, 1]), "scheduled twice"),
        (lambda c, r, ch, k: ([0], [1]), "K = 2"),
        (lambda c, r, ch, k: ([0, 99], [1, 1]), "no candidate"),
        (lambda c, r, ch, k: ([0, -1], [1, 1]), "entry 1 is -1"),
        (lambda c, r, ch, k: ([0, 1], [1, -1]), "weight"),
        (lambda c, r, ch, k: ([0, 1], [1, float("nan")]), "NaN"),
    ],
)
def test_a_policy_that_breaks_the_rules_is_told_so(small, answer, reason):
    policy = type("Policy", (fedlink.Policy,), {"select": lambda self, *a: answer(*a)})()
    with pytest.raises(ValueError, match=reason):
        fedlink.simulate(small, policy=policy)
    policy = type("Policy", (fedlink.Policy,), {"select": lambda self, *a: None})()
    with pytest.raises(TypeError, match="a pair"):
        fedlink.simulate(small, policy=policy)


@pytest.mark.parametrize(
    "answer, kind, reason",
    [
        ((np.zeros(3, np.float32), 0.0), ValueError, "3 entries"),
        ((np.zeros(7850), 0.0), TypeError, "float32"),
        ((np.full(7850, np.nan, np.float32), 0.0), ValueError, "NaN"),
        (None, TypeError, "a pair"),
    ],
)
def test_a_task_that_trains_nonsense_is_told_so(small, answer, kind, reason):
    task = type("Task", (SystemTask,), {"train": lambda self, *a: answer})(fedlink.System(small))
    with pytest.raises(kind, match=reason):
        fedlink.simulate(small, task=task)


def test_an_abstract_part_says_what_to_define(small):
    with pytest.raises(NotImplementedError, match="define select"):
        fedlink.simulate(small, policy=fedlink.Policy())
    with pytest.raises(NotImplementedError, match="define"):
        fedlink.simulate(small, compressor=fedlink.Compressor())


def test_divergence_has_its_own_exception(small):
    with pytest.raises(fedlink.DivergedError, match="lower learn.rate"):
        fedlink.simulate({**small, "learn.optimizer": "sgd", "learn.rate": 1e38})


def test_other_threads_go_on_while_a_round_is_computed():
    system = fedlink.System({"learn.state": "reset", "learn.local_steps": 400, "data.samples_per_device": 200})
    theta, ticks, done = system.theta0(), [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    other = threading.Thread(target=tick)
    other.start()
    begin = time.monotonic()
    system.train(theta, 0, 0)
    end = time.monotonic()
    done.set()
    other.join()
    assert sum(begin < moment < end for moment in ticks) >= 5, f"{end - begin:.3f} s with the interpreter held"


def test_ctrl_c_ends_a_run_within_a_round():
    script = """
import fedlink, sys
class Loud(fedlink.Policy):
    def select(self, candidates, reports, channels, k):
        print("round", flush=True)
        return candidates[:k], reports[:k]
fedlink.simulate({"learn.model": "softmax", "run.rounds": 1000000}, policy=Loud())
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(3):
        assert child.stdout.readline() == "round\n"
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert child.returncode == -signal.SIGINT


def test_tables_count_rounds_from_one_and_leave_out_what_nobody_looked_at(small):
    result = fedlink.simulate(small)
    assert len(result.rounds) == 4 and result.rounds["round"].tolist() == [1, 2, 3, 4]
    accuracy = result.rounds["test_accuracy"]
    assert np.isnan(accuracy[[0, 2]]).all() and accuracy[3] == result.summary["final_accuracy"]
    sent = result.transmissions
    assert len(sent) == 8 and sent["round"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert (sent["bits"] <= sent["budget"]).all()
    assert result.rounds["total_bits"][-1] == sent["bits"].sum()
    assert np.bincount(sent["device"], minlength=8).tolist() == result.summary["scheduled"]
    assert sent["symbols"].reshape(4, 2).sum(axis=1) == pytest.approx(500)
    with pytest.raises(KeyError, match="there are round, test_accuracy"):
        result.rounds["colour"]


def test_arrow_shares_the_memory_of_a_table(small):
    result = fedlink.simulate(small)
    first, second = result.rounds.to_arrow(), result.rounds.to_arrow()
    address = lambda table, name: table[name].chunk(0).buffers()[1].address
    for name in result.rounds.column_names:
        assert address(first, name) == address(second, name)
    assert first["test_accuracy"].null_count == 2
    assert first["train_loss"].to_pylist() == result.rounds["train_loss"].tolist()
    frame = result.transmissions.to_pandas()
    assert frame["q"].tolist() == result.transmissions["q"].tolist()
    # The table is gone, its memory is not.
    del result, second
    assert len(first["train_loss"].to_pylist()) == 4


def test_pandas_works_without_pyarrow(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = fedlink.simulate(small)
    assert result.rounds.to_pandas()["round"].tolist() == [1, 2, 3, 4]
    with pytest.raises(ImportError, match=r"pip install fedlink\[arrow\]"):
        result.rounds.to_arrow()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install fedlink\[pandas\]"):
        result.rounds.to_pandas()


def test_a_result_draws_itself(small, monkeypatch):
    import matplotlib
    from xml.dom import minidom

    matplotlib.use("agg")
    result = fedlink.simulate(small)
    page = result._repr_html_()
    minidom.parseString(page)
    assert result.digest[:12] in page and "<svg" in page and repr(result).startswith("<fedlink.Result: ")
    axes = result.plot()
    (line,) = axes.get_lines()
    assert line.get_xdata().tolist() == [2, 4]
    assert line.get_ydata()[-1] == pytest.approx(100 * result.summary["final_accuracy"])
    (line,) = result.plot(x="bits").get_lines()
    assert line.get_xdata()[-1] == result.rounds["total_bits"][-1]
    with pytest.raises(ValueError, match="round"):
        result.plot(x="time")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install fedlink\[plot\]"):
        result.plot()


@pytest.mark.parametrize("tqdm", [True, False])
def test_a_terminal_shows_progress_and_a_pipe_does_not(small, tqdm):
    import fcntl
    import pty
    import struct
    import termios

    hidden = "" if tqdm else "sys.modules['tqdm'] = sys.modules['tqdm.auto'] = None; "
    script = f"import sys; {hidden}import fedlink; fedlink.simulate({small!r})"
    terminal, end = pty.openpty()
    # A new terminal has no columns for a bar to be drawn in.
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    child = subprocess.Popen([sys.executable, "-c", script], stderr=end)
    os.close(end)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    assert child.wait() == 0
    assert (b"4/4" in shown) if tqdm else (b"round 4 of 4, accuracy" in shown), shown
    quiet = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert quiet.stderr == b""


def test_importing_fedlink_imports_nothing_heavy():
    heavy = ["numpy", "pandas", "pyarrow", "matplotlib", "torch", "tqdm", "IPython"]
    script = f"import sys, fedlink; print([name for name in {heavy} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"

"""Whole runs: the command's numbers, Ctrl-C, checkpoints, tables."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

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


def test_accuracy_by_class_and_device_are_arrays(small):
    rounds = {"run.rounds": 4, "run.evaluate_every": 2}
    config = {**small, **rounds, "data.partition": "classes", "run.fairness": True}
    result = fedlink.simulate(config)
    classes, devices = result.class_accuracy, result.device_accuracy
    assert classes.shape == (2, 10) and devices.shape == (result.config["data"]["devices"],)
    seen = ~np.isnan(result.rounds["test_accuracy"])
    assert np.array_equal(result.rounds["worst_class"][seen], classes.min(axis=1))
    worst = np.sort(devices)[: -(-len(devices) // 10)].mean()
    assert result.rounds["worst_tenth"][-1] == pytest.approx(worst, abs=1e-15)
    plain = fedlink.simulate({**config, "run.fairness": False})
    assert plain.class_accuracy is None and plain.device_accuracy is None
    assert np.array_equal(plain.theta, result.theta)


def test_epsilon_is_there_with_noise_and_without_reports(small):
    noise = {**small, "privacy.noise": 2.0, "defense.clip": 0.1}
    private = fedlink.simulate({**noise, "schedule.policy": "random"})
    assert private.epsilon == private.summary["privacy"]["epsilon"] == private.rounds["epsilon"][-1]
    assert fedlink.simulate({**noise, "schedule.policy": "bn2"}).epsilon is None
    assert fedlink.simulate(small).epsilon is None


def test_divergence_has_its_own_exception(small):
    with pytest.raises(fedlink.DivergedError, match="lower learn.rate"):
        fedlink.simulate({**small, "learn.optimizer": "sgd", "learn.rate": 1e38})


def test_other_threads_go_on_while_a_round_is_computed():
    system = fedlink.System(
        {"learn.state": "reset", "learn.local_steps": 400, "data.samples_per_device": 200}
    )
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
    assert sum(begin < moment < end for moment in ticks) >= 5, (
        f"{end - begin:.3f} s with the interpreter held"
    )


LOUD = """
import fedlink, numpy, sys
class Loud(fedlink.Policy):
    def select(self, view, reports):
        print("round", flush=True)
        return reports.devices[: view.k], numpy.ones(view.k)
CONFIG = {"learn.model": "softmax", "learn.state": "reset", "data.devices": 4, "data.samples_per_device": 50,
          "run.rounds": 1000000}
"""


def interrupted(script, rounds=3):
    """Runs a script that prints a line per round, and presses Ctrl-C after some; its output, and its exit
    code."""
    child = subprocess.Popen(
        [sys.executable, "-c", LOUD + script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(rounds):
        assert child.stdout.readline() == "round\n"
    child.send_signal(signal.SIGINT)
    shown, errors = child.communicate(timeout=60)
    return shown, errors, child.returncode


def test_ctrl_c_ends_a_run_after_the_round():
    _, errors, code = interrupted("fedlink.simulate(CONFIG, policy=Loud)")
    assert "KeyboardInterrupt: stopped after" in errors
    assert code == -signal.SIGINT


def test_ctrl_c_keeps_the_rounds_that_are_done():
    shown, errors, code = interrupted("""
try:
    fedlink.simulate(CONFIG, policy=Loud)
except KeyboardInterrupt as stop:
    result = stop.result
    assert len(result.rounds) == result.summary["rounds"] == result.rounds["round"][-1]
    print("kept", len(result.rounds))
""")
    assert code == 0, errors
    assert int(shown.split("kept ")[1]) >= 3


def test_a_checkpoint_resumes_to_the_same_bits_after_ctrl_c(tmp_path):
    script = f"""
config = {{**CONFIG, "run.rounds": 60, "schedule.policy": "round-robin"}}
whole = fedlink.simulate(config, compressor=None)
class Slow(fedlink.Fading):
    def gain(self, t, device):
        if device == 0 and sys.argv[0] != "again":
            import time; time.sleep(0.02); print("round", flush=True)
        return 1.0 + 0.1 * ((7 * t + device) % 5)
try:
    fedlink.simulate(config, fading=Slow, checkpoint={str(tmp_path / 'run.ckpt')!r}, checkpoint_every=7)
    print("never stopped")
except KeyboardInterrupt as stop:
    done = stop.result.summary["rounds"]
    assert 0 < done < 60
    sys.argv[0] = "again"
    resumed = fedlink.simulate(config, fading=Slow, checkpoint={str(tmp_path / 'run.ckpt')!r})
    fresh = fedlink.simulate(config, fading=Slow)
    assert resumed.digest == fresh.digest and len(resumed.rounds) == 60
    assert resumed.transmissions["bits"].tolist() == fresh.transmissions["bits"].tolist()
    print("same")
"""
    shown, errors, code = interrupted(script, rounds=12)
    assert code == 0 and "same" in shown, errors


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_refused(small, tmp_path):
    path = tmp_path / "run.ckpt"
    first = fedlink.simulate(small, checkpoint=path)
    # The run is done: it is read, not run again.
    assert fedlink.simulate(small, checkpoint=path).digest == first.digest
    with pytest.raises(ValueError, match="another configuration"):
        fedlink.simulate({**small, "run.seed": 9}, checkpoint=path)
    saved = path.read_bytes()
    for damaged in (saved[:-1], saved[:100], b"", bytes([saved[0] ^ 1]) + saved[1:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged"):
            fedlink.simulate(small, checkpoint=path)
    assert not list(tmp_path.glob("*partial*"))


def test_tables_count_rounds_from_one_and_leave_out_values_that_were_not_evaluated(small):
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
    # Signed, so that differences can be negative.
    assert (sent["round"] - 10 < 0).all() and sent["device"].dtype == np.int64 == result.rounds["round"].dtype
    assert sent["power"].tolist() == [4.0] * 8 and sent["airtime"].tolist() == sent["symbols"].tolist()
    assert (
        set(sent["arrival"]) == {"used"}
        and np.isnan(sent["wire_bits"]).all()
        and np.isnan(sent["weight"]).all()
    )
    with pytest.raises(KeyError, match="there are round, test_accuracy"):
        result.rounds["color"]


def test_a_table_shows_its_first_rows(small):
    from xml.dom import minidom

    table = fedlink.simulate({**small, "run.rounds": 12}).rounds
    shown = repr(table).splitlines()
    assert shown[0] == f"<fedlink.Table: 12 rows × {len(table.column_names)} columns>"
    assert shown[1].split() == table.column_names and shown[3].split()[0] == "1"
    assert shown[-1] == "… 4 more rows"
    page = minidom.parseString(f"<div>{table._repr_html_()}</div>")
    assert len(page.getElementsByTagName("tr")) == 9


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
    with pytest.raises(ImportError, match=r"pip install pyarrow"):
        result.rounds.to_arrow()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install pandas"):
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
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
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

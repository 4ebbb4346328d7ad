"""Learning tasks of your own in experiments: seeds, claims, resume, and what the folder records."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import fedlink

SETTINGS = {"schedule.policy": ["bc", "random"], "schedule.k": 2, "run.rounds": 6, "run.evaluate_every": 2}


class Points(fedlink.Task):
    """Every device has points; the model is to be their mean."""

    devices, test_samples, classes = 5, 40, 4

    def __init__(self, seed, pull=0.5):
        rng = np.random.default_rng(seed)
        self.points = [rng.normal(m, 1.0, (10 + m, 30)).astype(np.float32) for m in range(self.devices)]
        self.pull = np.float32(pull)

    def begin(self, config):
        assert config["data"]["devices"] == 5 and config["learn"]["rate"] == 1e-3
        self.running = True

    def end(self):
        self.running = False

    def theta0(self):
        return np.zeros(30, np.float32)

    def samples(self, device):
        return len(self.points[device])

    def train(self, theta, round, device):
        update = self.pull * (self.points[device].mean(axis=0) - theta)
        return update, float(np.abs(update).mean())

    def evaluate(self, theta):
        distance = float(np.abs(theta - 2).mean())
        return {"accuracy": 1 / (1 + distance), "loss": distance, "largest": float(theta.max())}


class Momentum(fedlink.Task):
    """Each device keeps its speed, as bytes that the library passes."""

    devices, keeps_state = 4, True

    def theta0(self):
        return np.zeros(20, np.float32)

    def train(self, theta, round, device, state):
        speed = np.frombuffer(state, np.float32) if state else np.zeros(20, np.float32)
        speed = np.float32(0.5) * speed + np.float32(0.1) * (np.float32(device) - theta)
        return speed, float(np.abs(speed).mean()), speed.tobytes()

    def evaluate(self, theta):
        distance = float(np.abs(theta - 1.5).mean())
        return 1 / (1 + distance), distance


class OwnMomentum(Momentum):
    """The same, but the task keeps the speeds itself."""

    def begin(self, config):
        self.speeds = {}

    def train(self, theta, round, device):
        state = self.speeds.get(device, b"")
        update, loss, self.speeds[device] = super().train(theta, round, device, state)
        return update, loss

    def save(self):
        return json.dumps({device: list(speed) for device, speed in sorted(self.speeds.items())}).encode()

    def load(self, state):
        self.speeds = {int(device): bytes(speed) for device, speed in json.loads(state).items()}


def test_an_own_task_runs_with_seeds_claims_and_a_report_and_each_run_is_that_of_simulate(tmp_path):
    out = tmp_path / "out"
    text = "[claims]\ndecided = 'bc final > random final'\n"
    text += "[sweep]\n'schedule.policy' = ['bc', 'random']\n"
    settings = {key: value for key, value in SETTINGS.items() if key != "schedule.policy"}
    study = fedlink.run(text, settings=settings, task=Points, seeds=3, out=out, progress=False)
    assert [claim["name"] for claim in study.claims["claims"]] == ["decided"]
    assert (out / "report.html").is_file() and len(study.runs) == 6
    for curve in study.curves:
        for run in curve.runs:
            alone = {**settings, **curve.keys, "run.seed": run.seed}
            assert fedlink.simulate(alone, task=Points(run.seed)).digest == run.digest
    assert len({run.digest for run in study.runs}) == 6
    data = json.loads((out / "data.json").read_text())["points"]
    # 10 + 11 + 12 + 13 + 14 samples.
    assert (data["train"], data["test"], data["classes"]) == (60, 40, 4) and len(data["sha256"]) == 64
    config = study.curves[0].config
    assert config["data"]["samples_per_device"] == 12 and config["data"]["devices"] == 5
    names = [config["data"]["dataset"], config["data"]["partition"], config["learn"]["model"]]
    assert names == ["points"] * 3
    assert config["custom"]["points"].startswith(f"task {__name__}.Points, identity ")
    assert "self.pull * (self.points[device]" in (out / "parts/points" / f"{__name__}.py").read_text()
    assert "argument pull = 0.5" in (out / "parts/points/arguments.txt").read_text()


def test_more_seeds_a_merge_and_a_repetition_take_the_same_task(tmp_path):
    out, given = tmp_path / "out", {"task": lambda seed: Points(seed, pull=0.25)}
    first = fedlink.run(SETTINGS, **given, seeds=1, out=out, progress=False)
    more = fedlink.run(SETTINGS, **given, seeds=2, out=out, resume=True, progress=False)
    assert [run.digest for run in first.runs] == [curve.runs[0].digest for curve in more.curves]
    assert [run.digest for run in fedlink.merge(out, **given).runs] == [run.digest for run in more.runs]
    assert all(rerun.same for rerun in fedlink.verify(out, rerun=4, **given).reruns)
    with pytest.raises(ValueError, match=r'"points", data or a task of a program \(task .*not given'):
        fedlink.merge(out)
    for other in (lambda seed: Points(seed, pull=0.75), Points):
        with pytest.raises(ValueError, match="points.*there, .* here"):
            fedlink.run(SETTINGS, task=other, seeds=2, out=out, resume=True, progress=False)


SCRIPT = """
import sys, numpy, fedlink

class Mine(fedlink.Task):
    devices = 4

    def theta0(self):
        return numpy.zeros(20, numpy.float32)

    def train(self, theta, round, device):
        update = numpy.float32({pull}) * (numpy.float32(device) - theta)
        return update, float(numpy.abs(update).mean())

    def evaluate(self, theta):
        return 0.5, float(numpy.abs(theta - 1.5).mean())

settings = {{"schedule.k": 2, "run.rounds": 4}}
study = fedlink.run(settings, task=Mine, out=sys.argv[1], seeds={seeds}, resume=True, progress=False)
print(*[run.digest for run in study.runs])
"""


def test_resuming_after_a_change_of_the_code_of_a_task_is_refused_with_the_line(tmp_path):
    def ended(**values):
        path = tmp_path / "script.py"
        path.write_text(SCRIPT.format(**values))
        return subprocess.run(
            [sys.executable, path, tmp_path / "out"], capture_output=True, text=True, check=False
        )

    first, second = ended(pull=0.5, seeds=1), ended(pull=0.5, seeds=2)
    assert first.returncode == second.returncode == 0, second.stderr
    assert second.stdout.split()[0] == first.stdout.strip()
    changed = ended(pull=0.25, seeds=2)
    assert changed.returncode != 0
    assert "numpy.float32(0.5)" in changed.stderr and "numpy.float32(0.25)" in changed.stderr


@pytest.mark.parametrize("kind", [Momentum, OwnMomentum])
def test_a_run_with_a_task_that_keeps_state_is_resumed_to_the_same_bits(tmp_path, kind):
    config = {"schedule.k": 2, "run.rounds": 8, "schedule.policy": "random", "run.evaluate_every": 1}
    whole = fedlink.run(config, task=kind, seeds=2, out=tmp_path / "whole", progress=False)
    for run in whole.runs:
        assert fedlink.simulate({**config, "run.seed": run.seed}, task=kind()).digest == run.digest
    # The flag does not affect the identity; a file records it.
    flag = tmp_path / "stop"
    stops = type(kind.__name__, (kind,), {"evaluate": _stopping(kind, os.fspath(flag))})
    flag.write_text("")
    given = {"task": stops, "seeds": 2, "out": tmp_path / "stopped", "checkpoint_every": 2, "progress": False}
    with pytest.raises(RuntimeError, match="on purpose"):
        fedlink.run(config, **given)
    assert list((tmp_path / "stopped" / "runs").glob("*.checkpoint"))
    flag.unlink()
    resumed = fedlink.run(config, **given, resume=True)
    assert [run.summary["final_loss"] for run in resumed.runs] == [
        run.summary["final_loss"] for run in whole.runs
    ]
    assert [run.digest for run in resumed.runs] == [run.digest for run in whole.runs]


def _stopping(kind, flag):
    def evaluate(self, theta):
        # The first three rounds are made twice before the runs, and the run ends in round 5.
        if os.path.exists(flag):
            with open(flag, "a+") as file:
                file.write("x")
                if file.tell() == 11:
                    raise RuntimeError("on purpose")
        return kind.evaluate(self, theta)

    return evaluate


def test_one_object_is_for_one_run_and_runs_do_not_overlap(tmp_path):
    settings = {**SETTINGS, "schedule.policy": "bc"}
    one = fedlink.run(settings, task=Points(0), out=tmp_path / "1", progress=False)
    assert one.runs[0].digest == fedlink.simulate(settings, task=Points(0)).digest
    with pytest.raises(ValueError, match=r"has 2 runs, and one object would serve them all; give its class"):
        fedlink.run(SETTINGS, task=Points(0), out=tmp_path / "2", progress=False)
    assert not (tmp_path / "2").exists()

    active, most = [], []

    class Watched(Points):
        def begin(self, config):
            super().begin(config)
            active.append(self)

        def train(self, theta, round, device):
            assert active == [self]
            most.append(device)
            return super().train(theta, round, device)

        def end(self):
            # One that was made for its sizes alone has not begun.
            if active:
                active.remove(self)

    study = fedlink.run(SETTINGS, task=Watched, seeds=2, out=tmp_path / "3", threads=4, progress=False)
    assert len(study.runs) == 4 and active == [] and len(most) >= 4 * 6 * 2


def test_other_mistakes_with_a_task_are_errors(tmp_path):
    class Misspelled(Points):
        def evaluates(self, theta):
            return 0.5, 1.0

    class Fewer(Points):
        def __init__(self, seed):
            self.devices = 5 if seed == 0 else 4
            super().__init__(seed)

    cases = [
        ({"task": Points(0), "data": "digits"}, ValueError, "a task has its own data"),
        ({"task": 5}, TypeError, "task: must be a subclass of fedlink.Task.*but is of type int"),
        ({"task": dict}, TypeError, "task: must be a subclass of fedlink.Task.*is the class dict"),
        ({"task": lambda: 5}, TypeError, "task: must make an object of fedlink.Task, but made of type int"),
        ({"task": Misspelled}, TypeError, "Misspelled.evaluates: .*did you mean evaluate"),
        ({"task": Fewer, "seeds": 2}, ValueError, "Fewer: has 4 devices, but data.devices is 5"),
    ]
    for given, kind, reason in cases:
        with pytest.raises(kind, match=reason):
            fedlink.run(SETTINGS, **given, out=tmp_path / "out", progress=False)
    with pytest.raises(TypeError, match="Misspelled.evaluates: .*did you mean evaluate"):
        fedlink.simulate({"schedule.k": 2, "run.rounds": 2}, task=Misspelled(0))


@pytest.mark.parametrize("correction", ["prox", "scaffold", "feddyn"])
def test_a_correction_of_local_steps_is_refused_with_the_reason_and_the_remedy(tmp_path, correction):
    config = {"schedule.policy": "bc", "schedule.k": 2, "run.rounds": 2}
    config.update({"learn.optimizer": "sgd", "learn.rate": 1e-3, "learn.correction": correction})
    reason = r"learn.correction: is \"\w+\", but the task points makes its local steps by code of its own.*"
    reason += r"cannot be applied from outside; write learn.correction = \"none\" and correct the gradients "
    reason += "in the task, or use keys of the server in its place: compress.feedback, learn.server_optimizer"
    with pytest.raises(ValueError, match=reason):
        fedlink.simulate(config, task=Points(0))
    with pytest.raises(ValueError, match=reason):
        fedlink.run(config, task=Points, out=tmp_path / "out", progress=False)

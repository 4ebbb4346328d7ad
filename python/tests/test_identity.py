"""The identity of custom parts: the texts of a part are recorded, and compared on resume and merge."""

import functools
import importlib
import json
import sys

import numpy as np
import pytest

import fedlink
from fedlink._identity import digest, identify

MINE = """
import numpy
import fedlink
import helpers

SCALE = 1.0


class Base(fedlink.Policy):
    def ranked(self, score, k):
        return numpy.sort(numpy.argsort(-score, kind="stable")[:k])


class NormAge(Base):
    name = "na"

    def __init__(self, beta=0.0):
        self.beta = beta

    def asks(self):
        return ["norm"]

    def select(self, view, reports):
        score = helpers.score(reports["norm"], view.ages, self.beta) * SCALE
        best = self.ranked(score, view.k)
        return reports.devices[best], numpy.ones(len(best))
"""

HELPERS = """
import deeper


def score(norms, ages, beta):
    return norms + deeper.GAIN * beta * ages
"""

SETTINGS = {
    "learn.model": "softmax",
    "data.devices": 6,
    "data.samples_per_device": 40,
    "schedule.k": 2,
    "run.rounds": 2,
    "schedule.policy": ["bc", "na"],
}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of the user's with two helpers; called with texts, it is loaded anew with them."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def load(**changed):
        texts = {"mine": MINE, "helpers": HELPERS, "deeper": "GAIN = 1.0\n", **changed}
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            return importlib.import_module("mine")
        finally:
            sys.dont_write_bytecode = before

    yield load
    for name in ("mine", "helpers", "deeper"):
        sys.modules.pop(name, None)


def run(part, out, **options):
    return fedlink.run(SETTINGS, parts={"na": part}, out=out, progress=False, **options)


CHANGES = [
    (
        {"helpers": HELPERS.replace("norms +", "norms -")},
        r"helpers\.py, line 6: .*norms \+.* there, .*norms -",
    ),
    ({"deeper": "GAIN = 2.0\n"}, r"deeper\.py, line 1: `GAIN = 1\.0` there, `GAIN = 2\.0` here"),
    ({"mine": MINE.replace("SCALE = 1.0", "SCALE = 4.0")}, r"mine\.py, line 6: `SCALE = 1\.0` there"),
    ({"mine": MINE.replace("argsort(-score", "argsort(score")}, r"mine\.py, line 11: .*argsort\(-score"),
    ({"mine": MINE.replace("beta=0.0", "beta=3.0")}, r"argument beta = 0\.0` there, `argument beta = 3\.0"),
]


@pytest.mark.parametrize(
    "changed, named", CHANGES, ids=["helper", "helper-of-helper", "constant", "base", "default"]
)
def test_resuming_or_merging_with_changed_code_is_refused_with_the_changes(mine, tmp_path, changed, named):
    out = tmp_path / "out"
    first = run(mine().NormAge, out)
    other = mine(**changed).NormAge
    with pytest.raises(ValueError, match='was begun with another "na": .*' + named):
        run(other, out, resume=True)
    with pytest.raises(ValueError, match=named):
        fedlink.merge(out, parts={"na": other})
    with pytest.raises(ValueError, match=named):
        fedlink.verify(out, rerun=1, parts={"na": other})
    again = run(mine().NormAge, out, resume=True)
    assert [c.runs[0].summary["digest"] for c in again.curves] == [
        c.runs[0].summary["digest"] for c in first.curves
    ]


def test_resuming_with_another_argument_is_refused_with_the_argument(mine, tmp_path):
    part, out = mine().NormAge, tmp_path / "out"
    run(functools.partial(part, beta=0.0), out)
    named = r"argument beta = 0\.0` there, `argument beta = 3\.0` here"
    with pytest.raises(ValueError, match=named):
        run(functools.partial(part, beta=3.0), out, resume=True)
    run(functools.partial(part, beta=0.0), out, resume=True)


def test_a_closure_is_an_argument(mine, tmp_path):
    part = mine().NormAge

    def with_beta(beta):
        return lambda: part(beta)

    run(with_beta(0.0), tmp_path / "out")
    with pytest.raises(ValueError, match=r"beta = 0\.0` there, .*beta = 3\.0` here"):
        run(with_beta(3.0), tmp_path / "out", resume=True)


def test_a_folder_holds_the_sources_and_arguments_of_its_parts(mine, tmp_path):
    part, out = mine().NormAge, tmp_path / "out"
    study = run(functools.partial(part, beta=2.0), out)
    inside = out / "parts" / "na"
    assert sorted(path.name for path in inside.iterdir()) == [
        "arguments.txt",
        "deeper.py",
        "helpers.py",
        "mine.py",
    ]
    assert (inside / "mine.py").read_text() == MINE and (inside / "helpers.py").read_text() == HELPERS
    assert "argument beta = 2.0\n" in (inside / "arguments.txt").read_text()
    listed = (out / "files.txt").read_text().splitlines()
    assert {f"parts/na/{path.name}" for path in inside.iterdir()} <= set(listed)
    entry = json.loads((out / "manifest.json").read_text())["parts"]["na"]
    assert set(entry["files"]) == {path.name for path in inside.iterdir()}
    # A key that is not written has its default in the configuration.
    assert study.curve("na").config["schedule"]["na"] == {"beta": 2.0}
    assert entry["origin"] == study.curve("na").config["custom"]["na"]
    # A folder that is replaced holds nothing of others.
    run(part, out, force=True)
    assert "argument beta = 0.0\n" in (inside / "arguments.txt").read_text()


def test_a_folder_may_grow_by_another_part(mine, tmp_path):
    module, out = mine(), tmp_path / "out"
    run(module.NormAge, out)
    parts = {"na": module.NormAge, "steep": functools.partial(module.NormAge, beta=5.0)}
    settings = {**SETTINGS, "schedule.policy": ["bc", "na", "steep"]}
    study = fedlink.run(settings, parts=parts, out=out, resume=True, progress=False)
    assert [curve.label for curve in study.curves] == ["bc", "na", "steep"]
    assert (out / "parts" / "steep" / "arguments.txt").exists()


def test_the_command_and_python_know_a_part_by_the_same_identity(mine, tmp_path):
    from fedlink._command import parts_of

    module = mine()
    found = [part for part in parts_of([tmp_path / "mine.py"]) if part.name == "na"]
    (here,), _ = fedlink._parts.collect(parts={"na": module.NormAge}, strict=True)
    assert found[0].origin == here.origin and found[0].texts == here.texts


def test_a_module_that_changed_after_it_was_loaded_is_refused(mine, tmp_path):
    part = mine().NormAge
    (tmp_path / "mine.py").write_text(MINE.replace("argsort(-score", "argsort(score"))
    with pytest.raises(ValueError, match="was changed after it was loaded.*start Python anew"):
        run(part, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_argument_that_no_text_describes_is_refused_with_the_remedy(mine, tmp_path):
    part = mine().NormAge
    lock = __import__("threading").Lock()
    named = r"parts\['na'\]: .*argument.*lock, and no text states all that it holds.*pass numbers"
    with pytest.raises(ValueError, match=named):
        run(functools.partial(part, beta=lock), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    # An object of a class of the user's is described by its class and what it holds.
    run(functools.partial(part, beta=2.0), tmp_path / "out")


def texts(part, cls, strict=True):
    return identify(part, cls, "policy", strict)


class Plain(fedlink.Policy):
    def __init__(self, value=None):
        self.value = value

    def select(self, view, reports):
        return reports.devices[: view.k], np.ones(view.k)


class Rule:
    def __init__(self, a):
        self.a = a


def test_every_kind_of_argument_has_its_own_text():
    values = [
        None, True, 1, 1.0, "1", (1,), [1], {1}, {"a": 1}, {"a": 2}, b"x", np.ones(3), np.ones(4),
        np.zeros(3), np.ones(3, np.float32), np.float64(1.5), Rule(1), Rule(2), Rule([np.ones(2)]),
        np.sort, sorted, Rule, functools.partial(Rule, 3), lambda x: x + 1, lambda x: x + 2, Rule(1).__init__,
        np.random.default_rng(1), np.random.default_rng(2),
    ]  # fmt: skip
    found = [digest(texts(functools.partial(Plain, value), Plain)) for value in values]
    assert len(set(found)) == len(values)
    again = [digest(texts(functools.partial(Plain, value), Plain)) for value in values]
    assert again == found


def test_an_argument_that_holds_itself_has_a_text():
    loop = [1]
    loop.append(loop)
    assert texts(functools.partial(Plain, loop), Plain) == texts(functools.partial(Plain, loop), Plain)


def test_an_attribute_that_is_set_on_a_class_is_part_of_it(monkeypatch):
    class Mine(Plain):
        beta = 0.0

    before = digest(texts(Mine, Mine))
    monkeypatch.setattr(Mine, "beta", 3.0)
    assert digest(texts(Mine, Mine)) != before


def test_other_lines_of_a_script_do_not_change_its_parts(tmp_path):
    script = """
import sys
import numpy
import fedlink

GAIN = {gain}

def score(view):
    return GAIN * view.gains

class Mine(fedlink.Policy):
    def candidates(self, view):
        return numpy.sort(numpy.argsort(-score(view))[: view.k])

    def select(self, view, reports):
        return reports.devices, numpy.ones(len(reports))

settings = {{"learn.model": "softmax", "run.rounds": 2, "schedule.policy": ["bc", "mine"]}}
fedlink.run(settings, parts={{"mine": Mine}}, out=sys.argv[1], seeds={seeds}, resume=True, progress=False)
"""
    import subprocess

    def ended(**values):
        path = tmp_path / "script.py"
        path.write_text(script.format(**values))
        return subprocess.run(
            [sys.executable, path, tmp_path / "out"], capture_output=True, text=True, check=False
        )

    assert ended(gain=1.0, seeds=1).returncode == 0
    assert ended(gain=1.0, seeds=2).returncode == 0
    changed = ended(gain=-1.0, seeds=2)
    assert changed.returncode == 1
    assert "arguments.txt" in changed.stderr and "__main__.GAIN = 1.0` there" in changed.stderr
    assert "def score" in (tmp_path / "out" / "parts" / "mine" / "main.py").read_text()


def test_a_method_whose_name_is_nearly_that_of_a_hook_is_refused(small):
    class Policy(Plain):
        def candidate(self, view):
            return view.eligible

    class Observes(Plain):
        def obsrve(self, record):
            pass

    class Helps(Plain):
        def _observed(self):
            pass

        def score(self):
            pass

    for part in (Policy, Policy(), lambda: Policy()):
        with pytest.raises(TypeError, match="Policy.candidate: .*did you mean candidates?"):
            fedlink.simulate(small, policy=part)
    with pytest.raises(TypeError, match="Observes.obsrve: .*did you mean observe?"):
        fedlink.run({**small, "schedule.policy": "observes"}, parts={"observes": Observes}, progress=False)
    fedlink.simulate(small, policy=Helps)


class Noise(fedlink.Policy):
    """Random numbers of NumPy's own generator, which no seed of a run reaches."""

    def select(self, view, reports):
        chosen = np.sort(np.random.permutation(len(reports))[: view.k])
        return reports.devices[chosen], np.ones(len(chosen))


NOISE = {**SETTINGS, "data.devices": 20, "schedule.policy": ["bc", "noise"]}


def test_a_part_that_is_not_the_same_in_every_run_is_refused_before_anything_is_written(tmp_path):
    named = (
        r"custom part noise is not the same in every run: noise was made twice, and differs in round \d, "
        r"column .* and .*; take random numbers from view.rng\(\).*nondeterministic=True"
    )
    with pytest.raises(ValueError, match=named):
        fedlink.run(NOISE, parts={"noise": Noise}, out=tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


def test_a_sweep_that_is_made_nevertheless_records_it(tmp_path):
    out = tmp_path / "out"
    with pytest.warns(RuntimeWarning, match="custom part noise is not the same in every run"):
        study = fedlink.run(NOISE, parts={"noise": Noise}, out=out, nondeterministic=True, progress=False)
    assert "custom part noise is not the same in every run" in study.text
    assert "noise" in (out / "parts" / "nondeterministic.txt").read_text()
    notes = json.loads((out / "manifest.json").read_text())["notes"]
    assert any("is not the same in every run" in note for note in notes)
    # A later merge of the folder prints the note too.
    assert "is not the same in every run" in fedlink.merge(out, parts={"noise": Noise}).text


def test_state_outside_an_object_and_asks_that_differ_between_runs_are_found(tmp_path):
    asked = []

    class Remembers(fedlink.Policy):
        def select(self, view, reports):
            asked.append(view.t)
            chosen = reports.devices[len(asked) % 5 :][: view.k]
            return chosen, np.ones(len(chosen))

    class Fickle(fedlink.Policy):
        name = "fickle"

        def __init__(self):
            asked.append(0)
            self.ask = ["norm"] if len(asked) % 2 else ["loss"]

        def asks(self):
            return self.ask

        def select(self, view, reports):
            best = np.sort(np.argsort(-reports[self.ask[0]], kind="stable")[: view.k])
            return reports.devices[best], np.ones(len(best))

    for part in (Remembers, Fickle):
        settings = {**NOISE, "schedule.policy": "part"}
        with pytest.raises(ValueError, match="custom part part is not the same in every run"):
            fedlink.run(settings, parts={"part": part}, out=tmp_path / "out", progress=False)


def test_a_policy_that_never_schedules_a_device_triggers_a_warning(small):
    class Nobody(fedlink.Policy):
        def select(self, view, reports):
            return [], []

    with pytest.warns(RuntimeWarning, match="policy nobody scheduled no device in any of 4 rounds"):
        fedlink.simulate(small, policy=Nobody)

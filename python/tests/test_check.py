"""`fedlink check`: the contract of a custom part is tested before it is used."""

import subprocess
import sys

import numpy as np
import pytest

import fedlink


class Good(fedlink.Policy):
    def __init__(self, beta=1.0):
        self.beta, self.count = beta, None

    def asks(self):
        return ["norm"]

    def select(self, view, reports):
        if self.count is None:
            self.count = np.zeros(view.devices)
        score = reports["norm"] - self.beta * self.count[reports.devices]
        best = np.sort(np.argsort(-score, kind="stable")[: view.k])
        self.count[reports.devices[best]] += 1
        return reports.devices[best], np.ones(len(best))


def picks(choose):
    def select(self, view, reports):
        return choose(view, reports)

    return type("Bad", (fedlink.Policy,), {"select": select})


class Forgets(Good):
    """It keeps what it does not save."""

    def save(self):
        return b""

    def load(self, state):
        pass


class Fickle(Good):
    def __init__(self):
        super().__init__()
        Fickle.made = getattr(Fickle, "made", 0) + 1

    def asks(self):
        return ["norm"] if Fickle.made % 2 else ["loss", "norm"]


FINDINGS = [
    (
        picks(lambda v, r: (list(r.devices)[: v.k + 1], [1.0] * min(v.k + 1, len(r)))),
        "schedule: it schedules",
    ),
    (picks(lambda v, r: ([0, 0], [1.0, 1.0])), "schedule: "),
    (picks(lambda v, r: (r.devices[: v.k], [-1.0] * v.k)), "schedule: the bit weight of device 0 is -1"),
    (picks(lambda v, r: (r.devices[: v.k], [1.0])), "call: TypeError: Bad.select: must return"),
    (picks(lambda v, r: 1 / 0), "call: ZeroDivisionError"),
    (
        picks(lambda v, r: (np.random.permutation(r.devices)[: v.k], np.ones(v.k))),
        "determinism: two policies",
    ),
    (picks(lambda v, r: ([], [])), "schedule: it schedules no device in any of 6 rounds"),
    (Forgets, "state: a policy that continues from a saved state decides differently"),
    (Fickle, "asks: two policies that are made alike do not ask for the same reports"),
]


@pytest.mark.parametrize("part, start", FINDINGS, ids=[start[:24] for _, start in FINDINGS])
def test_a_policy_that_breaks_its_contract_is_found_with_the_name_of_the_fact(part, start):
    found = fedlink.check(part)
    assert any(finding.startswith(start) for finding in found), found


def test_a_policy_that_keeps_its_contract_has_no_findings():
    assert fedlink.check(Good) == [] == fedlink.check(Good, beta=0.5)
    misspelled = r"schedule\.good\.betta: is not a key; did you mean schedule\.good\.beta"
    with pytest.raises(ValueError, match=misspelled):
        fedlink.check(Good, betta=0.5)


class Signs(fedlink.Compressor):
    def encode(self, update, budget, rng):
        q = min(int(min(budget, 1e9)) - 32, update.size)
        if q < 1:
            return None, 0
        kept = update[:q]
        return (np.arange(q), np.abs(kept).mean() * np.sign(kept)), q + 32


class TooMany(Signs):
    def encode(self, update, budget, rng):
        what, bits = super().encode(update, budget, rng)
        return what, bits * 2


class Unseeded(Signs):
    def encode(self, update, budget, rng):
        q = min(int(min(budget, 1e9)) // 64, update.size)
        kept = np.sort(np.random.permutation(update.size)[:q])
        return (kept, update[kept]) if q else None, 64 * q


def test_compressors_and_fading_laws_are_checked_too():
    assert fedlink.check(Signs) == []
    assert any(finding.startswith("budget: it spends") for finding in fedlink.check(TooMany))
    assert any(finding.startswith("determinism: ") for finding in fedlink.check(Unseeded))

    class Walk(fedlink.Fading):
        def __init__(self):
            self.last = 5.0

        def gain(self, t, device):
            self.last = self.last * 0.9 + 0.1
            return self.last + 1 / (1 + t)

    class Drawn(fedlink.Fading):
        def gain(self, t, device, rng):
            return rng.exponential()

    class Negative(fedlink.Fading):
        def gain(self, t, device):
            return -1.0

    assert fedlink.check(Drawn) == []
    assert any(finding.startswith("random access: ") for finding in fedlink.check(Walk))
    assert any("must return a finite number of at least 0" in finding for finding in fedlink.check(Negative))


MINE = """
import numpy, fedlink

class Mine(fedlink.Policy):
    def select(self, view, reports):
        return reports.devices[: view.k], numpy.ones(len(reports.devices[: view.k]))

class Noise(fedlink.Policy):
    def select(self, view, reports):
        chosen = numpy.random.permutation(reports.devices)[: view.k]
        return chosen, numpy.ones(len(chosen))
"""


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "fedlink", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_the_command_checks_a_part_and_ends_with_2_if_it_breaks_its_contract(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    good = command("check", f"{file}:Mine")
    assert good.returncode == 0 and good.stdout.startswith("mine: keeps its contract"), good
    both = command("check", file)
    assert both.returncode == 2 and "noise: determinism: two policies" in both.stdout, both
    unknown = command("check", f"{file}:Nine")
    assert unknown.returncode == 2 and "there is no such part" in unknown.stderr
    assert "mine, noise" in unknown.stderr
    listed = command("list", "policies", "--parts", file)
    assert listed.returncode == 0 and "a custom part: mine.Mine, identity" in listed.stdout
    wrong = command("run", "demo", "--set", "schedule.policy=mine")
    assert wrong.returncode == 2 and "a part of your own is loaded by --parts FILE.py" in wrong.stderr


SETTINGS = {
    "learn.model": "softmax",
    "data.samples_per_device": 40,
    "data.devices": 6,
    "schedule.k": 2,
    "run.rounds": 3,
    "schedule.policy": "bc",
}


class Exponential(fedlink.Fading):
    def gain(self, t, device, rng):
        return rng.exponential()


class BySeed(fedlink.Fading):
    def __init__(self, seed, mean=1.0):
        self.gains = mean * np.random.default_rng(seed).exponential(size=(6, 3))

    def gain(self, t, device):
        return self.gains[device, t]


def gains(seed):
    return np.random.default_rng(seed).exponential(size=(6, 3))


def test_a_custom_fading_law_draws_by_the_seed_of_the_run(tmp_path, recwarn):
    array = np.stack([gains(0), gains(1)], axis=2)
    for name, fading in (("drawn", Exponential), ("seeded", BySeed), ("array", array)):
        study = fedlink.run(SETTINGS, fading=fading, seeds=2, out=tmp_path / name, progress=False)
        first, second = (run.summary["digest"] for run in study.curves[0].runs)
        assert first != second, name
        again = fedlink.run(
            SETTINGS, fading=fading, seeds=2, out=tmp_path / name, resume=True, progress=False
        )
        assert [run.summary["digest"] for run in again.curves[0].runs] == [first, second]
    assert not [warning for warning in recwarn if "same channel" in str(warning.message)]
    # The array of a seed is that seed's.
    for seed in (0, 1):
        alone = fedlink.simulate({**SETTINGS, "run.seed": seed}, fading=gains(seed))
        cube = fedlink.simulate({**SETTINGS, "run.seed": seed}, fading=array)
        assert alone.transmissions["gain"].tolist() == cube.transmissions["gain"].tolist()
    with pytest.raises(ValueError, match="gains for 2 seeds, 0 to 1, but run.seed is 2"):
        fedlink.simulate({**SETTINGS, "run.seed": 2}, fading=array)


def test_a_channel_that_all_seeds_share_is_warned_of(tmp_path):
    class Even(fedlink.Fading):
        def gain(self, t, device):
            return 1.0

    for name, fading in (("law", Even), ("array", gains(0))):
        with pytest.warns(RuntimeWarning, match="gives all seeds the same channel"):
            fedlink.run(SETTINGS, fading=fading, seeds=2, out=tmp_path / name, progress=False)


def test_own_data_and_an_own_split_are_run_with_seeds_and_recorded(tmp_path):
    digits = fedlink.dataset("digits")
    data = (digits.x_train[:600], digits.y_train[:600], digits.x_test, digits.y_test)
    split = np.array_split(np.argsort(data[1], kind="stable"), 6)
    given = {"data": data, "partition": split}
    study = fedlink.run(SETTINGS, **given, seeds=2, out=tmp_path / "out", progress=False)
    (curve,) = study.curves
    assert curve.config["data"]["samples_per_device"] == 100 and curve.config["data"]["devices"] == 6
    assert "sha256" in curve.config["custom"]["arrays"] and "sha256" in curve.config["custom"]["indices"]
    for run in curve.runs:
        alone = fedlink.simulate({**SETTINGS, "run.seed": run.seed}, **given)
        assert alone.digest == run.summary["digest"]
    again = fedlink.run(SETTINGS, **given, seeds=3, out=tmp_path / "out", resume=True, progress=False)
    assert len(again.curves[0].runs) == 3
    fedlink.merge(tmp_path / "out", **given)
    assert all(rerun.same for rerun in fedlink.verify(tmp_path / "out", rerun=3, **given).reruns)
    other = (data[0], (data[1] + 1) % 10, *data[2:])
    for changed in ({**given, "data": other}, {**given, "partition": split[::-1]}):
        with pytest.raises(ValueError, match="was begun with another configuration|another \"|other data"):
            fedlink.run(SETTINGS, **changed, seeds=2, out=tmp_path / "out", resume=True, progress=False)


def test_devices_that_share_all_samples_are_warned_of(small):
    split = [np.arange(60)] * 2 + [np.arange(60 * m, 60 * m + 60) for m in range(1, 7)]
    with pytest.warns(RuntimeWarning, match="devices 0 and 1 have the same samples"):
        fedlink.simulate(small, partition=split)

"""Experiments from Python: the folder, the numbers and the text of the command; custom parts in both."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pandas
import pytest

import fedlink

TEXT = """
[learn]
model = "softmax"
state = "reset"
[data]
devices = 6
samples_per_device = 50
[radio]
symbols = 500
[run]
rounds = 6
evaluate_every = 2
seeds = 2
[sweep]
"schedule.policy" = ["bc", "bn2"]
"schedule.k" = [1, 2]
[claims]
"norms help" = "bn2@k=1 final > bc@k=1 final"
"""

PARTS = '''
"""Proportional fair scheduling."""
import numpy
import fedlink


class ProportionalFair(fedlink.Policy):
    name = "pf"

    def __init__(self, memory=0.9):
        self.memory, self.mean = memory, None

    def candidates(self, view):
        if self.mean is None:
            self.mean = numpy.ones(view.devices)
        return numpy.sort(numpy.argsort(-view.capacities / self.mean, kind="stable")[: view.k])

    def select(self, view, reports):
        return reports.devices, numpy.ones(len(reports))

    def observe(self, record):
        self.mean *= self.memory
        self.mean[record.transmissions["device"]] += 1 - self.memory


class FirstHalf(fedlink.Compressor):
    def encode(self, update, budget, rng):
        q = min(int(budget // 40), update.size // 2)
        return ((numpy.arange(q), update[:q]), 40.0 * q) if q else (None, 0)


class SteadyFading(fedlink.Fading):
    def gain(self, t, device):
        return 1.0 + 0.1 * device
'''


@pytest.fixture
def parts_file(tmp_path):
    path = tmp_path / "parts" / "pf.py"
    path.parent.mkdir()
    path.write_text(PARTS)
    return path


@pytest.fixture
def proportional_fair(parts_file):
    names = {"__name__": "pf"}
    exec(compile(PARTS, "pf.py", "exec"), names)
    return names["ProportionalFair"]


def fedlink_command(*arguments, **options):
    """The command of the package, in a process of its own."""
    command = [sys.executable, "-m", "fedlink", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def numbers(folder):
    """Everything in a folder that is not a time."""
    manifest = json.loads((folder / "manifest.json").read_text())
    runs = [(run["curve"], run["seed"], run["status"], run["digest"]) for run in manifest["runs"]]
    return (folder / "results.csv").read_bytes(), runs, manifest["complete"]


def test_a_study_equals_the_files_of_the_command(command, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(TEXT)
    study = fedlink.run(file, out=tmp_path / "python", log_rounds=True, latex=True, progress=False)
    command("run", file, "--out", tmp_path / "rust", "--quiet", "--log-rounds", "--latex")
    files = lambda folder: sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert files(tmp_path / "python") == files(tmp_path / "rust")
    assert numbers(tmp_path / "python") == numbers(tmp_path / "rust")
    for name in ("config.toml", "rounds.csv", "claims.json", "results.tex"):
        assert (tmp_path / "python" / name).read_bytes() == (tmp_path / "rust" / name).read_bytes()
    assert [curve.label for curve in study.curves] == ["bc k=1", "bc k=2", "bn2 k=1", "bn2 k=2"]
    curve = study.curve("bn2 k=2")
    assert curve.keys == {"schedule.policy": "bn2", "schedule.k": "2"} and curve.config["schedule"]["k"] == 2
    assert [run.seed for run in curve.runs] == [0, 1] and curve.runs[0].rounds["round"].tolist() == [2, 4, 6]
    single = fedlink.simulate({**curve.config, "run": {**curve.config["run"], "seeds": 1}})
    assert single.digest == curve.runs[0].summary["digest"]
    assert study.summary == json.loads((study.folder / "summary.json").read_text())
    assert [claim["name"] for claim in study.claims["claims"]] == ["norms help"]
    assert "norms help" in repr(study) and "bn2 k=2" in study._repr_html_()
    with pytest.raises(KeyError, match="there are bc k=1"):
        study.curve("bc")


def test_the_log_of_all_devices_has_a_line_for_each(tmp_path):
    lines = {}
    for which in (True, "all"):
        fedlink.run(TEXT, out=tmp_path / str(which), seeds=1, log_rounds=which, progress=False)
        with (tmp_path / str(which) / "rounds.csv").open(newline="") as file:
            lines[which] = list(csv.reader(file))
    # The decisions of the policy follow the columns of a transmission.
    columns = len(lines[True][0])
    assert [line[:columns] for line in lines["all"] if "not-scheduled" not in line] == lines[True]
    assert {"score", "order"} <= set(lines["all"][0][columns:])
    assert len(lines["all"]) > len(lines[True])
    with pytest.raises(ValueError, match='log_rounds: must be True, False or "all"'):
        fedlink.run(TEXT, out=tmp_path / "x", log_rounds="some", progress=False)


def test_settings_that_are_seldom_meant_are_warnings_as_the_command_notes_them(command, tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(TEXT.replace("symbols = 500", "symbols = 500\ncsi_error = 0.01"))
    notes = command("run", path, "--out", tmp_path / "command").stderr
    with pytest.warns(RuntimeWarning, match="of the uploads will be lost") as caught:
        fedlink.run(path, out=tmp_path / "python", progress=False)
    # Once for the whole sweep, and at the line of the caller.
    [warning] = caught
    assert f"note: {warning.message}" in notes and warning.filename == __file__
    # They come before the runs: if they are made errors, nothing has run, and nothing is lost.
    long = {"run.rounds": 100_000}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="of the uploads will be lost"):
            fedlink.run(path, out=tmp_path / "refused", settings=long, progress=False)
    assert fedlink.status(tmp_path / "refused")["of"] == 8


def test_text_and_a_dictionary_are_experiments_too(tmp_path):
    by_text = fedlink.run(TEXT, out=tmp_path / "a", progress=False)
    keys = {
        "learn": {"model": "softmax", "state": "reset"},
        "data": {"devices": 6, "samples_per_device": 50},
        "radio.symbols": 500,
        "run": {"rounds": 6, "evaluate_every": 2, "seeds": 2},
        "schedule.policy": ["bc", "bn2"],
        "schedule.k": [1, 2],
    }
    by_keys = fedlink.run(keys, out=tmp_path / "b", progress=False)
    assert numbers(by_text.folder) == numbers(by_keys.folder)
    assert by_keys.claims is None


def test_a_custom_policy_sweeps_resumes_and_merges(tmp_path, proportional_fair):
    parts = {"pf": proportional_fair}
    settings = {"schedule.policy": ["bc", "pf"], "schedule.k": 2, "schedule.pf.memory": 0.5}
    whole = fedlink.run(TEXT, parts=parts, settings=settings, out=tmp_path / "whole", progress=False)
    assert [curve.label for curve in whole.curves] == ["bc", "pf"]
    assert "ProportionalFair" in whole.curve("pf").config["custom"]["pf"]
    assert "custom" not in whole.curve("bc").config
    with (whole.folder / "results.csv").open() as file:
        assert {row["policy"] for row in csv.DictReader(file)} == {"bc", "pf"}
    config = {**whole.curve("pf").config, "run": {**whole.curve("pf").config["run"], "seeds": 1}}
    assert fedlink.simulate(config, parts=parts).digest == whole.curve("pf").runs[0].summary["digest"]
    for share in ("1/3", "2/3", "3/3"):
        part = fedlink.run(
            TEXT, parts=parts, settings=settings, out=tmp_path / "cut", share=share, progress=False
        )
        assert part.summary is None and part.curves == []
    merged = fedlink.merge(tmp_path / "cut", parts=parts)
    assert numbers(merged.folder) == numbers(whole.folder)
    again = fedlink.run(
        TEXT, parts=parts, settings=settings, out=tmp_path / "whole", resume=True, progress=False
    )
    assert numbers(again.folder) == numbers(whole.folder)
    with pytest.raises(ValueError, match="was not given to this run"):
        fedlink.merge(tmp_path / "cut")
    with pytest.raises(FileExistsError, match="resume=True"):
        fedlink.run(TEXT, out=tmp_path / "whole", progress=False)
    with pytest.raises(ValueError, match="begun with another configuration"):
        fedlink.run(TEXT, out=tmp_path / "whole", resume=True, progress=False)


def test_a_preset_is_extended_by_parts_that_it_cannot_name(tmp_path, proportional_fair):
    settings = {"learn.model": "softmax", "data.devices": 6, "data.samples_per_device": 50, "run.rounds": 2}
    study = fedlink.run(
        "demo", parts={"pf": proportional_fair}, settings=settings, out=tmp_path / "out", progress=False
    )
    assert [curve.label for curve in study.curves] == ["bc", "bn2", "bc-bn2", "bn2-c", "pf"]


def test_figures_of_the_bound_are_run_and_verified(tmp_path):
    study = fedlink.run("fig3", out=tmp_path / "fig3", settings={"bound.rounds": 60}, seeds=3, progress=False)
    assert (study.folder / "results.csv").is_file() and study.curves == [] and study.summary["panels"]
    verified = fedlink.verify(study.folder)
    assert verified.claims == study.claims["claims"] and verified.missing == 0 and verified.text
    with pytest.raises(ValueError, match="resume: is for simulations"):
        fedlink.run("fig3", out=tmp_path / "other", resume=True, progress=False)
    assert not (tmp_path / "other").exists()


def test_claims_are_judged_from_a_folder(tmp_path):
    study = fedlink.run(TEXT, out=tmp_path / "out", seeds=1, progress=False)
    own = fedlink.verify(study.folder)
    assert own.claims == study.claims["claims"] and own.missing == 0
    other = fedlink.verify(
        study.folder, TEXT.replace("bn2@k=1 final > bc@k=1 final", "bc@k=1 final > bn2@k=1 final")
    )
    assert other.claims[0]["claim"] == "bc@k=1 final > bn2@k=1 final" and "norms help" in repr(other)


@pytest.mark.parametrize(
    "call, kind, reason",
    [
        (lambda out: fedlink.run("fig22", out=out), ValueError, "did you mean fig"),
        (lambda out: fedlink.run("none.toml", out=out), FileNotFoundError, "none.toml"),
        (lambda out: fedlink.run(5, out=out), TypeError, "experiment: must be"),
        (lambda out: fedlink.run(TEXT, out=out, share="5/4"), ValueError, "share: write I/N"),
        (lambda out: fedlink.run(TEXT, share="1/4"), ValueError, "share: give out="),
        (lambda out: fedlink.run(TEXT, out=out, quick=True), ValueError, r"quick: config has no \[quick\]"),
        (
            lambda out: fedlink.run(TEXT, out=out, settings={"schedule.kk": 1}),
            ValueError,
            "did you mean schedule.k",
        ),
        (lambda out: fedlink.run(TEXT, out=out, resume=True, force=True), ValueError, "resume, force"),
        (lambda out: fedlink.run(TEXT, out=out, parts={"pf": 5}), TypeError, r"parts\['pf'\]"),
        (lambda out: fedlink.verify(out), ValueError, "has no config.toml"),
        (lambda out: fedlink.merge(out), ValueError, "has no config.toml"),
    ],
)
def test_an_impossible_study_is_refused(tmp_path, call, kind, reason):
    with pytest.raises(kind, match=reason):
        call(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_exception_in_a_part_ends_the_sweep_and_is_raised_unchanged(
    tmp_path, proportional_fair, monkeypatch
):
    class Broken(proportional_fair):
        name = "broken"

        def observe(self, record):
            super().observe(record)
            if record.round == 4 and "FEDLINK_BROKEN" in os.environ:
                raise KeyError("on purpose")

    # A variable of the environment is not a part of the identity, unlike names that the code reads.
    monkeypatch.setenv("FEDLINK_BROKEN", "1")
    options = {
        "parts": {"broken": Broken},
        "settings": {"schedule.policy": ["bc", "broken"]},
        "out": tmp_path / "out",
    }
    with pytest.raises(KeyError, match="on purpose"):
        fedlink.run(TEXT, **options, checkpoint_every=1, progress=False)
    monkeypatch.delenv("FEDLINK_BROKEN")
    mended = fedlink.run(TEXT, **options, resume=True, progress=False)
    fresh = fedlink.run(TEXT, **{**options, "out": tmp_path / "fresh"}, progress=False)
    assert numbers(mended.folder) == numbers(fresh.folder)


def test_ctrl_c_saves_the_runs_so_far_and_resume_continues(tmp_path, parts_file):
    script = f"""
import fedlink, os, sys, time
sys.path.insert(0, {str(parts_file.parent)!r})
from pf import ProportionalFair
class Slow(ProportionalFair):
    name = "pf"
    def observe(self, record):
        super().observe(record)
        if "FEDLINK_SLOW" in os.environ:
            time.sleep(0.05)
        # In one write: runs are computed on several threads.
        sys.stdout.write("round\\n")
        sys.stdout.flush()
settings = {{"schedule.policy": ["bc", "pf"], "run.rounds": 40}}
options = dict(parts={{"pf": Slow}}, settings=settings, progress=False)
os.environ["FEDLINK_SLOW"] = "1"
try:
    fedlink.run({TEXT!r}, out={str(tmp_path / 'out')!r}, **options)
    print("never stopped")
except KeyboardInterrupt as stop:
    rounds = min(run.summary["rounds"] for c in stop.result.curves for run in c.runs)
    print("kept", stop.result.folder, rounds)
    del os.environ["FEDLINK_SLOW"]
    resumed = fedlink.run({TEXT!r}, out={str(tmp_path / 'out')!r}, resume=True, **options)
    fresh = fedlink.run({TEXT!r}, out={str(tmp_path / 'fresh')!r}, **options)
    print("done")
"""
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(10):
        assert child.stdout.readline() == "round\n"
    child.send_signal(signal.SIGINT)
    shown, errors = child.communicate(timeout=120)
    assert "kept" in shown and "done" in shown, errors
    assert numbers(tmp_path / "out") == numbers(tmp_path / "fresh")


def test_the_command_of_the_package_is_the_command(command, tmp_path):
    shown, other = fedlink_command("list", "policies"), command("list", "policies")
    assert shown.returncode == 0 and shown.stdout == other.stdout
    assert fedlink_command("--version").stdout == command("--version").stdout
    wrong = fedlink_command("run", "no-such-preset")
    assert wrong.returncode == 2 and "is neither a preset" in wrong.stderr
    assert fedlink_command("--nonsense").returncode == 2


def test_the_command_loads_parts_from_python_files_and_resumes(tmp_path, parts_file):
    file = tmp_path / "mine.toml"
    file.write_text(TEXT.replace('["bc", "bn2"]', '["bc", "pf"]').replace("bn2@k=1", "pf@k=1"))
    run = ["run", file, "--parts", parts_file, "--out", tmp_path / "out", "--quiet"]
    ended = fedlink_command(*run)
    assert ended.returncode == 0, ended.stderr
    first = numbers(tmp_path / "out")
    assert {curve for curve, *_ in first[1]} == {"bc k=1", "bc k=2", "pf k=1", "pf k=2"}
    config = (tmp_path / "out" / "config.toml").read_text()
    assert "pf.ProportionalFair, identity" in config
    cells = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").glob("*.json")}
    again = fedlink_command(*run, "--resume")
    assert again.returncode == 0, again.stderr
    assert numbers(tmp_path / "out") == first
    assert {path: path.stat().st_mtime_ns for path in cells} == cells
    merged = fedlink_command("merge", tmp_path / "out", "--parts", parts_file, "--quiet")
    assert merged.returncode == 0 and numbers(tmp_path / "out") == first, merged.stderr
    # Another text is another part: its results are not mixed with those that are there.
    parts_file.write_text(PARTS.replace("memory=0.9", "memory=0.8"))
    other = fedlink_command(*run, "--resume")
    assert other.returncode == 2 and 'another "pf": arguments.txt' in other.stderr


def test_every_kind_of_part_is_found_in_a_file(tmp_path, parts_file):
    settings = [
        "--set=schedule.policy=pf",
        "--set=compress.scheme=first-half",
        "--set=radio.fading=steady-fading",
    ]
    settings += [
        "--set=learn.model=softmax",
        "--set=data.devices=4",
        "--set=data.samples_per_device=20",
        "--set=run.rounds=2",
    ]
    ended = fedlink_command(
        "run", "demo", "--parts", parts_file, *settings, "--out", tmp_path / "out", "--json", "--quiet"
    )
    assert ended.returncode == 0, ended.stderr
    (curve,) = json.loads(ended.stdout)
    assert curve["policy"] == "pf"
    text = (tmp_path / "out" / "config.toml").read_text()
    for part in ("pf.ProportionalFair", "pf.FirstHalf", "pf.SteadyFading"):
        assert part in text


def test_the_error_names_the_fault_in_a_file_of_parts(tmp_path, parts_file):
    empty, broken, twice = (tmp_path / name for name in ("empty.py", "broken.py", "twice.py"))
    empty.write_text("import fedlink\nfrom fedlink import Policy\n")
    broken.write_text("1 / 0\n")
    twice.write_text(PARTS)
    cases = [
        ([empty], "defines no subclass of fedlink.Policy"),
        ([broken], "division by zero"),
        ([tmp_path / "none.py"], "there is no such file"),
        ([parts_file, twice], "is called 'pf', and so is ProportionalFair of"),
    ]
    for files, reason in cases:
        options = [word for file in files for word in ("--parts", file)]
        ended = fedlink_command("run", "demo", *options, "--out", tmp_path / "out")
        assert ended.returncode == 2 and reason in ended.stderr, ended.stderr
        assert not (tmp_path / "out").exists()


def test_an_exception_in_a_part_is_shown_by_the_command_with_its_line(tmp_path, parts_file):
    parts_file.write_text(PARTS.replace("return reports.devices, numpy.ones(len(reports))", "return 1 / 0"))
    ended = fedlink_command(
        "run", "demo", "--parts", parts_file, "--set=schedule.policy=pf", "--out", tmp_path / "out"
    )
    assert ended.returncode == 2
    assert (
        "error: policy pf broke its contract in round 1: ZeroDivisionError: division by zero" in ended.stderr
    )
    assert "pf.py" in ended.stderr and "return 1 / 0" in ended.stderr


def test_ctrl_c_in_the_command_of_the_package_saves_and_stops(tmp_path, parts_file):
    parts_file.write_text(
        PARTS.replace("self.mean *= self.memory", "import time; time.sleep(0.02); self.mean *= self.memory")
    )
    file = tmp_path / "mine.toml"
    file.write_text(
        TEXT.replace('["bc", "bn2"]', '["pf"]')
        .replace("bn2@k=1 final > bc@k=1 final", "pf@k=1 final > pf@k=2 final")
        .replace("rounds = 6", "rounds = 5000")
    )
    options = ["--parts", parts_file, "--out", tmp_path / "out", "--checkpoint-every", "5"]
    command = [sys.executable, "-m", "fedlink", "run", file, *options]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(Path(tmp_path, "out", "runs").glob("*.checkpoint")) and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    shown, errors = child.communicate(timeout=60)
    assert child.returncode == 130, errors
    assert "stopping after this round" in errors and "resume with `fedlink run" in errors
    assert f"--parts {parts_file}" in errors
    assert not json.loads((tmp_path / "out" / "manifest.json").read_text())["complete"]


def test_a_stored_run_is_read_without_fedlink_to_the_last_bit(tmp_path):
    study = fedlink.run(TEXT, out=tmp_path / "night", progress=False)
    page = (Path(__file__).parents[2] / "docs" / "results.md").read_text()
    cells = [json.loads(path.read_text()) for path in (tmp_path / "night" / "runs").glob("*.json")]
    assert len(cells) == 8
    for cell in cells:
        curve = study.curve(cell["label"].rsplit(" seed", 1)[0])
        run = next(run for run in curve.runs if run.seed == cell["seed"])
        assert cell["digest"] == run.summary["digest"] and cell["status"] == "finished"
        for name, values in zip(cell["columns"], zip(*cell["rows"])):
            stored = [float("nan") if value is None else value for value in values]
            assert repr(stored) == repr(run.rounds[name].tolist()), name
        assert cell["makers"][0]["fedlink"] == fedlink.__version__ and cell["data"].keys() == {"digits"}
    # The code of the page does the same with pandas.
    snippet = page.split("```python\n")[1].split("```")[0]
    assert "pd.DataFrame" in snippet
    names = {}
    exec(snippet.replace('"night/runs"', repr(str(tmp_path / "night" / "runs"))), names)
    table = pandas.read_csv(tmp_path / "night" / "results.csv")
    columns = ["curve", "seed", "round", "test_loss"]
    assert len(names["runs"].merge(table, on=columns)) == len(table) == len(names["runs"])


def test_a_sweep_grows_shows_its_state_and_is_made_again(tmp_path):
    out = tmp_path / "out"
    fedlink.run(TEXT, out=out, share="1/2", progress=False)
    state = fedlink.status(out)
    assert (state["of"], state["done"], state["waiting"], state["running"]) == (8, 4, 4, 0)
    assert {run["state"] for run in state["runs"]} == {"done", "waiting"}
    fedlink.run(TEXT, out=out, resume=True, progress=False, keep_state=True)
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").glob("*.json")}
    fedlink.run(TEXT, out=out, resume=True, seeds=3, progress=False)
    assert len(list((out / "runs").glob("*.json"))) == 12
    assert {path: path.stat().st_mtime_ns for path in before} == before
    with pytest.raises(ValueError, match="differs in run.seeds"):
        fedlink.run(TEXT, out=out, resume=True, progress=False)
    longer = fedlink.run(TEXT, out=out, resume=True, seeds=3, settings={"run.rounds": 8}, progress=False)
    whole = fedlink.run(TEXT, out=tmp_path / "whole", seeds=3, settings={"run.rounds": 8}, progress=False)
    assert longer.summary == whole.summary
    verified = fedlink.verify(out, rerun=3, rerun_seed=1)
    assert len(verified.reruns) == 3 and all(again.same for again in verified.reruns)
    assert verified.claims[0]["name"] == "norms help"
    path = next((out / "runs").glob("*.json"))
    path.write_text("damaged")
    assert fedlink.status(out)["failed"] == 1


def test_force_leaves_the_files_of_others_alone(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match=r"did not write: thesis\.tex"):
        fedlink.run(TEXT, out=tmp_path / "thesis", force=True, progress=False)
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["thesis.tex"]


def test_goals_give_the_median_with_the_seeds_that_miss_it_and_compare_curves(tmp_path):
    study = fedlink.run(TEXT, out=tmp_path / "out", settings={"run.seeds": 6}, progress=False)
    first = study.goal("rounds until accuracy >= 0.001")
    assert [value.curve for value in first] == [curve.label for curve in study.curves]
    assert (first[0].value, first[0].reached, first[0].of) == (2.0, 6, 6)
    assert first[0].seeds == {seed: 2.0 for seed in range(6)}
    never = study.goal("bits until accuracy >= 0.9999 for 2 evaluations")[0]
    assert (never.value, never.reached, never.of) == (None, 0, 6) and never.beyond > 0
    assert str(never).endswith("reached 0/6") and "> " in str(never)
    final = study.goal("final accuracy")[0]
    runs = study.curves[0].runs
    mean = sum(run.summary["final_accuracy"] for run in runs) / 6
    assert final.value == pytest.approx(mean, rel=1e-12) and final.low < mean < final.high
    one, other = study.curves[0], study.curves[1].label
    compared = study.compare(one, other, "rounds until accuracy >= 0.9999")
    assert (compared.seeds, compared.tied, compared.p, compared.value) == (6, 6, 1.0, 1.0)
    swapped = [study.compare(*sides, "final accuracy").value for sides in ((one, other), (other, one))]
    assert swapped[0] == pytest.approx(-swapped[1])
    with pytest.raises(ValueError, match="did you mean accuracy"):
        study.goal("rounds until acuracy >= 0.8")
    with pytest.raises(ValueError, match="radio.bandwidth_hz"):
        study.goal("seconds until accuracy >= 0.8")
    with pytest.raises(ValueError, match="run.fairness"):
        study.compare(one, other, "rounds until worst-class >= 0.5")
    with pytest.raises(KeyError, match="no curve"):
        study.compare(one, "bn3", "final")

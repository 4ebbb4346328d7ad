"""``fedlink.plan``: the same answer as the command's, as an object."""

import json

import fedlink
import pytest

SCENARIO = {
    "data.devices": 6,
    "data.samples_per_device": 40,
    "learn.model": "softmax",
    "learn.state": "reset",
    "learn.batch": 20,
    "schedule.k": 2,
    "run.rounds": 16,
    "run.evaluate_every": 2,
}
GOAL = "symbols until accuracy >= 0.2"


def test_a_plan_has_settings_that_run_and_tables(tmp_path):
    plan = fedlink.plan(
        SCENARIO,
        goal=[GOAL, "trainings"],
        over={"schedule.k": [1, 3], "schedule.policy": "bc,bn2"},
        budget="6runs",
        out=tmp_path / "plan",
        progress=False,
    )
    assert plan.folder == tmp_path / "plan"
    assert json.loads((plan.folder / "decision.json").read_text()) == plan.decision
    assert plan.recommended is not None and plan.recommended["costs"][0]["reached"] > 0
    assert set(plan.settings) >= {"schedule.k", "schedule.policy"}
    assert fedlink.simulate({**SCENARIO, **plan.settings, "run.rounds": 2}, progress=False).digest
    assert "recommended" in plan.text
    # Six runs race some of the four settings, among them every value of both keys.
    raced = [(one["settings"]["schedule.k"], one["settings"]["schedule.policy"]) for one in plan.candidates]
    assert len(set(raced)) == len(raced) <= 4
    assert {k for k, _ in raced} == {1, 3} and {policy for _, policy in raced} == {"bc", "bn2"}
    assert {fact["key"] for fact in plan.importance} == {"schedule.k", "schedule.policy"}


def test_what_does_not_fit_is_refused_before_anything_is_written(tmp_path):
    for wrong, words in [
        ({"goal": "final"}, "no condition"),
        ({"goal": GOAL, "budget": "soon"}, "budget"),
        ({"goal": GOAL, "over": {"schedule.kk": [1]}}, "schedule.k"),
        ({"goal": "seconds until accuracy >= 0.2"}, "bandwidth_hz"),
    ]:
        with pytest.raises(ValueError, match=words):
            fedlink.plan(SCENARIO, out=tmp_path / "plan", progress=False, **wrong)
    assert not (tmp_path / "plan").exists()

"""The auditor of dispatches: each says of its job what the log says, for a worker believes it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from headgate_contracts import IllegalTransition, JobEvent, Tier, advance
from headgate_contracts.events import EarlierWork
from tests.fixtures.audit_assignments import AssignmentAudit
from tests.fixtures.lives import job_after, life_of, lives, step

RUN = "queued dispatched started scaffold code given_back:drained"
CONFIRMED = "queued dispatched started scaffold code deps checks awaiting_confirmation confirmed"


def complaints(life: list[JobEvent]) -> list[str]:
    found: list[str] = []
    audit = AssignmentAudit(lambda what, about, why: found.append(why), lambda user, at: {Tier.PARTNER})
    for event in life:
        audit.read(event.data, event.time)
    return found


@given(life=lives(ends=False))
def test_whatever_the_life_of_a_job_was_a_true_dispatch_is_not_complained_of(life: list[JobEvent]) -> None:
    assert complaints(life) == []


@pytest.mark.parametrize(
    ("story", "wrong", "said"),
    [
        (RUN, {"earlier": None}, "iteration"),
        (RUN, {"tier": Tier.CTO_SCALE}, "tier"),
        ("queued dispatched started cancel_requested given_back:lost", {"cancel_requested_by": None}, "end"),
        (RUN, {"earlier": {"iteration": 2}}, "iteration"),
        (RUN, {"earlier": {"cycle_over": True}}, "cycle"),
        (RUN, {"earlier": {"finished_stages": ()}}, "stages"),
        (RUN, {"earlier": {"checkpoint": "another"}}, "checkpoint"),
        (RUN, {"earlier": {"worked_s": 99.0}}, "work"),
        (CONFIRMED, {"earlier": {"granted": 9}}, "granted"),
    ],
)
def test_a_dispatch_that_says_another_thing_is_found(story: str, wrong: dict[str, Any], said: str) -> None:
    job = job_after(story)
    true = step(job, "dispatched").data
    earlier = getattr(true, "earlier", None) or EarlierWork()
    changed = {
        name: earlier.model_copy(update=value) if isinstance(value, dict) else value for name, value in wrong.items()
    }
    event = step(job, "dispatched", **changed)

    found = complaints([*life_of(story=story), event])

    assert len(found) >= 1
    assert any(said in each for each in found)


@pytest.mark.parametrize("name", ["pipeline", "shared", "input_digest", "pool"])
def test_a_dispatch_of_another_input_or_pipeline_is_none_of_the_jobs_life(name: str) -> None:
    job = job_after("queued")
    other = {"pipeline": "other", "shared": False, "input_digest": f"sha256:{'0' * 64}", "pool": "gpu"}[name]

    with pytest.raises(IllegalTransition) as refused:
        advance(job, step(job, "dispatched", **{name: other}))

    assert refused.value.field == f"data.{name}"

"""Workflows as the ledger tells them: what may enter the queue, what never will, and how long a phase is remembered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate_contracts import Event, Job, advance
from libs.capacity.ledger import Ledger
from libs.capacity.snapshot import dump, load
from libs.policy import Policy
from tests.fixtures.lives import step, submission

T0 = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Logged:
    seq: int
    at: datetime
    event: object


class Flow:
    """A workflow of so many phases, written into a ledger as its story goes on."""

    def __init__(self, phases: int = 3) -> None:
        self.ledger = Ledger(Policy())
        self.at = T0
        self._write(step("flow-1", "queued", submission=asked(1)))
        for phase in range(2, phases + 1):
            self._write(step(f"flow-{phase}", "waiting", phase=phase, workflow="flow", submission=asked(phase)))

    def goes(self, phase: int, story: str) -> None:
        for word in story.split():
            self._write(step(self.job(phase), word))

    def job(self, phase: int) -> Job:
        return self.ledger.jobs[f"flow-{phase}"]

    def passes(self, **span: float) -> None:
        """Somebody else's job tells the ledger the time."""
        self.at += timedelta(**span)
        self._write(step(f"other-{self.ledger.applied}", "queued"))

    def _write(self, event: Event[Any]) -> None:
        self.at += timedelta(seconds=1)
        change = self.ledger.apply(Logged(self.ledger.applied + 1, self.at, event))
        assert change.complaint is None, change.complaint


def asked(phase: int) -> Any:
    return submission(workflow="flow", phase=phase, phases=3)


READY = "dispatched started scaffold code deps checks ready"


def test_a_phase_is_free_when_the_one_before_is_ready() -> None:
    flow = Flow()
    flow.goes(1, READY)

    assert list(flow.ledger.phases.free) == ["flow-2"]
    assert not flow.ledger.phases.doomed


def test_a_phase_that_entered_the_queue_is_free_no_more() -> None:
    flow = Flow()
    flow.goes(1, READY)
    flow.goes(2, "queued:phase_ready")

    assert not flow.ledger.phases.free


@pytest.mark.parametrize(
    ("story", "why"),
    [
        ("dispatched failed", "phase 1 of the workflow failed"),
        ("cancelled", "phase 1 of the workflow was cancelled"),
    ],
)
def test_all_later_phases_are_doomed_by_one_that_ended_otherwise(story: str, why: str) -> None:
    flow = Flow()
    flow.goes(1, story)

    assert flow.ledger.phases.doomed == {"flow-2": why, "flow-3": why}


def test_a_doomed_phase_that_is_cancelled_is_done_with() -> None:
    flow = Flow()
    flow.goes(1, "cancelled")
    flow.goes(2, "cancelled")

    assert flow.ledger.phases.doomed == {"flow-3": "phase 1 of the workflow was cancelled"}


def test_a_cancelled_phase_in_the_middle_dooms_those_after_it_alone() -> None:
    flow = Flow(phases=4)
    flow.goes(3, "cancelled")
    flow.goes(1, READY)

    assert list(flow.ledger.phases.free) == ["flow-2"]
    assert set(flow.ledger.phases.doomed) == {"flow-4"}


def test_a_phase_that_has_ended_need_not_be_known_for_the_next_one_to_be_free() -> None:
    flow = Flow()
    flow.goes(1, READY)
    flow.passes(days=3)

    assert "flow-1" not in flow.ledger.jobs
    assert list(flow.ledger.phases.free) == ["flow-2"]


def test_nothing_is_kept_of_a_workflow_that_has_ended() -> None:
    flow = Flow()
    flow.goes(1, READY)
    flow.passes(days=3)
    flow.goes(2, "cancelled")
    before = set(flow.ledger.phases.flows)
    flow.goes(3, "cancelled")

    assert before == {"flow"}
    assert not flow.ledger.phases.flows


def test_a_snapshot_knows_the_same_of_workflows() -> None:
    flow = Flow()
    flow.goes(1, READY)
    flow.passes(days=3)

    resumed = load(dump(flow.ledger, epoch="E"), epoch="E", policy=Policy())

    assert resumed.phases == flow.ledger.phases
    assert list(resumed.phases.free) == ["flow-2"]


def test_jobs_without_a_workflow_are_none_of_it() -> None:
    ledger = Ledger(Policy())
    job = advance(None, step("job-1", "queued"))
    ledger.apply(Logged(1, T0, step("job-1", "queued")))
    ledger.apply(Logged(2, T0, step(job, "cancelled")))

    assert not ledger.phases.flows

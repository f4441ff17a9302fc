"""Wall clocks of our processes have no effect: what a scheduler dates, it dates by the store's clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from headgate_contracts import Event
from headgate_contracts.events import JobData, JobDispatched
from tests.simulation.evidence import Evidence, Finding

LANDS_WITHIN: Final = timedelta(seconds=120)  # of its deciding; a message may be under way for most of a minute


def deadlines_follow_no_wall_clock(evidence: Evidence) -> Iterator[Finding]:
    """A run has the time that it was promised, from when the log has its dispatch."""
    asked: dict[str, int | None] = {}
    for record in evidence.records:
        data = record.event.data if isinstance(record.event, Event) else None
        submission = getattr(data, "submission", None)
        if isinstance(data, JobData) and submission is not None:
            asked[data.job_id] = submission.run_timeout_s
        if isinstance(data, JobDispatched) and data.deadline is not None:
            budget = timedelta(seconds=asked.get(data.job_id) or evidence.policy.runs.timeout_s)
            if abs(data.deadline - budget - record.at) > LANDS_WITHIN:
                yield Finding("time", data.job_id, f"dispatched at {record.at}, its deadline is {data.deadline}")

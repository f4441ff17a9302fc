"""That what a job needs is there as long as it needs it: its input, and the work that its finished stages have left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headgate_contracts.events import JobFailed
from tests.simulation.evidence import Evidence, Finding

GONE: Final = "not there any more"  # the words of both failures


def work_was_kept(evidence: Evidence) -> Iterator[Finding]:
    """No job fails because something was deleted under it, unless it was to go on from the work of one long ended."""
    retried = {data.job_id for data in evidence.datas if getattr(getattr(data, "submission", None), "retry_of", None)}
    for data in evidence.datas:
        if isinstance(data, JobFailed) and GONE in data.summary and data.job_id not in retried:
            yield Finding("work", data.job_id, data.summary)

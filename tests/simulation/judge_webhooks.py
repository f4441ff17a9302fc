"""Calls to receivers: each is what the log says, signed, made until it was taken, and not again once that is known.

Nothing is said of their order, and one whose answer was lost may come again: a receiver knows it by its id.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from headgate_contracts import Event
from headgate_contracts.events import (
    JobAwaitingConfirmation,
    JobCancelled,
    JobConfirmationReminder,
    JobData,
    JobFailed,
    JobReady,
)
from tests.simulation.evidence import Evidence, Finding
from tests.simulation.receivers import SECRET, Called

SAID: Final = (JobAwaitingConfirmation, JobConfirmationReminder, JobReady, JobFailed, JobCancelled)
UNDER_WAY_S: Final = 4.0  # a call, from its beginning to its end


@dataclass(frozen=True, slots=True)
class _Due:
    """An event that somebody is to be called about."""

    seq: int
    event: Event[Any]
    url: str


def receivers_are_called(evidence: Evidence) -> Iterator[Finding]:
    """J8: receivers are called about questions, reminders and ends, signed, until they take it, and then no more."""
    if evidence.called is None:
        return
    due, calls = _due(evidence), defaultdict[str, list[Called]](list)
    for called in evidence.called:
        calls[called.call.headers["webhook-id"]].append(called)
    for event_id, arrived in calls.items():
        if event_id not in due:
            yield Finding("J8", event_id, "a call about nothing that a receiver is called about")
            continue
        for called in arrived:
            yield from (Finding("J8", event_id, what) for what in _wrong(called, due[event_id], evidence))
    for event_id, each in due.items():
        if evidence.drained and not any(called.status < 300 for called in calls[event_id]):
            yield Finding("J8", each.event.data.job_id, f"{each.seq} was never taken, in {len(calls[event_id])} calls")


def _due(evidence: Evidence) -> dict[str, _Due]:
    urls: dict[str, str] = {}
    found: dict[str, _Due] = {}
    for record in evidence.records:
        event = record.event
        if not isinstance(event, Event) or not isinstance(event.data, JobData):
            continue
        submission = getattr(event.data, "submission", None)
        if submission is not None and submission.notify_url is not None:
            urls[event.data.job_id] = submission.notify_url
        if isinstance(event.data, SAID) and event.data.job_id in urls:
            found[event.id] = _Due(record.seq, event, urls[event.data.job_id])
    return found


def _wrong(called: Called, due: _Due, evidence: Evidence) -> Iterator[str]:
    body, headers = json.loads(called.call.body), called.call.headers
    data = due.event.data
    if (body["id"], body["data"]["job_id"], body["data"]["status"]) != (due.event.id, data.job_id, data.status.value):
        yield f"is told as {body}"
    if called.call.url != due.url:
        yield f"is told to {called.call.url}, and not to {due.url}"
    signed = f"{due.event.id}.{headers['webhook-timestamp']}.".encode() + called.call.body
    wanted = base64.b64encode(hmac.digest(SECRET, signed, hashlib.sha256)).decode()
    if headers["webhook-signature"] != f"v1,{wanted}":
        yield "is not signed with its receiver's secret"
    acked_s = evidence.acked.get(due.seq)
    if acked_s is not None and called.at_s > acked_s + UNDER_WAY_S:
        yield f"is told at {called.at_s:.1f} s, after it was over at {acked_s:.1f} s"

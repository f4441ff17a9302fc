"""I6: each reader is told each status of its jobs once and in order, whatever broke in between, and then that it ends.

Read from what readers were sent and the log alone: which events are a status by the contracts' table, what a snapshot
must say by the records that it says to include.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headgate_contracts import Event
from headgate_contracts.events import JobData
from tests.simulation.evidence import ENDS, Evidence, Finding
from tests.simulation.readers import STATUSES, Heard, Hearing, Sent


@dataclass(frozen=True, slots=True)
class _Said:
    """A record about a job."""

    seq: int
    at_s: float
    data: JobData

    @property
    def is_status(self) -> bool:
        return self.data.EVENT in STATUSES


class _Audit:
    """One reader's."""

    def __init__(self, evidence: Evidence, heard: Heard) -> None:
        self._evidence = evidence
        self._heard = heard
        self._records = [each for each in _said(evidence) if heard.concerns(each.data.job_id, each.data.user_id)]
        self._due = [each.seq for each in self._records if each.is_status]
        self._by_seq = {each.seq: each for each in self._records}
        self._at = 0  # the last record that the reader knows of
        self._line = 0
        self._ended = False

    def findings(self) -> Iterator[str]:
        for hearing in self._heard.hearings:
            if hearing.status == 204 and self._missing(10**9):
                yield f"is answered 204 and was never told of {self._missing(10**9)}"
            if hearing.status == 200:
                yield from self._one(hearing)
        if self._evidence.drained and self._missing(10**9):
            yield f"was told up to {self._at}, and never of {self._missing(10**9)}"

    def _missing(self, before: int) -> list[int]:
        """The statuses between what the reader knows of and that record."""
        return [seq for seq in self._due[bisect_right(self._due, self._at) :] if seq < before]

    def _one(self, hearing: Hearing) -> Iterator[str]:
        begins = hearing.last_event_id is None
        before: Sent | None = None
        for sent in hearing.sent:
            if self._ended:
                yield f"is sent {sent.kind} after the end"
            match sent.kind:
                case "snapshot":
                    yield from self._snapshot(sent, hearing, begins=begins)
                case "status":
                    yield from self._status(sent, before)
                case "log":
                    yield from self._one_line(sent.data)
                case "resync":
                    yield f"has the id {hearing.last_event_id} and is sent resync"
                case "end":
                    self._ended = True
                    yield from self._end()
                case _:
                    pass
            before = sent

    def _status(self, sent: Sent, before: Sent | None) -> Iterator[str]:
        seq = sent.seq or 0
        record = self._by_seq.get(seq)
        if record is None or not record.is_status:
            yield f"is sent a status as {sent.id}, which is none"
            return
        if seq <= self._at:
            yield f"is sent {seq} again, after {self._at}"
        if missing := self._missing(seq):
            yield f"is sent {seq} after {self._at}, and not {missing}"
        if (sent.data["job_id"], sent.data["status"]) != (record.data.job_id, record.data.status.value):
            yield f"is told that {seq} is {sent.data['status']}, and it is {record.data.status.value}"
        if record.data.status.value == "awaiting_confirmation" and (before is None or before.kind != "confirmation"):
            yield f"is told of the question {seq} and not what it asks"
        self._at = max(self._at, seq)

    def _snapshot(self, sent: Sent, hearing: Hearing, *, begins: bool) -> Iterator[str]:
        seq = sent.seq or 0
        if not begins:
            yield f"has the id {hearing.last_event_id} and is sent a snapshot"
        newest = max((each.seq for each in self._records if each.at_s <= hearing.asked_s), default=0)
        if seq < newest:
            yield f"is sent a snapshot of {seq}, when the log was at {newest}"
        if self._heard.reader.replay and (missing := self._missing(seq)):
            yield f"is sent the snapshot of {seq} and not {missing} before"
        jobs = sent.data.get("jobs", [sent.data])
        for job, status in self._statuses(seq).items():
            told = [each["status"] for each in jobs if each["id"] == job]
            if told != [status]:
                yield f"is sent a snapshot of {seq} in which {job} is {told}, and it is {status}"
        self._at = max(self._at, seq)

    def _statuses(self, seq: int) -> dict[str, str]:
        """Of all jobs, by the records up to there."""
        return {each.data.job_id: each.data.status.value for each in self._records if each.seq <= seq}

    def _one_line(self, data: dict[str, Any]) -> Iterator[str]:
        """None of those in between was kept."""
        if data["line"].endswith("gone: the log was cut here]"):
            return  # its reader was told so in place of a line
        seq = data["seq"]
        if seq <= self._line:
            yield f"is sent line {seq} after line {self._line}"
        if missing := [each for each in self._lines(data["job_id"]) if self._line < each < seq]:
            yield f"is sent line {seq} after line {self._line}, and not {missing}"
        self._line = max(self._line, seq)

    def _lines(self, job: str) -> list[int]:
        return [each.seq for each in self._evidence.lines if each.line.job_id == job]

    def _end(self) -> Iterator[str]:
        if self._missing(10**9):
            yield f"is sent the end and not {self._missing(10**9)}"
        last = max(self._records, key=lambda each: each.seq, default=None)
        if last is None or last.data.status.value not in ENDS:
            yield "is sent the end of a job that goes on"


def streams_are_whole(evidence: Evidence) -> Iterator[Finding]:
    """I6: each reader gets each status once and in order, from snapshots that are true, until the end."""
    for heard in evidence.heard:
        about = f"{heard.reader.name} of {heard.jobs[0] if heard.jobs else heard.reader.user}"
        for what in _Audit(evidence, heard).findings():
            yield Finding("I6", about, what)


def _said(evidence: Evidence) -> Sequence[_Said]:
    return [
        _Said(record.seq, evidence.at_s(record.at), record.event.data)
        for record in evidence.records
        if isinstance(record.event, Event) and isinstance(record.event.data, JobData)
    ]

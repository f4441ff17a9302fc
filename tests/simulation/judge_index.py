"""I7 for the index: its jobs are those of the log, each under its title, and of what was erased no byte is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from headgate_contracts import Event
from headgate_contracts.events import ContentErased, JobData, JobMoved, JobReprioritized
from tests.simulation.evidence import Evidence, Finding

COMPARED: Final = ("user", "project", "status", "pipeline", "pool", "workflow", "class", "last")


def index_is_what_the_log_says(evidence: Evidence) -> Iterator[Finding]:
    """I7: the index, whatever became of its file, lists the jobs of the log; erased titles have left no byte in it."""
    if evidence.index is None or not evidence.drained:
        return
    if evidence.index.applied != len(evidence.records):
        yield Finding("I7", "the index", f"is at {evidence.index.applied} of {len(evidence.records)} records")
        return
    rows, found = _rows(evidence), evidence.index.jobs
    for job in sorted(rows.keys() ^ found.keys()):
        yield Finding("I7", job, "is in one, the log or the index, alone")
    for job in rows.keys() & found.keys():
        for name in COMPARED:
            if rows[job][name] != found[job][name]:
                what = f"its {name} is {found[job][name]} in the index and {rows[job][name]} in the log"
                yield Finding("I7", job, what)
    yield from _titles(evidence, rows)


def _rows(evidence: Evidence) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for record in evidence.records:
        data = record.event.data if isinstance(record.event, Event) else None
        if not isinstance(data, JobData):
            continue
        row = rows.setdefault(data.job_id, {"first": record.seq, "user": data.user_id, "project": data.project_id})
        if (asked := getattr(data, "submission", None)) is not None:
            row |= {"pipeline": asked.pipeline, "pool": asked.pool, "workflow": asked.workflow}
            row["class"] = asked.priority.class_number
        if isinstance(data, JobReprioritized | JobMoved):
            row["class"] = data.to.class_number
        row |= {"status": data.status.value, "last": record.seq}
    return rows


def _titles(evidence: Evidence, rows: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    assert evidence.index is not None
    erased = {
        record.event.data.user_id: record.seq
        for record in evidence.records
        if isinstance(record.event, Event) and isinstance(record.event.data, ContentErased)
    }
    content = evidence.index.content
    again = {each["title"] for each in evidence.index.jobs.values()}  # a retry that came later is called the same
    for job, row in rows.items():
        title, found = evidence.titles[job], evidence.index.jobs.get(job, {}).get("title")
        at = erased.get(row["user"])
        if at is None and found != title:
            yield Finding("I7", job, f"is called {found!r} in the index, and {title!r} by its client")
        elif at is not None and row["first"] < at and (found or (title not in again and title.encode() in content)):
            yield Finding("I7", job, f"was erased by record {at}, and the index has {title!r} still")

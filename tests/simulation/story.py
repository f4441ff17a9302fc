"""A run as a story that one can read: what went wrong, what was written, and what must not be."""

from __future__ import annotations

from collections.abc import Iterator

from headgate_contracts import Event
from headgate_contracts.events import JobData, SchedulerCommitted
from tests.simulation.plan import Plan
from tests.simulation.run import Run, jobs_of


def story_of(run: Run) -> str:
    names = {job: name for order in run.plan.orders for job, name in _named(order)}
    told = sorted([*_said(run), *_written(run)], key=lambda line: line[0])
    lines = [
        f"seed {run.plan.seed}: {_size(run.plan)}, {run.ended_s:.0f} s, log {run.log_sha256[:16]}",
        *(f"{at_s:8.3f}  {text}" for at_s, text in told),
        *(f"!! {finding}" for finding in run.findings),
        f"again: make simulate SEED={run.plan.seed}",
    ]
    text = "\n".join(lines)
    for job, name in names.items():
        text = text.replace(job, name)
    return text


def _size(plan: Plan) -> str:
    return f"{len(plan.orders)} orders, {len(plan.acts)} acts, {len(plan.faults)} faults"


def _named(order: object) -> Iterator[tuple[str, str]]:
    jobs = jobs_of(order)  # type: ignore[arg-type]
    for number, job in enumerate(jobs, 1):
        yield job, order.name if len(jobs) == 1 else f"{order.name}/{number}"  # type: ignore[attr-defined]


def _said(run: Run) -> Iterator[tuple[float, str]]:
    for at_s, text in run.said:
        yield at_s, f"-- {text}"


def _written(run: Run) -> Iterator[tuple[float, str]]:
    for record in run.records:
        at_s = record.at.timestamp() - run.start_ms / 1000
        if not isinstance(record.event, Event):
            yield at_s, f"{record.seq:4} unreadable"
            continue
        data = record.event.data
        match data:
            case SchedulerCommitted():
                yield at_s, f"{record.seq:4} {data.leader} {'commits' if data.jobs else 'begins'}"
            case JobData():
                yield at_s, f"{record.seq:4} {record.event.writer.value:9} {data.job_id} {_word(data)}"
            case _:
                yield at_s, f"{record.seq:4} operator  {type(data).__name__} {data.model_dump_json()}"


def _word(data: JobData) -> str:
    alone = getattr(data, "alone", None)
    details = [f"alone, over {alone.over}"] if alone else []
    details += [
        str(getattr(data, name)) for name in ("why", "reason", "worker", "summary") if getattr(data, name, None)
    ]
    stage = getattr(data, "stage", None)
    word = stage if stage is not None else data.EVENT.value
    restored = "(restored)" if getattr(data, "restored", False) else ""
    return " ".join([word + restored, f"#{data.attempt}", *details])

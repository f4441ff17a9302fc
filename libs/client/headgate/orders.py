"""What a submission says: the prompt or the input, for which project, and what else was asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, Unpack

from headgate.exchange import asked

What = str | Mapping[str, Any]  # a prompt, or the whole input of a pipeline


class PhaseOptions(TypedDict, total=False):
    """What a job, and each phase of a workflow, may ask for."""

    pipeline: str
    title: str
    pool: str
    concurrency_group: str
    concurrency_limit: int
    run_timeout_s: int


class Options(PhaseOptions, total=False):
    """What a job may ask for beside that."""

    priority: str
    queue_ttl_s: int
    run_at: datetime | str
    notify_url: str
    labels: Mapping[str, str]


class WorkflowOptions(TypedDict, total=False):
    """What a workflow may ask for as a whole."""

    priority: str
    run_at: datetime | str
    notify_url: str
    labels: Mapping[str, str]


class Wanted(TypedDict, total=False):
    """Which jobs are listed. `text` is looked for in titles, ids and labels; `user` is for operators; `sort` is newest,
    oldest, updated or priority."""

    text: str | None
    status: str | None
    project: str | None
    pipeline: str | None
    pool: str | None
    label: str | None
    workflow: str | None
    user: str | None
    since: datetime | str | None
    until: datetime | str | None
    sort: str | None


@dataclass(frozen=True, slots=True)
class Order:
    """One job that is asked for, as a body."""

    body: Mapping[str, Any]


def order(what: What, *, project: str, **options: Unpack[Options]) -> Order:
    """One of a batch, by the same words as `submit`."""
    return Order({"project_id": project, "input": input_of(what), **_plain(options)})


def phase(what: What, **options: Unpack[PhaseOptions]) -> Order:
    """One of a workflow."""
    return Order({"input": input_of(what), **_plain(options)})


def workflow(phases: Sequence[What | Order], project: str, options: WorkflowOptions) -> dict[str, Any]:
    if isinstance(phases, str | Mapping):  # each letter would be a phase, and cost what a phase costs
        raise TypeError("phases: name a list of prompts, inputs or phase(…)s, not a single one")
    each = [one if isinstance(one, Order) else phase(one) for one in phases]
    return {"project_id": project, "phases": [dict(one.body) for one in each], **_plain(options)}


def input_of(what: What) -> dict[str, Any]:
    if isinstance(what, str):
        return {"prompt": what}
    if not isinstance(what, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - a caller's, and none checks it
        raise TypeError(f"a job is made from a prompt or from an input, a mapping, not from {type(what).__name__}")
    return dict(what)


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON has it. Null is what was not asked for."""
    run_at = options.get("run_at")
    return asked(**options) | ({"run_at": run_at.isoformat()} if isinstance(run_at, datetime) else {})


def named(wanted: Wanted) -> dict[str, Any]:
    """As the query has it."""
    told = {"q" if name == "text" else name: value for name, value in wanted.items()}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in told.items()}

"""What operators ask of Headgate, script by script. A reason stands in the audit."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from headgate.exchange import Request, Script, Stream, asked, path_of
from headgate.overseen import (
    AttemptOfWorker,
    AuditRecord,
    Charts,
    ContentErased,
    GroupState,
    LeaseFreed,
    PipelineRemoved,
    PolicyState,
    QueueAnalytics,
    ScopeChanged,
    TokenRevoked,
    WorkerState,
)
from headgate.repeating import fetched
from headgate.values import JobState
from headgate.verbs import pages, post

ERASED_WITHIN_S: Final = 120.0  # its jobs are ended first, and there may be thousands


def pause(scope: str = "all", *, reason: str = "") -> Script[ScopeChanged]:
    """Nothing in the scope is started until it is resumed: `all`, `priority:low`, `pool:x`, `user:x`, `project:x`."""
    return (yield from post(path_of("queue", "pause"), {"scope": scope, "reason": reason}, ScopeChanged))


def resume(scope: str = "all", *, reason: str = "") -> Script[ScopeChanged]:
    """The scope may start again."""
    return (yield from post(path_of("queue", "resume"), {"scope": scope, "reason": reason}, ScopeChanged))


def move(job_id: str, *, before: str | None = None, after: str | None = None, reason: str = "") -> Script[JobState]:
    """Put a queued job right before or right after another."""
    body = asked(job_id=job_id, before=before, after=after, reason=reason)
    return (yield from post(path_of("queue", "move"), body, JobState))


def analytics() -> Script[QueueAnalytics]:
    """Waits by priority and tier, and how good the forecast was."""
    return (yield from fetched(Request(path=path_of("queue", "analytics")), QueueAnalytics))


def stats(*, since: datetime | None = None, step_s: int | None = None) -> Script[Charts]:
    """What was queued, ran, started and ended, how long jobs waited, over time; of the last day by itself."""
    query = asked(since=since and since.isoformat(), step=step_s and str(step_s))
    return (yield from fetched(Request(path=path_of("stats"), query=query), Charts))


def attempts(worker: str | None = None, *, limit: int = 100) -> Script[tuple[AttemptOfWorker, ...]]:
    """What workers took up, the newest first; of one, or of all."""
    query = asked(worker=worker, limit=str(limit))
    return (yield from fetched(Request(path=path_of("workers", "attempts"), query=query), tuple[AttemptOfWorker, ...]))


def groups() -> Script[tuple[GroupState, ...]]:
    """Every group that has limits or slots."""
    return (yield from fetched(Request(path=path_of("concurrency")), tuple[GroupState, ...]))


def group(name: str) -> Script[GroupState]:
    """One, with who holds its slots."""
    return (yield from fetched(Request(path=path_of("concurrency", name)), GroupState))


def set_limit(name: str, limit: int, *, reason: str = "") -> Script[GroupState]:
    """Another limit, at once; it survives restarts."""
    body = {"limit": limit, "reason": reason}
    return (yield from fetched(Request(method="PUT", path=path_of("concurrency", name), body=body), GroupState))


def unset_limit(name: str, *, reason: str = "") -> Script[GroupState]:
    """Take back what was set: policy holds again, or what the group's jobs bring."""
    return (yield from fetched(_delete(path_of("concurrency", name), reason), GroupState))


def release(name: str, lease: str, *, reason: str = "") -> Script[LeaseFreed]:
    """Free a lease by force. A running job's own slot is freed by giving its attempt back."""
    return (yield from fetched(_delete(path_of("concurrency", name, "leases", lease), reason), LeaseFreed))


def workers() -> Script[tuple[WorkerState, ...]]:
    """Who is there to run jobs."""
    return (yield from fetched(Request(path=path_of("workers")), tuple[WorkerState, ...]))


def remove_pipeline(name: str, *, pool: str = "default", reason: str = "") -> Script[PipelineRemoved]:
    """No new job of it is taken in for the pool, until a worker that has it starts again."""
    query = asked(pool=pool, reason=reason or None)
    request = Request(method="DELETE", path=path_of("pipelines", name), query=query)
    return (yield from fetched(request, PipelineRemoved))


def audit(*, since: datetime | None = None) -> Stream[AuditRecord]:
    """Who did what, and why."""
    query = asked(since=since and since.isoformat())
    yield from pages(Request(path=path_of("audit"), query=query), AuditRecord)


def revoke(jti: str, *, reason: str = "") -> Script[TokenRevoked]:
    """A token lets nobody in any more."""
    return (yield from post(path_of("tokens", "revoke"), {"jti": jti, "reason": reason}, TokenRevoked))


def policy() -> Script[PolicyState]:
    """Every number that is in force, and since when."""
    return (yield from fetched(Request(path=path_of("policy")), PolicyState))


def reload_policy(document: Mapping[str, Any], *, reason: str = "", version: str | None = None) -> Script[PolicyState]:
    """Another policy from here on: what a file holds, as `tomllib` reads it. One that cannot be changes nothing. With
    the `version` that it is to replace it raises Conflict where another one is in force."""
    body = {"policy": document, "reason": reason}
    headers = {} if version is None else {"If-Match": f'"{version}"'}
    return (yield from fetched(Request(method="PUT", path=path_of("policy"), body=body, headers=headers), PolicyState))


def erase(user: str, *, reason: str = "") -> Script[ContentErased]:
    """A user's inputs, workspaces, results and logs, for good. Unfinished jobs are cancelled."""
    path = path_of("users", user, "content")
    return (yield from fetched(_delete(path, reason, within_s=ERASED_WITHIN_S), ContentErased))


def _delete(path: str, reason: str, *, within_s: float = 15.0) -> Request:
    query = {"reason": reason} if reason else dict[str, str]()
    return Request(method="DELETE", path=path, query=query, within_s=within_s)

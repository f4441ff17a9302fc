"""Every refusal of admission in words: what is wrong, and what to do about it. Nothing was changed by any of them."""

import math
from collections.abc import Sequence
from typing import Final

from headgate_contracts import Job
from headgate_contracts.shown import ShownPolicy
from libs.policy import PolicyError
from libs.runtime.problems import Problem
from libs.runtime.wording import counted
from services.admission.domain import day_of, etag_of
from services.admission.limits import NotAllowed
from services.admission.outcomes import (
    Changed,
    Ended,
    InputGone,
    KeyReused,
    NeighbourGone,
    NoDayLeft,
    NoRoomBetween,
    NoStart,
    NotAsked,
    NotChanged,
    NotOver,
    NotRetried,
    NotTaken,
    OverBytes,
    OverShare,
    SystemBusy,
    TooManyChanges,
    TooOften,
    Underway,
)

TOLD: Final = 5  # names that a sentence can hold
UNKNOWN_S: Final = 3600  # when to look again where nothing is known of when there will be room


def not_taken(outcome: NotTaken) -> Problem:
    match outcome:
        case SystemBusy(minutes):
            detail = f"system busy, try again in {minutes} minutes"
            more = {"retry_after_minutes": minutes}
            return Problem(
                status=503, slug="busy", title="System busy", detail=detail, retry_after_s=minutes * 60, more=more
            )
        case TooOften(per_minute, bytes_per_minute, retry_ms):
            wait_s = max(1, math.ceil(retry_ms / 1000))
            most = f"{per_minute} jobs and phases a minute, and {bytes_per_minute} bytes of their inputs"
            detail = f"you may submit {most}: try again in {wait_s} s"
            return Problem(
                status=429, slug="too-fast", title="Too many submissions", detail=detail, retry_after_s=wait_s
            )
        case OverShare(held):
            detail = f"you hold {held} places of the queue, as many as one user may: wait until one of your jobs starts"
            return Problem(status=429, slug="share", title="Your share of the queue is full", detail=detail)
        case OverBytes(held, most, retry_ms):
            return _over_bytes(held, most, retry_ms)
        case NoDayLeft(last_day, retry_s):
            detail = f"every day up to {day_of(last_day)} is taken by your jobs: submit again after midnight UTC"
            return Problem(status=429, slug="horizon", title="No day left", detail=detail, retry_after_s=retry_s)
        case KeyReused(job_id):
            detail = f"Idempotency-Key: it stands for another request, job {job_id}; use a new key for a new request"
            return Problem(status=422, slug="key-reused", title="Key reused", detail=detail)


def _over_bytes(held: int, most: int, retry_ms: int | None) -> Problem:
    wait_s = UNKNOWN_S if retry_ms is None else max(1, math.ceil(retry_ms / 1000))
    when = f"try again in {wait_s} s, when the first of them goes"
    if retry_ms is None:
        when = "none of them is of a job that has ended: they go some time after that"
    detail = f"you hold {held} bytes of inputs, and may hold {most} now with this one: {when}"
    more = {"held_bytes": held, "most_bytes": most}
    title = "Your share of inputs is full"
    return Problem(status=429, slug="input-share", title=title, detail=detail, retry_after_s=wait_s, more=more)


def not_retried(outcome: NotRetried) -> Problem:
    match outcome:
        case NotOver(job, with_stage):
            rule = "a job that failed or was cancelled can be submitted again; name a stage (from) to run it from there"
            if with_stage:
                rule = "a job that has ended can be run again"
            detail = f"the job is {job.status.value}: only {rule}"
            return Problem(status=409, slug="not-over", title="Nothing to retry", detail=detail)
        case InputGone():
            detail = "what the job was made from is no longer kept: submit a new job with its input"
            return Problem(status=410, slug="input-gone", title="Input gone", detail=detail)
        case NoStart(stage, why, possible):
            instead = f"possible is {', '.join(possible)}" if possible else "submit a new job"
            detail = f"the job cannot be run again from {stage}: {why}; {instead}"
            more = {"possible": list(possible)}
            return Problem(status=409, slug="no-start", title="Not from there", detail=detail, more=more)


def not_changed(outcome: NotChanged) -> Problem:
    match outcome:
        case Ended(job):
            detail = f"the job is {job.status.value}: it has ended and nothing was changed"
            return Problem(status=409, slug="ended", title="Already ended", detail=detail)
        case NotAsked(job):
            asks = "asks nothing" if job.question is None else f"asks another question, {job.question.id}"
            detail = f"the job is {job.status.value} and {asks}: nothing was changed"
            return Problem(status=409, slug="not-asked", title="Not asked", detail=detail)
        case Underway(job):
            detail = f"the job is {job.status.value}: only one that waits to start has a place that can be changed"
            return Problem(status=409, slug="underway", title="Not in the queue", detail=detail)
        case Changed(job):
            detail = f"the job has changed, its ETag is {etag_of(job)} now: read it again, then decide again"
            headers = {"ETag": etag_of(job)}
            return Problem(status=412, slug="changed", title="Changed meanwhile", detail=detail, headers=headers)
        case NeighbourGone(job_id):
            detail = f"job {job_id} is not in the queue: name one that is"
            return Problem(status=409, slug="neighbour-gone", title="No such neighbour", detail=detail)
        case NoRoomBetween():
            detail = "there is no number left between the two: the scheduler makes room, try again in a moment"
            return Problem(status=409, slug="no-gap", title="No room between", detail=detail, retry_after_s=1)
        case TooManyChanges(per_minute, retry_ms):
            wait_s = max(1, math.ceil(retry_ms / 1000))
            detail = f"you may change {per_minute} jobs and phases a minute: try again in {wait_s} s"
            return Problem(
                status=429, slug="too-many-changes", title="Too many changes", detail=detail, retry_after_s=wait_s
            )


def too_many_tickets(most: int, *, retry_ms: int) -> Problem:
    wait_s = max(1, math.ceil(retry_ms / 1000))
    detail = f"{most} of your tickets for streams are good now, as many as one user may have: try again in {wait_s} s"
    return Problem(status=429, slug="tickets", title="Too many tickets", detail=detail, retry_after_s=wait_s)


def bad_key() -> Problem:
    detail = "Idempotency-Key: use 1 to 255 visible ASCII characters, all of them in quotes or none"
    return Problem(status=422, slug="invalid", title="Invalid request", detail=detail)


def bad_condition() -> Problem:
    detail = 'If-Match: write ETags as they were answered, in quotes and with commas between them, or *: "12", "15"'
    return Problem(status=400, slug="bad-condition", title="Condition not understood", detail=detail)


def invalid(refusal: NotAllowed) -> Problem:
    errors = [{"in": "body", "field": field, "message": reason} for field, reason in refusal.every]
    detail = f"{refusal.field}: {refusal.reason}"
    return Problem(status=422, slug="invalid", title="Invalid request", detail=detail, more={"errors": errors})


def no_policy(error: PolicyError) -> Problem:
    errors = [{"in": "body", "field": each.key, "message": f"{each.wrong}; {each.instead}"} for each in error.problems]
    detail = f"{error.problems[0]}: nothing was changed"
    return Problem(status=422, slug="invalid", title="No policy that can be", detail=detail, more={"errors": errors})


def another_policy(now: ShownPolicy, *, etag: str) -> Problem:
    whose = (
        "that of the services' files" if now.since is None else f"reloaded by {now.by}, {now.since:%Y-%m-%d %H:%M} UTC"
    )
    detail = f"another policy is in force, {whose}, with the ETag {etag}: compare with it, then decide again"
    return Problem(status=412, slug="changed", title="Changed meanwhile", detail=detail, headers={"ETag": etag})


def no_such_pipeline(name: str, pool: str, there: Sequence[str]) -> Problem:
    detail = f"no worker of pool {pool!r} has announced {name!r}, nothing was removed: there are {', '.join(there)}"
    return Problem(status=404, slug="not-found", title="No such pipeline", detail=detail)


def not_found(job_id: str) -> Problem:
    return Problem(status=404, slug="not-found", title="No such job", detail=f"you have no job {job_id}")


def no_workflow(workflow_id: str) -> Problem:
    detail = f"you have no workflow {workflow_id}"
    return Problem(status=404, slug="not-found", title="No such workflow", detail=detail)


def no_result(job: Job, *, days: int) -> Problem:
    if job.result is None:
        detail = f"the job is {job.status.value}: a result is there once it is ready"
        return Problem(status=409, slug="no-result", title="No result yet", detail=detail)
    detail = f"the result is no longer kept: it goes after {counted(days, 'day')}, or when an operator erases it"
    return Problem(status=410, slug="result-gone", title="Result gone", detail=detail)


def result_not_opened(why: str) -> Problem:
    detail = f"the result is not opened here: {why}; download it as a whole"
    return Problem(status=409, slug="not-opened", title="Not opened here", detail=detail)


def no_file(path: str) -> Problem:
    detail = f"the result holds no file {path[:200]!r}: see the list of its files"
    return Problem(status=404, slug="not-found", title="No such file", detail=detail)


def no_input(*, days: int) -> Problem:
    kept = counted(days, "day")
    detail = f"the input is no longer kept: it goes {kept} after the job's end, or when an operator erases it"
    return Problem(status=410, slug="input-gone", title="Input gone", detail=detail)


def out_of_range(size: int) -> Problem:
    detail = f"Range: no byte of it is there, the result has {size}"
    headers = {"Content-Range": f"bytes */{size}"}
    return Problem(status=416, slug="out-of-range", title="Out of range", detail=detail, headers=headers)


def no_log(job: Job, *, gone: bool, days: int) -> Problem:
    """`gone`: its lines are too old, or were erased."""
    if gone:
        kept = counted(days, "day")
        detail = f"no line is kept of its log: lines go after {kept}, or when an operator erases them"
        return Problem(status=410, slug="log-gone", title="Log gone", detail=detail)
    begins = "" if job.status.is_end else ": its log begins when a worker has it"
    detail = f"the job is {job.status.value} and has not said anything{begins}"
    return Problem(status=404, slug="no-log", title="No log" if job.status.is_end else "No log yet", detail=detail)


def nobodys_jobs(user_id: str) -> Problem:
    detail = f"the log knows no job of user {user_id!r}, nothing was erased: compare the id with one of their jobs"
    return Problem(status=404, slug="not-found", title="No such user", detail=detail)


def others_jobs() -> Problem:
    return Problem(status=403, slug="forbidden", title="Not allowed", detail="user: only operators list others' jobs")


def no_index() -> Problem:
    detail = "the index that lists are read from is being made: ask again in a moment"
    return Problem(status=503, slug="unavailable", title="Not now", detail=detail, retry_after_s=1)


def foreign_cursor() -> Problem:
    error = {"in": "query", "field": "cursor", "message": "it does not belong to this list"}
    detail = "cursor: it does not belong to this list: take it from the Link header of the page before, or leave it out"
    return Problem(status=422, slug="invalid", title="Invalid request", detail=detail, more={"errors": [error]})


def no_group_name(text: str) -> Problem:
    kinds = "workflows, user:<id>, project:<id>, pool:<name>, group:<project>:<name> or llm:<provider>"
    detail = f"{text!r} is no group: use {kinds}"
    return Problem(status=422, slug="invalid", title="Invalid request", detail=detail)


def pool_limit(name: str) -> Problem:
    detail = f"{name} has as many slots as its live workers: start or stop workers instead, nothing was changed"
    return Problem(status=409, slug="pool-limit", title="Not set by hand", detail=detail)


def no_such_group(name: str, near: Sequence[str]) -> Problem:
    there = f"there is {', '.join(near)}" if near else "the list of all groups has those that there are"
    later = "for one that is still to come write a limit into the policy (concurrency.limits)"
    detail = f"nobody has a group {name!r}: {there}; {later}"
    return Problem(status=404, slug="not-found", title="No such group", detail=detail)


def no_such_pool(pool: str, there: Sequence[str]) -> Problem:
    return invalid(NotAllowed("scope", f"{pool!r} is no pool here: name {', '.join(there)}"))


def no_such_lease(group: str, lease: str, *, held: Sequence[str]) -> Problem:
    more = f" and {len(held) - TOLD} more" if len(held) > TOLD else ""
    there = f"its slots are held by {', '.join(held[:TOLD])}{more}" if held else "nobody holds any"
    detail = f"{lease!r} holds no slot of {group}: {there}"
    return Problem(status=404, slug="not-found", title="No such lease", detail=detail)

"""One golden example of each type of event, for readers in any language to try themselves on.

Owns their words. They are the same on every machine, so a difference in `examples/` is a difference in the contract.
Refuses to be a story: each event stands for itself, as a consumer with a filter would meet it.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from headgate_contracts.envelope import AnyEvent, Event
from headgate_contracts.events import (
    ContentErased,
    Data,
    EarlierWork,
    Estimate,
    Group,
    GroupLeased,
    JobAnswered,
    JobAwaitingConfirmation,
    JobCancelled,
    JobCancelRequested,
    JobConfirmationReminder,
    JobConfirmed,
    JobDispatched,
    JobFailed,
    JobGivenBack,
    JobMoved,
    JobQueued,
    JobReady,
    JobReprioritized,
    JobScheduled,
    JobStage,
    JobStarted,
    JobTryFailed,
    JobWaiting,
    LeaseReleased,
    LimitSet,
    LimitUnset,
    ModelUsage,
    PipelineRemoved,
    PolicyReloaded,
    QueuePaused,
    QueueResumed,
    SchedulerCommitted,
    Submission,
    TokenRevoked,
    Tried,
)
from headgate_contracts.questions import FailedWork, answer_name, whether_to_continue
from headgate_contracts.tokens import ulid
from headgate_contracts.vocabulary import (
    ChangeReason,
    Fault,
    GivenBackReason,
    Priority,
    QueuedWhy,
    Status,
    Tier,
    Writer,
)

AT: Final = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
_Fields = dict[str, Any]
_OWNER: Final[_Fields] = {
    "job_id": "01KJPZ0A4TD8F3S6W9XKQ2M7BV",
    "user_id": "u1",
    "project_id": "shop",
}
_A, _S, _W = Writer.ADMISSION, Writer.SCHEDULER, Writer.WORKER


def examples() -> tuple[AnyEvent, ...]:
    """Every example, one a type."""
    return (*_beginnings(), *_changes_of_place(), *_of_the_scheduler(), *_of_the_worker(), *_of_people(), *_acts())


def _beginnings() -> Iterator[AnyEvent]:
    estimate = Estimate(estimate_seconds=1500, lower_bound=1050, upper_bound=1950, confidence="medium")
    queued = JobQueued(
        **_job(Status.QUEUED, 0),
        why=QueuedWhy.SUBMITTED,
        arrival=4711,
        place=308674560,
        passed=("01KJPYV2M0H4N8R5T1C7Z3E6GW",),
        position_original=4,
        quota_day=AT.date(),
        estimate=estimate,
        submission=_submission(),
    )
    tomorrow = datetime(2026, 3, 3, 0, 17, 5, tzinfo=UTC)
    scheduled: _Fields = {"scheduled_for": tomorrow, "quota_day": tomorrow.date(), "submission": _submission()}
    phase: _Fields = {"workflow": "release-42", "phase": 2}
    yield _event(_A, 1, queued)
    yield _event(_A, 1, JobScheduled(**_job(Status.SCHEDULED, 0), **scheduled))
    yield _event(_A, 1, JobWaiting(**_job(Status.WAITING, 0), **phase, submission=_submission(**phase)))


def _changes_of_place() -> Iterator[AnyEvent]:
    by_operator: _Fields = {"from_": Priority.NORMAL, "by": "operator-1", "reason": ChangeReason.OPERATOR}
    changed = {**_job(Status.QUEUED, 0), **by_operator}
    yield _event(_A, 2, JobReprioritized(**changed, to=Priority.HIGH, place=308740096, note="blocks the release"))
    yield _event(_A, 2, JobMoved(**changed, to=Priority.NORMAL, place=308609028))


def _of_the_scheduler() -> Iterator[AnyEvent]:
    groups = ("user:u1", "project:shop", "group:shop:staging-db")
    lost = JobGivenBack(
        **_job(Status.QUEUED, 1),
        reason=GivenBackReason.LOST,
        finished_stages=("scaffold", "code"),
        checkpoint="01KJPZ0A-1-code",
    )
    yield _event(_S, 2, _dispatched(groups))
    yield _event(_S, 7, lost)
    yield _event(_S, 17, JobConfirmationReminder(**_job(Status.AWAITING_CONFIRMATION, 1), hours_left=12))
    yield _event(
        _S,
        None,
        SchedulerCommitted(
            shard="main",
            leader="scheduler-5d4b",
            jobs=(_OWNER["job_id"],),
            limits=dict.fromkeys(groups, 3),
            slots={"default": 8},
        ),
    )


def _dispatched(groups: tuple[str, ...]) -> JobDispatched:
    asked = _submission()
    return JobDispatched(
        **_job(Status.STARTING, 1),
        pool=asked.pool,
        groups=groups,
        deadline=AT + timedelta(hours=1),
        tier=asked.tier,
        pipeline=asked.pipeline,
        input_digest=asked.input_digest,
        earlier=EarlierWork(finished_stages=("scaffold",), checkpoint="01KJPYV2-1-1", worked_s=40.5),
    )


def _of_the_worker() -> Iterator[AnyEvent]:
    stage: _Fields = {"stage": "deps", "iteration": 1, "checkpoint": "01KJPZ0A-1-code", "usage": (_usage(),)}
    reason = FailedWork(summary="2 of 14 tests failed.", detail="test_redirects, test_expired_links")
    question = whether_to_continue(1, batch=3, reason=reason)
    asked: _Fields = {"iterations_used": 3, "next_batch": 3, "expires_at": AT + timedelta(days=1)}
    failed = JobFailed(
        **_job(Status.FAILED, 1),
        summary="The checks failed after 3 iterations.",
        detail="2 of 14 tests failed: test_redirects, test_expired_links.",
        debug_id="4bf92f3577b34da6a3ce929d0e0e4736",
        fault=Fault.JOB,
    )
    yield _event(_W, 3, JobStarted(**_job(Status.STARTING, 1), worker="worker-7c9f"))
    yield _event(_W, 5, JobStage(**_job(Status.DEPS, 1), **stage))
    tried = Tried(
        stage="code",
        iteration=1,
        tries=1,
        most=3,
        summary="The model did not answer.",
        detail="503 Service Unavailable",
        again_at=AT + timedelta(seconds=9),
    )
    yield _event(_W, 6, JobTryFailed(**_job(Status.CODE, 1), tried=tried))
    yield _event(_W, 16, JobAwaitingConfirmation(**_job(Status.AWAITING_CONFIRMATION, 1), question=question, **asked))
    yield _event(_W, 7, JobCancelled(**_job(Status.CANCELLED, 1), by="u1", reason="wrong prompt"))
    yield _event(_W, 8, JobReady(**_job(Status.READY, 1), result="01KJPZ0A-1", duration_s=512.4, iterations=1))
    yield _event(_W, 8, failed)


def _of_people() -> Iterator[AnyEvent]:
    yield _event(_A, 18, JobConfirmed(**_job(Status.QUEUED, 1), by="u1", batch=3))
    kept = answer_name(_OWNER["job_id"], "01KJPZ0A4TD8F3S6W9XKQ2M7BW")
    yield _event(_A, 18, JobAnswered(**_job(Status.QUEUED, 1), question="q1", answer=kept, by="u1"))
    yield _event(_A, 6, JobCancelRequested(**_job(Status.CODE, 1), by="u1", reason="wrong prompt"))


def _acts() -> Iterator[AnyEvent]:
    by = "operator-1"
    yield _event(_A, None, QueuePaused(scope="pool:gpu", by=by, reason="driver update"))
    yield _event(_A, None, QueueResumed(scope="pool:gpu", by=by))
    yield _event(_A, None, LimitSet(group="llm:openai", by=by, limit=6, reason="new quota"))
    yield _event(_A, None, LimitUnset(group="llm:openai", by=by, reason="as policy says again"))
    yield _event(_A, None, ContentErased(user_id="u1", by=by, reason="asked for by the user"))
    yield _event(_A, None, GroupLeased(group="group:shop:staging-db", limit=3, by="u1"))
    yield _event(_A, None, LeaseReleased(group="group:shop:staging-db", by=by, lease="01KJPZ7QXN5B2D9F4H8K3M6PRT"))
    until = AT + timedelta(days=30)
    revoked = TokenRevoked(jti="01KJPZ7QXN5B2D9F4H8K3M6PRV", until=until, by=by, reason="lost with a laptop")
    yield _event(_A, None, revoked)
    yield _event(_A, None, PipelineRemoved(pipeline="weather", pool="default", by=by, reason="its archive is gone"))
    sections = {"queue": {"cap": 200, "user_share": 100}}
    yield _event(_A, None, PolicyReloaded(sections=sections, changed=("queue.cap",), by=by, reason="the launch"))


def _job(status: Status, attempt: int) -> _Fields:
    return {**_OWNER, "status": status, "attempt": attempt}


def _usage() -> ModelUsage:
    tokens = {"input_tokens": 4180, "output_tokens": 2311, "cached_tokens": 1024}
    return ModelUsage(provider="openai", model="gpt-5-mini", calls=2, **tokens, took_ms=41_730)


def _submission(**changes: Any) -> Submission:
    asked: _Fields = {
        "tier": Tier.PARTNER,
        "groups": (Group(name="group:shop:staging-db", limit=3),),
        "submitted_at": AT,
        "queue_ttl_s": 86400,
        "run_timeout_s": 3600,
        "labels": {"team": "growth"},
        "input_digest": f"sha256:{hashlib.sha256(b'a URL shortener').hexdigest()}",
    }
    return Submission(**asked | changes)


def _event(writer: Writer, sequence: int | None, data: Data) -> AnyEvent:
    at = AT + timedelta(seconds=sequence or 0)
    entropy = hashlib.sha256(data.type_name().encode()).digest()[:10]
    return Event(ulid(round(at.timestamp() * 1000), entropy), writer, at, data, sequence)

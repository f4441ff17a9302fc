"""In admission: what it answers, under which id, and what becomes of a race."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Final

from headgate_contracts import Job
from headgate_contracts.asked import AnswerQuestion
from headgate_contracts.events import JobCancelled, JobData
from libs.eventlog import OutcomeUnknown
from services.admission.answering import Answering
from services.admission.changing import Changing, SeenJobs
from services.admission.domain import NewJob
from services.admission.events import FirstEvent
from services.admission.outcomes import Accepted, SubmitOutcome
from services.admission.submitting import Submitting
from tests.planted.bug import Bug


def answers_before_it_knows(sound: Any) -> Any:
    async def _begin(
        self: Submitting, begun: Sequence[FirstEvent], phases: Sequence[NewJob], *, asked_ms: int
    ) -> SubmitOutcome:
        try:
            return await sound(self, begun, phases, asked_ms=asked_ms)
        except OutcomeUnknown:
            return Accepted(tuple(each.job for each in begun))

    return _begin


def writes_phase_by_phase(sound: Any) -> Any:
    async def _begin(
        self: Submitting, begun: Sequence[FirstEvent], phases: Sequence[NewJob], *, asked_ms: int
    ) -> SubmitOutcome:
        jobs: list[Job] = []
        for each, phase in zip(begun, phases, strict=True):
            outcome = await sound(self, [each], [phase], asked_ms=asked_ms)
            if not isinstance(outcome, Accepted) or outcome.again:
                return outcome
            jobs += outcome.jobs
        return Accepted(tuple(jobs))

    return _begin


def takes_a_race_for_done(sound: Any) -> Any:
    async def settle(
        self: Changing, jobs: SeenJobs, decide: Callable[[SeenJobs], Awaitable[Any]], *, spender: str | None
    ) -> Any:
        tried = False

        async def once(seen: SeenJobs) -> Any:
            nonlocal tried
            steps = {} if tried else await decide(seen)
            tried = tried or (isinstance(steps, dict) and bool(steps))
            return steps

        return await sound(self, jobs, once, spender=spender)

    return settle


def asks_no_user(sound: Any) -> Any:
    def job_id_for_key(user_id: str, idempotency_key: str) -> str:
        return sound("", idempotency_key)

    return job_id_for_key


def compares_no_bodies(sound: Any) -> Any:
    def same_request(new: NewJob, first: Job) -> bool:
        return new.project_id == first.project_id

    return same_request


def refunds_no_cancel(sound: Any) -> Any:
    def changes_of(job: Job, data: JobData, at: datetime) -> dict[str, Any]:
        changes = sound(job, data, at)
        return {**changes, "quota_day": job.quota_day} if isinstance(data, JobCancelled) else changes

    return changes_of


def answers_what_is_open_now(sound: Any) -> Any:
    async def answer(self: Answering, job: Job, body: AnswerQuestion, *, by: str) -> Any:
        newest = job.question.id if job.question is not None else body.question
        return await sound(self, job, body.model_copy(update={"question": newest}), by=by)

    return answer


def erases_titles_in_their_bucket_alone(sound: Any) -> Any:
    def _erase(db: Connection, user: str, *, before: int) -> None:
        """What the bucket has no more the index is made without, whenever it is made anew."""

    return _erase


def takes_the_file_for_its_own(sound: Any) -> Any:
    def _file_id(path: Path) -> str:
        path.stat()
        return path.name

    return _file_id


ADMISSION: Final = (
    Bug(
        "answered-before-the-append",
        "services.admission.submitting:Submitting._begin",
        answers_before_it_knows,
        "202 means durable (I9). Where it is not known whether the log has the event, 202 is said all the same, and "
        "the job may never have been there (I1).",
    ),
    Bug(
        "workflow-written-phase-by-phase",
        "services.admission.submitting:Submitting._begin",
        writes_phase_by_phase,
        "A workflow is accepted whole or not at all. Where admission dies or the log goes away in between its first "
        "phases stand alone, and the same key is refused as another request.",
    ),
    Bug(
        "cancel-loses-to-a-dispatch",
        "services.admission.changing:Changing.settle",
        takes_a_race_for_done,
        "Whoever was first is looked at, and it is decided again. A cancel that a dispatch forestalls is answered with "
        "202 and written nowhere: the job runs to its end (I9).",
    ),
    Bug(
        "key-without-its-user",
        "headgate_contracts.tokens:job_id_for_key",
        asks_no_user,
        "An Idempotency-Key is its user's. The second user of a key is shown the first one's job, or refused for it.",
    ),
    Bug(
        "key-answers-for-another-body",
        "services.admission.domain:same_request",
        compares_no_bodies,
        "The same key with another body is 422. It is 202 with the first job, and what was asked for is never done.",
    ),
    Bug(
        "day-counts-the-cancelled",
        "headgate_contracts.changes:changes_of",
        refunds_no_cancel,
        "A job that is cancelled before it started gives its place of the day back. It does not: the next one is "
        "scheduled for tomorrow while the user has a place today.",
    ),
    Bug(
        "answer-to-a-later-attempt",
        "services.admission.answering:Answering.answer",
        answers_what_is_open_now,
        "An answer is to the question that its sender has seen. Sent again after a lost reply it is taken for whatever "
        "a later attempt asks: a stage is told the answer to another question.",
    ),
    Bug(
        "erased-in-the-buckets-alone",
        "services.admission.index:_erase",
        erases_titles_in_their_bucket_alone,
        "What is erased leaves no byte. The titles of a user's jobs are found by a search for months.",
    ),
    Bug(
        "index-of-another-time",
        "services.admission.index:file_id",
        takes_the_file_for_its_own,
        "A copy that was put in the place of the index is known for one, and made anew. What was open goes on into a "
        "file that nobody sees any more: lists show the jobs of an hour ago.",
    ),
)

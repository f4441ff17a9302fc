"""In the worker: whose an attempt is, for how long, and what it leaves to the next one."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from headgate_contracts import Job, advance
from headgate_contracts.envelope import utc
from headgate_contracts.events import JobCancelled, JobData, JobStage, Tried
from headgate_contracts.questions import Question
from libs.eventlog import Appended, Conflicted
from services.worker.attempt.chain import Chain, append_surely
from services.worker.attempt.checkpoints import Checkpoints
from services.worker.attempt.questions import AttemptQuestions
from services.worker.domain import Interruption, Lease, cancel, checkpoint_name, event_about
from tests.planted.bug import Bug

_storing: Final[set[asyncio.Task[None]]] = set()


def names_before_it_stores(sound: Any) -> Any:
    async def keep(self: Checkpoints, content: bytes) -> None:
        self._count += 1
        name, before = checkpoint_name(self._job, self._count), self.newest
        task = asyncio.create_task(self._shelf.put(name, content), name=f"store {name}")
        _storing.add(task)
        task.add_done_callback(_storing.discard)
        self.newest = name
        if before is not None:
            self._shelf.forget(before)

    return keep


def names_it_as_the_attempt_before(sound: Any) -> Any:
    def checkpoint_name(job: Job, number: int) -> str:
        return sound(job.model_copy(update={"attempt": max(1, job.attempt - 1)}), number)

    return checkpoint_name


def extends_by_and_not_to(sound: Any) -> Any:
    def extended(self: Lease, *, sent_ms: int, lease_ms: int) -> Lease:
        return Lease(max(self.ends_ms, sent_ms) + lease_ms)

    return extended


def asks_for_a_cancel_once(sound: Any) -> Any:
    async def _write(self: Chain, data: JobData) -> JobData | None:
        if self.job.cancel_requested_by is not None and not isinstance(data, JobCancelled):
            data = cancel(self.job)
        while self._ours():
            event = event_about(self.job, data, event_id=self._new_id(), now=utc(self._clock.now_ms()))
            match await append_surely(self._log, event, after=self.job, clock=self._clock, ours=self._ours):
                case Appended(records):
                    self.job = advance(self.job, event, seq=records[0].seq)
                    return data
                case Conflicted() if not await self._read_on():
                    return None
                case _:
                    pass
        return None

    return _write


def leaves_it_to_its_lease(sound: Any) -> Any:
    def broken_off(job: Job, why: Interruption, *, debug_id: str, provider: str | None = None) -> JobData | None:
        if why is Interruption.DRAINED:
            return None
        return sound(job, why, debug_id=debug_id, provider=provider)

    return broken_off


def counts_within_an_attempt(sound: Any) -> Any:
    def _is_about(tried: Tried | None, data: JobStage) -> bool:
        return False

    return _is_about


def takes_the_newest_answer(sound: Any) -> Any:
    async def _answer(self: AttemptQuestions, question: Question) -> tuple[bool, Any]:
        newest = next(reversed(self._names.values()), None)
        if newest is None:
            return False, None
        return True, json.loads(await self._inputs.get(newest) or b"null")

    return _answer


WORKER: Final = (
    Bug(
        "checkpoint-named-before-it-is-stored",
        "services.worker.attempt.checkpoints:Checkpoints.keep",
        names_before_it_stores,
        "A stage's work is stored first, then the next event names it. Where the worker dies in between the log names "
        "work that nobody has: the job fails with its earlier stages gone.",
    ),
    Bug(
        "retry-under-the-wrong-attempt",
        "services.worker.domain:checkpoint_name",
        names_it_as_the_attempt_before,
        "A checkpoint's name is never used twice. The second attempt writes over the first one's: where it dies before "
        "its event, or an old worker stores late, the next goes on from work that the log does not tell of.",
    ),
    Bug(
        "goes-on-after-its-lease",
        "services.worker.domain:Lease.extended",
        extends_by_and_not_to,
        "A lease ends one lease after the last heartbeat that was heard. Each heartbeat adds one to the end of the "
        "last: a worker that is cut off runs on while another has its job (I4).",
    ),
    Bug(
        "cancel-overwritten",
        "services.worker.attempt.chain:Chain._write",
        asks_for_a_cancel_once,
        "A cancel works in every state before the end. One that comes in while an event is being written is read and "
        "passed over: the job is ready, after its user was told that it would be cancelled (I9).",
    ),
    Bug(
        "drained-as-if-lost",
        "services.worker.domain:broken_off",
        leaves_it_to_its_lease,
        "A worker that is told to stop hands its jobs over, and a rollout does not count against them. They wait for a "
        "lease and are given back as lost; after the fourth rollout they fail.",
    ),
    Bug(
        "answer-to-another-question",
        "services.worker.attempt.questions:AttemptQuestions._answer",
        takes_the_newest_answer,
        "A question has its own answer, by its key. Whatever was answered last is told: a stage that asks twice takes "
        "its first answer for both.",
    ),
    Bug(
        "retry-forgets-its-count",
        "headgate_contracts.changes:_is_about",
        counts_within_an_attempt,
        "A stage is run again as often as its author allows, over all attempts. Each attempt counts anew: one that is "
        "put off, or whose worker is lost, is tried without end.",
    ),
)

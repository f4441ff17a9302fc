"""Who uses the system: each asks until it is answered, with one key, and remembers what it was told.

    submit ─► no answer, 503 ─► again with the same key ─► 202, or a refusal with a reason; some go and never ask again
    later    cancels, asks for another class, answers each question

Owns `Answers`, which the judge compares with the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from headgate_contracts import Event, Job, Priority
from headgate_contracts.asked import AnswerQuestion, JobOrder, SubmitJob, SubmitWorkflow
from headgate_contracts.envelope import utc
from headgate_contracts.events import JobAwaitingConfirmation
from headgate_contracts.questions import Question
from headgate_contracts.tokens import job_id_for_key, workflow_id_for_key
from headgate_contracts.vocabulary import QuestionKind
from libs.eventlog.values import Record
from libs.twins.virtual import Process
from services.admission import events
from services.admission.domain import NewJob, new_job
from services.admission.limits import Asker, NotAllowed
from services.admission.outcomes import Accepted, KeyReused
from services.admission.phases import job_in_log
from services.admission.workflows import new_workflow
from tests.simulation.admissions import NoAnswer, Unavailable, UseCases, ask
from tests.simulation.askers import answer_to
from tests.simulation.network import Link
from tests.simulation.plan import POLICY, USERS, Order
from tests.simulation.system import System

T = TypeVar("T")
ANSWERED_WITHIN_S = 40.0
REFUSED_TIMES = 30  # then a client gives up
ASKS_AGAIN_S = (0.3, 3.0)


@dataclass(slots=True)
class Answers:
    """What clients were told, and when."""

    promised: dict[str, float] = field(default_factory=dict)  # job → when its 202 arrived
    refused: list[tuple[str, float, str]] = field(default_factory=list)  # job, when it was asked, why
    cancelled: dict[str, float] = field(default_factory=dict)
    strange: list[str] = field(default_factory=list)


class Client:
    """Whoever has an order."""

    def __init__(self, system: System, order: Order, answers: Answers) -> None:
        self._system = system
        self.order = order
        self._answers = answers
        self._link = Link(system.network, Process(f"client of {order.name}", system.loop), "clients")
        self._jobs: tuple[str, ...] = ()

    async def live(self) -> None:
        await asyncio.sleep(self.order.at_s)
        requests = [self._submit() for _ in range(2 if self.order.twice else 1)]
        told = await asyncio.gather(*requests)
        if not any(told):
            return
        await asyncio.gather(self._cancel_later(), self._raise(), self._ask_for_more())

    async def answer(self, job_id: str, question: Question | None) -> None:
        """It was asked this, or whether it should go on."""
        await asyncio.sleep(self.order.answer_after_s)

        async def answer(use_cases: UseCases) -> Any:
            job = await job_told(use_cases, job_id)
            if question is None or question.kind is QuestionKind.CONTINUE:
                return await use_cases.changing.confirm(job, by=self.order.user)
            body = AnswerQuestion(question=question.id, answer=answer_to(job_id, question.key))
            return await use_cases.answering.answer(job, body, by=self.order.user)

        await self._asked_surely(answer)
        if question is not None and question.kind is QuestionKind.ASK and self.order.answers_again_s is not None:
            await asyncio.sleep(self.order.answers_again_s)
            await self._asked_surely(answer)

    # ── submitting ────────────────────────────────────────────────────────────

    async def _submit(self) -> bool:
        submitted_s = self._system.loop.time()
        for _ in range(REFUSED_TIMES):
            asked_s = self._system.loop.time()
            try:
                outcome = await self._asked(lambda use_cases: use_cases.submitting.submit(*self._phases(submitted_s)))
            except (NoAnswer, Unavailable):
                return False
            match outcome:
                case Accepted(jobs):
                    self._accepted(jobs)
                    return True
                case KeyReused():
                    self._answers.strange.append(f"{self.order.name}: its key is said to be another's")
                    return False
                case refusal:
                    first = self._phases(submitted_s)[0].id
                    self._answers.refused.append((first, asked_s, type(refusal).__name__))
                    await asyncio.sleep(self._pause_s() * 3)
        return False

    async def _ask_for_more(self) -> None:
        """Something else, with the same key."""
        if self.order.other_body:
            phases = self._phases(self._system.loop.time(), run_timeout_s=3599)
            outcome = await self._asked_surely(lambda use_cases: use_cases.submitting.submit(*phases))
            if isinstance(outcome, Accepted):
                self._answers.strange.append(f"{self.order.name}: another request with its key is accepted")

    def _accepted(self, told: tuple[Job, ...]) -> None:
        jobs = tuple(job.id for job in told)
        if any(job.user_id != self.order.user for job in told):
            self._answers.strange.append(f"{self.order.name}: its key is answered with another user's {jobs}")
        if self._jobs and self._jobs != jobs:
            self._answers.strange.append(f"{self.order.name}: one key, two answers: {self._jobs} and {jobs}")
        self._jobs = jobs
        for job in jobs:
            self.promised(job)

    def promised(self, job: str) -> None:
        """It was told that it is accepted."""
        self._answers.promised.setdefault(job, self._system.loop.time())

    def _phases(self, submitted_s: float, **other: Any) -> tuple[NewJob, ...]:
        """What the edge makes of the body."""
        order = self.order
        now = utc(self._system.start_ms + round(submitted_s * 1000))
        asker = Asker(user_id=order.user, tier=USERS[order.user], policy=POLICY, now=now)
        told = {"pipeline": order.pipeline, "input": order.stages}
        body: dict[str, Any] = {**told, "title": title_of(order), "run_timeout_s": order.run_timeout_s, **other}
        frame: dict[str, Any] = {
            "project_id": order.project,
            "priority": order.priority,
            "notify_url": order.notify_url,
        }
        if order.phases:
            phases = tuple(JobOrder(**body) for _ in range(order.phases))
            workflow_id = workflow_id_for_key(order.user, order.key)
            made = new_workflow(SubmitWorkflow(**frame, phases=phases), workflow_id=workflow_id, asker=asker)
        else:
            grouped = {"concurrency_group": order.group, "concurrency_limit": order.limit if order.group else None}
            run_at = None if order.run_after_s is None else now + timedelta(seconds=order.run_after_s)
            asked = SubmitJob(**frame, **body, **grouped, queue_ttl_s=order.queue_ttl_s, run_at=run_at)
            one = new_job(asked, job_id=job_id_for_key(order.user, order.key), asker=asker)
            made = one if isinstance(one, NotAllowed) else (one,)
        assert not isinstance(made, NotAllowed), made
        return made

    # ── changing its mind ─────────────────────────────────────────────────────

    async def _cancel_later(self) -> None:
        if self.order.cancel_after_s is not None and self._jobs:
            await self.cancel(self._jobs[0], after_s=self.order.cancel_after_s)

    async def cancel(self, job_id: str, *, after_s: float) -> None:
        await asyncio.sleep(after_s)

        async def cancel(use_cases: UseCases) -> Any:
            return await use_cases.changing.cancel(await job_told(use_cases, job_id), act=self._act())

        outcome = await self._asked_surely(cancel)
        if isinstance(outcome, Accepted):
            self._answers.cancelled[job_id] = self._system.loop.time()

    async def _raise(self) -> None:
        if self.order.raise_after_s is None or not self._jobs:
            return
        await asyncio.sleep(self.order.raise_after_s)
        to = Priority.HIGH if USERS[self.order.user].value != "bootstrapper" else Priority.LOW

        async def raise_(use_cases: UseCases) -> Any:
            return await use_cases.changing.prioritize(await job_told(use_cases, self._jobs[0]), to, act=self._act())

        await self._asked_surely(raise_)

    def _act(self) -> events.Actor:
        return events.Actor(by=self.order.user, reason="changed its mind")

    async def _asked(self, use: Callable[[UseCases], Awaitable[T]]) -> T:
        """Some ask once, and go where nobody answers."""
        if self.order.leaves:
            return await ask(self._system, self._link, use, within_s=ANSWERED_WITHIN_S)
        return await self._asked_surely(use)

    async def _asked_surely(self, use: Callable[[UseCases], Awaitable[T]]) -> T:
        return await asked_surely(self._system, self._link, use)

    def _pause_s(self) -> float:
        return self._system.dice.between(f"{self.order.name} pause", *ASKS_AGAIN_S)


def title_of(order: Order) -> str:
    return f"What {order.name} is for"


def questions(system: System, by_job: dict[str, Client]) -> Callable[[Record], None]:
    """Hears of each record, and has its client answer where it is a question."""

    def heard(record: Record) -> None:
        event = record.event
        if isinstance(event, Event) and isinstance(event.data, JobAwaitingConfirmation):
            client = by_job.get(event.data.job_id)
            if client is not None:
                system.loop.create_task(client.answer(event.data.job_id, event.data.question))

    return heard


async def asked_surely(system: System, link: Link, use: Callable[[UseCases], Awaitable[T]]) -> T:
    """Until somebody has answered."""
    while True:
        try:
            return await ask(system, link, use, within_s=ANSWERED_WITHIN_S)
        except (NoAnswer, Unavailable):
            await asyncio.sleep(system.dice.between(f"{link.process.name} pause", *ASKS_AGAIN_S))


async def job_told(use_cases: UseCases, job_id: str) -> Job:
    job = await job_in_log(use_cases.changing.log, job_id)
    assert job is not None, f"{job_id} was promised and cannot be read"
    return job

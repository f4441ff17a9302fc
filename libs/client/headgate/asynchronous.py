"""Headgate for asynchronous programs: each verb as a coroutine or an asynchronous generator. Most of them are listed in
`offered`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from headgate import fetching, verbs, waiting
from headgate.async_driver import AsyncDriver, AsyncSpeaker
from headgate.async_slot import Slot
from headgate.doors import TestingDoor
from headgate.edge import target_of
from headgate.errors import Problem
from headgate.exchange import Patience, Script
from headgate.fetching import ResultFacts
from headgate.handles import JobHandle, ResultHandle, of_one
from headgate.offered import OperatorVerbs, UserVerbs
from headgate.values import JobState

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


def _shaped(
    script: Callable[P, Script[T]], shape: Callable[[Headgate, T], R]
) -> Callable[Concatenate[Headgate, P], Coroutine[Any, Any, R]]:
    """A verb whose caller gets something that can be asked further."""

    @wraps(script)
    async def method(it: Headgate, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return shape(it, await it.driver.run(script(*args, **kwargs)))

    return method


def _job(hg: Headgate, state: JobState) -> Job:
    return Job(hg, state.id, state)


def _jobs(hg: Headgate, outcomes: tuple[JobState | Problem, ...]) -> tuple[Job | Problem, ...]:
    return tuple(_job(hg, each) if isinstance(each, JobState) else each for each in outcomes)


def _result(hg: Headgate, facts: ResultFacts) -> Result:
    return Result(hg, facts.job_id, facts)


class Operators(AsyncSpeaker, OperatorVerbs):
    """What only operators may ask."""


class Headgate(AsyncSpeaker, UserVerbs):
    """One Headgate, asked by one user. Without arguments the environment says which: HEADGATE_URL, HEADGATE_TOKEN.
    `transport` is httpx's, for programs that have one of their own. `Headgate.testing()` is one in memory."""

    testing = TestingDoor()
    behind: object | None = None  # of one in memory, what goes on there

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        patience: Patience | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        driver: AsyncDriver | None = None,
        catching_up: Callable[[str], None] | None = None,
    ) -> None:
        patience = patience or Patience()
        driver = driver or AsyncDriver(target_of(url, token), patience, transport, catching_up=catching_up)
        super().__init__(driver)
        self.ops = Operators(self.driver)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Safe twice."""
        await self.driver.close()

    def slot(
        self,
        name: str,
        *,
        project: str,
        limit: int | None = None,
        ttl_s: int | None = None,
        wait_s: float | None = None,
        cancel: bool = True,
    ) -> Slot:
        """A slot of the project's group while a block runs; see `Slot`. It is waited for, `wait_s` at most."""
        return Slot(self.driver, name, project=project, limit=limit, ttl_s=ttl_s, wait_s=wait_s, cancel=cancel)

    submit = _shaped(verbs.submit, _job)
    batch = _shaped(verbs.batch, _jobs)
    job = _shaped(verbs.job, _job)
    wait = _shaped(waiting.wait, _job)
    cancel = _shaped(verbs.cancel, _job)
    cancel_all = _shaped(verbs.cancel_all, _jobs)
    confirm = _shaped(verbs.confirm, _job)
    answer = _shaped(verbs.answer, _job)
    retry = _shaped(verbs.retry, _job)
    reprioritize = _shaped(verbs.reprioritize, _job)
    result = _shaped(fetching.facts, _result)


class Job(JobHandle[Headgate]):
    """A job, and what can be asked of it."""

    refreshed = of_one(Headgate.job)
    events = of_one(Headgate.events)
    lines = of_one(Headgate.lines)
    log = of_one(Headgate.log)
    history = of_one(Headgate.history)
    input = of_one(Headgate.input)
    explain = of_one(Headgate.explain)
    waits = of_one(Headgate.waits)
    wait = of_one(Headgate.wait)
    cancel = of_one(Headgate.cancel)
    confirm = of_one(Headgate.confirm)
    answer = of_one(Headgate.answer)
    retry = of_one(Headgate.retry)
    retry_starts = of_one(Headgate.retry_starts)
    reprioritize = of_one(Headgate.reprioritize)
    files = of_one(Headgate.files)
    file = of_one(Headgate.file)
    result = of_one(Headgate.result)


class Result(ResultHandle[Headgate]):
    """A result, and the ways to have it."""

    content = of_one(Headgate.content)
    save = of_one(Headgate.save)
    extract = of_one(Headgate.extract)

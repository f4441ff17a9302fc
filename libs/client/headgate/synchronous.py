"""Headgate for programs without a loop: each verb as a method or a generator. Most of them are listed in `offered`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Self, TypeVar

import httpx

from headgate import fetching, verbs, waiting
from headgate.doors import SyncTestingDoor
from headgate.edge import target_of
from headgate.errors import Problem
from headgate.exchange import Patience, Script
from headgate.fetching import ResultFacts
from headgate.handles import JobHandle, ResultHandle, of_one
from headgate.offered import OperatorVerbs, UserVerbs
from headgate.sync_driver import SyncDriver, SyncSpeaker
from headgate.sync_slot import SyncSlot
from headgate.values import JobState

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


def _shaped(
    script: Callable[P, Script[T]], shape: Callable[[SyncHeadgate, T], R]
) -> Callable[Concatenate[SyncHeadgate, P], R]:
    """A verb whose caller gets something that can be asked further."""

    @wraps(script)
    def method(it: SyncHeadgate, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return shape(it, it.driver.run(script(*args, **kwargs)))

    return method


def _job(hg: SyncHeadgate, state: JobState) -> SyncJob:
    return SyncJob(hg, state.id, state)


def _jobs(hg: SyncHeadgate, outcomes: tuple[JobState | Problem, ...]) -> tuple[SyncJob | Problem, ...]:
    return tuple(_job(hg, each) if isinstance(each, JobState) else each for each in outcomes)


def _result(hg: SyncHeadgate, facts: ResultFacts) -> SyncResult:
    return SyncResult(hg, facts.job_id, facts)


class SyncOperators(SyncSpeaker, OperatorVerbs):
    """What only operators may ask."""


class SyncHeadgate(SyncSpeaker, UserVerbs):
    """One Headgate, asked by one user. Without arguments the environment says which: HEADGATE_URL, HEADGATE_TOKEN.
    `transport` is httpx's, for programs that have one of their own. `SyncHeadgate.testing()` is one in memory."""

    testing = SyncTestingDoor()
    behind: object | None = None  # of one in memory, what goes on there

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
        driver: SyncDriver | None = None,
        catching_up: Callable[[str], None] | None = None,
    ) -> None:
        patience = patience or Patience()
        driver = driver or SyncDriver(target_of(url, token), patience, transport, catching_up=catching_up)
        super().__init__(driver)
        self.ops = SyncOperators(self.driver)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Safe twice."""
        self.driver.close()

    def slot(
        self,
        name: str,
        *,
        project: str,
        limit: int | None = None,
        ttl_s: int | None = None,
        wait_s: float | None = None,
    ) -> SyncSlot:
        """A slot of the project's group while a block runs; see `SyncSlot`. It is waited for, `wait_s` at most."""
        return SyncSlot(self.driver, name, project=project, limit=limit, ttl_s=ttl_s, wait_s=wait_s)

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


class SyncJob(JobHandle[SyncHeadgate]):
    """A job, and what can be asked of it."""

    refreshed = of_one(SyncHeadgate.job)
    events = of_one(SyncHeadgate.events)
    lines = of_one(SyncHeadgate.lines)
    log = of_one(SyncHeadgate.log)
    history = of_one(SyncHeadgate.history)
    input = of_one(SyncHeadgate.input)
    explain = of_one(SyncHeadgate.explain)
    waits = of_one(SyncHeadgate.waits)
    wait = of_one(SyncHeadgate.wait)
    cancel = of_one(SyncHeadgate.cancel)
    confirm = of_one(SyncHeadgate.confirm)
    answer = of_one(SyncHeadgate.answer)
    retry = of_one(SyncHeadgate.retry)
    retry_starts = of_one(SyncHeadgate.retry_starts)
    reprioritize = of_one(SyncHeadgate.reprioritize)
    files = of_one(SyncHeadgate.files)
    file = of_one(SyncHeadgate.file)
    result = of_one(SyncHeadgate.result)


class SyncResult(ResultHandle[SyncHeadgate]):
    """A result, and the ways to have it."""

    content = of_one(SyncHeadgate.content)
    save = of_one(SyncHeadgate.save)
    extract = of_one(SyncHeadgate.extract)

"""Headgate for programs without a loop: each verb of the core as a method or a generator."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Self, TypeVar

import httpx

from headgate import fetching, following, leasing, operating, verbs, waiting
from headgate.doors import SyncTestingDoor
from headgate.edge import target_of
from headgate.errors import Problem
from headgate.exchange import Patience, Script
from headgate.fetching import ResultFacts
from headgate.handles import JobHandle, ResultHandle, of_one
from headgate.sync_driver import SyncDriver, SyncSpeaker, at_once, one_by_one
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


class SyncOperators(SyncSpeaker):
    """What only operators may ask."""

    pause = at_once(operating.pause)
    resume = at_once(operating.resume)
    move = at_once(operating.move)
    analytics = at_once(operating.analytics)
    stats = at_once(operating.stats)
    attempts = at_once(operating.attempts)
    groups = at_once(operating.groups)
    group = at_once(operating.group)
    set_limit = at_once(operating.set_limit)
    unset_limit = at_once(operating.unset_limit)
    release = at_once(operating.release)
    workers = at_once(operating.workers)
    remove_pipeline = at_once(operating.remove_pipeline)
    audit = one_by_one(operating.audit)
    revoke = at_once(operating.revoke)
    policy = at_once(operating.policy)
    reload_policy = at_once(operating.reload_policy)
    erase = at_once(operating.erase)


class SyncHeadgate(SyncSpeaker):
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
    dry_run = at_once(verbs.dry_run)
    job = _shaped(verbs.job, _job)
    jobs = one_by_one(verbs.jobs)
    events = one_by_one(verbs.events)
    all_events = one_by_one(verbs.all_events)
    lines = one_by_one(following.lines)
    log = at_once(verbs.log)
    counts = at_once(verbs.counts)
    history = at_once(verbs.history)
    input = at_once(verbs.job_input)
    explain = at_once(verbs.explain)
    wait = _shaped(waiting.wait, _job)
    cancel = _shaped(verbs.cancel, _job)
    cancel_all = _shaped(verbs.cancel_all, _jobs)
    confirm = _shaped(verbs.confirm, _job)
    answer = _shaped(verbs.answer, _job)
    retry = _shaped(verbs.retry, _job)
    retry_starts = at_once(verbs.retry_starts)
    reprioritize = _shaped(verbs.reprioritize, _job)
    result = _shaped(fetching.facts, _result)
    files = at_once(verbs.files)
    file = at_once(verbs.file)
    content = at_once(fetching.content)
    save = at_once(fetching.save)
    extract = at_once(fetching.extract)
    submit_workflow = at_once(verbs.submit_workflow)
    workflow = at_once(verbs.workflow_state)
    cancel_workflow = at_once(verbs.cancel_workflow)
    take_slot = at_once(leasing.take_slot)
    extend_slot = at_once(leasing.extend_slot)
    give_slot_back = at_once(leasing.give_slot_back)
    usage = at_once(verbs.usage)
    queue = at_once(verbs.queue)
    pipelines = at_once(verbs.pipelines)


class SyncJob(JobHandle[SyncHeadgate]):
    """A job, and what can be asked of it."""

    refreshed = of_one(SyncHeadgate.job)
    events = of_one(SyncHeadgate.events)
    lines = of_one(SyncHeadgate.lines)
    log = of_one(SyncHeadgate.log)
    history = of_one(SyncHeadgate.history)
    input = of_one(SyncHeadgate.input)
    explain = of_one(SyncHeadgate.explain)
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

"""In the scheduler: its fence, its clock, its reader, and what it makes of outages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from headgate_contracts import Job, SchedSubject, job_filter
from libs.eventlog.errors import LogError
from libs.eventlog.values import Appended, Conflicted, Entry, Page
from services.scheduler.batches import Batch
from services.scheduler.chain import Chain
from services.scheduler.domain import Circumstances, Decision
from services.scheduler.inbox import PAGES_AHEAD, Inbox
from services.scheduler.leader import Leader
from services.scheduler.outages import Outages
from services.scheduler.planning import Planner, Proposal
from tests.planted.bug import Bug

SILENT_AFTER_S: Final = 2.0


def commits_what_is_left(sound: Any) -> Any:
    async def commit(self: Chain, batch: Batch) -> bool:
        if await sound(self, batch):
            return True
        link = await self._log.last(str(SchedSubject(self._shard)))
        newest = [await self._log.last(job_filter(decision.job.id)) for decision in batch.decisions]
        left = tuple(
            decision
            for decision, record in zip(batch.decisions, newest, strict=True)
            if record is not None and record.seq == decision.job.seq
        )
        if link is None or not left:
            return False
        self._ends_at = self._own = link.seq
        jobs = tuple(decision.job.id for decision in left)
        return await sound(self, Batch(batch.link.model_copy(update={"jobs": jobs}), left))

    return commit


def takes_anothers_link_for_its_own(sound: Any) -> Any:
    def _is_ours(self: Chain) -> bool:
        self._own = self._own if sound(self) else self._ends_at or None
        return self._own is not None

    return _is_ours


def keeps_its_link_after_silence(sound: Any) -> Any:
    async def _write(self: Chain, entries: Sequence[Entry]) -> Appended | Conflicted:
        own = self._own
        try:
            return await sound(self, entries)
        except LogError:
            self._own = own
            raise

    return _write


def dates_by_its_own_clock(sound: Any) -> Any:
    async def renew(self: Leader) -> bool:
        leads = await sound(self)
        self._store_ahead_ms = self._clock.now_ms() - self._clock.monotonic_ms()
        return leads

    return renew


def reads_on_from_where_the_log_ends(sound: Any) -> Any:
    async def run(self: Inbox, stopping: asyncio.Event) -> None:
        after = self.reached
        while True:
            async with aclosing(self._log.follow(after=after)) as pages:
                while page := await _next(pages):
                    self._pages.append(page)
                    after = page.records[-1].seq if page.records else after
                    self._arrived.set()
                    while len(self._pages) >= PAGES_AHEAD:
                        self._room.clear()
                        await self._room.wait()
            after = max(after, self.ends_at or 0)  # and not from the last page: what is on its way is left out

    return run


async def _next(pages: AsyncGenerator[Page]) -> Page | None:
    """Null where the reader has been silent, as where its connection is gone."""
    try:
        async with asyncio.timeout(SILENT_AFTER_S):
            return await anext(pages)
    except TimeoutError:
        return None


def counts_the_wait_in(sound: Any) -> Any:
    def start(job: Job, *, groups: tuple[str, ...], given: Circumstances, starved: bool = False) -> Decision:
        entered_at = job.standing.entered_at if job.standing else given.now
        return sound(job, groups=groups, given=replace(given, now=entered_at), starved=starved)

    return start


def blames_the_worker(sound: Any) -> Any:
    def decide(kind: str, job: Job, *, given: Circumstances) -> Decision | None:
        return sound(kind, job, given=replace(given, outage=False))

    return decide


def adds_no_outage(sound: Any) -> Any:
    def reached(self: Outages, whom: str) -> None:
        self._heard_ms[whom] = self._clock.monotonic_ms()

    return reached


def starts_what_it_cannot_ask_about(sound: Any) -> Any:
    async def go_on(self: Planner, *, leader: str, now: datetime) -> Proposal:
        async def unasked(jobs: Sequence[Job]) -> frozenset[str]:
            return frozenset()

        starts, started = await self._start((), unasked, now=now)
        return Proposal(self._composed((), starts, started, leader=leader), starts.plan.more)

    return go_on


SCHEDULER: Final = (
    Bug(
        "missing-fence",
        "services.scheduler.chain:Chain.commit",
        commits_what_is_left,
        "A refused commit is planned anew, after what refused it was folded. What is left of it is written behind the "
        "winner: a leader that was stopped for a while starts more beside its successor than a limit allows (I5).",
    ),
    Bug(
        "lone-start-before-its-first-link",
        "services.scheduler.chain:Chain._is_ours",
        takes_anothers_link_for_its_own,
        "A leader begins with a link of its own, and plans once it has folded that (I2). It goes on behind the link of "
        "the one before, whose last start may be under way: that is stored too, and neither has counted the other.",
    ),
    Bug(
        "link-kept-after-silence",
        "services.scheduler.chain:Chain._write",
        keeps_its_link_after_silence,
        "After a write whose outcome is not known a leader begins anew. It goes on, and what was under way is stored "
        "between its plan and its next batch, which counts without it (I5).",
    ),
    Bug(
        "leader-trusts-its-own-clock",
        "services.scheduler.leader:Leader.renew",
        dates_by_its_own_clock,
        "Wall clocks of our processes have no effect. Where the leader's is an hour ahead or behind, deadlines are: "
        "runs end too early or too late, and reminders name the wrong hours.",
    ),
    Bug(
        "fold-skips-after-a-reconnect",
        "services.scheduler.inbox:Inbox.run",
        reads_on_from_where_the_log_ends,
        "A fold reads every record, in order. A reader that begins anew after a silence leaves out what was still on "
        "its way: a job of which the scheduler knows nothing never starts, or never ends (I1, I7).",
    ),
    Bug(
        "deadline-from-the-queueing",
        "services.scheduler.domain:start",
        counts_the_wait_in,
        "A run's time begins at its dispatch. A job that waited or was given back has less of it, and fails with "
        '"took too long" though it did not.',
    ),
    Bug(
        "outage-counted-against-the-job",
        "services.scheduler.domain:decide",
        blames_the_worker,
        "Being given back because of an outage does not count. It is written as a lost worker, and the fourth outage "
        "fails a job that did nothing wrong.",
    ),
    Bug(
        "outage-not-added-to-leases",
        "services.scheduler.outages:Outages.reached",
        adds_no_outage,
        "While NATS or Redis is away leases do not run. After an outage of a lease every running job is given back as "
        "lost, under workers that live and count the outage: it runs twice (I4).",
    ),
    Bug(
        "starts-unasked-while-the-store-is-away",
        "services.scheduler.planning:Planner.go_on",
        starts_what_it_cannot_ask_about,
        "While the store is away only those start that need nothing of it. A job that names a group starts as well, "
        "though stages and applications hold its slots, of which only the store knows (I5).",
    ),
)

"""`RedisView`: the view in Valkey, one method for one script, one class for each part of `ports.View`.

Owns the order of arguments. What a question means is in the script's own header; how rows are written is `store_rows`,
how answers are read `store_answers`. Refuses to decide anything here.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from redis.asyncio import Redis

from libs.capacity import store_answers, store_readings, store_rows
from libs.capacity.answers import (
    BetweenAnswer,
    Claim,
    ClaimAnswer,
    DeferAnswer,
    Deferral,
    DueTimer,
    Folded,
    Grant,
    GroupStatus,
    Heartbeat,
    HeartbeatAnswer,
    LeaseAnswer,
    LeaseRequest,
    Outlook,
    QueueEntry,
    Release,
    ReleaseAnswer,
    Request,
    ReserveAnswer,
    StaleView,
    Swept,
    ViewMark,
    WorkerStatus,
)
from libs.capacity.errors import ViewMisused
from libs.capacity.keys import check_digest, ticket_key, view_key
from libs.capacity.rows import Change, Pause, Seed, StandingOrders
from libs.capacity.scripts import Arg, Reply, ScriptRunner
from libs.capacity.store_cleaner import GenerationCleaner
from libs.capacity.store_errors import translated

PIPELINE: Final = 500  # scripts in one round trip: about 10 ms of the server's time, so that others get their turn
OUTLOOKS: Final = 50  # jobs of one script, for the same reason


class _Asked:
    """The scripts of one shard, for readers of the log `epoch`."""

    def __init__(self, client: Redis, *, shard: str, epoch: str) -> None:
        self._client = client
        self._shard = shard
        self._view = view_key(shard)
        self._epoch = epoch
        self._scripts = ScriptRunner(client, view=self._view)
        self.cleaner = GenerationCleaner(client, shard=shard)

    async def _ask(self, verb: str, *args: Arg, now_ms: int | None = None) -> Reply:
        return await self._scripts.run(verb, self._epoch, _text(now_ms), *args)


class _Life(_Asked):
    async def mark(self) -> ViewMark | None:
        with translated():
            fields = await cast(Any, self._client).hmget(self._view, "epoch", "generation", "applied", "open")
        return store_answers.mark_of(*fields)

    async def begin(self, epoch: str, *, generation: str, applied: int, standing: StandingOrders) -> None:
        texts = store_rows.standing_text(standing)
        await self._scripts.run("begin_v1", epoch, generation, applied, standing.arrivals, texts)
        self.cleaner.start()

    async def seed(self, seeds: Sequence[Seed], *, generation: str, lease_ms: int, now_ms: int | None = None) -> None:
        head = (self._epoch, _text(now_ms), generation, lease_ms)
        for start in range(0, len(seeds), PIPELINE):
            calls = [(*head, *store_rows.seed_args(each)) for each in seeds[start : start + PIPELINE]]
            await self._scripts.run_all("seed_v1", calls)

    async def open(
        self,
        *,
        generation: str,
        quarantine_ms: int,
        leased: Sequence[str] = (),
        leased_ms: int = 0,
        now_ms: int | None = None,
    ) -> None:
        await self._ask("open_v1", generation, quarantine_ms, leased_ms, store_rows.to_json(leased), now_ms=now_ms)

    async def fold(self, changes: Sequence[Change], *, lease_ms: int, now_ms: int | None = None) -> Folded | StaleView:
        head = (self._epoch, _text(now_ms), lease_ms)
        calls = [(*head, *store_rows.change_args(change)) for change in changes] or [(*head, 0, "")]
        replies: list[Reply] = []
        for start in range(0, len(calls), PIPELINE):
            replies += await self._scripts.run_all("fold_v1", calls[start : start + PIPELINE])
        return store_answers.folded(replies, last_seq=changes[-1].seq if changes else 0)

    async def configure(self, defaults: Mapping[str, int], *, now_ms: int | None = None) -> None:
        await self._ask("configure_v1", store_rows.to_json(dict(defaults)), now_ms=now_ms)

    async def prolong(self, by_ms: int) -> None:
        await self._ask("prolong_v1", by_ms, secrets.token_hex(8))


class _Entrance(_Asked):
    async def reserve(self, request: Request, *, now_ms: int | None = None) -> ReserveAnswer:
        return store_answers.reserved(await self._ask("reserve_v1", store_rows.request_text(request), now_ms=now_ms))

    async def release(self, request: Release, *, now_ms: int | None = None) -> ReleaseAnswer:
        args = (request.job, request.cap, request.passed_bound, request.lapse_ms)
        return store_answers.released(await self._ask("release_v1", *args, now_ms=now_ms), request.job)

    async def defer(self, deferral: Deferral, *, now_ms: int | None = None) -> DeferAnswer:
        return store_answers.deferred(await self._ask("defer_v1", *store_rows.deferral_args(deferral), now_ms=now_ms))

    async def between(self, job: str, *, before: str | None = None, after: str | None = None) -> BetweenAnswer:
        neighbour = before or after
        if neighbour is None or (before and after) or neighbour == job:
            raise ViewMisused("a move names one other job, either before or after which")
        return store_answers.between(await self._ask("between_v1", job, "before" if before else "after", neighbour))


class _Starting(_Asked):
    async def claim(
        self,
        claims: Sequence[Claim],
        *,
        applied: int,
        lapse_ms: int,
        drop: Sequence[str] = (),
        now_ms: int | None = None,
    ) -> ClaimAnswer:
        args = (applied, lapse_ms, store_rows.claims_text(claims), store_rows.to_json(drop))
        return store_answers.claimed(await self._ask("claim_v1", *args, now_ms=now_ms))

    async def due(self, limit: int, *, now_ms: int | None = None) -> tuple[DueTimer, ...]:
        return store_readings.due(await self._ask("due_v1", limit, now_ms=now_ms), limit)


class _Leases(_Asked):
    async def acquire(self, request: LeaseRequest, *, now_ms: int | None = None) -> LeaseAnswer:
        return store_answers.lease(
            await self._ask("acquire_v1", *store_rows.lease_args(request), now_ms=now_ms), request
        )

    async def shut(self, group: str, until_ms: int, *, now_ms: int | None = None) -> tuple[Grant, ...]:
        return store_answers.grants(await self._ask("shut_v1", group, until_ms, now_ms=now_ms))

    async def give_up(
        self, lease: str, *, user: str | None = None, wait_only: bool = False, now_ms: int | None = None
    ) -> tuple[Grant, ...]:
        args = (lease, user or "", "1" if wait_only else "")
        return store_answers.grants(await self._ask("give_up_v1", *args, now_ms=now_ms))

    async def beat(self, heartbeat: Heartbeat, *, now_ms: int | None = None) -> HeartbeatAnswer:
        reply = await self._ask("beat_v1", store_rows.heartbeat_text(heartbeat), now_ms=now_ms)
        return store_answers.beat(reply, heartbeat.holders)

    async def sweep(self, *, now_ms: int | None = None) -> Swept:
        return store_answers.swept(await self._ask("sweep_v1", now_ms=now_ms))


class _Readings(_Asked):
    async def job(self, job: str) -> str | None:
        return await self._ask("job_v1", job)

    async def outlook(self, job: str, *, now_ms: int | None = None) -> Outlook | None:
        (outlook,) = await self.outlooks([job], now_ms=now_ms)
        return outlook

    async def outlooks(self, jobs: Sequence[str], *, now_ms: int | None = None) -> tuple[Outlook | None, ...]:
        starts = range(0, len(jobs) or 1, OUTLOOKS)  # without a job too: whether there is a view
        calls = [(self._epoch, _text(now_ms), *jobs[start : start + OUTLOOKS]) for start in starts]
        replies = await asyncio.gather(*(self._scripts.run("outlook_v1", *call) for call in calls))
        return tuple(store_readings.outlook(each) for reply in replies for each in reply)

    async def group(self, group: str, *, tier: str | None = None, now_ms: int | None = None) -> GroupStatus:
        return store_readings.group(await self._ask("group_v1", group, tier or "", now_ms=now_ms), group)

    async def jobs_of(self, user: str, *, before: int | None = None, count: int = 50) -> tuple[tuple[str, int], ...]:
        return store_readings.jobs_of(await self._ask("jobs_of_v1", user, _text(before), count))

    async def day_used(self, user: str, day: int) -> int:
        return await self._ask("day_used_v1", user, day)

    async def stored(self, user: str = "") -> int:
        return await self._ask("stored_v1", user)

    async def queue(self, *, offset: int = 0, count: int = 100) -> tuple[QueueEntry, ...]:
        return store_readings.queue(await self._ask("queue_v1", offset, count))

    async def groups(self, *, now_ms: int | None = None) -> tuple[str, ...]:
        return store_readings.groups(await self._ask("groups_v1", now_ms=now_ms))

    async def workers(self, *, now_ms: int | None = None) -> tuple[WorkerStatus, ...]:
        return store_readings.workers(await self._ask("workers_v1", now_ms=now_ms))

    async def pauses(self) -> tuple[Pause, ...]:
        return store_readings.pauses(await self._ask("pauses_v1"))

    async def tiers_queued(self) -> Mapping[str, int]:
        return store_readings.tiers(await self._ask("tiers_queued_v1"))


class _Refusals(_Asked):
    async def count_refused(self, reason: str, *, now_ms: int | None = None) -> None:
        await self._ask("count_refused_v1", reason, now_ms=now_ms)

    async def refused(self, *, now_ms: int | None = None) -> Mapping[tuple[int, str], int]:
        return store_readings.refused(await self._ask("refused_v1", now_ms=now_ms))


class _Tickets(_Asked):
    async def keep_ticket(
        self, digest: str, text: str, *, user: str, most: int, ttl_ms: int, now_ms: int | None = None
    ) -> int | None:
        check_digest(digest)
        return await self._ask("keep_ticket_v1", digest, text, user, most, ttl_ms, now_ms=now_ms) or None

    async def take_ticket(self, digest: str) -> str | None:
        with translated():
            return await cast(Any, self._client).getdel(ticket_key(self._shard, digest))


class _Board(_Asked):
    async def publish(self, name: str, text: str) -> None:
        await self._ask("publish_v1", name, text)

    async def published(self, name: str) -> str | None:
        return await self._ask("published_v1", name)


class RedisView(_Life, _Entrance, _Starting, _Leases, _Readings, _Refusals, _Tickets, _Board):
    """The view of one shard, for readers of the log `epoch`. The client is `store_client.open_client`'s."""

    async def close(self) -> None:
        """Stop what runs in the background. The client is its maker's to close."""
        await self.cleaner.stop()


def _text(number: int | None) -> str:
    return "" if number is None else str(number)

"""A whole Headgate in memory: four services over the twins, on a loop of their own, in a thread of their own.

Time passes only as far as somebody waits for it: for an answer, for the next piece of a stream while there is anything
left to do, for a number of seconds, or until nothing is left to do. Owns that time, and what "nothing left to do" is;
the thread and its loop are `driving`. How a test is given it is the client's: `headgate.testing`.
"""

import asyncio
import math
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from copy import deepcopy
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from headgate_contracts import Job, Status, Tier
from headgate_contracts.envelope import utc
from headgate_pipeline import Pipeline
from libs.policy.loading import policy_from
from libs.runtime.keys import sign_token
from libs.runtime.lifecycle import Service
from libs.twins.driving import DrivenLoop, TwinFailed
from libs.twins.exchange import Exchange, Silence, TwinRequest
from libs.twins.extending import HeldSlots
from libs.twins.loop import TwinLoop
from libs.twins.scripts import Scripts, scripted_build
from libs.twins.services import ISSUER, TwinFront, start_admission, start_notifier, start_scheduler, start_worker
from libs.twins.world import TwinWorld
from services.scheduler.replica import Replica
from services.worker import rehearsal
from services.worker.attempts import Attempts

TOKENS_S: Final = 20 * 86_400
QUIET_S: Final = 5.0  # with no record more in the log, who could start has started
LOOKS_EVERY_S: Final = 1.0
AWAKE_S: Final = 5.0  # before and after time is skipped, so that what beats has beaten
SERVICES: Final = ("scheduler", "worker", "admission", "notifier")


class TwinSystem:
    """One Headgate. All methods may be called from any thread; `start` first, `stop` last."""

    def __init__(
        self,
        *,
        pipelines: Sequence[Pipeline] = (),
        policy: Mapping[str, Any] | None = None,
        now: datetime,
        slots: int = 4,
    ) -> None:
        self.scripts = Scripts()
        built_in = (scripted_build(self.scripts), rehearsal.pipeline)
        self._pipelines = {each.name: each for each in (*built_in, *pipelines)}
        self._policy, self._now, self._slots = policy_from(deepcopy(dict(policy or {})), environ={}), now, slots
        self.held = HeldSlots(self._policy)
        self._driven = DrivenLoop(self._require_all)
        self._loop: TwinLoop
        self._world: TwinWorld
        self._folder: tempfile.TemporaryDirectory[str]
        self._running: list[tuple[Service, asyncio.Task[int]]] = []
        self._replica: Replica
        self._attempts: Attempts
        self._fronts: dict[str, TwinFront] = {}
        self._grown = (0, 0.0)  # the log's end, and since when it stands there

    # ── from the test ─────────────────────────────────────────────────────────

    def start(self) -> Future[None]:
        self._driven.make(self._make)
        return self._driven.drive(self._start)

    def stop(self) -> Future[None]:
        return self._driven.end(self._stop_all, then=self._folder.cleanup)

    @property
    def deeds(self) -> int:
        """How often somebody has done something."""
        return self._driven.deeds

    def after(self, deeds: int) -> Future[None]:
        """Done when somebody has done something more than that."""
        return self._driven.after(deeds)

    def ask(self, asked: TwinRequest) -> Future[Exchange]:
        """A request is on its way."""

        async def begin() -> Exchange:
            front = self._fronts["notifier" if asked.path.endswith("/stream") else "admission"]
            self.held.extend_what_is_taken(front.app, asked)
            return Exchange(front.app, asked)

        return self._driven.drive(begin)

    def head(self, exchange: Exchange) -> Future[None]:
        """Of the answer, however much time that takes."""
        return self._driven.carry_on(exchange.begun)

    def piece(self, exchange: Exchange) -> Future[bytes | Silence | None]:
        """The next of an answer. It moves time on while there is something left to do."""
        return self._driven.carry_on(lambda: exchange.piece(self._nothing_left))

    def hang_up(self, exchange: Exchange) -> Future[None]:
        return self._driven.drive(exchange.hang_up)

    def is_quiet(self) -> Future[bool]:
        """Whether nothing is left to do, so that a slot is freed by somebody's deed, or by the end of a lease."""

        async def look() -> bool:
            return self._nothing_left()

        return self._driven.carry_on(look)

    def run(self) -> Future[None]:
        """Until nothing is left to do: each job has ended, or waits for its user, for its day or its hour, or for a
        slot that nobody gives back."""

        async def idle() -> None:
            while not self._nothing_left():  # noqa: ASYNC110 - it is the log that is looked at
                await asyncio.sleep(LOOKS_EVERY_S)

        return self._driven.drive(idle)

    def advance(self, seconds: float) -> Future[None]:
        if not 0 <= seconds < math.inf:
            raise ValueError(f"time passes forwards, by seconds that end: not by {seconds}")
        return self._driven.drive(lambda: self._pass(seconds))

    @property
    def now(self) -> datetime:
        return utc(self._world.clock.now_ms())

    def token(self, user: str, *, tier: str, scopes: Sequence[str], projects: Sequence[str]) -> str:
        return sign_token(
            self._world.pair,
            user=user,
            tier=Tier(tier),
            scope=" ".join(scopes),
            issuer=ISSUER,
            audience=ISSUER,
            now_ms=self._world.clock.now_ms(),
            ttl_s=TOKENS_S,
            projects=projects,
        )

    def unfinished(self) -> str:
        """What each job that has not ended waits for, in words."""
        jobs = [job for job in self._replica.ledger.jobs.values() if not job.status.is_end]
        return "; ".join(_waits(job) for job in jobs) or "no job is there that has not ended"

    # ── on the thread ─────────────────────────────────────────────────────────

    def _make(self, loop: TwinLoop) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="headgate-testing-")
        self._loop = loop
        self._world = TwinWorld(loop, self._policy, now=self._now, folder=Path(self._folder.name))

    def _require_all(self) -> None:
        for service, living in self._running:
            if living.done():
                raise TwinFailed(service.name)

    async def _pass(self, seconds: float) -> None:
        """Where nothing is left to do, up to what is due next at once."""
        loop = self._loop
        until_s = loop.time() + seconds
        while (left_s := until_s - loop.time()) > 0:
            if self._nothing_left() and (skipped_s := min(left_s, self._world.next_timer_s()) - AWAKE_S) > 0:
                loop.skip(skipped_s)
                left_s -= skipped_s
            await asyncio.sleep(min(left_s, AWAKE_S))

    async def _start(self) -> None:
        await self._loop.watch_threads()
        for name in SERVICES:
            await self._begin(name)

    async def _begin(self, name: str) -> None:
        service, begun = Service(name), asyncio.Event()

        async def compose(service: Service) -> None:
            await self._compose(service)
            begun.set()

        living = asyncio.create_task(service.run(compose), name=name)
        self._running.append((service, living))
        beginning = asyncio.create_task(begun.wait())
        await asyncio.wait((beginning, living), return_when=asyncio.FIRST_COMPLETED)
        beginning.cancel()

    async def _compose(self, service: Service) -> None:
        match service.name:
            case "scheduler":
                self._replica = await start_scheduler(service, self._world)
            case "worker":
                self._attempts = await start_worker(service, self._world, self._pipelines, slots=self._slots)
            case "admission":
                self._fronts[service.name] = await start_admission(service, self._world)
            case _:
                self._fronts[service.name] = await start_notifier(service, self._world)

    async def _stop_all(self) -> None:
        for service, living in reversed(self._running):
            service.stop()
            await asyncio.wait([living])

    def _nothing_left(self) -> bool:
        end, now_s = self._world.server.last_seq, self._loop.time()
        if end != self._grown[0]:
            self._grown = (end, now_s)
        if now_s - self._grown[1] < QUIET_S or not self._attempts.is_idle or not self._world.dispatches.is_empty:
            return False
        now = self.now
        return not any(_is_under_way(job, now) for job in self._replica.ledger.jobs.values())


def _is_under_way(job: Job, now: datetime) -> bool:
    """A worker has it, or will in a while without anybody's doing."""
    begins_again = job.status is Status.QUEUED and job.tried is not None and job.tried.again_at > now
    return job.status.is_running or begins_again


def _waits(job: Job) -> str:
    match job.status:
        case Status.AWAITING_CONFIRMATION if job.question is not None:
            return f"{job.id} asks: {job.question.text}"
        case Status.SCHEDULED:
            return f"{job.id} is scheduled for {job.scheduled_for or job.quota_day}"
        case status:
            return f"{job.id} is {status.value}"

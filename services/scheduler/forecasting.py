"""The leader's forecast: the queue run forward again and again, for all replicas to show.

    changed? ──► the scene of this moment ──► a thread runs it forward ──► published: "forecast", "analytics"
       ▲                                                                       │
       └────────── at least 2 s, and nine times as long as it took ────────────┘

Owns when. What is worked out is `libs.forecast`. It is no part of any decision, so whatever goes wrong with it costs
estimates and nothing else. The thread gives way at every step, so that a turn of the cycle never waits for it.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from itertools import takewhile
from typing import Final

from opentelemetry.metrics import Meter

from headgate_contracts import Job
from libs.capacity.answers import WorkerStatus
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.ledger import Ledger
from libs.capacity.paces import Wait
from libs.capacity.ports import View
from libs.capacity.projection import gates_of, row_of
from libs.capacity.rows import Seed, StandingOrders, score_of
from libs.capacity.turns import Turns
from libs.forecast import analytics, table
from libs.forecast.analytics import analytics_of, is_hit
from libs.forecast.machine import PoolSlots
from libs.forecast.making import Past, make_forecast
from libs.forecast.run import Scene
from libs.policy import Policy
from libs.runtime.clock import Clock
from services.scheduler.leader import Leader

logger = logging.getLogger(__name__)

EVERY_MS: Final = 2000
REST: Final = 9  # times as long as it took: a tenth of the time at most
FORESEEN: Final = 1_000  # queued jobs that are run forward: those behind them are told an average job's share each
ANYWAY_MS: Final = 30_000  # where nothing has changed: jobs that run longer than expected have
ERRORS_S: Final = [1, 5, 15, 30, 60, 120, 300, 600, 1200, 3600, 7200]


class Forecaster:
    """Makes forecasts while its replica leads."""

    def __init__(self, ledger: Ledger, view: View, *, clock: Clock, leader: Leader, meter: Meter) -> None:
        self._ledger = ledger
        self._view = view
        self._clock = clock
        self._leader = leader
        self._worth = Worth(meter)
        self._made_at: int | None = None  # the ledger's record; null: not since this replica leads
        self._made_ms = 0

    async def run(self, stopping: asyncio.Event) -> None:
        self._worth.skip(self._ledger.waits)
        rest_ms = EVERY_MS
        while not stopping.is_set():
            await self._clock.sleep_ms(rest_ms)
            began_ms = self._clock.monotonic_ms()
            if not self._leader.leads:
                self._made_at = None
                self._worth.skip(self._ledger.waits)
            elif self._is_due(began_ms):
                await self._try()
            rest_ms = max(EVERY_MS, REST * (self._clock.monotonic_ms() - began_ms))

    async def make(self) -> None:
        """One forecast, published."""
        ledger, began_ms = self._ledger, self._clock.monotonic_ms()
        applied = ledger.applied
        self._worth.count(ledger.waits)
        workers = await self._view.workers()
        queued, running = list(ledger.roster.queued.values()), list(ledger.roster.running.values())
        jobs = [*await asyncio.to_thread(front_of, queued), *running]
        shut = await self._shut(jobs)
        moment = ForecastInput(
            policy=ledger.policy,
            now_ms=self._clock.now_ms(),
            jobs=tuple((job, ledger.passed.get(job.id, 0)) for job in jobs),
            standing=ledger.standing(),
            turns=Turns(dict(ledger.turns.by_class), Counter(ledger.turns.present)),
            pools=pools_of(workers),
            shut=shut,
            past=Past(paces=dict(ledger.paces), waits=tuple(ledger.waits)),
        )
        forecast, shown = await asyncio.to_thread(moment.work_out)
        await self._view.publish(table.NAME, forecast)
        await self._view.publish(analytics.NAME, shown)
        self._made_at, self._made_ms = applied, began_ms

    async def _try(self) -> None:
        try:
            await self.make()
        except (ViewLost, ViewUnavailable):
            self._made_at = None  # what was published may be gone with it
        except Exception:
            logger.exception("no forecast was made")  # the queue needs none: whatever it is, it must not end the leader

    def _is_due(self, now_ms: int) -> bool:
        return self._made_at != self._ledger.applied or now_ms - self._made_ms >= ANYWAY_MS

    async def _shut(self, jobs: Iterable[Job]) -> dict[str, int]:
        """Until when no job is started that waits for a group that is shut: a provider that asked for a pause."""
        gates = {gate for job in jobs for gate in gates_of(job)}
        found = [await self._view.group(gate) for gate in sorted(gates)]
        return {group.group: group.shut_until_ms for group in found if group.shut_until_ms is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastInput:
    """All that a forecast is made from, taken from the ledger in one go."""

    policy: Policy
    now_ms: int
    jobs: tuple[tuple[Job, int], ...]  # queued and running, and how often each was passed
    standing: StandingOrders
    turns: Turns
    pools: tuple[PoolSlots, ...]
    shut: Mapping[str, int]
    past: Past

    def work_out(self) -> tuple[str, str]:
        """The forecast and the analytics, as they are published. In a thread."""
        scene = Scene(
            now_ms=self.now_ms,
            seeds=tuple(Seed(row_of(job, self.policy), passed) for job, passed in self.jobs),
            standing=self.standing,
            pools=self.pools,
            turns=self.turns,
            shut=self.shut,
        )
        forecast = make_forecast(scene, self.past, self.policy, give_way=_give_way)
        return forecast.dump(), analytics_of(self.past.waits).model_dump_json()


class Worth:
    """How good the forecasts were, as metrics: one count for each first start that this leader has seen."""

    def __init__(self, meter: Meter) -> None:
        self._hits = meter.create_counter(
            "headgate_forecast_hits", description="first starts, by tier and whether the wait was inside the interval"
        )
        self._errors = meter.create_histogram(
            "headgate_forecast_error_seconds",
            description="how far the wait was from the estimate",
            explicit_bucket_boundaries_advisory=ERRORS_S,
        )
        self._last: Wait | None = None

    def skip(self, waits: deque[Wait]) -> None:
        """Another replica counts these."""
        self._last = waits[-1] if waits else None

    def count(self, waits: deque[Wait]) -> None:
        """Those since the last time."""
        fresh = list(takewhile(lambda wait: wait is not self._last, reversed(waits)))
        self.skip(waits)
        for wait in fresh:
            if wait.estimate is not None:
                hit = is_hit(wait.estimate, wait.wait_s)
                for outcome in (True, False):  # both from the first on: a series that begins with 1 shows no increase
                    self._hits.add(outcome is hit, {"tier": wait.tier, "hit": str(outcome).lower()})
                self._errors.record(abs(wait.wait_s - wait.estimate.estimate_seconds), {"tier": wait.tier})


def front_of(queued: Iterable[Job]) -> list[Job]:
    """Those that are to be run forward, in order."""
    return nsmallest(FORESEEN, queued, key=_score)


def _score(job: Job) -> int:
    assert job.standing is not None, "a queued job has a place"
    return score_of(job.priority.class_number, job.standing.place)


def pools_of(workers: Iterable[WorkerStatus]) -> tuple[PoolSlots, ...]:
    """The slots of each pool's workers that still take jobs."""
    slots = Counter[str]()
    for worker in workers:
        slots[worker.pool] += 0 if worker.draining else worker.slots
    return tuple(PoolSlots(pool, count) for pool, count in sorted(slots.items()))


def _give_way() -> None:
    """Lets a turn of the cycle that is due begin at once, and not after the interpreter's five milliseconds."""
    time.sleep(0)

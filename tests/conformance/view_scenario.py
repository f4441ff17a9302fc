"""A view and the log that is folded into it, as small as the tests of the view want them.

    world = ViewScenario(view)
    await world.open()
    await world.worker(slots=3)
    await world.submit("a", user="ann", tier="partner")     reserved, then folded
    assert await world.plan() == ["a"]
    await world.dispatch("a")

Owns the jobs' rows as a ledger would make them, one sequence a change, and the time. It asks the view through the
interface alone, so that whatever keeps the interface can stand behind it.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, Self

from libs.capacity.answers import (
    Claim,
    ClaimAnswer,
    DeferAnswer,
    Deferral,
    Deferred,
    Folded,
    Grant,
    Granted,
    Heartbeat,
    LeaseAnswer,
    LeaseRequest,
    Plan,
    Release,
    ReleaseAnswer,
    ReserveAnswer,
    Reserved,
)
from libs.capacity.ports import View
from libs.capacity.projection import is_inner
from libs.capacity.rows import Change, OperatorOrder, Pause, Resume, Row, Seed, SetLimit, UnsetLimit
from tests.conformance.view_log import (
    DAY_MS,
    DEFAULTS,
    ENDS,
    IN_QUEUE,
    INPUT_MS,
    LEASE_MS,
    NOW_MS,
    TODAY,
    Details,
    Orders,
    let_go,
    request,
    row,
)
from tests.fixtures.stores import EPOCH

Views = Callable[[str], View]  # one for readers of the log with this epoch, over the same storage as all the others

_SILENT: Final[Details] = {"draining": False, "holders": (), "leases": (), "ttl_ms": DAY_MS}
_PATIENT: Final[Details] = {"ttl_ms": LEASE_MS, "wait_ms": 600_000, "reply": "inbox"}


class ViewScenario:
    """Everything a test says about jobs, workers and operators, in one line each."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.now_ms = NOW_MS
        self.seq = 0
        self.rows: dict[str, Row] = {}
        self.places: dict[str, int] = {}  # where a job returns to
        self.passed: Counter[str] = Counter()  # also of jobs that the log does not know yet
        self.orders = Orders(dict(DEFAULTS))

    # ── the view's life ───────────────────────────────────────────────────────

    @classmethod
    async def opened(cls, view: View) -> Self:
        """An open view over an empty log, with a worker that has room for all."""
        world = cls(view)
        await world.open()
        await world.worker()
        return world

    async def open(
        self,
        *,
        seeds: Iterable[Seed] = (),
        generation: str = "generation-0",
        quarantine_ms: int = 0,
        leased: tuple[str, ...] = (),
        leased_ms: int = 0,
        **sums: dict[tuple[str, int], int],
    ) -> None:
        """A new generation from what the log says by now. `sums` are of jobs that are gone."""
        standing = replace(self.orders.standing(), **sums)
        await self.view.begin(EPOCH, generation=generation, applied=self.seq, standing=standing)
        await self.view.seed([*seeds], generation=generation, lease_ms=LEASE_MS, now_ms=self.now_ms)
        shut: dict[str, Any] = {"leased": leased, "leased_ms": leased_ms}
        await self.view.open(generation=generation, quarantine_ms=quarantine_ms, **shut, now_ms=self.now_ms)

    def seeds(self) -> list[Seed]:
        return [Seed(row, self.passed[job]) for job, row in self.rows.items()]

    async def forget(self, *jobs: str) -> None:
        """The next record of the log, with which these leave ledger and view."""
        change = replace(self.write(), gone=jobs)
        assert isinstance(await self.view.fold([change], lease_ms=LEASE_MS, now_ms=self.now_ms), Folded)

    async def configure(self, defaults: dict[str, int]) -> None:
        self.orders.defaults = defaults
        await self.view.configure(defaults, now_ms=self.now_ms)

    def later(self, by_ms: int) -> None:
        self.now_ms += by_ms

    async def fold(
        self,
        row: Row | None = None,
        *,
        passed: tuple[str, ...] = (),
        order: OperatorOrder | None = None,
        unused: tuple[str, ...] = (),
    ) -> tuple[Grant, ...]:
        """The next record of the log."""
        change = replace(self.write(row, passed=passed, order=order), unused=unused)
        for group in unused:
            self.orders.limits.pop(group, None)
        answer = await self.view.fold([change], lease_ms=LEASE_MS, now_ms=self.now_ms)
        assert isinstance(answer, Folded), answer
        return answer.grants

    def write(
        self, row: Row | None = None, *, passed: tuple[str, ...] = (), order: OperatorOrder | None = None
    ) -> Change:
        """A record of the log, and what a ledger makes of it."""
        prev, self.seq = self.seq, self.seq + 1
        before = 0
        if row is not None:
            known = self.rows.get(row.id)
            row = replace(row, seq=self.seq, first_seq=known.first_seq if known else self.seq)
            before = 0 if known else self.passed[row.id]
        self._remember(row, passed, order)
        return Change(seq=self.seq, prev=prev, row=row, passed=passed, passed_before=before, order=order)

    def _remember(self, row: Row | None, passed: tuple[str, ...], order: OperatorOrder | None) -> None:
        self.orders.fold(row, order, is_new=row is not None and row.id not in self.rows)
        for job in passed:
            if job not in self.rows or self.rows[job].status not in ENDS:
                self.passed[job] += 1
        if row is not None:
            self.rows[row.id] = row
            if row.place is not None:
                self.places[row.id] = row.place
            if row.status in ENDS:
                del self.passed[row.id]

    # ── jobs before they run ──────────────────────────────────────────────────

    async def reserve(self, job: str, **details: Any) -> ReserveAnswer:
        return await self.view.reserve(request(job, **details), now_ms=self.now_ms)

    async def submit(self, job: str, **details: Any) -> Reserved:
        """Reserved, appended, folded."""
        answer = await self.reserve(job, **details)
        assert isinstance(answer, Reserved), answer
        await self.appear(job, answer, **details)
        return answer

    async def appear(self, job: str, answer: Reserved, **details: Any) -> None:
        """The first event of a job that was given this place."""
        first = row(job, **details)
        await self.fold(self._placed(first, answer), passed=answer.passed)

    async def spread(self, *jobs: str, **details: Any) -> None:
        """Jobs of many users and projects, so that only what the test says can block them."""
        for job in jobs:
            await self.submit(job, **{"user": f"user-{job}", "project": f"project-{job}", **details})

    async def run(self, *jobs: str, **details: Any) -> None:
        await self.spread(*jobs, **details)
        await self.dispatch(*jobs)

    async def schedule(self, job: str, *, day: int = TODAY + 1, release_ms: int | None = None, **details: Any) -> None:
        due_ms = day * DAY_MS if release_ms is None else release_ms
        scheduled = replace(row(job, **details), status="scheduled", quota_day=day, timers={"release": due_ms})
        await self.fold(scheduled)

    async def wait(self, job: str, **details: Any) -> None:
        """A later phase of a workflow."""
        await self.fold(replace(row(job, **details), status="waiting"))

    async def release(self, job: str, *, cap: int = 100, bound: int = 10) -> ReleaseAnswer:
        asked = Release(job=job, cap=cap, passed_bound=bound, lapse_ms=60_000)
        return await self.view.release(asked, now_ms=self.now_ms)

    async def defer(self, job: str, **details: Any) -> DeferAnswer:
        asked = {"first_day": TODAY, "per_day": 5, "horizon_days": 30, "lapse_ms": 60_000, **details}
        return await self.view.defer(Deferral(job=job, user=self.rows[job].user, **asked), now_ms=self.now_ms)

    async def put_off(self, job: str, answer: Deferred) -> None:
        """A queued job's event that names another day."""
        off = replace(self.rows[job], status="scheduled", timers={"release": answer.day * DAY_MS})
        await self.fold(replace(off, quota_day=answer.day, place=None, arrival=None, entered_ms=None))

    async def enter(self, job: str, answer: Reserved) -> None:
        """A released job's event."""
        await self.fold(self._placed(replace(self.rows[job], timers={}), answer), passed=answer.passed)

    def _placed(self, at_first: Row, answer: Reserved) -> Row:
        day = answer.day if answer.day is not None else at_first.quota_day
        return replace(
            at_first,
            status=IN_QUEUE,
            arrival=answer.arrival,
            place=answer.place,
            entered_ms=self.now_ms,
            quota_day=day,
        )

    async def move(self, job: str, place: int, *, class_number: int | None = None) -> None:
        known = self.rows[job]
        await self.fold(replace(known, place=place, class_number=class_number or known.class_number))

    # ── jobs that run ─────────────────────────────────────────────────────────

    async def plan(self, limit: int = 20, *, only_class: int | None = None) -> list[str]:
        planned = await self.look(limit, only_class=only_class)
        assert not planned.more
        return [pick.job for pick in planned.picks]

    async def look(self, limit: int = 20, *, only_class: int | None = None) -> Plan:
        """Of an engine beside the view: a view plans nothing."""
        engine: Any = self.view
        return await engine.plan(limit, only_class=only_class, now_ms=self.now_ms)

    async def plan_all(self) -> None:
        """Until all that is to be parked is parked."""
        while (await self.look()).more:
            pass

    async def claim(self, *jobs: str, drop: tuple[str, ...] = (), **details: Any) -> ClaimAnswer:
        """What these jobs need of what leases want too, for their next attempts."""
        asked = {"applied": self.seq, "lapse_ms": 60_000, **details}
        claims = [self.claim_of(job) for job in jobs]
        return await self.view.claim(claims, drop=drop, now_ms=self.now_ms, **asked)

    def claim_of(self, job: str) -> Claim:
        row = self.rows[job]
        return Claim(f"{job}:{row.attempt + 1}", tuple(filter(is_inner, row.groups)), row.gates)

    async def dispatch(self, *jobs: str) -> None:
        for job in jobs:
            attempt = self.rows[job].attempt + 1
            await self.fold(
                replace(
                    self.rows[job],
                    status="starting",
                    attempt=attempt,
                    place=None,
                    holder=f"{job}:{attempt}",
                    started_ms=self.now_ms,
                    timers={"deadline": self.now_ms + 6 * 3_600_000},
                )
            )

    async def start(self, job: str, *, worker: str = "w1") -> None:
        await self.fold(replace(self.rows[job], worker=worker))

    async def stage(self, job: str, status: str) -> None:
        await self.fold(replace(self.rows[job], status=status))

    async def ask_to_cancel(self, job: str) -> None:
        await self.fold(replace(self.rows[job], cancelling=True))

    async def finish(
        self, job: str, status: str = "ready", *, refund: bool = False, unused: tuple[str, ...] = ()
    ) -> tuple[Grant, ...]:
        """Any of the three ends, from anywhere."""
        known = self.rows[job]
        day = None if refund else known.quota_day
        ended = replace(known, status=status, place=None, quota_day=day, timers={})
        return await self.fold(let_go(replace(ended, input_until_ms=self.now_ms + INPUT_MS)), unused=unused)

    async def give_back(self, job: str, *, gates: tuple[str, ...] = ()) -> tuple[Grant, ...]:
        """Back to its old place; for a provider, behind its gate."""
        return await self.fold(replace(self._returned(job), gates=gates))

    async def ask_to_continue(self, job: str) -> tuple[Grant, ...]:
        timers = {"confirmation": self.now_ms + DAY_MS, "reminder": self.now_ms + DAY_MS // 2}
        return await self.fold(let_go(replace(self.rows[job], status="awaiting_confirmation", timers=timers)))

    async def confirm(self, job: str) -> None:
        await self.fold(self._returned(job))

    def _returned(self, job: str) -> Row:
        return let_go(replace(self.rows[job], status=IN_QUEUE, place=self.places[job], timers={}))

    # ── operators ─────────────────────────────────────────────────────────────

    async def pause(self, scope: str) -> None:
        await self.fold(order=Pause(scope, by="olga", reason="maintenance", since_ms=self.now_ms))

    async def resume(self, scope: str) -> None:
        await self.fold(order=Resume(scope))

    async def set_limit(self, group: str, limit: int) -> tuple[Grant, ...]:
        return await self.fold(order=SetLimit(group, limit))

    async def unset_limit(self, group: str) -> tuple[Grant, ...]:
        return await self.fold(order=UnsetLimit(group))

    # ── workers and leases ────────────────────────────────────────────────────

    async def worker(self, name: str = "w1", *, pool: str = "default", slots: int = 100, **details: Any) -> Any:
        heard = Heartbeat(worker=name, pool=pool, slots=slots, **(_SILENT | details))
        return await self.view.beat(heard, now_ms=self.now_ms)

    async def acquire(self, lease: str, *groups: str, owner: str | None = None, **details: Any) -> LeaseAnswer:
        asked = LeaseRequest(lease=lease, groups=groups, owner=owner, **(_PATIENT | details))
        return await self.view.acquire(asked, now_ms=self.now_ms)

    async def shut(self, group: str, for_ms: int) -> tuple[Grant, ...]:
        return await self.view.shut(group, self.now_ms + for_ms, now_ms=self.now_ms)

    async def hold(self, lease: str, *groups: str, owner: str | None = None, **details: Any) -> None:
        answer = await self.acquire(lease, *groups, owner=owner, **details)
        assert isinstance(answer, Granted), answer

    # ── looking ───────────────────────────────────────────────────────────────

    async def names(self) -> list[str]:
        """The queue, in order."""
        return [entry.job for entry in await self.view.queue()]

    async def times_passed(self) -> dict[str, int]:
        return {entry.job: entry.passed for entry in await self.view.queue()}

    async def active(self, group: str) -> list[str]:
        return [holder.name for holder in (await self.view.group(group, now_ms=self.now_ms)).holders]

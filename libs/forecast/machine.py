"""The real rules on a virtual clock: jobs enter, start and end in a view in memory, as fast as it can fold.

Who starts is the twin's own plan; nothing of it is repeated here. Owns the clock and the changes that a
job's start, end and rise make to its row. Deterministic: what is due at the same moment goes in the order in
which it was set.
"""

from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any, Final, TypeVar

from headgate_contracts import Holder
from headgate_contracts.vocabulary import PRIORITY_OF_CLASS
from libs.capacity.answers import Heartbeat, Plan, Request, Reserved
from libs.capacity.memory import MemoryStore, MemoryView
from libs.capacity.memory.limits import limit_of
from libs.capacity.memory.planning import plan as planned
from libs.capacity.memory.state import State
from libs.capacity.rows import Change, OperatorOrder, Row, Seed, StandingOrders
from libs.capacity.turns import Turns, next_starts
from libs.policy import Policy

Answer = TypeVar("Answer")

EPOCH: Final = "virtual"
FOREVER_MS: Final = 2**52  # no lease ends on this clock: a silent holder is not known to be one
OVER: Final = "ready"
UNLIMITED: Final = 2**31
AT_ONCE: Final = 100  # starts asked for in one plan


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that comes due about a job: `what` is its user's word."""

    what: str
    job: str


@dataclass(slots=True)
class Agenda:
    """All that is still to come."""

    _due: list[tuple[int, int, Happening]] = field(default_factory=list[tuple[int, int, Happening]])
    _count: int = 0

    def set(self, at_ms: int, happening: Happening) -> None:
        """This comes due then."""
        self._count += 1
        heappush(self._due, (at_ms, self._count, happening))

    @property
    def next_ms(self) -> int | None:
        """The next moment at which something is due; null where nothing is to come."""
        return self._due[0][0] if self._due else None

    def take(self, now_ms: int) -> Happening | None:
        """The next one that is due by then."""
        return heappop(self._due)[2] if self._due and self._due[0][0] <= now_ms else None


@dataclass(frozen=True, slots=True)
class PoolSlots:
    """What a pool can run at once, where a worker of it lives."""

    pool: str
    slots: int


def answer(question: Coroutine[Any, Any, Answer]) -> Answer:
    """The view in memory answers without ever waiting, so it needs no loop."""
    try:
        question.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("the view in memory has waited for something")


@dataclass(slots=True)
class Machine:
    """A view of its own, and its clock."""

    policy: Policy
    now_ms: int
    store: MemoryStore = field(default_factory=MemoryStore)
    view: MemoryView = field(init=False)
    rows: dict[str, Row] = field(default_factory=dict[str, Row])
    turns: Turns = field(default_factory=Turns)
    agenda: Agenda = field(default_factory=Agenda)
    _applied: int = 0

    def __post_init__(self) -> None:
        self.view = MemoryView(EPOCH, clock=lambda: self.now_ms, store=self.store)

    def begin(self, standing: StandingOrders, seeds: Iterable[Seed] = (), *, turns: Turns | None = None) -> None:
        """The view as it stands at the beginning. Without `turns` nobody has waited for one yet."""
        answer(self.view.begin(EPOCH, generation=EPOCH, applied=0, standing=standing))
        kept = list(seeds)
        answer(self.view.seed(kept, generation=EPOCH, lease_ms=FOREVER_MS))
        answer(self.view.open(generation=EPOCH, quarantine_ms=0))
        for seed in kept:
            self._keep(seed.row)
            if turns is None and seed.row.place is not None:
                self.turns.come(seed.row.class_number, at_ms=self.now_ms)
        if turns is not None:
            self.turns = Turns(dict(turns.by_class), Counter(turns.present))

    def employ(self, pools: Iterable[PoolSlots]) -> None:
        """From here on each of these pools has so many slots."""
        for pool in pools:
            beat = Heartbeat(
                worker=pool.pool,
                pool=pool.pool,
                slots=pool.slots,
                draining=False,
                holders=(),
                leases=(),
                ttl_ms=FOREVER_MS,
            )
            answer(self.view.beat(beat))

    def shut(self, group: str, until_ms: int) -> None:
        """Nobody gets a slot of the group until then."""
        answer(self.view.shut(group, until_ms))
        self.agenda.set(until_ms, Happening("open", group))

    def advance(self) -> Iterator[Happening]:
        """Go to the next moment at which something is due; all that is due at it, rises of classes aside."""
        self.now_ms = max(self.now_ms, self.agenda.next_ms or 0)
        while happening := self.agenda.take(self.now_ms):
            if happening.what == "age":
                self._rise(happening.job)
            else:
                yield happening

    # ── what happens to jobs ──────────────────────────────────────────────────

    def put(self, row: Row, *, passed: tuple[str, ...] = ()) -> None:
        """This is how the job stands from here on."""
        before = self.rows.get(row.id)
        if before is not None and before.place is not None:
            self.turns.go(before.class_number)
        self._fold(row=row, passed=passed)
        if row.place is not None:
            self.turns.come(row.class_number, at_ms=self.now_ms)
        self._keep(row)

    def join(self, row: Row) -> Row:
        """Into the queue, where the rules put a new job of its class and boost; there is room for all."""
        request = Request(
            job=row.id,
            user=row.user,
            project=row.project,
            pool=row.pool,
            class_number=row.class_number,
            boost=row.boost,
            takes_day=False,
            per_day=0,
            horizon_days=0,
            cap=UNLIMITED,
            user_share=UNLIMITED,
            passed_bound=self.policy.order.max_passed,
            lapse_ms=FOREVER_MS,
        )
        reserved = answer(self.view.reserve(request))
        assert isinstance(reserved, Reserved), "nothing that could refuse it is asked"
        joined = self.entered(row, reserved)
        self.put(joined, passed=reserved.passed)
        return joined

    def entered(self, row: Row, reserved: Reserved) -> Row:
        """The row with its place, from now on."""
        return replace(
            row,
            status="queued",
            arrival=reserved.arrival,
            place=reserved.place,
            quota_day=row.quota_day if reserved.day is None else reserved.day,
            entered_ms=self.now_ms,
            timers={"age": self.now_ms + self.ageing_ms},
        )

    @property
    def ageing_ms(self) -> int:
        return round(self.policy.order.ageing_after_s * 1000)

    def order(self, order: OperatorOrder) -> None:
        """What an operator did."""
        self._fold(order=order)

    def start(self) -> list[Row]:
        """Everybody who may run now gets their slots; how they stood in the queue before."""
        started: list[Row] = []
        while True:
            starts = answer(
                next_starts(
                    self.turns.by_class,
                    self.policy.order,
                    now_ms=self.now_ms,
                    most=AT_ONCE,
                    picks=self._picks,
                    first_class=self._first_class,
                )
            )
            picks = starts.plan.picks[: starts.most]
            for pick in picks:
                row = self.rows[pick.job]
                self.put(self._started(row))
                self.turns.start(row.class_number, at_ms=self.now_ms, starved=starts.owed)
                started.append(row)
            if len(picks) < starts.most:
                return started

    async def _picks(self, most: int, *, only_class: int | None = None) -> Plan:
        while True:
            plan = planned(self._state, most, only_class=only_class, now_ms=self.now_ms)
            if plan.picks or not plan.more:
                return plan

    def _first_class(self, plan: Plan) -> int | None:
        return self.rows[plan.picks[0].job].class_number if plan.picks else None

    def end(self, job: str, status: str = OVER) -> None:
        """Its slots come free, or its place in the queue. The view remembers one that is over: its day counts."""
        row, seq = self.rows[job], self._applied + 1
        self.put(replace(row, status=status, holder=None, place=None, started_ms=None, timers={}, seq=seq))
        if status == OVER:
            del self.rows[job]

    def limit(self, group: str, tier: str) -> int:
        """How many slots the group has for a job of this tier."""
        return limit_of(self._state, group, tier=tier, now_ms=self.now_ms)

    @property
    def _state(self) -> State:
        assert self.store.state is not None, "a machine begins before it is asked"
        return self.store.state

    def _started(self, row: Row) -> Row:
        attempt = row.attempt + 1
        return replace(
            row,
            status="starting",
            attempt=attempt,
            place=None,
            holder=str(Holder(row.id, attempt)),
            started_ms=self.now_ms,
            timers={},
            seq=self._applied + 1,
        )

    def _keep(self, row: Row) -> None:
        self.rows[row.id] = row
        if "age" in row.timers:
            self.agenda.set(row.timers["age"], Happening("age", row.id))

    def _rise(self, job: str) -> None:
        """One class up, at its own place, unless the job has moved on from what this was set for."""
        row, order = self.rows.get(job), self.policy.order
        if row is None or row.place is None or row.timers.get("age", FOREVER_MS) > self.now_ms:
            return
        if up := order.risen(PRIORITY_OF_CLASS[row.class_number]):
            timers = {"age": self.now_ms + self.ageing_ms} if order.risen(up) else {}
            self.put(replace(row, class_number=up.class_number, timers=timers, seq=self._applied + 1))

    def _fold(
        self, *, row: Row | None = None, passed: tuple[str, ...] = (), order: OperatorOrder | None = None
    ) -> None:
        change = Change(seq=self._applied + 1, prev=self._applied, row=row, passed=passed, order=order)
        answer(self.view.fold((change,), lease_ms=FOREVER_MS))
        self._applied += 1

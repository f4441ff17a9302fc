"""The queue run forward: the real rules over the jobs, slots and limits of this moment, in virtual time.

    the jobs of the scene     those that run have held their slots for a while, those that wait get them by the plan
    guests                    jobs that are still to come, as often as lately
    probes                    one at the end of each class of a pool: it starts where a new job would, and holds nothing

Deterministic. Refuses to know who will answer a question, or what an operator will do.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Protocol

from headgate_contracts.vocabulary import CLASS_NUMBERS, Tier
from libs.capacity.rows import Row, Seed, StandingOrders
from libs.capacity.turns import Turns
from libs.forecast.arrivals import Guest
from libs.forecast.machine import Happening, Machine, PoolSlots
from libs.policy import Policy

GUESTS: Final = 40  # that a run invites, and as many again as wait: who comes after them decides little


class Holds(Protocol):
    """How much longer a job holds its slots."""

    def hold_s(self, job: str, tier: str, *, age_s: float = 0.0) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where the run begins: the jobs that are queued or running, what was ordered, and the slots that there are."""

    now_ms: int
    seeds: tuple[Seed, ...]
    standing: StandingOrders
    pools: tuple[PoolSlots, ...]
    turns: Turns | None = None  # whose turn it is; null: nobody has waited for one yet
    shut: Mapping[str, int] = field(default_factory=dict[str, int])  # groups of which nobody gets a slot until then

    @property
    def waiting(self) -> list[Row]:
        return [seed.row for seed in self.seeds if seed.row.place is not None]

    @property
    def running(self) -> list[Row]:
        return [seed.row for seed in self.seeds if seed.row.holder is not None]

    def age_s(self, row: Row) -> float:
        """For how long this job has held its slots."""
        return max(0, self.now_ms - (row.started_ms or self.now_ms)) / 1000


@dataclass(frozen=True, slots=True)
class Hold:
    """A job of the scene in its slots. `row` is how it stood before: with a place, unless it ran at the beginning."""

    row: Row
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of it. A job that is in no hold was started by nothing: it is paused, or has no worker."""

    holds: tuple[Hold, ...]
    ends: Mapping[tuple[str, int], int]  # pool, class → when a job starts that is the last of it now
    limits: Mapping[str, int]  # slots of each group of these jobs

    @property
    def starts(self) -> dict[str, int]:
        return {hold.row.id: hold.start_ms for hold in self.holds if hold.row.place is not None}


def run_forward(
    scene: Scene,
    holds: Holds,
    policy: Policy,
    *,
    guests: Iterator[Guest] | None = None,
    give_way: Callable[[], None] = lambda: None,
) -> RunResult:
    """Who starts when, until all have that can. `give_way` is called at every step, for others in the same process."""
    run = _Run(scene, holds, policy, guests or iter(()))
    run.run(give_way)
    return RunResult(tuple(run.course), run.ends, run.limits)


@dataclass(slots=True)
class _Run:
    scene: Scene
    holds: Holds
    policy: Policy
    guests: Iterator[Guest]
    machine: Machine = field(init=False)
    waiting: set[str] = field(default_factory=set[str])
    probes: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    course: list[Hold] = field(default_factory=list[Hold])
    ends: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])

    def run(self, give_way: Callable[[], None]) -> None:
        self._begin()
        while self.waiting or self.probes:
            while self._start():
                pass  # a probe has left its slot to the next
            if self.machine.agenda.next_ms is None:
                return
            give_way()
            for happening in self.machine.advance():
                self._happen(happening)

    @property
    def limits(self) -> dict[str, int]:
        """A project's limit is that of the tier of the job that wants to start: here, of the last of its jobs."""
        tiers = {group: hold.row.tier for hold in self.course for group in hold.row.groups}
        return {group: self.machine.limit(group, tier) for group, tier in tiers.items()}

    def _begin(self) -> None:
        scene = self.scene
        self.machine = Machine(self.policy, scene.now_ms)
        self.machine.begin(scene.standing, scene.seeds, turns=scene.turns)
        self.machine.employ(scene.pools)
        for group, until_ms in scene.shut.items():
            self.machine.shut(group, until_ms)
        for row in scene.running:
            self._hold(row, age_s=scene.age_s(row))
        self.waiting = {row.id for row in scene.waiting}
        for pool in scene.pools:
            for number in CLASS_NUMBERS.values() if pool.slots else ():
                name = f"probe {pool.pool} {number}"
                self.probes[name] = (pool.pool, number)
                self.machine.join(_stranger(name, pool.pool, number, tier=Tier.BOOTSTRAPPER, boost=0))
        self.guests = islice(self.guests, GUESTS + len(self.waiting))
        self._invite()

    def _start(self) -> bool:
        """Starts the jobs that may; whether a probe was among them."""
        probed = False
        for row in self.machine.start():
            if row.id in self.probes:
                self.ends[self.probes.pop(row.id)] = self.machine.now_ms
                self.machine.end(row.id)
                probed = True
            else:
                self._hold(row)
                self.waiting.discard(row.id)
        return probed

    def _happen(self, happening: Happening) -> None:
        match happening.what:
            case "end":
                self.machine.end(happening.job)
            case "come":
                tier, pool, number = happening.job.split(" ")[1:]
                boost = self.policy.tier_limits(Tier(tier)).boost
                self.machine.join(_stranger(happening.job, pool, int(number), tier=Tier(tier), boost=boost))
                self._invite()
            case _:
                pass  # a group opens: who waits for it is found by the next plan

    def _invite(self) -> None:
        """The next guest, when it is time."""
        for guest in islice(self.guests, 1):
            name = f"guest-{guest.number} {guest.tier} {guest.pool} {guest.class_number}"
            self.machine.agenda.set(guest.at_ms, Happening("come", name))

    def _hold(self, row: Row, *, age_s: float = 0.0) -> None:
        """The job holds its slots from now on, and its end is set."""
        now_ms = self.machine.now_ms
        end_ms = now_ms + max(1, round(self.holds.hold_s(row.id, row.tier, age_s=age_s) * 1000))
        self.machine.agenda.set(end_ms, Happening("end", row.id))
        if row.holder is not None or row.id in self.waiting:
            self.course.append(Hold(row, now_ms, end_ms))


def _stranger(name: str, pool: str, number: int, *, tier: Tier, boost: int) -> Row:
    """A job that shares nothing with any other but its pool."""
    return Row(
        id=name,
        status="waiting",
        seq=1,
        first_seq=1,
        attempt=0,
        user=name,
        project=name,
        workflow=None,
        pool=pool,
        tier=tier.value,
        class_number=number,
        boost=boost,
        arrival=None,
        place=None,
        entered_ms=None,
        groups=(),
    )

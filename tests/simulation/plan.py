"""What a seed says: who asks for what and when, and what goes wrong. Data alone, so that less of it can be tried.

A fault ends before `PEACE_S`; from then on nothing more goes wrong, and what was begun has to come to its end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from headgate_contracts import Priority, Tier
from libs.policy import Policy
from tests.simulation.dice import Dice

JOBS: Final = 15
BUSY_S: Final = 30.0
PEACE_S: Final = 50.0
USERS: Final = {"ann": Tier.BOOTSTRAPPER, "bob": Tier.PARTNER, "eve": Tier.CTO_SCALE}
PROJECTS: Final = ("shop", "site")
GROUPS: Final = ("db", "gpu")
PROVIDER: Final = "ollama"
ADMISSIONS: Final = ("admission-1", "admission-2")
SCHEDULERS: Final = ("scheduler-1", "scheduler-2")
WORKERS: Final = ("worker-1", "worker-2")
SERVICES: Final = (*ADMISSIONS, *SCHEDULERS, *WORKERS)
SLOTS: Final = 3  # of each worker
SCOPES: Final = ("all", "user:bob", "project:shop", "priority:normal", "pool:default")
POLICY: Final = Policy.model_validate(
    {
        "queue": {"cap": 12, "user_share": 8, "release_spread_s": 20},
        "order": {"max_passed": 3, "ageing_after_s": 25, "starved_after_s": 15, "starved_every": 3},
        "providers": {"limits": {PROVIDER: 1}, "give_back_after_s": 8},
        "projects": {"shared": True},
        "tiers": {
            "bootstrapper": {"jobs_per_day": 4, "cycles_per_batch": 1, "hard_cap": 3},
            "partner": {"jobs_per_day": 6, "boost": 2, "cycles_per_batch": 2},
            "cto_scale": {"jobs_per_day": 20, "boost": 4},
        },
        "retention": {"view_days": 20},
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A job, or a workflow of `phases`, and what its client does besides."""

    name: str
    at_s: float
    user: str
    project: str
    priority: Priority
    phases: int = 0
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    group: str | None = None
    limit: int | None = None
    run_timeout_s: int | None = None
    queue_ttl_s: int | None = None
    twice: bool = False  # two requests with one key, at the same moment
    cancel_after_s: float | None = None
    raise_after_s: float | None = None
    answer_after_s: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What an operator does."""

    kind: str  # pause, limit, force, move
    at_s: float
    what: str = ""
    number: int = 0
    for_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong: `kind` is a method of `Faults`, to whom, and until when."""

    kind: str
    at_s: float
    for_s: float = 0.0
    who: str = "*"
    server: str = "*"
    share: float = 0.0

    def __str__(self) -> str:
        details = [self.who] if self.who != "*" else []
        details += [f"to {self.server}"] if self.server != "*" else []
        details += [f"{self.share:.2f}"] if self.share else []
        details += [f"for {self.for_s:.1f} s"] if self.for_s else []
        return " ".join([f"{self.kind:6}", *details])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that a seed says, or less of it."""

    seed: int
    orders: tuple[Order, ...]
    acts: tuple[Act, ...]
    faults: tuple[Fault, ...]
    before_midnight_s: float  # when the day changes

    @property
    def size(self) -> int:
        return len(self.orders) + len(self.acts) + len(self.faults)


def plan_of(seed: int, *, jobs: int = JOBS) -> Plan:
    """Some seeds have few faults and some have many: a fault is found more easily beside few others."""
    dice = Dice(seed)
    faults = dice.one_of("plan", (1, 2, 3, 5, 8))
    return Plan(
        seed=seed,
        orders=_within_the_days(tuple(_order(dice, number) for number in range(1, jobs + 1))),
        acts=tuple(_act(dice) for _ in range(dice.whole("acts", 0, 5))),
        faults=tuple(sorted((_fault(dice) for _ in range(faults)), key=lambda fault: fault.at_s)),
        before_midnight_s=dice.one_of("midnight", (15.0, 40.0)),
    )


def _within_the_days(orders: tuple[Order, ...]) -> tuple[Order, ...]:
    """No more of one user than fit into what is left of today and into tomorrow: nobody simulates a week."""
    left = {user: 2 * POLICY.tier_limits(tier).jobs_per_day - 1 for user, tier in USERS.items()}
    kept: list[Order] = []
    for order in orders:
        left[order.user] -= 1
        if left[order.user] >= 0:
            kept.append(order)
    return tuple(kept)


def _order(dice: Dice, number: int) -> Order:
    def chance(share: float) -> bool:
        return dice.chance("order", share)

    user = dice.one_of("user", tuple(USERS))
    group = dice.one_of("group", GROUPS) if chance(0.25) else None
    highest = POLICY.tier_limits(USERS[user]).highest_priority.class_number
    classes = [each for each in Priority if each.class_number >= highest]
    return Order(
        name=f"job-{number:02}",
        at_s=dice.between("at", 0.0, BUSY_S) if chance(0.7) else round(dice.between("at", 0.0, 4.0)),
        user=user,
        project=dice.one_of("project", PROJECTS),
        priority=Priority.NORMAL if chance(0.6) else dice.one_of("class", classes),
        phases=dice.whole("phases", 2, 3) if chance(0.1) else 0,
        stages=_stages(dice, (group,) if group else GROUPS),
        group=group,
        limit=dice.one_of("limit", (None, 1, 2)) if chance(0.5) else None,
        run_timeout_s=dice.whole("timeout", 4, 40) if chance(0.1) else None,
        queue_ttl_s=dice.whole("ttl", 5, 60) if chance(0.1) else None,
        twice=chance(0.15),
        cancel_after_s=dice.between("cancel", 0.0, 20.0) if chance(0.2) else None,
        raise_after_s=dice.between("raise", 0.0, 15.0) if chance(0.15) else None,
        answer_after_s=dice.between("answer", 0.5, 8.0),
    )


def _stages(dice: Dice, groups: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """A job that holds a group asks for no other: two that wait for each other's would do so until their deadline."""
    stages: dict[str, dict[str, Any]] = {
        name: {"s": round(dice.between("stage", 0.05, 3.0), 3)} for name in ("scaffold", "code", "deps", "checks")
    }
    if dice.chance("slots", 0.35):
        stages["code"]["slots"] = dice.some_of("slots", groups, dice.whole("slots", 1, len(groups)))
    if dice.chance("provider", 0.3):
        stages["code"]["provider"] = PROVIDER
        if dice.chance("provider", 0.3):
            stages["code"]["shut_ms"] = dice.one_of("shut", (500, 3000, 12_000))
    if dice.chance("slow", 0.1):
        stages["deps"]["s"] = 15.0
    if dice.chance("fails", 0.2):
        stages["checks"]["fails"] = dice.whole("fails", 1, 3)
    if dice.chance("breaks", 0.05):
        stages["deps"]["breaks"] = True
    return stages


def _act(dice: Dice) -> Act:
    kind, at_s = dice.one_of("act", ("pause", "limit", "force", "force", "move")), dice.between("act", 2.0, BUSY_S + 10)
    match kind:
        case "pause":
            return Act(kind=kind, at_s=at_s, what=dice.one_of("act", SCOPES), for_s=dice.between("act", 1.0, 10.0))
        case "limit":
            project = dice.one_of("act", PROJECTS)
            what = dice.one_of("act", (f"group:{project}:db", "user:bob", f"project:{project}", f"llm:{PROVIDER}"))
            return Act(kind=kind, at_s=at_s, what=what, number=dice.whole("act", 1, 4))
        case _:
            return Act(kind=kind, at_s=at_s, number=dice.whole("act", 0, 9))


def _fault(dice: Dice) -> Fault:
    """One of all kinds."""
    at_s = dice.between("fault", 1.0, PEACE_S - 12)
    for_s = dice.between("fault", 0.3, 11.0)
    kinds = ("crash", "crash", "crash", "pause", "pause", "cut", "cut", "lossy", "lossy", "slow", "flush", "older")
    kinds += ("split", "full", "clock", "stop", "roll")
    kind = dice.one_of("fault", kinds)
    who = dice.one_of("fault", SERVICES)
    server = dice.one_of("fault", ("log", "log", "view", "commands", "buckets", "*"))
    match kind:
        case "crash" | "stop":
            return Fault(kind=kind, at_s=at_s, for_s=for_s, who=who)
        case "pause":
            long = dice.chance("fault", 0.3)
            return Fault(kind=kind, at_s=min(at_s, 10.0) if long else at_s, for_s=38.0 if long else for_s, who=who)
        case "cut":
            return Fault(kind=kind, at_s=at_s, for_s=for_s, who=dice.one_of("fault", (who, who, "*")), server=server)
        case "lossy":
            share = dice.between("fault", 0.05, 0.5)
            who = dice.one_of("fault", (who, "*"))
            return Fault(kind=kind, at_s=at_s, for_s=for_s, who=who, server=server, share=share)
        case "slow":
            share = dice.between("fault", 0.05, 1.5)
            return Fault(kind=kind, at_s=at_s, for_s=for_s, server=server, share=share)
        case "full":
            return Fault(kind=kind, at_s=at_s, for_s=for_s, server=dice.one_of("fault", ("log", "buckets")))
        case "clock":
            return Fault(kind=kind, at_s=at_s, who=who, share=dice.one_of("fault", (-3600.0, 3600.0)))
        case _:
            return Fault(kind=kind, at_s=at_s, for_s=for_s)

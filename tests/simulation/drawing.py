"""From a seed to its plan: what of everything there is, and when. Each number by dice of its own name.

Some seeds have few faults and some have many: a fault is found more easily beside few others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from headgate_contracts import Priority
from tests.simulation.askers import asking
from tests.simulation.dice import Dice
from tests.simulation.drawing_edge import faults_among, readers_of
from tests.simulation.drawing_rush import is_rush, rush_of
from tests.simulation.drawing_small import ORDINARY_S, alone, first_of, shortened
from tests.simulation.drawing_work import LONG_S, LONG_STAGES, faults_around_one
from tests.simulation.indexes import erasures, faults_of_file, is_indexed
from tests.simulation.late_copies import late_copies
from tests.simulation.late_words import late_words
from tests.simulation.losses import long_holds, losses_of
from tests.simulation.outages import held_through, long_runs, outages_of
from tests.simulation.plan import (
    ADMISSIONS,
    BUSY_S,
    GROUPS,
    HOOK_HOST,
    JOBS,
    POLICY,
    PROJECTS,
    PROVIDER,
    SCOPES,
    SERVICES,
    SLOTS,
    USERS,
    Act,
    Fault,
    Order,
    Plan,
)
from tests.simulation.reloads import fills_queue, reload_calmly, reloads_of
from tests.simulation.stumbles import stumbling
from tests.simulation.user_leases import hold_calmly, losses_among, user_leases_of
from tests.simulation.visits import are_calm, visits_of
from tests.simulation.withdrawals import withdrawn

POINTS: Final = ("code", "deps", "checks")  # whose ends are moments for a cancel
LONGER: Final = 0.25  # of the seeds: some of their stages last longer than a lease
CROWDED: Final = 0.3  # of the seeds: their workers have a slot each
LAST_FAULT_S: Final = 30.0  # of those at any moment: most jobs have ended by then
SLOW: Final = 0.05  # of the orders
SLOW_S: Final = 9.0
HABITS: Final = 0.025  # a forecast costs as much as all the rest of its second
PAUSES: Final = 0.25
HELD: Final = ("user:ann", "user:bob", "user:eve", "project:shop", "project:site", "priority:normal", "all")


def plan_of(seed: int, *, jobs: int = JOBS) -> Plan:
    dice = Dice(seed)
    visits = visits_of(dice, projects=PROJECTS, groups=GROUPS, until_s=BUSY_S)
    pauses = _pauses(dice)
    lost = tuple(Fault(kind="flush", at_s=pauses[0].at_s + 2.0) for _ in pauses[:1] if dice.chance("pauses", 0.5))
    leases = user_leases_of(dice, users=tuple(USERS), projects=PROJECTS, until_s=BUSY_S)
    reloads = reloads_of(dice)
    is_calm = are_calm(dice, visits) or hold_calmly(dice, leases) or reload_calmly(dice, reloads)
    faults = 0 if is_calm else dice.one_of("plan", (1, 2, 3, 5, 8))
    lost += tuple(Fault(kind="flush", at_s=at_s) for at_s in losses_among(dice, leases) if not is_calm)
    longer = dice.chance("longer", LONGER)
    drawn = _within_the_days(tuple(_order(dice, number, longer=longer) for number in range(1, jobs + 1)))
    orders = _odd(dice, first_of(drawn, jobs=jobs))
    outages = outages_of(dice)
    losses = losses_of(dice)
    orders = tuple(_early(order) for order in orders)
    orders = held_through(dice, long_runs(dice, orders, outages=outages), outages=outages)
    orders = long_holds(dice, orders, losses=losses)
    orders = _notified(dice, shortened(dice, asking(dice, stumbling(dice, orders))))
    slots = 1 if dice.chance("crowded", CROWDED) or fills_queue(reloads) else SLOTS
    indexed = is_indexed(dice)
    erased = erasures(dice) if indexed else ()
    readers = () if indexed else readers_of(dice, orders)  # nobody reads along where lines are erased
    wrong = (*(_fault(dice) for _ in range(faults)), *(faults_among(dice) if readers else ()))
    wrong += (_deaf(dice),) if faults and dice.chance("deaf", 0.1) else ()
    wrong += faults_around_one(dice) if faults else ()
    wrong += faults_of_file(dice) if faults and indexed else ()
    if faults and is_rush(dice):
        orders, stopped = rush_of(dice, orders)
        wrong += stopped
    plan = Plan(
        seed=seed,
        orders=orders,
        acts=(*(_act(dice) for _ in range(dice.whole("acts", 0, 5))), *pauses, *erased, *reloads),
        faults=tuple(sorted((*wrong, *lost, *outages, *losses), key=lambda fault: fault.at_s)),
        visits=visits,
        leases=leases,
        readers=readers,
        is_indexed=indexed,
        has_habits=dice.chance("habits", HABITS),
        slots=slots,
        before_midnight_s=dice.one_of("midnight", (12.0, 26.0)),
    )
    return alone(dice, withdrawn(dice, late_words(dice, late_copies(dice, plan)) if faults else plan))


def _early(order: Order) -> Order:
    """What runs for longer than a lease, so that it meets what goes wrong."""
    return replace(order, at_s=order.at_s / 4) if order.stages["deps"]["s"] == LONG_S else order


def _within_the_days(orders: tuple[Order, ...]) -> tuple[Order, ...]:
    """No more of one user than fit into what is left of today and into tomorrow: nobody simulates a week."""
    left = {user: 2 * POLICY.tier_limits(tier).jobs_per_day - 1 for user, tier in USERS.items()}
    kept: list[Order] = []
    for order in orders:
        left[order.user] -= 1
        if left[order.user] >= 0:
            kept.append(order)
    return tuple(kept)


def _odd(dice: Dice, orders: tuple[Order, ...]) -> tuple[Order, ...]:
    """Some clients use what is another's key, or their own for something else, or cancel at the last moment."""
    made: list[Order] = []
    for order in orders:
        others = tuple(each.name for each in made if each.user != order.user)
        taken = {each.key for each in made if each.user == order.user}
        key = dice.one_of("key", others) if others and dice.chance("key", 0.1) else None
        odd = replace(order, key_of=None if key in taken else key, other_body=dice.chance("other body", 0.1))
        made.append(replace(odd, cancel_on=dice.one_of("cancel on", ("queued", *POINTS) + (None,) * 20)))
    return tuple(made)


def _notified(dice: Dice, orders: tuple[Order, ...]) -> tuple[Order, ...]:
    def url_of(order: Order) -> str | None:
        return f"https://{HOOK_HOST}/{order.name}" if dice.chance("notified", 0.5) else None

    return tuple(replace(order, notify_url=url_of(order)) for order in orders)


def _deaf(dice: Dice) -> Fault:
    """Longer than anybody waits to know what became of an append."""
    at_s, for_s = dice.between("deaf", 1.0, 20.0), dice.between("deaf", 16.0, 24.0)
    return Fault(kind="deaf", at_s=at_s, for_s=for_s, who=dice.one_of("deaf", ADMISSIONS), server="append")


def _order(dice: Dice, number: int, *, longer: bool) -> Order:
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
        pipeline="own" if dice.chance("own stages", 0.25) else "build",
        stages=_stages(dice, (group,) if group else GROUPS, longer=longer),
        group=group,
        limit=dice.one_of("limit", (None, 1, 2)) if chance(0.5) else None,
        run_timeout_s=dice.whole("timeout", 4, 40) if chance(0.1) else None,
        queue_ttl_s=dice.whole("ttl", 5, 60) if chance(0.1) else None,
        twice=chance(0.15),
        cancel_after_s=dice.between("cancel", 0.0, 20.0) if chance(0.2) else None,
        raise_after_s=dice.between("raise", 0.0, 15.0) if chance(0.15) else None,
        answer_after_s=dice.between("answer", *dice.one_of("patience", ((0.5, 8.0), (0.5, 8.0), (5.0, 25.0)))),
        run_after_s=dice.between("later", 2.0, 40.0) if dice.chance("later", 0.1) else None,
        leaves=dice.chance("leaves", 0.15),
        submits_again=dice.chance("again", 0.2),
    )


def _stages(dice: Dice, groups: tuple[str, ...], *, longer: bool) -> dict[str, dict[str, Any]]:
    """A job that holds a group asks for no other: two that wait for each other's would do so until their deadline."""
    names = ("scaffold", "code", "deps", "checks")
    stages: dict[str, dict[str, Any]] = {
        name: {"s": round(dice.between("stage", 0.05, ORDINARY_S), 3)} for name in names
    }
    if dice.chance("slots", 0.35):
        stages["code"]["slots"] = dice.some_of("slots", groups, dice.whole("slots", 1, len(groups)))
    if dice.chance("provider", 0.3):
        stages["code"]["provider"] = PROVIDER
        if dice.chance("provider", 0.3):
            stages["code"]["shut_ms"] = dice.one_of("shut", (500, 2500, 6000))
    if dice.chance("slow", SLOW):
        stages["deps"]["s"] = SLOW_S
    if dice.chance("fails", 0.13):
        stages["checks"]["fails"] = dice.whole("fails", 1, 3)
    elif longer and dice.chance("long", LONG_STAGES):
        stages["deps"]["s"] = LONG_S
    if dice.chance("breaks", 0.05):
        stages["deps"]["breaks"] = True
    return stages


def _pauses(dice: Dice) -> tuple[Act, ...]:
    """In some seeds: several at once, so that more than one holds a job."""
    if not dice.chance("pauses", PAUSES):
        return ()
    made = [
        Act(kind="pause", at_s=dice.between("pauses", 1.0, 20.0), what=scope, for_s=dice.between("pauses", 4.0, 25.0))
        for scope in dice.some_of("paused", HELD, dice.whole("pauses", 2, 4))
    ]
    return tuple(sorted(made, key=lambda act: act.at_s))


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
    at_s = dice.between("fault", 1.0, LAST_FAULT_S)
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

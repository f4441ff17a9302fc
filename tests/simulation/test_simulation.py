"""The adversary finds what is planted, and tells the shortest story. The sweep says that it finds nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.planted import BUGS
from tests.simulation.__main__ import fails_alike
from tests.simulation.drawing import plan_of
from tests.simulation.plan import Plan
from tests.simulation.planting import planted
from tests.simulation.run import Run, simulate
from tests.simulation.shrink import shrink
from tests.simulation.story import story_of

ROOT: Final = Path(__file__).parents[2]
FEW: Final = 40
MORE: Final = 400  # where few have what a fault needs


def first_found(seeds: Iterable[int]) -> Run | None:
    return next((run for run in map(simulate, map(plan_of, seeds)) if run.findings), None)


def seeds_with(has_what_it_needs: Callable[[Plan], bool]) -> Iterator[int]:
    return (seed for seed in range(1, MORE + 1) if has_what_it_needs(plan_of(seed)))


def _one_too_many(sound: Callable[..., bool]) -> Callable[..., bool]:
    def is_full(state: Any, group: str, **more: Any) -> bool:
        return sound(state, group, **{**more, "picked": more.get("picked", 0) - 1})

    return is_full


def _knows_nothing(sound: Callable[..., Any]) -> Callable[..., Any]:
    async def known(self: Any, phases: Any) -> None:
        return None

    return known


def _lets_another_in(sound: Callable[..., bool]) -> Callable[..., bool]:
    def force(self: Any, act: Any) -> bool:
        return False

    return force


def _one_ahead(sound: Callable[..., Any]) -> Callable[..., Any]:
    def queue_part(job: Any, outlook: Any, estimate: Any = None) -> Any:
        ahead = outlook and outlook.position and outlook.position > 1
        return sound(job, replace(outlook, position=outlook.position - 1) if ahead else outlook, estimate)

    return queue_part


def _takes_all(sound: Callable[..., Any]) -> Callable[..., Any]:
    async def _is_taken(self: Any, event: Any, url: str) -> bool:
        await sound(self, event, url)
        return True

    return _is_taken


PLANTED: Final = {
    "a call that failed is over": ("services.notifier.webhooks:Webhooks._is_taken", _takes_all),
    "a slot too many": ("libs.capacity.memory.limits:is_full", _one_too_many),
    "a repeated key is another's": ("services.admission.submitting:Submitting._known", _knows_nothing),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    with planted(*PLANTED[fault]):
        found = first_found(range(1, FEW + 1))

    assert found is not None


def test_a_position_too_low_is_found_by_who_reads_along() -> None:
    with planted("libs.forecast.place:queue_part", _one_ahead):
        found = first_found(seeds_with(lambda plan: bool(plan.readers)))

    assert found is not None
    assert found.findings[0].invariant == "I7"


def test_another_in_the_slot_of_a_forced_attempt_is_found() -> None:
    def is_crowded(plan: Plan) -> bool:
        return bool(plan.visits) and any(act.kind == "force" for act in plan.acts)

    with planted("libs.capacity.ledger:Ledger._force", _lets_another_in):
        found = first_found(seeds_with(is_crowded))

    assert found is not None
    assert found.findings[0].invariant == "I5 real"


def _hears_late(plan: Plan) -> bool:
    return any(fault.kind == "late" for fault in plan.faults)


NEEDS: Final[dict[str, tuple[Callable[[Plan], bool], str]]] = {
    "said-twice-at-the-joint": (lambda plan: bool(plan.readers), "I6"),
    "retry-forgets-its-count": (lambda plan: any("stumbles" in order.stages["code"] for order in plan.orders), "tries"),
    "link-kept-after-silence": (lambda plan: any(fault.kind == "held" for fault in plan.faults), "paused"),
    "held-again-by-a-late-heartbeat": (_hears_late, "I8 slots"),
    "granted-after-it-was-given-up": (_hears_late, "I8 slots"),
    "reload-not-planned-by": (lambda plan: plan.is_reloaded, "I5"),
    "answer-to-a-later-attempt": (
        lambda plan: any(order.answers_again_s is not None for order in plan.orders),
        "answers",
    ),
    "leased-group-open-after-a-loss": (lambda plan: bool(plan.leases) and _loses_view(plan), "I5 real"),
}


@pytest.mark.parametrize("name", NEEDS)
def test_a_planted_bug_is_found_by_what_looks_for_it(name: str) -> None:
    [bug] = [each for each in BUGS if each.name == name]
    has_what_it_needs, invariant = NEEDS[name]
    with planted(bug.where, bug.make):
        found = first_found(seeds_with(has_what_it_needs))

    assert found is not None
    assert invariant in {finding.invariant for finding in found.findings}


def _loses_view(plan: Plan) -> bool:
    return any(fault.kind == "flush" for fault in plan.faults)


def test_what_fails_shrinks_to_less_that_fails_alike_and_is_told() -> None:
    with planted(*PLANTED["a slot too many"]):
        found = first_found(range(1, FEW + 1))
        assert found is not None
        short = shrink(found.plan, lambda plan: fails_alike(plan, found), most_runs=40)
        told = story_of(simulate(short))

    assert short.size < found.plan.size
    assert f"SEED={short.seed}" in told


def test_a_fault_less_changes_nothing_else() -> None:
    plan = plan_of(3)

    without = simulate(replace(plan, faults=(), acts=()))

    assert [order.name for order in without.plan.orders] == [order.name for order in plan.orders]
    assert without.findings == ()

"""From the queue of this moment to the forecast that is published: several runs, and the spread of past errors.

Pure. Each run deals the jobs other durations out of those observed; a start is the mean over the runs. One run with
average durations would be late for those in front: of several running jobs the first to end is never the average one.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from libs.capacity.paces import Pace, Wait
from libs.forecast.arrivals import lately
from libs.forecast.durations import Durations, Observed, observed
from libs.forecast.intervals import COVERED, FIRST, Pair, Spread, learn
from libs.forecast.lines import lines_of
from libs.forecast.plain import first_averages
from libs.forecast.run import RunResult, Scene, run_forward
from libs.forecast.table import Forecast
from libs.policy import Policy

COVERED_OF_CLASS: Final = 0.94  # one class has fewer waits to learn from and drifts more than all together
RUNS: Final = 4  # each costs about 0.2 ms a queued job; eight would lower the error by no more than a fiftieth


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What the ledger has learnt: durations by tier, and first starts beside what was shown."""

    paces: Mapping[str, Pace]
    waits: tuple[Wait, ...] = ()


def make_forecast(
    scene: Scene, past: Past, policy: Policy, *, runs: int = RUNS, give_way: Callable[[], None] = lambda: None
) -> Forecast:
    """Run it forward several times; what is to be shown of it."""
    tiers = durations_of(past.paces, policy)
    coming = lately(past.waits, scene.waiting, now_ms=scene.now_ms)
    courses = [
        run_forward(
            scene,
            Durations(tiers, number),
            policy,
            guests=coming.deal(number, from_ms=scene.now_ms),
            give_way=give_way,
        )
        for number in range(runs)
    ]
    starts = _starts(scene, courses)
    return Forecast(
        policy=policy,
        made_ms=scene.now_ms,
        learned=any(pace.holds for pace in past.paces.values()) and not _is_beyond_the_past(scene, tiers),
        averages={tier: seen.average_s for tier, seen in tiers.items()},
        queued=Counter(row.tier for row in scene.waiting),
        starts=starts,
        lines=lines_of(scene, courses, starts),
        paused=frozenset(pause.scope for pause in scene.standing.pauses),
        spread=spread_of(past.waits, policy),
        spreads=spreads_of(past.waits, policy),
    )


def _is_beyond_the_past(scene: Scene, tiers: Mapping[str, Observed]) -> bool:
    """Every slot is held, each by a job that has outlasted all that were seen: nothing tells when one comes free."""
    running = scene.running
    slots = sum(pool.slots for pool in scene.pools)
    return 0 < slots <= len(running) and all(tiers[row.tier].is_outlasted(scene.age_s(row)) for row in running)


def durations_of(paces: Mapping[str, Pace], policy: Policy) -> dict[str, Observed]:
    """By tier; of one without a measurement the first guess."""
    known = {tier: observed(pace.average_s, pace.holds) for tier, pace in paces.items()}
    return {tier: observed(average_s, ()) for tier, average_s in first_averages(policy).items()} | known


def spread_of(waits: Iterable[Wait], policy: Policy, *, covered: float = COVERED) -> Spread:
    """From the estimates that were shown, and what came."""
    pairs = [Pair(wait.estimate.estimate_seconds, wait.wait_s) for wait in waits if wait.estimate is not None]
    turn_s = fmean(abs(pair.real_s - pair.shown_s) for pair in pairs) if pairs else 0.0
    return learn(pairs, turn_s=max(1.0, turn_s), fixed=policy.forecast.spread, covered=covered)


def spreads_of(waits: Iterable[Wait], policy: Policy) -> dict[int, Spread]:
    """By class, of those that enough is known of: who comes later passes a low class, and nobody passes a high one."""
    by_class: defaultdict[int, list[Wait]] = defaultdict(list)
    for wait in waits:
        if wait.estimate is not None:
            by_class[wait.shown_in.class_number].append(wait)
    enough = {number: known for number, known in by_class.items() if len(known) >= FIRST}
    return {number: spread_of(known, policy, covered=COVERED_OF_CLASS) for number, known in enough.items()}


def _starts(scene: Scene, courses: Iterable[RunResult]) -> dict[str, int | None]:
    """Null for a job that some run never starts: then it hangs on something that no run knows."""
    started = [course.starts for course in courses]
    found = {row.id: [starts[row.id] for starts in started if row.id in starts] for row in scene.waiting}
    return {
        job: round(fmean(starts)) - scene.now_ms if len(starts) == len(started) else None
        for job, starts in found.items()
    }

"""Waits under another policy: what was recorded, what today's policy gives in the simulation, and what another would.

The middle one tells how far the simulation is to be believed: it should come near what was recorded. Pure.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headgate_contracts.shown import Waits
from headgate_contracts.vocabulary import Priority, Tier
from libs.forecast.analytics import waits_by_kind
from libs.forecast.durations import Durations, observed
from libs.forecast.lives import RecordedPast
from libs.forecast.making import durations_of
from libs.forecast.recorded import Recorder
from libs.forecast.replay import Replay, Started
from libs.policy import Policy

RECORDED, TODAY, OTHER = "recorded", "today", "other"
SOURCES: Final = (RECORDED, TODAY, OTHER)


@dataclass(frozen=True, slots=True)
class ComparedKind:
    """One line of the comparison. A source is missing where it started nothing of the kind."""

    priority: Priority
    tier: Tier
    waits: Mapping[str, Waits]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What came of it. `refused`: jobs that would not have been taken in."""

    jobs: int
    kinds: tuple[ComparedKind, ...]
    refused: Mapping[str, int]
    deferred: Mapping[str, int]


def compare(
    recorder: Recorder,
    *,
    today: Policy,
    other: Policy,
    since_ms: int = 0,
    told: Callable[[str, int], None] = lambda source, started: None,
) -> Comparison:
    """Replay what was recorded twice, and put the three beside each other. `told` hears how far it is."""
    guess = Durations(durations_of({}, today))
    deal = dealt_from(recorder.history(guess, since_ms=since_ms), today)
    history = recorder.history(deal, since_ms=since_ms)
    replayed = {
        source: Replay(history, policy, holds=deal).run(lambda started, source=source: told(source, started))
        for source, policy in ((TODAY, today), (OTHER, other))
    }
    starts: dict[str, Iterable[Started]] = {RECORDED: recorder.starts()}
    starts |= {source: each.starts for source, each in replayed.items()}
    return Comparison(
        jobs=len(history.lives),
        kinds=_kinds({source: [start for start in each if start.at_ms >= since_ms] for source, each in starts.items()}),
        refused={source: len(each.refused) for source, each in replayed.items()},
        deferred={source: len(each.deferred) for source, each in replayed.items()},
    )


def dealt_from(history: RecordedPast, policy: Policy) -> Durations:
    """Stays for those that were never seen to start: as long as the others of their tier stayed."""
    stays: defaultdict[str, list[float]] = defaultdict(list)
    for life in history.lives:
        stays[life.tier] += (stay.hold_s for stay in life.stays)
    guesses = durations_of({}, policy)
    return Durations({tier: observed(guess.average_s, stays[tier]) for tier, guess in guesses.items()})


def _kinds(starts: Mapping[str, Sequence[Started]]) -> tuple[ComparedKind, ...]:
    found: defaultdict[tuple[Priority, Tier], dict[str, Waits]] = defaultdict(dict)
    for source, each in starts.items():
        for waits in waits_by_kind((start.priority, start.tier, start.wait_s) for start in each):
            found[waits.priority, waits.tier][source] = waits
    order = [(priority, tier) for priority in Priority for tier in Tier if (priority, tier) in found]
    return tuple(ComparedKind(priority, tier, found[priority, tier]) for priority, tier in order)

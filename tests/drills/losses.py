"""What a loss cost, from what was seen meanwhile: pure, of moments in seconds of one clock.

Owns the figures and the verdict. Refuses to know how a node is killed or how anything is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

ENDS: Final = frozenset({"ready", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class NodeLoss:
    """One node: what it had, when it went, when it was started again, and how long it was watched."""

    name: str
    parts: str
    killed_at: float
    back_at: float
    until: float


@dataclass(frozen=True, slots=True)
class Submitted:
    """A submission that was accepted."""

    job_id: str
    asked_at: float
    answered_at: float


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of the log, as a job's history has it."""

    seq: int
    job_id: str
    event: str
    at: float


@dataclass(slots=True)
class Seen:
    """All that was seen from outside."""

    submitted: list[Submitted] = field(default_factory=list)
    history: list[Happened] = field(default_factory=list)
    arrived: dict[int, float] = field(default_factory=dict)  # at a stream, by sequence


@dataclass(frozen=True, slots=True)
class Cost:
    """In seconds, the longest of each."""

    answer: float  # of a submission
    pause: float  # between one start and the next
    again: float  # from the kill until a job that was given back has started again
    given_back: int
    late: float  # from an event to its arrival at a stream


def cost_of(loss: NodeLoss, seen: Seen) -> Cost:
    within = [each for each in seen.history if loss.killed_at <= each.at < loss.until]
    starts = sorted(each.at for each in within if each.event == "started")
    lost = {each.job_id: each.at for each in within if each.event == "given_back"}
    again = [_next_start(job, at, within) - loss.killed_at for job, at in lost.items()]
    return Cost(
        answer=_most(
            each.answered_at - each.asked_at for each in seen.submitted if loss.killed_at <= each.asked_at < loss.until
        ),
        pause=_most(later - former for former, later in pairwise([loss.killed_at, *starts])),
        again=_most(again),
        given_back=len(lost),
        late=_most(seen.arrived[each.seq] - each.at for each in within if each.seq in seen.arrived),
    )


def faults(seen: Seen) -> list[str]:
    """What was accepted and is lost, done twice, or seen by nobody."""
    ends: dict[str, list[Happened]] = {each.job_id: [] for each in seen.submitted}
    for each in seen.history:
        if each.event in ENDS:
            ends.setdefault(each.job_id, []).append(each)
    accepted = {each.job_id for each in seen.submitted}
    found = [f"{job} was accepted of nobody" for job in ends if job not in accepted]
    found += [f"{job} has ended {len(its)} times" for job, its in ends.items() if len(its) != 1]
    found += [f"{it.job_id} is {it.event}" for its in ends.values() for it in its if it.event != "ready"]
    return found + [f"{each.job_id}: no stream told {each.event}" for each in _untold(seen)]


def table(costs: Mapping[NodeLoss, Cost]) -> str:
    heads = ("killed", "a submission", "no start for", "jobs given back", "they run again after", "a stream late by")
    rows = [
        (loss.parts, f"{it.answer:.1f}", f"{it.pause:.1f}", str(it.given_back), _shown(it), f"{it.late:.1f}")
        for loss, it in costs.items()
    ]
    return "\n".join(_row(each) for each in (heads, ["---"] * len(heads), *rows))


def _untold(seen: Seen) -> list[Happened]:
    return [each for each in seen.history if each.event in ENDS and each.seq not in seen.arrived]


def _next_start(job: str, after: float, within: Iterable[Happened]) -> float:
    return min(
        (each.at for each in within if each.job_id == job and each.event == "started" and each.at > after),
        default=after,
    )


def _most(values: Iterable[float]) -> float:
    return max(values, default=0.0)


def _shown(cost: Cost) -> str:
    return f"{cost.again:.1f}" if cost.given_back else "–"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"

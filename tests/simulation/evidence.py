"""All that the judge is shown: the plan, the log, what clients were told, what stages did, and what the view held last.

Owns what follows from the plan alone: from when to when a worker was apart, and when nothing was wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from headgate_contracts import Event, Tier
from headgate_contracts.envelope import utc
from headgate_contracts.events import (
    JobData,
    JobScheduled,
    JobStarted,
    LimitSet,
    LimitUnset,
    PolicyReloaded,
    QueuePaused,
    QueueResumed,
)
from libs.eventlog.lines import Line
from libs.policy import Policy
from libs.policy.reloading import reloaded
from tests.simulation.clients import Answers
from tests.simulation.deeds import Deeds
from tests.simulation.indexes import IndexContent
from tests.simulation.plan import WAITS_S, Fault, Plan
from tests.simulation.readers import Heard
from tests.simulation.receivers import Called

ENDS: Final = frozenset({"ready", "failed", "cancelled"})
SILENCING: Final = frozenset({"pause", "halt", "cut", "mute", "lossy", "late", "slow"})
ENDED_WITHIN_S: Final = 1.0  # a process whose lease is over
NEXT_BEAT_S: Final = 6.0  # of a worker that is back
OBEYS_S: Final = 5.0  # from when it is heard again until it has stopped what is another's
LEASE_SAFE_S: Final = 20.0  # without a word nothing of a worker is given away for so long
HEALTHY_AFTER_S: Final = 60.0  # a lease and 30 s
STARTED_WITHIN_S: Final = 10.0

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that must not be."""

    invariant: str
    about: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant}, {self.about}: {self.what}"


@dataclass(slots=True, kw_only=True)
class Evidence:
    """Of one run."""

    plan: Plan
    policy: Policy
    start_ms: int
    records: Sequence[Any]
    answers: Answers
    deeds: Deeds
    heard: Sequence[Heard]  # by readers of streams
    lines: Sequence[Line]
    called: Sequence[Called] | None  # receivers of webhooks; null: nobody calls
    acked: Mapping[int, float]  # record → when its call was over
    view: Any  # what the view's store holds at the end; null: nothing
    view_was_lost: bool
    begun_s: Sequence[float]  # when a view was made anew
    index: IndexContent | None  # null: nobody has one
    titles: Mapping[str, str]  # job → what its client calls it
    overwritten: Sequence[str]  # names under which other work was stored a second time
    unforeseen: Sequence[str]
    ended_s: float
    drained: bool
    datas: list[JobData] = field(init=False, default_factory=list)
    last: dict[str, JobData] = field(init=False, default_factory=dict)
    first_at: dict[str, datetime] = field(init=False, default_factory=dict)
    workers: dict[str, str] = field(init=False, default_factory=dict)  # attempt → the machine that claimed it
    began: dict[str, float] = field(init=False, default_factory=dict)  # attempt → when its process did
    policies: list[Policy] = field(init=False, default_factory=list)  # each that was in force
    rebuilt_s: list[float] = field(init=False, default_factory=list)  # when one had the view made anew

    def __post_init__(self) -> None:
        self.began = {f"{each.job}:{each.attempt}": each.began for each in self.deeds.executions}
        self.policies.append(self.policy)
        for record in self.records:
            data = record.event.data if isinstance(record.event, Event) else None
            if isinstance(data, JobData):
                self.datas.append(data)
                self.last[data.job_id] = data
                self.first_at.setdefault(data.job_id, record.at)
            if isinstance(data, PolicyReloaded):
                self._reload(data, self.at_s(record.at))
            if isinstance(data, JobStarted):
                self.workers[f"{data.job_id}:{data.attempt}"] = data.worker.rpartition("-")[0]

    def _reload(self, act: PolicyReloaded, at_s: float) -> None:
        self.policies.append(reloaded(self.policy, act.sections))
        before, after = ([each.tier_limits(tier).boost for tier in Tier] for each in self.policies[-2:])
        if before != after:
            self.rebuilt_s += [begun_s for begun_s in self.begun_s if begun_s >= at_s][:1]

    @property
    def now(self) -> datetime:
        return utc(self.start_ms + round(self.ended_s * 1000))

    def at_s(self, moment: datetime) -> float:
        return moment.timestamp() - self.start_ms / 1000

    def apart(self, holder: str) -> list[Span]:
        """When the worker of this attempt may have gone on with what was given away. Who reaches no scheduler cannot
        know whether anybody does, and goes on. Who is silent for another reason ends with its lease: at the latest one
        that it counts from its claim, as no heartbeat was answered since. An outage for everybody is no reason alone:
        leases are longer by it on both sides."""
        worker = self.workers.get(holder)
        if worker is None:
            return []
        silent = [fault for fault in self.plan.faults if fault.kind in SILENCING and fault.who in ("*", worker)]
        spans = list[Span]()
        for began_s, ended_s in merged(map(span_of, silent)):
            within = [fault for fault in silent if began_s <= fault.at_s <= ended_s]
            until_s = ended_s if any(map(cuts_off, within)) else min(ended_s, self._longest_s(holder))
            if not all(map(is_outage, within)) and ended_s - began_s > LEASE_SAFE_S and began_s < until_s:
                spans.append((began_s, until_s))
        return spans

    def _longest_s(self, holder: str) -> float:
        began_s = self.began.get(holder)
        return math.inf if began_s is None else began_s + self.policy.leases.job_s + ENDED_WITHIN_S

    def is_healthy(self, began_s: float, ended_s: float) -> bool:
        """Whether nothing was wrong between these moments, and for long enough before."""
        if began_s < STARTED_WITHIN_S:
            return False
        disturbed = [*map(span_of, self.plan.faults_of_jobs), *((at_s, at_s) for at_s in self.rebuilt_s)]
        return not any(began < ended_s and began_s < ended + HEALTHY_AFTER_S for began, ended in disturbed)


@dataclass(slots=True)
class Standing:
    """What operators have ordered, record by record."""

    paused: set[str] = field(default_factory=set)
    limits: dict[str, int] = field(default_factory=dict)
    lowest: dict[str, int] = field(default_factory=dict)  # that each group was ever set to

    def hear(self, record: Any) -> None:
        match record.event.data if isinstance(record.event, Event) else None:
            case QueuePaused(scope=scope):
                self.paused.add(scope)
            case QueueResumed(scope=scope):
                self.paused.discard(scope)
            case LimitSet(group=group, limit=limit):
                self.limits[group] = limit
                self.lowest[group] = min(limit, self.lowest.get(group, limit))
            case LimitUnset(group=group):
                self.limits.pop(group, None)
            case _:
                pass


def span_of(fault: Fault) -> Span:
    """From its beginning until nothing of it is left. A roll takes its time, whatever it says."""
    match fault.kind:
        case "roll" | "drain":
            lasts_s = max(fault.for_s, 20.0)
        case "halt" | "fall":
            lasts_s = WAITS_S + fault.for_s
        case "held":
            lasts_s = WAITS_S + fault.for_s + fault.share
        case _:
            lasts_s = fault.for_s
    return fault.at_s, fault.at_s + lasts_s


def is_outage(fault: Fault) -> bool:
    """For everybody alike."""
    return fault.kind == "cut" and fault.who == "*"


def lost_view_s(fault: Fault) -> float | None:
    """When what stood in the view alone was gone; null for a fault that leaves it there."""
    match fault.kind:
        case "flush":
            return fault.at_s
        case "older":
            return fault.at_s + fault.for_s
        case _:
            return None


def merged(spans: Iterable[Span]) -> list[Span]:
    """Those between which no heartbeat need have come through are one."""
    found: list[Span] = []
    for began, ended in sorted(spans):
        if found and began <= found[-1][1] + NEXT_BEAT_S:
            found[-1] = found[-1][0], max(found[-1][1], ended)
        else:
            found.append((began, ended))
    return [(began, ended + OBEYS_S) for began, ended in found]


def without(span: Span, holes: Iterable[Span]) -> Iterator[Span]:
    """What of the span is outside of all of them."""
    began, ended = span
    for hole_began, hole_ended in holes:
        if began < min(hole_began, ended):
            yield began, min(hole_began, ended)
        began = max(began, hole_ended)
    if began < ended:
        yield began, ended


def waiting_for_a_day(datas: Iterable[JobData], *, now: datetime) -> frozenset[str]:
    """Jobs that wait for a later day, and phases behind them."""
    last: dict[str, JobData] = {}
    due: dict[str, datetime] = {}
    for data in datas:
        last[data.job_id] = data
        if isinstance(data, JobScheduled):
            due[data.job_id] = data.scheduled_for
    scheduled = {job for job, at in due.items() if at > now and last[job].status.value == "scheduled"}
    behind = {job for job, data in last.items() if data.status.value == "waiting" and _first_phase(job) in scheduled}
    return frozenset(scheduled | behind)


def _first_phase(job: str) -> str:
    return f"{job.rpartition('-')[0]}-1"


def cuts_off(fault: Fault) -> bool:
    """Whether a worker then knows that it reaches nobody."""
    return fault.kind == "cut" and fault.server in ("*", "commands")

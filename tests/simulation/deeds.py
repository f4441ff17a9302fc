"""What an observer on the machines would have seen: who ran when, who was inside a slot, and who waited for one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tests.fixtures.audit import Execution


@dataclass(slots=True)
class Holding:
    """A stage was inside these slots, or an application: then `job` is its lease."""

    job: str
    attempt: int
    names: tuple[str, ...]  # as the stage calls them; a provider as `llm:<name>`
    began_s: float
    ended_s: float | None = None
    outlives_view: bool = False  # a user's: the log names its group, which is shut after a loss until its end is over


@dataclass(slots=True)
class Wait:
    """A stage or an application wanted slots, until it was let in, went, or died."""

    job: str
    attempt: int
    names: tuple[str, ...]
    began_s: float
    until_s: float = math.inf  # how long it would wait
    ended_s: float | None = None
    haunts_until_s: float | None = None  # it died: up to then the slots may still be given to it


@dataclass(frozen=True, slots=True)
class TryRun:
    """A stage was run, and told how often it has failed by something passing."""

    job: str
    attempt: int
    iteration: int
    stage: str
    tries: int
    at_s: float


@dataclass(frozen=True, slots=True)
class AnswerHeard:
    """A stage was told this, when it asked by this key."""

    job: str
    attempt: int
    key: str
    answer: str


@dataclass(frozen=True, slots=True)
class Stop:
    """A process was told to stop by its machine, and did."""

    instance: str  # as a worker calls itself: its machine and the moment of its beginning
    told_s: float
    ended_s: float


@dataclass(slots=True)
class Deeds:
    """What stages and applications really did."""

    executions: list[Execution] = field(default_factory=list)
    holdings: list[Holding] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    tries: list[TryRun] = field(default_factory=list)
    answers: list[AnswerHeard] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    unread: list[tuple[int, str, str]] = field(default_factory=list)  # record, job, and the work that it names in vain
    given_up: dict[str, float] = field(default_factory=dict[str, float])  # lease → when the view was told
    held_again: list[tuple[str, float, float]] = field(default_factory=list)  # a stage's lease: given up, held again
    shut: set[str] = field(default_factory=set)  # jobs whose provider has had enough of them, once each

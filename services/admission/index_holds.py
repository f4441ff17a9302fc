"""What has held jobs, and when, in the index: pauses, and groups that had no slot left. Beside `index`, in its file.

    pauses       each of a scope, from its act to the one that ends it
    holders      which jobs have a slot of which group now, from `dispatched` to the event that gives it back
    full_groups  from when to when as many had one as the group has

How many a group has is what the newest start was counted with: its link of the chain says so, or the start itself. What
may have changed that number ends the span, and the next start says what it is since; so nothing is told for full that
was not, and some that was is not told. A project's number is that of the tier that a job was submitted with.
Slots that are held outside jobs are in no record, so a group that has those is told only where jobs alone fill it.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate_contracts import Event, Job
from headgate_contracts.events import (
    GroupLeased,
    JobData,
    JobDispatched,
    LimitSet,
    LimitUnset,
    PolicyReloaded,
    QueuePaused,
    QueueResumed,
    SchedulerCommitted,
)
from libs.capacity.projection import epoch_ms
from libs.capacity.rows import Pause
from libs.eventlog import Record
from libs.forecast.waited import BRIEF_MS, FullSpan, HoldSpans, PausedSpan

TABLES: Final = """
CREATE TABLE pauses(scope TEXT, began INTEGER, ended INTEGER, by TEXT, reason TEXT, last INTEGER,
                    PRIMARY KEY(scope, began)) WITHOUT ROWID;
CREATE TABLE holders(name TEXT, seq INTEGER, link INTEGER, tier TEXT, PRIMARY KEY(name, seq)) WITHOUT ROWID;
CREATE TABLE full_groups(name TEXT, began INTEGER, ended INTEGER, most INTEGER, tier TEXT, last INTEGER,
                         PRIMARY KEY(name, began)) WITHOUT ROWID;
"""
MOST_SPANS: Final = 1000  # of one group or scope that a job is told of
PAUSES_OF: Final = (
    "SELECT scope, by, reason, began, ended FROM pauses"
    " WHERE scope = ? AND began < ? AND (ended IS NULL OR ended > ?) ORDER BY began LIMIT ?"
)
FULL_OF: Final = (  # those of one group do not overlap: the last that began before is the first that may reach in
    "SELECT name, most, tier, began, ended FROM full_groups WHERE name = ?1 AND began < ?2 AND began >="
    " coalesce((SELECT max(began) FROM full_groups WHERE name = ?1 AND began <= ?3), 0) ORDER BY began LIMIT ?4"
)
NEWEST: Final = "SELECT began, ended, most, tier FROM full_groups WHERE name = ? ORDER BY began DESC LIMIT 1"
COUNT: Final = "SELECT count(*) FROM holders WHERE name = ?"
FULL_NOW: Final = "SELECT name FROM full_groups WHERE ended IS NULL"
OTHER_TIER: Final = "SELECT 1 FROM holders WHERE name = ? AND link = ? AND tier <> ?"


def fold_hold(db: sqlite3.Connection, record: Record, before: Job | None, job: Job | None) -> None:
    """What this record changes. `before`, `job`: the job before and after it, where it is of one that is known."""
    fold = _HoldFold(db, epoch_ms(record.at), record.seq)
    match record.event:
        case Event(data=JobData() as data):
            if job is not None:
                fold.of_job(data, before, job)
        case Event(data=SchedulerCommitted() as link):
            fold.remember(link)
        case Event(data=act):
            fold.act(act)
        case _:
            pass


def forget_holds(db: sqlite3.Connection, first_seq: int) -> None:
    """What was over before this record."""
    for table in ("pauses", "full_groups"):
        db.execute(f"DELETE FROM {table} WHERE ended IS NOT NULL AND last < ?", (first_seq,))  # noqa: S608 - two names


def holds_in(
    db: sqlite3.Connection, scopes: Iterable[str], groups: Iterable[str], *, since_ms: int, until_ms: int
) -> HoldSpans:
    """What held such jobs between these moments."""
    asked = (until_ms, since_ms, MOST_SPANS)
    pauses = [row for scope in scopes for row in db.execute(PAUSES_OF, (scope, *asked)).fetchall()]
    full = [row for group in groups for row in db.execute(FULL_OF, (group, *asked)).fetchall()]
    return HoldSpans(tuple(map(_paused, pauses)), tuple(map(_full, full)))


@dataclass(frozen=True, slots=True)
class _Newest:
    """The last span in which a group was full; no end: it is."""

    began: int
    ended: int | None
    most: int
    tier: str | None


@dataclass(frozen=True, slots=True)
class _HoldFold:
    """One record, as it is folded."""

    db: sqlite3.Connection
    at_ms: int
    seq: int

    def of_job(self, data: JobData, before: Job | None, job: Job) -> None:
        if isinstance(data, JobDispatched):
            self._take(data, job)
        elif before is None:
            self._begin(job)
        elif before.status.is_running and not job.status.is_running:
            self._give_back(before)

    def act(self, act: object) -> None:
        match act:
            case QueuePaused(scope=scope, by=by, reason=reason):
                self._resume(scope)
                row = (scope, self.at_ms, by, reason, self.seq)
                self.db.execute("INSERT OR REPLACE INTO pauses VALUES(?,?,NULL,?,?,?)", row)
            case QueueResumed(scope=scope):
                self._resume(scope)
            case LimitSet(group=group, limit=limit):
                self._limit(group, limit, None)
            case LimitUnset(group=group) | GroupLeased(group=group, limit=int()):
                self._forget_limit(group)
            case PolicyReloaded():
                for (group,) in self.db.execute(FULL_NOW).fetchall():
                    self._forget_limit(group)
            case _:
                pass

    def remember(self, link: SchedulerCommitted) -> None:
        limits = {**link.limits, **{f"pool:{pool}": slots for pool, slots in link.slots.items()}}
        self.db.execute("INSERT OR REPLACE INTO meta VALUES('link', ?)", (json.dumps([self.seq, limits]),))

    def _take(self, data: JobDispatched, job: Job) -> None:
        """A link has one number for a project, of whatever tiers its jobs are: then it is that of none."""
        link, limits = self._counted_with(data)
        asked_tier = job.submission.tier.value
        for group in (*data.groups, f"pool:{data.pool}"):
            kind = group.partition(":")[0]
            self.db.execute("INSERT OR REPLACE INTO holders VALUES(?,?,?,?)", (group, job.first_seq, link, asked_tier))
            is_mixed = kind == "project" and self.db.execute(OTHER_TIER, (group, link, asked_tier)).fetchone()
            if is_mixed or group not in limits:
                self._forget_limit(group)
            else:
                self._limit(group, limits[group], {"user": data.tier.value, "project": asked_tier}.get(kind))

    def _counted_with(self, data: JobDispatched) -> tuple[int, Mapping[str, int]]:
        """The record that says how many slots each of its groups had, and what it says; a start that is alone is its
        own."""
        if data.alone is not None:
            limits = dict(zip(data.groups, data.alone.limits, strict=False))
            return self.seq, limits | {f"pool:{data.pool}": data.alone.slots}
        row = self.db.execute("SELECT value FROM meta WHERE name = 'link'").fetchone()
        return (0, {}) if row is None else tuple(json.loads(row[0]))

    def _give_back(self, job: Job) -> None:
        for group in (*job.groups, f"pool:{job.submission.pool}"):
            self.db.execute("DELETE FROM holders WHERE name = ? AND seq = ?", (group, job.first_seq))
            newest = self._newest(group)
            if newest is not None and newest.ended is None:
                self._limit(group, newest.most, newest.tier)

    def _begin(self, job: Job) -> None:
        """A new job brings its user's tier, and limits of groups."""
        own = self._newest(f"user:{job.user_id}")
        if own is not None and own.tier not in (None, job.submission.tier.value):
            self._forget_limit(f"user:{job.user_id}")
        for group in job.submission.groups:
            newest = None if group.limit is None else self._newest(group.name)
            if newest is not None and newest.most != group.limit:
                self._forget_limit(group.name)

    def _limit(self, group: str, most: int, tier: str | None) -> None:
        """The group has so many slots: it is full from now on, or not."""
        [(held,)] = self.db.execute(COUNT, (group,)).fetchall()
        newest = self._newest(group)
        same = newest if newest is not None and (newest.most, newest.tier) == (most, tier) else None
        if held < most or same is None:
            self._forget_limit(group)
        if held < most or (same is not None and same.ended is None):
            return
        if same is not None and self.at_ms - (same.ended or 0) < BRIEF_MS:
            self.db.execute("UPDATE full_groups SET ended = NULL WHERE name = ? AND began = ?", (group, same.began))
        else:
            row = (group, self.at_ms, most, tier, self.seq)
            self.db.execute("INSERT OR REPLACE INTO full_groups VALUES(?,?,NULL,?,?,?)", row)

    def _forget_limit(self, group: str) -> None:
        """Nothing says that it is full from here on."""
        ended = (self.at_ms, self.seq, group)
        self.db.execute("UPDATE full_groups SET ended = ?, last = ? WHERE name = ? AND ended IS NULL", ended)

    def _newest(self, group: str) -> _Newest | None:
        row = self.db.execute(NEWEST, (group,)).fetchone()
        return None if row is None else _Newest(*row)

    def _resume(self, scope: str) -> None:
        ended = (self.at_ms, self.seq, scope)
        self.db.execute("UPDATE pauses SET ended = ?, last = ? WHERE scope = ? AND ended IS NULL", ended)


def _paused(row: tuple[Any, ...]) -> PausedSpan:
    scope, by, reason, began, ended = row
    return PausedSpan(Pause(scope, by, reason, began), _end(ended))


def _full(row: tuple[Any, ...]) -> FullSpan:
    group, most, tier, began, ended = row
    return FullSpan(group, most, tier, began, _end(ended))


def _end(ended: int | None) -> float:
    return float("inf") if ended is None else ended

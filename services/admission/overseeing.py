"""What admission tells about the queue as a whole: to operators everything, to users its length and own positions.

Changes nothing. Owns what of it a user may see: no other user's name, job or project.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Final

from headgate_contracts import Event, Holder, Job
from headgate_contracts.envelope import utc
from headgate_contracts.events import ActData, JobData
from headgate_contracts.shown import (
    Analytics,
    AuditEntry,
    OwnPosition,
    QueueLine,
    Refused,
    ShownGroup,
    ShownHolder,
    ShownPause,
    ShownQueue,
    ShownWorker,
)
from libs.capacity.answers import GroupStatus, QueueEntry, SlotHolder, WorkerStatus
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.ports import ViewReadings
from libs.capacity.projection import groups_of
from libs.capacity.rows import Pause
from libs.eventlog import Record
from libs.eventlog.history import History
from libs.policy import Policy
from services.admission.reading import Reading, Seen

PAGE: Final = 500
NEAR: Final = 3  # names that may have been meant
PUBLIC: Final = ("all", "priority", "pool")  # scopes that name nobody
UNTOLD: Final = {
    "job_id",
    "user_id",
    "project_id",
    "by",
    "reason",
    "note",
    "sections",
}  # said beside the details, or no detail


@dataclass(frozen=True, slots=True)
class Near:
    """Nobody has the group; these there are that may have been meant."""

    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Overseeing:
    """The use cases, with what they need."""

    view: ViewReadings
    past: History
    reading: Reading
    policy: Policy

    async def whole_queue(self) -> ShownQueue:
        """Every job in order. A place that is reserved and has no job yet counts, and is no line."""
        entries, pauses = await asyncio.gather(self._entries(), self.view.pauses())
        jobs = await self._jobs([entry.job for entry in entries if not entry.reserved])
        passed = {entry.job: entry.passed for entry in entries}
        seen, titles = await asyncio.gather(
            self.reading.seen(jobs, owner=False), self.reading.titles.of([job.id for job in jobs])
        )
        lines = (_line(each, passed[each.job.id], titles.get(each.job.id)) for each in seen)
        return ShownQueue(
            length=len(entries),
            cap=self.policy.queue.cap,
            paused=tuple(map(shown_pause, pauses)),
            jobs=tuple(line for line in lines if line is not None),
        )

    async def queue_of(self, user: str) -> ShownQueue:
        """How long it is, and where this user's own jobs stand."""
        entries, pauses, mine = await asyncio.gather(self._entries(), self.view.pauses(), self._held_by(user))
        own = [entry.job for entry in entries if entry.job in mine]
        outlooks = await self.view.outlooks(own)
        return ShownQueue(
            length=len(entries),
            cap=self.policy.queue.cap,
            paused=tuple(shown_pause(pause) for pause in pauses if _may_be_told(pause, user)),
            own=tuple(
                OwnPosition(job_id=job_id, position=seen.position)
                for job_id, seen in zip(own, outlooks, strict=True)
                if seen is not None and seen.position is not None
            ),
        )

    async def paused(self) -> tuple[ShownPause, ...]:
        """All that is paused, as far as the view knows."""
        try:
            return tuple(map(shown_pause, await self.view.pauses()))
        except (ViewLost, ViewUnavailable):  # an act that was written in spite of that is no failure
            return ()

    async def analytics(self) -> Analytics:
        """What the leading scheduler has counted, nothing where it has not yet, and what was refused lately."""
        text, refused = await asyncio.gather(self.view.published("analytics"), self.view.refused())
        counted = Analytics.model_validate_json(text) if text else Analytics(since=None, waits=(), forecast=())
        hours = (Refused(hour=utc(hour), reason=why, count=count) for (hour, why), count in sorted(refused.items()))
        return counted.model_copy(update={"refused": tuple(hours)})

    async def groups(self) -> list[ShownGroup]:
        """Every group that has a limit of its own, a holder or somebody who waits."""
        return await self._shown(await self.view.groups())

    async def group(self, name: str) -> ShownGroup:
        return (await self._shown([name]))[0]

    async def _shown(self, groups: Sequence[str]) -> list[ShownGroup]:
        """With the titles of all holders, asked for in one question."""
        found = await asyncio.gather(*map(self.view.group, groups))
        jobs = {holder.job for status in found for holder in status.holders if holder.job is not None}
        titles = await self.reading.titles.of(sorted(jobs))
        return [shown_group(status, titles) for status in found]

    async def groups_near(self, name: str) -> Near | None:
        """Null where somebody has a group of that name: policy, an operator, a holder, or a job that waits."""
        if name.startswith("user:") and await self.view.jobs_of(name.removeprefix("user:"), count=1):
            return None
        # A last part alone (`db`) is policy's word for every project's group of it: no job takes a slot of that.
        known = {group for group in await self.view.groups() if ":" in group or group == "workflows"}
        entries = await self._entries()
        jobs = await self._jobs([entry.job for entry in entries if not entry.reserved])
        known.update(group for job in jobs for group in groups_of(job))
        return None if name in known else Near(tuple(near(name, known)))

    async def workers(self) -> list[ShownWorker]:
        return [_worker(each) for each in await self.view.workers()]

    async def acts(self, *, since: datetime | None, after: int, count: int) -> list[AuditEntry]:
        """What operators did, oldest first."""
        return list(_audited(await self.past.acts(since=since, after=after, count=count)))

    async def _entries(self) -> list[QueueEntry]:
        found = list[QueueEntry]()
        while page := await self.view.queue(offset=len(found), count=PAGE):
            found += page
            if len(page) < PAGE:
                break
        return found

    async def _jobs(self, ids: list[str]) -> list[Job]:
        texts = await asyncio.gather(*map(self.view.job, ids))
        return [Job.model_validate_json(text) for text in texts if text is not None]

    async def _held_by(self, user: str) -> set[str]:
        """Every job of the user that the view has."""
        found, before = set[str](), None
        while page := await self.view.jobs_of(user, before=before, count=PAGE):
            found |= {job_id for job_id, _ in page}
            before = page[-1][1]
        return found


def near(name: str, known: Iterable[str]) -> list[str]:
    """Those that may have been meant, the likeliest first: like it, else of its kind."""
    ordered = sorted(known)
    kind = name.partition(":")[0]
    return (
        [each for each in ordered if each.rpartition(":")[2] == name][:NEAR]
        or get_close_matches(name, ordered, n=NEAR, cutoff=0.6)
        or [each for each in ordered if each.partition(":")[0] == kind][:NEAR]
    )


def shown_pause(pause: Pause) -> ShownPause:
    return ShownPause(scope=pause.scope, by=pause.by, reason=pause.reason, since=utc(pause.since_ms))


def shown_group(status: GroupStatus, titles: Mapping[str, str]) -> ShownGroup:
    return ShownGroup(
        group=status.group,
        limit=status.limit,
        active=status.active,
        waiting=status.waiting + status.blocked,
        shut_until=utc(status.shut_until_ms) if status.shut_until_ms is not None else None,
        holders=tuple(_holder(each, titles.get(each.job or "")) for each in status.holders),
    )


def _holder(holder: SlotHolder, title: str | None) -> ShownHolder:
    return ShownHolder(
        lease=holder.name,
        user_id=holder.user if holder.job is None else None,
        job_id=holder.job,
        title=title,
        attempt=holder.attempt,
        worker=holder.worker,
        since=utc(holder.since_ms) if holder.since_ms is not None else None,
        expires_at=utc(holder.expires_ms),
    )


def _worker(status: WorkerStatus) -> ShownWorker:
    return ShownWorker(
        worker=status.worker,
        pool=status.pool,
        slots=status.slots,
        jobs=tuple(Holder.parse(holder).job for holder in status.holders),
        heard_at=utc(status.heard_ms),
        draining=status.draining,
    )


def _line(seen: Seen, passed: int, title: str | None) -> QueueLine | None:
    """Null for one that has left the queue since it was listed."""
    job, asked = seen.job, seen.job.submission
    if seen.queue is None or job.standing is None:
        return None
    return QueueLine(
        position=seen.queue.position,
        job_id=job.id,
        title=title,
        user_id=job.user_id,
        project_id=asked.project_name or job.project_id,
        tier=asked.tier,
        priority=job.priority,
        pool=asked.pool,
        pipeline=asked.pipeline,
        workflow=asked.workflow,
        queued_at=job.standing.entered_at,
        passed_by=passed,
        estimate_seconds=seen.queue.estimate_seconds,
        waiting_on=seen.waiting_on,
        labels=dict(asked.labels),
    )


def _may_be_told(pause: Pause, user: str) -> bool:
    return pause.scope.partition(":")[0] in PUBLIC or pause.scope == f"user:{user}"


def _audited(records: list[Record]) -> Iterator[AuditEntry]:
    for record in records:
        match record.event:
            case Event(data=JobData() as data):
                yield _entry(record, data.EVENT.value, data, about=data.job_id)
            case Event(data=ActData() as data):
                yield _entry(record, data.ACT.value, data, about=data.about())
            case _:
                pass


def _entry(record: Record, act: str, data: JobData | ActData, *, about: str) -> AuditEntry:
    said: dict[str, Any] = data.model_dump(mode="json", by_alias=True)
    return AuditEntry(
        seq=record.seq,
        at=record.at,
        act=act,
        by=said["by"],
        reason=said.get("note", said["reason"]),
        about=about,
        details={name: value for name, value in said.items() if name not in UNTOLD and value is not None},
    )

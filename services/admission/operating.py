"""What operators do to the queue as a whole: acts in the log, each with who did it and why.

    pause, resume   a scope; decided by the view once it has folded what the log holds, so that a resume sees the pause
                    that was answered a moment ago. While there is no view they are written without a look
    set_limit       of a group; always written, for it stands above what policy says, whatever that is now
    unset_limit     what was set; always written too, as only the log knows who has set it
    release         a lease, or a running job's own slot: the act names the holder, and the scheduler gives it back
    remove_pipeline what workers have announced: the act is written before it goes, so nothing goes without one

An act that would change nothing is not written, and its answer says so. An act is done when the log has it; its answer
comes when the view has folded it, or a little later.
"""

from dataclasses import dataclass

from headgate_contracts.events import (
    Act,
    LeaseReleased,
    LimitSet,
    LimitUnset,
    PipelineRemoved,
    QueuePaused,
    QueueResumed,
)
from libs.capacity.answers import GroupStatus, SlotHolder
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.ports import ViewReadings
from libs.capacity.rows import Pause
from libs.eventlog.ports import EventLog
from libs.runtime.clock import Clock
from services.admission.acts import Acts
from services.admission.keeping_up import has_folded
from services.admission.pipelines import Pipelines
from services.admission.ports import Ids


@dataclass(frozen=True, slots=True)
class Done:
    """The act is in the log. `in_force`: the view has folded it."""

    in_force: bool


@dataclass(frozen=True, slots=True)
class AlreadyPaused:
    """The scope is paused, by this."""

    pause: Pause


@dataclass(frozen=True, slots=True)
class NotPaused:
    """The scope is not paused."""


@dataclass(frozen=True, slots=True)
class ForcedFree:
    """A lease outside any job ends by the act; a running job's slot, its own or its stage's, with its attempt."""

    holder: SlotHolder


@dataclass(frozen=True, slots=True)
class NoSuchLease:
    """Nobody of that name holds a slot of the group."""

    status: GroupStatus


@dataclass(frozen=True, slots=True)
class NotAnnounced:
    """Nobody has announced that pipeline; those are there."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operating:
    """The use cases, with what they need."""

    view: ViewReadings
    log: EventLog
    clock: Clock
    ids: Ids

    async def pause(self, scope: str, *, by: str, reason: str) -> Done | AlreadyPaused:
        """Let nothing of the scope start."""
        pause = next((each for each in await self._pauses() or () if each.scope == scope), None)
        if pause is not None:
            return AlreadyPaused(pause)
        return await self._write(QueuePaused(by=by, reason=reason, scope=scope))

    async def resume(self, scope: str, *, by: str, reason: str) -> Done | NotPaused:
        """Let the scope start again."""
        pauses = await self._pauses()
        if pauses is not None and scope not in {pause.scope for pause in pauses}:
            return NotPaused()
        return await self._write(QueueResumed(by=by, reason=reason, scope=scope))

    async def set_limit(self, group: str, limit: int, *, by: str, reason: str) -> Done:
        """Give the group this many slots from now on."""
        return await self._write(LimitSet(by=by, reason=reason, group=group, limit=limit))

    async def unset_limit(self, group: str, *, by: str, reason: str) -> Done:
        """Let the group have what its jobs bring, or what policy says."""
        return await self._write(LimitUnset(by=by, reason=reason, group=group))

    async def release(self, group: str, lease: str, *, by: str, reason: str) -> ForcedFree | NoSuchLease:
        """Force a slot free."""
        status = await self.view.group(group)
        holder = next((each for each in status.holders if each.name == lease), None)
        if holder is None:
            return NoSuchLease(status)
        await self._write(LeaseReleased(by=by, reason=reason, group=group, lease=lease))
        return ForcedFree(holder)

    async def remove_pipeline(
        self, name: str, pool: str, *, pipelines: Pipelines, by: str, reason: str
    ) -> Done | NotAnnounced:
        """Let no new job of it be taken in for the pool."""
        await pipelines.refresh()
        if (pool, name) not in pipelines.book.announced:
            return NotAnnounced(tuple(pipelines.book.names(pool)))
        done = await self._write(PipelineRemoved(by=by, reason=reason, pipeline=name, pool=pool))
        await pipelines.remove(pool, name)
        return done

    async def _write(self, act: Act) -> Done:
        seq = await Acts(self.log, self.clock, self.ids).write(act)
        return Done(await has_folded(self.view, seq, clock=self.clock))

    async def _pauses(self) -> tuple[Pause, ...] | None:
        """All that is paused, by everything that the log holds now; null where the view does not know it."""
        try:
            behind = not await has_folded(self.view, (await self.log.mark()).seq, clock=self.clock)
            return None if behind else await self.view.pauses()
        except (ViewLost, ViewUnavailable):
            return None

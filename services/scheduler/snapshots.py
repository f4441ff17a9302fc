"""The fold of the log, kept now and then, so that a start reads the newest one and the records after it.

Owns when: every so many records, and each day, so that what operators ordered is kept long before the log's own age
takes it. A snapshot is a shortcut and never the truth: one that cannot be used, or cannot be kept, costs time only.
"""

import asyncio
import logging
from typing import Final

from libs.capacity.ledger import Ledger
from libs.capacity.snapshot import SnapshotUnusable, load, picture_of
from libs.eventlog.errors import LogError
from libs.eventlog.ports import EventLog, Snapshots
from libs.eventlog.values import Mark
from libs.foundation.policing import last_reload
from libs.policy import Policy, PolicyError
from libs.runtime.clock import Clock
from services.scheduler.leader import Leader

logger = logging.getLogger(__name__)

EVERY: Final = 10_000  # records: a start reads no more than these, in less than a second
FIRST_MS: Final = 600_000  # a process that never stops in peace keeps one all the same
AGAIN_MS: Final = 86_400_000  # also where nothing has changed: what is kept grows old too
LOOK_EVERY_MS: Final = 1000


async def newest_fold(snapshots: Snapshots, log: EventLog, *, epoch: str, policy: Policy) -> Ledger:
    """The log, folded as far as anybody has kept it. A reload that lies in what is folded holds, whatever the release
    or the file of who folded it made of it: this ledger does not come by its record again."""
    ledger = await _kept(snapshots, epoch=epoch, policy=policy)
    last = await last_reload(log)
    if last is not None and ledger.policy_seq < last[0].seq <= ledger.applied:
        record, act = last
        try:
            ledger.reload(act, record.seq)
        except PolicyError as error:
            logger.warning("record %s of the log is no policy that can be in force here: %s", record.seq, error)
    return ledger


async def _kept(snapshots: Snapshots, *, epoch: str, policy: Policy) -> Ledger:
    found = await snapshots.newest(epoch)
    if found is None:
        return Ledger(policy)
    mark, data = found
    try:
        return load(data, epoch=epoch, policy=policy)
    except SnapshotUnusable as reason:
        logger.warning("the snapshot at %s is passed over: %s", mark.seq, reason)
        return Ledger(policy)


class SnapshotKeeper:
    """The leader's habit of keeping the fold."""

    def __init__(self, snapshots: Snapshots, ledger: Ledger, *, epoch: str, leader: Leader, clock: Clock) -> None:
        self._snapshots = snapshots
        self._ledger = ledger
        self._epoch = epoch
        self._leader = leader
        self._clock = clock
        self._kept_at = ledger.applied
        self._again_ms = clock.monotonic_ms() + FIRST_MS

    async def keep(self) -> None:
        """Now, if anything has changed or it was long ago. The ledger is looked at in one go, between two turns of the
        cycle, and written down in a thread: heartbeats are answered meanwhile."""
        applied = self._ledger.applied
        if applied == self._kept_at and not self._is_time:
            return
        picture = picture_of(self._ledger, epoch=self._epoch)
        data = await asyncio.to_thread(picture.encode)
        try:
            await self._snapshots.put(data, mark=Mark(self._epoch, applied))
        except LogError as fault:
            logger.warning("no snapshot was kept at %s: %s", applied, fault)
        else:
            self._kept_at = applied
            self._again_ms = self._clock.monotonic_ms() + AGAIN_MS

    @property
    def _is_time(self) -> bool:
        return self._clock.monotonic_ms() >= self._again_ms

    async def run(self, stopping: asyncio.Event) -> None:
        """Look each second whether it is time."""
        while not stopping.is_set():
            if self._leader.leads and (self._is_time or self._ledger.applied - self._kept_at >= EVERY):
                await self.keep()
            await self._clock.sleep_ms(LOOK_EVERY_MS)

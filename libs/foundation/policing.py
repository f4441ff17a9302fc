"""Which policy is in force, read from the log: by every service that does not fold it.

The last reload is asked for before the service is ready, and once a second from then on, as tokens that were taken back
are. What it says is checked with what this service was started with. At the start one that cannot be is refused, with
the difference; later it is passed over, complained of, and noted in the service's health until another one holds.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from headgate_contracts import Event, OpsSubject
from headgate_contracts.events import PolicyReloaded
from headgate_contracts.vocabulary import ActName
from libs.eventlog import LogMissing, LogUnavailable, Record
from libs.eventlog.ports import EventLog
from libs.foundation.ground import LOG, Ground, S
from libs.policy import Policy, PolicyError, PolicyInForce
from libs.policy.reloading import differences, refused_here, reloaded
from libs.runtime.clock import Clock
from libs.runtime.connect import wait_for
from libs.runtime.errors import SettingsWrong
from libs.runtime.lifecycle import Health, Loop, Service

logger = logging.getLogger(__name__)

POLICY: Final = "the policy in force"  # what notes of a service's health are about
RELOADED: Final = str(OpsSubject(ActName.POLICY_RELOADED))
LOOK_EVERY_MS: Final = 1000


class PolicyFollower:
    """Brings a service's policy up to the log."""

    def __init__(self, log: EventLog, policy: PolicyInForce, clock: Clock, health: Health) -> None:
        self._log = log
        self._policy = policy
        self._clock = clock
        self._health = health
        self.seen = 0  # the newest record of a reload, in force or not: what the next one comes after
        self.last: tuple[Record, PolicyReloaded] | None = None  # the reload that is in force

    @property
    def is_current(self) -> bool:
        """Whether none was seen after the one that is in force: such a one is none that this service can take."""
        return self.seen == (0 if self.last is None else self.last[0].seq)

    @property
    def newest(self) -> tuple[Record, PolicyReloaded] | None:
        """The reload that is in force, where the log was seen to have none after it."""
        return self.last if self.is_current else None

    async def catch_up(self) -> None:
        """As the log's leader has it. Raises PolicyError where it cannot be in force here."""
        record = await self._log.last(RELOADED)
        if record is None or record.seq <= self.seen:
            return
        self.seen = record.seq
        match record.event:
            case Event(data=PolicyReloaded() as act):
                self._take(act)
                self.last = record, act
            case _:  # of a newer writer, in a shape that nobody here knows
                pass

    def _take(self, act: PolicyReloaded) -> None:
        try:
            self._policy.take(act.sections)
        except PolicyError as error:
            self._health.note(POLICY, refused_here(self.seen, error))
            raise
        self._health.note(POLICY)

    async def look(self) -> None:
        """Catch up. One that cannot be in force here is passed over."""
        try:
            await self.catch_up()
        except PolicyError as error:
            logger.warning("record %s of the log is no policy that can be in force here: %s", self.seen, error)

    async def run(self, stopping: asyncio.Event) -> None:
        """Look each second whether there is a newer one."""
        while not stopping.is_set():
            await self._clock.sleep_ms(LOOK_EVERY_MS)
            with suppress(LogUnavailable, LogMissing):
                await self.look()


async def follow_policy(service: Service, ground: Ground[S]) -> PolicyFollower:
    """From here on the service's policy is the one in force."""
    follower = PolicyFollower(ground.log, ground.policy, ground.clock, ground.health)
    try:
        await wait_for(LOG, follower.catch_up, away=(LogUnavailable,), health=ground.health, clock=ground.clock)
    except PolicyError as error:
        raise SettingsWrong(_apart(error)) from error
    if follower.last is not None:
        _say(*follower.last, file=ground.policy.file, in_force=ground.policy)
    await service.start(Loop("policy", follower.run))
    return follower


async def last_reload(log: EventLog) -> tuple[Record, PolicyReloaded] | None:
    """The newest one, in force or not; null also where it is of a newer writer."""
    record = await log.last(RELOADED)
    if record is not None and isinstance(record.event, Event) and isinstance(record.event.data, PolicyReloaded):
        return record, record.event.data
    return None


async def require_policy(ground: Ground[S]) -> None:
    """For a service that folds the log: the last reload goes together with what it was started with."""
    found = await wait_for(
        LOG, lambda: last_reload(ground.log), away=(LogUnavailable,), health=ground.health, clock=ground.clock
    )
    if found is not None:
        _say(*found, file=ground.policy.file, in_force=_together(ground.policy, found[1]))


def _together(policy: Policy, act: PolicyReloaded) -> Policy:
    try:
        return reloaded(policy, act.sections)
    except PolicyError as error:
        raise SettingsWrong(_apart(error)) from error


def _say(record: Record, act: PolicyReloaded, *, file: Policy, in_force: Policy) -> None:
    """An operator who changes a service's file and starts it again is to know why nothing else holds."""
    others = ", ".join(each.key for each in differences(file, in_force)) or "nothing"
    since = f"{record.at:%Y-%m-%d %H:%M} UTC by {act.by}"
    text = "policy: in force is the one reloaded on %s: `headgate policy show`; the file differs in: %s"
    logger.info(text, since, others)


def _apart(error: PolicyError) -> list[str]:
    return [f"{problem} (with the policy that was reloaded last: see headgate audit)" for problem in error.problems]

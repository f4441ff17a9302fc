"""Each replica knows which tokens the log says were taken back, whatever it has missed."""

from collections.abc import AsyncGenerator, Sequence
from itertools import count
from typing import Any

import pytest

from headgate_contracts import Event, Writer
from headgate_contracts.envelope import utc
from headgate_contracts.events import Act, QueuePaused, TokenRevoked
from headgate_contracts.tokens import ulid
from libs.eventlog import Entry, LogUnavailable, Record
from libs.eventlog.history import MemoryScans
from libs.eventlog.memory import MemoryLog, MemoryServer
from libs.foundation.revoking import RevocationFollower
from libs.runtime.clock import ManualClock
from libs.runtime.eventually import eventually
from libs.runtime.lifecycle import Loop
from libs.runtime.revocations import Revocations

NUMBERS = count(1)
DAY_S = 86_400


class Replica:
    """What it knows, and how it comes to know it."""

    def __init__(self, server: MemoryServer, clock: ManualClock, *, longest_s: int = DAY_S) -> None:
        self.log = MemoryLog(server, clock=clock)
        self.scans = Lagging(server)
        self.revocations = Revocations(clock=clock)
        self.follower = RevocationFollower(self.log, self.scans, self.revocations, longest_s=longest_s, clock=clock)

    def knows(self, *token_ids: str) -> bool:
        return all(each in self.revocations for each in token_ids)


class Lagging(MemoryScans):
    """A copy that has come so far; and how often it was scanned."""

    def __init__(self, server: MemoryServer) -> None:
        super().__init__(server)
        self.reached: int | None = None
        self.scanned = 0

    async def pages(self, filters: Sequence[str], *, after: int = 0, **more: Any) -> AsyncGenerator[list[Record]]:
        self.scanned += 1
        async for page in super().pages(filters, after=after, **more):
            yield [record for record in page if self.reached is None or record.seq <= self.reached]


@pytest.fixture
def server(clock: ManualClock) -> MemoryServer:
    return MemoryServer(clock, epoch="01JB00000000000000000000EP")


@pytest.fixture
def replica(server: MemoryServer, clock: ManualClock) -> Replica:
    return Replica(server, clock)


async def acted(replica: Replica, *acts: Act) -> None:
    for act in acts:
        event_id = ulid(1, next(NUMBERS).to_bytes(10, "big"))
        await replica.log.append_batch([Entry(Event(event_id, Writer.ADMISSION, utc(0), act), None)])


def revoked(token_id: str, clock: ManualClock) -> TokenRevoked:
    return TokenRevoked(by="ops", jti=token_id, until=utc(clock.now_ms() + DAY_S * 1000))


async def test_a_replica_that_starts_knows_all_that_were_taken_back(replica: Replica, clock: ManualClock) -> None:
    await acted(replica, revoked("a", clock), QueuePaused(by="ops", scope="all"), revoked("b", clock))

    await replica.follower.catch_up()

    assert replica.knows("a", "b")
    assert replica.revocations.until_ms("a") == clock.now_ms() + 86_400_000


@pytest.mark.parametrize(("longest_s", "holds_s"), [(2 * DAY_S, 2 * DAY_S), (DAY_S // 2, DAY_S)])
async def test_a_policy_that_lets_tokens_be_good_for_longer_brings_none_back(
    server: MemoryServer, clock: ManualClock, longest_s: int, holds_s: int
) -> None:
    replica = Replica(server, clock, longest_s=longest_s)
    acted_ms = clock.now_ms()
    await acted(replica, revoked("a", clock))

    await clock.advance_ms(3600_000)
    await replica.follower.catch_up()

    assert replica.revocations.until_ms("a") == acted_ms + holds_s * 1000


async def test_an_empty_log_is_soon_read(replica: Replica) -> None:
    await replica.follower.catch_up()

    assert replica.scans.scanned == 0


async def test_a_copy_that_lags_behind_its_leader_is_read_again(replica: Replica, clock: ManualClock) -> None:
    await acted(replica, revoked("a", clock), revoked("b", clock))
    replica.scans.reached = 1

    with pytest.raises(LogUnavailable):
        await replica.follower.catch_up()
    assert (replica.knows("a"), replica.knows("b")) == (True, False)

    replica.scans.reached = None
    await replica.follower.catch_up()
    assert replica.knows("b")


async def test_what_is_taken_back_later_is_known_within_a_second(replica: Replica, clock: ManualClock) -> None:
    await acted(replica, revoked("a", clock))
    await replica.follower.catch_up()
    loop = Loop("taken back", replica.follower.run)
    await loop.start()
    await eventually(lambda: clock.sleeping == 1)

    replica.log.wire.connected = False
    await clock.advance_ms(1000)
    await eventually(lambda: clock.sleeping == 1)
    replica.log.wire.connected = True
    await acted(replica, revoked("b", clock))
    await clock.advance_ms(1000)

    await eventually(lambda: replica.knows("a", "b"))
    scanned = replica.scans.scanned
    for _ in range(3):
        await eventually(lambda: clock.sleeping == 1)
        await clock.advance_ms(1000)
    assert replica.scans.scanned == scanned  # nothing new: one question of the leader, and no scan
    await loop.stop()

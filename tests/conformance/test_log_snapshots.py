"""Snapshots: what is kept of the log's folds, in memory and on JetStream."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from nats.aio.client import Client

from libs.eventlog import JetStreamSnapshots, LogMissing, Mark, Snapshots, migrate
from libs.eventlog.api import ask
from libs.eventlog.memory import MemorySnapshots
from tests.fixtures.logs import connected, new_epoch, settings

LARGE = bytes(range(256)) * 20_000  # 5 MB: five times what one message may hold


@pytest_asyncio.fixture
async def nc(nats_url: str) -> AsyncIterator[Client]:
    async with connected(nats_url) as client:
        await migrate(client, settings(snapshots_max_bytes=20_000_000), new_epoch=new_epoch())
        yield client


@pytest.fixture(params=["memory", "one"])
def snapshots(request: pytest.FixtureRequest) -> Snapshots:
    return MemorySnapshots() if request.param == "memory" else JetStreamSnapshots(request.getfixturevalue("nc"))


async def test_at_first_there_is_none(snapshots: Snapshots) -> None:
    assert await snapshots.newest("E1") is None


@pytest.mark.parametrize("data", [b"", b"a fold", LARGE], ids=["empty", "small", "large"])
async def test_a_snapshot_is_found_as_it_was_put(snapshots: Snapshots, data: bytes) -> None:
    await snapshots.put(data, mark=Mark("E1", 7))

    assert await snapshots.newest("E1") == (Mark("E1", 7), data)


async def test_the_furthest_snapshot_is_the_newest(snapshots: Snapshots) -> None:
    for seq in (10, 30, 20, 40):
        await snapshots.put(f"fold at {seq}".encode(), mark=Mark("E1", seq))

    assert await snapshots.newest("E1") == (Mark("E1", 40), b"fold at 40")


async def test_a_snapshot_put_late_does_not_hide_a_further_one(snapshots: Snapshots) -> None:
    await snapshots.put(b"far", mark=Mark("E1", 30))
    await snapshots.put(b"near", mark=Mark("E1", 10))

    assert await snapshots.newest("E1") == (Mark("E1", 30), b"far")


async def test_another_logs_snapshots_are_none_of_this_one(snapshots: Snapshots) -> None:
    await snapshots.put(b"old log", mark=Mark("E1", 1000))

    assert await snapshots.newest("E2") is None


async def test_another_logs_snapshots_go_first(snapshots: Snapshots) -> None:
    for mark in (Mark("E1", 1000), Mark("E2", 5), Mark("E2", 6)):
        await snapshots.put(str(mark).encode(), mark=mark)

    assert await snapshots.newest("E1") is None
    assert await snapshots.newest("E2") == (Mark("E2", 6), str(Mark("E2", 6)).encode())


async def test_no_more_than_two_are_kept(nc: Client) -> None:
    snapshots = JetStreamSnapshots(nc)
    for seq in range(1, 6):
        await snapshots.put(LARGE, mark=Mark("E1", seq))

    info = await ask(nc, "STREAM.INFO", stream="OBJ_SNAPSHOTS", question={})

    assert 2 * len(LARGE) < info["state"]["bytes"] < 2.1 * len(LARGE)


async def test_a_damaged_snapshot_is_passed_over(nc: Client, caplog: pytest.LogCaptureFixture) -> None:
    snapshots = JetStreamSnapshots(nc)
    for seq in (1, 2):
        await snapshots.put(LARGE, mark=Mark("E1", seq))
    last = (await ask(nc, "STREAM.INFO", stream="OBJ_SNAPSHOTS", question={}))["state"]["last_seq"]
    await ask(nc, "STREAM.MSG.DELETE", stream="OBJ_SNAPSHOTS", question={"seq": last - 1})

    assert await snapshots.newest("E1") == (Mark("E1", 1), LARGE)
    assert caplog.messages == ["the snapshot at Mark(epoch='E1', seq=2) is damaged and passed over"]


async def test_without_a_bucket_the_missing_stream_is_named(nats_url: str) -> None:
    async with connected(nats_url) as client:
        with pytest.raises(LogMissing, match="There is no stream OBJ_SNAPSHOTS"):
            await JetStreamSnapshots(client).newest("E1")

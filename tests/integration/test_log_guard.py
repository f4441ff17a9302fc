"""What a service finds when it opens the log, and the words in which it refuses."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.js import JetStreamContext

from libs.eventlog import (
    EpochDiffers,
    LogMissing,
    LogRefused,
    LogUnavailable,
    Mark,
    SettingsDiffer,
    WentBack,
    migrate,
    open_log,
    pools,
)
from libs.eventlog.api import ask, state_of
from libs.eventlog.streams import FEW_CONSUMERS, MANY_CONSUMERS, streams
from libs.local.cluster import NatsCluster
from libs.local.programs import NATS_SERVER, path_of
from libs.local.servers import NatsServer
from libs.policy import Retention
from libs.runtime.eventually import eventually
from tests.fixtures.lives import queued
from tests.fixtures.logs import connected, new_epoch, opened, settings

REMEDY = "Run `headgate migrate` for streams, change the configuration for servers, then start again."


@pytest_asyncio.fixture
async def nc(nats_url: str) -> AsyncIterator[Client]:
    async with connected(nats_url) as client:
        yield client


# ── migrating ─────────────────────────────────────────────────────────────────


async def test_migrating_makes_all_streams_once(nc: Client) -> None:
    first = await migrate(nc, settings(), new_epoch=new_epoch())
    second = await migrate(nc, settings(), new_epoch=new_epoch())

    assert first.made == (
        *("JOBS", "LOGS", "KV_INPUTS", "KV_TITLES", "KV_PIPELINES", "KV_PROGRESS"),
        *("OBJ_SNAPSHOTS", "OBJ_WORKSPACES", "OBJ_RESULTS"),
        "worker-default",
    )
    assert first.changed == second.made == second.changed == ()


async def test_several_migrate_at_once_and_make_one_log(nc: Client) -> None:
    done = await asyncio.gather(*(migrate(nc, settings(), new_epoch=new_epoch()) for _ in range(8)))

    assert [name for each in done for name in each.made].count("JOBS") == 1  # all else is made over the same
    assert (await migrate(nc, settings(), new_epoch=new_epoch())).changed == ()
    assert (await open_log(nc, settings())).epoch == (await state_of(nc, "JOBS")).epoch


async def test_the_consumer_of_a_pool_is_brought_in_line(nc: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    await migrate(nc, settings(), new_epoch=new_epoch())
    monkeypatch.setattr(pools, "ACK_WITHIN_S", 20)

    migrated = await migrate(nc, settings(), new_epoch=new_epoch())

    assert migrated.changed == ("worker-default: ack_wait is 15 s, must be 20 s",)
    found = await nc.jetstream().consumer_info("JOBS", "worker-default")
    assert found.config.ack_wait == 20


async def test_a_pool_that_is_named_gets_a_consumer_and_one_that_is_not_any_more_keeps_its_own(nc: Client) -> None:
    await migrate(nc, settings(), new_epoch=new_epoch())

    named = await migrate(nc, settings(pools=("default", "gpu")), new_epoch=new_epoch())
    left = await migrate(nc, settings(), new_epoch=new_epoch())

    assert (named.made, left.made, left.changed) == (("worker-gpu",), (), ())
    assert (await nc.jetstream().consumer_info("JOBS", "worker-gpu")).config.filter_subject is not None


async def test_no_stream_takes_consumers_without_end(nc: Client) -> None:
    await migrate(nc, settings(), new_epoch=new_epoch())

    async def one_more(number: int) -> None:
        config = {"durable_name": f"c-{number}", "ack_policy": "explicit"}
        question = {"stream_name": "OBJ_RESULTS", "config": config}
        await ask(nc, "CONSUMER.CREATE", stream=f"OBJ_RESULTS.c-{number}", question=question)

    for number in range(FEW_CONSUMERS):
        await one_more(number)
    with pytest.raises(LogUnavailable, match="maximum consumers limit reached"):
        await one_more(FEW_CONSUMERS)
    bounds = [(await state_of(nc, each.name)).config["max_consumers"] for each in streams(settings())]
    assert all(0 < bound <= MANY_CONSUMERS for bound in bounds)


async def test_a_logs_epoch_is_given_once(nc: Client) -> None:
    epoch = new_epoch()
    await migrate(nc, settings(), new_epoch=epoch)

    await migrate(nc, settings(jobs_max_bytes=1_000_000), new_epoch=new_epoch())

    assert (await open_log(nc, settings(jobs_max_bytes=1_000_000))).epoch == epoch


async def test_migrating_changes_what_differs_and_says_so(nc: Client) -> None:
    await migrate(nc, settings(), new_epoch=new_epoch())

    migrated = await migrate(nc, settings(retention=Retention(logs_days=2)), new_epoch=new_epoch())

    assert migrated.made == ()
    days = "max_age is 86400 s, must be 172800 s"
    assert migrated.changed == (f"LOGS: {days}", f"KV_PROGRESS: {days}")
    assert await open_log(nc, settings(retention=Retention(logs_days=2)))


async def test_migrating_leaves_alone_what_is_not_its_own(nc: Client) -> None:
    await migrate(nc, settings(), new_epoch=new_epoch())
    found = (await state_of(nc, "LOGS")).config
    theirs = {"description": "build output", "metadata": {"owner": "platform team"}}
    await ask(nc, "STREAM.UPDATE", stream="LOGS", question={**found, **theirs})

    await migrate(nc, settings(logs_max_bytes=1_000_000), new_epoch=new_epoch())

    config = (await state_of(nc, "LOGS")).config
    assert config["description"] == "build output"
    assert config["metadata"]["owner"] == "platform team"


async def test_the_buckets_are_buckets_for_any_client(nc: Client) -> None:
    await migrate(nc, settings(), new_epoch=new_epoch())
    js = JetStreamContext(nc)

    inputs = await js.key_value("INPUTS")
    await inputs.put("job-1", b"a URL shortener")
    workspaces = await js.object_store("WORKSPACES")
    await workspaces.put("job-1", b"a tree" * 100_000)

    assert (await inputs.get("job-1")).value == b"a URL shortener"
    assert (await workspaces.get("job-1")).data == b"a tree" * 100_000
    await inputs.purge("job-1")
    await workspaces.delete("job-1")


async def test_the_log_cannot_be_deleted_from_or_purged(nc: Client) -> None:
    await migrate(nc, settings(), new_epoch=new_epoch())
    await (await open_log(nc, settings())).append(queued("job-1"), after=None)

    with pytest.raises(LogRefused, match="message delete not permitted"):
        await ask(nc, "STREAM.MSG.DELETE", stream="JOBS", question={"seq": 1})
    with pytest.raises(LogRefused, match="stream purge not permitted"):
        await ask(nc, "STREAM.PURGE", stream="JOBS", question={})


# ── refusing ──────────────────────────────────────────────────────────────────


async def test_a_missing_log_is_refused(nc: Client) -> None:
    with pytest.raises(LogMissing) as refusal:
        await open_log(nc, settings())

    assert str(refusal.value) == "There is no stream JOBS. Run `headgate migrate`, then start again."


async def test_other_settings_are_refused_each_by_its_name(nc: Client) -> None:
    await migrate(nc, settings(), new_epoch=new_epoch())

    with pytest.raises(SettingsDiffer) as refusal:
        await open_log(nc, settings(retention=Retention(events_days=60, results_days=3), inputs_max_bytes=1_000_000))

    assert str(refusal.value) == (
        "The log is not set up as it has to be: "
        "JOBS: max_age is 7776000 s, must be 5184000 s; "
        "KV_INPUTS: max_bytes is 8388608, must be 1000000; "
        "KV_INPUTS: max_age is 7776000 s, must be 5184000 s; "
        "KV_TITLES: max_age is 7776000 s, must be 5184000 s; "
        "OBJ_SNAPSHOTS: max_age is 7776000 s, must be 5184000 s; "
        "OBJ_WORKSPACES: max_age is 7776000 s, must be 5184000 s; "
        f"OBJ_RESULTS: max_age is 604800 s, must be 259200 s. {REMEDY}"
    )


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"discard": "old"}, 'discard is "old", must be "new"'),
        ({"allow_atomic": False}, "allow_atomic is unset, must be true"),
        ({"duplicate_window": 1_000_000_000}, "duplicate_window is 1 s, must be 120 s"),
        ({"max_msgs_per_subject": 1}, "max_msgs_per_subject is 1, must be -1"),
        ({"subjects": ["headgate.jobs.v1.>"]}, 'subjects is ["headgate.jobs.v1.>"], must be ["headgate.jobs.v1.>"'),
        ({"allow_rollup_hdrs": True, "deny_purge": False}, "allow_rollup_hdrs is true, must be false"),
        ({"republish": {"src": ">", "dest": "c.>"}}, 'republish is {"src": ">", "dest": "c.>"}, must be unset'),
        ({"persist_mode": "async", "allow_atomic": False}, 'persist_mode is "async", must be unset'),
    ],
)
async def test_a_log_that_somebody_changed_is_refused(nc: Client, change: dict[str, object], difference: str) -> None:
    jobs, *_ = streams(settings())
    given = {key: value for key, value in jobs.settings.items() if value is not None} | change
    question = {**given, "name": "JOBS", "metadata": {"headgate.epoch": "E1"}}
    await ask(nc, "STREAM.CREATE", stream="JOBS", question=question)
    await _make_the_others(nc)

    with pytest.raises(SettingsDiffer) as refusal:
        await open_log(nc, settings())

    assert f"JOBS: {difference}" in str(refusal.value)


async def test_a_log_without_an_epoch_is_refused(nc: Client) -> None:
    jobs, *_ = streams(settings())
    given = {key: value for key, value in jobs.settings.items() if value is not None}
    await ask(nc, "STREAM.CREATE", stream="JOBS", question={**given, "name": "JOBS"})
    await _make_the_others(nc)

    with pytest.raises(SettingsDiffer) as refusal:
        await open_log(nc, settings())

    assert str(refusal.value) == f"The log is not set up as it has to be: JOBS: it has no epoch. {REMEDY}"


async def test_another_log_is_refused(nc: Client) -> None:
    epoch = new_epoch()
    await migrate(nc, settings(), new_epoch=epoch)

    with pytest.raises(EpochDiffers) as refusal:
        await open_log(nc, settings(), seen=Mark("01KA0000000000000000000000", 0))

    assert str(refusal.value) == (
        f"The log is another one: its epoch is {epoch}, the one seen before was 01KA0000000000000000000000. "
        "Do not go on from there: fold the new log from its beginning."
    )


async def test_a_time_to_settle_that_the_server_forgets_ids_in_is_refused(nc: Client) -> None:
    with pytest.raises(LogRefused, match="settle_within_s is 61, must be 60 or less"):
        await open_log(nc, settings(), settle_within_s=61)


async def test_a_log_that_went_back_is_refused(nats_server: NatsServer, tmp_path: Path) -> None:
    """What a power cut without sync, or an old backup, looks like."""
    async with opened(nats_server.url) as log:
        await log.append(queued("job-1"), after=None)
        await nats_server.kill()
        shutil.copytree(nats_server.folder / "jetstream", tmp_path / "old")
        await nats_server.start()
        await log.append(queued("job-2"), after=None)
        seen = await log.mark()
    await nats_server.kill()
    shutil.rmtree(nats_server.folder / "jetstream")
    shutil.copytree(tmp_path / "old", nats_server.folder / "jetstream")
    await nats_server.start()

    async with connected(nats_server.url) as client:
        with pytest.raises(WentBack) as refusal:
            await open_log(client, settings(), seen=seen)

    assert str(refusal.value) == (
        "The log went back: it ends at 1, but 2 was seen. What was acknowledged is lost, so do not go on: "
        "bring back the newer store, or begin a new epoch."
    )


async def test_a_server_that_syncs_now_and_then_is_refused(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, sync_interval="1m")
    await server.start()
    try:
        async with connected(server.url) as client:
            await migrate(client, settings(), new_epoch=new_epoch())
            with pytest.raises(SettingsDiffer) as refusal:
                await open_log(client, settings())
    finally:
        await server.kill()

    assert str(refusal.value) == (
        f"The log is not set up as it has to be: server nats: sync_interval is 60 s, must be always. {REMEDY}"
    )


class SilentServer(NatsServer):
    """A nats-server without accounts, so nobody exports what it says of itself."""

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def prepare(self) -> list[str]:
        where = ["--addr", "127.0.0.1", "--port", str(self.port), "--store_dir", str(self.folder)]
        return [str(path_of(NATS_SERVER)), "--jetstream", *where]


async def test_servers_that_do_not_say_how_they_are_set_up_are_refused(tmp_path: Path) -> None:
    server = SilentServer(tmp_path)
    await server.start()
    try:
        async with connected(server.url) as client:
            await migrate(client, settings(), new_epoch=new_epoch())
            with pytest.raises(SettingsDiffer) as refusal:
                await open_log(client, settings())
    finally:
        await server.kill()

    assert "nobody answers on headgate.servers: the servers' account must export $SYS.REQ.SERVER.PING.VARZ" in str(
        refusal.value
    )


async def _make_the_others(nc: Client) -> None:
    for stream in streams(settings())[1:]:
        given = {key: value for key, value in stream.settings.items() if value is not None}
        await ask(nc, "STREAM.CREATE", stream=stream.name, question={**given, "name": stream.name})


async def test_a_service_can_start_while_one_of_three_servers_is_away(nats_cluster: NatsCluster) -> None:
    async with opened(nats_cluster.urls, replicas=3) as log:
        epoch = log.epoch
    await nats_cluster.nodes[0].kill()

    async with connected(nats_cluster.urls) as client:

        async def starts() -> str | None:
            with suppress(LogUnavailable):  # it takes a while until the others take it for gone
                return (await open_log(client, settings(replicas=3))).epoch

        assert await eventually(starts) == epoch

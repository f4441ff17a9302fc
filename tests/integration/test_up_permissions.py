"""Each process has a user of its own, and each user is refused what is another's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import nats.errors
import pytest
import pytest_asyncio
import redis.asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoServersError
from nats.js.api import ConsumerConfig, DeliverPolicy
from redis.exceptions import AuthenticationError, NoPermissionError

from headgate_contracts import TABLE, EventName, JobSubject
from headgate_contracts.commands import LogLine, logs_subject
from headgate_contracts.vocabulary import ActName
from libs.capacity.errors import ViewMisused
from libs.capacity.rows import StandingOrders
from libs.capacity.store import RedisView
from libs.capacity.store_client import open_client
from libs.eventlog import JetStreamSnapshots, LogUnavailable, Mark, connect, migrate, open_log
from libs.eventlog.api import ask
from libs.eventlog.buckets import JetStreamInputs, JetStreamObjects
from libs.eventlog.dispatches import PoolDispatches
from libs.eventlog.history import History, JetStreamScans
from libs.eventlog.lines import JetStreamLines
from libs.eventlog.streams import RESULTS, WORKSPACES
from libs.local.nats_config import NatsUser
from libs.local.permissions import UP_USERS, VALKEY_USERS, nats_users, valkey_users
from libs.local.servers import NatsServer, ValkeyServer, ValkeyUser
from libs.runtime.clock import SystemClock
from libs.runtime.eventually import eventually
from tests.fixtures.clients import nats_client, settled
from tests.fixtures.lives import life_of, queued
from tests.fixtures.logs import CHAIN, act, caught_up, commit, new_epoch, settings

LAST = "nobody.may.say.this"
SERVICES = ("admission", "scheduler", "worker", "notifier")
WORKERS_CONSUMER = "JOBS.worker-default"
EVENTS = {
    str(JobSubject("j", "u", "p", event, "default" if event is EventName.DISPATCHED else None)): event
    for event in EventName
}

# Who else may publish there than what the table says of events. All others must be refused.
OWNERS = {
    **{f"headgate.ops.v1.{act}": {"admission"} for act in ActName},
    CHAIN: {"scheduler"},
    "headgate.sched.v1.other": set(),
    "headgate.cmd.v1.main.beat": {"worker"},
    "headgate.cmd.v1.main.acquire": {"admission", "worker"},
    "headgate.cmd.v1.main.give_up": {"admission", "worker"},
    "headgate.cmd.v1.main.position": {"notifier"},
    "headgate.cmd.v1.main.granted.l1": {"scheduler"},
    "headgate.live.v1.main.position.u.j": {"scheduler"},
    "headgate.logs.v1.j": {"worker"},
    "$KV.INPUTS.j": {"admission"},
    "$KV.PIPELINES.default.build": {"admission", "worker"},
    "$KV.PIPELINES.build": set(),
    "$O.SNAPSHOTS.M.x": {"scheduler"},
    "$O.WORKSPACES.C.x": {"worker"},
    "$O.RESULTS.M.x": {"worker"},
    "$JS.API.STREAM.MSG.GET.KV_INPUTS": {"admission", "worker"},
    "$JS.API.STREAM.MSG.GET.KV_PIPELINES": {"admission", "worker"},
    "$JS.API.STREAM.MSG.GET.OBJ_RESULTS": {"admission", "worker"},
    "$JS.API.INFO": {"consumer"},
    "$JS.API.STREAM.CREATE.JOBS": {"operator"},
    "$JS.API.STREAM.UPDATE.JOBS": {"operator"},
    "$JS.API.STREAM.DELETE.JOBS": set(),
    "$JS.API.STREAM.PURGE.JOBS": set(),
    "$JS.API.STREAM.MSG.DELETE.JOBS": set(),
    "$JS.API.CONSUMER.CREATE.JOBS": set(),  # any name may stand in the body
    "$JS.API.CONSUMER.CREATE.JOBS.follow-x": {"admission", "scheduler", "notifier", "operator", "consumer"},
    "$JS.API.CONSUMER.CREATE.LOGS.follow-x": {"admission", "notifier"},
    "$JS.API.STREAM.MSG.GET.LOGS": {"notifier"},
    "$JS.API.CONSUMER.CREATE.LOGS": set(),
    "$JS.API.STREAM.PURGE.LOGS": {"admission"},
    "$JS.API.STREAM.PURGE.KV_INPUTS": {"scheduler"},
    "$JS.API.STREAM.PURGE.OBJ_RESULTS": {"admission", "worker"},
    "$JS.API.STREAM.PURGE.OBJ_WORKSPACES": {"admission", "scheduler", "worker"},
    "$JS.API.STREAM.PURGE.OBJ_SNAPSHOTS": {"scheduler"},
    "$JS.API.CONSUMER.CREATE.JOBS.team-a.headgate.jobs.v1.>": {"consumer"},
    "$JS.API.CONSUMER.LIST.JOBS": {"operator"},
    "$JS.API.CONSUMER.DELETE.JOBS.team-a": {"admission", "scheduler", "notifier", "operator", "consumer"},
    f"$JS.API.CONSUMER.CREATE.{WORKERS_CONSUMER}": {"operator"},
    f"$JS.API.CONSUMER.INFO.{WORKERS_CONSUMER}": {"worker", "operator", "consumer"},
    f"$JS.API.CONSUMER.CREATE.{WORKERS_CONSUMER}.headgate.jobs.v1.>": set(),
    f"$JS.API.CONSUMER.DURABLE.CREATE.{WORKERS_CONSUMER}": set(),
    f"$JS.API.CONSUMER.MSG.NEXT.{WORKERS_CONSUMER}": {"worker"},
    f"$JS.API.CONSUMER.DELETE.{WORKERS_CONSUMER}": set(),
    f"$JS.ACK.{WORKERS_CONSUMER}.1.2.3.4.5": {"worker"},
    "$JS.API.CONSUMER.CREATE.JOBS.webhooks": {"notifier", "operator"},
    "$JS.API.CONSUMER.MSG.NEXT.JOBS.webhooks": {"notifier"},
    "$JS.API.CONSUMER.DELETE.JOBS.webhooks": set(),
    "$JS.ACK.JOBS.webhooks.1.2.3.4.5": {"notifier"},
    "_INBOX_scheduler.x.y": set(),
}
LISTENERS = {
    ">": set(),
    "_INBOX.>": {"consumer"},
    **{f"_INBOX_{name}.>": {name} for name in UP_USERS},
    "headgate.jobs.>": set(),
    "headgate.jobs.v1.*.*.*.cancel_requested": {"worker"},
    "headgate.jobs.v1.*.*.*.queued": set(),
    "headgate.cmd.v1.main.beat": {"scheduler"},
    "headgate.cmd.v1.main.granted.*": {"admission", "worker"},
    "headgate.logs.v1.*": set(),
    "headgate.live.v1.main.position.*.*": {"notifier"},
    "$KV.INPUTS.>": set(),
    "$JS.API.>": set(),
}


@pytest_asyncio.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[NatsServer, dict[str, NatsUser]]]:
    users = nats_users(passwords(UP_USERS), shard="main", pools=("default",))
    async with NatsServer(tmp_path_factory.mktemp("permissions"), users=list(users.values())) as running:
        client = await connect(running.url_for(users["operator"]), name="migrate")
        await migrate(client, settings(), new_epoch=new_epoch())
        await client.close()
        yield running, users


Server = tuple[NatsServer, dict[str, NatsUser]]


@pytest.mark.parametrize("name", UP_USERS)
async def test_a_user_writes_its_own_events_and_is_refused_all_others(server: Server, name: str) -> None:
    mine = {row.event for row in TABLE if row.writer.value == name}

    refused = await refusals(server, name, publishing=list(EVENTS))

    assert {EVENTS[subject] for subject in EVENTS.keys() - refused} == mine


@pytest.mark.parametrize("name", UP_USERS)
async def test_a_user_says_what_is_its_own_and_is_refused_all_else(server: Server, name: str) -> None:
    refused = await refusals(server, name, publishing=list(OWNERS))

    assert OWNERS.keys() - refused == {subject for subject, owners in OWNERS.items() if name in owners}


@pytest.mark.parametrize("name", UP_USERS)
async def test_a_user_hears_what_is_for_it_and_is_refused_all_else(server: Server, name: str) -> None:
    refused = await refusals(server, name, hearing=list(LISTENERS))

    assert LISTENERS.keys() - refused == {subject for subject, owners in LISTENERS.items() if name in owners}


@pytest.mark.parametrize("name", SERVICES)
async def test_each_service_may_open_the_log_and_read_a_job_in_it(server: Server, name: str) -> None:
    async with user(server, name) as client:
        log = await open_log(client, settings())

        assert await log.read("nobody") == []
        assert (await log.mark()).epoch == log.epoch


async def test_a_job_goes_through_with_each_service_doing_its_part(server: Server) -> None:
    events = life_of("job-whole")
    async with user(server, "admission") as a, user(server, "scheduler") as s, user(server, "worker") as w:
        writers = {"admission": a, "scheduler": s, "worker": w}
        logs = {name: await open_log(client, settings()) for name, client in writers.items()}
        dispatches = PoolDispatches(w, pool="default", clock=SystemClock())
        await dispatches.start()
        last = 0
        for event in events:
            log = logs[event.writer.value]
            last = (await log.append(event, after=last)).records[-1].seq  # type: ignore[union-attr]
        ours = {event.id for event in events}
        while (dispatch := await dispatches.next()).record.event_id not in ours:  # what other tests have published
            await dispatch.ack()
        await dispatch.ack()
        await dispatches.stop()
        await logs["admission"].append(act(), after=None)
        assert len((await caught_up(logs["scheduler"])).records) >= len(events)


async def test_a_worker_cannot_make_its_pools_consumer_another(server: Server) -> None:
    async with user(server, "worker") as worker, user(server, "operator") as operator:
        before = await ask(operator, "CONSUMER.INFO", stream=WORKERS_CONSUMER, question={})
        rewritten = {**before["config"], "ack_wait": 1_000_000_000, "max_waiting": 1}
        question = {"stream_name": "JOBS", "config": rewritten}
        with pytest.raises(LogUnavailable):
            await ask(worker, "CONSUMER.CREATE", stream=WORKERS_CONSUMER, question=question)

        assert (await ask(operator, "CONSUMER.INFO", stream=WORKERS_CONSUMER, question={}))["config"] == before[
            "config"
        ]
        await ask(
            operator, "CONSUMER.CREATE", stream=WORKERS_CONSUMER, question={**question, "config": before["config"]}
        )


async def test_bytes_go_where_they_belong(server: Server) -> None:
    async with user(server, "admission") as admission, user(server, "worker") as worker:
        await JetStreamInputs(admission).put("job-bytes", b"{}")
        workspaces, results = JetStreamObjects(worker, WORKSPACES), JetStreamObjects(worker, RESULTS)
        for bucket in (workspaces, results):
            await bucket.put("job-bytes", b"first")
            await bucket.put("job-bytes", b"second")

        assert await JetStreamInputs(worker).get("job-bytes") == b"{}"
        assert await workspaces.get("job-bytes") == b"second"
        assert await JetStreamObjects(admission, RESULTS).get("job-bytes") == b"second"


async def test_admission_reads_what_was_and_erases_a_users_content(server: Server) -> None:
    async with user(server, "admission") as admission, user(server, "worker") as worker:
        await (await open_log(admission, settings())).append(queued("job-erased", user_id="u-erased"), after=None)
        await worker.publish(logs_subject("job-erased"), b"a line")
        await settled(worker)
        inputs, lines = JetStreamInputs(admission), JetStreamLines(admission)
        await inputs.put("job-erased", b"{}")
        for bucket in (WORKSPACES, RESULTS):
            await JetStreamObjects(worker, bucket).put("job-erased", b"content")

        await inputs.delete("job-erased")
        await lines.erase("job-erased")
        for bucket in (WORKSPACES, RESULTS):
            await JetStreamObjects(admission, bucket).delete("job-erased")

        assert len(await History(JetStreamScans(admission)).first_events("u-erased", count=5)) == 1
        assert [page async for page in lines.of("job-erased")] == []
        assert await inputs.get("job-erased") is None
        assert await JetStreamObjects(worker, WORKSPACES).names("job-erased") == []


async def test_the_scheduler_keeps_its_snapshots(server: Server) -> None:
    async with user(server, "scheduler") as client:
        snapshots = JetStreamSnapshots(client)
        for seq in (1, 2, 3):
            await snapshots.put(b"fold", mark=Mark("E", seq))

        assert await snapshots.newest("E") == (Mark("E", 3), b"fold")


async def test_the_notifier_follows_the_log_as_it_grows(server: Server) -> None:
    async with user(server, "notifier") as client, user(server, "admission") as admission:
        await (await open_log(admission, settings())).append(queued("job-followed"), after=None)

        assert (await caught_up(await open_log(client, settings()))).records


async def test_the_notifier_reads_and_follows_the_lines_of_jobs(server: Server) -> None:
    line = LogLine(job_id="job-said", attempt=1, stage="code", line="a line", ts=datetime.now(UTC))
    async with user(server, "notifier") as client, user(server, "worker") as worker:
        lines = JetStreamLines(client)
        async with aclosing(lines.follow(after=await lines.end())) as follow:
            await worker.publish(logs_subject("job-said"), line.model_dump_json().encode())
            live = await anext(follow)
        read = [page async for page in lines.of("job-said")]

        assert read == [live]
        assert await lines.last("job-said") == live.seq


async def test_a_worker_is_answered_by_the_scheduler_and_by_nobody_else(server: Server) -> None:
    async with user(server, "scheduler") as scheduler, user(server, "worker") as worker:
        await scheduler.subscribe("headgate.cmd.v1.main.beat", "scheduler", cb=keep)
        await settled(scheduler)

        reply = await worker.request("headgate.cmd.v1.main.beat", b"", timeout=30)

    assert reply.data == b"kept"


async def keep(message: Msg) -> None:
    await message.respond(b"kept")


async def test_another_team_reads_with_a_durable_consumer_of_its_own(server: Server) -> None:
    running, users = server
    async with user(server, "admission") as admission:
        await (await open_log(admission, settings())).append(queued("job-teams"), after=None)
    async with nats_client(running.url_for(users["consumer"])) as client:
        pull = await client.jetstream().pull_subscribe(
            "headgate.jobs.v1.job-teams.>", durable="team-a", config=ConsumerConfig(deliver_policy=DeliverPolicy.ALL)
        )
        [message] = await pull.fetch(1, timeout=30)
        await message.ack_sync(timeout=30)

    assert message.subject.startswith("headgate.jobs.v1.job-teams.")


async def test_another_team_may_not_append_even_with_the_right_expectation(server: Server) -> None:
    running, users = server
    async with nats_client(running.url_for(users["consumer"])) as client:
        with pytest.raises(nats.errors.TimeoutError):
            await client.request(f"headgate.jobs.v1.j.u.p.{EventName.QUEUED}", b"", timeout=0.3)


@pytest.mark.parametrize("name", ["admission", "worker"])
async def test_the_chain_is_refused_to_whoever_is_no_scheduler(server: Server, name: str) -> None:
    assert await refusals(server, name, publishing=[CHAIN]) == {CHAIN}
    async with user(server, "scheduler") as client:
        log = await open_log(client, settings())
        last = await log.last(CHAIN)
        await log.append(commit(last.seq if last else 0, salt=name), after=last.seq if last else 0)


@pytest_asyncio.fixture(scope="module")
async def store(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[ValkeyServer, dict[str, ValkeyUser]]]:
    users = valkey_users(passwords(VALKEY_USERS), shard="main")
    async with ValkeyServer(tmp_path_factory.mktemp("store"), users=list(users.values())) as running:
        yield running, users


Store = tuple[ValkeyServer, dict[str, ValkeyUser]]


@pytest.mark.parametrize("name", ["admission", "scheduler"])
@pytest.mark.parametrize(
    "command",
    [("FLUSHALL",), ("KEYS", "*"), ("CONFIG", "GET", "*"), ("ACL", "LIST"), ("GET", "{hg:other}:view"), ("SHUTDOWN",)],
    ids=lambda command: command[0],
)
async def test_a_service_may_not_command_the_store(store: Store, name: str, command: tuple[str, ...]) -> None:
    running, users = store
    async with redis.asyncio.from_url(running.url_for(users[name])) as client:
        with pytest.raises(NoPermissionError):
            await client.execute_command(*command)


async def test_the_scheduler_opens_the_view_and_admission_asks_it(store: Store) -> None:
    running, users = store
    async with (
        open_client(running.url_for(users["scheduler"])) as scheduler,
        open_client(running.url_for(users["admission"])) as admission,
    ):
        view, asked = (RedisView(client, shard="main", epoch="E") for client in (scheduler, admission))
        await view.begin("E", generation="g1", applied=0, standing=StandingOrders())
        await view.open(generation="g1", quarantine_ms=0)

        assert await asked.job("nobody") is None
        await view.close()


@pytest.mark.parametrize("name", ["admission", "scheduler"])
async def test_a_service_has_no_business_in_another_shard(store: Store, name: str) -> None:
    running, users = store
    async with open_client(running.url_for(users[name])) as client:
        with pytest.raises(ViewMisused, match="NoPermission"):
            await RedisView(client, shard="other", epoch="E").job("j")


async def test_who_has_no_business_in_the_store_is_not_let_in(store: Store) -> None:
    running, _ = store
    async with redis.asyncio.from_url(f"redis://127.0.0.1:{running.port}") as nobody:
        with pytest.raises(AuthenticationError):
            await nobody.ping()


async def test_the_system_account_is_not_open_with_a_known_password(tmp_path: Path) -> None:
    users = nats_users(passwords(UP_USERS), shard="main", pools=())
    system = NatsUser("system", "made-for-this-folder")
    async with NatsServer(tmp_path, users=list(users.values()), system_user=system) as running:
        known = running.url_for(NatsUser("system", "system"))

        with pytest.raises(NoServersError):
            async with nats_client(known, max_reconnect_attempts=1):
                pass
        async with nats_client(running.system_url) as client:
            assert client.is_connected


def passwords(users: tuple[str, ...]) -> dict[str, str]:
    return {name: f"secret-of-{name}" for name in users}


@asynccontextmanager
async def user(server: Server, name: str) -> AsyncIterator[Client]:
    running, users = server
    client = await connect(running.url_for(users[name]), name=name)
    try:
        yield client
    finally:
        await client.close()


async def refusals(
    server: Server, name: str, *, publishing: list[str] | None = None, hearing: list[str] | None = None
) -> set[str]:
    """The subjects that the server refuses to this user, by its own words."""
    running, users = server
    asked = [*(publishing or []), *(hearing or [])]
    by_lower = {subject.lower(): subject for subject in [*asked, LAST]}  # nats-py lowers the server's words
    complaints: list[str] = []

    async def complain(error: Exception) -> None:
        complaints.append(by_lower[str(error).split('"')[1]])  # permissions violation for publish to "headgate..."

    async with nats_client(running.url_for(users[name]), error_cb=complain) as client:
        for subject in publishing or []:
            await client.publish(subject, b"")
        for subject in hearing or []:
            await client.subscribe(subject)
        await client.publish(LAST, b"")
        await eventually(lambda: LAST in complaints)
    return set(complaints) - {LAST}

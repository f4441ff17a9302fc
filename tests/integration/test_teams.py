"""Another team on a real nats-server: it has its own consumers, and nothing that it sends gets anywhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from nats.aio.msg import Msg

from libs.eventlog import connect
from libs.eventlog.api import ask
from libs.eventlog.errors import LogMissing, LogUnavailable
from libs.local.provisions import with_user
from libs.runtime.eventually import eventually
from tests.fixtures.clients import nats_client, settled
from tests.fixtures.teams import TeamsServer, a_teams_server, team

ELSEWHERE = (
    "headgate.cmd.v1.main.shut",
    "headgate.live.v1.main.position.u.j",
    "headgate.jobs.v1.j.u.p.ready",
    "headgate.ops.v1.paused",
    "headgate.logs.v1.j",
    "$KV.INPUTS.j",
    "$O.RESULTS.M.x",
)


@pytest_asyncio.fixture
async def scene(tmp_path: Path) -> AsyncIterator[TeamsServer]:
    async with a_teams_server(tmp_path / "nats") as there:
        yield there


async def test_a_team_reads_by_a_consumer_that_was_made_for_it_and_goes_on_where_it_was(scene: TeamsServer) -> None:
    billing = team("billing", "failures")
    await scene.settle(billing)
    client = await scene.signed_in(billing)
    consumer = await client.jetstream().pull_subscribe("headgate.jobs.>", "billing-failures", "JOBS")

    [first] = await consumer.fetch(1, timeout=30)
    await first.ack_sync(timeout=30)
    [second] = await consumer.fetch(1, timeout=30)
    await second.ack_sync(timeout=30)

    assert [each.subject.split(".")[3] for each in (first, second)] == ["job-1", "job-2"]
    await scene.settle(billing, team("other"))  # who comes later disturbs nobody
    info = await consumer.consumer_info()
    assert (info.num_pending, info.num_ack_pending) == (0, 0)


async def test_a_team_is_shown_what_its_filter_lets_through(scene: TeamsServer) -> None:
    one = team("one", filters=("headgate.jobs.v1.job-2.*.*.queued", "headgate.jobs.v1.job-9.>"))
    await scene.settle(one)
    consumer = await (await scene.signed_in(one)).jetstream().pull_subscribe("", "one", "JOBS")

    [only] = await consumer.fetch(5, timeout=30)

    assert only.subject.startswith("headgate.jobs.v1.job-2.")


@pytest.mark.parametrize(
    "subject",
    [
        "$JS.API.INFO",
        "$JS.API.STREAM.INFO.JOBS",
        "$JS.API.STREAM.MSG.GET.JOBS",
        "$JS.API.DIRECT.GET.JOBS.headgate.jobs.v1.job-1.>",
        "$JS.API.CONSUMER.CREATE.JOBS.billing",
        "$JS.API.CONSUMER.CREATE.JOBS.more",
        "$JS.API.CONSUMER.CREATE.JOBS.more.headgate.jobs.v1.>",
        "$JS.API.CONSUMER.DURABLE.CREATE.JOBS.more",
        "$JS.API.CONSUMER.DELETE.JOBS.billing",
        "$JS.API.CONSUMER.LIST.JOBS",
        "$JS.API.CONSUMER.INFO.JOBS.other",
        "$JS.API.CONSUMER.MSG.NEXT.JOBS.other",
        "$JS.API.CONSUMER.MSG.NEXT.JOBS.worker-default",
        "headgate.api.CONSUMER.MSG.NEXT.JOBS.other",
        "$JS.ACK.JOBS.other.1.1.1.1.1",
        *ELSEWHERE,
    ],
)
async def test_a_team_may_ask_for_nothing_but_its_own_consumers(scene: TeamsServer, subject: str) -> None:
    billing = team("billing")
    await scene.settle(billing, team("other"))
    complaints: list[str] = []

    async def complain(error: Exception) -> None:
        complaints.append(str(error))

    url = with_user(scene.server.url, billing.user, billing.password)
    async with nats_client(url, error_cb=complain) as client:
        await client.publish(subject, b"{}")

        await eventually(lambda: any(f'publish to "{subject.lower()}"' in each for each in complaints))


async def test_an_answer_to_a_team_gets_nowhere_but_to_the_team(scene: TeamsServer) -> None:
    """Where an answer is to go is checked by no server: only that the account is another keeps it from there."""
    billing = team("billing")
    await scene.settle(billing)
    heard: list[str] = []

    async def hear(message: Msg) -> None:
        heard.append(message.subject)

    async with nats_client(scene.server.system_url.replace("system:system", "scheduler:secret-of-scheduler")) as there:
        await there.subscribe("headgate.cmd.v1.main.shut", cb=hear)
        await settled(there)
        before = [await _last_of(scene, stream) for stream in ("JOBS", "LOGS", "KV_INPUTS", "OBJ_RESULTS")]
        client = await scene.signed_in(billing)
        for reply in ELSEWHERE:
            await client.publish("$JS.API.CONSUMER.INFO.JOBS.billing", b"", reply=reply)
            await client.publish("$JS.API.CONSUMER.MSG.NEXT.JOBS.billing", b'{"batch":1,"no_wait":true}', reply=reply)
        await client.request("$JS.API.CONSUMER.INFO.JOBS.billing", b"", timeout=30)  # all before it was answered
        await settled(there)

    assert heard == []
    assert before == [await _last_of(scene, stream) for stream in ("JOBS", "LOGS", "KV_INPUTS", "OBJ_RESULTS")]


async def test_an_answer_to_a_team_acknowledges_nothing_of_anothers(scene: TeamsServer) -> None:
    billing, other = team("billing", filters=("headgate.jobs.v1.nobody.>",)), team("other")
    await scene.settle(billing, other)
    consumer = await (await scene.signed_in(other)).jetstream().pull_subscribe("", "other", "JOBS")
    [message] = await consumer.fetch(1, timeout=30)

    client = await scene.signed_in(billing)
    await client.publish("$JS.API.CONSUMER.MSG.NEXT.JOBS.billing", b'{"batch":1,"no_wait":true}', reply=message.reply)
    await client.request("$JS.API.CONSUMER.INFO.JOBS.billing", b"", timeout=30)

    assert (await consumer.consumer_info()).num_ack_pending == 1


async def test_a_team_that_is_removed_is_cut_off_and_its_consumers_are_gone(scene: TeamsServer) -> None:
    billing, other = team("billing", "failures"), team("other")
    await scene.settle(billing, other)
    gone, stays = await scene.signed_in(billing), await scene.signed_in(other)

    await scene.settle(other)

    await eventually(lambda: gone.is_closed)
    assert stays.is_connected
    with pytest.raises(LogUnavailable):
        await connect(with_user(scene.server.url, billing.user, billing.password), name="gone", within_s=0.5)
    with pytest.raises(LogMissing, match="billing-failures"):
        await ask(scene.operator, "CONSUMER.INFO", stream="JOBS.billing-failures", question={})
    assert await ask(scene.operator, "CONSUMER.INFO", stream="JOBS.worker-default", question={})


async def test_an_account_that_became_free_is_the_next_teams(scene: TeamsServer) -> None:
    first, second = team("first"), team("second")
    await scene.settle(first)
    await scene.settle(second)
    consumer = await (await scene.signed_in(second)).jetstream().pull_subscribe("", "second", "JOBS")

    assert len(await consumer.fetch(2, timeout=30)) == 2


async def test_a_server_that_starts_again_knows_its_teams(scene: TeamsServer) -> None:
    billing = team("billing")
    await scene.settle(billing)

    await scene.server.stop()
    await scene.server.start()

    consumer = await (await scene.signed_in(billing)).jetstream().pull_subscribe("", "billing", "JOBS")
    assert await consumer.fetch(1, timeout=30)


async def _last_of(scene: TeamsServer, stream: str) -> int:
    return (await ask(scene.operator, "STREAM.INFO", stream=stream, question={}))["state"]["last_seq"]

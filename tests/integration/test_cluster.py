"""Three nats-servers that replicate for each other."""

import nats.errors
from nats.js import JetStreamContext
from nats.js.api import StreamConfig

from libs.local.cluster import NatsCluster
from libs.runtime.eventually import eventually
from tests.fixtures.clients import nats_client, servers_seen


async def test_a_cluster_forms_one_leader_and_takes_three_replicas(nats_cluster: NatsCluster) -> None:
    leader = await nats_cluster.leader()

    async with nats_client(nats_cluster.urls) as client:
        stream = await client.jetstream().add_stream(StreamConfig(name="THREE", subjects=["three"], num_replicas=3))

    assert leader in nats_cluster.nodes
    assert stream.cluster
    assert len(stream.cluster.replicas or []) == 2


async def test_every_server_of_a_cluster_tells_a_service_its_sync_setting(nats_cluster: NatsCluster) -> None:
    async with nats_client(nats_cluster.urls) as client:
        answers = await servers_seen(client, expected=3)

    told = {answer["server"]["name"]: answer["data"]["jetstream"]["config"]["sync_always"] for answer in answers}
    assert told == {"n1": True, "n2": True, "n3": True}


async def test_a_cluster_outlives_its_leader_and_takes_it_back(nats_cluster: NatsCluster) -> None:
    lost = await nats_cluster.leader()
    async with nats_client(nats_cluster.urls) as client:
        log = client.jetstream()
        await log.add_stream(StreamConfig(name="LIVES", subjects=["lives"], num_replicas=3))
        await log.publish("lives", b"1")

        await lost.kill()
        await eventually(lambda: _published(log, b"2"))
        assert await nats_cluster.leader() is not lost

        await nats_cluster.start()
        assert lost.running
        assert (await log.stream_info("LIVES")).state.messages >= 2


async def _published(log: JetStreamContext, payload: bytes) -> bool:
    try:
        await log.publish("lives", payload, timeout=1)
    except nats.errors.Error:
        return False  # no leader yet
    return True

"""Three nats-servers on this machine that replicate for each other.

Owns who sits where and when the whole is fit for use: a leader for the cluster's metadata counts every other server
among its current peers, and each server stores a message in a stream that all of them keep. The second is tried
because no report tells it.

The servers start one after the other. When two dial each other at once one of their routes is closed as a duplicate,
and the leader may take the other for gone a moment later ("no suitable peers for placement, peer offline"): it refused
a stream in 4 of 180 young clusters that started at once, and in none of 180 that started in turn.
"""

# pyright: reportUnknownMemberType=false
# nats-py types its answers, but not every parameter of connect and subscribe.

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nats
import nats.errors
from nats.aio.client import Client

from libs.local.nats_config import ClusterSeat, NatsUser
from libs.local.ports import free_ports
from libs.local.servers import DEFAULT_NATS_USERS, NatsServer
from libs.runtime.eventually import eventually

_PROBE = NatsUser(
    "probe",
    "probe",
    publish=("$JS.API.STREAM.CREATE.PROBE", "$JS.API.STREAM.DELETE.PROBE", "probe"),
    subscribe=("_INBOX.>",),
)
HEALTHY_WITHIN_S = 30.0  # an election takes 4 to 9 s in the worst case
ANSWERS_WITHIN_S = 1.0


class NatsCluster:
    def __init__(self, folder: Path, *, size: int = 3, users: Sequence[NatsUser] = DEFAULT_NATS_USERS) -> None:
        client_ports, route_ports = _halves(free_ports(2 * size))
        routes = tuple(f"nats://127.0.0.1:{port}" for port in route_ports)
        self.nodes = tuple(
            NatsServer(
                folder / f"n{number}",
                name=f"n{number}",
                users=(*users, _PROBE),
                port=client_port,
                seat=ClusterSeat(cluster="headgate", port=route_port, routes=routes),
            )
            for number, (client_port, route_port) in enumerate(zip(client_ports, route_ports, strict=True), start=1)
        )

    @property
    def urls(self) -> list[str]:
        return [node.url for node in self.nodes]

    @property
    def system_urls(self) -> list[str]:
        return [node.system_url for node in self.nodes]

    async def start(self) -> None:
        """Starts each node that is down, thaws each that is frozen, and waits until the whole is fit for use."""
        untouched = all(node.running for node in self.nodes)
        for node in self.nodes:
            await node.start()
            node.resume()  # it may have been frozen by the test before
        await self.healthy()
        if not untouched:
            await eventually(self._stores, within_s=HEALTHY_WITHIN_S, every_s=0.05)

    async def stop(self) -> None:
        await asyncio.gather(*(node.stop() for node in self.nodes))

    async def kill(self) -> None:
        await asyncio.gather(*(node.kill() for node in self.nodes))

    async def healthy(self) -> None:
        """Until every server runs, is up to date, and all of them see one leader."""
        await eventually(self._whole, within_s=HEALTHY_WITHIN_S, every_s=0.05)

    async def leader(self) -> NatsServer:
        """Who leads the metadata, as all that run see it; a stream's leader is in that stream's own info."""
        name = await eventually(self._leader_name, within_s=HEALTHY_WITHIN_S, every_s=0.05)
        return self.node(name)

    def node(self, name: str) -> NatsServer:
        return next(node for node in self.nodes if node.name == name)

    async def _whole(self) -> bool:
        reports = await self._reports()
        return len(reports) == len(self.nodes) and any(_leads_all(reports[name], name) for name in reports)

    async def _stores(self) -> bool:
        try:
            for node in self.nodes:
                await _probe(node.url_for(_PROBE), replicas=len(self.nodes))
        except (nats.errors.Error, OSError):
            return False
        return True

    async def _leader_name(self) -> str:
        reports = await self._reports()
        named = {str(meta.get("leader", "")) for meta in reports.values()}
        return named.pop() if len(named) == 1 and named <= reports.keys() else ""

    async def _reports(self) -> dict[str, dict[str, Any]]:
        """What each running server says of the group that keeps the metadata; nothing of any where one is silent."""
        running = [node for node in self.nodes if node.running]
        try:
            client = await nats.connect(
                [node.system_url for node in running], max_reconnect_attempts=2, error_cb=_ignore
            )
        except (nats.errors.Error, OSError):
            return {}
        try:
            return await _answers(client, expected=len(running))
        except nats.errors.TimeoutError:
            return {}
        finally:
            await client.close()


async def _answers(client: Client, *, expected: int) -> dict[str, dict[str, Any]]:
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)
    await client.publish("$SYS.REQ.SERVER.PING.VARZ", b"", reply=inbox)
    told = [json.loads((await answers.next_msg(timeout=ANSWERS_WITHIN_S)).data) for _ in range(expected)]
    return {report["server"]["name"]: report["data"]["jetstream"].get("meta", {}) for report in told}


async def _probe(url: str, *, replicas: int) -> None:
    client = await nats.connect(url, allow_reconnect=False, error_cb=_ignore)
    try:
        log = client.jetstream(timeout=2.0)
        await log.add_stream(name="PROBE", subjects=["probe"], num_replicas=replicas)
        await log.publish("probe", b"")
        await log.delete_stream("PROBE")
    finally:
        await client.close()


async def _ignore(error: Exception) -> None:
    """A node that does not answer is asked again, or given up after a while."""


def _leads_all(meta: dict[str, Any], name: str) -> bool:
    followers = meta.get("replicas", [])
    whole = len(followers) + 1 == meta.get("cluster_size")
    return meta.get("leader") == name and whole and all(follower["current"] for follower in followers)


def _halves(ports: list[int]) -> tuple[list[int], list[int]]:
    return ports[: len(ports) // 2], ports[len(ports) // 2 :]

"""What the servers say about themselves: their version, and whether they sync before they acknowledge.

No client can ask a server that directly. So the servers' own account exports one question, which Headgate's account
imports as `headgate.servers`; every server of a cluster answers for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic_core import from_json

from libs.eventlog.api import listen
from libs.eventlog.edge import translated
from libs.eventlog.errors import LogRefused, LogUnavailable, SettingsDiffer

SERVERS_SUBJECT: Final = "headgate.servers"
ANSWERS_WITHIN_S: Final = 2.0
OLDEST_VERSION: Final = (2, 15, 1)


@dataclass(frozen=True, slots=True)
class Server:
    """One server, in its own words."""

    name: str
    version: str
    sync_always: bool
    sync_interval_s: float

    @classmethod
    def answering(cls, report: dict[str, Any]) -> Server:
        config = report["data"].get("jetstream", {}).get("config", {})
        return cls(
            name=report["server"]["name"],
            version=report["data"]["version"],
            sync_always=config.get("sync_always", False),
            sync_interval_s=config.get("sync_interval", 0) / 1e9,
        )

    def differences(self) -> list[str]:
        """What about it must be otherwise."""
        found: list[str] = []
        if not self.sync_always:
            found.append(f"server {self.name}: sync_interval is {self.sync_interval_s:g} s, must be always")
        if _number(self.version) < OLDEST_VERSION:
            oldest = ".".join(map(str, OLDEST_VERSION))
            found.append(f"server {self.name}: version is {self.version}, must be {oldest} or newer")
        return found


async def servers_of(nc: Client, names: Iterable[str]) -> list[Server]:
    """What these servers, and others that are as quick, say of themselves."""
    awaited, found = set(names), dict[str, Server]()
    inbox, answers = nc.new_inbox(), asyncio.Queue[Msg]()
    subscription = await listen(nc, inbox, hear=answers.put)
    with translated(SERVERS_SUBJECT):
        try:
            await nc.publish(SERVERS_SUBJECT, b"", reply=inbox)
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                while not found or awaited - found.keys():
                    server = _server_in(await answers.get())
                    found[server.name] = server
        except TimeoutError:
            late = ", ".join(sorted(awaited - found.keys())) or "every server"
            reason = f"{late} did not say within {ANSWERS_WITHIN_S:g} s how it is set up"
            raise LogUnavailable(reason=reason) from None
        finally:
            await subscription.unsubscribe()
    return sorted(found.values(), key=lambda server: server.name)


def _server_in(message: Msg) -> Server:
    if message.headers and message.headers.get("Status"):
        nobody = (
            f"nobody answers on {SERVERS_SUBJECT}: the servers' account must export $SYS.REQ.SERVER.PING.VARZ to ours"
        )
        raise SettingsDiffer(differences=nobody)
    return Server.answering(from_json(message.data))


def _number(version: str) -> tuple[int, ...]:
    """The three numbers of a version; what stands behind a dash says nothing about order here."""
    return tuple(int(part) for part in version.partition("-")[0].split("."))


async def reload_server(nc: Client) -> None:
    """Have the one server that this user of the system account speaks to read its configuration again."""
    with translated("the server"):
        known = from_json((await nc.request("$SYS.REQ.SERVER.PING", b"", timeout=ANSWERS_WITHIN_S)).data)
        subject = f"$SYS.REQ.SERVER.{known['server']['id']}.RELOAD"
        answer = from_json((await nc.request(subject, b"", timeout=ANSWERS_WITHIN_S)).data)
    if "error" in answer:
        reason = f"the server does not read its configuration again: {answer['error'].get('description', answer)}"
        raise LogRefused(reason=reason)

"""What a server lets those answer who hear a request twice on one connection."""

from __future__ import annotations

from pathlib import Path

import nats
from faststream.nats import NatsBroker

from libs.local.nats_config import NatsUser
from libs.local.servers import NatsServer

ANSWERS = NatsUser("answers", "a", publish=("other",), subscribe=("_ANSWERS.>", "cmd.beat"), allow_responses=True)
ASKS = NatsUser("asks", "b", publish=("cmd.beat",), subscribe=("_INBOX.>",))


async def test_a_request_that_is_also_overheard_is_answered(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, users=(ANSWERS, ASKS))
    await server.start()
    broker = NatsBroker(server.url_for(ANSWERS), inbox_prefix="_ANSWERS", logger=None)
    heard: list[str] = []

    @broker.subscriber("cmd.beat", "group")
    async def answer(asked: str) -> str:
        return f"{asked}, answered"

    @broker.subscriber("cmd.beat", no_reply=True)
    async def overhear(asked: str) -> None:
        heard.append(asked)

    await broker.start()
    client = await nats.connect(server.url_for(ASKS))

    answers = [(await client.request("cmd.beat", b"beat", timeout=30)).data for _ in range(3)]

    assert answers == [b"beat, answered"] * 3
    assert heard == ["beat"] * 3
    await client.close()
    await broker.stop()
    await server.kill()

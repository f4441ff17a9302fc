"""The connection, and what an append does while there is none."""

import asyncio
import logging
from pathlib import Path

import pytest

from libs.eventlog import Appended, LogUnavailable, OutcomeUnknown, connect, open_log
from libs.local.servers import NatsServer
from libs.runtime.eventually import eventually
from tests.fixtures.lives import queued
from tests.fixtures.logs import connected, opened, settings


async def test_an_append_while_the_server_is_away_is_known_to_have_failed(nats_server: NatsServer) -> None:
    """And it is not sent later, from some buffer."""
    async with opened(nats_server.url), connected(nats_server.url) as client:
        log = await open_log(client, settings(), settle_within_s=0.5)
        await nats_server.kill()
        await eventually(lambda: not client.is_connected)

        with pytest.raises(LogUnavailable, match="not connected"):
            await log.append(queued("job-1"), after=None)
        await nats_server.start()
        await eventually(lambda: client.is_connected)

        assert (await log.mark()).seq == 0


async def test_an_append_waits_for_a_server_that_comes_back(nats_server: NatsServer) -> None:
    async with opened(nats_server.url) as log:
        await nats_server.kill()
        appending = asyncio.create_task(log.append(queued("job-1"), after=None))
        await nats_server.start()

        assert isinstance(await appending, Appended)


async def test_copies_that_pile_up_before_a_frozen_server_are_one_event(nats_server: NatsServer) -> None:
    async with opened(nats_server.url), connected(nats_server.url) as client:
        log = await open_log(client, settings())
        nats_server.pause()
        sent = client.stats["out_msgs"]
        appending = asyncio.create_task(log.append(queued("job-1"), after=None))
        await eventually(lambda: client.stats["out_msgs"] >= sent + 3)
        nats_server.resume()

        assert isinstance(await appending, Appended)
        assert (await log.mark()).seq == 1


async def test_what_a_frozen_server_left_unknown_is_known_when_it_is_back(nats_server: NatsServer) -> None:
    async with opened(nats_server.url), connected(nats_server.url) as client:
        log = await open_log(client, settings(), settle_within_s=0.5)
        nats_server.pause()
        with pytest.raises(OutcomeUnknown, match=r"is not known after 0\.5 s: nats: timeout"):
            await log.append(queued("job-1"), after=None)
        nats_server.resume()

        assert isinstance(await log.append(queued("job-1"), after=None), Appended)
        assert (await log.mark()).seq == 1


async def test_no_server_is_told_with_the_reason(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)

    with pytest.raises(LogUnavailable) as failure:
        await connect(server.url, name="admission", within_s=0.3)

    assert str(failure.value) == (
        "The log cannot be reached: no connection within 0.3 s, the last attempt ended with: "
        f"[Errno 111] Connect call failed ('127.0.0.1', {server.port}). "
        "Nothing was stored; try again with the same event in a moment."
    )


async def test_an_outage_is_a_few_lines_in_the_log(nats_server: NatsServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="libs.eventlog")
    async with connected(nats_server.url) as client:
        await nats_server.kill()
        await nats_server.start()
        await eventually(lambda: client.is_connected and "is back" in caplog.text)

    assert "NATS connection test is lost" in caplog.messages
    assert "NATS connection test is back" in caplog.messages
    assert len(caplog.messages) < 8

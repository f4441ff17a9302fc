"""A whole process: told to stop it ends its streams, closes what it opened in reverse, and leaves with 0.

Run as a program this file is that process.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi.responses import StreamingResponse

from libs.runtime.app import create_app
from libs.runtime.clock import SystemClock
from libs.runtime.connect import wait_for
from libs.runtime.gate import Gate
from libs.runtime.http import HttpServer
from libs.runtime.lifecycle import Health, Service
from libs.runtime.probes import Probes
from libs.runtime.telemetry import Telemetry

ROOT = Path(__file__).parents[2]


class Program:
    """The process under test, and what it says."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.said: list[dict[str, Any]] = []

    async def says(self, message: str) -> dict[str, Any]:
        """The next line that begins like that."""
        assert self.process.stdout is not None
        while line := await asyncio.wait_for(self.process.stdout.readline(), 30):
            self.said.append(json.loads(line))
            if self.said[-1]["message"].startswith(message):
                return self.said[-1]
        raise AssertionError(f"it ended without a word of {message!r}: {self.said}")

    async def ends(self) -> int:
        assert self.process.stdout is not None
        rest = await asyncio.wait_for(self.process.stdout.read(), 30)
        self.said += map(json.loads, rest.splitlines())
        return await self.process.wait()


@pytest_asyncio.fixture
async def program(request: pytest.FixtureRequest) -> AsyncIterator[Program]:
    wish = getattr(request, "param", "live")
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, wish, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=PIPE
    )
    yield Program(process)
    if process.returncode is None:
        process.kill()
        await process.wait()


async def test_sigterm_ends_streams_first_and_the_probes_last(program: Program) -> None:
    url = (await program.says("serves at "))["url"]
    async with httpx.AsyncClient(base_url=url, timeout=30) as client, client.stream("GET", "/stream") as stream:
        frames = stream.aiter_text()
        assert await anext(frames) == ": hello\n\n"

        program.process.send_signal(signal.SIGTERM)

        assert "".join([frame async for frame in frames]) == "retry: 2000\n\n"
    assert await program.ends() == 0
    assert [line["message"] for line in program.said] == [
        f"serves at {url}",
        "test stops: SIGTERM",
        "the stream has ended",
        "the client was closed",
    ]


@pytest.mark.parametrize("program", ["wait"], indirect=True)
async def test_a_process_that_waits_for_a_server_is_alive_and_stops_when_it_is_told(program: Program) -> None:
    url = (await program.says("serves at "))["url"]
    await program.says("waiting for NATS: nobody listens")
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        assert (await client.get("/livez")).status_code == 200
        assert (await client.get("/readyz")).json()["missing"] == ["NATS", "gate"]

    program.process.send_signal(signal.SIGINT)

    assert await program.ends() == 0


@pytest.mark.parametrize("program", ["fail"], indirect=True)
async def test_a_process_that_cannot_begin_says_why_and_leaves_with_1(program: Program) -> None:
    said = await program.says("test stops: composition failed")

    assert "the settings of the stream differ" in said["exception"]
    assert await program.ends() == 1


@pytest.mark.parametrize("program", ["hang"], indirect=True)
async def test_a_second_signal_ends_a_process_that_does_not_come_to_an_end(program: Program) -> None:
    await program.says("serves at ")

    program.process.send_signal(signal.SIGTERM)
    await program.says("the client does not answer")
    program.process.send_signal(signal.SIGTERM)

    assert await program.ends() == 0
    assert "client did not stop in time" in [line["message"] for line in program.said]


# --- the process ---


class Wishes:
    """The composition root, with one of its steps as the test wants it."""

    def __init__(self, wish: str) -> None:
        self.wish = wish
        self.gate = Gate()
        self.health = Health("NATS")
        self.telemetry = Telemetry("test", instance="t-1")

    async def compose(self, service: Service) -> None:
        await service.start(self.telemetry)
        app = create_app("test", version="0", gate=self.gate, telemetry=self.telemetry)
        probes = Probes(gate=self.gate, health=self.health, telemetry=self.telemetry, rest=app)
        server = await service.start(HttpServer(probes, host="127.0.0.1", port=0))
        app.add_api_route("/stream", self.stream)
        if self.wish == "wait":
            say(f"serves at {server.url}", url=server.url)
        await wait_for("NATS", self.connect, away=(OSError,), health=self.health, clock=SystemClock())
        service.closing("client", self.close)
        await service.start(self.gate)
        say(f"serves at {server.url}", url=server.url)

    async def connect(self) -> None:
        if self.wish == "wait":
            raise ConnectionRefusedError("nobody listens")
        if self.wish == "fail":
            raise RuntimeError("the settings of the stream differ")

    async def close(self) -> None:
        if self.wish == "hang":
            say("the client does not answer")
            await asyncio.Event().wait()
        say("the client was closed")

    async def stream(self) -> StreamingResponse:
        return StreamingResponse(self.frames(), media_type="text/event-stream")

    async def frames(self) -> AsyncIterator[str]:
        yield ": hello\n\n"
        await self.gate.draining.wait()
        yield "retry: 2000\n\n"
        say("the stream has ended")


def say(message: str, **more: str) -> None:
    logging.getLogger(__name__).info(message, extra=more)


if __name__ == "__main__":
    sys.exit(asyncio.run(Service("test", grace_s=60).run(Wishes(sys.argv[1]).compose)))

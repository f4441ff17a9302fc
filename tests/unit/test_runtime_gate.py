"""A gate that closes lets everybody inside finish, and nobody in."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from libs.runtime.eventually import eventually
from libs.runtime.gate import Gate, Gated


class Slow:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.answer = asyncio.Event()
        self.running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.running += 1
        try:
            await self.answer.wait()
        finally:
            self.running -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


async def get(gate: Gate, app: Any, path: str = "/") -> int:
    transport = httpx.ASGITransport(Gated(app, gate=gate))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return (await client.get(path)).status_code


async def test_those_inside_finish_before_the_gate_has_stopped_and_nobody_else_gets_in() -> None:
    gate, app = Gate(patience_s=60), Slow()
    await gate.start()
    inside = [asyncio.create_task(get(gate, app)) for _ in range(5)]
    await eventually(lambda: app.running == 5)

    stopping = asyncio.create_task(gate.stop())
    await asyncio.wait_for(gate.draining.wait(), 30)
    assert await get(gate, app) == 503
    assert not stopping.done()

    app.answer.set()
    await asyncio.wait_for(stopping, 30)
    assert await asyncio.gather(*inside) == [200] * 5


async def test_what_comes_before_the_gate_opens_waits_for_it() -> None:
    gate, app = Gate(), Slow()
    app.answer.set()
    early = asyncio.create_task(get(gate, app))
    await eventually(lambda: gate._waiting == 1)

    await gate.start()

    assert await early == 200
    assert gate._waiting == 0


async def test_a_gate_that_does_not_open_refuses_after_a_while() -> None:
    assert await get(Gate(opens_within_s=0.01), Slow()) == 503


async def test_so_many_wait_for_a_gate_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("libs.runtime.gate.MOST_WAITING", 1)
    gate, app = Gate(), Slow()
    app.answer.set()
    first = asyncio.create_task(get(gate, app))
    await eventually(lambda: gate._waiting == 1)

    assert await get(gate, app) == 503

    await gate.start()
    assert await first == 200


async def test_a_stop_before_the_start_sends_away_whoever_waits() -> None:
    gate = Gate()
    early = asyncio.create_task(get(gate, Slow()))
    await eventually(lambda: gate._waiting == 1)

    await gate.stop()

    assert await early == 503


async def test_whoever_takes_longer_than_the_patience_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    gate, app = Gate(patience_s=0.01), Slow()
    await gate.start()
    late = asyncio.create_task(get(gate, app))
    await eventually(lambda: app.running == 1)

    await gate.stop()

    await asyncio.wait([late])
    assert late.cancelled()
    assert "a request was cut off" in caplog.text


async def test_a_gate_may_be_stopped_twice_and_before_it_was_started_and_be_opened_again() -> None:
    gate, app = Gate(), Slow()
    app.answer.set()
    await gate.stop()
    await gate.stop()
    assert await get(gate, app) == 503

    await gate.start()
    assert await get(gate, app) == 200
    assert not gate.draining.is_set()

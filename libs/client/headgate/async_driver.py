"""Carries scripts out with httpx's AsyncClient."""

from __future__ import annotations

from asyncio import sleep, to_thread
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from time import monotonic
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx

from headgate.edge import FAULTS, Target, answer_of, call_of, no_answer, terms_of
from headgate.exchange import (
    Answer,
    AskTerms,
    Do,
    Effect,
    Give,
    NoAnswer,
    Open,
    Patience,
    Pause,
    Request,
    Script,
    Send,
    Stream,
    Take,
    Terms,
)

P = ParamSpec("P")
T = TypeVar("T")


class AsyncDriver:
    """One Headgate, asked by one user."""

    def __init__(
        self,
        target: Target,
        patience: Patience,
        transport: httpx.AsyncBaseTransport | None,
        *,
        pause: Callable[[float], Awaitable[None]] | None = None,
        now_s: Callable[[], float] = monotonic,
        catching_up: Callable[[str], None] | None = None,
        held: set[str] | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(transport=transport, **target.settings)
        self._terms = terms_of(patience, now_s, catching_up)
        self._sleep = pause or sleep
        self.held = set[str]() if held is None else held  # leases that blocks hold or wait for

    async def run(self, script: Script[T]) -> T:
        """What the script returns."""
        reply: Any = None
        async with self._hands() as hands:
            try:
                while True:
                    reply = await hands.carry_out(script.send(reply))
            except StopIteration as end:
                return end.value
            finally:
                script.close()

    async def read(self, stream: Stream[T]) -> AsyncGenerator[T]:
        """What the stream gives."""
        reply: Any = None
        async with self._hands() as hands:
            try:
                while True:
                    effect = stream.send(reply)
                    reply = None
                    if isinstance(effect, Give):
                        yield effect.value
                    else:
                        reply = await hands.carry_out(effect)
            except StopIteration:
                return
            finally:
                stream.close()

    async def close(self) -> None:
        """Safe twice."""
        await self._http.aclose()

    @asynccontextmanager
    async def _hands(self) -> AsyncGenerator[_Hands]:
        hands = _Hands(self._http, self._terms, self._sleep)
        try:
            yield hands
        finally:
            await hands.let_go()


class _Hands:
    """Carries out effects, one after the other, for one script."""

    def __init__(self, http: httpx.AsyncClient, terms: Terms, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._http = http
        self._terms = terms
        self._sleep = sleep
        self._response: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None

    async def carry_out(self, effect: Effect) -> Any:
        match effect:
            case AskTerms():
                return self._terms
            case Send(request):
                return await self._ask(request, whole=True)
            case Open(request):
                return await self._ask(request, whole=False)
            case Take():
                return await self._next()
            case Pause(seconds):
                await self.let_go()
                return await self._sleep(seconds)
            case Do(work):
                return await to_thread(work)

    async def let_go(self) -> None:
        """Of the answer that is open."""
        response, self._response, self._pieces = self._response, None, None
        if response is not None:
            await response.aclose()

    async def _ask(self, request: Request, *, whole: bool) -> Answer | NoAnswer:
        await self.let_go()
        try:
            self._response = await self._http.send(self._http.build_request(**call_of(request)), stream=True)
            if whole or not self._response.is_success:
                return answer_of(self._response, content=await self._response.aread())
        except FAULTS as fault:
            return no_answer(fault)
        self._pieces = aiter(self._response.aiter_bytes())
        return answer_of(self._response)

    async def _next(self) -> bytes | NoAnswer:
        assert self._pieces is not None
        try:
            return await anext(self._pieces, b"")
        except FAULTS as fault:
            return no_answer(fault)


# ── verbs as methods ──────────────────────────────────────────────────────────


class AsyncSpeaker:
    """The base of all objects whose methods are requests."""

    def __init__(self, driver: AsyncDriver) -> None:
        self.driver = driver


def awaited(script: Callable[P, Script[T]]) -> Callable[Concatenate[AsyncSpeaker, P], Coroutine[Any, Any, T]]:
    """A verb as a coroutine."""

    @wraps(script)
    async def method(it: AsyncSpeaker, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await it.driver.run(script(*args, **kwargs))

    return method


def streamed(script: Callable[P, Stream[T]]) -> Callable[Concatenate[AsyncSpeaker, P], AsyncGenerator[T]]:
    """A verb that gives many values, as an asynchronous generator."""

    @wraps(script)
    def method(it: AsyncSpeaker, /, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T]:
        return it.driver.read(script(*args, **kwargs))

    return method

"""Carries scripts out with httpx's Client."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from time import monotonic, sleep
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


class SyncDriver:
    """One Headgate, asked by one user."""

    def __init__(
        self,
        target: Target,
        patience: Patience,
        transport: httpx.BaseTransport | None,
        *,
        pause: Callable[[float], None] | None = None,
        now_s: Callable[[], float] = monotonic,
        catching_up: Callable[[str], None] | None = None,
        held: set[str] | None = None,
    ) -> None:
        self._http = httpx.Client(transport=transport, **target.settings)
        self._terms = terms_of(patience, now_s, catching_up)
        self._sleep = pause or sleep
        self.held = set[str]() if held is None else held  # leases that blocks hold or wait for

    def run(self, script: Script[T]) -> T:
        """What the script returns."""
        reply: Any = None
        with self._hands() as hands:
            try:
                while True:
                    reply = hands.carry_out(script.send(reply))
            except StopIteration as end:
                return end.value
            finally:
                script.close()

    def read(self, stream: Stream[T]) -> Generator[T]:
        """What the stream gives."""
        reply: Any = None
        with self._hands() as hands:
            try:
                while True:
                    effect = stream.send(reply)
                    reply = None
                    if isinstance(effect, Give):
                        yield effect.value
                    else:
                        reply = hands.carry_out(effect)
            except StopIteration:
                return
            finally:
                stream.close()

    def close(self) -> None:
        """Safe twice."""
        self._http.close()

    @contextmanager
    def _hands(self) -> Generator[_Hands]:
        hands = _Hands(self._http, self._terms, self._sleep)
        try:
            yield hands
        finally:
            hands.let_go()


class _Hands:
    """Carries out effects, one after the other, for one script."""

    def __init__(self, http: httpx.Client, terms: Terms, sleep: Callable[[float], None]) -> None:
        self._http = http
        self._terms = terms
        self._sleep = sleep
        self._response: httpx.Response | None = None
        self._pieces: Iterator[bytes] | None = None

    def carry_out(self, effect: Effect) -> Any:
        match effect:
            case AskTerms():
                return self._terms
            case Send(request):
                return self._ask(request, whole=True)
            case Open(request):
                return self._ask(request, whole=False)
            case Take():
                return self._next()
            case Pause(seconds):
                self.let_go()
                return self._sleep(seconds)
            case Do(work):
                return work()

    def let_go(self) -> None:
        """Of the answer that is open."""
        response, self._response, self._pieces = self._response, None, None
        if response is not None:
            response.close()

    def _ask(self, request: Request, *, whole: bool) -> Answer | NoAnswer:
        self.let_go()
        try:
            self._response = self._http.send(self._http.build_request(**call_of(request)), stream=True)
            if whole or not self._response.is_success:
                return answer_of(self._response, content=self._response.read())
        except FAULTS as fault:
            return no_answer(fault)
        self._pieces = self._response.iter_bytes()
        return answer_of(self._response)

    def _next(self) -> bytes | NoAnswer:
        assert self._pieces is not None
        try:
            return next(self._pieces, b"")
        except FAULTS as fault:
            return no_answer(fault)


# ── verbs as methods ──────────────────────────────────────────────────────────


class SyncSpeaker:
    """The base of all objects whose methods are requests."""

    def __init__(self, driver: SyncDriver) -> None:
        self.driver = driver


def at_once(script: Callable[P, Script[T]]) -> Callable[Concatenate[SyncSpeaker, P], T]:
    """A verb as a method."""

    @wraps(script)
    def method(it: SyncSpeaker, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return it.driver.run(script(*args, **kwargs))

    return method


def one_by_one(script: Callable[P, Stream[T]]) -> Callable[Concatenate[SyncSpeaker, P], Generator[T]]:
    """A verb that gives many values, as a generator."""

    @wraps(script)
    def method(it: SyncSpeaker, /, *args: P.args, **kwargs: P.kwargs) -> Generator[T]:
        return it.driver.read(script(*args, **kwargs))

    return method

"""Requests and answers as values, and what a script may ask of the driver that carries it out.

Every verb of the client is a script: a generator that yields effects, is sent what came of each, and returns what was
asked for. It opens no socket, sleeps nowhere and reads no clock, so the asynchronous driver and the synchronous one
carry out the same scripts.
"""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, cast
from urllib.parse import quote, urlencode

T = TypeVar("T")
R = TypeVar("R")

ANSWER_WITHIN_S: Final = 15.0
KEY: Final = "Idempotency-Key"
CATCHING_UP: Final = "headgate-catching-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked. `within_s` is for each piece of the answer."""

    method: str = "GET"
    path: str
    query: Mapping[str, str | Sequence[str]] = field(default_factory=dict[str, str | Sequence[str]])
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    within_s: float = ANSWER_WITHIN_S
    is_idempotent: bool = False  # sent twice it is done once, whatever its method

    @property
    def may_be_repeated(self) -> bool:
        """Without an answer nobody knows whether it was carried out: only what can do no harm twice is sent twice."""
        return self.is_idempotent or self.method in {"GET", "HEAD"} or KEY in self.headers

    @property
    def target(self) -> str:
        """With half of a surrogate pair written as it is, which the edge refuses."""
        asked_for = urlencode(self.query, doseq=True, errors="surrogatepass")
        return f"{self.path}?{asked_for}" if self.query else self.path

    @property
    def content(self) -> bytes | None:
        return None if self.body is None else json.dumps(self.body).encode()

    @property
    def all_headers(self) -> dict[str, str]:
        said = {"Accept": "*/*", **self.headers}
        return said if self.body is None else {**said, "Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; the names of its headers are in small letters. Of one that is read piece by piece the content is
    still to come."""

    status: int
    headers: Mapping[str, str]
    content: bytes = b""

    @property
    def retry_after_s(self) -> float | None:
        said = self.headers.get("retry-after", "")
        return float(said) if said.isdecimal() else None

    @property
    def problem(self) -> Mapping[str, Any]:
        """What it says where it is no success; empty where it is not Headgate's own."""
        try:
            said: object = json.loads(self.content)
        except ValueError:
            return {}
        return cast("Mapping[str, Any]", said) if isinstance(said, dict) else {}


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """None came, or it was cut off."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """For how long one request is repeated at most. Whatever is said to take longer is the caller's to wait for."""

    tries: int = 8  # a service that was killed is back within seconds
    within_s: float = 60.0
    pause_s: float = 0.5  # doubled with each try that nobody answers
    longest_pause_s: float = 5.0

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise ValueError("tries: write 1 or more, as the first is one too")


def unheard(_: str) -> None:
    """Nobody asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a script may know of its driver."""

    patience: Patience
    now_s: Callable[[], float]
    random: Callable[[], float]
    new_key: Callable[[], str]
    catching_up: Callable[[str], None] = unheard  # is told how far the index is, where it does not have all jobs yet


# ── effects ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class AskTerms:
    """Gives the driver's Terms."""


@dataclass(frozen=True, slots=True)
class Send:
    """Gives an Answer, read to its end, or NoAnswer."""

    request: Request


@dataclass(frozen=True, slots=True)
class Open:
    """Gives an Answer whose content is taken piece by piece where it is a success, or NoAnswer."""

    request: Request


@dataclass(frozen=True, slots=True)
class Take:
    """Gives the next piece of what is open, empty at its end, or NoAnswer."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Gives nothing, later."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Do(Generic[T]):
    """Gives what comes of work with files."""

    work: Callable[[], T]


@dataclass(frozen=True, slots=True)
class Give(Generic[T]):
    """Hands a value to the reader of the stream; gives nothing."""

    value: T


Effect = AskTerms | Send | Open | Take | Pause | Do[Any]
Script = Generator[Effect, Any, T]
Stream = Generator[Effect | Give[T], Any, None]


def terms() -> Script[Terms]:
    return (yield AskTerms())


def sent(request: Request) -> Script[Answer | NoAnswer]:
    return (yield Send(request))


def opened(request: Request) -> Script[Answer | NoAnswer]:
    return (yield Open(request))


def taken() -> Script[bytes | NoAnswer]:
    return (yield Take())


def done(work: Callable[[], T]) -> Script[T]:
    return (yield Do(work))


def sifted(stream: Stream[T], keep: Callable[[T], R | None]) -> Stream[R]:
    """What is made of the values of another stream; null leaves one out."""
    reply: Any = None
    with closing(stream):
        while True:
            try:
                effect = stream.send(reply)
            except StopIteration:
                return
            reply = None
            if not isinstance(effect, Give):
                reply = yield effect
            elif (made := keep(effect.value)) is not None:
                yield Give(made)


def path_of(*names: str) -> str:
    """Where the API has it: each name is a part of its own, whatever is in it."""
    for name in names:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a caller's, and none checks it
            raise TypeError(f"an id or a name is a text, not {name!r}")
    return "/".join(("/v1", *(quote(name, safe="", errors="surrogatepass") for name in names)))


def asked(**given: object) -> dict[str, Any]:
    """What was asked for; what was not is left out."""
    return {name: value for name, value in given.items() if value is not None}

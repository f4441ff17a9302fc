"""What somebody tries: a frozen row that can be sent, and how it is seen that nothing came through.

    Asks("POST /v1/jobs", who="ann", json={…}, gets=422)   a request, and its only answer
    Meddles("POST /v1/jobs/<running>/cancel")              another's job: as if it were not there
    Forges(claims={"exp": 1e300})                          a token, to both services
    Sends(b"GET / HTTP/1.1\\r\\n…", door="gateway", gets=(400,))   bytes, and all answers to them
    Says("worker", "headgate.ops.v1.erased")               to NATS; `Hears` listens there, `Commands` is for Valkey
    Looks("password of the worker", "log of admission")    for what may not be there

Each gives "" where the defence held, else in one line what came through. Names in angle brackets are the scene's.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import httpx

from tests.abuse.forging import forged
from tests.abuse.scene import JSON, OF_ANN, Scene
from tests.abuse.sockets import statuses
from tests.hostile.conftest import REFUSED, UNREACHED

HELD: Final = ""
NOBODYS: Final = "j-that-never-was"


class Attempt(Protocol):
    """One row, without its name."""

    async def through(self, scene: Scene) -> str: ...


@dataclass(frozen=True)
class Asks:
    """A request to the gateway. Its target goes out as it stands, dots and escapes too."""

    line: str
    gets: int
    who: str | None = "ann"
    json: Any = None
    content: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    says: str = ""
    never: str = ""

    async def through(self, scene: Scene) -> str:
        answer = await scene.ask(self.who, scene.named(self.line), self._body(scene), self._headers(scene))
        if answer.status_code != self.gets:
            return f"{answer.status_code} in place of {self.gets}: {answer.text[:200]}"
        if self.says not in answer.text:
            return f"it does not say {self.says!r}: {answer.text[:200]}"
        said = f"{answer.headers}\n{answer.text}"
        if self.never and self.never in said:
            return f"it says {self.never!r}"
        return ill_answered(answer) or (scene.told_of_ann(said) if self.never == OF_ANN else HELD)

    def _body(self, scene: Scene) -> bytes | None:
        return self.content if self.json is None else scene.named(json.dumps(self.json)).encode()

    def _headers(self, scene: Scene) -> list[tuple[str, str]]:
        named = [(name, scene.named(value)) for name, value in self.headers]
        has_type = any(name.lower() == "content-type" for name, _ in named)
        return named if has_type or not (self.json or self.content) else [*JSON, *named]


def ill_answered(answer: httpx.Response) -> str:
    """What no answer may be, whatever was asked."""
    if answer.headers.get("x-content-type-options") != "nosniff":
        return "the answer's type may be guessed"
    if answer.status_code >= 400 and answer.headers["content-type"] != "application/problem+json":
        return f"a refusal that is no problem: {answer.text[:200]}"
    if answer.status_code >= 400 and "Traceback" in answer.text:
        return "a traceback"
    return HELD


@dataclass(frozen=True)
class Meddles:
    """What is ann's, by bob: he is told what he is told of what was never there, and it is as it was."""

    line: str
    json: Any = None

    async def through(self, scene: Scene) -> str:
        name = next(name for name in scene.names if f"<{name}>" in self.line + json.dumps(self.json))
        before = await scene.standing()
        hers, nobodys = [await self._ask(scene, {name: value}) for value in (scene.names[name], NOBODYS)]
        if hers.status_code != 404 or _text(hers, scene.names[name]) != _text(nobodys, NOBODYS):
            return (
                f"{hers.status_code}: {hers.text[:150]} where nobody's is {nobodys.status_code}: {nobodys.text[:150]}"
            )
        return HELD if await scene.standing() == before else "it was changed"

    async def _ask(self, scene: Scene, names: Mapping[str, str]) -> httpx.Response:
        body = None if self.json is None else scene.named(json.dumps(self.json), **names).encode()
        return await scene.ask("bob", scene.named(self.line, **names), body, JSON)


def _text(answer: httpx.Response, name: str) -> dict[str, Any]:
    """An answer but for its id, and the name that it was about."""
    said = json.loads(answer.text.replace(name, "<it>"))
    said.pop("debug_id", None)
    return said


@dataclass(frozen=True)
class Forges:
    """A token that was made as nobody should. It is sent to both services that know users."""

    header: Mapping[str, Any] | bytes = field(default_factory=dict[str, Any])
    claims: Mapping[str, Any] | bytes = field(default_factory=dict[str, Any])
    by: str = "us"  # whose key signs: us, a stranger, nobody, HS256 over what is public, …
    text: str | None = None  # the whole token, where it is none

    async def through(self, scene: Scene) -> str:
        token = self.text if self.text is not None else forged(scene.pair, self.header, self.claims, by=self.by)
        for path in ("/v1/jobs", "/v1/stream"):
            answer = await scene.ask(None, f"GET {path}", None, [("Authorization", f"Bearer {token}")])
            if answer.status_code != 401:
                return f"{answer.status_code} at {path}: {answer.text[:200]}"
            if len(token) > 20 and token in f"{answer.headers}{answer.text}":
                return "the token stands in the answer"
        return HELD


@dataclass(frozen=True)
class Sends:
    """Bytes, and the statuses of all that is answered. `<token>` is ann's."""

    raw: bytes
    gets: tuple[int, ...]
    door: str = "gateway"

    async def through(self, scene: Scene) -> str:
        raw = self.raw
        for name, who in ((b"<token>", "ann"), (b"<olga>", "olga")):
            raw = raw.replace(name, scene.company.token(who).encode())
        got = await statuses(scene.port(self.door), raw, most=len(self.gets))
        return HELD if got == self.gets else f"answered {got} in place of {self.gets}"


@dataclass(frozen=True)
class Says:
    """A message that is another's to send."""

    user: str
    subject: str

    async def through(self, scene: Scene) -> str:
        refused = await scene.refused_by_nats(self.user, publish=self.subject)
        return HELD if refused else f"NATS took it from {self.user}"


@dataclass(frozen=True)
class Hears:
    """A subject that is another's to hear."""

    user: str
    subject: str

    async def through(self, scene: Scene) -> str:
        refused = await scene.refused_by_nats(self.user, subscribe=self.subject)
        return HELD if refused else f"NATS lets {self.user} listen"


@dataclass(frozen=True)
class Commands:
    """A command of Valkey that is not this user's."""

    user: str
    words: tuple[str, ...]

    async def through(self, scene: Scene) -> str:
        refused = await scene.refused_by_valkey(self.user, self.words)
        return HELD if refused else f"Valkey did it for {self.user}"


@dataclass(frozen=True)
class Looks:
    """For a secret, where everybody or somebody else may read."""

    secret: str
    place: str

    async def through(self, scene: Scene) -> str:
        secret, written = scene.secrets[self.secret], await scene.written(self.place)
        assert len(secret) >= 8, secret
        assert written or self.place.startswith("log"), f"there is nothing: {self.place}"  # a log may be quiet
        return f"it stands in {self.place}" if secret.encode() in written else HELD


@dataclass(frozen=True)
class Pries:
    """What a job's command tries, by its name in `tests/hostile/prying.py`."""

    what: str
    network: bool = False

    async def through(self, scene: Scene) -> str:
        got = (await scene.tried_by_a_command(network=self.network))[self.what]
        return HELD if got in REFUSED | UNREACHED | {"ENOTSUP"} else f"it got {got}"


@dataclass(frozen=True)
class Shows:
    """A header of an answer that is yes: what it holds or never does; where neither is named it is not there."""

    line: str
    header: str
    says: str = ""
    never: str = ""
    who: str = "ann"
    headers: tuple[tuple[str, str], ...] = ()

    async def through(self, scene: Scene) -> str:
        answer = await scene.ask(self.who, scene.named(self.line), None, self.headers)
        got = answer.headers.get(self.header, "")
        held = self.says in got and self.never not in got if self.never else self.says in got
        held = held if self.says or self.never else not got
        return HELD if held and answer.status_code == 200 else f"{answer.status_code}, {self.header}: {got}"


@dataclass(frozen=True)
class Tries:
    """What takes more than one step: it gives what came through itself."""

    act: Callable[..., Awaitable[str]]
    told: tuple[Any, ...] = ()

    async def through(self, scene: Scene) -> str:
        return await self.act(scene, *self.told)

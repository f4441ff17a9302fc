"""The one installation that all rows are tried on: ann's jobs in every status, bob beside her, and all that is written.

Owns who is there, what their things are called, and how each door is asked. Refuses to judge: rows do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import redis.asyncio
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

from libs.runtime.eventually import eventually
from libs.runtime.keys import KeyPair, keep_keys
from tests.abuse.company import SECRETS, Company, settle
from tests.fixtures.clients import nats_client
from tests.fixtures.installation import Installation, installed
from tests.hostile.conftest import PLACES, Hostile

POLICY: Final = """
[tiers.partner]
cycles_per_batch = 1
[stream]
per_user = 3
[queue]
user_share = 20
[webhooks]
hosts = ["hooks.example"]
"""
JSON: Final = (("Content-Type", "application/json"),)
OF_ANN: Final = "<of ann>"  # any id of hers
SCRIPT: Final = (Path(__file__).parents[1] / "hostile" / "prying.py").read_text(encoding="utf-8")
LAST: Final = "nobody.may.say.this"
CLOSED: Final = ("permissions violation", "authorization violation")


@dataclass
class Scene:
    """Everybody and everything, by name."""

    there: Installation
    http: httpx.AsyncClient
    company: Company
    names: Mapping[str, str]
    secrets: dict[str, str]
    pried: dict[bool, dict[str, Any]] = field(default_factory=dict[bool, dict[str, Any]])

    @cached_property
    def pair(self) -> KeyPair:
        return keep_keys(self.there.state / "keys")

    @property
    def tokens(self) -> Mapping[str, str]:
        return self.company.tokens

    @cached_property
    def passwords(self) -> dict[str, str]:
        return json.loads((self.there.state / "passwords.json").read_text(encoding="utf-8"))

    def named(self, text: str, **others: str) -> str:
        told = {"token": self.company.token("ann"), "olga": self.company.token("olga"), "ticket": SECRETS["ticket"]}
        for name, value in {**told, **self.names, **others}.items():
            text = text.replace(f"<{name}>", value)
        return text

    def port(self, door: str) -> int:
        urls = {"gateway": self.there.up.url} | {each.name: each.url for each in self.there.up.services}
        return int(urls[door].rpartition(":")[2])

    async def ask(
        self, who: str | None, line: str, content: bytes | None = None, headers: Sequence[tuple[str, str]] = ()
    ) -> httpx.Response:
        """Its target as it stands. Somebody who is not known yet signs in with what users have."""
        method, _, target = line.partition(" ")
        signed = [] if who is None else [("Authorization", f"Bearer {self.company.token(who)}")]
        sent = [(name.encode(), value.encode()) for name, value in (*signed, *headers)]
        exact = {"target": target.encode()}
        return await self.http.request(method, "/", content=content, headers=sent, extensions=exact)

    def told_of_ann(self, text: str) -> str:
        """Which of her ids stand there."""
        ids = {name: value for name, value in self.names.items() if len(value) > 20}
        assert len(ids) > 5
        return ", ".join(f"it names ann's {name} job" for name, value in ids.items() if value in text)

    async def standing(self) -> list[tuple[str, str, str]]:
        """How ann's things stand that do not change by themselves."""
        kept = [name for name in self.names if name not in ("running", "group")]
        answers = [await self.ask("ann", f"GET /v1/jobs/{self.names[name]}") for name in kept]
        shown = [answer.json() for answer in answers if answer.status_code == 200]
        return [(each["id"], each["status"], each["priority"]) for each in shown]

    async def refused_by_nats(self, user: str, *, publish: str | None = None, subscribe: str | None = None) -> bool:
        """By the server's own words about this subject. It answers in order, so what it refuses last comes last."""
        complaints: list[str] = []

        async def complain(error: Exception) -> None:
            complaints.append(str(error).lower())

        async with nats_client(self.nats_url(user), error_cb=complain) as client:
            if publish is not None:
                await client.publish(publish, b"")
            if subscribe is not None:
                await client.subscribe(subscribe)
            await client.publish(LAST, b"")
            await eventually(lambda: any(LAST in complaint for complaint in complaints))
        subject = (publish or subscribe or "").lower()
        return any(f'"{subject}"' in complaint and CLOSED[0] in complaint for complaint in complaints)

    def nats_url(self, user: str) -> str:
        place = urlsplit(self.there.up.nats_url)
        return f"nats://{user}:{self.passwords[f'nats/{user}']}@{place.hostname}:{place.port}"

    async def refused_by_valkey(self, user: str, words: Sequence[str]) -> bool:
        place = urlsplit(self.there.up.redis_url)
        known = {"nobody": "", "default": "default:@", "somebody": "admission:guessed@"}
        signed = known.get(user) if user in known else f"{user}:{self.passwords[f'valkey/{user}']}@"
        try:
            async with redis.asyncio.from_url(f"redis://{signed}{place.hostname}:{place.port}/0") as client:
                await client.execute_command(*words)
        except (NoPermissionError, AuthenticationError):
            return True
        except ResponseError as fault:
            return any(word in str(fault) for word in ("NOAUTH", "WRONGPASS", "not allowed"))
        return False

    async def tried_by_a_command(self, *, network: bool) -> dict[str, Any]:
        """All of `tests/hostile/prying.py`, once, contained as a worker without special rights contains it."""
        if network not in self.pried:
            [place] = [place for place in PLACES if place.name == "plain-user"]
            ran = await asyncio.to_thread(Hostile(place, []).python, SCRIPT, network=network)
            assert (ran["ended_by"], ran["exit_code"]) == ("itself", 0), ran
            self.pried[network] = json.loads(ran["output_tail"])
        return self.pried[network]

    async def written(self, place: str) -> bytes:
        """All that stands there by now."""
        kind, _, name = place.partition(" of ")
        match kind:
            case "log":
                return b"".join(path.read_bytes() for path in self._logs(name))
            case "events":
                return b"".join(path.read_bytes() for path in (self.there.state / "nats").rglob("JOBS/msgs/*.blk"))
            case "metrics":
                return (await self.http.get(f"http://127.0.0.1:{self.port(name)}/metrics")).content
            case "command line":
                return _told(self.there.pid(name), "cmdline")
            case "environment":
                return _told(self.there.pid(name), "environ")
            case "answers":
                return b"\n".join([(await self.ask("ann", self.named(line))).content for line in TOLD])
            case "page":
                return b"\n".join([(await self.ask(None, line)).content for line in PUBLIC])
        raise LookupError(place)

    def _logs(self, name: str) -> list[Path]:
        state = self.there.state
        known = {
            "the command": state.parent / "up.log",
            "the gateway": state / "caddy" / "caddy.log",
            "requests": state / "caddy" / "requests.log",
            "NATS": state / "nats" / "nats.log",
            "Valkey": state / "valkey" / "valkey.log",
        }
        return [known[name]] if name in known else [state / "logs" / f"{name}.log"]


def _told(pid: int, file: str) -> bytes:
    return Path(f"/proc/{pid}/{file}").read_bytes()


TOLD: Final = tuple(
    f"GET /v1/{path}"
    for path in ("jobs", "jobs/<ready>", "jobs/<failed>/events", "jobs/<queued>/explain", "jobs/<ready>/log", "usage")
)
PUBLIC: Final = ("GET /", "GET /openapi.json", "GET /assets/js/main.js", "GET /assets/js/session.js")


@asynccontextmanager
async def a_scene(folder: Path, *, policy: str = POLICY) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(
            installed(
                folder, policy=policy, workers=1, slots=3, environ={"OPENAI_API_KEY": SECRETS["key of a provider"]}
            )
        )
        client = httpx.AsyncClient(base_url=there.up.url, timeout=60)
        company = Company(there)
        names = await settle(company)
        secrets = {**SECRETS, **_held(there), "token of ann": company.token("ann").rpartition(".")[2]}
        yield Scene(there, await stack.enter_async_context(client), company, names, secrets)


def _held(there: Installation) -> dict[str, str]:
    """What the state folder holds and nothing else may."""
    passwords: dict[str, str] = json.loads((there.state / "passwords.json").read_text(encoding="utf-8"))
    [[webhooks]] = json.loads((there.state / "webhooks.json").read_text(encoding="utf-8")).values()
    private = (there.state / "keys" / "private-key.pem").read_text(encoding="utf-8").splitlines()[1]
    up = there.up
    return {
        "private key": private,
        "secret of webhooks": webhooks,
        "operator's token": up.operator_token.rpartition(".")[2],
        "user's token": up.user_token.rpartition(".")[2],
        **{f"password of {name}": word for name, word in passwords.items()},
    }

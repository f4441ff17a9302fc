"""Who asks comes before what they bring: no byte of a body is asked for before its sender may send it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

import httpx
import pytest
import pytest_asyncio
from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict

from libs.runtime.app import create_app
from libs.runtime.auth import Identity, Principal, Tokens
from libs.runtime.bodies import THROWN_AWAY_BYTES, BodyLimit
from libs.runtime.clock import ManualClock
from libs.runtime.gate import Gate
from libs.runtime.guard import GuardedRoute
from libs.runtime.keysets import Keys
from libs.runtime.telemetry import Telemetry
from tests.fixtures.issuer import ED, SOURCE, TERMS, Issuer, claims

MIB = 1024 * 1024
JSON = {"Content-Type": "application/json"}
LIMITS = {"POST /jobs": BodyLimit(1000)}
Writer = Annotated[Principal, Depends(Identity("jobs:write"))]
Either = Annotated[Principal, Depends(Identity("jobs:read", "ops"))]


class Submission(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    project_id: str
    input: Any = None


class Route(GuardedRoute):
    limits = LIMITS


class Body:
    """Counts how often it is asked for a piece."""

    def __init__(self, piece: bytes = b"x" * 600) -> None:
        self.asked = 0
        self._piece = piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.asked += 1
            yield self._piece
            await asyncio.sleep(0)


@pytest_asyncio.fixture
async def client(clock: ManualClock) -> AsyncIterator[httpx.AsyncClient]:
    gate = Gate()
    app = create_app(
        "test",
        version="0",
        gate=gate,
        telemetry=Telemetry("test", instance="t-1", logs=None),
        tokens=Tokens(Keys([SOURCE], clock=clock, read=Issuer(ED).read), TERMS, clock=clock),
    )
    router = APIRouter(route_class=Route)

    @router.post("/jobs")
    async def submit(submission: Submission, who: Writer) -> str:
        return f"{who.user} {submission.project_id}"

    @router.post("/confirm")
    async def confirm(who: Writer) -> str:
        return who.user

    @router.get("/jobs")
    async def jobs(who: Either) -> str:
        return who.user

    app.include_router(router)
    await gate.start()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as made:
        yield made


def bearer(**changed: object) -> dict[str, str]:
    return {"Authorization": f"Bearer {ED.sign(claims(**changed))}"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer x.y.z"}, 401),
        (bearer(exp=1), 401),
        (bearer(scope="jobs:read"), 403),
        ({"Content-Length": "10000000"}, 401),
        (JSON, 401),
    ],
    ids=["no token", "no JWT", "expired", "no right", "announced", "JSON"],
)
@pytest.mark.parametrize("path", ["/jobs", "/confirm", "/jobs?unknown=1"])
async def test_of_nobody_who_may_not_send_it_a_byte_is_asked_for(
    client: httpx.AsyncClient, path: str, headers: Mapping[str, str], status: int
) -> None:
    body = Body()

    answer = await client.post(path, content=body, headers=headers)

    assert (answer.status_code, body.asked) == (status, 0)


async def test_no_body_is_parsed_before_its_sender_is_known(client: httpx.AsyncClient) -> None:
    for nonsense in (b"{", b"[" * 10_000, b'"\\ud800"', b"x" * 5000):
        assert (await client.post("/jobs", content=nonsense, headers=JSON)).status_code == 401


@pytest.mark.parametrize("announced", [{"Content-Length": "10000000"}, {}], ids=["announced", "in chunks"])
async def test_of_a_body_that_is_too_large_no_more_is_thrown_away_than_a_gateway_lets_through(
    client: httpx.AsyncClient, announced: Mapping[str, str]
) -> None:
    body = Body(b"x" * MIB)

    answer = await client.post("/jobs", content=body, headers={**bearer(), **announced})

    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-large")
    assert "1000 bytes" in answer.json()["detail"]
    assert body.asked == (THROWN_AWAY_BYTES // MIB) + (0 if announced else 1)  # which was read before it was too much


async def test_a_route_that_takes_no_body_reads_none(client: httpx.AsyncClient) -> None:
    body = Body()

    assert (await client.post("/confirm", content=body, headers=bearer())).json() == "u1"
    assert body.asked == 0


async def test_a_body_at_the_limit_is_read(client: httpx.AsyncClient) -> None:
    body = b'{"project_id": "%s"}' % (b"x" * 982)
    assert len(body) == 1000

    assert (await client.post("/jobs", content=body, headers=bearer() | JSON)).status_code == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [(b'{"input": ' + b"[" * 32, "more than 32 deep"), (b'{"project_id": "\\ud800"}', "half of a surrogate pair")],
)
async def test_what_no_parser_may_see_is_refused_in_words(client: httpx.AsyncClient, body: bytes, words: str) -> None:
    answer = await client.post("/jobs", content=body, headers=bearer() | JSON)

    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid")
    assert words in answer.json()["detail"]


async def test_a_body_nested_as_deep_as_may_be_is_read(client: httpx.AsyncClient) -> None:
    body = b'{"project_id": "shop", "input": ' + b"[" * 31 + b"]" * 31 + b"}"

    assert (await client.post("/jobs", content=body, headers=bearer() | JSON)).json() == "u1 shop"


async def test_a_slow_body_is_ended_and_its_connection_too(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("libs.runtime.bodies.LEAST_TIME_S", -1)

    answer = await client.post("/jobs", content=Body(b""), headers=bearer())

    assert (answer.status_code, answer.json()["type"]) == (408, "/problems/too-slow")
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("name", ["Idempotency-Key", "idempotency-key", "Authorization", "Content-Type", "Range"])
async def test_a_header_that_can_mean_one_thing_is_refused_twice(client: httpx.AsyncClient, name: str) -> None:
    twice = [(name, "application/json"), (name, "application/json"), *([] if "Auth" in name else bearer().items())]

    answer = await client.post("/jobs", json={"project_id": "shop"}, headers=twice)

    assert (answer.status_code, answer.json()["type"]) == (400, "/problems/header-twice")
    assert name.lower() in answer.json()["detail"].lower()


async def test_one_of_several_scopes_is_enough(client: httpx.AsyncClient) -> None:
    for scope, status in (("ops", 200), ("jobs:read", 200), ("jobs:write", 403), ("", 403)):
        assert (await client.get("/jobs", headers=bearer(scope=scope))).status_code == status


def test_a_route_with_a_body_says_how_much_it_takes() -> None:
    router = APIRouter(route_class=Route)

    async def move(submission: Submission) -> None: ...

    with pytest.raises(LookupError, match=r"POST /move takes a body: say in Route\.limits how much"):
        router.post("/move")(move)

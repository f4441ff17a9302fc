"""Every refusal has the same shape, names what is wrong, and shows nothing of what is inside."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx
import pytest
import pytest_asyncio
from fastapi import Depends, FastAPI, HTTPException, Query
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel, ConfigDict

from libs.runtime.app import create_app
from libs.runtime.auth import Identity, Principal, Tokens
from libs.runtime.bodies import BodyLimit
from libs.runtime.clock import ManualClock
from libs.runtime.gate import Gate
from libs.runtime.guard import GuardedRoute
from libs.runtime.keys import KeyPair, jwks
from libs.runtime.keysets import Keys
from libs.runtime.problems import MEDIA_TYPE, Problem
from libs.runtime.telemetry import Telemetry
from tests.fixtures.issuer import LOCAL_TERMS, NOW_S

PAIR = KeyPair.generate()
CLAIMS = {"sub": "u1", "tier": "partner", "scope": "jobs:read", "iss": "headgate", "aud": "headgate", "exp": NOW_S + 60}
LIMITS = {"POST /jobs": BodyLimit(10_000)}
TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"


class Group(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    limit: int = 1


class Submission(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    project_id: str
    groups: list[Group] = []


class StoreAway(Exception):
    """The store does not answer."""


class StoreSlow(StoreAway):
    """The store answers too late."""


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def gate() -> Gate:
    return Gate(opens_within_s=0.1)


@pytest.fixture
def app(exporter: InMemorySpanExporter, gate: Gate, clock: ManualClock) -> FastAPI:
    async def read(source: str) -> bytes:
        if source == "away":
            raise OSError("nobody listens")
        return jwks(PAIR)

    made = create_app(
        "test",
        version="1.2.3",
        gate=gate,
        telemetry=Telemetry("test", instance="t-1", logs=None, span_processors=(SimpleSpanProcessor(exporter),)),
        tokens=Tokens(Keys(["file", "away"], clock=clock, read=read), LOCAL_TERMS, clock=clock),
        faults={StoreAway: lambda _: Problem(status=503, slug="away", title="Away", detail="Later.", retry_after_s=7)},
    )
    add_routes(made)
    return made


class Route(GuardedRoute):
    limits = LIMITS


def add_routes(app: FastAPI) -> None:
    app.router.route_class = Route

    @app.post("/jobs")
    async def submit(submission: Submission, limit: Annotated[int, Query(le=9)] = 1) -> dict[str, int]:
        return {"groups": len(submission.groups)}

    @app.get("/jobs")
    async def jobs(who: Annotated[Principal, Depends(Identity("jobs:read"))]) -> str:
        return who.user

    @app.get("/queue")
    async def queue(who: Annotated[Principal, Depends(Identity("ops"))]) -> str:
        return who.user

    @app.get("/fault/{kind}")
    async def fault(kind: str) -> None:
        raise {
            "away": StoreAway(),
            "slow": StoreSlow(),
            "teapot": HTTPException(418, "no coffee", headers={"X-Pot": "short"}),
            "bug": RuntimeError("password=hunter2 at /srv/headgate"),
        }[kind]


@pytest_asyncio.fixture
async def client(app: FastAPI, gate: Gate) -> AsyncIterator[httpx.AsyncClient]:
    await gate.start()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as made:
        yield made


def problem(response: httpx.Response) -> dict[str, Any]:
    """The body, after what holds for every problem was checked."""
    body = response.json()
    assert response.headers["content-type"] == MEDIA_TYPE
    assert body["status"] == response.status_code
    assert body["type"].startswith("/problems/")
    assert body["title"]
    assert body["detail"]
    assert len(body["debug_id"]) == 32
    return body


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["project_id"]),
        ({"project_id": 7}, ["project_id"]),
        ({"project_id": "shop", "colour": "red"}, ["colour"]),
        ({"project_id": "shop", "groups": {}}, ["groups"]),
        ({"project_id": "shop", "groups": [{"name": "a"}, {"name": "b", "limit": "2"}]}, ["groups.1.limit"]),
        ({"project_id": None, "colour": 1, "shape": 2}, ["project_id", "colour", "shape"]),
        ([], [""]),
        ("{", [""]),
    ],
)
async def test_a_body_that_does_not_fit_is_refused_by_the_names_of_its_fields(
    client: httpx.AsyncClient, body: object, fields: list[str]
) -> None:
    sent: dict[str, Any] = (
        {"content": body, "headers": {"Content-Type": "application/json"}} if isinstance(body, str) else {"json": body}
    )

    refused = problem(await client.post("/jobs", **sent))

    assert refused["type"] == "/problems/invalid"
    assert refused["status"] == 422
    assert [error["field"] for error in refused["errors"]] == fields
    assert all((field or "body") in refused["detail"] for field in fields)


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", None])
async def test_a_body_that_is_not_said_to_be_json_is_told_the_header(
    client: httpx.AsyncClient, kind: str | None
) -> None:
    headers = {} if kind is None else {"Content-Type": kind}

    refused = problem(await client.post("/jobs", content='{"project_id": "shop"}', headers=headers))

    assert [(error["in"], error["field"]) for error in refused["errors"]] == [("header", "Content-Type")]
    assert "Content-Type: application/json" in refused["detail"]


async def test_a_parameter_that_does_not_fit_is_named_too(client: httpx.AsyncClient) -> None:
    refused = problem(await client.post("/jobs?limit=10", json={"project_id": "shop"}))

    assert [(error["in"], error["field"]) for error in refused["errors"]] == [("query", "limit")]


async def test_what_was_sent_is_not_repeated(client: httpx.AsyncClient) -> None:
    response = await client.post("/jobs", json={"project_id": {"password": "hunter2"}})

    assert problem(response)["status"] == 422
    assert "hunter2" not in response.text


async def test_a_body_that_is_wrong_in_many_places_gets_a_short_answer(client: httpx.AsyncClient) -> None:
    response = await client.post("/jobs", json={"project_id": "x", **{f"f{n}": 1 for n in range(90)}})

    assert len(problem(response)["errors"]) == 20


async def test_paths_and_methods_that_do_not_exist_are_problems(client: httpx.AsyncClient) -> None:
    missing, refused = await client.get("/nowhere"), await client.delete("/jobs")

    assert (problem(missing)["status"], problem(refused)["status"]) == (404, 405)
    assert "/openapi.json" in problem(missing)["detail"]
    assert "Allow" in problem(refused)["detail"]
    assert refused.headers["allow"]


async def test_the_headers_of_an_exception_are_passed_on(client: httpx.AsyncClient) -> None:
    response = await client.get("/fault/teapot")

    assert (problem(response)["detail"], response.headers["x-pot"]) == ("no coffee", "short")


@pytest.mark.parametrize("kind", ["away", "slow"])
async def test_a_services_own_faults_are_answered_by_its_table(client: httpx.AsyncClient, kind: str) -> None:
    response = await client.get(f"/fault/{kind}")

    assert (problem(response)["type"], response.headers["retry-after"]) == ("/problems/away", "7")


async def test_a_bug_is_logged_in_full_and_shown_as_an_id(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    response = await client.get("/fault/bug", headers={"traceparent": TRACEPARENT})

    assert (problem(response)["status"], problem(response)["debug_id"]) == (500, TRACE)
    assert "hunter2" not in response.text
    [record] = [record for record in caplog.records if record.name == "libs.runtime.faults"]
    assert vars(record)["debug_id"] == TRACE
    assert "RuntimeError: password" in caplog.text


async def test_the_debug_id_is_the_trace_of_the_request(
    client: httpx.AsyncClient, exporter: InMemorySpanExporter
) -> None:
    refused = problem(await client.get("/nowhere"))

    [span] = exporter.get_finished_spans()
    assert span.context is not None
    assert refused["debug_id"] == f"{span.context.trace_id:032x}"


async def test_the_trace_of_the_caller_is_continued(client: httpx.AsyncClient, exporter: InMemorySpanExporter) -> None:
    await client.post("/jobs?limit=2", json={"project_id": "shop"}, headers={"traceparent": TRACEPARENT})

    [span] = exporter.get_finished_spans()
    assert (span.name, span.attributes and span.attributes["http.route"]) == ("POST /jobs", "/jobs")
    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}-{span.parent.span_id:016x}" == TRACEPARENT[3:-3]


# --- who asks ---


def bearer(**changed: object) -> dict[str, str]:
    return {"Authorization": f"Bearer {PAIR.sign({**CLAIMS, **changed})}"}


async def test_a_good_token_is_let_in(client: httpx.AsyncClient) -> None:
    assert (await client.get("/jobs", headers=bearer())).json() == "u1"


async def test_without_a_token_one_is_asked_for(client: httpx.AsyncClient) -> None:
    for headers in ({}, {"Authorization": "Basic dTpw"}, {"Authorization": "Bearer"}):
        response = await client.get("/jobs", headers=headers)

        assert problem(response)["status"] == 401
        assert response.headers["www-authenticate"] == 'Bearer realm="headgate"'


async def test_a_bad_token_is_refused_with_the_reason(client: httpx.AsyncClient) -> None:
    response = await client.get("/jobs", headers=bearer(exp=1))

    assert problem(response)["detail"].startswith("The token has expired.")
    assert response.headers["www-authenticate"] == (
        'Bearer realm="headgate", error="invalid_token", error_description="The token has expired"'
    )


async def test_a_token_without_the_scope_is_told_which(client: httpx.AsyncClient) -> None:
    response = await client.get("/queue", headers=bearer())

    assert (problem(response)["status"], problem(response)["type"]) == (403, "/problems/forbidden")
    assert response.headers["www-authenticate"] == ('Bearer realm="headgate", error="insufficient_scope", scope="ops"')


async def test_a_token_that_nobody_can_judge_now_is_told_to_come_again(client: httpx.AsyncClient) -> None:
    response = await client.get("/jobs", headers={"Authorization": f"Bearer {KeyPair.generate().sign(CLAIMS)}"})

    assert (problem(response)["status"], response.headers["retry-after"]) == (503, "1")


# --- the application around it ---


async def test_the_document_says_which_shape_refusals_have(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()

    assert document["openapi"].startswith("3.1")
    assert (document["info"]["title"], document["info"]["version"]) == ("Headgate test", "1.2.3")
    for operation in (document["paths"]["/jobs"]["post"], document["paths"]["/queue"]["get"]):
        assert operation["responses"].keys() == {"200", "default"}  # and no 422 of another shape
        assert operation["responses"]["default"]["content"].keys() == {MEDIA_TYPE}
    assert "debug_id" in document["components"]["schemas"]["Problem"]["required"]
    assert document["components"]["securitySchemes"]["HTTPBearer"]["bearerFormat"] == "JWT"
    assert not {"/livez", "/readyz", "/metrics"} & document["paths"].keys()

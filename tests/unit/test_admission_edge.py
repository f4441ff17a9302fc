"""Every route of admission asks who before what, takes as much as its table says, and answers for its asker alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from headgate_contracts.commands import TicketRedeemed
from libs.runtime.bodies import MAX_DEPTH
from services.admission.bodies import BODIES, AdmissionRoute
from services.admission.openapi import routers
from tests.fixtures.admission_api import JOB, AdmissionApi, refused, submitted
from tests.fixtures.memory_admission import MemoryAdmission

DEEP = 952  # as deep as Python 3.11 reads and no longer writes


@pytest.fixture
def api(admission: MemoryAdmission) -> AdmissionApi:
    return AdmissionApi(admission)


def routes() -> Iterator[AdmissionRoute]:
    for router in routers():
        for route in router.routes:
            assert isinstance(route, AdmissionRoute)
            yield route


OPERATIONS = [(method, route.path) for route in routes() for method in route.methods or ()]


def url_of(path: str) -> str:
    return re.sub(r"\{.*?\}", "x", path)


class Untouched:
    """A body that nobody may ask for."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        raise AssertionError("a byte of the body was asked for")
        yield b""


def test_the_table_names_the_routes_with_bodies_and_no_other() -> None:
    taking = {f"{method} {route.path}" for route in routes() if route.body_field for method in route.methods or ()}

    assert BODIES.keys() == taking


async def test_no_byte_of_a_body_is_asked_for_before_its_sender_is_known(api: AdmissionApi) -> None:
    async with api.anonymous() as nobody, api.client(ttl_s=-60) as late, api.client(scope="none") as powerless:
        answers = {
            f"{method} {path}": [
                (await client.request(method, url_of(path), content=Untouched())).status_code
                for client in (nobody, late, powerless)
            ]
            for method, path in OPERATIONS
        }

    assert len(answers) > 25
    assert answers == {key: [401, 401, 403] for key in answers}


async def test_one_byte_more_than_the_table_says_is_too_much(api: AdmissionApi) -> None:
    async with api.client("olga", scope="jobs:read jobs:write leases ops") as olga:
        for operation, limit in BODIES.items():
            method, path = operation.split(" ")
            more = await olga.request(method, url_of(path), content=b" " * (limit.limit_bytes + 1))
            as_much = await olga.request(method, url_of(path), content=b" " * limit.limit_bytes)

            assert f"{limit.limit_bytes} bytes" in refused(more, 413, "too-large")["detail"]
            assert as_much.status_code != 413


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/batch", "/v1/workflows"])
async def test_what_is_nested_too_deep_is_refused_wherever_work_comes_in(api: AdmissionApi, path: str) -> None:
    deep = '{"a":' * DEEP + "1" + "}" * DEEP
    orders = {
        "/v1/jobs": f'{{"project_id": "shop", "input": {deep}}}',
        "/v1/jobs/batch": f'{{"jobs": [{{"project_id": "shop", "input": {deep}}}]}}',
        "/v1/workflows": f'{{"project_id": "shop", "phases": [{{"input": {deep}}}]}}',
    }
    async with api.client() as ann:
        answer = await ann.post(path, content=orders[path], headers={"Content-Type": "application/json"})

    assert f"{MAX_DEPTH} deep" in refused(answer, 422, "invalid")["detail"]


async def test_two_keys_of_one_request_are_refused(api: AdmissionApi, admission: MemoryAdmission) -> None:
    twice = [("Idempotency-Key", "abc"), ("Idempotency-Key", "def")]
    async with api.client() as ann:
        answers = [await ann.post(path, json=JOB, headers=twice) for path in ("/v1/jobs", "/v1/jobs/x/retry")]

    for answer in answers:
        refused(answer, 400, "header-twice")
    assert (await admission.log.mark()).seq == 0


async def test_an_operator_takes_a_token_back_once(api: AdmissionApi, admission: MemoryAdmission) -> None:
    async with api.client("olga", scope="ops") as olga, api.client(token_id="lost") as ann:
        before = await ann.get("/v1/jobs")
        first = await olga.post("/v1/tokens/revoke", json={"jti": "lost", "reason": "a laptop"})
        again = await olga.post("/v1/tokens/revoke", json={"jti": "lost"})
        after = await ann.get("/v1/jobs")
        audit = (await olga.get("/v1/audit", params={"since": "2026-01-01T00:00:00Z"})).json()

    assert (before.status_code, first.json()["changed"], again.json()["changed"]) == (200, True, False)
    assert first.json()["until"] == again.json()["until"] == "2027-02-14T08:00:00Z"
    assert "taken back" in refused(after, 401, "unauthorized")["detail"]
    assert [(each["act"], each["by"], each["about"], each["reason"]) for each in audit] == [
        ("token_revoked", "olga", "lost", "a laptop")
    ]
    assert (await admission.log.mark()).seq == 1


@pytest.mark.parametrize("jti", ["", "a b", "x" * 257, "é", 7, None])
async def test_what_no_token_can_have_is_not_taken_back(
    api: AdmissionApi, admission: MemoryAdmission, jti: object
) -> None:
    async with api.client("olga", scope="ops") as olga:
        answer = await olga.post("/v1/tokens/revoke", json={"jti": jti})

    assert refused(answer, 422, "invalid")["errors"][0]["field"] == "jti"
    assert (await admission.log.mark()).seq == 0


async def test_nobody_else_takes_a_token_back(api: AdmissionApi) -> None:
    async with api.client() as ann:
        refused(await ann.post("/v1/tokens/revoke", json={"jti": "lost"}), 403, "forbidden")


@pytest.mark.parametrize("moment", ["0.5", "1700000000", "NaN", "2026-01-01T00:00:00"])
async def test_a_moment_is_a_date_with_its_zone_and_no_number(
    api: AdmissionApi, admission: MemoryAdmission, moment: str
) -> None:
    async with api.client("olga", scope="jobs:write ops") as olga:
        audit = await olga.get("/v1/audit", params={"since": moment})
        texts = await olga.post("/v1/jobs", json={**JOB, "run_at": moment})
        number = await olga.post("/v1/jobs", json={**JOB, "run_at": 1_700_000_000.5})

    fields = [refused(answer, 422, "invalid")["errors"][0]["field"] for answer in (audit, texts, number)]
    assert fields == ["since", "run_at", "run_at"]
    assert (await admission.log.mark()).seq == 0


@pytest.mark.parametrize(
    ("method", "path", "takes"),
    [
        ("DELETE", "/v1/jobs", "GET, POST"),
        ("PUT", "/v1/jobs/x", "GET, PATCH"),
        ("POST", "/v1/concurrency/db", "GET, PUT, DELETE"),
        ("GET", "/v1/queue/move", "POST"),
    ],
)
async def test_a_method_that_is_not_taken_is_told_all_that_are(
    api: AdmissionApi, method: str, path: str, takes: str
) -> None:
    async with api.client() as ann:
        answer = await ann.request(method, path)

    refused(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == takes


async def test_a_ticket_says_for_which_token_it_was_given(api: AdmissionApi, admission: MemoryAdmission) -> None:
    async with api.client(token_id="lost") as ann:
        given = (await ann.post("/v1/stream-tickets")).json()

    kept = await admission.view.take_ticket(hashlib.sha256(given["ticket"].encode()).hexdigest())
    assert TicketRedeemed.model_validate_json(kept or "").token_id == "lost"


async def test_whoever_has_as_many_tickets_as_a_user_may_is_told_when_there_is_one_more() -> None:
    admission = MemoryAdmission(stream={"tickets_per_user": 2})
    api = AdmissionApi(admission)
    async with api.client() as ann, api.client("bob") as bob:
        given = [(await ann.post("/v1/stream-tickets")).status_code for _ in range(2)]
        await admission.clock.advance_ms(10_000)
        answer, others = await ann.post("/v1/stream-tickets"), await bob.post("/v1/stream-tickets")

    refused(answer, 429, "tickets")
    assert (given, answer.headers["retry-after"], others.status_code) == ([201, 201], "20", 201)


async def test_no_answer_is_kept_by_others_or_taken_for_what_it_is_not(api: AdmissionApi) -> None:
    async with api.client() as ann, api.anonymous() as nobody:
        job = await submitted(ann)
        answers = [
            await ann.get(f"/v1/jobs/{job['id']}"),
            await ann.get(f"/v1/jobs/{job['id']}/result"),
            await ann.post("/v1/stream-tickets"),
            await nobody.get("/v1/jobs"),
            await nobody.get("/nowhere"),
            await nobody.get("/openapi.json"),
        ]

    assert [answer.status_code for answer in answers] == [200, 409, 201, 401, 404, 200]
    for answer in answers:
        assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
        assert answer.headers.get_list("cache-control") == ["no-store"]


@pytest.mark.parametrize("path", ["/v1/jobs/", "/v1/queue/", "/openapi.json/", "/livez/"])
async def test_no_answer_sends_its_client_to_the_host_it_named(api: AdmissionApi, path: str) -> None:
    async with api.client() as ann:
        answer = await ann.get(path, headers={"Host": "evil.example"})

    refused(answer, 404, "not-found")
    assert "evil" not in f"{answer.headers} {answer.text}"


async def test_where_something_is_found_follows_no_host(api: AdmissionApi) -> None:
    async with api.client() as ann:
        told: list[Any] = [await ann.post("/v1/jobs", json=JOB, headers={"Host": "evil.example"}) for _ in range(2)]
        told.append(await ann.get("/v1/jobs", params={"limit": 1}, headers={"Host": "evil.example"}))

    assert told[0].headers["location"].startswith("/v1/jobs/")
    assert told[-1].headers["link"].startswith("</v1/jobs?")
    assert not any("evil" in f"{answer.headers} {answer.text}" for answer in told)

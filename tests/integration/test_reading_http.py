"""What the running system tells over HTTP, and to whom: two users who must not see each other, and an operator."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import httpx
import pytest
import pytest_asyncio

from headgate_contracts import Tier
from headgate_contracts.tokens import foreign_token
from libs.runtime.eventually import eventually
from tests.fixtures.installation import Installation, installed

OPS: Final = "jobs:read jobs:write ops"
QUICK: Final = {"stages": {"scaffold": 0, "code": 0, "deps": 0, "checks": 0}, "log_lines": 3}
LONG: Final = {"stages": {"code": 600}}
STRANGE: Final = "eve@example.com/x:y"  # nothing of it may stand in a subject as it is
SignedIn = Callable[[str], httpx.AsyncClient]


@pytest_asyncio.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installed(tmp_path_factory.mktemp("reading"), workers=1, slots=8) as there:
        yield there


@pytest_asyncio.fixture
async def signed_in(system: Installation) -> AsyncIterator[SignedIn]:
    """A client for each user that is asked for. `ops` is the operator."""
    async with AsyncExitStack() as stack:
        clients: dict[str, httpx.AsyncClient] = {}
        for user in ("ops", "ann", "bob", STRANGE):
            scope = OPS if user == "ops" else "jobs:read jobs:write"
            client = system.client(user, Tier.PARTNER, scope=scope, projects=["shared"])
            clients[user] = await stack.enter_async_context(client)
        yield clients.__getitem__
        await asyncio.gather(*(ended(clients[user]) for user in ("ann", "bob", STRANGE)))


@pytest.fixture
def ann(signed_in: SignedIn) -> httpx.AsyncClient:
    return signed_in("ann")


@pytest.fixture
def bob(signed_in: SignedIn) -> httpx.AsyncClient:
    return signed_in("bob")


@pytest.fixture
def ops(signed_in: SignedIn) -> httpx.AsyncClient:
    return signed_in("ops")


async def ended(client: httpx.AsyncClient) -> None:
    """The next test finds its users' slots free."""
    for job in (await client.get("/jobs", params={"limit": 100})).json():
        if job["status"] not in ("ready", "failed", "cancelled"):
            await client.post(f"/jobs/{job['id']}/cancel")
            await until(client, job["id"], "cancelled", "ready")


async def submitted(client: httpx.AsyncClient, work: dict[str, Any] = QUICK, **more: Any) -> str:
    body = {"project_id": "shop", "pipeline": "rehearsal", "input": work, **more}
    answer = await client.post("/jobs", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


async def until(client: httpx.AsyncClient, job_id: str, *statuses: str) -> dict[str, Any]:
    async def reached() -> bool:
        return (await client.get(f"/jobs/{job_id}")).json()["status"] in statuses

    await eventually(reached, every_s=0.1)
    return (await client.get(f"/jobs/{job_id}")).json()


async def paused(ops: httpx.AsyncClient, scope: str) -> None:
    answer = await ops.post("/queue/pause", json={"scope": scope, "reason": "a test"})
    assert answer.status_code == 200, answer.text


def problem(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.json()["detail"]


# ── lists ─────────────────────────────────────────────────────────────────────


async def test_own_jobs_are_listed_newest_first_and_the_next_page_is_linked(
    ann: httpx.AsyncClient, bob: httpx.AsyncClient
) -> None:
    mine = [await submitted(ann, project_id="lists") for _ in range(3)]
    theirs = await submitted(bob, project_id="lists")
    await until(bob, theirs, "ready")

    first = await ann.get("/jobs", params={"project": "lists", "limit": 2})
    second = await ann.get(first.links["next"]["url"].removeprefix("/v1"))

    assert [job["id"] for job in first.json() + second.json()] == mine[::-1]
    assert "next" not in second.links
    assert theirs not in (first.text + second.text)


async def test_a_list_is_filtered(ann: httpx.AsyncClient) -> None:
    done = await submitted(ann, project_id="filters")
    await until(ann, done, "ready")
    running = await submitted(ann, LONG, project_id="filters")
    await until(ann, running, "code")

    async def listed(*status: str) -> list[str]:
        answer = await ann.get("/jobs", params={"project": "filters", "status": list(status)})
        return [job["id"] for job in answer.json()]

    assert await listed("ready") == [done]
    assert await listed("code") == [running]
    assert await listed("ready", "code") == [running, done]


async def test_a_cursor_means_nothing_in_another_list(ann: httpx.AsyncClient, bob: httpx.AsyncClient) -> None:
    for _ in range(2):
        await submitted(ann)
    cursor = httpx.URL((await ann.get("/jobs", params={"limit": 1})).links["next"]["url"]).params["cursor"]

    of_another = await bob.get("/jobs", params={"limit": 1, "cursor": cursor})
    of_another_filter = await ann.get("/jobs", params={"status": "ready", "cursor": cursor})

    for answer in (of_another, of_another_filter):
        assert "another" not in problem(answer, 422)
        assert answer.json()["errors"][0]["field"] == "cursor"


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=101", "limit=x", "status=gone", "cursor=x", "workflow=a.b", "project=", "colour=red"],
)
async def test_a_list_with_a_bad_parameter_names_it(ann: httpx.AsyncClient, query: str) -> None:
    assert query.partition("=")[0] in problem(await ann.get(f"/jobs?{query}"), 422)


# ── why a job waits ───────────────────────────────────────────────────────────


async def test_a_job_says_who_holds_its_slots_and_what_would_let_it_run(
    ann: httpx.AsyncClient, bob: httpx.AsyncClient
) -> None:
    running = [await submitted(ann, LONG, project_id=f"why-{number}") for number in range(3)]
    for job_id in running:
        await until(ann, job_id, "code")
    waiting = await submitted(ann, project_id="why-3")

    async def told() -> list[dict[str, Any]]:
        return (await ann.get(f"/jobs/{waiting}/explain")).json()["waiting_on"]

    async def full() -> bool:
        return [each["reason"] for each in await told()] == ["user_limit"]

    await eventually(full)
    [reason] = await told()
    explained = (await ann.get(f"/jobs/{waiting}/explain")).json()
    assert (reason["limit"], reason["active"], sorted(reason["jobs"])) == (3, 3, sorted(running))
    assert explained["queue"]["position"] == 1
    assert explained["would_run"][0].startswith("One of these jobs ends or is cancelled (yours: ")
    problem(await bob.get(f"/jobs/{waiting}/explain"), 404)
    newest = (await ann.get(f"/jobs/{waiting}/waits")).json()["waits"][-1]
    assert (newest["reason"], newest["limit"], newest["until"]) == ("user_limit", 3, None)
    problem(await bob.get(f"/jobs/{waiting}/waits"), 404)


async def test_of_another_users_jobs_only_the_number_is_told(ann: httpx.AsyncClient, bob: httpx.AsyncClient) -> None:
    theirs = [await submitted(bob, LONG, project_id="shared") for _ in range(3)]
    for job_id in theirs:
        await until(bob, job_id, "code")
    mine = await submitted(ann, project_id="shared")

    async def told() -> bool:
        return "project_limit" in (await ann.get(f"/jobs/{mine}/explain")).text

    await eventually(told)
    explained = await ann.get(f"/jobs/{mine}/explain")
    [reason] = explained.json()["waiting_on"]
    assert (reason["active"], reason["jobs"]) == (3, [])
    assert not [job_id for job_id in theirs if job_id in explained.text]
    assert "bob" not in explained.text + (await ann.get(f"/jobs/{mine}/waits")).text


async def test_a_paused_job_says_who_paused_it_and_why(ann: httpx.AsyncClient, ops: httpx.AsyncClient) -> None:
    await paused(ops, "user:ann")
    job_id = await submitted(ann)

    async def told() -> bool:
        return "paused" in [each["reason"] for each in (await ann.get(f"/jobs/{job_id}")).json()["waiting_on"]]

    await eventually(told)
    explained = (await ann.get(f"/jobs/{job_id}/explain")).json()
    await ops.post("/queue/resume", json={"scope": "user:ann"})

    assert explained["waiting_on"][0]["by"] == "ops"
    assert explained["waiting_on"][0]["message"] == "Your jobs are paused by ops: a test"
    assert explained["would_run"][0] == "ops, or another operator, resumes your jobs"
    await until(ann, job_id, "ready")


async def test_the_usage_is_told_by_itself(ann: httpx.AsyncClient) -> None:
    before = (await ann.get("/usage")).json()
    job_id = await submitted(ann)
    await until(ann, job_id, "ready")

    after = (await ann.get("/usage")).json()

    assert after["jobs_used"] == before["jobs_used"] + 1
    assert after["jobs_used"] + after["jobs_remaining"] == 50
    assert after == (await ann.get(f"/jobs/{job_id}")).json()["usage"] | {
        "iterations_used": 0,
        "iterations_remaining": 9,
    }


# ── the queue ─────────────────────────────────────────────────────────────────


async def test_an_operator_sees_the_queue_and_a_user_only_their_place_in_it(
    ann: httpx.AsyncClient, bob: httpx.AsyncClient, ops: httpx.AsyncClient
) -> None:
    for scope in ("user:ann", "user:bob"):
        await paused(ops, scope)
    mine, theirs = await submitted(ann, labels={"team": "a"}), await submitted(bob)

    async def both() -> bool:
        return len((await ops.get("/queue")).json()["jobs"]) == 2

    await eventually(both)
    whole, own = (await ops.get("/queue")).json(), (await ann.get("/queue")).json()
    for scope in ("user:ann", "user:bob"):
        await ops.post("/queue/resume", json={"scope": scope})

    assert [(line["job_id"], line["user_id"]) for line in whole["jobs"]] == [(mine, "ann"), (theirs, "bob")]
    assert whole["jobs"][0]["labels"] == {"team": "a"}
    assert (own["length"], own["jobs"], [each["job_id"] for each in own["own"]]) == (2, None, [mine])
    assert [each["scope"] for each in own["paused"]] == ["user:ann"]
    assert theirs not in json.dumps(own)
    for job_id, client in ((mine, ann), (theirs, bob)):
        await until(client, job_id, "ready")


async def test_pausing_twice_and_resuming_twice_change_nothing_the_second_time(ops: httpx.AsyncClient) -> None:
    body = {"scope": "user:nobody", "reason": "twice"}

    answers = [(await ops.post(f"/queue/{verb}", json=body)).json() for verb in ("pause", "pause", "resume", "resume")]

    assert [answer["changed"] for answer in answers] == [True, False, True, False]
    assert answers[1]["message"].startswith("it is paused already, by ops since ")
    assert [each["scope"] for each in answers[0]["paused"]] == ["user:nobody"]
    assert answers[3]["paused"] == []


async def test_a_user_is_paused_by_the_id_that_they_sign_in_with(signed_in: SignedIn, ops: httpx.AsyncClient) -> None:
    client, mapped = signed_in(STRANGE), foreign_token(STRANGE)
    answer = await ops.post("/queue/pause", json={"scope": f"user:{STRANGE}"})
    job_id = await submitted(client)

    async def told() -> bool:
        return "paused" in [each["reason"] for each in (await client.get(f"/jobs/{job_id}")).json()["waiting_on"]]

    assert answer.json()["scope"] == f"user:{mapped}"
    await eventually(told)
    group = (await ops.get(f"/concurrency/{quote(f'user:{STRANGE}', safe='')}")).json()
    await ops.post("/queue/resume", json={"scope": f"user:{STRANGE}"})
    assert group["group"] == f"user:{mapped}"
    await until(client, job_id, "ready")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/queue/analytics", None),
        ("POST", "/queue/pause", {"scope": "all"}),
        ("POST", "/queue/resume", {"scope": "all"}),
        ("GET", "/concurrency", None),
        ("GET", "/concurrency/user:ann", None),
        ("PUT", "/concurrency/user:ann", {"limit": 100}),
        ("DELETE", "/concurrency/user:ann", None),
        ("DELETE", "/concurrency/user:ann/leases/x:1", None),
        ("GET", "/workers", None),
        ("GET", "/audit", None),
        ("DELETE", "/users/bob/content", None),
        ("DELETE", "/users/ann/content", None),
    ],
)
async def test_what_is_the_operators_is_refused_to_users(
    ann: httpx.AsyncClient, ops: httpx.AsyncClient, method: str, path: str, body: dict[str, Any] | None
) -> None:
    before = len((await ops.get("/audit")).json())

    said = problem(await ann.request(method, path, json=body), 403)

    assert "lacks the scope ops" in said
    assert len((await ops.get("/audit")).json()) == before


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/queue/pause", {"scope": "everything"}, 422),
        ("POST", "/queue/pause", {"scope": "user:"}, 422),
        ("POST", "/queue/pause", {"scope": "priority:top"}, 422),
        ("POST", "/queue/pause", {"scope": "workflow:a.b"}, 422),
        ("POST", "/queue/pause", {"scope": "all", "until": "noon"}, 422),
        ("POST", "/queue/pause", {"scope": "all", "reason": "x" * 501}, 422),
        ("POST", "/queue/pause", {}, 422),
        ("PUT", "/concurrency/workflows", {"limit": 0}, 422),
        ("PUT", "/concurrency/workflows", {"limit": 2.5}, 422),
        ("PUT", "/concurrency/workflows", {}, 422),
        ("PUT", "/concurrency/No%20Group", {"limit": 1}, 422),
        ("PUT", "/concurrency/pool:default", {"limit": 1}, 409),
        ("GET", "/concurrency/a:b:c:d:e", None, 422),
        ("GET", "/concurrency/nonsense:x", None, 404),
        ("POST", "/queue/pause", {"scope": "pool:no-such"}, 422),
        ("DELETE", "/concurrency/workflows/leases/nobody:1", None, 404),
        ("PUT", "/concurrency/group:no:such", {"limit": 1}, 404),
        ("PUT", "/concurrency/user:nobody-of-that-name", {"limit": 1}, 404),
        ("PUT", "/concurrency/llm:opennai", {"limit": 1}, 404),
        ("DELETE", "/concurrency/llm:opennai", None, 404),
        ("DELETE", "/concurrency/No%20Group", None, 422),
        ("DELETE", "/users/nobody/content", None, 404),
        ("GET", "/audit?since=yesterday", None, 422),
        ("GET", "/audit?since=2026-01-01T00:00:00", None, 422),
        ("GET", "/audit?limit=0", None, 422),
        ("GET", "/audit?cursor=x", None, 422),
        ("GET", "/workers?pool=x", None, 422),
    ],
)
async def test_a_bad_request_of_an_operator_changes_nothing_and_says_what_to_do(
    ops: httpx.AsyncClient, method: str, path: str, body: dict[str, Any] | None, status: int
) -> None:
    before = len((await ops.get("/audit")).json())

    assert problem(await ops.request(method, path, json=body), status)

    assert len((await ops.get("/audit")).json()) == before


# ── groups, workers, audit ────────────────────────────────────────────────────


async def test_a_raised_limit_starts_the_backlog(ann: httpx.AsyncClient, ops: httpx.AsyncClient) -> None:
    group = "group:ann:shop:raised"
    jobs = [await submitted(ann, LONG, concurrency_group="raised", concurrency_limit=1) for _ in range(2)]
    await until(ann, jobs[0], "code")
    waits = (await ann.get(f"/jobs/{jobs[1]}")).json()["status"]

    answer = await ops.put(f"/concurrency/{quote(group)}", json={"limit": 2, "reason": "more"})

    assert (waits, answer.status_code, answer.json()["limit"]) == ("queued", 200, 2)
    await until(ann, jobs[1], "code")
    status = (await ops.get(f"/concurrency/{group}")).json()
    assert (status["active"], sorted(each["job_id"] for each in status["holders"])) == (2, sorted(jobs))


async def test_a_forced_release_gives_the_attempt_back(ann: httpx.AsyncClient, ops: httpx.AsyncClient) -> None:
    job_id = await submitted(ann, LONG, project_id="forced")
    await until(ann, job_id, "code")

    answer = await ops.delete(f"/concurrency/project:ann:forced/leases/{job_id}:1", params={"reason": "stuck"})

    async def given_back() -> bool:
        events = (await ann.get(f"/jobs/{job_id}/events")).json()
        return [each["reason"] for each in events if each["event"] == "given_back"] == ["forced"]

    async def is_gone() -> bool:
        answer = await ops.delete(f"/concurrency/project:ann:forced/leases/{job_id}:1")
        return answer.status_code == 404

    assert (answer.status_code, answer.json()["job_id"], answer.json()["attempt"]) == (202, job_id, 1)
    await eventually(given_back)
    await eventually(is_gone)  # the log knows it a moment before the view does


async def test_workers_are_told_with_what_they_run(ann: httpx.AsyncClient, ops: httpx.AsyncClient) -> None:
    job_id = await submitted(ann, LONG)
    await until(ann, job_id, "code")

    async def told() -> bool:
        return job_id in (await ops.get("/workers")).json()[0]["jobs"]

    await eventually(told)
    [worker] = (await ops.get("/workers")).json()
    assert (worker["slots"], worker["pool"], worker["draining"]) == (8, "default", False)


async def test_analytics_have_a_shape_from_the_first_moment_on(ops: httpx.AsyncClient) -> None:
    assert {"since", "waits", "forecast", "refused"} <= (await ops.get("/queue/analytics")).json().keys()


async def test_the_audit_tells_who_did_what_and_why_page_by_page(ops: httpx.AsyncClient) -> None:
    started = datetime.now(UTC) - timedelta(seconds=1)
    for verb in ("pause", "resume"):
        await ops.post(f"/queue/{verb}", json={"scope": "user:audited", "reason": verb})

    entries = (await ops.get("/audit", params={"since": started.isoformat()})).json()
    mine = [each for each in entries if each["about"] == "user:audited"]
    first = await ops.get("/audit", params={"since": started.isoformat(), "limit": 1})
    second = await ops.get(first.links["next"]["url"].removeprefix("/v1"))

    assert [(each["act"], each["by"], each["reason"]) for each in mine] == [
        ("paused", "ops", "pause"),
        ("resumed", "ops", "resume"),
    ]
    assert (first.json() + second.json()) == entries[:2]
    later = {"since": (datetime.now(UTC) + timedelta(hours=1)).isoformat()}
    assert (await ops.get("/audit", params=later)).json() == []


# ── what jobs made and said ───────────────────────────────────────────────────


async def test_a_result_is_downloaded_whole_in_parts_and_only_once(
    ann: httpx.AsyncClient, bob: httpx.AsyncClient
) -> None:
    job_id = await submitted(ann)
    await until(ann, job_id, "ready")
    path = f"/jobs/{job_id}/result"

    whole, head = await ann.get(path), await ann.head(path)
    size, etag = len(whole.content), whole.headers["etag"]
    parts = [await ann.get(path, headers={"Range": wanted}) for wanted in ("bytes=0-9", "bytes=10-", "bytes=-5")]
    beyond = await ann.get(path, headers={"Range": f"bytes={size}-"})
    again = await ann.get(path, headers={"If-None-Match": etag})
    changed = await ann.get(path, headers={"Range": "bytes=0-9", "If-Range": '"other"'})

    assert gzip.decompress(whole.content)
    assert etag == f'"{hashlib.sha256(whole.content).hexdigest()}"'
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", etag)
    assert (head.headers["content-length"], head.headers["accept-ranges"]) == (str(size), "bytes")
    assert [part.status_code for part in parts] == [206, 206, 206]
    assert parts[0].content + parts[1].content == whole.content
    assert parts[2].content == whole.content[-5:]
    assert parts[0].headers["content-range"] == f"bytes 0-9/{size}"
    assert problem(beyond, 416)
    assert beyond.headers["content-range"] == f"bytes */{size}"
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert (changed.status_code, changed.content) == (200, whole.content)
    problem(await bob.get(path), 404)
    assert (await bob.head(path)).status_code == 404


async def test_a_log_is_read_as_text_and_as_lines_of_json(ann: httpx.AsyncClient, bob: httpx.AsyncClient) -> None:
    job_id = await submitted(ann)
    await until(ann, job_id, "ready")
    path = f"/jobs/{job_id}/log"

    async def said() -> bool:
        return "line 3 of 3" in (await ann.get(path)).text

    await eventually(said)
    text, objects = await ann.get(path), await ann.get(path, headers={"Accept": "application/x-ndjson"})

    rows = [json.loads(row) for row in objects.text.splitlines()]
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.text.startswith("── attempt 1 · code · ")
    assert objects.headers["content-type"].startswith("application/x-ndjson")
    assert len(rows) == 3
    assert all(row.keys() == {"attempt", "stage", "line", "ts"} for row in rows)
    assert [row["line"] for row in rows] == [row for row in text.text.splitlines() if not row.startswith("── ")]
    problem(await bob.get(path), 404)


async def test_what_is_not_there_yet_is_told_from_what_is_gone(
    ann: httpx.AsyncClient, bob: httpx.AsyncClient, ops: httpx.AsyncClient
) -> None:
    await paused(ops, "user:ann")
    waiting = await submitted(ann)
    no_result, no_log = await ann.get(f"/jobs/{waiting}/result"), await ann.get(f"/jobs/{waiting}/log")
    await ops.post("/queue/resume", json={"scope": "user:ann"})

    assert "once it is ready" in problem(no_result, 409)
    assert "begins when a worker has it" in problem(no_log, 404)
    await until(ann, waiting, "ready")
    problem(await bob.get(f"/jobs/{waiting}"), 404)


async def test_a_job_that_said_nothing_has_lost_no_line(ann: httpx.AsyncClient, ops: httpx.AsyncClient) -> None:
    silent = await submitted(ann, QUICK | {"log_lines": 0})
    await until(ann, silent, "ready")

    assert "has not said anything" in problem(await ann.get(f"/jobs/{silent}/log"), 404)


async def test_an_operator_erases_what_a_user_made_and_said(
    signed_in: SignedIn, bob: httpx.AsyncClient, ops: httpx.AsyncClient
) -> None:
    eve, kept = signed_in(STRANGE), await submitted(bob)
    done = await submitted(eve)
    for client, job_id in ((eve, done), (bob, kept)):
        await until(client, job_id, "ready")
    running = await submitted(eve, LONG)
    await until(eve, running, "code")
    path = f"/users/{quote(STRANGE, safe='')}/content"

    first = await ops.delete(path, params={"reason": "asked for"})
    second = await ops.delete(path)

    assert (first.status_code, first.json()["cancelled"], first.json()["unfinished"]) == (200, [running], [])
    assert (second.status_code, second.json()["cancelled"]) == (200, [])
    assert "an operator erases" in problem(await eve.get(f"/jobs/{done}/result"), 410)
    assert "an operator erases" in problem(await eve.get(f"/jobs/{done}/log"), 410)
    assert (await eve.get(f"/jobs/{running}")).json()["status"] == "cancelled"
    assert (await bob.get(f"/jobs/{kept}/result")).status_code == 200
    acts = [each for each in (await ops.get("/audit")).json() if each["act"] == "content_erased"]
    assert [(each["about"], each["reason"]) for each in acts] == [
        (foreign_token(STRANGE), "asked for"),
        (foreign_token(STRANGE), ""),
    ]

"""Streams as a client meets them: a notifier of its own process, a real log, real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from libs.local.servers import NatsServer
from tests.fixtures.lives import life_of
from tests.fixtures.sources import running
from tests.fixtures.streams import Notifiers, listening, notifiers

WHOLE = "queued dispatched started scaffold code deps checks ready"
FOREIGN = "01JB00000000000000000000ZZ"
NUMBERS = count(1)


@pytest_asyncio.fixture(scope="module")
async def replicas(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Notifiers]:
    folder = tmp_path_factory.mktemp("streams")
    nats = NatsServer(folder / "nats")
    async with running(nats), notifiers(nats.url, folder, policy="[stream]\ncomment_s = 0.3\n") as replicas:
        yield replicas


@pytest.fixture
def user() -> str:
    """Nobody else's."""
    return f"user-{next(NUMBERS)}"


@pytest.fixture
def job(user: str) -> str:
    return f"job-of-{user}"


# ── what comes, and in which words ────────────────────────────────────────────


async def test_a_stream_is_not_kept_and_not_buffered_and_says_when_to_come_back(
    replicas: Notifiers, user: str, job: str
) -> None:
    await replicas.write(*life_of(job, "queued", user_id=user))

    async with replicas.listen(f"/v1/jobs/{job}/stream", user=user) as client:
        first = await client.piece()
        comment = await client.piece()

    wanted = {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-store",
        "x-accel-buffering": "no",
    }
    assert wanted.items() <= client.headers.items()
    assert "content-length" not in client.headers
    assert first is not None
    assert first.startswith(b"retry: 2000\n\nid: ")
    assert comment == b": still here\n\n"


async def test_a_job_is_told_from_its_snapshot_to_its_end(replicas: Notifiers, user: str, job: str) -> None:
    life = life_of(job, WHOLE, user_id=user)
    [_, second] = await replicas.write(*life[:2])
    async with replicas.listen(f"/v1/jobs/{job}/stream", user=user) as client:
        snapshot = await client.event()
        later = await replicas.write(*life[2:])
        rest = await client.events()

    assert snapshot is not None
    assert (snapshot.kind, snapshot.id) == ("snapshot", f"{replicas.log.epoch}-{second}")
    assert (snapshot.data["id"], snapshot.data["status"]) == (job, "starting")
    assert [heard.seq for heard in rest[:-1]] == later[1:]  # `started` is no new status
    assert [heard.data["status"] for heard in rest[:-1]] == ["scaffold", "code", "deps", "checks", "ready"]
    assert (rest[-1].kind, rest[-1].id) == ("end", None)


async def test_a_job_is_told_from_its_first_line_however_late_one_comes(
    replicas: Notifiers, user: str, job: str
) -> None:
    """While it runs and when it is over; and on from a line that one has."""
    life = life_of(job, WHOLE, user_id=user)
    await replicas.write(*life[:5])
    first, _ = await replicas.say(job, "a frame", "written without a model")

    async with replicas.listen(f"/v1/jobs/{job}/stream", user=user) as client:
        begun = [await client.expect() for _ in range(3)]
        await replicas.say(job, "new")
        new = await client.expect()
        await replicas.write(*life[5:])
        rest = await client.events()
    async with replicas.listen(f"/v1/jobs/{job}/stream?log_after={first}", user=user) as client:
        afterwards = await client.events()

    assert [event.data.get("line") for event in (*begun, new)] == [None, "a frame", "written without a model", "new"]
    assert [event.kind for event in rest] == ["status", "status", "status", "end"]
    assert [event.data.get("line") for event in afterwards] == [None, "written without a model", "new", None]


@pytest.mark.parametrize("way", ["header", "query", "both"])
async def test_whoever_comes_back_gets_what_followed(replicas: Notifiers, user: str, job: str, way: str) -> None:
    """With both, the header counts: a page's own reader keeps its first address, and the newest id."""
    seqs = await replicas.write(*life_of(job, WHOLE, user_id=user))
    last, first = f"{replicas.log.epoch}-{seqs[4]}", f"{replicas.log.epoch}-{seqs[0]}"
    query = {"header": "", "query": f"?last_event_id={last}", "both": f"?last_event_id={first}"}[way]
    headers = {} if way == "query" else {"Last-Event-ID": last}

    async with listening(
        replicas.url, f"/v1/jobs/{job}/stream{query}", token=replicas.token(user), headers=headers
    ) as client:
        heard = await client.events()

    assert [event.data.get("status") for event in heard] == ["deps", "checks", "ready", None]


@pytest.mark.parametrize("last", [f"{FOREIGN}-1", "not an id", "{epoch}-999999"])
async def test_an_id_that_this_log_never_gave_out_begins_anew(
    replicas: Notifiers, user: str, job: str, last: str
) -> None:
    await replicas.write(*life_of(job, "queued", user_id=user))
    kinds: list[list[str]] = []
    for path in ("/v1/stream", f"/v1/jobs/{job}/stream"):
        async with replicas.listen(path, user=user, last=last.format(epoch=replicas.log.epoch)) as client:
            kinds.append([(await client.expect()).kind for _ in range(2)])

    assert kinds == [["resync", "snapshot"]] * 2


async def test_nothing_follows_the_last_status(replicas: Notifiers, user: str, job: str) -> None:
    seqs = await replicas.write(*life_of(job, WHOLE, user_id=user))
    headers = {"Last-Event-ID": f"{replicas.log.epoch}-{seqs[-1]}"}

    async with listening(replicas.url, f"/v1/jobs/{job}/stream", token=replicas.token(user), headers=headers) as client:
        assert client.status == 204


async def test_each_user_hears_of_their_own_jobs_alone(replicas: Notifiers, user: str) -> None:
    other = f"not-{user}"
    async with replicas.listen("/v1/stream", user=user) as mine, replicas.listen("/v1/stream", user=other) as others:
        begun = [(await client.expect()).data for client in (mine, others)]
        await replicas.write(
            *life_of(f"a-{user}", "queued", user_id=user), *life_of(f"b-{user}", "queued", user_id=other)
        )
        heard = [(await client.expect()).data["job_id"] for client in (mine, others)]

    assert begun == [{"jobs": []}, {"jobs": []}]
    assert heard == [f"a-{user}", f"b-{user}"]


async def test_an_open_question_is_asked_of_everybody_who_comes(replicas: Notifiers, user: str, job: str) -> None:
    """It has no id: nobody can say that they have seen it, however they come back."""
    asks = "queued dispatched started scaffold code deps checks awaiting_confirmation confirmation_reminder"
    seqs = await replicas.write(*life_of(job, asks, user_id=user))
    kinds: list[list[str]] = []
    for last in (None, f"{replicas.log.epoch}-{seqs[-2]}"):
        async with replicas.listen(f"/v1/jobs/{job}/stream", user=user, last=last) as client:
            piece = await client.piece()
            assert piece is not None
            kinds.append([line[7:].decode() for line in piece.splitlines() if line.startswith(b"event: ")])

    assert kinds == [["snapshot", "confirmation"], ["confirmation", "confirmation"]]


# ── who is let in ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "signed", "said"),
    [
        ("/v1/stream", None, "401 unauthorized"),
        ("/v1/jobs/{job}/stream", None, "401 unauthorized"),
        ("/v1/stream", {"ttl_s": -60}, "401 unauthorized"),
        ("/v1/stream", {"ttl_s": -5}, "401 unauthorized"),
        ("/v1/stream", {"scope": "jobs:write"}, "403 forbidden"),
        ("/v1/jobs/{job}/stream", {"user": "somebody-else"}, "404 not-found"),
        ("/v1/jobs/no-such-job/stream", {}, "404 not-found"),
        ("/v1/stream?tickets=x", {}, "422 invalid"),
        ("/v1/jobs/{job}/stream?since=1", {}, "422 invalid"),
        ("/v1/stream?ticket=short", {}, "422 invalid"),
        (f"/v1/stream?last_event_id={'9' * 101}", {}, "422 invalid"),
        ("/v1/jobs/a..b/stream", {}, "422 invalid"),
    ],
)
async def test_a_stream_that_is_refused_is_a_problem(  # noqa: PLR0917 a table and its fixtures
    replicas: Notifiers, user: str, job: str, path: str, signed: dict[str, Any] | None, said: str
) -> None:
    await replicas.write(*life_of(job, "queued", user_id=user))
    signed_in: dict[str, Any] = {"user": user, **(signed or {})}
    token = None if signed is None else replicas.token(**signed_in)

    async with listening(replicas.url, path.format(job=job), token=token) as client:
        problem = await client.body()

    assert f"{client.status} {problem['type']}" == said.replace(" ", " /problems/")
    assert client.headers["content-type"] == "application/problem+json"
    assert problem["debug_id"]


async def test_an_operator_may_watch_anybodys_job(replicas: Notifiers, user: str, job: str) -> None:
    await replicas.write(*life_of(job, "queued cancelled", user_id=user))
    token = replicas.token("olga", scope="jobs:read ops")

    async with listening(replicas.url, f"/v1/jobs/{job}/stream", token=token) as client:
        heard = await client.events()

    assert [event.kind for event in heard] == ["snapshot", "end"]


async def test_a_stream_ends_with_its_token(replicas: Notifiers, user: str) -> None:
    async with listening(replicas.url, "/v1/stream", token=replicas.token(user, ttl_s=2)) as client:
        heard = await client.events()

    assert [event.kind for event in heard] == ["snapshot"]
    assert client.raw.endswith(b"retry: 2000\n\n")


async def test_a_ticket_that_nobody_can_look_at_is_not_refused_for_good(replicas: Notifiers) -> None:
    """There is no scheduler here."""
    async with listening(replicas.url, f"/v1/stream?ticket={'t' * 43}") as client:
        assert (client.status, client.headers["retry-after"]) == (503, "1")

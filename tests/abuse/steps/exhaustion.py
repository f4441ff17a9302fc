"""Users who take as much as they can, each under a name of their own, and somebody else who asks meanwhile."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx

from libs.runtime.eventually import eventually
from tests.abuse.attempts import HELD, Tries
from tests.abuse.scene import JSON, Scene
from tests.abuse.sockets import HOST
from tests.abuse.steps.tenancy import WORK

PER_USER: Final = 3  # streams, by the scene's policy
WORKING: Final[dict[str, Any]] = {"project_id": "much", "pipeline": "rehearsal", "input": WORK}


def _tomorrow() -> str:
    """Such jobs wait outside of the queue, so that its bounds are not met first."""
    return (datetime.now(UTC) + timedelta(days=1)).isoformat()


async def _submit(scene: Scene, who: str, path: str = "/v1/jobs", **body: Any) -> httpx.Response:
    return await scene.ask(who, f"POST {path}", json.dumps({**WORKING, **body}).encode(), JSON)


async def _open(scene: Scene, stack: AsyncExitStack, target: str, who: str | None) -> int:
    headers = {"Authorization": f"Bearer {scene.company.token(who)}"} if who else {}
    answer = await stack.enter_async_context(scene.http.stream("GET", target, headers=headers))
    return answer.status_code


def _last_alone(codes: list[int], refused: int = 429) -> str:
    return HELD if set(codes[:-1]) <= {200, 201, 202} and codes[-1] == refused else f"answered {codes}"


async def _streams(scene: Scene, target: str) -> str:
    who = f"hoarder-{target.count('/')}"
    job = (await _submit(scene, who, project_id="held")).json()["id"]
    async with AsyncExitStack() as stack:
        path = target.replace("<own>", job)
        return _last_alone([await _open(scene, stack, path, who) for _ in range(PER_USER + 1)])


async def _streams_by_tickets(scene: Scene) -> str:
    async with AsyncExitStack() as stack:
        codes = list[int]()
        for _ in range(PER_USER + 1):
            ticket = (await scene.ask("hoarder-t", "POST /v1/stream-tickets")).json()["ticket"]
            codes.append(await _open(scene, stack, f"/v1/stream?ticket={ticket}", None))
        return _last_alone(codes)


async def _others_stream(scene: Scene) -> str:
    async with AsyncExitStack() as stack:
        for _ in range(PER_USER):
            await _open(scene, stack, "/v1/stream", "hoarder-o")
        status = await _open(scene, stack, "/v1/stream", "somebody-else")
        return HELD if status == 200 else f"{status} for somebody else"


async def _streams_that_ended(scene: Scene) -> str:
    """Or a user who loads a page again and again would soon have none."""
    for _ in range(PER_USER):
        async with AsyncExitStack() as stack:
            await _open(scene, stack, "/v1/stream", "hoarder-e")

    async def opens() -> bool:
        async with AsyncExitStack() as stack:
            return await _open(scene, stack, "/v1/stream", "hoarder-e") == 200

    await eventually(opens)
    return HELD


async def _tickets(scene: Scene) -> str:
    codes = [(await scene.ask("collector", "POST /v1/stream-tickets")).status_code for _ in range(31)]
    return _last_alone(codes)


async def _others_ticket(scene: Scene) -> str:
    for _ in range(31):
        await scene.ask("collector-2", "POST /v1/stream-tickets")
    status = (await scene.ask("somebody-else", "POST /v1/stream-tickets")).status_code
    return HELD if status == 201 else f"{status} for somebody else"


async def _jobs_at_once(scene: Scene) -> str:
    """The minute's allowance, and what the time that it takes gives back."""
    codes = [(await _submit(scene, "hasty", run_at=_tomorrow())).status_code for _ in range(90)]
    return HELD if 429 in codes and set(codes) <= {202, 429} and codes.count(202) < 90 else f"answered {set(codes)}"


async def _batch(scene: Scene) -> str:
    answer = await _submit_many(scene, "hasty-b", 100)
    codes = [each["status"] for each in answer.json().get("results", ())]
    return HELD if answer.status_code == 207 and 429 in codes else f"{answer.status_code}: {answer.text[:200]}"


async def _submit_many(scene: Scene, who: str, count: int) -> httpx.Response:
    body = {"jobs": [{**WORKING, "run_at": _tomorrow()}] * count}
    return await scene.ask(who, "POST /v1/jobs/batch", json.dumps(body).encode(), JSON)


async def _workflows(scene: Scene) -> str:
    phases = [{"pipeline": "rehearsal", "input": WORK}] * 20
    body = json.dumps({"project_id": "much", "phases": phases, "run_at": _tomorrow()}).encode()
    codes = [(await scene.ask("hasty-w", "POST /v1/workflows", body, JSON)).status_code for _ in range(4)]
    return HELD if codes[-1] == 429 else f"answered {codes}"


async def _bytes(scene: Scene) -> str:
    work = {**WORK, "prompt": "x" * 60_000}
    codes = [(await _submit(scene, "hasty-s", run_at=_tomorrow(), input=work)).status_code for _ in range(50)]
    return HELD if 429 in codes and set(codes) <= {202, 429} else f"answered {set(codes)}"


async def _one_key(scene: Scene) -> str:
    """What is known already costs nothing and makes nothing."""
    headers = (*JSON, ("Idempotency-Key", "one"))
    body = json.dumps(WORKING).encode()
    answers = [await scene.ask("hasty-k", "POST /v1/jobs", body, headers) for _ in range(61)]
    ids = {answer.json().get("id") for answer in answers}
    return HELD if {answer.status_code for answer in answers} <= {200, 202} and len(ids) == 1 else f"{len(ids)} jobs"


async def _others_job(scene: Scene) -> str:
    await _submit_many(scene, "hasty-o", 70)
    status = (await _submit(scene, "somebody-else")).status_code
    return HELD if status == 202 else f"{status} for somebody else"


async def _queue_share(scene: Scene) -> str:
    """Of a project that is paused, so that nothing of it leaves the queue."""
    pause = json.dumps({"scope": "project:waiter:held"}).encode()
    await scene.ask("olga", "POST /v1/queue/pause", pause, JSON)
    codes = [(await _submit(scene, "waiter", project_id="held")).status_code for _ in range(SHARE + 1)]
    await scene.ask("waiter", "POST /v1/jobs/cancel", b'{"project": "held"}', JSON)
    return _last_alone(codes)


async def _poor_workflow(scene: Scene) -> str:
    phases = [{"pipeline": "rehearsal", "input": WORK}] * 21
    answer = await scene.ask(
        "poor-w", "POST /v1/workflows", json.dumps({"project_id": "a", "phases": phases}).encode(), JSON
    )
    return HELD if answer.status_code == 422 else f"{answer.status_code}: {answer.text[:200]}"


async def _poor_day(scene: Scene) -> str:
    answers = [await _submit(scene, "poor") for _ in range(6)]
    statuses = [answer.json().get("status") for answer in answers]
    return HELD if statuses[-1] == "scheduled" and "scheduled" not in statuses[:-1] else f"{statuses}"


async def _idle(scene: Scene, count: int, said: bytes) -> str:
    """While they stay others are answered."""
    said = said.replace(b"<olga>", scene.company.token("olga").encode())
    open_ends = await asyncio.gather(*(asyncio.open_connection(HOST, scene.port("gateway")) for _ in range(count)))
    try:
        for _, writer in open_ends:
            writer.write(said)
        answers = [await scene.ask("somebody-else", line) for line in ("GET /v1/usage", "GET /v1/jobs", "GET /livez")]
        return HELD if {answer.status_code for answer in answers} == {200} else f"{answers}"
    finally:
        for _, writer in open_ends:
            writer.transport.abort()


async def _large_at_once(scene: Scene) -> str:
    """Bodies of the largest size that is taken, all brackets; others are answered between them."""
    body = b"[" * (7 * 1024 * 1024)
    large = [asyncio.create_task(scene.ask("large", "POST /v1/jobs/batch", body, JSON)) for _ in range(6)]
    between = await scene.ask("somebody-else", "GET /v1/usage")
    codes = {answer.status_code for answer in await asyncio.gather(*large)}
    return HELD if between.status_code == 200 and codes == {422} else f"{between.status_code}, {codes}"


async def _wide(scene: Scene) -> str:
    """Wide and not deep, each part of it wrong: the first faults are told, and not all of them."""
    wide = {f"key-{number}": number for number in range(2000)}
    answer = await _submit(scene, "wide", input={"stages": wide})
    told = answer.json().get("errors", [])
    return HELD if answer.status_code == 422 and 0 < len(told) <= 20 else f"{answer.status_code}: {answer.text[:200]}"


async def _unknown_fields(scene: Scene) -> str:
    unknown: dict[str, Any] = {f"field-{number}": 1 for number in range(5000)}
    answer = await _submit(scene, "wide", **unknown)
    told = answer.json().get("errors", [])
    return HELD if answer.status_code == 422 and 0 < len(told) <= 20 else f"{answer.status_code}, {len(told)} told"


SHARE: Final = 20  # by the scene's policy


def streams(target: str) -> Tries:
    return Tries(_streams, (target,))


def idle(count: int, said: bytes) -> Tries:
    return Tries(_idle, (count, said))


STREAMS_BY_TICKETS: Final = Tries(_streams_by_tickets)
OTHERS_STREAM: Final = Tries(_others_stream)
STREAMS_THAT_ENDED: Final = Tries(_streams_that_ended)
TICKETS: Final = Tries(_tickets)
OTHERS_TICKET: Final = Tries(_others_ticket)
JOBS_AT_ONCE: Final = Tries(_jobs_at_once)
BATCH: Final = Tries(_batch)
WORKFLOWS: Final = Tries(_workflows)
BYTES: Final = Tries(_bytes)
ONE_KEY: Final = Tries(_one_key)
OTHERS_JOB: Final = Tries(_others_job)
QUEUE_SHARE: Final = Tries(_queue_share)
POOR_WORKFLOW: Final = Tries(_poor_workflow)
POOR_DAY: Final = Tries(_poor_day)
LARGE_AT_ONCE: Final = Tries(_large_at_once)
WIDE: Final = Tries(_wide)
UNKNOWN_FIELDS: Final = Tries(_unknown_fields)

"""Attempts of bob's that take more than one request."""

from __future__ import annotations

import json
import re
import secrets
from typing import Any, Final

import httpx

from tests.abuse.attempts import HELD, Tries
from tests.abuse.scene import JSON, Scene

WORK: Final = {"stages": dict.fromkeys(("scaffold", "code", "deps", "checks"), 0.01)}


async def _stream_by_ticket(scene: Scene) -> str:
    """His ticket stands for him, at every stream."""
    ticket = (await scene.ask("bob", "POST /v1/stream-tickets")).json()["ticket"]
    answer = await scene.ask(None, scene.named(f"GET /v1/jobs/<running>/stream?ticket={ticket}"))
    return HELD if answer.status_code == 404 else f"{answer.status_code}: {answer.text[:100]}"


async def _ticket_twice(scene: Scene) -> str:
    answer = await scene.ask(None, scene.named("GET /v1/stream?ticket=<ticket>"))
    return HELD if answer.status_code == 401 else f"{answer.status_code}: {answer.text[:100]}"


async def _own_stream(scene: Scene) -> str:
    """As far as the stream tells how everything stands."""
    headers = {"Authorization": f"Bearer {scene.company.token('bob')}"}
    said = ""
    async with scene.http.stream("GET", "/v1/stream", headers=headers) as stream:
        async for piece in stream.aiter_text():
            said += piece
            if "event: snapshot" in said and said.endswith("\n\n"):
                break
    return scene.told_of_ann(said)


async def _foreign_cursor(scene: Scene) -> str:
    link = (await scene.ask("ann", "GET /v1/jobs?limit=1")).headers["link"]
    [target] = re.findall(r"<(.+?)>", link)
    answer = await scene.ask("bob", f"GET {target}")
    return HELD if answer.status_code == 422 else f"{answer.status_code}: {answer.text[:100]}"


async def _cancelling(scene: Scene, body: dict[str, str]) -> str:
    before = await scene.standing()
    answer = await scene.ask("bob", "POST /v1/jobs/cancel", scene.named(json.dumps(body)).encode(), JSON)
    if answer.status_code >= 500 or (told := scene.told_of_ann(answer.text)):
        return f"{answer.status_code}: {answer.text[:200]}"
    return told if await scene.standing() == before else "ann's jobs are not as they were"


async def _same_project(scene: Scene, project: str) -> str:
    """Nothing of hers holds his back, and he is told nothing of what holds hers back."""
    answer = await _dry_run(scene, project_id=project)
    reasons = [each["reason"] for each in answer.json().get("waiting_on", ())]
    if answer.status_code != 200 or {"paused", "project_limit"} & set(reasons):
        return f"{answer.status_code}: {answer.text[:200]}"
    return scene.told_of_ann(answer.text.replace(project, ""))


async def _same_group(scene: Scene) -> str:
    """Ann's one slot of `db` is taken; bob's `db` in a project of that name is another group."""
    answer = await _dry_run(scene, project_id="shop", concurrency_group="db", concurrency_limit=1)
    held = answer.status_code == 200 and "group_limit" not in answer.text
    return scene.told_of_ann(answer.text) if held else answer.text[:300]


async def _dry_run(scene: Scene, **fields: Any) -> httpx.Response:
    body = {"pipeline": "rehearsal", "input": WORK, **fields}
    return await scene.ask("bob", "POST /v1/jobs?dry_run=true", json.dumps(body).encode(), JSON)


async def _same_key(scene: Scene, path: str, one: dict[str, Any], other: dict[str, Any]) -> str:
    """Ann's key is known for ann's request: bob's is another, with an id of its own."""
    headers = [*JSON, ("Idempotency-Key", secrets.token_hex(8))]
    hers, his = [
        await scene.ask(who, f"POST {path}", json.dumps(body).encode(), headers)
        for who, body in (("ann", one), ("bob", other))
    ]
    if (hers.status_code, his.status_code) != (202, 202):
        return f"{hers.status_code} for her, {his.status_code} for him: {his.text[:200]}"
    return HELD if hers.json()["id"] != his.json()["id"] else "it is one job"


def cancelling(body: dict[str, str]) -> Tries:
    return Tries(_cancelling, (body,))


def same_project(name: str) -> Tries:
    return Tries(_same_project, (name,))


STREAM_BY_TICKET: Final = Tries(_stream_by_ticket)
TICKET_TWICE: Final = Tries(_ticket_twice)
OWN_STREAM: Final = Tries(_own_stream)
FOREIGN_CURSOR: Final = Tries(_foreign_cursor)
SAME_GROUP: Final = Tries(_same_group)
_JOB: Final = {"project_id": "keys", "pipeline": "rehearsal", "input": WORK}
_FLOW: Final = {"project_id": "keys", "phases": [{"pipeline": "rehearsal", "input": WORK}]}
SAME_KEY: Final = Tries(_same_key, ("/v1/jobs", _JOB, {**_JOB, "labels": {"of": "bob"}}))
SAME_KEY_OF_A_WORKFLOW: Final = Tries(_same_key, ("/v1/workflows", _FLOW, {**_FLOW, "labels": {"of": "bob"}}))

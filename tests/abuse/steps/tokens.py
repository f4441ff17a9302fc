"""Attempts with a token that was good until an operator took it back."""

from __future__ import annotations

import secrets

from libs.runtime.eventually import eventually
from tests.abuse.attempts import HELD, Attempt, Tries
from tests.abuse.forging import forged
from tests.abuse.scene import JSON, Scene

JOB = b'{"project_id": "p", "input": {"prompt": "a"}}'


def after_revocation(*lines: str) -> dict[str, Attempt]:
    return {line: Tries(_revoked, (line,)) for line in lines}


async def _revoked(scene: Scene, line: str) -> str:
    """Good before, and no more once an operator has taken it back."""
    token_id = secrets.token_hex(8)
    token = forged(scene.pair, {}, {"jti": token_id, "sub": "carol"}, by="us")
    if (before := await _status(scene, line, token)) >= 300:
        return f"it was no good before: {before}"
    told = await scene.ask("olga", "POST /v1/tokens/revoke", b'{"jti": "%s"}' % token_id.encode(), JSON)
    if told.status_code != 200:
        return told.text

    async def is_refused() -> bool:
        return await _status(scene, line, token) == 401

    await eventually(is_refused, within_s=30)  # a replica asks the log each second
    return HELD


async def _status(scene: Scene, line: str, token: str) -> int:
    """Of a stream nothing but that is read."""
    method, _, path = line.partition(" ")
    body = JOB if path == "/v1/jobs" and method == "POST" else None
    target = f"{path}?dry_run=true" if body else path
    headers = [("Authorization", f"Bearer {token}"), *JSON]
    async with scene.http.stream(method, target, content=body, headers=headers) as answer:
        return answer.status_code

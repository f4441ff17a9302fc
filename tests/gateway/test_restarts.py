"""Services that are killed again and again under clients that send again only what is safe: nobody loses a request."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from headgate_contracts import Tier
from headgate_contracts.events import JobData
from libs.local.keeping import SETTLED_AFTER_S
from tests.fixtures.installation import Installation, installed

pytestmark = pytest.mark.timeout(1800)

READERS, WRITERS, KILLS = 25, 25, 20
VICTIMS: Final = ("admission", "notifier")
ROOMY: Final = "[submissions]\nper_minute = 100000\n[tiers.cto_scale]\njobs_per_day = 100000\n"
AWAY, UNANSWERED = 503, 502
CUT = 0  # in the midst of its answer
PACE_S: Final = 0.1


@dataclass
class Seen:
    """By all clients together."""

    answers: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    jobs: dict[str, str] = field(default_factory=dict[str, str])  # by key

    async def insisted(
        self, what: str, call: Callable[[], Awaitable[httpx.Response]], *, again: frozenset[int]
    ) -> httpx.Response:
        """Until there is an answer that is none of these."""
        while True:
            try:
                answer = await call()
            except httpx.RemoteProtocolError:
                self.answers[what, CUT] += 1
                answer = None
            else:
                self.answers[what, answer.status_code] += 1
            if answer is not None and answer.status_code not in again:
                return answer
            await asyncio.sleep(PACE_S)  # as `Retry-After` asks, only sooner


async def test_no_request_is_lost_though_a_service_is_killed_twenty_times(tmp_path: Path) -> None:
    seen, over = Seen(), asyncio.Event()
    async with installed(tmp_path, policy=ROOMY, workers=1) as there:
        clients = [asyncio.create_task(reading(there, seen, over, n)) for n in range(READERS)]
        clients += [asyncio.create_task(writing(there, seen, over, n)) for n in range(WRITERS)]
        for number in range(KILLS):
            await asyncio.sleep(SETTLED_AFTER_S / len(VICTIMS))  # else its keeper gives it more and more time
            await there.kill(VICTIMS[number % len(VICTIMS)])
            assert not [client for client in clients if client.done()], await asyncio.gather(*clients)
        over.set()
        await asyncio.gather(*clients)
        recorded = {data.job_id for record in await there.records() if (data := job_data(record.event))}

    print(f"\n{dict(seen.answers)}")  # noqa: T201 the report
    assert set(seen.jobs.values()) == recorded
    assert len(recorded) == len(seen.jobs), "one key has made two jobs, or two keys one"
    assert set(seen.answers) <= {
        ("a question", 200),
        ("a question", CUT),
        ("a question", AWAY),  # where a service needed longer than requests are held
        ("a question", UNANSWERED),  # the same, and the last attempt was cut off
        ("a submission", 202),
        ("a submission", CUT),
        ("a submission", AWAY),
        ("a submission", UNANSWERED),
    }


async def reading(there: Installation, seen: Seen, over: asyncio.Event, number: int) -> None:
    """Asks both services by turns. What only asks may be asked again, and the gateway has done that itself."""
    async with there.client(f"reader-{number}", Tier.PARTNER) as client:
        while not over.is_set():
            for url in ("/usage", there.up.url):
                await seen.insisted("a question", lambda url=url: client.get(url), again=frozenset({AWAY, UNANSWERED}))
                await asyncio.sleep(PACE_S)


async def writing(there: Installation, seen: Seen, over: asyncio.Event, number: int) -> None:
    """Each submission has a key, so it may be sent again when nobody knows what became of it."""
    work: dict[str, Any] = {"project_id": "shop", "pipeline": "rehearsal", "input": {"stages": {"code": 0}}}
    work["run_at"] = (datetime.now(UTC) + timedelta(days=1)).isoformat()  # accepted and kept: nothing has to run
    async with there.client(f"writer-{number}", Tier.CTO_SCALE) as client:
        while not over.is_set():
            key = f"{number}-{len(seen.jobs)}"
            told = {"Idempotency-Key": key}
            answer = await seen.insisted(
                "a submission",
                lambda told=told: client.post("/jobs", json=work, headers=told),
                again=frozenset({AWAY, UNANSWERED}),
            )
            assert answer.status_code == 202, answer.text
            seen.jobs[key] = answer.json()["id"]
            await asyncio.sleep(PACE_S)


def job_data(event: object) -> JobData | None:
    data = getattr(event, "data", None)
    return data if isinstance(data, JobData) else None

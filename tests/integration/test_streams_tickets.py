"""Tickets on the whole system: what one opens, for whom, how often, and where it never stands."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from headgate_contracts import Tier
from headgate_contracts.commands import TicketRedeemed
from libs.runtime.eventually import eventually
from libs.runtime.keys import keep_keys
from tests.fixtures.installation import Installation, installed
from tests.fixtures.streams import a_token, listening

NUMBERS = count(1)
JOB = {"project_id": "shop", "pipeline": "rehearsal", "input": {"stages": {"code": 30}}}
pytestmark = pytest.mark.up


@dataclass(frozen=True)
class Office:
    """Where tickets are given out and shown."""

    folder: Path
    there: Installation

    def token(self, user: str, **more: Any) -> str:
        return a_token(keep_keys(self.there.state / "keys"), user, **{"scope": "jobs:read jobs:write", **more})

    async def ask(self, token: str) -> tuple[int, dict[str, Any], str]:
        async with self.there.client("nobody", Tier.PARTNER) as client:
            answer = await client.post("/stream-tickets", headers={"Authorization": f"Bearer {token}"})
            return answer.status_code, answer.json(), answer.headers.get("cache-control", "")

    async def ticket(self, user: str, **more: Any) -> str:
        status, given, _ = await self.ask(self.token(user, **more))
        assert status == 201, given
        return given["ticket"]

    async def show(self, ticket: str, path: str = "/v1/stream", *, more: str = "") -> int:
        async with listening(self.there.up.url, f"{path}?ticket={ticket}{more}") as client:
            return client.status

    async def submit(self, user: str) -> str:
        async with self.there.client(user, Tier.PARTNER) as client:
            answer = await client.post("/jobs", json=JOB)
            assert answer.status_code == 202, answer.text
            return answer.json()["id"]

    def store(self) -> Redis:
        return Redis.from_url(self.there.up.redis_url)


@pytest_asyncio.fixture(scope="module")
async def office(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Office]:
    folder = tmp_path_factory.mktemp("office")
    async with installed(folder, workers=1, environ={"HEADGATE_LOG_LEVEL": "DEBUG"}) as there:
        yield Office(folder, there)


@pytest.fixture
def user() -> str:
    return f"user-{next(NUMBERS)}"


async def test_a_ticket_opens_one_stream_and_is_spent(office: Office, user: str) -> None:
    asked_at = datetime.now(UTC)
    status, given, kept = await office.ask(office.token(user))

    answers = [await office.show(given["ticket"]) for _ in range(2)]

    left_s = (datetime.fromisoformat(given["expires_at"]) - asked_at).total_seconds()
    assert (status, kept) == (201, "no-store")
    assert 29 < left_s < 45
    assert answers == [200, 401]


async def test_of_two_who_show_it_at_once_one_is_let_in(office: Office, user: str) -> None:
    for _ in range(20):
        ticket = await office.ticket(user)

        answers = await asyncio.gather(*(office.show(ticket) for _ in range(2)))

        assert sorted(answers) == [200, 401]


async def test_it_is_its_users_and_sees_what_they_see(office: Office, user: str) -> None:
    mine, others = await office.submit(user), await office.submit(f"not-{user}")

    answers = [
        await office.show(await office.ticket(user), f"/v1/jobs/{mine}/stream"),
        await office.show(await office.ticket(user), f"/v1/jobs/{others}/stream"),
        await office.show(await office.ticket("olga", scope="jobs:read ops"), f"/v1/jobs/{others}/stream"),
    ]

    assert answers == [200, 404, 200]


async def test_who_may_not_read_and_whose_token_is_over_gets_none(office: Office, user: str) -> None:
    tokens = [office.token(user, scope="jobs:write"), office.token(user, ttl_s=-60)]

    assert [(await office.ask(token))[0] for token in tokens] == [403, 401]


@pytest.mark.parametrize(
    ("told", "status"),
    [
        (TicketRedeemed(user_id="ann", tier=Tier.PARTNER, scopes=("jobs:write",)), 403),
        (
            TicketRedeemed(
                user_id="ann", tier=Tier.PARTNER, scopes=("jobs:read",), expires_at=datetime(2026, 1, 1, tzinfo=UTC)
            ),
            401,
        ),
        (TicketRedeemed(user_id="ann", tier=Tier.PARTNER, scopes=("jobs:read",)), 200),
    ],
)
async def test_what_it_stands_for_is_looked_at_again(office: Office, told: TicketRedeemed, status: int) -> None:
    ticket = f"{next(NUMBERS):043}"
    digest = hashlib.sha256(ticket.encode()).hexdigest()
    async with office.store() as store:
        await store.set(f"{{hg:main}}:ticket:{digest}", told.model_dump_json(), px=30_000)

    assert await office.show(ticket) == status


async def test_a_stream_that_it_opened_ends_with_the_token_it_was_given_for(office: Office, user: str) -> None:
    ticket = await office.ticket(user, ttl_s=3)

    async with listening(office.there.up.url, f"/v1/stream?ticket={ticket}") as client:
        heard = await client.events()

    assert [event.kind for event in heard] == ["snapshot"]


async def test_after_half_a_minute_it_is_worth_nothing(office: Office, user: str) -> None:
    """The store forgets it; here it is told to do so sooner."""
    ticket = await office.ticket(user)
    async with office.store() as store:
        [key] = [key async for key in store.scan_iter("*:ticket:*")]
        left_ms = await store.pttl(key)
        await store.pexpire(key, 1)
        await eventually(lambda: _is_forgotten(store, key))

    assert 20_000 < left_ms <= 30_000
    assert await office.show(ticket) == 401


async def _is_forgotten(store: Redis, key: str) -> bool:
    return not await store.exists(key)


async def test_a_request_that_is_wrong_otherwise_does_not_spend_it(office: Office, user: str) -> None:
    ticket = await office.ticket(user)

    assert [await office.show(ticket, more=more) for more in ("&tickets=2", "")] == [422, 200]


async def test_it_stands_in_no_line_of_any_log_and_in_no_key(office: Office, user: str) -> None:
    """Spent or not, let in or not; all services say everything they can."""
    tickets = [await office.ticket(user) for _ in range(3)]
    await office.show(tickets[0])
    await office.show(tickets[0])
    await office.show(tickets[1], "/v1/jobs/no-such-job/stream")
    async with office.store() as store:
        kept = [f"{key} {await store.get(key)}" async for key in store.scan_iter("*:ticket:*")]
    logs = {path: path.read_text(errors="replace") for path in office.folder.rglob("*.log")}

    assert len(kept) == 1
    assert {path.stem for path in logs} >= {"up", "admission", "notifier", "scheduler"}
    for text in (*logs.values(), *kept):
        assert not [ticket for ticket in tickets if ticket in text]

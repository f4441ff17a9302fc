"""Who is there and what they did: ann, whose jobs stand in every status, an operator, and secrets in what is sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx

from headgate_contracts import Tier
from libs.runtime.eventually import eventually
from tests.fixtures.installation import Installation

SECRETS: Final = {
    "prompt": "prompt-of-ann-4711-nobody-else",
    "key of a provider": "sk-abuse-0123456789abcdefghijklmnop",
    "ticket": "",  # of the first stream
}
SCOPES: Final = {
    "olga": "jobs:read jobs:write ops",
    "reader": "jobs:read",
    "writer": "jobs:write",
    "powerless": "",
    "imposter": "OPS Jobs:Read jobs:* * admin",
}
SHORT: Final[dict[str, Any]] = dict.fromkeys(("scaffold", "code", "deps", "checks"), 0.02)
LONG: Final[dict[str, Any]] = {"stages": {**SHORT, "code": 3600}}


@dataclass
class Company:
    """Tokens, made when somebody first comes."""

    there: Installation
    tokens: dict[str, str] = field(default_factory=dict[str, str])

    def token(self, who: str) -> str:
        if who not in self.tokens:
            scope = SCOPES.get(who, "jobs:read jobs:write")
            tier = Tier.BOOTSTRAPPER if who.startswith("poor") else Tier.PARTNER
            self.tokens[who] = self.there.token(who, tier, scope=scope)
        return self.tokens[who]

    def client(self, who: str) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.token(who)}"}
        return httpx.AsyncClient(base_url=f"{self.there.up.url}/v1", headers=headers, timeout=60)


async def settle(company: Company) -> dict[str, str]:
    """The names of ann's things."""
    async with company.client("ann") as ann, company.client("olga") as olga:
        hers = _Hers(ann)
        names = {
            "ready": await hers.job("ready", SHORT),
            "failed": await hers.job("failed", SHORT, fail_at="code"),
            "asking": await hers.job("awaiting_confirmation", SHORT, failing_cycles=1),
            "running": await hers.job(
                "code", LONG["stages"], order={"concurrency_group": "db", "concurrency_limit": 1}
            ),
        }
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        names["scheduled"] = await hers.job("scheduled", SHORT, order={"run_at": tomorrow})
        await done(olga.post("/queue/pause", json={"scope": "project:ann:later", "reason": "to have some that wait"}))
        names["queued"] = await hers.job("queued", SHORT, order={"project_id": "later", "labels": {"of": "ann"}})
        names["cancelled"] = await hers.job("queued", SHORT, order={"project_id": "later"})
        await done(ann.post(f"/jobs/{names['cancelled']}/cancel", json={}))
        phase = {"pipeline": "rehearsal", "input": {"stages": SHORT}}
        flow = await done(ann.post("/workflows", json={"project_id": "later", "phases": [phase, phase]}))
        names |= {"workflow": flow["id"], "waiting": flow["phases"][1]["id"], "group": "group:ann:shop:db"}
        await hers.until(names["cancelled"], "cancelled")
        names["xss"] = await _submitted_by_mallory(company)
        SECRETS["ticket"] = (await done(ann.post("/stream-tickets")))["ticket"]
        await _follow(company.there, SECRETS["ticket"])
        return names


class _Hers:
    def __init__(self, ann: httpx.AsyncClient) -> None:
        self._ann = ann

    async def job(
        self, status: str, stages: dict[str, Any], *, order: dict[str, Any] | None = None, **more: Any
    ) -> str:
        work = {"stages": stages, "prompt": f"A shop\n{SECRETS['prompt']}", "log_lines": 1, **more}
        body = {"project_id": "shop", "pipeline": "rehearsal", "input": work, **(order or {})}
        job = (await done(self._ann.post("/jobs", json=body)))["id"]
        await self.until(job, status)
        return job

    async def until(self, job: str, status: str) -> None:
        async def stands() -> bool:
            return (await done(self._ann.get(f"/jobs/{job}")))["status"] == status

        await eventually(stands, every_s=0.05)


async def _submitted_by_mallory(company: Company) -> str:
    """A job whose every text is one that a careless page would run."""
    script = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}${7*7}"
    body = {"project_id": script, "labels": {"l": script[:120]}, "pipeline": "rehearsal", "input": {"prompt": script}}
    async with company.client("mallory") as mallory:
        return (await done(mallory.post("/jobs", json=body)))["id"]


async def _follow(there: Installation, ticket: str) -> None:
    """One stream by its ticket, so that each log has seen one."""
    async with (
        httpx.AsyncClient(base_url=f"{there.up.url}/v1", timeout=60) as nobody,
        nobody.stream("GET", "/stream", params={"ticket": ticket}) as stream,
    ):
        assert stream.status_code == 200
        await anext(stream.aiter_lines())


async def done(asked: Any) -> Any:
    response: httpx.Response = await asked
    assert response.status_code < 300, response.text
    return response.json() if response.content else None

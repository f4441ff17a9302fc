"""What operators ordered outlives every process: a limit and a pause, after a stop and a start of everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate_contracts import Tier
from tests.fixtures.installation import installed


@pytest.mark.kills
async def test_a_limit_and_a_pause_survive_a_restart(tmp_path: Path) -> None:
    async with installed(tmp_path, workers=1) as there, there.client("ops", Tier.PARTNER, scope="ops") as ops:
        await ops.put("/concurrency/workflows", json={"limit": 7})
        await ops.post("/queue/pause", json={"scope": "priority:low", "reason": "a long night"})

    async with installed(tmp_path, workers=1) as there, there.client("ops", Tier.PARTNER, scope="ops jobs:read") as ops:
        group, queue = await ops.get("/concurrency/workflows"), await ops.get("/queue")

        assert group.json()["limit"] == 7
        assert [(each["scope"], each["reason"]) for each in queue.json()["paused"]] == [
            ("priority:low", "a long night")
        ]

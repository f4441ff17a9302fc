"""Two hundred clients, each cut off twenty times, at two replicas that are killed again and again."""

from __future__ import annotations

import secrets
from pathlib import Path
from random import Random

import pytest

from tests.fixtures.comers import World, faults
from tests.fixtures.logs import caught_up
from tests.fixtures.streams import notifiers

COMERS, CUTS, KILLS = 200, 20, 10
POLICY = "[stream]\nper_user = 1000\n"


@pytest.mark.timeout(600)
async def test_two_hundred_clients_see_each_status_once_and_in_order(nats_url: str, tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    async with notifiers(nats_url, tmp_path, count=2, policy=POLICY) as hall:
        world = World(hall, Random(seed), users=20, jobs=40)
        comers = await world.run(comers=COMERS, cuts=CUTS, linger_s=2.5, kills=KILLS)
        records = (await caught_up(hall.log)).records

    heard, cuts = sum(len(comer.seen) for comer in comers), sum(comer.cuts for comer in comers)
    print(f"\nseed {seed}: {len(records)} records, {heard} statuses heard over {cuts} cuts")  # noqa: T201 the report
    assert not list(faults(comers, records)), f"seed {seed}"
    assert all(comer.cuts >= CUTS and comer.seen for comer in comers)

"""Two hundred clients, each cut off twenty times, at two replicas that are killed again and again."""

from __future__ import annotations

import secrets
from pathlib import Path
from random import Random

import pytest

from tests.fixtures.logs import caught_up
from tests.fixtures.returning_clients import Audience, faults
from tests.fixtures.streams import notifiers

CLIENTS, CUTS, KILLS = 200, 20, 10
POLICY = "[stream]\nper_user = 1000\n"


@pytest.mark.timeout(600)
async def test_two_hundred_clients_see_each_status_once_and_in_order(nats_url: str, tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    async with notifiers(nats_url, tmp_path, count=2, policy=POLICY) as replicas:
        audience = Audience(replicas, Random(seed), users=20, jobs=40)
        clients = await audience.run(clients=CLIENTS, cuts=CUTS, linger_s=2.5, kills=KILLS)
        records = (await caught_up(replicas.log)).records

    heard, cuts = sum(len(each.seen) for each in clients), sum(each.cuts for each in clients)
    print(f"\nseed {seed}: {len(records)} records, {heard} statuses heard over {cuts} cuts")  # noqa: T201 the report
    assert not list(faults(clients, records)), f"seed {seed}"
    assert all(each.cuts >= CUTS and each.seen for each in clients)

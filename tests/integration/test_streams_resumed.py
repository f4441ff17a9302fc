"""Clients that are cut off and connect back to one of two replicas, one of which dies meanwhile. The long run of it is
`tests/e2e/test_streams.py`."""

from __future__ import annotations

import secrets
from pathlib import Path
from random import Random

import pytest

from tests.fixtures.logs import caught_up
from tests.fixtures.returning_clients import Audience, faults
from tests.fixtures.streams import notifiers

POLICY = "[stream]\nper_user = 1000\n"


@pytest.mark.kills
async def test_whoever_is_cut_off_and_comes_back_sees_each_status_once_and_in_order(
    nats_url: str, tmp_path: Path
) -> None:
    seed = secrets.randbits(32)
    async with notifiers(nats_url, tmp_path, count=2, policy=POLICY) as replicas:
        audience = Audience(replicas, Random(seed), users=4, jobs=6)
        clients = await audience.run(clients=20, cuts=5, linger_s=0.4, kills=2)
        records = (await caught_up(replicas.log)).records

    assert not list(faults(clients, records)), f"seed {seed}"
    assert all(each.cuts >= 5 and each.seen for each in clients)

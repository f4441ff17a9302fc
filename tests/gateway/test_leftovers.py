"""What thousands of broken requests leave in the gateway and the services: nothing that is open, nothing that grows."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import httpx
import pytest
import pytest_asyncio

from headgate_contracts import Tier
from libs.runtime.eventually import eventually
from tests.fixtures.broken import AT_ONCE, broken_request, broken_upload, let_loose
from tests.fixtures.installation import Installation, installed
from tests.fixtures.proc import Footprint, footprint, ticks_in

pytestmark = pytest.mark.timeout(1200)

WATCHED: Final = ("caddy", "admission", "notifier")
REQUESTS, UPLOADS, WARMING, WAVE = 10_000, 2_000, 2_000, 200
LOOK_S: Final = 3.0
MORE_TICKS: Final = 15  # of 300; who spins takes all, or what a busy machine leaves of them
MORE_KIB: Final = (
    16 * 1024
)  # of what a garbage collector has not given back; two pages for each request would be 80 MiB


@pytest_asyncio.fixture(scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installed(tmp_path_factory.mktemp("installed"), workers=1) as made:
        yield made


@dataclass(frozen=True)
class Quiet:
    """The processes when nobody asks for anything."""

    footprints: dict[str, Footprint]
    ticks: dict[str, int]

    @classmethod
    async def of(cls, there: Installation) -> Quiet:
        ticks = {name: await ticks_in(there.pid(name), LOOK_S) for name in WATCHED}
        return cls({name: footprint(there.pid(name)) for name in WATCHED}, ticks)


async def test_ten_thousand_broken_requests_leave_nothing_behind(there: Installation) -> None:
    random = seeded()
    await suffer(there, [broken_request(random) for _ in range(WARMING)], random)
    quiet = await Quiet.of(there)

    await suffer(there, [broken_request(random) for _ in range(REQUESTS)], random)

    await nothing_is_left(there, since=quiet)


async def test_two_thousand_uploads_that_break_off_leave_nothing_behind(there: Installation) -> None:
    random, token = seeded(), there.token("ann", Tier.PARTNER)
    await suffer(there, [broken_upload(random, token) for _ in range(WARMING)], random)
    quiet = await Quiet.of(there)

    await suffer(there, [broken_upload(random, token) for _ in range(UPLOADS)], random)

    await nothing_is_left(there, since=quiet)


async def test_an_old_client_without_a_host_leaves_nothing_behind_though_a_service_restarts(
    there: Installation,
) -> None:
    quiet = await Quiet.of(there)

    await let_loose(port(there), [b"GET /livez HTTP/1.0\r\n\r\n"] * 100, seeded())
    for name in ("admission", "notifier"):
        await there.kill(name)
    await is_ready(there)

    await eventually(lambda: is_idle(there, "caddy", since=quiet), within_s=120)
    await eventually(lambda: footprint(there.pid("caddy")).descriptors <= quiet.footprints["caddy"].descriptors)


async def suffer(there: Installation, attacks: Sequence[bytes], random: Random) -> None:
    """Wave after wave: how high one rises is the machine's business, and so is what it takes of memory."""
    before = {name: footprint(there.pid(name)).descriptors for name in WATCHED}
    for first in range(0, len(attacks), WAVE):
        await let_loose(port(there), attacks[first : first + WAVE], random)
        for name in WATCHED:
            await eventually(lambda name=name: footprint(there.pid(name)).descriptors <= before[name] + AT_ONCE)


async def nothing_is_left(there: Installation, *, since: Quiet) -> None:
    for name, before in since.footprints.items():
        await eventually(lambda name=name, before=before: footprint(there.pid(name)).descriptors <= before.descriptors)
        await eventually(lambda name=name: is_idle(there, name, since=since), within_s=120)
        grown_kib = footprint(there.pid(name)).resident_kib - before.resident_kib
        print(f"{name}: {before.resident_kib} KiB, grown by {grown_kib} KiB")  # noqa: T201 as above
        assert grown_kib <= MORE_KIB, f"{name} has grown by {grown_kib} KiB"
    await is_ready(there)


async def is_idle(there: Installation, name: str, *, since: Quiet) -> bool:
    return await ticks_in(there.pid(name), LOOK_S) <= since.ticks[name] + MORE_TICKS


async def is_ready(there: Installation) -> None:
    async with there.client("ann", Tier.PARTNER) as ann, httpx.AsyncClient(timeout=30) as anybody:
        assert (await ann.get("/usage")).status_code == 200
        assert (await anybody.get(there.up.url)).status_code == 200


def port(there: Installation) -> int:
    return int(there.up.url.rpartition(":")[2])


def seeded() -> Random:
    seed = secrets.randbits(32)
    print(f"\nseed {seed}")  # noqa: T201 so that the same can be tried again
    return Random(seed)

"""As many streams as the machine has descriptors for: two for each in the gateway, one in the notifier."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from headgate_contracts import Tier
from libs.runtime.eventually import eventually
from tests.fixtures.customers import QUICK, Customer
from tests.fixtures.installation import installed
from tests.fixtures.proc import footprint
from tests.fixtures.stream_readers import reading_streams

pytestmark = pytest.mark.timeout(1800)

MOST: Final = 9_000
FEW: Final = 1_024  # what a shell gives, and what nobody may be content with
HEARD_WITHIN_S: Final = 300.0
LEFT: Final = 20  # of connections for what is asked by the way
ROOMY: Final = "[stream]\nper_user = 10000\nper_replica = 10000\n"


async def test_as_many_streams_pass_as_there_are_descriptors_for(tmp_path: Path) -> None:
    number = min(MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[1] * 9 // 20)
    with begun_with(FEW):
        async with installed(tmp_path, policy=ROOMY, workers=1) as there, there.client("ann", Tier.CTO_SCALE) as client:
            caddy, port = there.pid("caddy"), int(there.up.url.rpartition(":")[2])
            before = footprint(caddy)
            async with reading_streams(port, number, "/v1/stream", there.token("ann", Tier.CTO_SCALE)) as report:
                now = footprint(caddy)
                job = await Customer(client).submitted(QUICK)

                async def all_have_heard() -> bool:
                    return len((await report()).get(job, ())) == number

                await eventually(all_have_heard, within_s=HEARD_WITHIN_S, every_s=1)
            await eventually(lambda: footprint(caddy).descriptors < before.descriptors + LEFT, within_s=HEARD_WITHIN_S)

    kib = (now.resident_kib - before.resident_kib) / number
    print(f"\n{number} streams, {now.descriptors} descriptors, {kib:.0f} KiB each in the gateway")  # noqa: T201 the report
    assert now.descriptors >= 2 * number


@contextmanager
def begun_with(descriptors: int) -> Iterator[None]:
    """What starts meanwhile may open so many files at first; how many at most is as it was."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(descriptors, soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

"""That the bucket of inputs is filling is said: as numbers always, as a line when users begin to be refused for it."""

from __future__ import annotations

import pytest

from libs.policy import Policy
from tests.fixtures.schedulers import MemorySchedulers, a_world

SMALL = {
    "submissions": {"max_phases": 1, "max_input_bytes": 300, "user_input_bytes": 400, "crowded": 0.5},
    "retention": {"inputs_bytes": 800},
}


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    records = [record for record in caplog.records if record.name.endswith("crowding")]
    return [(record.levelname, record.getMessage()) for record in records]


async def test_a_crowded_bucket_is_said_once_when_it_begins_and_once_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    async with a_world(policy=Policy.model_validate(SMALL)) as world:
        replica = await world.leading()
        for number in range(5):  # each 128 bytes: these have no input of their own
            await world.submit(f"job-{number}")
        await world.settle(replica)

        for _ in range(2):
            await replica.gauges.look()
        text = world.metrics(replica)
        for number in range(5):
            await world.write(f"job-{number}", "cancelled")
        await world.pass_ms(2 * 86_400_000, replica, every_ms=3_600_000)
        await replica.gauges.look()

        begins, ends = said(caplog)
        assert begins[0] == "WARNING"
        assert "one user may hold" in begins[1]
        assert ends[0] == "INFO"
        assert "headgate_inputs_bytes 640.0" in text
        assert "headgate_inputs_limit_bytes 800.0" in text
        assert "headgate_inputs_share_bytes 64.0" in text  # four tenths of what was free is: 0.16 of the share
        assert "headgate_inputs_bytes 0.0" in world.metrics(replica)


async def test_a_replica_that_does_not_lead_shows_nothing_of_it(world: MemorySchedulers) -> None:
    leads, waits = await world.leading(), world.replica("waits")
    await world.settle(leads, waits)

    await waits.gauges.look()

    assert "headgate_inputs_bytes" not in world.metrics(waits)

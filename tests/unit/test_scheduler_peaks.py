"""The window of peaks: the loop writes and forgets, an exporter's thread only reads."""

from __future__ import annotations

from libs.capacity.ledger import Ledger
from libs.policy import Policy
from libs.runtime.clock import ManualClock
from libs.runtime.telemetry import Telemetry
from services.scheduler.labels import GroupLabels
from services.scheduler.peaks import WINDOW_MS, Peaks

POOL = "pool:default"


async def test_reading_forgets_nothing_and_the_next_look_what_is_too_old() -> None:
    clock, telemetry, policy = ManualClock(), Telemetry("scheduler", instance="a", logs=None), Policy()
    peaks = Peaks(telemetry.meter, ledger=Ledger(policy), labels=GroupLabels(policy), clock=clock)
    for count in (5, 4, 3):
        peaks.looked({POOL: count})
        await clock.advance_ms(WINDOW_MS)

    before = list(peaks._noted[POOL])
    telemetry.metrics_text()
    after = list(peaks._noted[POOL])
    peaks.looked({POOL: 1})

    assert after == before
    assert [count for _, count in peaks._noted[POOL]] == [3, 1]

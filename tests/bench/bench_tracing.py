"""What it costs a job to be traced, each span recorded and sent: CPU of scheduler and worker for each job, by turns
with nothing recorded at all. The attempt's own process is in both."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median

import pytest

from tests.bench.bench_worker import emptied
from tests.fixtures.crowd import POLICY
from tests.fixtures.floor import QUICK, a_floor, children_of
from tests.fixtures.otlp import Receiver

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

SHARE = float(os.environ.get("HEADGATE_BENCH_SHARE", "1"))
JOBS, TURNS = max(20, round(400 * SHARE)), max(1, round(5 * SHARE))
OFF = {"OTEL_SDK_DISABLED": "true"}


async def test_a_job_traced_and_not(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    plain, traced, spans = list[float](), list[float](), 0
    with Receiver() as receiver:
        on = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{receiver.url}/v1/traces", "OTEL_TRACES_SAMPLER": "always_on"}
        for turn in range(TURNS):
            for told, costs in ((OFF, plain), (on, traced)):
                folder = tmp_path / f"{turn}-{'off' if told is OFF else 'on'}"
                folder.mkdir()
                costs.append(await cpu_ms_a_job(nats_url, redis_url, folder, told))
                await emptied(nats_url, redis_url)
            spans = len(receiver.received())

    before, after = median(plain), median(traced)
    print(f"\n\n### a job traced: CPU of scheduler and worker for each, median of {TURNS} turns of {JOBS} jobs\n")
    print("| nothing recorded | every span recorded and sent | more | spans a job |\n| --- | --- | --- | --- |")
    print(f"| {before:.1f} ms | {after:.1f} ms | {100 * (after / before - 1):.1f} % | {spans / JOBS:.0f} |")
    assert spans >= 5 * JOBS


async def cpu_ms_a_job(nats_url: str, redis_url: str, folder: Path, told: dict[str, str]) -> float:
    async with a_floor(nats_url, redis_url, folder, policy=POLICY, **told) as floor:
        processes = [await floor.crowd.scheduler("a"), await floor.worker("w1", slots=4)]
        await floor.submit("first", {"stages": QUICK})
        await floor.until("first", "ready")
        pids = [each.pid for each in processes] + children_of(processes[1].pid)  # where attempts are begun
        before = sum(map(cpu_s, pids))
        for number in range(JOBS):
            await floor.submit(f"job-{number}", {"stages": QUICK}, user=f"u{number}")
        await floor.crowd.all_end(within_s=600)
        return 1000 * (sum(map(cpu_s, pids)) - before) / JOBS


def cpu_s(pid: int) -> float:
    """Its own, and that of those of its processes that have ended: of each attempt's."""
    parts = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    return sum(map(int, parts[11:15])) / os.sysconf("SC_CLK_TCK")

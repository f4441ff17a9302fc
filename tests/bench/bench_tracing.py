"""What it costs a job to be traced, each span recorded and sent: CPU of scheduler and worker for each job, by turns
with nothing recorded at all, no metrics either. The attempts' own processes are in both."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from statistics import median

import pytest

from tests.bench.bench_worker import emptied
from tests.fixtures.otlp import Receiver
from tests.fixtures.scheduler_system import POLICY
from tests.fixtures.worker_system import QUICK, WorkerSystem, a_worker_system, children_of

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

SHARE = float(os.environ.get("HEADGATE_BENCH_SHARE", "1"))
JOBS, TURNS = max(20, round(100 * SHARE)), max(1, round(10 * SHARE))
SENT_WITHIN_S = 8  # spans go out each 5 s
OFF = {"OTEL_TRACES_SAMPLER": "always_off"}
LAST = ("attempt", "decide dispatched")  # that the worker and the scheduler end of a job, here


async def test_a_job_traced_and_not(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    turns = list[dict[str, float]]()
    with Receiver() as receiver:
        on = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{receiver.url}/v1/traces", "OTEL_TRACES_SAMPLER": "always_on"}
        for turn in range(TURNS):
            cost = dict[str, float]()
            for name, environ in sorted({"plain": OFF, "traced": on}.items(), reverse=turn % 2 == 1):
                folder = folder_of(tmp_path / str(turn), name)
                async with a_worker_system(nats_url, redis_url, folder, policy=POLICY, **environ) as system:
                    cost[name] = await cpu_ms_a_job(system)
                await emptied(nats_url, redis_url)
            turns.append(cost)
        names = [each.span.name for each in receiver.received()]
    assert all(names.count(last) > TURNS * JOBS for last in LAST)

    more = sorted(100 * (turn["traced"] / turn["plain"] - 1) for turn in turns)
    before, after = (median(turn[name] for turn in turns) for name in ("plain", "traced"))
    spans = len(names) // (TURNS * (JOBS + 1))
    print(f"\n\n### a job traced: CPU of scheduler and worker for each, medians of {TURNS} pairs of {JOBS} jobs\n")
    print("| no span recorded | every span recorded and sent | more, pair by pair | least and most | spans a job |")
    print("| --- | --- | --- | --- | --- |")
    between = f"{more[0]:.1f} to {more[-1]:.1f} %"
    print(f"| {before:.1f} ms | {after:.1f} ms | {median(more):.1f} % | {between} | {spans} |")

    alone = await spans_alone_ms(spans)
    print("\n\n### the spans of a job in a process that does nothing else, made and sent\n")
    print("| CPU | of a job's |\n| --- | --- |")
    print(f"| {alone:.2f} ms | {100 * alone / before:.1f} % |")


async def spans_alone_ms(spans: int) -> float:
    """The least of several rounds, which others that are at work change little."""
    words = (sys.executable, "-m", "tests.bench.spans", str(spans))
    with Receiver() as receiver:
        environ = os.environ | {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{receiver.url}/v1/traces"}
        process = await asyncio.create_subprocess_exec(*words, env=environ, stdout=asyncio.subprocess.PIPE)
        return float((await process.communicate())[0])


async def cpu_ms_a_job(system: WorkerSystem) -> float:
    """Until what there was to send is sent, and for as long where nothing is: who rests costs something too."""
    processes = [await system.base.scheduler("a"), await system.worker("w1", slots=4)]
    await system.submit("first", {"stages": QUICK})
    await system.until("first", "ready")
    pids = [each.pid for each in processes] + children_of(processes[1].pid)  # where attempts are begun
    before = sum(map(cpu_s, pids))
    for number in range(JOBS):
        await system.submit(f"job-{number}", {"stages": QUICK}, user=f"u{number}")
    await system.base.all_end(within_s=600)
    await asyncio.sleep(SENT_WITHIN_S)
    return 1000 * (sum(map(cpu_s, pids)) - before) / JOBS


def folder_of(turn: Path, name: str) -> Path:
    (turn / name).mkdir(parents=True)
    return turn / name


def cpu_s(pid: int) -> float:
    """Its own, and that of those of its processes that have ended: of each attempt's."""
    parts = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    return sum(map(int, parts[11:15])) / os.sysconf("SC_CLK_TCK")

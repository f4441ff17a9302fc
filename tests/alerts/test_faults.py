"""The real thing: Prometheus scrapes a Headgate under load, to which one fault after the other is done. Each alert
fires, and clears once its fault is gone. Windows are of seconds where an installation's are of minutes and hours."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from headgate_contracts import Tier
from libs.deployment.panels import NAMES, queries
from libs.local.monitoring.rules import AlertRules
from libs.runtime.eventually import eventually
from tests.fixtures.hooks import Receiver, receiving
from tests.fixtures.installation import Installation, installed
from tests.fixtures.watching import Watch, watching

POLICY = """
[leases]
job_s = 3
heartbeat_s = 0.5
leader_s = 2
leader_heartbeat_s = 0.4

[webhooks]
internal = ["{receiver}"]
tries = 2
first_pause_s = 0.2

[stream]
per_user = 100

[submissions]
per_minute = 6000

[tiers.cto_scale]
jobs_per_user = 100
jobs_per_project = 100
jobs_per_day = 10000
first_duration_s = 1
"""
IMPATIENT = {"HEADGATE_OUTAGE_PATIENCE_S": "1"}  # as leases are short
QUICK = AlertRules(
    fast_short="4s",
    fast_long="6s",
    slow_short="5s",
    slow_long="8s",
    start_within_s=1,
    brief="0s",
    recent="20s",  # longer than the notifier hangs, as nobody can scrape it meanwhile
    while_="4s",
    day="12s",  # slots turn over each 4 s: within less nothing starts now and then
    lost=0,
    old_urgent_s=2,
    old_high_s=2,
    old_normal_s=2,
    old_low_s=2,
    old_background_s=2,
)
STAGES = dict.fromkeys(("scaffold", "code", "deps", "checks"), 0.02)
JOB = {"stages": STAGES, "provider": "ollama"}
LONG_CALLS = {"stages": STAGES | {"code": 3.0}, "provider": "ollama"}  # more than the provider has slots: some wait
SLOW_JOB = {"stages": STAGES | {"code": 4.0}}
SLOTS = 8
PAGES = 5
GIB = 2**30
FIRES_WITHIN_S = 60.0  # on a busy machine; an idle one needs 5
ALL = {
    *("HeadgateAdmissionRefuses", "HeadgateForecastOff", "HeadgateJobsFailFast", "HeadgateJobsFailSlow"),
    *("HeadgateLeasesLost", "HeadgateLogNearlyFull", "HeadgateNoLeader", "HeadgateQueueOld", "HeadgateServiceDown"),
    *("HeadgateStartsLateFast", "HeadgateStartsLateSlow", "HeadgateStreamsLag", "HeadgateViewRebuilt"),
    "HeadgateWebhooksFail",
}


@dataclass
class Night:
    """A Headgate under load, who watches it, and what can be done to both."""

    there: Installation
    watch: Watch
    receiver: Receiver
    ann: httpx.AsyncClient
    every_s: float = 0.3
    opened: set[int] = field(default_factory=set[int])

    async def submit(self, content: object) -> httpx.Response | None:
        """Null where nobody answered: what is refused is what is watched."""
        asked = {"project_id": "shop", "pipeline": "rehearsal", "input": content}
        try:
            return await self.ann.post("/jobs", json={**asked, "notify_url": f"http://{self.receiver.host}/"})
        except httpx.HTTPError:
            return None

    async def load(self, content: object = JOB) -> None:
        """A few jobs each second, whatever becomes of those before, until it is cancelled."""
        async with asyncio.TaskGroup() as submitting:
            while True:
                submitting.create_task(self.submit(content))
                await asyncio.sleep(self.every_s)

    async def read(self, *, pages: int = 1) -> None:
        """Pages that are open all the while."""
        self.opened.clear()
        await asyncio.gather(*(self.page(number) for number in range(pages)))

    async def page(self, number: int) -> None:
        """It is open once the first line has come: before that it waits, and late is only what comes after it."""
        while True:
            with suppress(httpx.HTTPError):
                async with self.ann.stream("GET", "/stream") as stream:
                    async for _ in stream.aiter_lines():
                        self.opened.add(number)
            await asyncio.sleep(0.2)

    async def migrate(self, *, events_bytes: int) -> None:
        """As an operator does, with another number in policy."""
        policy = self.there.state.parent / "migrate.toml"
        policy.write_text(f"[retention]\nevents_bytes = {events_bytes}\n")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "libs.cli", "migrate", "--policy", str(policy)),
            env={"HEADGATE_STATE": str(self.there.state)},
        )
        assert await process.wait() == 0

    async def fires(self, *alerts: str) -> None:
        """Once each of them has fired since this was asked."""
        missing = set(alerts)

        async def fired() -> bool:
            missing.difference_update(await self.watch.firing())
            assert not missing
            return True

        await eventually(fired, within_s=FIRES_WITHIN_S, every_s=0.2)


async def test_each_alert_fires_by_its_fault_and_clears_without_it(tmp_path: Path) -> None:
    async with a_night(tmp_path) as night:
        async with doing(night.load()):
            await jobs_that_take_much_longer_than_before(night)
            async with doing(night.read()):
                await a_receiver_that_refuses(night)
            await workers_that_are_killed(night)
        await a_notifier_that_hangs(night)
        async with doing(night.load()):
            await a_store_that_hangs_and_dies(night)
            await a_log_that_is_too_small(night)
            night.every_s = 0.6  # a few more than there are slots for, so that they are soon over
            async with doing(night.read()), doing(night.load(LONG_CALLS)):
                await eventually(lambda: all_panels_show_something(night.watch), within_s=FIRES_WITHIN_S, every_s=0.5)
        told = await night.watch.told()
        await eventually(lambda: is_quiet(night.watch), within_s=FIRES_WITHIN_S, every_s=0.5)
        fired = await night.watch.fired()

    assert fired == ALL
    assert told


async def jobs_that_take_much_longer_than_before(night: Night) -> None:
    """Five times as many as there are slots: what their user is shown rests on the short ones before, and four of five
    wait for 4, 8, 12 and 16 s. The first of the faults: after another one, long waits would be within what is shown, as
    they are with the first guess of an installation, until many short jobs have been measured."""
    await eventually(lambda: is_told_when(night), within_s=FIRES_WITHIN_S, every_s=0.2)
    night.every_s = 2.0
    for _ in range(5 * SLOTS):
        await night.submit(SLOW_JOB)
    await night.fires("HeadgateQueueOld", "HeadgateStartsLateFast", "HeadgateStartsLateSlow", "HeadgateForecastOff")
    night.every_s = 0.3


async def a_receiver_that_refuses(night: Night) -> None:
    night.receiver.status = 500
    await night.fires("HeadgateWebhooksFail")
    night.receiver.status = 204


async def workers_that_are_killed(night: Night) -> None:
    await night.submit(SLOW_JOB)
    await eventually(lambda: runs(night, 1), within_s=FIRES_WITHIN_S, every_s=0.2)
    for name in ("worker", "worker-2"):
        await night.there.kill(name)
    await night.fires("HeadgateLeasesLost")


async def a_notifier_that_hangs(night: Night) -> None:
    """Many pages are open, and each of them hears of one job late: more than one in twenty of what comes at all."""
    await eventually(lambda: rests(night.watch), within_s=FIRES_WITHIN_S, every_s=0.2)
    async with doing(night.read(pages=PAGES)):
        await eventually(lambda: len(night.opened) == PAGES, within_s=FIRES_WITHIN_S, every_s=0.2)
        night.there.signal("notifier", signal.SIGSTOP)
        await eventually(lambda: is_accepted(night), within_s=FIRES_WITHIN_S, every_s=0.2)
        await asyncio.sleep(5)  # later than an event may be
        await night.fires("HeadgateServiceDown")
        night.there.signal("notifier", signal.SIGCONT)
        await night.fires("HeadgateStreamsLag")


async def a_store_that_hangs_and_dies(night: Night) -> None:
    night.there.signal("valkey", signal.SIGSTOP)
    await night.fires("HeadgateNoLeader", "HeadgateAdmissionRefuses", "HeadgateJobsFailFast", "HeadgateJobsFailSlow")
    night.there.signal("valkey", signal.SIGKILL)  # and another is started
    await night.fires("HeadgateViewRebuilt")


async def a_log_that_is_too_small(night: Night) -> None:
    held = await eventually(lambda: log_bytes(night.watch), within_s=FIRES_WITHIN_S, every_s=0.2)
    await night.migrate(events_bytes=int(held * 1.3))
    await night.fires("HeadgateLogNearlyFull")
    await night.migrate(events_bytes=GIB)


async def log_bytes(watch: Watch) -> float:
    """As the leader has last seen it: none, for a moment, after the store was lost."""
    return max([float(series["value"][1]) for series in await watch.query("headgate_log_bytes")], default=0.0)


async def all_panels_show_something(watch: Watch) -> bool:
    """Over windows that Grafana would choose for a scrape each second."""
    asked = [query.replace("$__rate_interval", "15s") for name in NAMES for query in queries(name)]
    empty = [query for query in asked if not [series for series in await watch.query(query) if is_number(series)]]
    assert empty == []
    return True


def is_number(series: dict[str, Any]) -> bool:
    return series["value"][1] != "NaN"


async def is_accepted(night: Night) -> bool:
    answer = await night.submit(JOB)
    return answer is not None and answer.status_code == 202


async def is_told_when(night: Night) -> bool:
    answer = await night.submit(JOB)
    return answer is not None and (answer.json().get("queue") or {}).get("estimate_seconds") is not None


async def is_quiet(watch: Watch) -> bool:
    return not await watch.firing()


async def runs(night: Night, jobs: int) -> bool:
    return bool(await night.watch.query(f"sum(headgate_worker_jobs_running) >= {jobs}"))


async def rests(watch: Watch) -> bool:
    """No job waits or runs; one that lost its worker is held to run, until it is given back."""
    held = 'sum(headgate_queue_length) + sum(headgate_concurrency_slots_active{group="pool:default"})'
    return bool(await watch.query(f"{held} == 0"))


async def leads(watch: Watch) -> bool:
    return bool(await watch.query("headgate_scheduler_leads == 1"))


@asynccontextmanager
async def a_night(folder: Path) -> AsyncIterator[Night]:
    async with (
        receiving() as receiver,
        installed(folder, policy=POLICY.format(receiver=receiver.host), slots=SLOTS // 2, environ=IMPATIENT) as there,
        watching(folder, there, rules=QUICK) as watch,
        there.client("ann", Tier.CTO_SCALE) as ann,
    ):
        await eventually(lambda: leads(watch), within_s=FIRES_WITHIN_S, every_s=0.2)
        yield Night(there, watch, receiver, ann)


@asynccontextmanager
async def doing(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Beside what is inside, and no longer."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

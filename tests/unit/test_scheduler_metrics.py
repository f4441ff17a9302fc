"""The metrics of groups and providers, by the names that dashboards and alerts rely on, as they are scraped."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
import pytest_asyncio

from headgate_contracts import Tier
from headgate_contracts.commands import AcquireLease, GiveUpLease, LeaseReply
from headgate_contracts.events import Group
from libs.policy import Policy
from libs.runtime.telemetry import Telemetry, job_trace
from services.scheduler.replica import Replica
from tests.fixtures.schedulers import MemorySchedulers

SECOND = 1000
OLDEST = "headgate_queue_oldest_seconds"
DB, OLLAMA = "group:shop:db", "llm:ollama"
LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")


@pytest.fixture
def policy() -> Policy:
    return Policy.model_validate({"concurrency": {"limits": {DB: 1, "cache": 2}}})


@pytest_asyncio.fixture
async def leader(world: MemorySchedulers) -> Replica:
    """One job runs and holds the group; another waits for it."""
    replica = await world.leading()
    wanted = (Group(name=DB, limit=1),)
    for name in ("job-1", "job-2"):
        await world.submit(name, user=f"u-{name}", project=f"p-{name}", tier=Tier.PARTNER, groups=wanted)
    await world.beat(slots=3)
    await world.settle(replica)
    await world.write("job-1", "started")
    await world.settle(replica)
    return replica


class Scraped:
    """What stands at /metrics: `value(name, label=…)`; null where there is no such line."""

    def __init__(self, text: str) -> None:
        found = [LINE.fullmatch(line) for line in text.splitlines() if not line.startswith("#")]
        self._lines = [
            (line[1], dict(re.findall(r'(\w+)="([^"]*)"', line[2] or "")), line[3]) for line in found if line
        ]

    def value(self, name: str, **labels: str) -> float | None:
        values = [value for known, has, value in self._lines if known == name and labels.items() <= has.items()]
        return float(values[0]) if len(values) == 1 else None

    def series(self, name: str) -> int:
        """How many lines."""
        return sum(known == name for known, _, _ in self._lines)

    def labels(self, name: str) -> set[str]:
        """Beside those that every metric of a service has."""
        names = [set(has) for known, has, _ in self._lines if known == name]
        return set().union(*names) - {"otel_scope_name", "otel_scope_version", "otel_scope_schema_url"}


async def scrape(world: MemorySchedulers, replica: Replica) -> Scraped:
    await replica.gauges.look()
    return Scraped(world.metrics(replica))


async def ask(world: MemorySchedulers, by: Replica, lease: str, *groups: str, **wanted: Any) -> LeaseReply:
    return await by.handlers.acquire(AcquireLease(lease=lease, groups=groups, **wanted))


async def test_slots_of_a_group_are_shown_with_their_limit(world: MemorySchedulers, leader: Replica) -> None:
    shown = await scrape(world, leader)

    assert shown.value("headgate_concurrency_slots_active", group=DB) == 1
    assert shown.value("headgate_concurrency_slots_limit", group=DB) == 1
    assert shown.value("headgate_concurrency_slots_active", group="pool:default") == 1
    assert shown.value("headgate_concurrency_slots_limit", group="pool:default") == 3
    assert shown.value("headgate_concurrency_slots_limit", group="workflows") == 5


async def test_after_a_reload_groups_and_the_share_of_inputs_are_those_of_the_policy_in_force(
    world: MemorySchedulers, leader: Replica
) -> None:
    before = await scrape(world, leader)
    changed = {"concurrency": {"limits": {"group:shop:web": 4}}, "submissions": {"user_input_bytes": 7_000_000}}

    await world.reload(Policy.model_validate(changed))
    await world.settle(leader)
    shown = await scrape(world, leader)

    slots, share = "headgate_concurrency_slots_limit", "headgate_inputs_share_bytes"
    assert [before.value(slots, group=group) for group in (DB, "group:shop:web")] == [1, None]
    assert [shown.value(slots, group=group) for group in (DB, "group:shop:web")] == [None, 4]
    assert (before.value(share), shown.value(share)) == (Policy().submissions.user_input_bytes, 7_000_000)


async def test_the_backlog_is_in_seconds_of_work_and_what_runs_counts_with_its_rest(
    world: MemorySchedulers, leader: Replica
) -> None:
    guess_s = leader.ledger.policy.tier_limits(Tier.PARTNER).first_duration_s
    at_first = (await scrape(world, leader)).value("headgate_backlog_seconds", pool="default")
    await world.pass_ms(10 * SECOND, leader)
    ten_seconds_later = (await scrape(world, leader)).value("headgate_backlog_seconds", pool="default")
    await world.submit("job-3", user="u-3", project="p-3", tier=Tier.PARTNER)
    await world.settle(leader)
    with_one_more = (await scrape(world, leader)).value("headgate_backlog_seconds", pool="default")

    assert at_first == pytest.approx(2 * guess_s, abs=2)
    assert ten_seconds_later == pytest.approx(2 * guess_s - 10, abs=2)
    assert with_one_more == pytest.approx(3 * guess_s - 10, abs=2)


async def test_the_groups_of_one_user_are_in_no_label(world: MemorySchedulers, leader: Replica) -> None:
    shown = await scrape(world, leader)

    assert shown.value("headgate_concurrency_slots_active", group="user:u-job-1") is None
    assert shown.value("headgate_concurrency_acquisition_total", group="project:p-job-1") is None


async def test_groups_that_tenants_invent_are_summed_under_one_label(world: MemorySchedulers, leader: Replica) -> None:
    """By the hundred: as many lines as before."""
    before = (await scrape(world, leader)).series("headgate_concurrency_slots_active")
    names = [f"group:p{number}:{last}" for number in range(20) for last in ("theirs", "cache")]
    await world.beat(slots=50)
    for number, name in enumerate(names):
        await world.submit(
            f"more-{number}", user=f"u{number}", project=f"x{number}", groups=(Group(name=name, limit=1),)
        )
        await world.settle(leader)
    for number in range(200):
        await ask(world, leader, f"l{number}", f"group:q{number}:mine")

    shown = await scrape(world, leader)

    assert shown.value("headgate_concurrency_slots_active", group="other") == 220
    assert shown.value("headgate_concurrency_slots_active", group="cache") == 20
    assert shown.value("headgate_concurrency_slots_limit", group="other") is None
    assert shown.series("headgate_concurrency_slots_active") == before + 2
    for name in ("headgate_concurrency_acquisition_total", "headgate_concurrency_wait_seconds_count"):
        assert shown.value(name, group="other", **({"result": "acquired"} if "acq" in name else {})) == 220
        assert shown.series(name) == 4, "the pool, the group that policy names, the last part that it names, and other"


async def test_a_provider_that_policy_does_not_name_has_no_label(world: MemorySchedulers, leader: Replica) -> None:
    for number in range(30):
        await ask(world, leader, f"l{number}", f"llm:invented-{number}", wait_ms=60_000)
        await ask(world, leader, f"m{number}", f"llm:invented-{number}", wait_ms=60_000)

    shown = await scrape(world, leader)

    assert shown.series("headgate_llm_blocked_requests_total") == 0
    assert shown.series("headgate_llm_in_flight") == 5


async def test_each_request_for_a_slot_is_counted_by_its_result(world: MemorySchedulers, leader: Replica) -> None:
    await ask(world, leader, "l1", OLLAMA, "llm:global")
    await ask(world, leader, "l2", DB)

    shown = await scrape(world, leader)

    acquisitions = "headgate_concurrency_acquisition_total"
    assert shown.value(acquisitions, group=DB, result="acquired") == 1
    assert shown.value(acquisitions, group=DB, result="rejected") == 1
    assert shown.value(acquisitions, group=OLLAMA, result="acquired") == 1
    assert shown.labels(acquisitions) == {"group", "result"}


async def test_a_request_that_waits_is_counted_once_however_often_its_worker_asks(
    world: MemorySchedulers, leader: Replica
) -> None:
    """As a worker does: again each few seconds, and once more when it is told that its turn has come."""
    for number in range(4):
        await ask(world, leader, f"l{number}", OLLAMA, wait_ms=60_000)
    await ask(world, leader, "late", OLLAMA, wait_ms=60_000)
    for waited_s in (5, 10):
        await world.pass_ms(5 * SECOND, leader)
        await ask(world, leader, "late", OLLAMA, wait_ms=60_000 - waited_s * SECOND, waited=True)
    await leader.handlers.give_up(GiveUpLease(lease="l0"))
    await ask(world, leader, "late", OLLAMA, wait_ms=50_000, waited=True)
    await ask(world, leader, "vain", OLLAMA, wait_ms=1)
    await world.pass_ms(1 * SECOND, leader)
    await ask(world, leader, "vain", OLLAMA, waited=True)

    shown = await scrape(world, leader)

    assert shown.value("headgate_concurrency_acquisition_total", group=OLLAMA, result="acquired") == 5
    assert shown.value("headgate_concurrency_acquisition_total", group=OLLAMA, result="rejected") == 1
    assert shown.value("headgate_concurrency_wait_seconds_count", group=OLLAMA) == 5
    assert shown.value("headgate_concurrency_wait_seconds_sum", group=OLLAMA) == 10
    assert shown.value("headgate_llm_blocked_requests_total", provider="ollama") == 2
    assert shown.value("headgate_llm_block_seconds_count", provider="ollama") == 1


async def test_a_wait_that_the_view_forgot_is_counted_and_has_no_length(
    world: MemorySchedulers, leader: Replica
) -> None:
    await ask(world, leader, "l1", OLLAMA, wait_ms=60_000, waited=True)

    shown = await scrape(world, leader)

    assert shown.value("headgate_concurrency_acquisition_total", group=OLLAMA, result="acquired") == 1
    assert not shown.value("headgate_concurrency_wait_seconds_count", group=OLLAMA)


async def test_a_job_that_comes_back_acquires_its_slots_again(world: MemorySchedulers, leader: Replica) -> None:
    await world.write("job-1", "given_back:drained")
    await world.settle(leader)

    shown = await scrape(world, leader)

    dispatched = len(world.dispatched())
    assert dispatched == 2
    assert shown.value("headgate_concurrency_acquisition_total", group="pool:default", result="acquired") == dispatched
    assert shown.value("headgate_scheduler_dispatched_total", pool="default") == dispatched


async def test_a_stages_own_group_is_shown_from_its_first_use_on(world: MemorySchedulers, leader: Replica) -> None:
    before = await scrape(world, leader)
    await ask(world, leader, "l1", "stage:build:code:3")
    used = await scrape(world, leader)
    await leader.handlers.give_up(GiveUpLease(lease="l1"))
    after = await scrape(world, leader)

    of_stage = {"group": "stage:build:code"}
    active = [each.value("headgate_concurrency_slots_active", **of_stage) for each in (before, used, after)]
    assert active == [None, 1, 0]
    assert after.value("headgate_concurrency_slots_limit", **of_stage) == 3
    assert after.value("headgate_concurrency_acquisition_total", result="acquired", **of_stage) == 1


async def test_a_peak_between_two_looks_is_seen_for_a_minute(world: MemorySchedulers, leader: Replica) -> None:
    for number in range(3):
        await ask(world, leader, f"l{number}", OLLAMA)
    for number in range(3):
        await leader.handlers.give_up(GiveUpLease(lease=f"l{number}"))

    shown = await scrape(world, leader)
    await world.pass_ms(61 * SECOND, leader, every_ms=5 * SECOND)
    later = await scrape(world, leader)

    peak = "headgate_concurrency_slots_peak"
    assert (shown.value("headgate_concurrency_slots_active", group=OLLAMA), shown.value(peak, group=OLLAMA)) == (0, 3)
    assert shown.value(peak, group="pool:default") == 1
    assert later.value(peak, group=OLLAMA) == 0


async def test_how_long_somebody_waited_for_a_slot_is_a_histogram(world: MemorySchedulers, leader: Replica) -> None:
    await ask(world, leader, "l1", OLLAMA)
    for number in range(2, 5):
        await ask(world, leader, f"l{number}", OLLAMA)
    await ask(world, leader, "late", OLLAMA, wait_ms=60_000)
    await world.pass_ms(7 * SECOND, leader)
    await leader.handlers.give_up(GiveUpLease(lease="l1"))

    shown = await scrape(world, leader)

    assert shown.value("headgate_concurrency_wait_seconds_count", group=OLLAMA) == 5
    assert shown.value("headgate_concurrency_wait_seconds_sum", group=OLLAMA) == 7
    assert shown.value("headgate_concurrency_wait_seconds_bucket", group=OLLAMA, le="15") == 5
    assert shown.value("headgate_concurrency_wait_seconds_bucket", group=OLLAMA, le="5") == 4


async def test_calls_to_providers_are_shown_one_by_one_and_in_all(world: MemorySchedulers, leader: Replica) -> None:
    await ask(world, leader, "l1", OLLAMA, "llm:global")
    await ask(world, leader, "l2", "llm:openai", "llm:global")

    shown = await scrape(world, leader)

    in_flight = "headgate_llm_in_flight"
    assert [shown.value(in_flight, provider=name) for name in ("ollama", "openai", "total", "gemini")] == [1, 1, 2, 0]
    assert shown.labels(in_flight) == {"provider"}


@pytest.mark.parametrize("waits", [True, False])
async def test_a_request_that_finds_a_provider_full_is_counted_there(
    world: MemorySchedulers,
    leader: Replica,
    waits: bool,  # noqa: FBT001 a table's column
) -> None:
    for number in range(4):
        await ask(world, leader, f"l{number}", OLLAMA, "llm:global")
    await ask(world, leader, "late", OLLAMA, "llm:global", wait_ms=60_000 if waits else 0)
    await world.pass_ms(3 * SECOND, leader)
    await leader.handlers.give_up(GiveUpLease(lease="l0"))

    shown = await scrape(world, leader)

    blocked = "headgate_llm_blocked_requests_total"
    assert shown.value(blocked, provider="ollama") == 1
    assert shown.value(blocked, provider="total") is None
    assert shown.value("headgate_llm_block_seconds_count", provider="ollama") == (1 if waits else None)
    assert shown.value("headgate_llm_block_seconds_sum", provider="ollama") == (3 if waits else None)


async def test_the_oldest_of_each_class_is_shown_as_long_as_it_waits(world: MemorySchedulers, leader: Replica) -> None:
    await world.pass_ms(20 * SECOND, leader)
    await world.submit("job-3", user="eve", project="p-3", priority="low", groups=(Group(name=DB, limit=1),))
    await world.settle(leader)
    await world.pass_ms(4 * SECOND, leader)

    shown = await scrape(world, leader)

    assert shown.value(OLDEST, **{"class": "normal"}) == 24, "job-2, which waits for the group"
    assert shown.value(OLDEST, **{"class": "low"}) == 4
    assert shown.value(OLDEST, **{"class": "urgent"}) == 0


async def test_a_job_that_came_back_waits_since_then(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-3", user="eve", project="p-3", priority="high")
    await world.settle(leader)
    await world.write("job-3", "started")
    await world.pass_ms(100 * SECOND, leader, every_ms=5 * SECOND)

    shown = await scrape(world, leader)

    job, now = await world.job("job-3"), leader.leader.now
    assert (job.status.value, shown.value("headgate_scheduler_lost_total")) == ("queued", 2)
    assert shown.value(OLDEST, **{"class": "high"}) == (now - (job.aged_at or now)).total_seconds() < 100


async def test_what_ended_is_counted_with_whose_fault_it_was(world: MemorySchedulers, leader: Replica) -> None:
    await world.write("job-1", "scaffold", "code", "deps", "checks", "ready")
    await world.settle(leader)
    await world.write("job-2", "started", "failed")
    await world.settle(leader)

    shown = await scrape(world, leader)

    ended = "headgate_jobs_ended_total"
    assert shown.value(ended, end="ready") == 1
    assert shown.value(ended, end="failed", fault="job") == 1
    assert shown.series(ended) == 2


async def test_each_rebuilding_of_the_view_is_counted(world: MemorySchedulers, leader: Replica) -> None:
    before = (await scrape(world, leader)).value("headgate_view_rebuilt_total")
    world.store.lose()
    await world.settle(leader)

    assert before == 1, "the first one, of a new log"
    assert (await scrape(world, leader)).value("headgate_view_rebuilt_total") == 2


async def test_a_log_that_has_a_limit_shows_how_full_it_is(world: MemorySchedulers, leader: Replica) -> None:
    without = await scrape(world, leader)
    world.server._max_bytes = 100_000

    shown = await scrape(world, leader)

    assert without.value("headgate_log_limit_bytes") is None
    assert shown.value("headgate_log_limit_bytes") == 100_000
    assert 1000 < (shown.value("headgate_log_bytes") or 0) < 10_000


async def test_a_lost_worker_leaves_a_line_with_job_user_attempt_and_trace(
    world: MemorySchedulers, leader: Replica
) -> None:
    lines = io.StringIO()
    telemetry = Telemetry("scheduler", instance="s-1", logs=lines)
    await telemetry.start()
    await world.pass_ms(120 * SECOND, leader, every_ms=5 * SECOND)
    await telemetry.stop()

    said = [json.loads(line) for line in lines.getvalue().splitlines()]
    [lost] = [line for line in said if line["message"] == "the job's worker was lost"]
    trace_id = job_trace(await world.job("job-1")).debug_id
    about = {"job_id": "job-1", "user_id": "u-job-1", "attempt": 1, "trace_id": trace_id}
    assert lost | about == lost

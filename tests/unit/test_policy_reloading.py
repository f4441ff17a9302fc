"""Another policy while everything runs: what can be, what every fold makes of it, and what clients are answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, cast

import pytest

from headgate_contracts import Event, Tier, Writer
from headgate_contracts.envelope import utc
from headgate_contracts.events import LimitSet, PolicyReloaded
from headgate_contracts.shown import ShownPolicy
from headgate_contracts.tokens import ulid
from libs.capacity.answers import Heartbeat
from libs.capacity.engine import Engine
from libs.capacity.ledger import Ledger
from libs.capacity.memory import MemoryStore
from libs.capacity.projection import row_of, said_in_rows
from libs.capacity.snapshot import dump, load
from libs.eventlog import Appended, Conflicted, Entry, LogUnavailable
from libs.eventlog.memory import MemoryLog, MemoryServer, MemorySnapshots
from libs.eventlog.ports import EventLog
from libs.eventlog.values import Mark
from libs.foundation.ground import Ground
from libs.foundation.policing import PolicyFollower, follow_policy, require_policy
from libs.policy import Policy, PolicyError, PolicyInForce
from libs.policy.lines import line_of
from libs.policy.loading import policy_from
from libs.policy.reloading import RELOADED, as_toml, differences, require_reloadable, sections_of
from libs.policy.sections import keys
from libs.runtime.clock import ManualClock
from libs.runtime.lifecycle import Health, Service
from services.admission.acts import Acts
from services.admission.reloading import Reloading, policy_etag
from services.scheduler.snapshots import newest_fold
from tests.fixtures.admission_api import OPERATOR, AdmissionApi
from tests.fixtures.lives import life_of
from tests.fixtures.memory_admission import EPOCH, MemoryAdmission
from tests.unit.test_folder import Replica
from tests.unit.test_ledger import act, logged, reshaped

NUMBERS = count(1)
DAY_MS = 86_400_000
SLOWER: dict[str, Any] = {"tiers": {"partner": {"jobs_per_user": 1}}}
FILE = """\
# ours
[queue]
cap = 200

[tiers.partner]
jobs_per_day = 80
[concurrency.limits]
"group:shop:db" = 3
"""


def policy(**changes: Any) -> Policy:
    return policy_from(dict(changes), environ={})


def reloaded(**changes: Any) -> PolicyReloaded:
    return PolicyReloaded(by="olga", sections=sections_of(policy(**changes)), changed=())


def test_what_holds_a_policy_in_force_reads_the_one_that_was_taken_last() -> None:
    mine = PolicyInForce.of(policy(leases={"job_s": 60}))
    queue = mine.queue

    mine.take(sections_of(policy(queue={"cap": 7}, leases={"job_s": 90})))

    assert (mine.queue.cap, mine.queue.user_share, queue.cap) == (7, 3, 100)
    assert mine.leases.job_s == 60  # as it was started


def test_one_that_cannot_be_changes_nothing() -> None:
    mine = PolicyInForce.of(policy(retention={"events_days": 60}))

    with pytest.raises(PolicyError, match=r"retention\.events_days"):
        mine.take(sections_of(policy(queue={"horizon_days": 55})))

    assert mine.queue.horizon_days == 30


OF_ANOTHER_RELEASE: dict[str, Any] = {
    "queue": {"cap": 7, "was_once": 1},
    "tiers": {"partner": {"jobs_per_user": 9, "was_once": 1}, "was_once": {"boost": 1}},
    "concurrency": {"limits": {"workflows": 2}},
    "was_once": {"cap": 1},
}


def test_of_an_act_of_another_release_what_is_known_holds_over_the_file() -> None:
    file = policy(
        queue={"busy_step_minutes": 5},
        tiers={"partner": {"boost": 4}, "cto_scale": {"boost": 8}},
        concurrency={"default_limit": 2, "limits": {"db": 3}},
        order={"max_passed": 4},
    )
    mine = PolicyInForce.of(file)

    mine.take(OF_ANOTHER_RELEASE)

    assert (mine.queue.cap, mine.queue.user_share, mine.queue.busy_step_minutes) == (7, 3, 5)
    assert (mine.tiers.partner.jobs_per_user, mine.tiers.partner.boost, mine.tiers.cto_scale.boost) == (9, 4, 8)
    assert (mine.concurrency.default_limit, mine.order.max_passed) == (2, 4)
    assert dict(mine.concurrency.limits) == {"workflows": 2}  # a table of names is one value


def test_what_an_act_does_not_name_is_the_files_and_not_an_earlier_acts() -> None:
    file = policy(queue={"busy_step_minutes": 5})
    mine = PolicyInForce.of(file)
    mine.take(sections_of(policy(queue={"busy_step_minutes": 7}, order={"max_passed": 1})))

    mine.take({"queue": {"cap": 7}})

    assert (mine.queue.busy_step_minutes, mine.queue.cap, mine.order.max_passed) == (5, 7, 10)
    assert PolicyInForce.of(mine).file == mine.file == file


def test_a_snapshot_of_another_release_is_taken_as_an_act_of_one_is() -> None:
    ledger, file = Ledger(Policy()), policy(queue={"busy_step_minutes": 5})
    ledger.apply(logged([act(reloaded(queue={"cap": 7}))])[0])
    snapshot = reshaped(dump(ledger, epoch="E"), policy={"seq": 1, "sections": OF_ANOTHER_RELEASE})

    again = load(snapshot, epoch="E", policy=file)
    again.reload(PolicyReloaded(by="olga", sections={"queue": {"cap": 8}}), 2)

    assert (again.policy.queue.cap, again.policy.queue.busy_step_minutes) == (8, 5)
    assert again.policy.tiers.partner.jobs_per_user == 3


def test_each_section_is_reloaded_or_taken_at_a_start() -> None:
    at_start = {"pools", "runs", "sandbox", "leases", "tokens", "stream", "webhooks", "retention"}

    assert {*RELOADED, *at_start} == set(Policy.model_fields)
    assert not {*RELOADED} & at_start


def test_a_reload_that_only_a_start_can_do_is_refused_by_its_keys() -> None:
    wanted = policy(queue={"cap": 7}, leases={"job_s": 60}, pools={"names": ["gpu"]})

    with pytest.raises(PolicyError) as refused:
        require_reloadable(Policy(), wanted)

    assert [each.key for each in refused.value.problems] == ["pools.names", "leases.job_s"]


def test_how_long_slots_are_held_from_outside_is_for_a_start_to_change() -> None:
    """Where the view is lost, groups are shut for as long as the longest lease that may run."""
    shorter = policy(concurrency={"default_lease_duration_secs": 20, "default_limit": 2})
    mine = PolicyInForce.of(Policy())

    with pytest.raises(PolicyError) as refused:
        require_reloadable(mine, shorter)
    mine.take(sections_of(shorter))

    assert [each.key for each in refused.value.problems] == ["concurrency.default_lease_duration_secs"]
    assert (mine.concurrency.longest_lease_ms, mine.concurrency.default_limit) == (300_000, 2)


def test_differences_are_told_number_by_number() -> None:
    found = [*differences(Policy(), policy(queue={"cap": 200, "user_share": 50}, runs={"max_lost": 5}))]

    assert [str(each) for each in found] == ["queue.cap = 200 (before 100)", "runs.max_lost = 5 (before 3)"]
    assert [each.at_start for each in found] == [False, True]


def test_a_policy_as_toml_is_read_as_the_same_policy() -> None:
    import tomllib

    mine = policy(concurrency={"limits": {"group:shop:db": 3}}, tiers={"partner": {"hard_cap": 20}})

    assert policy_from(tomllib.loads(as_toml(mine)), environ={}) == mine


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("queue.cap", 3),
        ("queue.nothing", 2),
        ("tiers.partner.jobs_per_day", 6),
        ('concurrency.limits."group:shop:db"', 8),
        ("leases.job_s", None),
    ],
)
def test_a_key_is_found_in_its_file(key: str, line: int | None) -> None:
    assert line_of(FILE, key) == line


def test_every_fold_counts_by_it_from_its_record_on() -> None:
    ledger = Ledger(Policy())
    before = ledger.standing().defaults["user/partner"]
    for record in logged([*life_of("job-1", "queued"), act(reloaded(**SLOWER))]):
        ledger.apply(record)

    again = load(dump(ledger, epoch="E"), epoch="E", policy=Policy())

    assert before == Policy().tiers.partner.jobs_per_user == 3
    assert ledger.standing().defaults["user/partner"] == 1
    assert (again.policy_seq, again.policy.tiers.partner.jobs_per_user) == (ledger.policy_seq, 1)


def test_a_snapshot_keeps_the_orders_where_its_policy_cannot_be_in_force() -> None:
    ledger = Ledger(Policy())
    for record in logged([act(LimitSet(group="workflows", limit=9, by="olga")), act(reloaded(queue={"cap": 7}))]):
        ledger.apply(record)
    short = policy(retention={"events_days": 20}, queue={"horizon_days": 10}, tokens={"longest_days": 10})

    again = load(dump(ledger, epoch="E"), epoch="E", policy=short)

    assert (again.applied, again.orders.limits) == (2, {"workflows": 9})
    assert (again.policy.queue.cap, again.policy_seq) == (100, 0)


def test_a_record_that_no_fold_can_take_is_stepped_over_and_complained_of() -> None:
    ledger = Ledger(Policy())
    strange = PolicyReloaded(by="olga", sections={"queue": {"cap": -1}})

    [change] = [ledger.apply(record) for record in logged([act(strange)])]

    assert "queue.cap" in (change.complaint or "")
    assert (ledger.policy.queue.cap, ledger.policy_seq) == (100, 0)
    assert "record 1 " in ledger.policy_refused

    ledger.apply(logged([act(strange), act(reloaded(queue={"cap": 7}))])[1])

    assert (ledger.policy.queue.cap, ledger.policy_refused) == (7, "")


async def test_limits_alone_leave_the_view_and_boosts_make_it_anew() -> None:
    replica, begun = Replica(MemoryStore()), life_of("job-1", "queued")
    boosted = {"tiers": {tier.value: {"boost": 9} for tier in Tier}}
    records = logged([*begun, act(reloaded(**SLOWER)), act(reloaded(**boosted))])
    folder = replica.folder

    marks = list[str]()
    for reached in range(1, len(records) + 1):
        folder.take(records[:reached])
        await folder.update_view()
        marks.append((await replica.mark())[0])

    assert marks == ["a1", "a1", "a2"]
    [job] = folder.ledger.jobs.values()
    assert row_of(job, folder.ledger.policy).boost == 9


def test_who_may_run_is_planned_by_the_policy_in_force_on_the_workers_known_before() -> None:
    ledger = Ledger(Policy())
    *queued, reload = logged([*(event for name in "abc" for event in life_of(name, "queued")), act(reloaded(**SLOWER))])
    for record in queued:
        ledger.apply(record)
    engine = Engine.of(ledger, clock=lambda: 1000)
    told = {"pool": "default", "draining": False, "holders": (), "leases": (), "ttl_ms": 30_000}
    engine.staff.beat(Heartbeat(worker="w", slots=8, **told))
    before = [pick.job for pick in engine.plan(20).picks]

    ledger.apply(reload)
    engine.renew(ledger)
    after = [pick.job for pick in engine.plan(20).picks]
    engine.staff.beat(Heartbeat(worker="w", slots=0, **told))

    assert (before, after) == (["a", "b", "c"], ["a"])
    assert (engine.applied, engine.plan(20).picks) == (4, ())


@pytest.mark.parametrize("key", [key.path for key in keys(Policy()) if isinstance(key.value, int | float)])
def test_rows_depend_on_no_number_that_is_not_named(key: str) -> None:
    """A number of the policy that a row says, and that `said_in_rows` does not, would leave rows of before."""
    before, after = Policy(), with_another(key)
    rows = Replica(MemoryStore()).folder.ledger
    for record in logged([*life_of("a", "queued"), *life_of("b", "queued dispatched started"), *life_of("c")]):
        rows.apply(record)

    if said_in_rows(before) == said_in_rows(after):
        assert [row_of(job, before) for job in rows.jobs.values()] == [row_of(job, after) for job in rows.jobs.values()]


def with_another(key: str) -> Policy:
    """The default but for this number, which is a little more, or less where it cannot be more."""
    value = next(each.value for each in keys(Policy()) if each.path == key)
    step = 0.01 if 0 < value < 1 else 1
    others = (not value,) if isinstance(value, bool) else (value + step, value - step, value / 2)
    for other in others:
        table: dict[str, Any] = {key.rpartition(".")[2]: other}
        for part in reversed(key.split(".")[:-1]):
            table = {part: table}
        with suppress(PolicyError):
            return policy(**table)
    raise AssertionError(f"{key} alone cannot be another")


@pytest.fixture
def server(clock: ManualClock) -> MemoryServer:
    return MemoryServer(clock, epoch=EPOCH)


async def wrote(log: EventLog, data: PolicyReloaded) -> None:
    event_id = ulid(1, next(NUMBERS).to_bytes(10, "big"))
    last = await log.last(str(data.route()))
    await log.append_batch([Entry(Event(event_id, Writer.ADMISSION, utc(0), data), last.seq if last else 0)])


async def test_a_service_that_starts_later_takes_the_last_reload(server: MemoryServer, clock: ManualClock) -> None:
    log, mine = MemoryLog(server, clock=clock), PolicyInForce.of(Policy())
    for cap in (200, 300):
        await wrote(log, reloaded(queue={"cap": cap}))

    await PolicyFollower(log, mine, clock, Health()).catch_up()

    assert mine.queue.cap == 300


@pytest.mark.parametrize("held", [{}, {"policy": {"seq": 1, "sections": {}}}])
async def test_a_scheduler_takes_a_reload_that_its_snapshot_is_beyond_and_does_not_have(
    server: MemoryServer, clock: ManualClock, held: dict[str, Any]
) -> None:
    """Who folded it knew nothing of reloads, or could not have this one in force."""
    log, snapshots, ledger = MemoryLog(server, clock=clock), MemorySnapshots(), Ledger(Policy())
    for _ in range(2):
        await wrote(log, reloaded(queue={"cap": 300}))
    ledger.applied = 2
    await snapshots.put(reshaped(dump(ledger, epoch=EPOCH), **held), mark=Mark(EPOCH, 2))

    again = await newest_fold(snapshots, log, epoch=EPOCH, policy=Policy())

    assert (again.applied, again.policy_seq, again.policy.queue.cap) == (2, 2, 300)


async def test_a_scheduler_comes_by_a_reload_that_its_snapshot_is_not_beyond(
    server: MemoryServer, clock: ManualClock
) -> None:
    log = MemoryLog(server, clock=clock)
    await wrote(log, reloaded(queue={"cap": 300}))

    ledger = await newest_fold(MemorySnapshots(), log, epoch=EPOCH, policy=Policy())

    assert (ledger.policy_seq, ledger.policy.queue.cap) == (0, 100)


def ground_of(log: MemoryLog, file: Policy, clock: ManualClock) -> Ground[Any]:
    policy, gate, telemetry = PolicyInForce.of(file), cast("Any", None), cast("Any", None)
    return Ground(
        settings=None,
        policy=policy,
        clock=clock,
        health=Health(),
        telemetry=telemetry,
        gate=gate,
        nc=cast("Any", None),
        log=cast("Any", log),
    )


@pytest.mark.parametrize("folds", [True, False])
async def test_a_service_that_starts_says_which_policy_is_in_force(
    server: MemoryServer, clock: ManualClock, caplog: pytest.LogCaptureFixture, *, folds: bool
) -> None:
    caplog.set_level("INFO", "libs.foundation.policing")
    log, file = MemoryLog(server, clock=clock), policy(queue={"cap": 200}, concurrency={"default_limit": 2})
    ground, service = ground_of(log, file, clock), Service("test")
    await wrote(log, reloaded(queue={"cap": 300}, concurrency={"default_limit": 2}))

    async def compose(service: Service) -> None:
        await (require_policy(ground) if folds else follow_policy(service, ground))
        service.stop()

    assert await service.run(compose) == 0
    [said] = [each.getMessage() for each in caplog.records if each.name == "libs.foundation.policing"]
    assert said.startswith("policy: in force is the one reloaded on ")
    assert said.endswith("UTC by olga: `headgate policy show`; the file differs in: queue.cap, queue.user_share")


async def test_an_operator_reloads_and_everybody_is_told_what_changed(admission: MemoryAdmission) -> None:
    api = AdmissionApi(admission)
    async with api.client("olga", scope=OPERATOR) as olga, api.client() as ann:
        first = await olga.get("/v1/policy")
        done = await olga.put("/v1/policy", json={"policy": {"queue": {"cap": 7}}, "reason": "a small night"})
        again = await olga.put("/v1/policy", json={"policy": {"queue": {"cap": 7}}})
        seen = await olga.get("/v1/policy")
        audit = await olga.get("/v1/audit")
        refused = await ann.get("/v1/policy")

    assert (first.json()["policy"]["queue"]["cap"], first.json()["since"]) == (100, None)
    assert done.json()["changed"] == ["queue.cap = 7 (before 100)", "queue.user_share = 3 (before 50)"]
    assert again.json()["changed"] == []
    assert (seen.json()["by"], seen.json()["reason"], seen.json()["policy"]["queue"]["cap"]) == (
        "olga",
        "a small night",
        7,
    )
    [entry] = audit.json()
    assert (entry["act"], entry["about"]) == ("policy_reloaded", "policy")
    assert entry["details"] == {"changed": ["queue.cap", "queue.user_share"]}
    assert refused.status_code == 403
    assert admission.submitting.policy.queue.cap == 7


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"queue": {"cap": 0}}, "queue.cap"),
        ({"queue": {"capp": 7}}, "queue.capp"),
        ({"queue": {"cap": 7, "user_share": 8}}, "queue.user_share"),
        ({"leases": {"job_s": 60}}, "leases.job_s"),
    ],
)
async def test_a_bad_file_changes_nothing(admission: MemoryAdmission, asked: dict[str, Any], field: str) -> None:
    async with AdmissionApi(admission).client("olga", scope=OPERATOR) as olga:
        refused = await olga.put("/v1/policy", json={"policy": asked})

    assert refused.status_code == 422
    assert [each["field"] for each in refused.json()["errors"]] == [field]
    assert admission.policy.queue.cap == 100
    assert await admission.log.last("headgate.ops.v1.policy_reloaded") is None


async def last_reload(admission: MemoryAdmission) -> tuple[int, PolicyReloaded]:
    record = await admission.log.last("headgate.ops.v1.policy_reloaded")
    assert record is not None
    assert isinstance(record.event, Event)
    assert isinstance(record.event.data, PolicyReloaded)
    return record.seq, record.event.data


@pytest.mark.parametrize("reason", ["", "a small night", "x" * 500])
async def test_the_act_is_written_again_before_the_log_forgets_it(admission: MemoryAdmission, reason: str) -> None:
    await admission.reloading.reload({"queue": {"cap": 7}}, by="olga", reason=reason)
    await admission.reloading.carry_on()
    first, since = await last_reload(admission), utc(admission.clock.now_ms())

    await admission.clock.advance_ms(46 * DAY_MS)
    await admission.reloading.carry_on()
    second = await last_reload(admission)
    await admission.clock.advance_ms(46 * DAY_MS)
    await admission.reloading.carry_on()
    third = await last_reload(admission)

    assert (first[1].reason, second[1].by, second[1].sections) == (reason, "olga", first[1].sections)
    assert first[0] < second[0] < third[0]
    said = f"(in force since {since:%Y-%m-%d %H:%M} UTC, written again before the log forgets it)"
    assert second[1].reason.startswith(reason[:400])
    assert second[1].reason.endswith(said)
    assert len(second[1].reason) <= 500
    assert third[1].reason == second[1].reason


async def test_an_old_act_does_not_come_after_a_newer_one(admission: MemoryAdmission) -> None:
    """Another replica has reloaded, and this one has not looked since."""
    await admission.reloading.reload({"queue": {"cap": 7}}, by="olga", reason="")
    await admission.clock.advance_ms(46 * DAY_MS)
    await wrote(admission.log, reloaded(queue={"cap": 300}))
    newer = await last_reload(admission)

    await admission.reloading.carry_on()

    assert await last_reload(admission) == newer
    assert admission.policy.queue.cap == 300


class Meanwhile:
    """A log to which somebody else writes right before we do, once."""

    def __init__(self, log: EventLog, deed: Callable[[], Awaitable[object]]) -> None:
        self._log = log
        self._deed: Callable[[], Awaitable[object]] | None = deed

    async def append_batch(self, entries: Sequence[Entry]) -> Appended | Conflicted:
        deed, self._deed = self._deed, None
        if deed is not None:
            await deed()
        return await self._log.append_batch(entries)


def beside(admission: MemoryAdmission, deed: Callable[[], Awaitable[object]]) -> Reloading:
    """Another replica, whose next act comes a moment after this was done."""
    rules, health = PolicyInForce.of(admission.policy.file), Health()
    acts = Acts(cast("EventLog", Meanwhile(admission.log, deed)), admission.clock, admission.ids)
    follower = PolicyFollower(admission.log, rules, admission.clock, health)
    return Reloading(acts, rules, follower, {}, admission.clock)


async def test_a_reload_between_the_look_and_the_writing_is_not_undone(admission: MemoryAdmission) -> None:
    await admission.reloading.reload({"queue": {"cap": 7}}, by="olga", reason="")
    await admission.clock.advance_ms(46 * DAY_MS)
    replica = beside(admission, lambda: admission.reloading.reload({"queue": {"cap": 300}}, by="otto", reason=""))

    await replica.carry_on()

    assert (await last_reload(admission))[1].by == "otto"
    assert (replica.policy.queue.cap, replica.in_force().by) == (300, "otto")


async def test_of_two_reloads_at_once_the_second_says_what_it_changes_of_the_first(admission: MemoryAdmission) -> None:
    wanted: dict[str, Any] = {"queue": {"cap": 7, "user_share": 3}}
    replica = beside(admission, lambda: admission.reloading.reload(wanted, by="otto", reason=""))

    second = await replica.reload({"queue": {"cap": 9, "user_share": 3}}, by="olga", reason="")

    assert isinstance(second, ShownPolicy)
    assert second.changed == ("queue.cap = 9 (before 7)",)
    assert (await last_reload(admission))[1].changed == ("queue.cap",)


async def test_a_reload_that_names_what_it_replaces_changes_nothing_else(admission: MemoryAdmission) -> None:
    """Two operators have looked at the same policy."""
    api, url = AdmissionApi(admission), "/v1/policy"
    async with api.client("olga", scope=OPERATOR) as olga, api.client("otto", scope=OPERATOR) as otto:
        seen = (await olga.get(url)).headers
        first = await otto.put(url, json={"policy": {"queue": {"cap": 9}}}, headers={"If-Match": seen["etag"]})
        late = await olga.put(url, json={"policy": {"queue": {"cap": 7}}}, headers={"If-Match": seen["etag"]})
        again = await olga.put(url, json={"policy": {"queue": {"cap": 7}}}, headers={"If-Match": late.headers["etag"]})

    assert (first.status_code, late.status_code, again.status_code) == (200, 412, 200)
    assert late.headers["etag"] == first.headers["etag"] == f'"{first.json()["version"]}"'
    assert "reloaded by otto" in late.json()["detail"]
    assert again.json()["changed"] == ["queue.cap = 7 (before 9)", "queue.user_share = 3 (before 4)"]


async def test_a_reload_that_names_what_it_replaces_does_not_replace_one_that_cannot_be_shown_here(
    admission: MemoryAdmission,
) -> None:
    seen = frozenset({policy_etag(admission.reloading.in_force())})
    await wrote(admission.log, reloaded(queue={"horizon_days": 85}, retention={"events_days": 200}))
    await admission.reloading.follower.look()
    newer = await last_reload(admission)

    with pytest.raises(PolicyError, match="without If-Match"):
        await admission.reloading.reload({"queue": {"cap": 7}}, by="olga", reason="", expected=seen)

    assert await last_reload(admission) == newer
    await admission.reloading.reload({"queue": {"cap": 7}}, by="olga", reason="")
    assert admission.policy.queue.cap == 7


async def test_a_reload_takes_the_place_of_one_that_cannot_be_in_force_here_and_was_not_seen_before(
    admission: MemoryAdmission,
) -> None:
    await wrote(admission.log, reloaded(queue={"horizon_days": 85}, retention={"events_days": 200}))

    await admission.reloading.reload({"queue": {"cap": 7}}, by="olga", reason="")

    assert admission.policy.queue.cap == 7


async def test_replicas_that_were_started_with_other_numbers_tell_one_version(admission: MemoryAdmission) -> None:
    """Of those that no reload changes, as while a new policy.toml is rolled out."""
    others = {"leases": {"job_s": 60}, "concurrency": {"default_lease_duration_secs": 120}}
    rules = PolicyInForce.of(policy_from(others, environ={}))
    follower = PolicyFollower(admission.log, rules, admission.clock, Health())
    acts = Acts(admission.log, admission.clock, admission.ids)
    replica = Reloading(acts, rules, follower, {}, admission.clock)
    seen = frozenset({policy_etag(replica.in_force())})

    outcome = await admission.reloading.reload({"queue": {"cap": 7}}, by="olga", reason="", expected=seen)

    assert isinstance(outcome, ShownPolicy)
    assert frozenset({policy_etag(outcome)}) != seen


async def test_a_reload_after_one_that_the_log_has_no_more_is_asked_to_come_again(admission: MemoryAdmission) -> None:
    """The log was restored under a service that goes on."""
    await admission.reloading.reload({"queue": {"cap": 7}}, by="olga", reason="")
    admission.reloading.follower.seen += 5

    with pytest.raises(LogUnavailable):
        await admission.reloading.reload({"queue": {"cap": 9}}, by="olga", reason="")

    assert admission.policy.queue.cap == 7


async def test_the_version_stays_where_the_act_is_written_again(admission: MemoryAdmission) -> None:
    await admission.reloading.reload({"queue": {"cap": 7}}, by="olga", reason="")
    before = admission.reloading.in_force()
    await admission.clock.advance_ms(46 * DAY_MS)

    await admission.reloading.carry_on()

    after = admission.reloading.in_force()
    assert after.since != before.since
    assert after.version == before.version


async def test_whoever_asks_for_the_health_is_told_of_a_policy_that_cannot_be_in_force(
    admission: MemoryAdmission,
) -> None:
    await wrote(admission.log, reloaded(queue={"horizon_days": 85}, retention={"events_days": 200}))
    await admission.reloading.follower.look()
    noted = admission.health.notes

    await wrote(admission.log, reloaded(queue={"cap": 7}))
    await admission.reloading.follower.look()

    assert len(noted) == 1
    assert "record 1 cannot be in force here" in noted[0]
    assert admission.health.notes == ()


async def test_an_old_act_does_not_come_after_one_that_cannot_be_in_force_here(admission: MemoryAdmission) -> None:
    await admission.reloading.reload({"queue": {"cap": 7}}, by="olga", reason="")
    await admission.clock.advance_ms(46 * DAY_MS)
    await wrote(admission.log, reloaded(queue={"horizon_days": 85}, retention={"events_days": 200}))
    newer = await last_reload(admission)

    for _ in range(2):
        await admission.reloading.carry_on()

    assert await last_reload(admission) == newer
    assert admission.policy.queue.cap == 7

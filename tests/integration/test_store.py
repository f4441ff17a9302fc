"""`RedisView` on a real server: what the twin cannot show. The rules themselves are the conformance suite's."""

import asyncio
import re
from collections import Counter
from dataclasses import replace

import pytest
import pytest_asyncio
from redis.asyncio import Redis
from redis.crc import key_slot
from redis.utils import HIREDIS_AVAILABLE

from libs.capacity.answers import (
    Busy,
    Deferred,
    Folded,
    Granted,
    HeldLease,
    LeaseRequest,
    LeasesFull,
    Reserved,
    StaleView,
)
from libs.capacity.errors import ViewLost, ViewMisused, ViewUnavailable
from libs.capacity.keys import KEYS, VIEW, ticket_key, view_key
from libs.capacity.rows import CLASS_STEP, Change, Pause, Seed, StandingOrders
from libs.capacity.scripts import TOGETHER, ScriptRunner
from libs.capacity.store import PIPELINE, RedisView
from libs.capacity.store_client import open_client
from libs.local.servers import ValkeyServer
from libs.runtime.eventually import eventually
from tests.conformance.view_beside import beside
from tests.conformance.view_scenario import DAY_MS, LEASE_MS, NOW_MS, TODAY, ViewScenario, request, row
from tests.fixtures.observing import observe
from tests.fixtures.stores import EPOCH, SHARD


@pytest_asyncio.fixture
async def world(view: RedisView) -> ViewScenario:
    world = beside(view)
    await world.open()
    await world.worker()
    return world


async def live(world: ViewScenario) -> None:
    """A bit of everything, so that every kind of key is written."""
    world.orders.defaults["llm:ollama"] = 1
    await world.configure(world.orders.defaults)
    for job in ("a", "b", "c", "d", "e"):
        await world.submit(job, workflow="flow" if job == "b" else None, input_bytes=100)
    await world.submit("over", user="gone", input_bytes=100)
    await world.finish("over")
    await world.submit("long over", user="gone", input_bytes=100)
    await world.finish("long over")
    await world.forget("long over")
    await world.submit("passing", tier="partner", user="bob", project="blog")
    await world.submit("brings", user="cleo", project="mill", groups=("group:mill:db",), limits={"group:mill:db": 2})
    await world.schedule("later")
    await world.reserve("unseen", user="dora", tier="partner", cost_ms=6_000)
    await world.reserve("tomorrow", user="dora", per_day=1)
    assert await world.release("later", cap=1) is not None
    await world.dispatch("a", "b")
    await world.hold("inside", "llm:ollama", owner="a:1")
    await world.view.give_up("given back", now_ms=world.now_ms)
    await world.acquire("waits inside", "llm:ollama", owner="b:1")
    await world.acquire("waits outside", "llm:ollama", wait_ms=50_000, user="ann")
    await world.pause("user:cleo")
    assert isinstance(await world.defer("c", first_day=TODAY + 1), Deferred)
    await world.shut("llm:gemini", 1_000)
    await world.claim("brings")
    await world.view.publish("forecast", "{}")
    await world.view.count_refused("busy", now_ms=world.now_ms)


async def keys_of(client: Redis) -> dict[str, str]:
    """Every key and its type."""
    names = [str(name) async for name in client.scan_iter(match="*", count=1000)]
    return {name: str(await client.type(name)).upper() for name in names}


# ── keys ──────────────────────────────────────────────────────────────────────


async def test_every_key_is_declared_with_its_type_and_in_one_slot(world: ViewScenario, client: Redis) -> None:
    await live(world)

    patterns = {re.compile(re.sub(r"<\w+>", ".+", key.pattern)): key for key in KEYS}
    seen: set[str] = set()
    for name, kind in (await keys_of(client)).items():
        assert key_slot(name.encode()) == key_slot(view_key(SHARD).encode())
        if name == view_key(SHARD):
            assert kind == VIEW.type
            continue
        tail = name.removeprefix("{hg:main}:generation-0:")
        declared = next(key for pattern, key in patterns.items() if pattern.fullmatch(tail))
        assert kind == declared.type, name
        seen.add(declared.name)
    assert seen >= {key.name for key in KEYS} - {"unheard", "untold", "freed"}


async def test_jobs_that_are_over_leave_nothing_but_what_is_said_to_stay(world: ViewScenario, client: Redis) -> None:
    await live(world)

    await world.resume("user:cleo")
    for job in [*world.rows]:
        await world.finish(job)
        await world.forget(job)
    world.later(3 * DAY_MS)
    await world.view.sweep(now_ms=world.now_ms)

    left = {name.rpartition("generation-0:")[2] for name in await keys_of(client)}
    assert left == {view_key(SHARD), "limits", "defaults", "published"}


async def test_two_shards_on_one_server_know_nothing_of_each_other(world: ViewScenario, client: Redis) -> None:
    other = RedisView(client, shard="other", epoch=EPOCH)
    await world.submit("a")

    assert await other.mark() is None
    with pytest.raises(ViewLost):
        await other.queue()


async def test_the_largest_scores_are_exact(world: ViewScenario) -> None:
    place = 2**46 - 3
    for number in range(3):
        job = replace(row(f"j{number}", user=f"u{number}"), class_number=127, place=place + number, arrival=number)
        await world.fold(job)

    assert [entry.score for entry in await world.view.queue()] == [127 * CLASS_STEP + place + n for n in range(3)]
    outlook = await world.view.outlook("j2", now_ms=world.now_ms)
    assert outlook is not None
    assert (outlook.score, outlook.position) == (127 * CLASS_STEP + place + 2, 3)


async def test_names_with_signs_of_patterns_and_other_alphabets_are_names(world: ViewScenario) -> None:
    await world.submit("a", user="a%-b", project="straße", pool="p*")
    await world.worker("w2", pool="p*", slots=1)

    assert await world.plan() == ["a"]
    await world.dispatch("a")
    assert [holder.job for holder in (await world.view.group("project:straße", now_ms=world.now_ms)).holders] == ["a"]


# ── refusing ──────────────────────────────────────────────────────────────────


async def test_a_view_is_seeded_only_by_who_began_it_and_until_it_is_open(view: RedisView) -> None:
    await view.begin(EPOCH, generation="g1", applied=0, standing=StandingOrders())

    with pytest.raises(ViewLost):
        await view.open(generation="g0", quarantine_ms=0)
    await view.open(generation="g1", quarantine_ms=0)
    with pytest.raises(ViewLost):
        await view.seed([Seed(row("a"), 0)], generation="g1", lease_ms=LEASE_MS)


async def test_a_wrong_move_is_the_callers_mistake(world: ViewScenario) -> None:
    with pytest.raises(ViewMisused):
        await world.view.between("a", before="b", after="c")
    with pytest.raises(ViewMisused):
        await world.view.between("a", before="a")


async def test_a_key_of_another_type_is_the_callers_mistake(world: ViewScenario, client: Redis) -> None:
    await client.set("{hg:main}:generation-0:queue", "x")

    with pytest.raises(ViewMisused, match="WRONGTYPE"):
        await world.view.queue()


async def test_a_server_that_is_gone_is_unavailable_and_is_found_again(valkey_server: ValkeyServer) -> None:
    client = open_client(valkey_server.url)
    view = RedisView(client, shard=SHARD, epoch=EPOCH)
    await ViewScenario(view).open()

    await valkey_server.kill()
    for ask in (view.mark, view.queue, lambda: view.fold([Change(seq=1, prev=0)], lease_ms=LEASE_MS)):
        with pytest.raises(ViewUnavailable):
            await ask()
    await valkey_server.start()

    assert await view.queue() == ()
    await view.close()
    await client.aclose()


# ── asked twice, by many, or of a server that forgets ─────────────────────────


async def test_what_is_asked_together_is_one_round_trip(view: RedisView, client: Redis) -> None:
    await ViewScenario(view).open()
    await view.day_used("ann", TODAY)

    before = (await client.info("stats"))["total_reads_processed"]
    await asyncio.gather(*(view.day_used("ann", TODAY) for _ in range(TOGETHER)))
    after = (await client.info("stats"))["total_reads_processed"]

    assert after - before < TOGETHER / 10, "all of it is some kilobytes"


async def test_of_what_is_asked_together_each_has_its_own_answer(view: RedisView, client: Redis) -> None:
    await ViewScenario(view).open()
    runner = ScriptRunner(client, view=view_key(SHARD))
    await client.script_flush()

    async def asked(verb: str, epoch: str, *args: str | int) -> object:
        return await runner.run(verb, epoch, str(NOW_MS), *args)

    answers = await asyncio.gather(
        asked("day_used_v1", EPOCH, "ann", TODAY),
        asked("day_used_v1", "another log", "ann", TODAY),
        *(asked("job_v1", EPOCH, f"j{number}") for number in range(TOGETHER)),
        return_exceptions=True,
    )

    assert answers[0] == 0
    assert isinstance(answers[1], ViewLost)
    assert answers[2:] == [None] * TOGETHER


async def test_an_asker_that_gives_up_takes_no_answer_from_those_who_asked_with_it(view: RedisView) -> None:
    await ViewScenario(view).open()
    gone, stays = (asyncio.create_task(view.day_used("ann", TODAY)) for _ in range(2))
    await asyncio.sleep(0)

    gone.cancel()

    assert await stays == 0
    assert gone.cancelled()


async def test_a_server_that_forgot_the_scripts_is_given_them_again(world: ViewScenario, client: Redis) -> None:
    await client.script_flush()

    await world.submit("a")
    assert await world.plan() == ["a"]


async def test_a_script_forgotten_in_the_middle_of_a_fold_costs_no_change(
    view: RedisView, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = ViewScenario(view)
    await world.open()
    changes = [world.write(row(f"j{number}")) for number in range(10)]
    send, cut = ScriptRunner._send, 4

    async def forgetful(self: ScriptRunner, script: object, calls: list[object]) -> list[object]:
        first = await send(self, script, calls[:cut])  # type: ignore[arg-type]
        if len(calls) == len(changes):
            await client.script_flush()
        return first + await send(self, script, calls[cut:])  # type: ignore[arg-type]

    monkeypatch.setattr(ScriptRunner, "_send", forgetful)
    answer = await view.fold(changes, lease_ms=LEASE_MS)

    assert answer == Folded(10)
    assert (await observe(view)).statuses == {f"j{number}": "queued" for number in range(10)}


async def test_more_changes_than_one_pipeline_holds_are_all_folded(view: RedisView) -> None:
    world = ViewScenario(view)
    await world.open()
    changes = [world.write(row(f"j{number}")) for number in range(2 * PIPELINE + 1)]

    assert await view.fold(changes, lease_ms=LEASE_MS) == Folded(2 * PIPELINE + 1)
    assert len((await observe(view)).statuses) == 2 * PIPELINE + 1


async def test_changes_folded_twice_or_by_two_at_once_count_once(view: RedisView) -> None:
    world = ViewScenario(view)
    await world.open()
    first, second = row("first", user="ann"), row("second", user="bob")
    changes = [world.write(replace(first, place=65536, arrival=1))]
    changes.append(world.write(replace(second, place=1024, arrival=2), passed=("first",)))
    later = [world.write(row(f"j{number}")) for number in range(200)]

    answers = await asyncio.gather(*(view.fold(changes + later, lease_ms=LEASE_MS) for _ in range(4)))

    assert answers == [Folded(202)] * 4
    queue = await view.queue()
    assert [(entry.job, entry.passed) for entry in queue] == [("second", 0), ("first", 1)]


async def test_a_gap_is_not_folded_over(view: RedisView) -> None:
    world = ViewScenario(view)
    await world.open()
    _, second = world.write(row("first")), world.write(row("second"))

    assert await view.fold([second], lease_ms=LEASE_MS) == StaleView(0)
    assert await view.job("second") is None


async def test_two_at_the_last_place_are_one(client: Redis) -> None:
    views = [RedisView(client, shard=SHARD, epoch=EPOCH) for _ in range(8)]
    await ViewScenario(views[0]).open()
    for round_ in range(25):
        asked = [request(f"r{round_}-{number}", cap=round_ + 1, user_share=100) for number in range(len(views))]

        answers = await asyncio.gather(
            *(view.reserve(ask, now_ms=NOW_MS) for view, ask in zip(views, asked, strict=True))
        )

        assert Counter(map(type, answers)) == {Reserved: 1, Busy: 7}
        assert len(await views[0].queue()) == round_ + 1
    await views[0].close()


async def test_an_outage_that_is_told_of_twice_is_added_once(world: ViewScenario, client: Redis) -> None:
    await world.submit("a")
    await world.dispatch("a")
    runner = ScriptRunner(client, view=view_key(SHARD))

    for _ in range(2):
        await runner.run("prolong_v1", EPOCH, "", 5_000, "the same call")

    seen = await observe(world.view, now_ms=world.now_ms)
    assert seen.leases == {"a:1": world.now_ms + LEASE_MS + 5_000}


# ── time ──────────────────────────────────────────────────────────────────────


async def test_the_servers_clock_counts_where_no_time_is_passed(view: RedisView, client: Redis) -> None:
    world = ViewScenario(view)
    await world.open()
    await view.configure({"group": 1})
    asked = LeaseRequest(lease="l", groups=("group:shop:db",), owner=None, ttl_ms=30_000, wait_ms=0)

    before_s, _ = await client.time()
    answer = await view.acquire(asked)
    after_s, _ = await client.time()

    assert isinstance(answer, Granted)
    assert before_s * 1000 <= answer.expires_ms - 30_000 < (after_s + 1) * 1000


async def test_a_ticket_is_worth_nothing_once_its_time_is_over(view: RedisView, client: Redis) -> None:
    await view.keep_ticket("0" * 64, "{}", user="ann", most=9, ttl_ms=1)

    async def expired() -> bool:
        return not await client.exists(ticket_key(SHARD, "0" * 64))

    await eventually(expired)
    assert await view.take_ticket("0" * 64) is None


# ── what is told beside the twin ──────────────────────────────────────────────


async def test_a_pause_keeps_who_ordered_it_word_for_word(world: ViewScenario) -> None:
    reason = 'a "quoted" reason, ü and \\n'
    await world.fold(order=Pause("all", by="olga", reason=reason, since_ms=7))

    seen = await observe(world.view, now_ms=world.now_ms)
    assert seen.pauses == {"all": {"by": "olga", "reason": reason, "since_ms": "7"}}


async def test_a_job_is_read_as_it_was_written(world: ViewScenario) -> None:
    text = '{"prompt": "x\\u0000 ü \U0001f600"}'
    await world.fold(replace(row("a"), job=text))

    assert await world.view.job("a") == text


async def test_a_lease_heard_of_again_after_a_rebuild_is_held_above_the_limit(world: ViewScenario) -> None:
    await world.submit("a")
    await world.dispatch("a")
    await world.open(seeds=world.seeds(), generation="g2")
    await world.hold("other", "group:shop:db")

    await world.worker(holders=("a:1",), leases=(HeldLease("mine", "a:1", ("group:shop:db",)),))

    group = await world.view.group("group:shop:db", now_ms=world.now_ms)
    assert ([holder.name for holder in group.holders], group.limit) == (["mine", "other"], 1)


def test_answers_are_parsed_in_c() -> None:
    assert HIREDIS_AVAILABLE, "install hiredis: folding is a third slower without it"


async def test_leases_that_an_earlier_release_ended_are_not_counted_against_their_user(
    world: ViewScenario, client: Redis
) -> None:
    await world.hold("held", "group:mill:db", user="ann", most=2)
    await client.sadd("{hg:main}:generation-0:leased:ann", "ended by a script that counts nothing")

    assert isinstance(await world.acquire("second", "group:mill:cache", user="ann", most=2), Granted)
    assert await world.acquire("third", "group:mill:pen", user="ann", most=2) == LeasesFull(2)


async def test_a_lease_that_an_earlier_release_gave_out_counts_from_its_next_extension_on(
    world: ViewScenario, client: Redis
) -> None:
    await world.hold("held", "group:mill:db", user="ann", most=1)
    await client.delete("{hg:main}:generation-0:leased:ann")

    await world.acquire("held", "group:mill:db", user="ann", held_until_ms=world.now_ms)

    assert await world.acquire("second", "group:mill:cache", user="ann", most=1) == LeasesFull(1)

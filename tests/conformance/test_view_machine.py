"""Random lives of a view: the twin keeps the laws, and the store is the twin's equal after every step."""

import asyncio
import os
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant, run_state_machine_as_test
from redis.asyncio import Redis

from libs.capacity.answers import Plan
from libs.capacity.memory import MemoryStore, MemoryView
from libs.capacity.ports import View
from libs.capacity.store import RedisView
from libs.capacity.store_client import open_client
from tests.conformance.view_beside import Beside
from tests.conformance.view_log import NOW_MS, TODAY
from tests.conformance.view_machine import BOUND, INNER, ViewMachine
from tests.conformance.view_oracle import check_laws, scan
from tests.conformance.view_pair import Pair
from tests.fixtures.observing import observe
from tests.fixtures.stores import EPOCH

EVERY_DAY = 15
LIVES = int(os.environ.get("VIEW_LIVES", "1000"))
PARTS = 4  # so that parallel workers share them
STEPS = 40
READ_GROUPS = ["user:ann", "project:shop", "pool:default", "workflows", *INNER]
PART_OF_MANY = [pytest.param(LIVES // PARTS, marks=pytest.mark.lives, id=f"part-{part}") for part in range(PARTS)]
few_or_many_lives = pytest.mark.parametrize("lives", [EVERY_DAY, *PART_OF_MANY])
pytestmark = pytest.mark.timeout(600)  # a life that differs is shortened, which takes longer than all the others


def so_many(lives: int) -> settings:
    return settings(
        max_examples=lives,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


class TwinMachine(ViewMachine):
    """The view in memory, looked into after every step, and an engine beside it."""

    def make(self) -> Any:
        self.store = MemoryStore()
        return Beside(MemoryView(EPOCH, clock=lambda: NOW_MS, store=self.store), lambda: self.world)

    def run(self, asked: Coroutine[Any, Any, Any]) -> Any:
        """What a coroutine gives that waits for nobody."""
        try:
            asked.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("the view in memory waits for nobody")

    def planned(self, plan: Plan, limit: int, only_class: int | None) -> None:
        world, state = self.world, self.store.state
        assert state is not None
        quarantined = world.now_ms < state.quarantine_until_ms and bool(state.unheard)
        seen = self.run(observe(world.view, now_ms=world.now_ms))
        of_class = {job: row for job, row in world.rows.items() if only_class in (None, row.class_number)}
        expected = list(scan(seen, of_class, world.orders, quarantined=quarantined))
        assert [pick.job for pick in plan.picks] == expected[:limit]
        assert not plan.more

    @invariant()
    def keeps_the_laws(self) -> None:
        assert self.store.state is not None
        check_laws(self.store.state, self.world, bound=BOUND)


class PairMachine(ViewMachine):
    """The store on a server beside the twin."""

    loop: asyncio.AbstractEventLoop
    store: RedisView
    client: Redis
    turn = 0
    alike = False

    def make(self) -> View:
        self.run(self.client.flushall())
        self.pair: Any = Pair(MemoryView(EPOCH, clock=lambda: NOW_MS), self.store)
        beside: Any = Beside(self.pair, lambda: self.world)
        return beside

    def run(self, asked: Any) -> Any:
        return self.loop.run_until_complete(asked)

    @invariant()
    def answers_alike(self) -> None:
        """All that is held after every step, and a reader in turn: all of them each time would take most of the run."""
        now = {"now_ms": self.world.now_ms}
        readers = [*self._readers()]
        self.turn, self.alike = self.turn + 1, False
        turns = [readers[(self.turn + offset) % len(readers)] for offset in (0, len(readers) // 2)]
        self.run(self.pair.compare([("observe", now), *turns]))
        self.alike = True

    def teardown(self) -> None:
        if self.alike:
            self.run(self.pair.compare([*self._readers()]))

    def _readers(self) -> Iterator[tuple[Any, ...]]:
        now, rows = {"now_ms": self.world.now_ms}, self.world.rows
        yield ("outlooks", [*rows, "nobody"], now)
        yield from (("outlook", job, now) for job, row in rows.items() if row.place is not None)
        yield ("groups", now)
        yield ("workers", now)
        yield ("pauses", {})
        yield ("refused", {"now_ms": self.world.now_ms + 3_600_000 * 20})
        yield ("tiers_queued", {})
        yield ("published", "forecast", {})
        yield from (("group", group, now) for group in READ_GROUPS)
        yield from (("jobs_of", user, {"count": 3}) for user in ("ann", "bob"))
        yield from (("day_used", "ann", TODAY + day, {}) for day in range(2))
        yield from (("job", job, {}) for job in [*rows][:2])
        yield ("due", 5, now)
        yield ("queue", {"offset": 1, "count": 3})
        yield ("mark", {})


@few_or_many_lives
def test_the_twin_keeps_the_laws_whatever_happens(lives: int) -> None:
    run_state_machine_as_test(TwinMachine, settings=so_many(lives))


@pytest.fixture
def pair_machine(redis_url: str) -> Iterator[type[PairMachine]]:
    """On a loop of its own, as hypothesis asks without one."""
    with asyncio.Runner() as runner:

        class Machine(PairMachine):
            loop = runner.get_loop()
            client = open_client(redis_url)
            store = RedisView(client, shard="main", epoch=EPOCH)

        yield Machine
        runner.run(Machine.store.close())
        runner.run(Machine.client.aclose())


@few_or_many_lives
def test_the_store_is_the_twins_equal_whatever_happens(pair_machine: type[PairMachine], lives: int) -> None:
    run_state_machine_as_test(pair_machine, settings=so_many(lives))

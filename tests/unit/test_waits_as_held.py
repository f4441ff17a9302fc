"""What a job's waits are told to have been, against what the scheduler's own view said in that moment.

Random lives of a whole system in memory. Before time passes, the view is asked why each queued job waits; in the end an
index is folded from the log, and what it tells of those moments must be what the view had said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from headgate_contracts import Tier
from headgate_contracts.envelope import utc
from headgate_contracts.events import Group
from headgate_contracts.shown import ShownWait
from libs.capacity.answers import Outlook
from libs.capacity.errors import ViewError
from libs.capacity.projection import is_inner
from libs.eventlog import Record
from libs.forecast import waited
from services.admission import index_holds
from services.admission.index import Index
from services.admission.index_reader import IndexReader
from services.admission.waiting import life_of
from tests.fixtures.schedulers import EPOCH, MemorySchedulers, a_world
from tests.unit.test_scheduler_histories import POLICY, History

Said = tuple[str, int, Outlook]


async def said_of_all(world: MemorySchedulers) -> list[Said]:
    """Of each queued job, where the view has folded the whole log."""
    mark = await world.view.mark()
    if mark is None or not mark.open or mark.applied != world.server.last_seq:
        return []
    waiting = [entry.job for entry in await world.view.queue() if not entry.reserved]
    outlooks = zip(waiting, await world.view.outlooks(waiting), strict=True)
    return [(job, world.clock.now_ms(), outlook) for job, outlook in outlooks if outlook is not None]


class WatchedHistory(History):
    """Asks why jobs wait before time passes."""

    def __init__(self, world: MemorySchedulers, seed: int) -> None:
        super().__init__(world, seed)
        self.said: list[Said] = []

    async def pass_time(self) -> None:
        for _ in range(5):
            await self.turn(*self.replicas)
        with suppress(ViewError):
            self.said += await said_of_all(self.world)
        await super().pass_time()


def judged(path: Path, world: MemorySchedulers, said: Sequence[Said]) -> Counter[str]:
    """How often it is told what held a job, and how often not though it could be. What is told has to be so."""
    records, now_ms = world.records(), world.clock.now_ms()
    index = Index(path, epoch=EPOCH)
    index.open()
    index.fold(records, {})
    index.close()
    waits = {job: told(path, records, job, until_ms=now_ms) for job in {job for job, _, _ in said}}
    return Counter(verdict(at(waits[job], moment_ms), outlook) for job, moment_ms, outlook in said)


def told(path: Path, records: Sequence[Record], job: str, *, until_ms: int) -> tuple[ShownWait, ...]:
    life = tuple(life_of([each for each in records if getattr(each.event.data, "job_id", "") == job]))  # type: ignore[union-attr]
    scopes, groups = waited.scopes_and_groups(life)
    reader = IndexReader(path)
    holds = reader.holds(scopes, groups, since_ms=0, until_ms=until_ms + 1)
    reader.close()
    return waited.waits_of(life, holds)


def at(waits: Sequence[ShownWait], moment_ms: int) -> ShownWait:
    [found] = [
        each for each in waits if each.since <= utc(moment_ms) and (not each.until or utc(moment_ms) < each.until)
    ]
    return found


def verdict(wait: ShownWait, outlook: Outlook) -> str:
    full = {each.group: each.limit for each in outlook.obstacles if each.active >= each.limit}
    is_pool_full = outlook.pool_active >= outlook.pool_slots
    match wait.reason:
        case "paused":
            assert wait.group == outlook.pauses[0].scope
        case "pool_full":
            assert is_pool_full or outlook.pool_slots != wait.limit, (wait, outlook)  # workers have come since
        case "turn" | "provider_paused":
            could = [group for group in full if not is_inner(group)]
            return "untold" if could or outlook.pauses or is_pool_full else "nothing"
        case _:
            assert full.get(wait.group or "") == wait.limit, (wait, outlook)
    assert not outlook.pauses or wait.reason == "paused", (wait, outlook)
    return "told"


@pytest.fixture(autouse=True)
def to_the_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (waited, index_holds):
        monkeypatch.setattr(module, "BRIEF_MS", 0)


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_told_to_have_held_a_job_that_did_not(seed: int, tmp_path: Path) -> None:
    """Tiers change with each submission, limits and pauses come and go, records are lost and late."""
    async with a_world(policy=POLICY) as world:
        history = WatchedHistory(world, seed)
        await history.live()

    assert judged(tmp_path / "jobs.sqlite3", world, history.said)["told"]


async def test_all_that_the_log_tells_of_waits_is_told(tmp_path: Path) -> None:
    """Where all of a project have one tier, and who works is the same throughout."""
    dice, said = Random(5), list[Said]()
    async with a_world() as world:
        leader = await world.leading()
        for number in range(60):
            await world.beat(slots=4)
            user, tier = dice.choice([("u1", Tier.PARTNER), ("u2", Tier.BOOTSTRAPPER), ("u3", Tier.CTO_SCALE)])
            groups = dice.choice([(), (Group(name="group:shop:db", limit=1),)])
            await world.submit(
                f"job-{number:02}", user=user, project=user + dice.choice("pq"), tier=tier, groups=groups
            )
            await world.settle(leader)
            running = [job.id for job in leader.ledger.jobs.values() if job.status.is_running]
            if running and dice.random() < 0.7:
                await world.finish(dice.choice(running))
            await dice.choice([world.pause, world.resume, world.resume])(
                dice.choice(["all", "user:u1", "pool:default"])
            )
            await world.settle(leader)
            said += await said_of_all(world)
            await world.clock.advance_ms(dice.choice([10, 1000, 9000]))

    verdicts = judged(tmp_path / "jobs.sqlite3", world, said)

    assert verdicts["told"] > 100
    assert not verdicts["untold"]

"""The twin and JetStream, asked the same in the same order, answer the same.

The order of questions comes from hypothesis: appends and batches of a few jobs and a chain, some with the right
expectation, some with an old one or one beyond the log, some repeated word by word; events alone that expect besides
where the whole log ends.
"""

import itertools
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate_contracts import ContractError, Job, JobEvent, Status, advance
from headgate_contracts.envelope import AnyEvent
from headgate_contracts.events import JobData
from libs.eventlog import Appended, Conflicted, Entry, EventLog, LogError, Record
from tests.fixtures.lives import step
from tests.fixtures.logs import act, caught_up, commit, in_memory, opened

CHAIN = "main"
WORDS = {
    None: ("queued", "scheduled"),
    Status.SCHEDULED: ("queued:released", "reprioritized:user"),
    Status.QUEUED: ("dispatched", "dispatched", "moved:operator", "cancelled"),
    Status.STARTING: ("scaffold", "given_back:lost", "cancel_requested"),
    Status.SCAFFOLD: ("given_back:drained", "failed"),
}
RIGHT, OLD, BEYOND = "right", "old", "beyond"
AGAIN, ACT, ILLEGAL = "again", "act", "ready"

Wish = tuple[str, int, str, str | None]
expectations = st.sampled_from((RIGHT, RIGHT, RIGHT, RIGHT, OLD, BEYOND))
someone, turns = st.sampled_from(("a", "b", "c", CHAIN)), st.integers(0, 3)
wishes = st.tuples(someone, turns, expectations, st.none())
lone = st.tuples(someone, turns, expectations, expectations).map(lambda wish: [wish])
batches = st.lists(wishes, min_size=1, max_size=4, unique_by=lambda wish: wish[0])
questions = batches | batches | lone | st.lists(wishes, min_size=2, max_size=2) | st.sampled_from((AGAIN, ACT))
numbers = itertools.count(1)  # makes each event one of its own, over all examples


@dataclass
class Writer:
    """What somebody knows who asks: each job folded, the last sequence of each filter, and what was asked before."""

    life: int
    last: dict[str, int]
    jobs: dict[str, Job] = field(default_factory=dict[str, Job])
    asked: list[list[Entry]] = field(default_factory=list[list[Entry]])

    def entries(self, question: list[Wish] | str) -> list[Entry]:
        if question == AGAIN and self.asked:
            return self.asked[len(self.asked) // 2]
        if isinstance(question, str):
            return [Entry(act(next(numbers)), None)]
        return [self._entry(*wish) for wish in question]

    def learn(self, entries: list[Entry], outcome: object) -> None:
        self.asked.append(entries)
        for stored in outcome.records if isinstance(outcome, Appended) else ():
            event, about = stored.event, stored.event.data.about()
            if self.last.get(about, 0) < stored.seq and isinstance(event.data, JobData):
                self.jobs[about] = advance(self.jobs.get(about), _of_a_job(event), seq=stored.seq)
            self.last[about] = max(self.last.get(about, 0), stored.seq)

    def _entry(self, who: str, turn: int, expecting: str, of_all: str | None) -> Entry:
        number = next(numbers)
        event = commit(number) if who == CHAIN else self._step(f"job-{who}-{self.life}", turn, number)
        last = self.last.get(event.data.about(), 0)
        right = self.jobs.get(event.data.about(), last)
        end = max(self.last.values(), default=0)
        over = {RIGHT: end, OLD: max(end - 1, 0), BEYOND: end + 1000, None: None}[of_all]
        return Entry(event, {RIGHT: right, OLD: max(last - 1, 0), BEYOND: last + 1000}[expecting], over=over)

    def _step(self, job_id: str, turn: int, number: int) -> JobEvent:
        job = self.jobs.get(job_id)
        words = WORDS.get(job and job.status, (ILLEGAL,))
        return step(job or job_id, words[turn % len(words)], salt=str(number))


@dataclass
class Twins:
    real: EventLog
    twin: EventLog
    chain: dict[str, int] = field(default_factory=dict[str, int])


@pytest_asyncio.fixture
async def twins(nats_url: str) -> AsyncIterator[Twins]:
    async with opened(nats_url) as real:
        yield Twins(real, in_memory())


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=st.lists(questions, max_size=12))
async def test_the_twin_answers_as_jetstream_does(twins: Twins, asked: Sequence[list[Wish] | str]) -> None:
    writer = Writer(next(numbers), twins.chain)
    start = (await twins.real.mark()).seq

    for question in asked:
        entries = writer.entries(question)
        real, twin = await _answer(twins.real, entries), await _answer(twins.twin, entries)
        assert _told(real) == _told(twin)
        writer.learn(entries, real)

    assert (await twins.real.mark()).seq == (await twins.twin.mark()).seq
    held, mirrored = await caught_up(twins.real, after=start), await caught_up(twins.twin, after=start)
    assert [_timeless(record) for record in held.records] == [_timeless(record) for record in mirrored.records]


async def _answer(log: EventLog, entries: list[Entry]) -> Appended | Conflicted | Exception:
    try:
        return await log.append_batch(entries)
    except (LogError, ContractError) as error:
        return error


def _told(answer: Appended | Conflicted | Exception) -> object:
    match answer:
        case Conflicted(entry, winner):
            return entry, winner and _timeless(winner)
        case Exception():
            return type(answer), str(answer)
        case Appended():
            return answer


def _timeless(record: Record) -> object:
    """Each of the two has a clock of its own."""
    return record.seq, record.event, record.traceparent


def _of_a_job(event: AnyEvent) -> JobEvent:
    return event  # type: ignore[return-value]

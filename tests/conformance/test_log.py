"""What every log keeps: in memory, on one nats-server, and on three with three replicas."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC

import pytest
import pytest_asyncio

from headgate_contracts import (
    EventTooLarge,
    IllegalTransition,
    InvalidEvent,
    InvalidToken,
    consumer_filter,
    job_filter,
)
from headgate_contracts.envelope import AnyEvent
from headgate_contracts.vocabulary import EventName
from libs.eventlog import Appended, Conflicted, Entry, EventLog, LogFull, LogRefused
from tests.fixtures.lives import job_after, life_of, queued, step
from tests.fixtures.logs import CHAIN, act, caught_up, commit, in_memory, opened

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03"
ON_THREE = pytest.param(3, id="three", marks=pytest.mark.cluster)


@pytest.fixture(params=[pytest.param(0, id="memory"), pytest.param(1, id="one"), ON_THREE])
def servers(request: pytest.FixtureRequest) -> list[str]:
    """Where the log is; nowhere for the one in memory."""
    match request.param:
        case 0:
            return []
        case 1:
            return [request.getfixturevalue("nats_url")]
        case _:
            return request.getfixturevalue("nats_cluster").urls


@pytest_asyncio.fixture
async def log(servers: list[str]) -> AsyncIterator[EventLog]:
    if not servers:
        yield in_memory()
        return
    async with opened(servers, replicas=len(servers)) as on_servers:
        yield on_servers


async def stored(log: EventLog, *events: AnyEvent) -> None:
    """Append a job's life from its beginning."""
    seq = 0
    for event in events:
        outcome = await log.append(event, after=seq)
        assert isinstance(outcome, Appended)
        seq = outcome.records[0].seq


# ── one event ─────────────────────────────────────────────────────────────────


async def test_an_event_is_read_as_it_was_written(log: EventLog) -> None:
    event = queued("job-1")

    outcome = await log.append(event, after=None, traceparent=TRACE)

    [record] = await log.read("job-1")
    assert isinstance(outcome, Appended)
    assert outcome.records[0].seq == record.seq == 1
    assert record.event == event
    assert record.traceparent == TRACE


async def test_the_logs_time_is_its_own(log: EventLog) -> None:
    event = queued("job-1")
    await log.append(event, after=None)

    [record] = await log.read("job-1")

    assert record.at.tzinfo is UTC
    assert record.at != event.time
    assert (await caught_up(log)).records == [record]


async def test_a_whole_life_is_read_in_its_order(log: EventLog) -> None:
    life = life_of("job-1")
    await stored(log, *life)

    records = await log.read("job-1")

    assert [record.event for record in records] == life
    assert [record.seq for record in records] == list(range(1, 9))


async def test_an_event_follows_the_job_that_its_writer_knows(log: EventLog) -> None:
    await stored(log, queued("job-1"))
    job = job_after("queued").model_copy(update={"seq": 1})

    outcome = await log.append(step(job, "dispatched"), after=job)

    assert isinstance(outcome, Appended)
    assert outcome.records[0].seq == 2


async def test_a_job_begins_once(log: EventLog) -> None:
    await stored(log, queued("job-1"))
    second = queued("job-1", salt="another writer")

    outcome = await log.append(second, after=None)

    assert isinstance(outcome, Conflicted)
    assert outcome.entry.event is second
    assert outcome.winner == (await log.read("job-1"))[0]


async def test_of_two_writers_at_once_one_wins(log: EventLog) -> None:
    await stored(log, queued("job-1"))
    job = job_after("queued").model_copy(update={"seq": 1})
    rivals = [step(job, "dispatched"), step(job, "cancelled")]

    outcomes = await asyncio.gather(*(log.append(rival, after=job) for rival in rivals))

    [winner] = [outcome for outcome in outcomes if isinstance(outcome, Appended)]
    [loser] = [outcome for outcome in outcomes if isinstance(outcome, Conflicted)]
    assert loser.winner is not None
    assert loser.winner.event == winner.records[0].event
    assert len(await log.read("job-1")) == 2


async def test_the_same_event_again_is_the_same_append(log: EventLog) -> None:
    first, second, *_ = life_of("job-1")
    once = await log.append(first, after=None)
    await log.append(second, after=1)

    again = await log.append(first, after=None)

    assert again == once
    assert len(await log.read("job-1")) == 2


async def test_a_sequence_that_the_log_has_not_reached_is_a_conflict_with_nobody(log: EventLog) -> None:
    first, second, *_ = life_of("job-1")
    await log.append(first, after=None)

    outcome = await log.append(second, after=7)

    assert outcome == Conflicted(Entry(second, 7), None)


async def test_other_jobs_do_not_stand_in_the_way(log: EventLog) -> None:
    first, second, *_ = life_of("job-1")
    await stored(log, first)
    await stored(log, queued("job-12"), step(job_after("queued", "job-12"), "dispatched"))

    outcome = await log.append(second, after=1)

    assert isinstance(outcome, Appended)


# ── what is refused before anything is sent ───────────────────────────────────


async def test_an_event_that_its_job_does_not_allow_is_refused(log: EventLog) -> None:
    await stored(log, queued("job-1"))
    job = job_after("queued").model_copy(update={"seq": 1})

    with pytest.raises(IllegalTransition, match="worker cannot write ready about a job that is queued"):
        await log.append(step(job, "ready"), after=job)
    with pytest.raises(IllegalTransition, match="scheduler cannot write dispatched about a job that is new"):
        await log.append(step(job, "dispatched"), after=None)
    assert (await log.mark()).seq == 1


@pytest.mark.parametrize("bad", ["a.b", "*", ">", "a b", "a\r\nNats-Rollup: all", "ä", "", "x" * 65])
async def test_a_token_that_would_change_a_subject_is_refused(log: EventLog, bad: str) -> None:
    event = queued("job-1")
    data = event.data.model_copy(update={"user_id": bad})

    with pytest.raises(InvalidToken, match=r"^user_id: "):
        await log.append(type(event)(event.id, event.writer, event.time, data, 1), after=None)
    assert (await log.mark()).seq == 0


async def test_data_of_the_wrong_shape_is_refused(log: EventLog) -> None:
    event = queued("job-1")
    data = event.data.model_copy(update={"arrival": -1})

    with pytest.raises(InvalidEvent, match=r"^data\.arrival: "):
        await log.append(type(event)(event.id, event.writer, event.time, data, 1), after=None)
    assert (await log.mark()).seq == 0


async def test_data_that_nobody_would_want_to_read_is_refused(log: EventLog) -> None:
    event = queued("job-1")
    data = event.data.model_copy(update={"passed": tuple(f"job-{number:036}" for number in range(1000))})

    with pytest.raises(EventTooLarge, match=r"^data: the event has \d+ bytes, the contract allows 32768$"):
        await log.append(type(event)(event.id, event.writer, event.time, data, 1), after=None)
    assert (await log.mark()).seq == 0


@pytest.mark.parametrize("bad", ["", "00-abc", TRACE.upper(), f"{TRACE}\r\nNats-Rollup: all"])
async def test_a_traceparent_of_another_shape_is_refused(log: EventLog, bad: str) -> None:
    with pytest.raises(InvalidEvent, match=r"^traceparent: "):
        await log.append(queued("job-1"), after=None, traceparent=bad)
    assert (await log.mark()).seq == 0


# ── a batch ───────────────────────────────────────────────────────────────────


async def test_a_batch_is_stored_in_order_without_a_gap(log: EventLog) -> None:
    events = [commit(1, "job-1", "job-2"), queued("job-1"), queued("job-2")]

    outcome = await log.append_batch([Entry(event, 0, TRACE) for event in events])

    assert isinstance(outcome, Appended)
    assert [each.seq for each in outcome.records] == [1, 2, 3]
    records = (await caught_up(log)).records
    assert [(record.seq, record.event, record.traceparent) for record in records] == [
        (seq, event, TRACE) for seq, event in enumerate(events, 1)
    ]


async def test_a_batch_with_one_stale_expectation_stores_nothing(log: EventLog) -> None:
    await stored(log, queued("job-2"))
    stale = Entry(queued("job-2", salt="again"), 0)

    outcome = await log.append_batch([Entry(commit(1), 0), Entry(queued("job-1"), 0), stale])

    assert isinstance(outcome, Conflicted)
    assert outcome.entry == stale
    assert outcome.winner is not None
    assert outcome.winner.seq == 1
    assert (await log.mark()).seq == 1


async def test_a_batch_that_expects_too_much_stores_nothing(log: EventLog) -> None:
    early = Entry(step(job_after("queued", "job-2"), "dispatched"), 7)

    outcome = await log.append_batch([Entry(commit(1), 0), early])

    assert outcome == Conflicted(early, None)
    assert (await log.mark()).seq == 0


async def test_the_same_batch_again_is_the_same_append(log: EventLog) -> None:
    entries = [Entry(commit(1, "job-1"), 0), Entry(queued("job-1"), 0)]
    once = await log.append_batch(entries)
    await log.append(commit(2), after=1)

    again = await log.append_batch(entries)

    assert again == once
    assert (await log.mark()).seq == 3


async def test_of_two_commits_after_one_link_one_wins(log: EventLog) -> None:
    await log.append(commit(1), after=0)
    batches = [[Entry(commit(2, salt=name), 1), Entry(queued(name), 0)] for name in ("leader-a", "leader-b")]

    outcomes = await asyncio.gather(*(log.append_batch(batch) for batch in batches))

    [winner] = [outcome for outcome in outcomes if isinstance(outcome, Appended)]
    [loser] = [outcome for outcome in outcomes if isinstance(outcome, Conflicted)]
    assert loser.winner is not None
    assert loser.winner.event == winner.records[0].event
    assert (await log.mark()).seq == 3


async def test_many_batches_at_once_are_each_stored_whole(log: EventLog) -> None:
    """More than the server lets be under way at once."""
    workflows = [[queued(f"flow-{number}-phase-{phase}") for phase in range(3)] for number in range(60)]

    outcomes = await asyncio.gather(*(log.append_batch([Entry(event, 0) for event in flow]) for flow in workflows))

    stands = {record.seq: record.event for record in (await caught_up(log)).records}
    for flow, outcome in zip(workflows, outcomes, strict=True):
        assert isinstance(outcome, Appended)
        first = outcome.records[0].seq
        assert [stands[seq] for seq in range(first, first + 3)] == flow
    assert len(stands) == 180


async def test_an_event_that_stands_already_keeps_a_batch_out(log: EventLog) -> None:
    await stored(log, queued("job-1"))

    outcome = await log.append_batch([Entry(commit(1), 0), Entry(queued("job-1"), 0)])

    assert isinstance(outcome, Conflicted)
    assert outcome.winner == (await log.read("job-1"))[0]
    assert (await log.mark()).seq == 1


async def test_a_workflow_is_accepted_whole_or_not_at_all(log: EventLog) -> None:
    phases = [queued("phase-1"), step("phase-2", "waiting"), step("phase-3", "waiting")]
    entries = [Entry(event, 0) for event in phases]
    await stored(log, step("phase-3", "waiting", salt="somebody else's"))

    refused = await log.append_batch(entries)
    accepted = await log.append_batch(entries[:2])

    assert isinstance(refused, Conflicted)
    assert refused.entry == entries[2]
    assert isinstance(accepted, Appended)
    assert (await log.mark()).seq == 3


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([], "a batch has 1 to 50 entries, not 0"),
        ([Entry(queued(f"job-{number}"), 0) for number in range(51)], "a batch has 1 to 50 entries, not 51"),
        ([Entry(act(), None), Entry(commit(1), 0)], "a batch begins with an entry that has an expectation"),
        ([Entry(queued("job-1"), 0), Entry(queued("job-1", salt="b"), 0)], "two entries of a batch have the filter"),
        ([Entry(commit(1), 0), Entry(commit(2), 0)], "two entries of a batch have the filter"),
        ([Entry(commit(1), 0), Entry(act(), None), Entry(act(), None)], "two entries of a batch have the id"),
        ([Entry(act(), 0)], "is an operator's act and has no expectation"),
        ([Entry(commit(1), None)], "expects a sequence from 0 on, not None"),
        ([Entry(queued("job-1"), -1)], "expects a sequence from 0 on, not -1"),
        ([Entry(commit(1), 0), Entry(queued("job-1"), 0, over=0)], "an entry that expects where the whole log ends"),
    ],
)
async def test_what_is_no_batch_is_refused(log: EventLog, entries: list[Entry], reason: str) -> None:
    with pytest.raises(LogRefused, match=reason):
        await log.append_batch(entries)
    assert (await log.mark()).seq == 0


async def test_a_job_that_no_log_knows_has_no_next_event_there(log: EventLog) -> None:
    job = job_after("queued")

    with pytest.raises(LogRefused, match="job job-1 was not folded from this log"):
        await log.append(step(job, "dispatched"), after=job)


# ── one that expects where the whole log ends ─────────────────────────────────


def alone(over: int, *, salt: str = "") -> Entry:
    """The start of a job whose one event stands at 1."""
    job = job_after("queued").model_copy(update={"seq": 1})
    return Entry(step(job, "dispatched", salt=salt), job, over=over)


async def test_an_event_stands_right_behind_all_that_its_writer_has_folded(log: EventLog) -> None:
    await stored(log, queued("job-1"))
    await stored(log, queued("job-2"))

    outcome = await log.append_batch([alone(over=2)])
    again = await log.append_batch([alone(over=2)])

    assert isinstance(outcome, Appended)
    assert [each.seq for each in outcome.records] == [3]
    assert again == outcome
    assert (await log.mark()).seq == 3


@pytest.mark.parametrize("between", [queued("job-2"), commit(1), act()], ids=["a job", "a link", "an act"])
async def test_whatever_its_writer_has_not_folded_keeps_it_out(log: EventLog, between: AnyEvent) -> None:
    """Its own job is where it expects it: without the log's expectation it would be stored."""
    await stored(log, queued("job-1"))
    await log.append(between, after=None if between == act() else 0)

    outcome = await log.append_batch([alone(over=1)])

    assert outcome == Conflicted(alone(over=1), (await caught_up(log, after=1)).records[0])
    assert (await log.mark()).seq == 2


async def test_its_own_job_keeps_it_out_though_the_log_ends_where_it_says(log: EventLog) -> None:
    """Without the job's expectation it would be stored."""
    await stored(log, *life_of("job-1", "queued cancelled"))

    outcome = await log.append_batch([alone(over=2)])

    assert outcome == Conflicted(alone(over=2), (await log.read("job-1"))[1])
    assert (await log.mark()).seq == 2


async def test_of_two_over_the_same_records_one_wins(log: EventLog) -> None:
    await stored(log, queued("job-1"))
    await stored(log, queued("job-2"))
    other = job_after("queued", "job-2").model_copy(update={"seq": 2})
    rivals = [alone(over=2), Entry(step(other, "dispatched"), other, over=2)]

    outcomes = await asyncio.gather(*(log.append_batch([rival]) for rival in rivals))

    [winner] = [outcome for outcome in outcomes if isinstance(outcome, Appended)]
    [loser] = [outcome for outcome in outcomes if isinstance(outcome, Conflicted)]
    assert loser.winner is not None
    assert loser.winner.event == winner.records[0].event
    assert (await log.mark()).seq == 3


async def test_it_waits_for_no_log_that_is_shorter_than_it_says(log: EventLog) -> None:
    await stored(log, queued("job-1"))

    assert await log.append_batch([alone(over=7)]) == Conflicted(alone(over=7), None)
    assert (await log.mark()).seq == 1


# ── operators' acts ───────────────────────────────────────────────────────────


async def test_an_act_is_stored_whatever_stands_before_it(log: EventLog) -> None:
    for number in (1, 2):
        assert isinstance(await log.append(act(number), after=None), Appended)

    assert (await log.mark()).seq == 2


async def test_the_same_act_again_is_the_same_append(log: EventLog) -> None:
    once = await log.append(act(), after=None)

    again = await log.append(act(), after=None)

    assert again == once
    assert (await log.mark()).seq == 1


async def test_an_act_can_ride_in_a_batch(log: EventLog) -> None:
    outcome = await log.append_batch([Entry(commit(1), 0), Entry(act(), None)])

    assert isinstance(outcome, Appended)
    assert (await caught_up(log)).records[1].event == act()


# ── reading ───────────────────────────────────────────────────────────────────


async def test_a_job_is_read_from_any_of_its_events_on(log: EventLog) -> None:
    await stored(log, *life_of("job-1", "queued dispatched started"))
    await stored(log, *life_of("job-2", "queued"))

    assert [record.seq for record in await log.read("job-1", after=1)] == [2, 3]
    assert await log.read("job-3") == []


async def test_the_last_record_of_subjects_is_found(log: EventLog) -> None:
    await stored(log, *life_of("job-1", "queued dispatched"))
    await stored(log, *life_of("job-2", "queued"))
    await log.append_batch([Entry(commit(1), 0)])

    found = {
        subject_filter: record and record.seq
        for subject_filter in (
            job_filter("job-1"),
            job_filter("job-3"),
            CHAIN,
            consumer_filter(event=EventName.DISPATCHED),
            consumer_filter(event=EventName.QUEUED),
            consumer_filter(project_id="project-1"),
        )
        if [record := await log.last(subject_filter)]
    }

    assert list(found.values()) == [2, None, 4, 2, 3, 3]


async def test_the_mark_is_the_logs_epoch_and_end(log: EventLog) -> None:
    before = await log.mark()
    await stored(log, queued("job-1"))

    after = await log.mark()

    assert before.epoch == after.epoch != ""
    assert (before.seq, after.seq) == (0, 1)


# ── following ─────────────────────────────────────────────────────────────────


async def test_who_follows_an_empty_log_learns_that_it_is_empty(log: EventLog) -> None:
    caught = await caught_up(log)

    assert [(page.records, page.last_seq) for page in caught.pages] == [((), 0)]


async def test_who_follows_from_the_end_learns_that_nothing_is_new(log: EventLog) -> None:
    await stored(log, queued("job-1"))

    caught = await caught_up(log, after=1)

    assert [(page.records, page.last_seq) for page in caught.pages] == [((), 1)]


async def test_who_follows_sees_every_record_once_and_in_order(log: EventLog) -> None:
    for start in range(0, 1200, 50):
        await log.append_batch([Entry(queued(f"job-{start + number}"), 0) for number in range(50)])

    everything = await caught_up(log)
    rest = await caught_up(log, after=1150)

    assert [record.seq for record in everything.records] == list(range(1, 1201))
    assert [record.seq for record in rest.records] == list(range(1151, 1201))
    assert all(0 < len(page.records) <= 1000 for page in everything.pages)
    assert everything.pages[-1].last_seq == 1200


async def test_who_follows_gets_what_is_appended_later(log: EventLog) -> None:
    first, second, *_ = life_of("job-1")
    async with aclosing(log.follow(after=0)) as follow:
        nothing = await anext(follow)
        await log.append(first, after=None)
        one = await anext(follow)
        await log.append(second, after=1)
        two = await anext(follow)

    assert [len(page.records) for page in (nothing, one, two)] == [0, 1, 1]
    assert [record.event for page in (one, two) for record in page.records] == [first, second]
    assert (one.last_seq, two.last_seq) == (1, 2)


async def test_who_wants_little_gets_that_in_order_and_nothing_else(log: EventLog) -> None:
    """Of what is there, and of what comes later; asked about each once, by its subject."""
    ours, others = life_of("job-1"), life_of("job-2")
    await stored(log, *others[:3])
    await stored(log, *ours[:2])
    asked = list[str]()

    def wanted(subject: str) -> bool:
        asked.append(subject)
        return subject.startswith(job_filter("job-1")[:-1])

    async with aclosing(log.follow(after=1, wanted=wanted)) as follow:
        first = await anext(follow)
        await log.append(others[3], after=3)
        await log.append(ours[2], after=5)
        second = await anext(follow)

    assert [[record.event for record in page.records] for page in (first, second)] == [ours[:2], ours[2:3]]
    assert asked == [event.subject for event in (*others[1:3], *ours[:2], others[3], ours[2])]


async def test_who_wants_nothing_waits_and_is_told_that_nothing_is_new_where_that_is_so(log: EventLog) -> None:
    await stored(log, *life_of("job-1"))
    new = aclosing(log.follow(after=8, wanted=lambda _: False))
    old = aclosing(log.follow(after=0, wanted=lambda _: False))
    async with new as at_the_end, old as at_the_beginning:
        assert (await anext(at_the_end)).records == ()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(at_the_beginning), 0.2)


async def test_who_waits_for_a_page_can_be_stopped(log: EventLog) -> None:
    follow = log.follow(after=0)
    await anext(follow)
    waiting = asyncio.ensure_future(anext(follow))
    await asyncio.sleep(0)

    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(StopAsyncIteration):
        await anext(follow)


async def test_two_follow_without_a_word_to_each_other(log: EventLog) -> None:
    await stored(log, *life_of("job-1"))

    one, other = await asyncio.gather(caught_up(log), caught_up(log, after=4))

    assert [record.seq for record in one.records] == list(range(1, 9))
    assert [record.seq for record in other.records] == list(range(5, 9))


# ── a full log ────────────────────────────────────────────────────────────────


@pytest_asyncio.fixture
async def cramped(servers: list[str]) -> AsyncIterator[EventLog]:
    """A log with room for some twenty events."""
    if not servers:
        yield in_memory(max_bytes=20_000)
        return
    async with opened(servers, replicas=len(servers), jobs_max_bytes=20_000) as on_servers:
        yield on_servers


async def test_a_full_log_refuses_and_keeps_what_it_has(cramped: EventLog) -> None:
    await _fill(cramped)
    end = (await cramped.mark()).seq

    with pytest.raises(LogFull, match="maximum bytes exceeded"):
        await cramped.append_batch([Entry(queued(f"phase-{number}"), 0) for number in range(20)])

    assert 0 < end == (await cramped.mark()).seq
    assert len((await caught_up(cramped)).records) == end


async def test_a_log_tells_how_full_it_is(cramped: EventLog) -> None:
    empty = await cramped.fill()
    await _fill(cramped)
    full = await cramped.fill()

    assert (empty.held, empty.limit) == (0, 20_000)
    assert 18_000 < full.held <= 20_000


async def test_a_full_log_still_knows_what_stands_in_it(cramped: EventLog) -> None:
    once = await cramped.append(queued("job-0"), after=None)
    await _fill(cramped)

    assert await cramped.append(queued("job-0"), after=None) == once


async def _fill(log: EventLog) -> None:
    with pytest.raises(LogFull, match="maximum bytes exceeded"):  # noqa: PT012 which of them does not fit is not known
        for number in range(100):
            await log.append(queued(f"job-{number}"), after=None)

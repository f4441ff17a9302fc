"""What becomes of an append when answers fail to come. The server is in memory; what happens to each try is chosen."""

import asyncio
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contracts import JobEvent, job_filter
from libs.eventlog import Appended, Conflicted, Entry, LogFull, LogUnavailable, OutcomeUnknown, Record
from libs.eventlog.expectation import Message, messages_of
from libs.eventlog.memory import Fate, MemoryLog, MemoryServer, MemoryWire
from libs.eventlog.settling import SettlingLog
from libs.eventlog.wire import Contradicted, WireAnswer
from tests.fixtures.lives import job_after, queued, step
from tests.fixtures.logs import HastyClock, act, commit, in_memory

ARRIVES, LOST, UNHEARD, LATE = Fate.ARRIVES, Fate.LOST, Fate.UNHEARD, Fate.LATE


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer(HastyClock(), epoch="E1")


def fated(*fates: Fate, then: Fate = ARRIVES) -> Callable[[Sequence[Message]], Fate]:
    """The fates of the first tries, and of all later ones."""
    rest: Iterator[Fate] = iter(fates)
    return lambda messages: next(rest, then)


@pytest.mark.parametrize("fate", [LOST, UNHEARD, LATE])
async def test_after_silence_the_same_event_is_sent_until_it_stands(server: MemoryServer, fate: Fate) -> None:
    log = in_memory(server, fate=fated(fate, fate, fate))

    outcome = await log.append(queued("job-1"), after=None)

    assert isinstance(outcome, Appended)
    assert [record.seq for record in await log.read("job-1")] == [outcome.records[0].seq] == [1]


@pytest.mark.parametrize("fate", [LOST, UNHEARD, LATE])
async def test_after_silence_a_batch_is_known_by_its_witness(server: MemoryServer, fate: Fate) -> None:
    log = in_memory(server, fate=fated(fate))

    outcome = await log.append_batch([Entry(commit(1), 0), Entry(queued("job-1"), 0)])

    assert isinstance(outcome, Appended)
    assert [record.seq for record in outcome.records] == [1, 2]
    assert server.last_seq == 2


async def test_a_copy_that_lands_late_finds_its_place_taken_by_its_twin(server: MemoryServer) -> None:
    log = in_memory(server, fate=fated(LATE, LATE))
    await log.append(queued("job-1"), after=None)

    answers = server.land()

    assert [type(answer) for answer in answers] == [Contradicted, Contradicted]
    assert server.last_seq == 1


async def test_a_copy_that_lands_late_finds_its_place_taken_by_the_winner(server: MemoryServer) -> None:
    slow, quick = in_memory(server, fate=fated(then=LATE)), in_memory(server)
    with pytest.raises(OutcomeUnknown):
        await slow.append(queued("job-1", salt="slow"), after=None)
    await quick.append(queued("job-1", salt="quick"), after=None)

    server.land()

    assert [record.event for record in await quick.read("job-1")] == [queued("job-1", salt="quick")]
    assert isinstance(await in_memory(server).append(queued("job-1", salt="slow"), after=None), Conflicted)


async def test_what_is_not_known_in_time_is_not_made_up(server: MemoryServer) -> None:
    log = in_memory(server, fate=fated(then=LOST))
    event = queued("job-1")

    with pytest.raises(OutcomeUnknown) as unknown:
        await log.append(event, after=None)

    assert str(unknown.value) == (
        f"Whether dev.headgate.job.queued.v1 {event.id} was stored is not known after 15 s: no answer. "
        "Release nothing that was reserved for it, and try again with the same event until it is known."
    )


async def test_an_unknown_batch_is_named_by_its_first_event_and_the_number_of_others(server: MemoryServer) -> None:
    entries = [Entry(commit(1), 0), Entry(queued("job-1"), 0), Entry(queued("job-2"), 0)]

    with pytest.raises(OutcomeUnknown) as unknown:
        await in_memory(server, fate=fated(then=LOST)).append_batch(entries)

    assert f"{commit(1).type} {commit(1).id} and 2 more was stored" in str(unknown.value)


class Watched(HastyClock):
    """Remembers how long one slept."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[int] = []

    async def sleep_ms(self, duration_ms: int) -> None:
        self.slept.append(duration_ms)
        await super().sleep_ms(duration_ms)


async def test_pauses_double_up_to_a_quarter_of_a_second_until_the_time_is_over(server: MemoryServer) -> None:
    clock = Watched()
    log = SettlingLog(MemoryWire(server, fated(then=LOST)), clock=clock, settle_within_s=2.065)

    with pytest.raises(OutcomeUnknown):
        await log.append(queued("job-1"), after=None)

    assert clock.slept == [5, 10, 20, 40, 80, 160, *[250] * 7]
    assert clock.monotonic_ms() == 2065


class Patient(MemoryWire):
    """Says how long each try waits for its answer."""

    waited: list[float]

    async def send(self, messages: Sequence[Message], *, within_s: float) -> WireAnswer:
        self.waited.append(within_s)
        return await super().send(messages, within_s=within_s)


async def test_each_silence_makes_the_next_try_more_patient(server: MemoryServer) -> None:
    wire = Patient(server, fate=fated(LOST, LOST, LOST, LOST))
    wire.waited = []

    await SettlingLog(wire, clock=HastyClock()).append(queued("job-1"), after=None)

    assert wire.waited == [1, 2, 4, 4, 4]


async def test_a_batchs_conflict_names_its_entry_and_who_stands_in_its_place(server: MemoryServer) -> None:
    winner, loser = queued("job-1", salt="winner"), queued("job-1", salt="loser")
    await in_memory(server).append(winner, after=None)

    outcome = await in_memory(server).append_batch([Entry(commit(1), 0), Entry(loser, 0)])

    assert isinstance(outcome, Conflicted)
    assert outcome.entry.event == loser
    assert outcome.winner is not None
    assert outcome.winner.event == winner
    assert server.last_seq == 1


async def test_what_is_stored_is_followed_from_a_sequence_on(server: MemoryServer) -> None:
    log = in_memory(server)
    for name in ("job-1", "job-2"):
        await log.append(queued(name), after=None)

    page = await anext(log.follow(after=1))

    assert [record.event for record in page.records] == [queued("job-2")]


async def test_an_unknown_outcome_can_be_settled_at_any_later_time(server: MemoryServer) -> None:
    event = queued("job-1")
    with pytest.raises(OutcomeUnknown):
        await in_memory(server, fate=fated(then=LATE)).append(event, after=None)
    server.land()
    await in_memory(server).append(step(job_after("queued"), "dispatched"), after=1)

    outcome = await in_memory(server).append(event, after=None)

    assert isinstance(outcome, Appended)
    assert outcome.records[0].seq == 1
    assert server.last_seq == 2


async def test_an_act_is_stored_once_whatever_was_unheard(server: MemoryServer) -> None:
    log = in_memory(server, fate=fated(UNHEARD, LOST, UNHEARD))

    outcome = await log.append(act(), after=None)

    assert isinstance(outcome, Appended)
    assert server.last_seq == 1


async def test_without_a_connection_nothing_was_stored_and_that_is_known(server: MemoryServer) -> None:
    log = in_memory(server)
    log.wire.connected = False

    with pytest.raises(LogUnavailable, match=r"^The log cannot be reached: not connected\. Nothing was stored; "):
        await log.append(queued("job-1"), after=None)

    assert server.last_seq == 0


async def test_a_connection_lost_after_silence_leaves_the_outcome_unknown(server: MemoryServer) -> None:
    def cut(messages: Sequence[Message]) -> Fate:
        log.wire.connected = False
        return LATE

    log = in_memory(server, fate=cut)

    with pytest.raises(OutcomeUnknown, match="not connected"):
        await log.append(queued("job-1"), after=None)


async def test_a_full_log_is_told_at_once_where_no_copy_is_under_way() -> None:
    log = in_memory(max_bytes=100)

    with pytest.raises(LogFull, match=r"^The log takes no more: maximum bytes exceeded\."):
        await log.append(queued("job-1"), after=None)


async def test_a_full_log_says_nothing_of_a_copy_under_way() -> None:
    log = in_memory(max_bytes=100, fate=fated(LATE))

    with pytest.raises(OutcomeUnknown, match="maximum bytes exceeded"):
        await log.append(queued("job-1"), after=None)


async def test_a_copy_that_made_the_log_full_is_found() -> None:
    log = in_memory(max_bytes=1000, fate=fated(UNHEARD))

    outcome = await log.append(queued("job-1"), after=None)

    assert isinstance(outcome, Appended)


@pytest.mark.parametrize("stored", [0, 1])
async def test_a_sequence_beyond_the_log_is_a_conflict_with_nobody(server: MemoryServer, stored: int) -> None:
    log = in_memory(server)
    for _ in range(stored):
        await log.append(queued("job-1"), after=None)

    outcome = await log.append(step(job_after("queued"), "dispatched"), after=7)

    assert isinstance(outcome, Conflicted)
    assert outcome.winner is None


async def test_the_newest_record_and_the_end_of_the_log_are_read(server: MemoryServer) -> None:
    log = in_memory(server)
    await log.append(queued("job-1"), after=None)
    await log.append(queued("job-2"), after=None)

    newest, end = await log.last(job_filter("job-1")), await log.mark()

    assert newest is not None
    assert (newest.seq, end.seq) == (1, 2)


async def test_how_full_the_log_is_is_told_by_its_bound() -> None:
    log = in_memory(max_bytes=100_000)

    before = await log.fill()
    await log.append(queued("job-1"), after=None)
    after = await log.fill()

    assert (before.held, before.limit) == (0, 100_000)
    assert after.held > 0


async def test_an_end_that_the_log_has_not_reached_is_a_conflict_with_nobody(server: MemoryServer) -> None:
    log = in_memory(server)
    await log.append(queued("job-1"), after=None)

    outcome = await log.append_batch([alone(over=5)])

    assert isinstance(outcome, Conflicted)
    assert outcome.winner is None


async def test_a_sequence_beyond_the_log_is_not_believed_while_a_copy_is_under_way(server: MemoryServer) -> None:
    log = in_memory(server, fate=fated(LATE))

    with pytest.raises(OutcomeUnknown, match="wrong last sequence: 0"):
        await log.append(step(job_after("queued"), "dispatched"), after=7)


@pytest.mark.parametrize("fate", [LOST, UNHEARD, LATE])
async def test_after_silence_an_event_that_goes_alone_is_known_by_the_record_behind_its_place(
    server: MemoryServer, fate: Fate
) -> None:
    await in_memory(server).append(queued("job-1"), after=None)
    log = in_memory(server, fate=fated(fate))

    outcome = await log.append_batch([alone(over=1)])

    assert isinstance(outcome, Appended)
    assert [record.seq for record in outcome.records] == [2]
    assert [type(answer) for answer in server.land()] in ([], [Contradicted])
    assert server.last_seq == 2


async def test_a_stranger_behind_its_place_settles_it_while_a_copy_is_under_way(server: MemoryServer) -> None:
    """Its own job is as it was: the log alone tells that no copy can land."""
    await in_memory(server).append(queued("job-1"), after=None)

    def forestalled(messages: Sequence[Message]) -> Fate:
        server.receive(messages_of([Entry(queued("job-2"), 0)]))
        return next(fates)

    fates = iter((LATE, ARRIVES))
    outcome = await in_memory(server, fate=forestalled).append_batch([alone(over=1)])
    server.land()

    assert isinstance(outcome, Conflicted)
    assert outcome.winner is not None
    assert outcome.winner.event == queued("job-2")
    assert server.last_seq == 2


async def test_an_event_that_goes_alone_and_is_under_way_is_not_believed_to_be_refused(server: MemoryServer) -> None:
    await in_memory(server).append(queued("job-1"), after=None)

    with pytest.raises(OutcomeUnknown):
        await in_memory(server, fate=fated(LATE, then=LOST)).append_batch([alone(over=1)])
    server.land()

    assert isinstance(await in_memory(server).append_batch([alone(over=1)]), Appended)


def alone(over: int) -> Entry:
    job = job_after("queued").model_copy(update={"seq": 1})
    return Entry(step(job, "dispatched"), job, over=over)


class UnderWay(MemoryWire):
    """Contradicts the first copy because it is under way, as three servers do; it lands after the first look."""

    async def send(self, messages: Sequence[Message], *, within_s: float) -> WireAnswer:
        if not self.server.late and not self.server.last_seq:
            self.server.late.append(messages)
            return Contradicted("under way")
        return await super().send(messages, within_s=within_s)

    async def next(self, subject_filter: str, *, after: int) -> Record | None:
        seen = await super().next(subject_filter, after=after)
        self.server.land()
        return seen


async def test_a_batch_that_lands_while_one_looks_is_no_conflict_with_itself(server: MemoryServer) -> None:
    log = SettlingLog(UnderWay(server), clock=HastyClock())

    outcome = await log.append_batch([Entry(commit(1), 0), Entry(queued("job-1"), 0)])

    assert isinstance(outcome, Appended)
    assert server.last_seq == 2


class Dim(MemoryWire):
    """Its first reads fail."""

    failures = 3

    async def next(self, subject_filter: str, *, after: int) -> Record | None:
        self.failures -= 1
        if self.failures >= 0:
            raise LogUnavailable(reason="no leader")
        return await super().next(subject_filter, after=after)


async def test_a_conflict_is_not_believed_before_the_winner_was_seen(server: MemoryServer) -> None:
    winner, loser = queued("job-1", salt="winner"), queued("job-1", salt="loser")
    await in_memory(server).append(winner, after=None)
    wire = Dim(server)

    outcome = await SettlingLog(wire, clock=HastyClock()).append(loser, after=None)

    assert isinstance(outcome, Conflicted)
    assert outcome.winner is not None
    assert outcome.winner.event == winner
    assert wire.failures < 0


FATES = st.lists(st.sampled_from(Fate), max_size=8)


@pytest.mark.parametrize("batched", [False, True])
@given(fates=st.tuples(FATES, FATES, FATES), lands=st.booleans())
async def test_whatever_happens_to_three_rivals_they_are_told_the_truth(
    *, batched: bool, fates: tuple[list[Fate], ...], lands: bool
) -> None:
    server = MemoryServer(HastyClock(), epoch="E1")
    rivals = [queued("job-1", salt=f"rival {number}") for number in range(3)]
    logs = [in_memory(server, fate=fated(*each)) for each in fates]

    tries = (_told(log, rival, batched=batched) for log, rival in zip(logs, rivals, strict=True))
    told = await asyncio.gather(*tries)
    if lands:
        server.land()

    [stands] = await in_memory(server).read("job-1")
    winners = [rival for rival, outcome in zip(rivals, told, strict=True) if isinstance(outcome, Appended)]
    assert winners == [stands.event]
    assert server.last_seq == (2 if batched else 1)


async def _told(log: MemoryLog, event: JobEvent, *, batched: bool) -> Appended | Conflicted:
    if not batched:
        return await log.append(event, after=None)
    return await log.append_batch([Entry(event, 0), Entry(commit(1, salt=event.id), 0)])


class Behind(MemoryWire):
    """Contradicts the first copy, and nobody stands in its way: a server that has not caught up."""

    contradicted = False

    async def send(self, messages: Sequence[Message], *, within_s: float) -> WireAnswer:
        if not self.contradicted:
            self.contradicted = True
            return Contradicted("not caught up")
        return await super().send(messages, within_s=within_s)


@pytest.mark.parametrize("stored", [0, 1])
async def test_who_is_contradicted_without_a_rival_is_stored_in_the_next_try(server: MemoryServer, stored: int) -> None:
    job = job_after("queued") if stored else None
    if stored:
        await in_memory(server).append(queued("job-1"), after=None)
    log = SettlingLog(Behind(server), clock=HastyClock())

    outcome = await log.append(step(job, "dispatched") if job else queued("job-1"), after=stored or None)

    assert isinstance(outcome, Appended)


async def test_an_event_that_goes_alone_and_has_no_rival_is_stored_in_the_next_try(server: MemoryServer) -> None:
    await in_memory(server).append(queued("job-1"), after=None)
    log = SettlingLog(Behind(server), clock=HastyClock())

    outcome = await log.append_batch([alone(over=1)])

    assert isinstance(outcome, Appended)
    assert [record.seq for record in outcome.records] == [2]

"""The lines of a job on its stream: each once and in order, however late somebody comes and whatever lags behind."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libs.eventlog.lines import LinePage
from services.notifier.said import Said
from tests.fixtures.memory_notifier import WHOLE, Event, LaggingLines, MemoryNotifier, id_of, patient

MANY = 1200  # more than a connection's queue holds


class Erased:
    """Lines that go while they are read for the first time."""

    def __init__(self, lines: LaggingLines, *, behind: int) -> None:
        self._lines, self.last = lines, lines.last
        lines.behind = behind

    async def of(self, job_id: str, *, after: int = 0) -> AsyncGenerator[LinePage]:
        async with aclosing(self._lines.of(job_id, after=after)) as pages:
            async for page in pages:
                yield page
        await self._lines.erase(job_id)


@pytest.fixture
def notifier() -> MemoryNotifier:
    return MemoryNotifier(patient())


def lines_in(heard: list[Event]) -> list[str]:
    return [data["line"] for kind, _, data in heard if kind == "log"]


def in_short(heard: list[Event]) -> list[str]:
    """`snapshot`, the line that was said, the status that it came to."""
    return [data.get("line") or (kind if kind in ("snapshot", "end") else data["status"]) for kind, _, data in heard]


async def written(notifier: MemoryNotifier, *events: int, tells: bool = False) -> None:
    """Of a whole life, these; a moment after whatever was before."""
    await notifier.clock.sleep_ms(10)
    await notifier.write(*(WHOLE[number] for number in events))
    await notifier.clock.sleep_ms(10)
    if tells:
        notifier.tell()


async def a_life_with_lines(notifier: MemoryNotifier) -> None:
    await written(notifier, 0, 1, 2, 3)
    notifier.say("a frame", stage="scaffold")
    await written(notifier, 4)
    notifier.say("written without a model")
    notifier.tell()
    notifier.tell_lines()


async def test_whoever_comes_late_is_told_every_line_from_the_beginning(notifier: MemoryNotifier) -> None:
    await a_life_with_lines(notifier)
    client = notifier.of_job("job-1")

    begun = await client.heard()
    notifier.say("and more")
    notifier.tell_lines()
    later = await client.heard()

    assert in_short(begun) == ["snapshot", "a frame", "written without a model"]
    assert in_short(later) == ["and more"]


async def test_a_job_that_has_ended_still_says_what_it_said(notifier: MemoryNotifier) -> None:
    await a_life_with_lines(notifier)
    await written(notifier, 5, 6, 7)

    heard = await notifier.of_job("job-1").heard()

    assert in_short(heard) == ["snapshot", "a frame", "written without a model", "end"]


async def test_a_replay_tells_everything_in_its_order_and_then_how_it_stands(notifier: MemoryNotifier) -> None:
    await a_life_with_lines(notifier)
    client = notifier.of_job("job-1", replay=True)

    begun = await client.heard()
    await written(notifier, 5, 6, 7, tells=True)
    later = await client.heard()

    so_far = ["queued", "starting", "scaffold", "a frame", "code", "written without a model", "snapshot"]
    assert in_short(begun) == so_far
    assert in_short(later) == ["deps", "checks", "ready", "end"]


async def test_whoever_comes_back_is_told_what_followed_the_last_line(notifier: MemoryNotifier) -> None:
    await a_life_with_lines(notifier)
    first = (await notifier.of_job("job-1").heard())[1][2]["seq"]

    says_which = notifier.of_job("job-1", id_of(4), line=first)
    says_nothing = notifier.of_job("job-1", id_of(4))
    begun = [in_short(await client.heard()) for client in (says_which, says_nothing)]
    notifier.say("new")
    notifier.tell_lines()
    later = [in_short(await client.heard()) for client in (says_which, says_nothing)]

    assert begun == [["code", "written without a model"], ["code"]]
    assert later == [["new"], ["new"]]


@pytest.mark.parametrize(
    ("line", "rest"),
    [(None, []), (0, ["a frame", "written without a model", "end"]), (1, ["written without a model", "end"]), (2, [])],
)
async def test_whoever_has_the_last_status_is_told_the_lines_that_it_says_it_has_not(
    notifier: MemoryNotifier, line: int | None, rest: list[str]
) -> None:
    """After a `resync` the snapshot comes before the lines, and a client may be cut off among these."""
    await a_life_with_lines(notifier)
    await written(notifier, 5, 6, 7)
    client = notifier.of_job("job-1", id_of(8), line=line)

    assert in_short(await client.heard()) == rest
    assert client.over


async def test_an_id_of_another_log_begins_with_the_first_line(notifier: MemoryNotifier) -> None:
    await a_life_with_lines(notifier)

    heard = await notifier.of_job("job-1", "01JB00000000000000000000ZZ-4", line=2).heard()

    assert lines_in(heard) == ["a frame", "written without a model"]


async def test_a_line_that_is_still_on_its_way_comes_before_the_end(notifier: MemoryNotifier) -> None:
    """Lines and statuses come by ways of their own."""
    await a_life_with_lines(notifier)
    client = notifier.of_job("job-1")
    await client.heard()
    notifier.say("the last words")
    await written(notifier, 5, 6, 7, tells=True)

    heard = await client.heard()

    assert in_short(heard) == ["deps", "checks", "the last words", "ready", "end"]


@settings(deadline=None)
@given(
    before=st.integers(0, 5),
    brought=st.integers(0, 5),
    behind=st.integers(0, 5),
    has=st.none() | st.integers(1, 5),
    live=st.integers(0, 4),
    late=st.integers(0, 3),
)
async def test_each_line_comes_once_and_in_order(
    *, before: int, brought: int, behind: int, has: int | None, live: int, late: int
) -> None:
    """The client has up to `has`. When it comes `before` were said, of which the follower has `brought` some, and the
    copy that is read is `behind`. When the job ends the follower has not brought the `late` ones."""
    notifier, has = MemoryNotifier(patient()), None if has is None else min(has, before) or None
    await notifier.write(*WHOLE[:5])
    notifier.tell()
    texts = [str(number) for number in range(1, before + live + late + 1)]
    notifier.say(*texts[:before])
    notifier.tell_lines(min(brought, before))
    notifier.lines.behind = behind
    client = notifier.of_job("job-1", line=has)
    heard = await client.heard()
    notifier.say(*texts[before : before + live])
    notifier.tell_lines()
    heard += await client.heard()
    notifier.say(*texts[before + live :])
    await notifier.write(*WHOLE[5:])
    notifier.tell()
    heard += await client.heard()
    notifier.tell_lines()

    assert lines_in(heard) == texts[has or 0 :]
    assert heard[-1][0] == "end"


async def test_other_jobs_lines_are_not_told(notifier: MemoryNotifier) -> None:
    await a_life_with_lines(notifier)
    notifier.say("secret", job_id="job-2")

    assert "secret" not in lines_in(await notifier.of_job("job-1").heard())


async def test_where_the_beginning_is_not_kept_any_more_a_mark_stands(notifier: MemoryNotifier) -> None:
    await written(notifier, 0, 1, 2, 3)
    notifier.say("fourth", number=4)

    assert lines_in(await notifier.of_job("job-1").heard()) == ["… [3 lines are gone: the log was cut here]", "fourth"]


async def test_a_long_log_comes_in_pieces_that_a_slow_client_can_take(notifier: MemoryNotifier) -> None:
    await written(notifier, 0, 1, 2, 3)
    notifier.say(*(str(number) * 40 for number in range(MANY)))
    client = notifier.of_job("job-1")

    heard = await client.heard()

    assert len(lines_in(heard)) == MANY
    assert max(map(len, client.pieces)) < 70_000
    assert len(client.pieces) > 1


async def test_lines_that_cannot_be_read_break_the_stream_off_and_its_client_comes_back(
    notifier: MemoryNotifier,
) -> None:
    await a_life_with_lines(notifier)
    notifier.lines.behind = 10_000
    client = notifier.of_job("job-1")

    await client.heard()

    assert client.over
    assert client.raw.endswith(b"retry: 2000\n\n")


async def test_an_erased_log_is_not_waited_for(notifier: MemoryNotifier) -> None:
    await a_life_with_lines(notifier)
    lines = Erased(notifier.lines, behind=1)

    rest = [line.line.line async for line in Said("job-1", cast("Any", lines), notifier.clock).rest()]

    assert rest == ["a frame"]

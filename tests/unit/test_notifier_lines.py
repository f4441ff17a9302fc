"""The lines of a job on its stream: each once and in order, however late somebody comes and whatever lags behind."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libs.eventlog.lines import LinePage
from services.notifier.said import Said
from tests.fixtures.hall import WHOLE, Event, Hall, LaggingLines, id_of, patient

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
def hall() -> Hall:
    return Hall(patient())


def lines_in(heard: list[Event]) -> list[str]:
    return [data["line"] for kind, _, data in heard if kind == "log"]


def in_short(heard: list[Event]) -> list[str]:
    """`snapshot`, the line that was said, the status that it came to."""
    return [data.get("line") or (kind if kind in ("snapshot", "end") else data["status"]) for kind, _, data in heard]


async def written(hall: Hall, *events: int, tells: bool = False) -> None:
    """Of a whole life, these; a moment after whatever was before."""
    await hall.clock.sleep_ms(10)
    await hall.write(*(WHOLE[number] for number in events))
    await hall.clock.sleep_ms(10)
    if tells:
        hall.tell()


async def a_life_with_lines(hall: Hall) -> None:
    await written(hall, 0, 1, 2, 3)
    hall.say("a frame", stage="scaffold")
    await written(hall, 4)
    hall.say("written without a model")
    hall.tell()
    hall.tell_lines()


async def test_whoever_comes_late_is_told_every_line_from_the_beginning(hall: Hall) -> None:
    await a_life_with_lines(hall)
    client = hall.of_job("job-1")

    begun = await client.heard()
    hall.say("and more")
    hall.tell_lines()
    later = await client.heard()

    assert in_short(begun) == ["snapshot", "a frame", "written without a model"]
    assert in_short(later) == ["and more"]


async def test_a_job_that_has_ended_still_says_what_it_said(hall: Hall) -> None:
    await a_life_with_lines(hall)
    await written(hall, 5, 6, 7)

    heard = await hall.of_job("job-1").heard()

    assert in_short(heard) == ["snapshot", "a frame", "written without a model", "end"]


async def test_a_replay_tells_everything_in_its_order_and_then_how_it_stands(hall: Hall) -> None:
    await a_life_with_lines(hall)
    client = hall.of_job("job-1", replay=True)

    begun = await client.heard()
    await written(hall, 5, 6, 7, tells=True)
    later = await client.heard()

    so_far = ["queued", "starting", "scaffold", "a frame", "code", "written without a model", "snapshot"]
    assert in_short(begun) == so_far
    assert in_short(later) == ["deps", "checks", "ready", "end"]


async def test_whoever_comes_back_is_told_what_followed_the_last_line(hall: Hall) -> None:
    await a_life_with_lines(hall)
    first = (await hall.of_job("job-1").heard())[1][2]["seq"]

    says_which = hall.of_job("job-1", id_of(4), line=first)
    says_nothing = hall.of_job("job-1", id_of(4))
    begun = [in_short(await client.heard()) for client in (says_which, says_nothing)]
    hall.say("new")
    hall.tell_lines()
    later = [in_short(await client.heard()) for client in (says_which, says_nothing)]

    assert begun == [["code", "written without a model"], ["code"]]
    assert later == [["new"], ["new"]]


@pytest.mark.parametrize(
    ("line", "rest"),
    [(None, []), (0, ["a frame", "written without a model", "end"]), (1, ["written without a model", "end"]), (2, [])],
)
async def test_whoever_has_the_last_status_is_told_the_lines_that_it_says_it_has_not(
    hall: Hall, line: int | None, rest: list[str]
) -> None:
    """After a `resync` the snapshot comes before the lines, and a client may be cut off among these."""
    await a_life_with_lines(hall)
    await written(hall, 5, 6, 7)
    client = hall.of_job("job-1", id_of(8), line=line)

    assert in_short(await client.heard()) == rest
    assert client.over


async def test_an_id_of_another_log_begins_with_the_first_line(hall: Hall) -> None:
    await a_life_with_lines(hall)

    heard = await hall.of_job("job-1", "01JB00000000000000000000ZZ-4", line=2).heard()

    assert lines_in(heard) == ["a frame", "written without a model"]


async def test_a_line_that_is_still_on_its_way_comes_before_the_end(hall: Hall) -> None:
    """Lines and statuses come by ways of their own."""
    await a_life_with_lines(hall)
    client = hall.of_job("job-1")
    await client.heard()
    hall.say("the last words")
    await written(hall, 5, 6, 7, tells=True)

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
    hall, has = Hall(patient()), None if has is None else min(has, before) or None
    await hall.write(*WHOLE[:5])
    hall.tell()
    texts = [str(number) for number in range(1, before + live + late + 1)]
    hall.say(*texts[:before])
    hall.tell_lines(min(brought, before))
    hall.lines.behind = behind
    client = hall.of_job("job-1", line=has)
    heard = await client.heard()
    hall.say(*texts[before : before + live])
    hall.tell_lines()
    heard += await client.heard()
    hall.say(*texts[before + live :])
    await hall.write(*WHOLE[5:])
    hall.tell()
    heard += await client.heard()
    hall.tell_lines()

    assert lines_in(heard) == texts[has or 0 :]
    assert heard[-1][0] == "end"


async def test_other_jobs_lines_are_not_told(hall: Hall) -> None:
    await a_life_with_lines(hall)
    hall.say("secret", job_id="job-2")

    assert "secret" not in lines_in(await hall.of_job("job-1").heard())


async def test_where_the_beginning_is_not_kept_any_more_a_mark_stands(hall: Hall) -> None:
    await written(hall, 0, 1, 2, 3)
    hall.say("fourth", number=4)

    assert lines_in(await hall.of_job("job-1").heard()) == ["… [3 lines are gone: the log was cut here]", "fourth"]


async def test_a_long_log_comes_in_pieces_that_a_slow_client_can_take(hall: Hall) -> None:
    await written(hall, 0, 1, 2, 3)
    hall.say(*(str(number) * 40 for number in range(MANY)))
    client = hall.of_job("job-1")

    heard = await client.heard()

    assert len(lines_in(heard)) == MANY
    assert max(map(len, client.pieces)) < 70_000
    assert len(client.pieces) > 1


async def test_lines_that_cannot_be_read_break_the_stream_off_and_its_client_comes_back(hall: Hall) -> None:
    await a_life_with_lines(hall)
    hall.lines.behind = 10_000
    client = hall.of_job("job-1")

    await client.heard()

    assert client.over
    assert client.raw.endswith(b"retry: 2000\n\n")


async def test_an_erased_log_is_not_waited_for(hall: Hall) -> None:
    await a_life_with_lines(hall)
    lines = Erased(hall.lines, behind=1)

    rest = [line.line.line async for line in Said("job-1", lines, hall.clock).rest()]

    assert rest == ["a frame"]

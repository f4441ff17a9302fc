"""What a stream shows, where it begins, and that nothing is sent twice or left out. Everything on the twins."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contracts import Status, UnknownEvent
from headgate_contracts.commands import PositionChanged
from headgate_contracts.shown import QueuePart
from libs.eventlog import LogUnavailable, Record
from libs.eventlog.history import MemoryScans
from services.notifier.domain import Begin, Complete, NoJob, Opening, Resume, last_seen, opening
from services.notifier.rendering import interests_in, item_of
from tests.fixtures.lives import life_of
from tests.fixtures.memory_notifier import ASKS, EPOCH, WHOLE, MemoryNotifier, id_of, patient, user

OTHER = "01JB00000000000000000000ZZ"
T0 = datetime(2026, 1, 1, tzinfo=UTC)


# ── where a stream begins ─────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("last_event_id", "story", "expected"),
    [
        (None, "queued", Begin()),
        ("", "queued", Begin()),
        (id_of(1), "queued dispatched", Resume(1)),
        (f"{OTHER}-1", "queued dispatched", Begin(resync=True)),
        ("not an id", "queued", Begin(resync=True)),
        (id_of(999), "queued", Begin(resync=True)),
        (id_of(0), "queued cancelled", Resume(0)),
        (id_of(2), "queued cancelled", Complete()),
    ],
)
async def test_where_a_stream_begins(
    notifier: MemoryNotifier, last_event_id: str | None, story: str, expected: Opening
) -> None:
    await notifier.write(*life_of("job-1", story))
    history = await notifier.use_cases.histories.of_job("job-1")
    assert history is not None

    assert notifier.use_cases.where(last_event_id, history) == expected
    assert opening(None, epoch=EPOCH, job=history.jobs[0], last_status_seq=1) == Begin()


@pytest.mark.parametrize(
    ("last_event_id", "expected"), [(None, None), ("", None), (id_of(7), 7), (f"{OTHER}-7", None), ("seven", None)]
)
def test_what_a_client_of_many_jobs_has_seen(last_event_id: str | None, expected: int | None) -> None:
    assert last_seen(last_event_id, epoch=EPOCH) == expected


# ── one job ───────────────────────────────────────────────────────────────────


async def test_a_new_client_gets_a_snapshot_then_each_status_then_the_end(notifier: MemoryNotifier) -> None:
    await notifier.write(*WHOLE[:2])
    client = notifier.of_job("job-1")
    begun = await client.heard()
    await notifier.write(*WHOLE[2:])
    notifier.tell()

    later = await client.heard()

    assert [(kind, id_) for kind, id_, _ in begun] == [("snapshot", id_of(2))]
    assert [data["status"] for _, _, data in later[:-1]] == ["scaffold", "code", "deps", "checks", "ready"]
    assert [bool(data.get("stages")) for _, _, data in later[:-1]] == [True, False, False, False, False]
    assert (later[-1][0], client.over) == ("end", True)
    assert len(notifier.seen.delivered_seqs) == len(later[:-1])


async def test_what_the_follower_brings_late_is_not_sent_again(notifier: MemoryNotifier) -> None:
    await notifier.write(*WHOLE[:5])
    client = notifier.of_job("job-1")
    begun = await client.heard()
    notifier.tell()
    await notifier.write(*WHOLE[5:])
    notifier.tell()

    later = await client.heard()

    assert begun[0][1] == id_of(5)
    assert [data.get("status") for _, _, data in later[:-1]] == ["deps", "checks", "ready"]


@settings(deadline=None)
@given(cut=st.integers(0, len(WHOLE)), joined=st.integers(1, len(WHOLE)), lag=st.integers(0, len(WHOLE)))
async def test_a_client_that_comes_back_sees_each_status_once(cut: int, joined: int, lag: int) -> None:
    """It has seen up to `cut`, the log holds `joined` when it comes, and the follower has brought `lag` of them."""
    notifier, cut = MemoryNotifier(patient()), min(cut, joined)
    await notifier.write(*WHOLE[:joined])
    notifier.tell(up_to=min(lag, joined))
    client = notifier.of_job("job-1", id_of(cut))
    heard = await client.heard()
    await notifier.write(*WHOLE[joined:])
    notifier.tell()
    heard += await client.heard()

    every_status = [id_of(n) for n, event in enumerate(WHOLE, 1) if event.data.EVENT.value != "started"]

    assert [id_of(n) for n in range(1, cut + 1) if id_of(n) in every_status] + [
        id_ for kind, id_, _ in heard if kind == "status" and id_
    ] == every_status
    assert [kind for kind, _, _ in heard][-1:] == ([] if cut == len(WHOLE) else ["end"])


async def test_a_finished_job_gives_the_rest_and_the_end_without_waiting(notifier: MemoryNotifier) -> None:
    await notifier.write(*WHOLE)
    client = notifier.of_job("job-1", id_of(6))

    heard = await client.heard()

    assert [(kind, data.get("status")) for kind, _, data in heard] == [
        ("status", "checks"),
        ("status", "ready"),
        ("end", None),
    ]


async def test_an_open_question_is_asked_again_of_a_new_client_with_what_was_said_since(
    notifier: MemoryNotifier,
) -> None:
    await notifier.write(*life_of("job-1", f"{ASKS} confirmation_reminder"))
    client = notifier.of_job("job-1")

    heard = await client.heard()

    assert [kind for kind, _, _ in heard] == ["snapshot", "confirmation"]
    assert {"next_batch", "expires_at", "hours_left"} <= heard[1][2].keys()


async def test_lines_and_positions_have_no_id(notifier: MemoryNotifier) -> None:
    await notifier.write(*WHOLE[:1])
    client = notifier.of_job("job-1")
    await client.heard()
    notifier.say("<b>hello</b>\nworld")
    notifier.tell_lines()
    part = QueuePart(position=4, position_original=4, position_message="You are #4 in queue", passed_by=0)
    notifier.move(PositionChanged(job_id="job-1", queue=part))

    heard = await client.heard()

    assert [(kind, id_) for kind, id_, _ in heard] == [("log", None), ("position", None)]
    assert heard[0][2]["line"] == "<b>hello</b>\nworld"
    assert heard[1][2]["queue"]["position"] == 4


async def test_of_anothers_job_nothing_is_said(notifier: MemoryNotifier) -> None:
    await notifier.write(*WHOLE[:1])

    assert await notifier.of_job("job-1", who=user("somebody-else")).opened() == NoJob("job-1")
    assert await notifier.of_job("job-2").opened() == NoJob("job-2")
    assert len(await notifier.of_job("job-1", who=user("operator", scopes="ops")).heard()) == 1


# ── all of one's jobs ─────────────────────────────────────────────────────────


async def test_all_of_ones_jobs_come_on_one_stream(notifier: MemoryNotifier) -> None:
    await notifier.write(*life_of("job-1", "queued dispatched"), *life_of("job-2", "queued"))
    client = notifier.of_user()
    [(kind, id_, data)] = await client.heard()
    await notifier.write(
        *life_of("job-3", "queued cancelled"), *life_of("job-1", "queued dispatched started scaffold")[2:]
    )
    notifier.tell()

    later = await client.heard()

    assert (kind, id_, [job["id"] for job in data["jobs"]]) == ("snapshot", id_of(3), ["job-2", "job-1"])
    assert [(data["job_id"], data["status"]) for _, _, data in later] == [
        ("job-3", "queued"),
        ("job-3", "cancelled"),
        ("job-1", "scaffold"),
    ]
    assert not client.over


async def test_jobs_that_have_ended_show_the_day_as_it_stands_and_are_not_asked_about_one_by_one(
    notifier: MemoryNotifier,
) -> None:
    notifier.positions.used_today = 3
    for number in range(5):
        await notifier.write(*life_of(f"job-{number}", "queued cancelled"))

    [(_, _, one)] = (await notifier.of_job("job-0").heard())[:1]
    asked_for_one = list(notifier.positions.asked)
    [(_, _, all_of_them)] = await notifier.of_user().heard()

    assert one["usage"]["jobs_used"] == 3
    assert [job["usage"]["jobs_used"] for job in all_of_them["jobs"]] == [3] * 5
    assert (asked_for_one, notifier.positions.asked[1:]) == (["job-0"], ["job-4"])


async def test_what_a_newer_writer_says_of_a_job_reaches_its_user_too(notifier: MemoryNotifier) -> None:
    """While it happens, and for a client that comes back later: a stream that shows it once and not twice shows no
    gap."""
    await notifier.write(*life_of("job-1", "queued"))
    client = notifier.of_user()
    await client.heard()
    newer = UnknownEvent(
        "0" * 26, "dev.headgate.job.polished.v1", T0, "job-1", Status.QUEUED, 2, 0, "user-1", "project-1"
    )
    record = Record(2, T0, newer)
    notifier.fanout.spread(interests_in(record), lambda: item_of(record, epoch=EPOCH))

    heard = await client.heard()

    assert [(kind, id_, data["event"]) for kind, id_, data in heard] == [("status", id_of(2), newer.type)]


async def test_what_was_said_of_an_answered_question_is_not_said_of_the_next(notifier: MemoryNotifier) -> None:
    again = "confirmed dispatched started scaffold code deps checks awaiting_confirmation"
    await notifier.write(*life_of("job-1", f"{ASKS} confirmation_reminder {again}"))

    heard = await notifier.of_job("job-1").heard()

    assert heard[1][0] == "confirmation"
    assert "hours_left" not in heard[1][2]


async def test_the_question_comes_before_the_status_that_says_it_was_seen(notifier: MemoryNotifier) -> None:
    """A client that is cut off between the two is asked again, on the stream of all jobs too."""
    await notifier.write(*life_of("job-1", ASKS)[:-1])
    client = notifier.of_user()
    await client.heard()
    await notifier.write(life_of("job-1", ASKS)[-1])
    notifier.tell()

    assert [kind for kind, _, _ in await client.heard()] == ["confirmation", "status"]


async def test_two_users_never_see_each_other(notifier: MemoryNotifier) -> None:
    await notifier.write(*life_of("job-1", "queued"), *life_of("job-2", "queued", user_id="user-2"))
    mine, others = notifier.of_user(), notifier.of_user(who=user("user-2"))
    seen = [await mine.heard(), await others.heard()]
    await notifier.write(*life_of("job-3", "queued", user_id="user-2"))
    notifier.tell()

    seen = [[*begun, *await client.heard()] for begun, client in zip(seen, (mine, others), strict=True)]

    assert [[job["id"] for job in each[0][2]["jobs"]] for each in seen] == [["job-1"], ["job-2"]]
    assert [[data["job_id"] for _, _, data in each[1:]] for each in seen] == [[], ["job-3"]]


@settings(deadline=None)
@given(cut=st.integers(0, 8), joined=st.integers(0, 8), lag=st.integers(0, 8), behind=st.integers(0, 5))
async def test_a_client_of_many_jobs_that_comes_back_misses_nothing(
    cut: int, joined: int, lag: int, behind: int
) -> None:
    """Also where the copy that history is read from has not come as far as the log's leader."""
    notifier = MemoryNotifier(patient())
    events = [event for number in range(4) for event in life_of(f"job-{number}", "queued dispatched")]
    cut = min(cut, joined)
    await notifier.write(*events[:joined])
    notifier.tell(up_to=min(lag, joined))
    notifier.scans.behind = behind
    client = notifier.of_user(id_of(cut))
    heard = await client.heard()
    await notifier.write(*events[joined:])
    notifier.tell()
    heard += await client.heard()

    assert [id_ for _, id_, _ in heard] == [id_of(n) for n in range(cut + 1, 9)]


@pytest.mark.parametrize(
    ("seen", "dropped", "kinds"),
    [
        (2, 2, ["status"]),
        (2, 3, ["resync", "snapshot"]),
        (4, 3, []),
    ],
)
async def test_whoever_has_missed_what_is_gone_by_age_begins_anew(
    notifier: MemoryNotifier, seen: int, dropped: int, kinds: list[str]
) -> None:
    await notifier.write(*life_of("job-1", "queued dispatched started scaffold"))
    notifier.server.expire(through=dropped)

    heard = await notifier.of_user(id_of(seen)).heard()

    assert [kind for kind, _, _ in heard] == kinds


async def test_a_job_whose_beginning_is_gone_by_age_is_not_there(notifier: MemoryNotifier) -> None:
    await notifier.write(*WHOLE)
    notifier.server.expire(through=1)

    assert await notifier.of_job("job-1", id_of(3)).opened() == NoJob("job-1")


async def test_a_copy_that_lags_hides_no_job_of_a_new_user(notifier: MemoryNotifier) -> None:
    await notifier.write(*life_of("job-1", "scheduled"), *life_of("job-2", "queued"))
    histories = replace(notifier.use_cases.histories, scans=_KnowsOfNoneScheduled(notifier.server))

    history = await histories.of_user("user-1")

    assert [job.id for job in history.jobs] == ["job-2", "job-1"]


class _KnowsOfNoneScheduled(MemoryScans):
    """Who is asked for those alone is a copy that has none yet."""

    async def pages(self, filters: Sequence[str], **asked: Any) -> AsyncGenerator[list[Record]]:
        async with aclosing(super().pages(filters, **asked)) as pages:
            async for page in pages:
                if not all("scheduled" in each for each in filters):
                    yield page


async def test_a_copy_that_never_catches_up_is_no_history(notifier: MemoryNotifier) -> None:
    await notifier.write(*WHOLE[:3])
    notifier.scans.behind = 10_000

    with pytest.raises(LogUnavailable):
        await notifier.use_cases.histories.of_user_after("user-1", 0)

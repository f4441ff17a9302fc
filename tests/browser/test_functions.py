"""The page's pure functions, by tables: words, colours, what is heard of a job, its iterations, the queue's order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from services.notifier.pages import DASHBOARD

T0, T1, T2, T3 = (f"2026-03-01T10:00:0{second}.000000Z" for second in range(4))
JOB = {
    "id": "j1",
    "status": "queued",
    "message": "You are #4 in queue",
    "updated_at": T1,
    "queue": {"position": 4, "passed_by": 0, "position_message": "You are #4 in queue"},
    "waiting_on": [],
    "iterations": {"used": 0, "batch": 2, "cap": 6, "confirmations": 0},
    "stages": [{"name": name, "title": name.upper()} for name in ("scaffold", "code", "deps", "checks")],
    "moves": [],
    "question": None,
}
CALL = """
async ([module, name, given]) => {
  const found = await (await import(`/assets/js/${module}.js`))[name](...given);
  return found instanceof Map ? [...found] : found;
}
"""


ASKED = """
async ([query, now]) => {
  const {asked, filtersOf} = await import("/assets/js/filters.js");
  return String(asked(filtersOf(query), {now: Date.parse(now)}));
}
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its parent names it so
        """Nothing is said of each request."""


@pytest.fixture(scope="module")
def files() -> Iterator[str]:
    """The page's files alone, without anybody behind them."""
    with ExitStack() as stack:
        server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(DASHBOARD))))
        serving = Thread(target=server.serve_forever, daemon=True)
        serving.start()
        stack.callback(serving.join)
        stack.callback(server.shutdown)
        yield f"http://127.0.0.1:{server.server_port}"


@pytest_asyncio.fixture(scope="module")
async def page(chromium: Browser, files: str) -> AsyncIterator[Page]:
    page = await chromium.new_page(locale="en-GB", timezone_id="UTC")
    await page.goto(files)
    yield page
    await page.close()


@pytest.fixture
def js(page: Page) -> Any:
    async def call(module: str, name: str, *given: Any) -> Any:
        return await page.evaluate(CALL, [module, name, list(given)])

    return call


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("span", [0], "0 seconds"),
        ("span", [0.4], "less than a second"),
        ("span", [1], "1 second"),
        ("span", [89.6], "2 minutes"),
        ("span", [60 * 89], "89 minutes"),
        ("span", [3600 * 2 - 20], "2 h 00 min"),
        ("span", [86400 * 3], "3 days"),
        ("short", [0.04], "0.0 s"),
        ("short", [9.96], "10 s"),
        ("short", [5400], "1.5 h"),
        ("plural", [1, "job"], "1 job"),
        ("plural", [0, "refusal"], "0 refusals"),
        ("ago", [T0, 0], "just now"),
        ("until", [T0, 1e15], "now"),
        ("lasted", [T0, T2], "2.0 s"),
        ("percent", [0.755], "76 %"),
        ("statusWord", ["awaiting_confirmation"], "Asks you"),
        ("statusWord", ["of a newer server"], "of a newer server"),
        ("moveWords", [{"from": 3, "to": 1, "boosted": 0}], "2 jobs ahead of it started or left"),
        ("moveWords", [{"from": 1, "to": 2, "boosted": 1}], "1 boosted job put ahead of it"),
        ("eventWords", [{"event": "given_back", "reason": "lost"}], "Back to its old place, as its worker was lost"),
        ("eventWords", [{"event": "of_a_newer_server"}], "of a newer server"),
    ],
)
async def test_numbers_and_moments_read_well(js: Any, name: str, given: list[Any], words: str) -> None:
    assert await js("words", name, *given) == words


async def test_a_position_that_changed_is_kept_with_its_reason(js: Any) -> None:
    queue = {"position": 6, "passed_by": 2, "position_message": "Originally #4, currently #6"}

    after = await js("state", "heard", JOB, "position", {"queue": queue, "waiting_on": []}, 7)

    assert after["moves"] == [{"at": 7, "from": 4, "to": 6, "boosted": 2}]
    assert after["message"] == "Originally #4, currently #6"
    again = await js("state", "heard", after, "position", {"queue": queue, "waiting_on": []}, 8)
    assert again["moves"] == after["moves"]


async def test_a_position_told_too_late_changes_nothing(js: Any) -> None:
    running = JOB | {"status": "code", "queue": None}

    assert await js("state", "heard", running, "position", {"queue": JOB["queue"], "waiting_on": []}) == running


async def test_a_job_that_starts_has_no_place_any_more(js: Any) -> None:
    status = {"event": "dispatched", "status": "starting", "attempt": 1, "at": T2}

    after = await js("state", "heard", JOB, "status", status)

    assert (after["queue"], after["message"], after["attempt"], after["updated_at"]) == (None, "Starting", 1, T2)


async def test_a_failure_is_known_without_another_question(js: Any) -> None:
    status = {"event": "failed", "status": "failed", "summary": "No.", "detail": "Why", "debug_id": "d", "at": T2}

    after = await js("state", "heard", JOB, "status", status)

    assert after["error"] == {"summary": "No.", "detail": "Why", "debug_id": "d"}
    assert after["message"] == "No."


async def test_an_answer_older_than_what_was_heard_is_dropped(js: Any) -> None:
    known = JOB | {"status": "ready", "updated_at": T3}

    assert await js("state", "newer", known, JOB) == known
    assert (await js("state", "newer", JOB, known))["status"] == "ready"


async def test_lines_are_added_to_those_there_were_and_a_new_log_begins_anew(js: Any) -> None:
    one, two, three = ({"line": name} for name in ("one", "two", "three"))
    said = [{"kind": "log", "data": two}, {"kind": "position", "data": {}}, {"kind": "log", "data": three}]
    another = [said[0], {"kind": "resync", "data": {}}, said[2]]

    assert await js("state", "linesAfter", [one], said) == [one, two, three]
    assert await js("state", "linesAfter", [one], another) == [three]


def staged(stage: str, iteration: int, at: str) -> dict[str, Any]:
    return {"event": "stage", "stage": stage, "iteration": iteration, "at": at}


async def test_each_iteration_tells_what_passed_and_what_did_not(js: Any) -> None:
    stages = [staged(stage, 1, T0) for stage in ("scaffold", "code", "deps")] + [staged("checks", 1, T1)]
    asked = {"event": "awaiting_confirmation", "at": T2}
    granted = {"event": "confirmed", "at": T3, "batch": 2}

    first, second = await js(
        "iterations", "iterationsOf", [*stages, asked, granted, staged("code", 2, T3)], JOB | {"status": "code"}
    )

    assert [stage["state"] for stage in first["stages"].values()] == ["done", "done", "done", "broken"]
    assert (first["stages"]["checks"]["from"], first["stages"]["checks"]["until"]) == (T1, T2)
    assert (first["asked"], first["granted"]) == (T2, 2)
    assert second["stages"]["code"]["state"] == "now"


async def test_tokens_are_of_the_stage_before_the_event_that_tells_them(js: Any) -> None:
    used = {"usage": [{"input_tokens": 10, "output_tokens": 2}, {"input_tokens": 5, "output_tokens": 1}]}
    back = {"event": "given_back", "at": T2, **used}
    events = [
        staged("code", 1, T0),
        staged("deps", 1, T1) | used,
        back,
        staged("code", 1, T2),
        staged("deps", 1, T3) | used,
    ]

    assert await js("iterations", "tokensOf", events) == [
        ["code", {"input": 30, "output": 6}],
        ["deps", {"input": 15, "output": 3}],
    ]


async def test_an_attempt_that_was_given_back_leaves_its_stage_open(js: Any) -> None:
    events = [staged("scaffold", 1, T0), staged("code", 1, T1), {"event": "given_back", "at": T2, "reason": "lost"}]

    [broken_off] = await js("iterations", "iterationsOf", events, JOB)
    [again] = await js("iterations", "iterationsOf", [*events, staged("code", 1, T3)], JOB | {"status": "code"})

    assert broken_off["stages"]["code"]["state"] == "left"
    assert again["stages"]["code"] == {"state": "now", "from": T3, "until": None, "restored": False}


def at(second: float) -> str:
    return f"2026-03-01T10:{int(second // 60):02}:{second % 60:09.6f}Z"


def told(event: str, second: float, **more: Any) -> dict[str, Any]:
    return {"event": event, "at": at(second), "attempt": 1, **more}


LIVED = [
    told("queued", 0, why="submitted", attempt=0),
    told("dispatched", 10),
    told("started", 11, worker="w1", stages=JOB["stages"]),
    told("stage", 12, stage="scaffold", iteration=1),
    told("stage", 14, stage="code", iteration=1),
]


async def parts(js: Any, *more: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Lane, kind, from and until, in seconds."""
    drawn = await js("timeline", "timelineOf", [*LIVED, *more], JOB)
    begins, lanes = drawn["from"], drawn["lanes"]
    seconds = {None: None} | {
        each: (each - begins) / 1000
        for lane in lanes
        for p in lane["parts"]
        for each in (p["from"], p["until"])
        if each
    }
    return [(lane["name"], p["kind"], seconds[p["from"]], seconds[p["until"]]) for lane in lanes for p in lane["parts"]]


async def test_a_timeline_has_a_lane_for_waits_and_one_for_each_stage(js: Any) -> None:
    assert await parts(js) == [
        ("waits", "wait", 0, 10),
        ("waits", "way", 10, 11),
        ("waits", "way", 11, 12),
        ("scaffold", "done", 12, 14),
        ("code", "run", 14, None),
    ]


async def test_a_wait_is_told_by_what_held_it_then(js: Any) -> None:
    ms = 1_772_359_200_000  # 2026-03-01T10:00:00Z
    events = [
        told("queued", 0, why="submitted", attempt=0),
        told("dispatched", 60),
        told("given_back", 90, reason="lost"),
    ]
    waits = [
        {"reason": "turn", "message": "Waited its turn", "since": at(0), "until": at(10)},
        {"reason": "user_limit", "message": "Your jobs: 2 of 2 slots were taken", "since": at(10), "until": at(40)},
        {"reason": "paused", "message": "The whole queue was paused by olga", "since": at(40), "until": at(50)},
        {"reason": "turn", "message": "Waited its turn", "since": at(50), "until": at(60)},
        {"reason": "turn", "message": "Its worker was lost: waits its turn", "since": at(90), "until": None},
    ]
    now = JOB | {"status": "queued", "waiting_on": [{"reason": "no_worker", "message": "No worker is there"}]}

    drawn = await js("timeline", "timelineOf", events, now, waits)

    [lane] = drawn["lanes"]
    assert [(p["words"], p["kind"], (p["from"] - ms) / 1000) for p in lane["parts"]] == [
        ("In the queue", "wait", 0),
        ("Your jobs: 2 of 2 slots were taken", "held", 10),
        ("The whole queue was paused by olga", "pause", 40),
        ("In the queue", "wait", 50),
        ("broken off: its worker was lost", "left", 60),
        ("Waits again: its worker was lost. Now: No worker is there", "wait", 90),
    ]


async def test_what_broke_a_stage_off_and_what_came_after_stand_in_the_timeline(js: Any) -> None:
    lost = [told("given_back", 20, reason="lost"), told("cancelled", 30, by="ann")]
    asked = [
        told("stage", 15, stage="deps", iteration=1),
        told("stage", 16, stage="checks", iteration=1),
        told("stage", 18, stage="scaffold", iteration=2),
        told("awaiting_confirmation", 20),
        told("confirmation_reminder", 25),
        told("confirmed", 30, by="ann", batch=2),
    ]

    assert (await parts(js, *lost))[3:] == [
        ("waits", "wait", 20, 30),
        ("scaffold", "done", 12, 14),
        ("code", "left", 14, 20),
    ]
    kinds = {(lane, kind) for lane, kind, *_ in await parts(js, *asked)}
    assert {("checks", "broken"), ("asks", "asks"), ("waits", "wait")} <= kinds


async def test_a_stage_that_asks_is_left_and_begins_again_after_the_answer(js: Any) -> None:
    question = {"id": "q1", "kind": "ask", "text": "Which licence?"}
    asked = [
        told("awaiting_confirmation", 20, question=question),
        told("answered", 30, question="q1", by="ann"),
        told("dispatched", 31, attempt=2),
        told("stage", 32, stage="scaffold", iteration=1, restored=True, attempt=2),
        told("stage", 33, stage="code", iteration=1, attempt=2),
    ]

    assert [part for part in await parts(js, *asked) if part[0] in ("code", "asks", "scaffold")] == [
        ("scaffold", "done", 12, 14),
        ("scaffold", "kept", 32, 33),
        ("code", "left", 14, 20),
        ("code", "run", 33, None),
        ("asks", "asks", 20, 30),
    ]


async def test_a_try_is_followed_by_its_pause_and_the_next_one(js: Any) -> None:
    tried = {"stage": "code", "iteration": 1, "tries": 1, "most": 3, "summary": "away", "again_at": at(22)}
    short = [told("try_failed", 20, tried=tried), told("stage", 30, stage="deps", iteration=1)]
    long = [told("try_failed", 20, tried=tried), told("given_back", 21, reason="retry", until=at(22))]

    assert [part[1:] for part in await parts(js, *short) if part[0] == "code"] == [
        ("tried", 14, 20),
        ("pause", 20, 22),
        ("done", 22, 30),
    ]
    assert [part[1:] for part in await parts(js, *long) if part[0] == "code"] == [("tried", 14, 20), ("pause", 20, 21)]
    assert (await parts(js, *long))[3] == ("waits", "pause", 21, None)


async def test_a_failure_in_the_last_stage_is_one_that_did_not_pass(js: Any) -> None:
    failed = told("failed", 20, summary="no")

    assert (await parts(js, failed))[-1] == ("code", "failed", 14, 20)
    [*_, last] = await parts(
        js, *(told("stage", n, stage=name, iteration=1) for n, name in ((15, "deps"), (16, "checks"))), failed
    )
    assert last == ("checks", "broken", 16, 20)


async def test_all_of_a_life_is_drawn_first_and_an_attempt_that_is_but_a_part_can_be(js: Any) -> None:
    drawn = await js("timeline", "timelineOf", [*LIVED, told("failed", 15, summary="no")], JOB)

    ranges = await js("timeline", "rangesOf", drawn, 0)
    alone = await js("timeline", "rangesOf", drawn | {"from": drawn["attempts"][0]["at"]}, 0)

    assert [(each["number"], (each["until"] - each["from"]) / 1000) for each in ranges] == [(0, 15), (1, 5)]
    assert [each["number"] for each in alone] == [0]


@pytest.mark.parametrize(("seconds", "ticks", "step"), [(4, 5, 1), (59, 6, 10), (3600, 7, 600), (86400 * 3, 7, 43200)])
async def test_an_axis_has_few_ticks_on_round_moments(js: Any, seconds: int, ticks: int, step: int) -> None:
    axis = await js("timeline", "axisOf", 1_772_000_000_500, 1_772_000_000_500 + seconds * 1000, 6)

    assert len(axis["ticks"]) == ticks
    assert {tick % (step * 1000) for tick in axis["ticks"]} == {0}
    assert axis["from"] <= 1_772_000_000_500 < axis["until"]


async def test_a_part_finds_its_lines_by_attempt_stage_and_time(js: Any) -> None:
    start = 1_772_359_200_000  # 2026-03-01T10:00:00Z
    part = {"stage": "code", "attempt": 2, "from": start + 1000, "until": start + 3000}
    lines = [
        {"stage": stage, "attempt": attempt, "ts": at(second)}
        for stage, attempt, second in (("code", 1, 2), ("code", 2, 1), ("code", 2, 2), ("deps", 2, 2), ("code", 2, 4))
    ]

    assert await js("timeline", "linesOf", part, lines) == {"from": 2, "to": 3}
    assert await js("timeline", "linesOf", part | {"stage": "checks"}, lines) is None


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("2026-03-01 10:00:00 ERROR shop: no", 3),
        ("\x1b[33mWARNING\x1b[0m: old", 2),
        ('{"level": "info", "message": "yes"}', 1),
        ("time=10:00 level=debug msg=x", 0),
        ("an error is in the word terror and ERRORS", None),
        ("3 passed", None),
    ],
)
async def test_a_lines_level_is_what_it_says_itself(js: Any, line: str, rank: int | None) -> None:
    assert await js("levels", "rankOf", line) == rank


async def test_markdown_is_blocks_of_text_and_html_in_it_is_text(js: Any) -> None:
    text = (
        "# Shop\n\nIt *sells*\nthings.\n\n- one\n  - two\n\n```js\n<b>\n```\n<script>x</script>\n\n|a|b|\n|-|-|\n|1|2|"
    )

    blocks = await js("markdown", "blocksOf", text)

    assert [block["kind"] for block in blocks] == ["heading", "paragraph", "list", "code", "paragraph", "table"]
    assert [item["depth"] for item in blocks[2]["items"]] == [0, 1]
    assert (blocks[3]["text"], blocks[4]["text"]) == ("<b>", "<script>x</script>")
    assert (blocks[5]["head"], blocks[5]["rows"]) == (["a", "b"], [["1", "2"]])


async def test_a_link_of_markdown_leads_to_the_web_or_nowhere(js: Any) -> None:
    text = (
        "see [docs](https://example.org/x), [bad](javascript:alert(1)) and ![picture](https://example.org/p.png) `a*b*`"
    )

    pieces = await js("markdown", "inlinesOf", text)

    assert [piece.get("href") for piece in pieces if piece["kind"] == "link"] == ["https://example.org/x"]
    assert {"kind": "code", "text": "a*b*"} in pieces
    assert {"kind": "text", "text": "picture"} in pieces


@pytest.mark.parametrize(
    ("at", "order"),
    [
        (0, {"job_id": "b", "before": "a"}),
        (1, None),
        (2, {"job_id": "b", "after": "c"}),
    ],
)
async def test_a_held_job_goes_before_the_line_it_stands_at(js: Any, at: int, order: dict[str, str] | None) -> None:
    lines = [{"job_id": name} for name in "abc"]

    assert await js("views/queue", "orderOf", lines, {"id": "b", "at": at}) == order


async def test_the_fullest_group_is_the_first(js: Any) -> None:
    def group(name: str, active: int, limit: int, waiting: int = 0) -> dict[str, Any]:
        return {"group": name, "active": active, "limit": limit, "waiting": waiting}

    found = await js(
        "views/groups", "byUse", [group("a", 1, 9), group("b", 2, 2), group("c", 2, 2, 5), group("d", 0, 0)]
    )

    assert [each["group"] for each in found] == ["c", "b", "a", "d"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((["b", "a"], ["c", "b", "a"], False), (["c", "b", "a"], [])),
        ((["b", "a"], ["c", "b", "a"], True), (["b", "a"], ["c"])),
        ((["b", "a"], ["mine", "c", "b"], True), (["mine", "b", "a"], ["c"])),
        ((["c", "b", "a"], ["c", "a"], False), (["c", "a"], [])),
        ((["c", "b", "a"], ["d", "c"], False), (["d", "c", "b", "a"], [])),  # a and b: of an older page
        ((["b", "a"], ["z", "y"], False), (["z", "y"], [])),
    ],
)
async def test_a_list_that_is_read_does_not_move(js: Any, given: tuple[Any, ...], told: tuple[Any, ...]) -> None:
    found = await js("list", "merged", *given, ["mine"])

    assert (found["ids"], found["fresh"]) == told


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ({}, ""),
        (
            {"show": "asks", "q": " shop & co ", "label": "a=1"},
            "status=awaiting_confirmation&q=shop+%26+co&label=a%3D1",
        ),
        ({"show": "ready", "sort": "updated", "user": "ann"}, "status=ready&user=ann&sort=updated"),
        ({"show": "nonsense", "sort": "nonsense", "time": "nonsense"}, ""),
        ({"time": "day"}, "since=2026-02-28T10%3A00%3A00.000Z"),
        ({"since": "2026-03-01T09:00Z"}, "since=2026-03-01T09%3A00Z"),
        (
            {"time": "day", "since": "2026-02-01T00:00Z", "until": "2026-02-02T00:00:30Z"},
            "since=2026-02-01T00%3A00Z&until=2026-02-02T00%3A00%3A30Z",
        ),
        ({"time": "own", "since": "2026-02-01", "until": "2026-02-31T99:00Z"}, ""),
    ],
)
async def test_an_address_becomes_a_question_to_the_api(page: Page, query: dict[str, str], asked: str) -> None:
    assert await page.evaluate(ASKED, [query, T0]) == asked


async def test_a_moment_is_typed_in_the_readers_zone_and_is_utc_in_the_address(chromium: Browser, files: str) -> None:
    page = await chromium.new_page(timezone_id="Europe/Berlin")
    await page.goto(files)

    assert await page.evaluate(CALL, ["filters", "momentFrom", ["2026-07-01T12:00"]]) == "2026-07-01T10:00Z"
    assert await page.evaluate(CALL, ["filters", "localOf", ["2026-07-01T10:00Z"]]) == "2026-07-01T12:00"
    assert await page.evaluate(CALL, ["filters", "localOf", [""]]) == ""
    await page.close()


async def test_saved_filters_are_kept_apart_by_name(js: Any) -> None:
    kept = [{"name": "mine", "hash": "#/jobs?q=a"}, {"name": "ours", "hash": "#/jobs?q=b"}]

    found = await js("saved", "withSaved", kept, {"name": "mine", "hash": "#/jobs?q=c"})

    assert found == [{"name": "mine", "hash": "#/jobs?q=c"}, kept[1]]


async def test_each_tab_counts_its_statuses(js: Any) -> None:
    found = await js(
        "filters", "countsOfTabs", {"queued": 3, "scheduled": 1, "code": 2, "ready": 5, "of a newer one": 1}
    )

    assert found == {"": 12, "waiting": 4, "running": 2, "asks": 0, "ready": 5, "failed": 0, "cancelled": 0}


async def test_jobs_are_grouped_by_day(js: Any) -> None:
    moments = ["2026-03-01T23:59:00Z", "2026-03-01T00:00:00Z", "2026-02-28T23:59:00Z", "2025-12-31T10:00:00Z"]

    groups = [(moment, await js("days", "dayWords", moment, "2026-03-01T12:00:00Z")) for moment in moments]

    assert [day for _, day in groups] == ["Today", "Today", "Yesterday", "Wednesday, 31 December 2025"]
    assert await js("days", "zoneWords") == "UTC"


@pytest.mark.parametrize(
    ("zone", "words"),
    [("Europe/Berlin", "Europe/Berlin (UTC+1)"), ("America/St_Johns", "America/St_Johns (UTC−3:30)")],
)
async def test_the_zone_is_said_with_its_distance_from_utc(
    chromium: Browser, files: str, zone: str, words: str
) -> None:
    page = await chromium.new_page(timezone_id=zone)
    await page.goto(files)

    assert await page.evaluate(CALL, ["days", "zoneWords", ["2026-03-01T12:00:00Z"]]) == words
    await page.close()


@pytest.mark.parametrize(
    ("waiting_on", "words"),
    [
        ([{"reason": "user_limit", "message": "Your jobs: 2 of 2 slots are taken"}], None),
        ([{"reason": "paused", "message": "The whole queue is paused by olga: release"}], "Paused by olga: release"),
        ([{"reason": "paused", "message": "Pool gpu is paused by olga"}], "Pool gpu is paused by olga"),
    ],
)
async def test_a_pause_is_said_in_place_of_the_place(js: Any, waiting_on: list[Any], words: str | None) -> None:
    assert await js("words", "pauseWords", JOB | {"waiting_on": waiting_on}) == words


async def test_a_point_that_no_line_reaches_is_drawn_by_itself(js: Any) -> None:
    assert await js("charts", "alone", [None, 3, None, 4, 5, None, 0]) == [1, 6]


async def test_figures_become_charts_that_are_told_by_the_hour(js: Any) -> None:
    lines = [
        {"name": "queued", "of": "default", "values": [3, 4]},
        {"name": "started", "of": "default", "values": [1, 2]},
        {"name": "started", "of": "gpu", "values": [0, 1]},
        {"name": "refused", "of": "rate-limited", "values": [None, 2]},
        {"name": "calls", "of": "ollama", "values": [3, None]},
        {"name": "tokens_cached", "of": "ollama", "values": [500, None]},
        {"name": "tokens_input", "of": "ollama", "values": [3000, None]},
        {"name": "tokens_input", "of": "openai", "values": [0, 100]},
        {"name": "tokens_output", "of": "ollama", "values": [1000, None]},
    ]

    charts = {
        chart["title"]: chart["lines"] for chart in await js("charts", "chartsOf", {"lines": lines, "step_s": 1800})
    }

    assert charts["Queued"] == [{"label": "default", "values": [3, 4]}]
    assert charts["Started and ended"] == [{"label": "started", "values": [2, 6]}]
    assert charts["Refused"] == [{"label": "refused", "values": [None, 4]}]
    assert charts["Calls of models"] == [{"label": "ollama", "values": [6, None]}]
    assert charts["Tokens of models"] == [
        {"label": "ollama", "values": [8000, None]},
        {"label": "openai", "values": [0, 200]},
    ]
    assert "Given back as a provider had paused" not in charts
    asked = await js("charts", "statsPath", "week", 1_772_359_200_000)
    assert asked == "/stats?since=2026-02-22T10%3A00%3A00.000Z&step=7200"


async def test_a_server_that_cannot_be_reached_is_told_in_our_own_words(chromium: Browser, files: str) -> None:
    page = await chromium.new_page()
    await page.goto(files)
    await page.evaluate("async () => { globalThis.api = await import('/assets/js/api.js'); }")
    await page.context.set_offline(True)

    told = await page.evaluate("api.get('/jobs').catch((fault) => fault.message)")

    assert told == "the server cannot be reached"
    await page.close()


async def test_the_palette_finds_by_every_word(js: Any) -> None:
    entries = [{"words": "Go to Jobs"}, {"words": "New job"}, {"words": "Failed jobs"}]

    assert await js("views/palette", "fitting", entries, "jo FAI") == [{"words": "Failed jobs"}]


async def test_a_form_becomes_a_submission(js: Any) -> None:
    form = {"pipeline": "report", "input": '{"a": 1}', "project": "shop", "priority": "low", "labels": "a=1, b=x=y"}

    told = await js("views/submit", "bodyOf", form | {"run_at": "2026-03-01T10:00"})

    assert (told["pipeline"], told["input"]) == ("report", {"a": 1})
    assert told["labels"] == {"a": "1", "b": "x=y"}
    assert told["run_at"] == "2026-03-01T10:00:00.000Z"


SCHEMA = {
    "type": "object",
    "required": ["topic"],
    "$defs": {"Tone": {"type": "string", "enum": ["plain", "formal"]}},
    "properties": {
        "topic": {"type": "string", "title": "Topic", "maxLength": 80},
        "text": {"type": "string", "maxLength": 4000, "default": ""},
        "pages": {"type": "integer", "default": 3, "minimum": 1},
        "tone": {"$ref": "#/$defs/Tone", "default": "plain"},
        "draft": {"type": "boolean", "default": False},
        "sources": {"type": "array", "items": {"type": "string"}},
        "author": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
}


async def test_a_schema_becomes_fields_each_typed_in_as_it_is_meant(js: Any) -> None:
    fields = await js("views/schema_form", "fieldsOf", SCHEMA)

    assert {field["name"]: field["kind"] for field in fields} == {
        "topic": "line",
        "text": "text",
        "pages": "number",
        "tone": "choice",
        "draft": "yes or no",
        "sources": "json",
        "author": "line",
    }
    assert [field["name"] for field in fields if field["required"]] == ["topic"]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"topic": "tea"}, {"topic": "tea", "pages": 3, "tone": "plain", "draft": False}),
        (
            {"topic": "tea", "pages": "5", "draft": "yes", "sources": '["a"]', "author": "Ann", "tone": ""},
            {"topic": "tea", "pages": 5, "draft": True, "sources": ["a"], "author": "Ann"},
        ),
    ],
)
async def test_what_is_typed_becomes_an_input_and_what_is_left_empty_is_left_out(
    js: Any, typed: dict[str, str], told: dict[str, Any]
) -> None:
    given = {f"input.{name}": text for name, text in typed.items()}

    assert await js("views/schema_form", "inputFrom", SCHEMA, given) == told


NESTED = {
    "required": ["prompt", "box"],
    "properties": {
        "prompt": {"type": "string", "title": "What?", "examples": ["A clock", "A lamp"]},
        "seconds": {
            "type": "object",
            "default": {"code": 2},
            "propertyNames": {"enum": ["scaffold", "code"]},
            "additionalProperties": {"type": "number", "minimum": 0},
        },
        "box": {"type": "object", "properties": {"wide": {"type": "integer", "title": "Width"}}},
        "free": {"type": "object"},
    },
}


async def test_the_parts_of_an_object_are_fields_where_their_names_are_known(js: Any) -> None:
    fields = await js("views/schema_form", "fieldsOf", NESTED)

    assert [(field["name"], field["title"], field["kind"]) for field in fields] == [
        ("prompt", "What?", "line"),
        ("seconds.scaffold", "seconds: scaffold", "number"),
        ("seconds.code", "seconds: code", "number"),
        ("box.wide", "box: Width", "number"),
        ("free", "free", "json"),
    ]
    assert await js("views/schema_form", "begun", NESTED) == {"input.prompt": "A clock"}
    typed = {"input.prompt": "A clock", "input.seconds.scaffold": "0.5"}
    meant = await js("views/schema_form", "inputFrom", NESTED, typed)
    assert meant == {"prompt": "A clock", "seconds": {"scaffold": 0.5, "code": 2}, "box": {}}


async def test_without_a_schema_the_input_is_typed_as_json(js: Any) -> None:
    assert await js("views/schema_form", "inputFrom", None, {"input": '{"a": [1]}'}) == {"a": [1]}
    assert await js("views/schema_form", "inputFrom", None, {}) == {}


@pytest.mark.parametrize(
    ("schema", "typed", "meant"),
    [
        (None, {"input.answer": "MIT"}, "MIT"),
        ({"type": "integer"}, {"input.answer": "3"}, 3),
        ({"type": "boolean"}, {"input.answer": "no"}, False),
        ({"type": "array"}, {"input.answer": '["a"]'}, ["a"]),
        (SCHEMA, {"input.topic": "tea", "input.tone": ""}, {"topic": "tea", "pages": 3, "draft": False}),
    ],
    ids=["a text", "a number", "yes or no", "a list", "an object"],
)
async def test_an_answer_is_what_its_schema_wants(js: Any, schema: Any, typed: dict[str, str], meant: Any) -> None:
    assert await js("views/question", "answerFrom", "What?", schema, typed) == meant


async def test_comments_and_pauses_of_a_stream_are_no_events(js: Any) -> None:
    assert await js("stream", "parsed", ": still here") is None
    assert await js("stream", "parsed", "retry: 2000") is None
    assert await js("stream", "parsed", 'id: E-7\nevent: log\ndata: {"line": "a: b"}') == {
        "kind": "log",
        "id": "E-7",
        "data": {"line": "a: b"},
    }


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain", [("plain", "")]),
        ("\x1b[32mgreen\x1b[0m not", [("green", "ansi-green"), (" not", "")]),
        ("\x1b[1;91mbad\x1b[22m still red", [("bad", "ansi-bold ansi-red"), (" still red", "ansi-red")]),
        ("\x1b[38;5;31mx\x1b[38;2;31;32;33my", [("x", ""), ("y", "")]),
        ("a\x1b]52;c;ZXZpbA==\x07b\x1b]8;;http://x\x1b\\c\x1b[2Jd\x1b", [("a", ""), ("b", ""), ("c", ""), ("d", "")]),
    ],
)
async def test_colours_of_a_log_become_classes_and_nothing_else_comes_through(
    page: Page, line: str, shown: list[tuple[str, str]]
) -> None:
    found = await page.evaluate(CALL, ["ansi", "pieces", [line]])

    assert [(piece["text"], piece["kind"]) for piece in found] == shown
    assert await page.evaluate(CALL, ["ansi", "bare", [line]]) == "".join(text for text, _ in shown)

"""The page's pure functions, by tables: words, colours, what is heard of a job, its cycles, the queue's order."""

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


async def test_each_cycle_tells_what_passed_and_what_did_not(js: Any) -> None:
    stages = [staged(stage, 1, T0) for stage in ("scaffold", "code", "deps")] + [staged("checks", 1, T1)]
    asked = {"event": "awaiting_confirmation", "at": T2}
    granted = {"event": "confirmed", "at": T3, "batch": 2}

    first, second = await js(
        "cycles", "cyclesOf", [*stages, asked, granted, staged("code", 2, T3)], JOB | {"status": "code"}
    )

    assert [stage["state"] for stage in first["stages"].values()] == ["done", "done", "done", "broken"]
    assert (first["stages"]["checks"]["from"], first["stages"]["checks"]["until"]) == (T1, T2)
    assert (first["asked"], first["granted"]) == (T2, 2)
    assert second["stages"]["code"]["state"] == "now"


async def test_an_attempt_that_was_given_back_leaves_its_stage_open(js: Any) -> None:
    events = [staged("scaffold", 1, T0), staged("code", 1, T1), {"event": "given_back", "at": T2, "reason": "lost"}]

    [broken_off] = await js("cycles", "cyclesOf", events, JOB)
    [again] = await js("cycles", "cyclesOf", [*events, staged("code", 1, T3)], JOB | {"status": "code"})

    assert broken_off["stages"]["code"]["state"] == "left"
    assert again["stages"]["code"] == {"state": "now", "from": T3, "until": None, "restored": False}


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


async def test_a_form_becomes_a_submission(js: Any) -> None:
    form = {"pipeline": "build", "prompt": "A clock", "project": "shop", "priority": "low", "labels": "a=1, b=x=y"}

    told = await js("views/submit", "bodyOf", form | {"run_at": "2026-03-01T10:00"})

    assert "title" not in told
    assert told["labels"] == {"a": "1", "b": "x=y"}
    assert told["run_at"] == "2026-03-01T10:00:00.000Z"


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

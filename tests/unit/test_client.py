"""The client's core: requests and answers as values, carried out by hand."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from headgate import (
    Headgate,
    Job,
    Operators,
    Result,
    SyncHeadgate,
    SyncJob,
    SyncOperators,
    SyncResult,
    errors,
    fetching,
    operating,
    verbs,
    waiting,
)
from headgate.edge import FAULTS, Target, target_of
from headgate.exchange import Answer, NoAnswer, Patience, Request
from headgate.happenings import Asked, End, Event, LogLine, PositionChanged, Progressed, Snapshot, StatusChanged, typed
from headgate.orders import order, phase
from headgate.repeating import answered
from headgate.sse import Frame, FrameReader, Retry
from headgate.unpacking import unpack
from headgate.verbs import post
from tests.fixtures.scripted import JOB, frames, play, says

BUSY = {"type": "/problems/busy", "detail": "system busy, try again in 90 minutes", "debug_id": "d1"}
AWAY = {"type": "/problems/unavailable", "detail": "a server is away", "debug_id": "d1"}
FAST = {"type": "/problems/too-fast", "detail": "you may submit 60 jobs a minute", "debug_id": "d1"}
SILENCE = NoAnswer("Connection refused")
STREAM = Answer(200, {"content-type": "text/event-stream; charset=utf-8"})
NOW = "2026-03-01T10:00:00Z"
END = ("end", dict[str, Any](), None)


# ── one request, until there is an answer ─────────────────────────────────────


def test_a_submission_is_sent_again_under_the_same_key() -> None:
    played = play(verbs.submit("a", project="shop"), SILENCE, says(503, AWAY, retry_after="2"), says(202, JOB))

    assert [request.headers["Idempotency-Key"] for request in played.requests] == ["key-1"] * 3
    assert played.pauses == [0.5, 2.0]
    assert played.returned.id == "j1"


def test_two_submissions_have_two_keys_unless_they_are_named() -> None:
    keys = [play(verbs.submit("a", project="shop", key=key), says(202, JOB)).requests[0].headers for key in ("k", "k")]

    assert [each["Idempotency-Key"] for each in keys] == ["k", "k"]


def test_what_may_not_be_meant_twice_is_sent_once() -> None:
    with pytest.raises(errors.Unreachable, match="refused"):
        play(verbs.cancel("j1"), SILENCE)
    with pytest.raises(errors.Unavailable):
        play(verbs.cancel("j1"), says(503, AWAY, retry_after="1"))


def test_what_a_limit_refused_was_not_done_and_may_be_sent_again() -> None:
    assert play(verbs.cancel("j1"), says(429, FAST, retry_after="7"), says(202, JOB)).pauses == [7.0]


def test_repetition_ends_after_its_number() -> None:
    with pytest.raises(errors.Unreachable):
        play(verbs.job("j1"), *[SILENCE] * 3, patience=Patience(tries=3))


def test_repetition_ends_after_its_time() -> None:
    replies = [says(503, AWAY, retry_after="30")] * 3

    with pytest.raises(errors.Unavailable):
        play(verbs.job("j1"), *replies, patience=Patience(within_s=60))


def test_a_full_queue_says_when_to_come_back_and_is_not_waited_for() -> None:
    with pytest.raises(errors.Busy, match="90 minutes") as raised:
        play(verbs.submit("a", project="shop"), says(503, BUSY, retry_after="5400"))

    assert raised.value.retry_after == 5400


def test_whoever_has_the_time_may_wait_for_room() -> None:
    replies = (says(503, BUSY, retry_after="5400"), says(202, JOB))

    assert play(verbs.submit("a", project="shop"), *replies, patience=Patience(within_s=7200)).pauses == [5400]


@pytest.mark.parametrize(
    ("status", "slug", "kind"),
    [
        (429, "share", errors.OverShare),
        (429, "input-share", errors.OverShare),
        (429, "lease-share", errors.OverShare),
        (429, "horizon", errors.OverShare),
        (429, "too-many-changes", errors.TooFast),
        (422, "invalid", errors.Invalid),
        (413, "too-large", errors.Invalid),
        (401, "unauthorized", errors.NotSignedIn),
        (403, "forbidden", errors.NotAllowed),
        (404, "not-found", errors.NotFound),
        (410, "result-gone", errors.Gone),
        (409, "ended", errors.Conflict),
        (412, "changed", errors.Conflict),
        (500, "fault", errors.ServerFault),
        (502, "", errors.ServerFault),
    ],
)
def test_each_refusal_has_its_class(status: int, slug: str, kind: type[errors.Problem]) -> None:
    with pytest.raises(kind) as raised:
        play(post("/v1/x", {}, dict), says(status, {"type": f"/problems/{slug}", "detail": "no", "debug_id": "d7"}))

    assert (type(raised.value), raised.value.debug_id, str(raised.value)) == (kind, "d7", "no")


def test_what_is_wrong_is_said_by_field() -> None:
    problem = {"errors": [{"in": "body", "field": "project_id", "message": "missing"}], "detail": "project_id: missing"}

    with pytest.raises(errors.Invalid) as raised:
        play(verbs.submit("a", project=""), says(422, problem))

    assert raised.value.fields == {"project_id": "missing"}


def test_something_else_that_answers_is_no_headgate() -> None:
    for content in (b"<html>", b'{"hello": "world"}', b"[]"):
        with pytest.raises(errors.NotHeadgate):
            play(verbs.job("j1"), Answer(200, {}, content))
    with pytest.raises(errors.ServerFault, match="HTTP status 502"):
        play(verbs.job("j1"), *[Answer(502, {}, b"<html>")] * 8)


def test_every_class_of_the_tree_is_drawn() -> None:
    drawn = errors.__doc__ or ""

    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.HeadgateError) and kind is not errors.Problem:
            assert f" {name} " in f"{drawn} ".replace("\n", " "), name


# ── what is asked ─────────────────────────────────────────────────────────────


def test_a_submission_says_what_was_asked_for_and_nothing_else() -> None:
    played = play(verbs.submit("a URL shortener", project="shop", labels={"team": "growth"}), says(202, JOB))

    assert played.requests[0].target == "/v1/jobs"
    assert played.requests[0].body == {
        "project_id": "shop",
        "input": {"prompt": "a URL shortener"},
        "labels": {"team": "growth"},
    }


def test_a_pipeline_may_be_given_its_whole_input() -> None:
    asked = order({"stages": {"code": 1}}, project="shop", pipeline="rehearsal").body

    assert asked == {"project_id": "shop", "input": {"stages": {"code": 1}}, "pipeline": "rehearsal"}


def test_a_workflow_is_its_phases() -> None:
    workflow = {
        "id": "w1",
        "project_id": "shop",
        "user_id": "u1",
        "priority": "low",
        "status": "queued",
        "phases": [JOB],
    }

    phases = ["first", phase("second", pool="big")]
    played = play(verbs.submit_workflow(phases, project="shop", priority="low"), says(202, workflow))

    assert played.requests[0].body == {
        "project_id": "shop",
        "phases": [{"input": {"prompt": "first"}}, {"input": {"prompt": "second"}, "pool": "big"}],
        "priority": "low",
    }


def test_each_of_a_batch_has_its_own_outcome_and_those_that_were_too_fast_are_sent_again() -> None:
    taken, wrong = (
        {"status": 202, "job": JOB},
        {"status": 422, "problem": {"detail": "no", "type": "/problems/invalid"}},
    )
    fast = {"status": 429, "problem": {**FAST, "retry_after_s": 9}}
    two = [order("a", project="shop"), order("b", project="shop")]

    played = play(verbs.batch(two), says(207, {"results": [taken, fast]}), says(207, {"results": [taken, wrong]}))

    job, refused = played.returned
    assert (job.id, type(refused)) == ("j1", errors.Invalid)
    assert played.pauses == [9]
    assert len({request.headers["Idempotency-Key"] for request in played.requests}) == 1


def test_orders_of_a_batch_may_come_one_by_one() -> None:
    taken = {"status": 202, "job": JOB}

    played = play(verbs.batch(order(what, project="shop") for what in "ab"), says(207, {"results": [taken, taken]}))

    assert played.requests[0].body == {"jobs": [order(what, project="shop").body for what in "ab"]}


def test_a_list_goes_on_to_the_pages_it_needs() -> None:
    link = '</v1/jobs?limit=100&cursor=abc>; rel="next"'

    played = play(verbs.jobs(limit=150), says(200, [JOB] * 100, link=link), says(200, [JOB] * 100, link=link))

    assert [request.target for request in played.requests] == ["/v1/jobs?limit=100", "/v1/jobs?limit=100&cursor=abc"]
    assert len(played.given) == 150


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda hg: list(hg.jobs()), []),
        (lambda hg: hg.counts(), {"counts": {}}),
        (
            lambda hg: hg.ops.stats(),
            {"since": NOW, "until": NOW, "step_s": 60, "times": [], "lines": [], "unknown": []},
        ),
    ],
)
def test_whoever_asks_is_told_how_far_an_index_is_that_lacks_jobs(
    ask: Callable[[SyncHeadgate], object], said: object
) -> None:
    heard = list[str]()
    progress = iter([{"Headgate-Catching-Up": "1200/5000"}, {}])
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=said, headers=next(progress)))

    with SyncHeadgate("http://127.0.0.1:1", "token", transport=transport, catching_up=heard.append) as hg:
        ask(hg)
        ask(hg)

    assert heard == ["1200/5000"]


def test_a_name_is_one_part_of_a_path_whatever_is_in_it() -> None:
    told = {"user_id": "x", "jobs": 0, "cancelled": [], "unfinished": [], "message": "done"}

    played = play(operating.erase("eve@example.com/x", reason="asked to"), says(200, told))

    assert played.requests[0].target == "/v1/users/eve%40example.com%2Fx/content?reason=asked+to"


def test_what_a_newer_headgate_says_is_kept() -> None:
    newer = {**JOB, "title": "a shop", "status": "polishing"}

    state = play(verbs.job("j1"), says(200, newer)).returned

    assert state.as_dict() == newer
    assert not state.has_ended


# ── streams ───────────────────────────────────────────────────────────────────


def test_events_are_read_off_the_bytes_wherever_those_are_cut() -> None:
    sent = b': hello\n\nretry: 500\r\n\r\nid: E-7\nevent: status\ndata: {"a":\ndata: "\xc3\xa9"}\n\nid: E-8\nevent: cut'
    for size in (1, 2, 7, len(sent)):
        reader = FrameReader()
        heard = [each for at in range(0, len(sent), size) for each in reader.feed(sent[at : at + size])]

        assert heard == [Retry(500), Frame("status", {"a": "é"}, "E-7")]


def status(word: str, seq: int, **data: Any) -> tuple[str, dict[str, Any], str]:
    return "status", {"event": word, "status": word, **data}, f"E-{seq}"


def test_a_stream_that_is_cut_goes_on_after_the_last_id_and_the_last_line() -> None:
    said = ("log", {"stage": "code", "line": "…", "seq": 12}, None)
    played = play(
        verbs.events("j1"),
        *(STREAM, frames(("snapshot", JOB, "E-4"), status("code", 5), said), b"id: E-6\nevent: status\nda", b""),
        *(says(503, AWAY), SILENCE, STREAM, NoAnswer("cut off")),
        *(STREAM, frames(status("deps", 6)), frames(status("ready", 7), END)),
    )

    assert [event.id for event in played.given] == ["E-4", "E-5", None, "E-6", "E-7", None]
    assert [request.headers.get("Last-Event-ID") for request in played.requests] == [None, *["E-5"] * 4]
    assert [request.target.partition("?")[2] for request in played.requests] == ["replay=true", *["log_after=12"] * 4]


def test_a_stream_whose_end_was_missed_ends_without_a_word() -> None:
    played = play(verbs.events("j1"), STREAM, frames(status("ready", 7)), b"", Answer(204, {}))

    assert [event.kind for event in played.given] == ["status", "end"]


def test_a_stream_waits_as_long_as_the_server_says() -> None:
    full = says(429, {"detail": "you have 8 streams open"}, retry_after="30")

    played = play(verbs.events("j1"), STREAM, b"retry: 10000\n\n", b"", full, STREAM, frames(END))

    assert played.pauses == [10.0, 30.0]


def test_a_stream_of_anothers_job_is_refused_at_once() -> None:
    with pytest.raises(errors.NotFound):
        play(verbs.events("j2"), says(404, {"detail": "you have no job j2"}))


def test_a_stream_is_given_up_after_a_while_of_silence() -> None:
    with pytest.raises(errors.Unreachable):
        play(verbs.events("j1"), *[SILENCE] * 20)


def test_a_job_is_waited_for_and_then_as_it_stands() -> None:
    ended = {**JOB, "status": "ready"}

    heard = (STREAM, frames(("snapshot", JOB, "E-4"), status("ready", 7), END))
    played = play(waiting.wait("j1"), *heard, says(200, JOB), says(200, ended))

    assert (played.returned.status, played.given, played.pauses) == ("ready", [], [0.1])


def test_waiting_ends_when_its_time_is_over() -> None:
    with pytest.raises(TimeoutError, match="within 3 s"):
        play(waiting.wait("j1", timeout_s=3), STREAM, b"", STREAM, b"")


ASKED = {
    "job_id": "j1",
    "id": "q1",
    "kind": "continue",
    "text": "Continue for 3 more?",
    "choices": ["yes", "no"],
    "reason": {"summary": "2 failed", "detail": "a, b"},
    "iterations_used": 3,
    "next_batch": 3,
    "expires_at": "2026-03-03T09:30:00Z",
}


@pytest.mark.parametrize(
    ("name", "data", "kind", "words"),
    [
        ("snapshot", JOB, Snapshot, "queued: You are #4 in queue"),
        ("snapshot", {"jobs": [JOB, JOB]}, Snapshot, "queued: You are #4 in queue\nqueued: You are #4 in queue"),
        ("status", {"event": "failed", "status": "failed", "summary": "It broke."}, StatusChanged, "failed: It broke."),
        ("status", {"event": "stage", "status": "running", "stage": "train"}, StatusChanged, "train"),
        ("position", {"queue": {"position": 2, "position_message": "You are #2"}}, PositionChanged, "You are #2"),
        ("position", {"queue": None, "waiting_on": []}, PositionChanged, "not in the queue"),
        ("log", {"stage": "code", "line": "x = 1"}, LogLine, "code │ x = 1"),
        ("confirmation", {"iterations_used": 3, "next_batch": 3}, Asked, "asks whether to continue"),
        ("confirmation", ASKED, Asked, "asks: Continue for 3 more? (2 failed)"),
        ("confirmation", {"hours_left": 3}, Asked, "still asks"),
        ("progress", {"fraction": 0.4, "message": "12 of 30 files"}, Progressed, "40% 12 of 30 files"),
        ("end", {}, End, "end"),
        ("weather", {"sun": True}, Event, "weather"),
        ("status", {"newer": True}, Event, "status"),
        ("snapshot", "?", Event, "snapshot"),
    ],
)
def test_each_event_has_its_type_and_its_words(name: str, data: Any, kind: type[Event], words: str) -> None:
    event = typed(Frame(name, data, "E-1"))

    assert (type(event), str(event), event.data, event.id) == (kind, words, data, "E-1")


def test_a_stream_tells_the_stages_of_a_job_and_the_one_that_it_is_in() -> None:
    stages = [{"name": "fetch", "title": "Fetching"}, {"name": "train", "title": "Training"}]
    begun = typed(Frame("snapshot", JOB | {"status": "running", "stage": "fetch", "stages": stages}, "E-1"))
    first = typed(Frame("status", {"event": "stage", "status": "running", "stage": "fetch", "stages": stages}, "E-2"))
    second = typed(Frame("status", {"event": "stage", "status": "running", "stage": "train"}, "E-3"))

    assert isinstance(begun, Snapshot)
    assert isinstance(first, StatusChanged)
    assert isinstance(second, StatusChanged)
    assert (begun.job.stage, [stage.title for stage in begun.job.stages]) == ("fetch", ["Fetching", "Training"])
    assert (first.stage, first.stages, second.stage, second.stages) == ("fetch", begun.job.stages, "train", ())


# ── results ───────────────────────────────────────────────────────────────────


def packed(*entries: tuple[str, bytes | str]) -> bytes:
    """Files with their content; a text is where a link leads."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                tar.addfile(entry)
            else:
                entry.size, entry.mode = len(content), 0o755
                tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


ARCHIVE = packed(("shop/app.py", b"print()"))


def part(content: bytes, *, begin: int = 0, whole: bytes = ARCHIVE) -> tuple[Answer, bytes, bytes]:
    headers = {"etag": f'"{hashlib.sha256(whole).hexdigest()}"', "content-length": str(len(whole) - begin)}
    return Answer(206 if begin else 200, headers), content, b""


def test_a_download_that_breaks_off_goes_on_from_its_last_byte(tmp_path: Path) -> None:
    replies = (
        *part(ARCHIVE[:10])[:2],
        NoAnswer("cut"),
        SILENCE,
        *part(ARCHIVE[10:20], begin=10),
        *part(ARCHIVE[20:], begin=20),
    )

    played = play(fetching.save("j1", tmp_path / "r.tar.gz"), *replies)

    assert (tmp_path / "r.tar.gz").read_bytes() == ARCHIVE
    assert [request.headers.get("Range") for request in played.requests] == [
        None,
        "bytes=10-",
        "bytes=10-",
        "bytes=20-",
    ]
    assert played.requests[1].headers["If-Range"] == part(b"")[0].headers["etag"]


def test_a_result_that_has_changed_meanwhile_is_fetched_from_its_beginning() -> None:
    other = packed(("b.py", b"1"))

    replies = (*part(ARCHIVE[:10])[:2], NoAnswer("cut"), *part(other, whole=other))

    assert play(fetching.content("j1"), *replies).returned == other


def test_a_damaged_result_is_neither_kept_nor_unpacked(tmp_path: Path) -> None:
    for script in (fetching.save("j1", tmp_path / "r.tar.gz"), fetching.extract("j1", tmp_path / "out")):
        with pytest.raises(errors.NotAsPromised):
            play(script, *part(b"?" * len(ARCHIVE)))

    assert list(tmp_path.iterdir()) == []


def test_a_result_is_unpacked_below_the_folder(tmp_path: Path) -> None:
    played = play(fetching.extract("j1", tmp_path / "out"), *part(ARCHIVE))

    assert played.returned == (tmp_path / "out" / "shop" / "app.py",)
    assert played.returned[0].read_bytes() == b"print()"
    assert played.returned[0].stat().st_mode & 0o111


@pytest.mark.parametrize(
    "entry",
    [
        ("../up.py", b""),
        ("a/../../up.py", b""),
        ("/up.py", b""),
        ("link", "/etc"),
        ("link", "a"),
        ("", b""),
        (".", b""),
        ("good.py", b"2"),
        ("good.py/under.py", b""),
        ("a/" * 128 + "deep.py", b""),
    ],
)
def test_nothing_leads_out_of_the_folder(entry: tuple[str, bytes | str], tmp_path: Path) -> None:
    with pytest.raises(errors.UnsafeArchive):
        unpack(io.BytesIO(packed(("good.py", b"1"), entry)), tmp_path / "out")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"<html>", ARCHIVE[:40]], ids=["nothing", "a page", "cut off"])
def test_what_is_no_archive_is_not_unpacked(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(errors.UnsafeArchive):
        unpack(io.BytesIO(content), tmp_path)


def test_what_a_result_is_stands_in_its_first_byte() -> None:
    told = Answer(206, {"etag": '"abc"', "content-range": "bytes 0-0/4711"}, b"\x1f")

    facts = play(fetching.facts("j1"), told).returned

    assert (facts.size, facts.digest) == (4711, "abc")


def test_a_result_that_is_heard_of_and_not_seen_yet_is_asked_for_again() -> None:
    unseen = says(409, {"type": "/problems/no-result", "detail": "the job is checks"})
    event = {
        "seq": 9,
        "at": "2026-11-18T15:00:00Z",
        "user_id": "u1",
        "project_id": "shop",
        "job_id": "j1",
        "attempt": 1,
    }
    ready, asks = ([{**event, "event": word, "status": word}] for word in ("ready", "awaiting_confirmation"))

    assert play(fetching.content("j1"), unseen, says(200, ready), *part(ARCHIVE)).returned == ARCHIVE
    with pytest.raises(errors.Conflict):
        play(fetching.facts("j1"), unseen, says(200, asks))


# ── whom to ask ───────────────────────────────────────────────────────────────


def test_what_is_said_comes_before_what_the_environment_says() -> None:
    environ = {"HEADGATE_URL": "http://there:8080/", "HEADGATE_TOKEN": "t0"}

    assert target_of(None, None, environ) == Target("http://there:8080", "t0")
    assert target_of("https://here/hg", "t1", environ) == Target("https://here/hg", "t1")
    assert "t1" not in repr(Target("https://here/hg", "t1"))


@pytest.mark.parametrize(
    "environ", [{}, {"HEADGATE_URL": "http://there"}, {"HEADGATE_URL": "there", "HEADGATE_TOKEN": "t"}]
)
def test_without_a_place_and_a_token_it_is_said_what_to_set(environ: dict[str, str]) -> None:
    with pytest.raises(errors.NotConfigured):
        target_of(None, None, environ)


def test_a_request_without_an_answer_is_repeated_with_growing_pauses() -> None:
    played = play(answered(Request(path="/v1/usage")), *[SILENCE] * 5, says(200))

    assert played.pauses == [0.5, 1.0, 2.0, 4.0, 5.0]


def test_every_fault_of_httpx_is_no_answer_or_a_mistake_of_ours() -> None:
    """One that a newer httpx brings is to be put on a side."""
    faults = {each for each in vars(httpx).values() if isinstance(each, type) and issubclass(each, Exception)}

    left = {each.__name__ for each in faults if not issubclass(each, FAULTS)}

    assert left == {"HTTPError", "HTTPStatusError", "InvalidURL", "CookieConflict"}


# ── two faces, one core ───────────────────────────────────────────────────────


def verbs_of(face: type) -> set[str]:
    return {name for name, each in vars(face).items() if callable(each) and not name.startswith("_")} - {"close"}


@pytest.mark.parametrize(
    ("one", "other"),
    [(Headgate, SyncHeadgate), (Operators, SyncOperators), (Job, SyncJob), (Result, SyncResult)],
)
def test_both_faces_have_the_same_verbs_with_the_same_words(one: type, other: type) -> None:
    assert verbs_of(one) == verbs_of(other)
    for name in verbs_of(one) - {"slot"}:  # that is a block of code, and each has its own
        assert getattr(one, name).__wrapped__ is getattr(other, name).__wrapped__ or one in (Job, Result)


def test_every_verb_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", page[page.index("## The verbs") :]))

    assert verbs_of(Headgate) | verbs_of(Operators) <= named

"""The command line against a small HTTP server: what it sends, what it does when nobody answers, how it ends."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from click.shell_completion import ZshComplete

from headgate import async_driver, sync_driver
from libs.cli.__main__ import main
from libs.cli.arguments import commands
from libs.cli.grammar import COMPLETING
from libs.runtime.keys import KeyPair, keep_keys
from tests.fixtures.scripted import JOB
from tests.fixtures.terminal import HIDDEN, Terminal

Headers = dict[str, str]
Answer = tuple[int, Headers, bytes]
BUSY = {"type": "/problems/busy", "detail": "system busy, try again in 90 minutes", "debug_id": "d1"}
AWAY = {"type": "/problems/unavailable", "detail": "a server is away", "debug_id": "d1"}


class Typed(io.StringIO):
    """What a person types at a terminal."""

    def isatty(self) -> bool:
        return True


class Far:
    """A Headgate that gives the answers it was told to give, one after the other; the last one stays."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Headers, Any]] = []
        self.answers: list[Answer] = []
        far = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                far.asked.append((f"{self.command} {self.path}", headers, json.loads(body) if body else None))
                status, sent, content = far.answers.pop(0) if len(far.answers) > 1 else far.answers[0]
                self.send_response(status)
                for name, value in sent.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_DELETE = do_GET  # noqa: N815 - the base class's names

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def says(self, *answers: Answer) -> None:
        self.answers = list(answers)


def as_json(status: int, value: Any, **headers: str) -> Answer:
    return status, {"Content-Type": "application/json", **headers}, json.dumps(value).encode()


def as_archive(content: bytes) -> Answer:
    return 200, {"ETag": f'"{hashlib.sha256(content).hexdigest()}"'}, content


def as_stream(*events: tuple[str, dict[str, Any], str | None], cut: bytes = b"") -> Answer:
    frames = [
        (f"id: {event_id}\n" if event_id else "") + f"event: {name}\ndata: {json.dumps(data)}\n\n"
        for name, data, event_id in events
    ]
    return 200, {"Content-Type": "text/event-stream"}, "".join(frames).encode() + cut


def status(word: str, seq: int, **data: Any) -> tuple[str, dict[str, Any], str]:
    return "status", {"event": word, "status": word, **data}, f"E-{seq}"


def packed(files: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


ERASED = {"user_id": "eve", "message": "erased", "unfinished": [], "jobs": 1, "cancelled": []}
HISTORY = {"job_id": "j1", "user_id": "u1", "project_id": "shop", "status": "queued"}
REVOKED = {"jti": "lost-1", "until": "2030-01-01T00:00:00Z", "changed": True, "message": "it lets nobody in any more"}
FULL = {"group": "user:ann", "limit": 2, "active": 2, "waiting": 7, "holders": []}
ARCHIVE = packed({"app.py": b"print()"})
END = ("end", dict[str, Any](), None)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[Far]:
    there = Far()
    thread = threading.Thread(target=there.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("HEADGATE_URL", there.url)
    monkeypatch.setenv("HEADGATE_TOKEN", "t0")
    yield there
    there.server.shutdown()
    thread.join()
    there.server.server_close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where one is: an empty one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody really sleeps; how long they would have."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(sync_driver, "sleep", slept.append)
    monkeypatch.setattr(async_driver, "sleep", sleep)
    return slept


def test_a_submission_says_what_was_asked_for_and_nothing_else(far: Far, capsys: pytest.CaptureFixture[str]) -> None:
    far.says(as_json(202, JOB))

    code = main(["submit", "a URL shortener", "--project", "shop", "--priority", "high", "--label", "team=growth"])

    [(line, headers, body)] = far.asked
    assert (code, line, headers["authorization"]) == (0, "POST /v1/jobs", "Bearer t0")
    assert body == {
        "project_id": "shop",
        "input": {"prompt": "a URL shortener"},
        "priority": "high",
        "labels": {"team": "growth"},
    }
    assert "j1  You are #4 in queue" in capsys.readouterr().out


def test_a_submission_is_sent_again_under_the_same_key(far: Far, at_once: list[float]) -> None:
    far.says(as_json(503, AWAY, **{"Retry-After": "2"}), as_json(202, JOB))

    code = main(["submit", "a", "--project", "shop", "--json"])

    keys = [headers["idempotency-key"] for _, headers, _ in far.asked]
    assert (code, len(keys), len(set(keys)), at_once) == (0, 2, 1, [2.0])


def test_two_submissions_have_two_keys(far: Far) -> None:
    far.says(as_json(202, JOB))

    for _ in range(2):
        main(["submit", "a", "--project", "shop", "--json"])

    assert len({headers["idempotency-key"] for _, headers, _ in far.asked}) == 2


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (as_json(503, BUSY, **{"Retry-After": "5400"}), 3, "try again in 90 minutes. Nothing was changed."),
        (as_json(422, {"detail": "project_id: missing"}), 4, "project_id: missing"),
        (as_json(401, {"detail": "The token has expired. Send a valid token."}), 4, "has expired. Set HEADGATE_TOKEN"),
        (as_json(500, {"detail": "An unexpected fault.", "debug_id": "d7"}), 1, "debug_id d7"),
        ((200, {}, b"<html>"), 1, "Something else than Headgate answers at http://127.0.0.1:"),
    ],
)
def test_each_refusal_has_its_code_and_its_words(
    far: Far, at_once: list[float], *, answer: Answer, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    far.says(answer)

    assert main(["submit", "a", "--project", "shop"]) == code
    assert said in capsys.readouterr().err
    assert (len(far.asked), at_once) == (1, []), "what is refused is not tried again"


def test_a_submission_that_a_gateway_got_no_answer_to_is_sent_again(
    far: Far, at_once: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    far.says((502, {}, b"<html>"))

    assert main(["submit", "a", "--project", "shop"]) == 1
    assert "HTTP status 502" in capsys.readouterr().err
    assert (len(far.asked), len(at_once)) == (8, 7)
    assert len({headers["idempotency-key"] for _, headers, _ in far.asked}) == 1


def test_where_nobody_listens_it_is_said_what_to_do(
    monkeypatch: pytest.MonkeyPatch, at_once: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADGATE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("HEADGATE_TOKEN", "t0")

    code = main(["jobs", "list"])

    assert (code, len(at_once)) == (1, 7)
    assert "Nobody answers at http://127.0.0.1:1 (Connection refused)." in capsys.readouterr().err


def test_a_cancel_without_a_key_is_never_sent_twice(far: Far, at_once: list[float]) -> None:
    far.says(as_json(503, AWAY, **{"Retry-After": "2"}))

    assert main(["jobs", "cancel", "j1", "--reason", "changed my mind"]) == 1
    assert [(line, body) for line, _, body in far.asked] == [("POST /v1/jobs/j1/cancel", {"reason": "changed my mind"})]


def test_jobs_are_listed_for_people_and_for_programs(far: Far, capsys: pytest.CaptureFixture[str]) -> None:
    far.says(as_json(200, [JOB]))

    main(["jobs", "list", "--limit", "5"])
    table = capsys.readouterr().out.splitlines()
    main(["jobs", "list", "--json"])

    assert far.asked[0][0] == "GET /v1/jobs?limit=5"
    assert table[0].split() == ["JOB", "STATUS", "PROJECT", "CREATED", "(UTC)", "TITLE", "MESSAGE"]
    assert table[1].startswith("j1   queued  shop")
    assert json.loads(capsys.readouterr().out) == [JOB]


@pytest.mark.parametrize(
    ("words", "answer", "said"),
    [
        (["jobs", "show", "j"], as_json(200, [JOB | {"title": "A shop, a cart"}]), "j1\nA shop, a cart"),
        (["concurrency", "status", ""], as_json(200, [FULL]), "user\\:ann\n2 of 2 slots taken, 7 waiting"),
    ],
)
def test_ids_and_groups_are_completed_each_with_what_it_stands_for(
    far: Far, words: list[str], answer: Answer, said: str
) -> None:
    far.says(answer)
    zsh = ZshComplete(commands(), {}, "headgate", COMPLETING)

    assert [zsh.format_completion(each) for each in zsh.get_completions(words[:-1], words[-1])] == [f"plain\n{said}"]


def test_a_list_goes_on_to_the_pages_it_needs(far: Far, capsys: pytest.CaptureFixture[str]) -> None:
    following = {"Link": '</v1/jobs?limit=100&cursor=abc>; rel="next"'}
    far.says(as_json(200, [JOB] * 100, **following), as_json(200, [JOB] * 100, **following), as_json(200, [JOB] * 100))

    main(["jobs", "list", "--limit", "150", "--json"])

    assert [line for line, _, _ in far.asked] == ["GET /v1/jobs?limit=100", "GET /v1/jobs?limit=100&cursor=abc"]
    assert len(json.loads(capsys.readouterr().out)) == 150


def test_an_erasure_that_is_not_over_ends_with_1(far: Far, capsys: pytest.CaptureFixture[str]) -> None:
    told = ERASED | {"message": "1 job still under way: repeat this", "unfinished": ["j1"]}
    far.says(as_json(202, told))

    code = main(["erase", "eve@example.com/x", "--reason", "asked to", "--yes"])

    [(line, _, _)] = far.asked
    assert (code, line) == (1, "DELETE /v1/users/eve%40example.com%2Fx/content?reason=asked+to")
    assert "repeat this" in capsys.readouterr().out


def test_nobody_is_erased_by_a_program_that_did_not_mean_it(
    far: Far, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("eve\n"))

    code = main(["erase", "eve"])

    assert (code, far.asked) == (2, [])
    assert "Say --yes" in capsys.readouterr().err


@pytest.mark.parametrize(("typed", "code", "asked"), [("eve\n", 0, 1), ("Eve\n", 2, 0), ("\n", 2, 0), ("", 2, 0)])
def test_a_person_types_whom_to_erase(
    typed: str, code: int, asked: int, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.says(as_json(200, ERASED))
    monkeypatch.setattr("sys.stdin", Typed(typed))

    assert (main(["erase", "eve"]), len(far.asked)) == (code, asked)


def test_a_job_says_what_it_waits_for(far: Far, capsys: pytest.CaptureFixture[str]) -> None:
    far.says(as_json(200, JOB))

    main(["jobs", "show", "j1"])

    assert "waits for    Behind 3 jobs" in capsys.readouterr().out


def test_a_timeline_is_drawn_from_the_history(far: Far, capsys: pytest.CaptureFixture[str]) -> None:
    at = "2026-11-18T15:00:00"
    told = [
        {"seq": 8, "at": f"{at}.010Z", "event": "queued", "attempt": 0, "submission": {"submitted_at": f"{at}Z"}},
        {"seq": 9, "at": f"{at}.050Z", "event": "dispatched", "attempt": 1},
        {"seq": 10, "at": f"{at}.100Z", "event": "ready", "attempt": 1},
    ]
    held = {
        "since": f"{at}.020Z",
        "until": f"{at}.040Z",
        "reason": "paused",
        "message": "Your jobs were paused by olga",
    }
    answers = [as_json(200, [HISTORY | each for each in told]), as_json(200, {"job_id": "j1", "waits": [held]})]
    far.says(*answers, *answers)

    main(["jobs", "show", "j1", "--timeline"])
    drawn = capsys.readouterr().out.splitlines()
    main(["jobs", "show", "j1", "--timeline", "--json"])
    data = json.loads(capsys.readouterr().out)

    assert {line for line, _, _ in far.asked} == {"GET /v1/jobs/j1/events", "GET /v1/jobs/j1/waits"}
    assert drawn[0].split() == ["AT", "TOOK", "TRY", "HOP"]
    assert drawn[2].split() == ["+10.0", "ms", "40.0", "ms", "in", "the", "queue", "█" * 24]
    assert "+20.0 ms  20.0 ms       · Your jobs were paused by olga" in drawn[3]
    assert drawn[5].split()[:3] == ["+100", "ms", "1"]
    assert data["waits"][0]["reason"] == "paused"
    assert [(hop["event"], hop["at_ms"], hop["took_ms"]) for hop in data["hops"]][1:3] == [
        ("queued", 10.0, 40.0),
        ("dispatched", 50.0, 50.0),
    ]
    assert data["attempts"] == [{"attempt": 1, "took_ms": 50.0}]


def test_a_history_says_what_each_event_adds(far: Far, capsys: pytest.CaptureFixture[str]) -> None:
    event = HISTORY | {"seq": 9, "at": "2026-11-18T15:00:00Z", "event": "stage", "status": "code", "attempt": 1}
    event["iteration"] = 2
    far.says(as_json(200, [event]))

    main(["jobs", "events", "j1"])

    assert capsys.readouterr().out.splitlines()[1].split()[-4:] == ["stage", "code", "attempt=1", "iteration=2"]


@pytest.mark.parametrize(("asked", "name"), [(None, "j1.tar.gz"), ("r.tar.gz", "r.tar.gz"), (".", "j1.tar.gz")])
def test_a_result_is_kept_and_it_is_told_where_and_what_is_in_it(
    far: Far, asked: str | None, name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    far.says(as_archive(ARCHIVE))
    words = ["jobs", "result", "j1", *(["-o", asked] if asked else [])]

    code = main([*words, "--json"])
    as_json = json.loads(capsys.readouterr().out)
    again = main([*words, "--force"])
    told = capsys.readouterr().out

    assert (code, again, (folder / name).read_bytes()) == (0, 0, ARCHIVE)
    assert as_json == {"file": str(folder / name), "bytes": len(ARCHIVE), "contents": {"app.py": 7}}
    assert f"The result is in {folder / name} ({len(ARCHIVE)} bytes)" in told
    assert f"tar -xzf {name}" in told


def test_a_file_that_is_there_is_not_written_over_unless_that_is_asked_for(
    far: Far, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "j1.tar.gz").write_bytes(b"mine")

    code = main(["jobs", "result", "j1"])

    assert (code, (folder / "j1.tar.gz").read_bytes(), far.asked) == (2, b"mine", [])
    assert (
        "j1.tar.gz is there already: name another file with -o, or replace it with --force" in capsys.readouterr().err
    )


def test_a_folder_that_is_not_there_is_no_file(far: Far, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    far.says(as_archive(ARCHIVE))

    code = main(["jobs", "result", "j1", "-o", "out/"])

    assert (code, list(folder.iterdir()), far.asked) == (2, [], [])
    assert "there is no folder out/: create it, or name a file with -o" in capsys.readouterr().err


def test_what_is_no_archive_is_not_kept(far: Far, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    far.says(as_archive(b"<html>"))

    code = main(["jobs", "result", "j1"])

    assert (code, list(folder.iterdir())) == (1, [])
    assert "no .tar.gz" in capsys.readouterr().err


def test_a_result_goes_to_stdout_but_not_to_a_terminal(
    far: Far, folder: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    far.says(as_archive(ARCHIVE))

    piped = main(["jobs", "result", "j1", "-o", "-"])
    sys.stdout.flush()
    out = capfdbinary.readouterr().out
    as_json = main(["jobs", "result", "j1", "-o", "-", "--json"])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = main(["jobs", "result", "j1", "-o", "-"])

    assert (piped, as_json, shown) == (0, 2, 2)
    assert (out, len(far.asked), list(folder.iterdir())) == (ARCHIVE, 1, [])


def test_a_stream_that_is_cut_goes_on_after_the_last_id_and_the_last_line(
    far: Far, at_once: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    said = ("log", {"stage": "code", "line": "…", "seq": 12}, None)
    far.says(
        as_stream(("snapshot", JOB, "E-4"), status("code", 5), said, cut=b'id: E-6\nevent: status\ndata: {"sta'),
        as_json(503, AWAY),
        as_stream(("weather", {"sun": True}, None), status("deps", 6), status("ready", 7), END),
    )

    code = main(["jobs", "follow", "j1", "--json"])

    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (code, [event["id"] for event in told]) == (0, ["E-4", "E-5", None, None, "E-6", "E-7", None])
    assert [event["event"] for event in told][2:4] == ["log", "weather"]
    assert [headers.get("last-event-id") for _, headers, _ in far.asked] == [None, "E-5", "E-5"]
    assert [path.partition("?")[2] for path, _, _ in far.asked] == ["replay=true", "log_after=12", "log_after=12"]
    assert len(at_once) == 2


def test_whoever_follows_a_job_that_fails_is_told_where_all_of_it_stands(
    far: Far, capsys: pytest.CaptureFixture[str]
) -> None:
    far.says(as_stream(status("failed", 5, summary="There is no pipeline x in the pool."), END))

    code = main(["jobs", "follow", "j1"])

    failed, hint = capsys.readouterr().out.splitlines()
    assert (code, failed) == (1, "failed: There is no pipeline x in the pool.")
    assert hint.endswith("jobs show j1` says why.")


def test_whoever_follows_a_job_is_told_why_it_failed_and_how_to_answer_it(
    far: Far, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("status", {"event": "awaiting_confirmation", "status": "awaiting_confirmation"}, "E-5")
    which = ("status", asked[1] | {"question": {"kind": "ask", "text": "Which licence?"}}, "E-7")
    queued = ("status", {"event": "confirmed", "status": "queued"}, "E-6")
    far.says(as_stream(asked, queued, which, status("failed", 8, summary="no", detail="assert 3 == 4"), END))

    code = main(["jobs", "follow", "j1"])

    lines = capsys.readouterr().out.splitlines()
    assert code == 1
    assert [line for line in lines if "jobs confirm j1`" in line]
    assert [line for line in lines if "jobs answer j1 ANSWER`" in line]
    assert lines[-2] == "assert 3 == 4"


@pytest.mark.parametrize(("end", "code"), [("ready", 0), ("failed", 1), ("cancelled", 1)])
def test_following_ends_as_the_job_did(far: Far, end: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    log = ("log", {"stage": "code", "line": "def main():", "ts": "…"}, None)
    far.says(as_stream(("snapshot", JOB, "E-4"), log, status(end, 5, summary="no", by="u1", duration_s=1.0), END))

    assert main(["jobs", "follow", "j1"]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["queued: You are #4 in queue", "code │ def main():"]
    assert lines[2].startswith(end)


def test_a_submission_can_be_followed_to_its_end(far: Far, capsys: pytest.CaptureFixture[str]) -> None:
    far.says(as_json(202, JOB), as_stream(("snapshot", JOB, "E-4"), status("ready", 5), END))

    code = main(["submit", "a", "--project", "shop", "--follow", "--json"])

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (code, [line["event"] for line in lines]) == (0, ["snapshot", "status", "end"])


@pytest.mark.parametrize("presses", [1, 3])
def test_whoever_stops_watching_hears_that_the_job_goes_on(far: Far, presses: int) -> None:
    far.says(as_json(202, JOB), as_stream(("snapshot", JOB, "E-4"), cut=b"id: E-5"))
    command = (sys.executable, "-m", "libs.cli", "submit", "a", "--project", "shop", "--follow")

    with Terminal(command, os.environ) as terminal:
        terminal.until(HIDDEN)
        for _ in range(presses):
            terminal.press()
        code = terminal.ended()

    assert code == 130, terminal.said
    assert terminal.cursor_is_shown
    assert "The job goes on: `headgate jobs follow j1` watches it again." in terminal.said
    assert "Traceback" not in terminal.said


def test_a_command_can_be_interrupted_from_its_first_moment_on(far: Far) -> None:
    with Terminal((sys.executable, "-m", "libs.cli", "jobs", "list"), os.environ) as terminal:
        terminal.until_it(lambda: terminal.hears_signals)
        terminal.press()
        code = terminal.ended()

    assert (code, far.asked) == (130, [])
    assert terminal.said.split()[-2:] == ["headgate:", "interrupted"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_has_made_nothing_ends_where_it_stands(far: Far, number: signal.Signals) -> None:
    far.says(as_json(503, AWAY, **{"Retry-After": "20"}))

    with Terminal((sys.executable, "-m", "libs.cli", "jobs", "list"), os.environ) as terminal:
        terminal.until_it(lambda: far.asked)
        terminal.process.send_signal(number)
        code = terminal.ended()

    assert (code, terminal.said.split()) == (128 + number, ["\x1b[?25h", "headgate:", "interrupted"])


def test_a_token_is_signed_with_the_keys_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADGATE_STATE", str(tmp_path))
    assert main(["token", "--user", "u1"]) == 1
    keep_keys(tmp_path / "keys")
    capsys.readouterr()

    code = main(["token", "--user", "u1", "--tier", "partner", "--scope", "jobs:read ops", "--project", "shop"])

    keys = jwt.PyJWKSet.from_json((tmp_path / "keys" / "jwks.json").read_text())
    token = capsys.readouterr().out.strip()
    claims = jwt.decode(token, keys.keys[0], algorithms=["EdDSA"], audience="headgate", issuer="headgate")
    assert code == 0
    assert claims["exp"] - claims["iat"] == 86_400
    assert re.fullmatch("[0-9A-HJKMNP-TV-Z]{26}", claims["jti"])
    assert (claims["sub"], claims["tier"], claims["scope"], claims["projects"]) == (
        "u1",
        "partner",
        "jobs:read ops",
        ["shop"],
    )


@pytest.mark.parametrize(
    ("given", "good_for_s"), [("90m", 5400), ("12h", 43_200), ("30d", 2_592_000), ("721h", 2_595_600)]
)
def test_a_token_is_good_for_as_long_as_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: str,
    good_for_s: int,
) -> None:
    monkeypatch.setenv("HEADGATE_STATE", str(tmp_path))
    keep_keys(tmp_path / "keys")

    main(["token", "--user", "u1", "--expires", given, "--json"])

    signed = capsys.readouterr()
    told = json.loads(signed.out)
    claims = jwt.decode(told["token"], options={"verify_signature": False})
    assert ("No service takes it" in signed.err) is (good_for_s > 2_592_000)
    assert claims["exp"] - claims["iat"] == good_for_s
    assert datetime.fromisoformat(told["expires_at"]).timestamp() == claims["exp"]
    assert told["jti"] == claims["jti"]


@pytest.mark.parametrize("given", ["0h", "-1h", "12", "h", "1w", "1.5h", "1000000d", "12h ", ""])
def test_no_token_is_good_for_a_time_that_is_none(capsys: pytest.CaptureFixture[str], given: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["token", "--user", "u1", f"--expires={given}"])

    assert ended.value.code == 2
    assert "write 90m, 12h or 7d" in capsys.readouterr().err


def test_a_token_is_somebodys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["token", "--expires", "12h"]) == 2
    assert "token --user NAME" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--user", ""], "cannot be used: sub"),
        (["--user", "a" * 257], "cannot be used: sub"),
        (["--user", "\udcff"], "256 characters"),
        (["--user", "u1", "--scope", "jobs:read wonders"], "no scope wonders: there are jobs:read, jobs:write, leases"),
    ],
)
def test_a_token_that_no_service_takes_is_not_signed(
    given: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADGATE_STATE", str(tmp_path))
    keep_keys(tmp_path / "keys")

    assert main(["token", *given]) == 2

    signed = capsys.readouterr()
    assert said in signed.err
    assert signed.out == ""


def test_a_whole_token_is_taken_back_by_its_id_and_not_sent(far: Far) -> None:
    token = KeyPair.generate().sign({"sub": "u1", "jti": "lost-1"})
    nameless = KeyPair.generate().sign({"sub": "u1"})
    far.says(*[as_json(200, REVOKED)] * 2)

    codes = [main(["token", "revoke", each, "--reason", "lost"]) for each in ("lost-1", token, nameless)]

    assert codes == [0, 0, 2]
    assert [body for _, _, body in far.asked] == [{"jti": "lost-1", "reason": "lost"}] * 2
    assert {path for path, _, _ in far.asked} == {"POST /v1/tokens/revoke"}


def test_a_reader_who_has_seen_enough_is_no_fault(far: Far) -> None:
    far.says(as_json(200, [JOB | {"id": f"j{number}"} for number in range(2000)]))

    command = f"set -o pipefail; {shlex.quote(sys.executable)} -m libs.cli jobs list | head -1"
    run = subprocess.run(["bash", "-c", command], capture_output=True, timeout=30, check=False)  # noqa: S603, S607 - a fixed line

    assert run.stdout.startswith(b"JOB")
    assert (run.returncode, run.stderr) == (0, b"")

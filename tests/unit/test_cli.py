"""The command line without a Headgate: words, streams, lines for people, and what an answer means."""

from __future__ import annotations

import io
import json
import re
import resource
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
from click.shell_completion import ShellComplete
from rich.cells import cell_len
from rich.console import Console

from headgate import Event, SyncHeadgate
from headgate.errors import problem_of
from headgate_contracts.vocabulary import Priority
from libs.cli import client, jobs, submitting
from libs.cli.arguments import commands, parse
from libs.cli.board import Board, JobLine, advanced, with_pause
from libs.cli.calling import as_called
from libs.cli.client import ending_of
from libs.cli.command import carried_out
from libs.cli.errors import Busy, CliError, NotUp, Refused, ServerFault, Usage
from libs.cli.following import watch_all
from libs.cli.grammar import COMPLETING, Verb
from libs.cli.output import Output
from libs.cli.target import Target, find_target
from libs.local.up_file import UpFile

UP = UpFile(
    url="http://127.0.0.1:8080",
    user_token="user",
    operator_token="operator",
    tokens_expire_at=datetime(2030, 1, 31, tzinfo=UTC),
    nats_url="nats://",
    redis_url="redis://",
    services=(),
    servers=(),
)


# ── the line of a job ─────────────────────────────────────────────────────────


BUILD = ("scaffold", "code", "deps", "checks")


def told(*events: tuple[str, dict[str, Any]]) -> list[str]:
    line, words = JobLine("j1", "j1"), list[str]()
    for name, data in events:
        line = advanced(line, Event(name, data))
        words.append(line.words)
    return words


def snapshot(**changes: Any) -> tuple[str, dict[str, Any]]:
    job = {"status": "queued", "message": "You are #4 in queue", "iterations": {"used": 0}, "error": None}
    return "snapshot", job | changes


def status(event: str, status: str, **data: Any) -> tuple[str, dict[str, Any]]:
    return "status", {"event": event, "status": status, **data}


def named(*stages: str) -> list[dict[str, str]]:
    return [{"name": name, "title": name.capitalize()} for name in stages]


def test_a_waiting_job_says_where_it_stands() -> None:
    words = told(snapshot(), ("position", {"queue": {"position_message": "You are #2 in queue"}}))

    assert words == ["queued: You are #4 in queue", "queued: You are #2 in queue"]


def test_a_running_job_says_its_stage_and_its_iteration() -> None:
    words = told(
        snapshot(),
        status("dispatched", "starting"),
        status("stage", "code", stage="code", iteration=1),
        status("stage", "scaffold", stage="scaffold", iteration=2),
    )

    assert words[1:] == ["starting", "code", "scaffold, iteration 2"]


def test_stages_of_an_authors_own_are_told_by_their_names() -> None:
    line, rows = JobLine("j1"), list[str]()
    for event in (
        snapshot(),
        status("stage", "running", stage="fetch", iteration=1, stages=named("fetch", "train")),
        status("stage", "running", stage="train", iteration=1, stages=None),
    ):
        line = advanced(line, Event(*event))
        rows += rows_of(line, width=80)

    assert rows[1:] == ["● fetch  · train  fetch", "✔ fetch  ● train  train"]


def test_a_position_that_comes_late_says_nothing_of_a_running_job() -> None:
    words = told(snapshot(), status("dispatched", "starting"), ("position", {"queue": None, "waiting_on": []}))

    assert words[-1] == "starting"


def test_a_question_says_what_is_asked() -> None:
    asked = status("awaiting_confirmation", "awaiting_confirmation")
    words = told(snapshot(), asked, ("confirmation", {"iterations_used": 2, "next_batch": 2, "expires_at": "…"}))

    assert words[-1] == "awaiting confirmation: 2 iterations used; it asks whether to continue for 2 more"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (status("ready", "ready", duration_s=4.26, iterations=2), "ready: 4.3 s"),
        (status("failed", "failed", summary="It broke."), "failed: It broke."),
        (status("cancelled", "cancelled", by="u1"), "cancelled: by u1"),
        (status("given_back", "queued", reason="lost"), "queued: given back (lost)"),
        (snapshot(status="failed", error={"summary": "It broke."}), "failed: It broke."),
        (("something_new", {}), ""),
    ],
)
def test_each_end_says_how(event: tuple[str, dict[str, Any]], words: str) -> None:
    assert told(event) == [words]


def test_who_follows_is_told_of_the_pause_that_holds_the_job() -> None:
    held = {"reason": "paused", "message": "The whole queue is paused by olga: maintenance"}
    place = {"position_message": "You are #1 in queue"}
    line = JobLine("j1", status="queued")

    paused = advanced(line, Event("position", {"queue": place, "waiting_on": [held]}))
    again = advanced(paused, Event("position", {"queue": place, "waiting_on": []}))
    tomorrow = with_pause("Runs tomorrow", {"status": "scheduled", "waiting_on": [held]})

    assert paused.words == "queued: The whole queue is paused by olga: maintenance"
    assert again.words == "queued: You are #1 in queue"
    assert tomorrow == "Runs tomorrow; The whole queue is paused by olga: maintenance"


def test_a_list_names_the_pause_that_holds_a_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with SyncHeadgate.testing() as hg, hg.testing.operator("olga") as operator:
        monkeypatch.setattr(jobs, "as_user", lambda: nullcontext(hg))
        operator.ops.pause("all", reason="maintenance")
        hg.submit("a clock", project="shop")
        args = parse(["jobs", "list"])

        args.run(args, Output(as_json=False))

    [_, row] = capsys.readouterr().out.splitlines()
    assert row.endswith("The whole queue is paused by olga: maintenance")
    assert "#1" not in row


def rows_of(*lines: JobLine, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, record=True, soft_wrap=True)
    console.print(Board(lines))
    return console.export_text().splitlines()


def test_a_terminal_shows_what_is_done_and_what_is_under_way() -> None:
    runs, is_ready = JobLine("j1", "mine", stages=BUILD), JobLine("j2", "other", status="ready", stages=BUILD)
    runs = advanced(runs, Event(*status("stage", "deps", stage="deps")))
    broke = advanced(runs, Event(*status("failed", "failed", summary="no")))
    waits = advanced(runs, Event(*status("given_back", "queued", reason="lost")))

    first, second, third, fourth = rows_of(runs, is_ready, broke, waits, width=120)

    assert first.split() == ["mine", "✔", "scaffold", "✔", "code", "●", "deps", "·", "checks", "deps"]
    assert second.split()[1:9:2] == ["✔"] * 4
    assert third.split()[1:9:2] == ["✔", "✔", "✘", "·"]
    assert fourth.split()[1:9:2] == ["·"] * 4


def test_failed_checks_are_seen_to_fail_and_why_until_they_run_again() -> None:
    line, rows = JobLine("j1"), list[str]()
    for event in (
        status("stage", "checks", stage="checks", iteration=1, stages=named(*BUILD)),
        ("log", {"stage": "code", "line": "✘ not of the checks"}),
        ("log", {"stage": "checks", "line": "✘ pytest failed: 1 failed, 3 passed"}),
        status("stage", "scaffold", stage="scaffold", iteration=2),
        status("stage", "checks", stage="checks", iteration=2),
        status("ready", "ready", duration_s=1.0, iterations=2),
    ):
        line = advanced(line, Event(*event))
        rows += rows_of(line, width=120)

    assert rows[1:] == [
        "✔ scaffold  ✔ code  ✔ deps  ● checks  checks",
        "✔ scaffold  ✔ code  ✔ deps  ● checks  checks",
        "● scaffold  · code  · deps  ✘ checks  iteration 2: pytest failed: 1 failed, 3 passed",
        "✔ scaffold  ✔ code  ✔ deps  ● checks  checks, iteration 2",
        "✔ scaffold  ✔ code  ✔ deps  ✔ checks  ready: 1.0 s",
    ]


@pytest.mark.parametrize("width", [*range(40, 81), 100, 132, 200])
def test_a_job_is_one_row_however_long_its_words_are(width: int) -> None:
    """Wide letters, ends of lines and what moves a cursor included."""
    words = "The résumé 履歴書\nfailed\x1b[2J " * 9
    lines = [
        JobLine("j1", "k" * 27, status="failed", note=words, stages=BUILD, stage="code"),
        JobLine("j2", "the 店 of " * 9, "code", iteration=2, why=words, stages=BUILD, stage="code", under_way=True),
        JobLine("j3", "\n", status="queued"),
    ]

    rows = rows_of(*lines, width=width)

    assert len(rows) == 3
    assert max(map(cell_len, rows)) <= width
    assert "\x1b" not in "".join(rows)
    assert [row.count("…") > 0 for row in rows] == [True, True, False]


def test_at_80_columns_the_stages_are_named_and_at_40_they_are_marks() -> None:
    line = JobLine("j1", "bootstrapper", status="code", iteration=2, stages=BUILD, stage="code", under_way=True)

    waits = JobLine("j2", status="queued", note="You are #10 in queue")

    assert rows_of(line, waits, width=80)[1].endswith("  queued: You are #10 in queue")
    assert rows_of(line, width=80) == ["bootstrapper  ✔ scaffold  ● code  · deps  · checks  code, iteration 2"]
    assert rows_of(line, width=40) == ["bootstrap…  ✔●··  code, iteration 2"]


async def told_by(*events: Event) -> AsyncIterator[Event]:
    """A stream of them."""
    for event in events:
        yield event


async def test_without_a_terminal_a_job_is_a_line_a_change_and_failed_checks_are_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    events = [
        Event(*status("stage", "checks", stage="checks", iteration=1)),
        Event("log", {"stage": "checks", "line": "✘ pytest failed: 1 failed"}),
        Event(*status("stage", "scaffold", stage="scaffold", iteration=2)),
        Event(*status("failed", "failed", summary="It broke\nin two. " * 20)),
    ]

    await watch_all([(JobLine("a", "a", stages=BUILD), told_by(*events))], Output(as_json=False))

    broke = " ".join(["It broke in two."] * 20)
    assert capsys.readouterr().out.splitlines() == [
        "a  checks",
        "a  checks │ ✘ pytest failed: 1 failed",
        "a  scaffold, iteration 2",
        f"a  failed: {broke}",
    ]


async def test_one_job_is_watched_without_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    ready = Event("status", {"event": "ready", "status": "ready", "duration_s": 1.0, "iterations": 1})

    await watch_all([(JobLine("a"), told_by(ready))], Output(as_json=False))

    assert capsys.readouterr().out == "ready: 1.0 s\n"


async def test_many_jobs_are_watched_at_once_and_a_fault_of_one_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    good = Event("status", {"event": "ready", "status": "ready", "duration_s": 1.0, "iterations": 1})

    async def bad() -> AsyncIterator[Event]:
        yield good
        raise Refused(detail="no")

    both = [(JobLine("a", "a"), told_by(good)), (JobLine("b", "b"), told_by(good))]
    ends = await watch_all(both, Output(as_json=True))
    with pytest.raises(Refused):
        await watch_all([(JobLine("a", "a"), bad())], Output(as_json=True))

    assert [line.status for line in ends] == ["ready", "ready"]
    assert {json.loads(line)["job_id"] for line in capsys.readouterr().out.splitlines()} == {"a", "b"}


# ── what an answer means ──────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "problem", "kind", "code"),
    [
        (503, {"type": "/problems/busy", "detail": "system busy, try again in 90 minutes"}, Busy, 3),
        (429, {"type": "/problems/share", "detail": "you hold 50 places"}, Busy, 3),
        (503, {"type": "/problems/unavailable", "detail": "away"}, ServerFault, 1),
        (500, {}, ServerFault, 1),
        (401, {"detail": "The token has expired."}, Refused, 4),
        (403, {"detail": "no"}, Refused, 4),
        (404, {"detail": "you have no job j1"}, Refused, 4),
        (409, {"detail": "ended"}, Refused, 4),
        (422, {"detail": "project_id: missing"}, Refused, 4),
    ],
)
def test_an_answer_becomes_an_exit_code(status: int, problem: dict[str, Any], kind: type[CliError], code: int) -> None:
    fault = ending_of(problem_of(status, problem, 1.0 if status == 503 else None), "http://here")

    assert (type(fault), fault.exit_code) == (kind, code)
    assert problem.get("detail", "").rstrip(".") in str(fault)


@pytest.mark.parametrize(
    ("status", "detail", "words"),
    [
        (
            404,
            "there is nothing at this path: /openapi.json lists all paths",
            "nothing of that name. An id has letters",
        ),
        (403, "The token lacks the scope ops. Send one that has it; the same one is refused again.", "token --help`"),
        (503, "a server is away for the moment: try again, with the same Idempotency-Key", "moment. Try again in"),
        (401, "The token is not a JWT. Send a valid token as `Authorization: Bearer …`.", "token` signs one"),
    ],
)
def test_a_command_says_what_to_do_by_commands(status: int, detail: str, words: str) -> None:
    problem = {"type": "/problems/unavailable" if status == 503 else "", "detail": detail}
    said = str(ending_of(problem_of(status, problem, 1.0 if status == 503 else None), "http://here"))

    assert words in said
    assert not re.search("openapi|Send |Bearer|Idempotency-Key", said)


# ── where, and as whom ────────────────────────────────────────────────────────


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADGATE_STATE", str(tmp_path))
    return tmp_path


def test_what_runs_here_is_asked_as_its_user(state: Path) -> None:
    UP.write(state / "up.json")

    assert find_target({}) == Target("http://127.0.0.1:8080", "user")
    assert find_target({"HEADGATE_TOKEN": "mine"}) == Target("http://127.0.0.1:8080", "mine")


def test_the_environment_outranks_what_runs_here(state: Path) -> None:
    UP.write(state / "up.json")

    assert find_target({"HEADGATE_URL": "https://h/", "HEADGATE_TOKEN": "t"}) == Target("https://h", "t")


def test_a_token_of_this_machine_is_never_sent_elsewhere(state: Path) -> None:
    UP.write(state / "up.json")

    with pytest.raises(Usage, match="HEADGATE_TOKEN"):
        find_target({"HEADGATE_URL": "https://elsewhere"})


def test_where_nothing_runs_it_is_said_how_to_start_it(state: Path) -> None:
    with pytest.raises(NotUp, match="headgate up"):
        find_target({})


def test_a_url_of_another_kind_is_refused(state: Path) -> None:
    with pytest.raises(Usage, match="begins with http"):
        find_target({"HEADGATE_URL": "localhost:8080", "HEADGATE_TOKEN": "t"})


# ── words ─────────────────────────────────────────────────────────────────────


def all_commands(group: click.Group, *above: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if not isinstance(command, click.Group):
            yield " ".join((*above, name)), command
        else:
            yield from all_commands(command, *above, name)
            if command.invoke_without_command:
                yield " ".join((*above, name)), command


EVERY_COMMAND = dict(all_commands(commands()))


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_every_command_takes_json_teaches_by_examples_and_has_who_carries_it_out(name: str) -> None:
    command = EVERY_COMMAND[name]

    assert "json" in {param.name for param in command.params}
    assert command.short_help
    if name != "demo":  # it has nothing to choose
        assert f"headgate {name}" in (command.epilog or "").partition("examples:")[2]
    if isinstance(command, Verb):
        module, function = command.run.split(".")
        assert callable(getattr(import_module(f"libs.cli.{module}"), function))


def test_what_is_declared_is_what_is_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "show", lambda args, _: (args.job, args.json))
    args = parse(["jobs", "show", "j1", "--json"])

    assert args.run(args, None) == ("j1", True)


def test_a_table_fits_the_terminal_and_folds_nothing_that_is_copied() -> None:
    console = Console(file=io.StringIO(), width=100, record=True, force_terminal=True)
    job, project = "k" * 27, "the-storefront-of-the-growth-team"

    Output(as_json=False, console=console).table(("#", "JOB", "PROJECT", "WAITS FOR"), [("1", job, project, "a " * 90)])

    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 100
    assert job in lines[1]


def test_a_sentence_is_broken_between_words_and_a_link_is_not() -> None:
    console = Console(file=io.StringIO(), width=20, record=True, force_terminal=True, soft_wrap=True)
    out = Output(as_json=False, console=console)

    out.say("The whole queue is paused")
    out.say("See http://127.0.0.1:8080/#token=abc")

    assert [line.rstrip() for line in console.export_text().splitlines()] == [
        "The whole queue is",
        "paused",
        "See http://127.0.0.1:8080/#token=abc",
    ]


def test_a_terminal_is_shown_no_column_that_says_nothing() -> None:
    console = Console(file=io.StringIO(), width=80, record=True, force_terminal=True)

    Output(as_json=False, console=console).table(("JOB", "", "POOL"), [("j1", "", "gpu"), ("j2", "", "")])

    assert console.export_text().splitlines()[0].split() == ["JOB", "POOL"]


def test_in_a_terminal_that_is_too_narrow_nothing_is_cut() -> None:
    console = Console(file=io.StringIO(), width=40, record=True, force_terminal=True, soft_wrap=True)
    lease, job = "k" * 27 + ":1", "k" * 27

    Output(as_json=False, console=console).table(("LEASE", "JOB"), [(lease, job)])

    assert f"{lease}  {job}" in console.export_text()


@pytest.mark.parametrize("width", [80, 20])  # as a table, and in a terminal that is too narrow for one
def test_a_terminal_is_shown_each_status_in_its_colour(width: int) -> None:
    drawn = io.StringIO()
    console = Console(file=drawn, width=width, force_terminal=True, color_system="standard", _environ={})

    rows = [("k" * 27, "failed", "failed"), ("j" * 27, "queued", "ready")]
    Output(as_json=False, console=console).table(("JOB", "STATUS", "TITLE"), rows)

    red = re.findall(r"\x1b\[31m(\w+) *\x1b\[0m", drawn.getvalue())
    assert red == ["failed"]
    assert "\x1b[32m" not in drawn.getvalue()


def test_a_pipe_is_told_each_status_without_a_colour(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).table(("JOB", "STATUS", "TITLE"), [("j1", "failed", "a clock"), ("j2", "queued", "")])

    assert capsys.readouterr().out == "JOB  STATUS  TITLE\nj1   failed  a clock\nj2   queued\n"


@pytest.mark.parametrize(("width", "room"), [(80, 68), (20, 8), (8, 0)])
def test_a_drawing_beside_a_table_has_the_room_that_is_left(width: int, room: int) -> None:
    console = Console(file=io.StringIO(), width=width, force_terminal=True)

    assert Output(as_json=False, console=console).room_beside(("JOB", "MEAN"), [("j1", "1,0.0")]) == room


def test_a_table_in_a_pipe_is_one_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).table(("JOB", "WAITS FOR"), [("j1", "a " * 90)])

    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_table_in_a_pipe_stands_straight_behind_wide_characters(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).table(("TITLE", "STATUS"), [("日🚀", "ready"), ("a", "failed")])

    assert capsys.readouterr().out.splitlines()[1:] == ["日🚀   ready", "a      failed"]


@pytest.mark.parametrize("how_far", ["1200/5000", None])
def test_a_list_that_may_lack_jobs_says_so_beside_it(
    how_far: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    headers = {"Headgate-Catching-Up": how_far} if how_far else {}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json={"counts": {"status": {}}}, headers=headers))
    monkeypatch.setattr(client, "SyncHeadgate", partial(SyncHeadgate, transport=transport))
    monkeypatch.setenv("HEADGATE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("HEADGATE_TOKEN", "token")

    carried_out(["jobs", "counts", "--json"])

    out, err = capsys.readouterr()
    assert json.loads(out) == {"counts": {"status": {}}}
    said = "headgate: the index is catching up (1200 of 5000 records): what it lacks is not shown yet.\n"
    assert err == (said if how_far else "")


@pytest.mark.parametrize(
    ("argv0", "path", "name"),
    [
        (".venv/bin/headgate", "/usr/bin", ".venv/bin/headgate"),
        ("/a folder/bin/headgate", "/usr/bin", "'/a folder/bin/headgate'"),
        ("{bin}/headgate", "/usr/bin:{bin}", "headgate"),
        ("{bin}/headgate", "/usr/bin", "{bin}/headgate"),
        ("/usr/lib/python3/libs/cli/__main__.py", "/usr/bin", "headgate"),
    ],
)
def test_what_is_printed_can_be_pasted(
    argv0: str, path: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In errors, hints and examples: by the name under which this one was found."""
    (tmp_path / "headgate").touch(mode=0o755)
    monkeypatch.setattr("sys.argv", [argv0.format(bin=tmp_path)])
    monkeypatch.setenv("PATH", path.format(bin=tmp_path))

    wanted = name.format(bin=tmp_path)

    assert f"`{wanted} up`" in str(NotUp(folder=".headgate", instead="HEADGATE_URL"))
    assert f"  {wanted} up" in commands().get_help(click.Context(commands()))
    assert as_called("  a/headgate up; headgate-x; headgate up") == f"  a/headgate up; headgate-x; {wanted} up"


@pytest.mark.parametrize(
    "words",
    [[], ["jobs"], ["submit", "a"], ["submit", "a", "--project", "p", "--priority", "top"], ["up", "--port", "x"]],
    ids=["nothing", "no verb", "no project", "no such priority", "no number"],
)
def test_wrong_words_end_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse(words)

    assert end.value.code == 2
    assert "Usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Say what to run"),
        (["--input", "{"], "not JSON"),
        (["--input", "input.json"], "@ and the name of a file"),
        (["--input", "[1]"], "no object"),
        (["--input", "[" * 100_000], "nested too deep"),
        (["--input", "@/no/such/file"], "cannot be read"),
        (["a", "--label", "team"], "name=value"),
    ],
)
def test_a_submission_that_cannot_be_meant_says_how_to_write_it(words: list[str], said: str) -> None:
    args: Namespace = parse(["submit", "--project", "p", *words])

    with pytest.raises(Usage, match=said) as error:
        submitting.submit(args, Output(as_json=True))

    assert error.value.exit_code == 2


def test_a_word_that_is_no_text_is_said_to_be_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADGATE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("HEADGATE_TOKEN", "mine")

    assert carried_out(["jobs", "show", "\udcff"]) == 2
    assert "no UTF-8" in capsys.readouterr().err


def test_a_folder_without_a_name_is_not_the_one_that_we_are_in(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        carried_out(["up", "--state", ""])

    assert end.value.code == 2
    assert "'--state': it is empty: write a name" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["{}", "[1]", '["a shop", {}]'])
def test_a_file_of_phases_that_holds_something_else_is_said_to(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADGATE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("HEADGATE_TOKEN", "mine")
    (file := tmp_path / "phases.json").write_text(content)

    assert carried_out(["workflow", "submit", "--file", str(file), "--project", "shop"]) == 2
    assert "--file holds no list of objects" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["completion", "bash"], ["--help"]], ids=["a command", "help"])
def test_what_cannot_be_written_is_said(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)

        assert carried_out(words) == 1

    assert capsys.readouterr().err == ("headgate: What is to be printed cannot be written (No space left on device).\n")


def test_of_a_result_that_does_not_fit_nothing_is_left(tmp_path: Path) -> None:
    place, (soft, hard) = tmp_path / "j1.tar.gz", resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(Usage, match="cannot be written"):
            jobs._write(place, b"x" * 65_536, over=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert not place.exists()


def test_a_file_of_teams_that_cannot_be_read_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert carried_out(["migrate", "--teams", "/no/such/file"]) == 2
    assert "--teams: /no/such/file cannot be read" in capsys.readouterr().err


HOSTILE = "\x1b]52;c;cm0=\x07shop\x1b[2J\u202e"


def test_nothing_that_is_printed_is_an_order_to_the_terminal() -> None:
    said = io.StringIO()
    out = Output(as_json=False, console=Console(file=said, force_terminal=True, width=80, legacy_windows=False))
    board = Console(file=said, force_terminal=True, color_system=None, width=80)

    out.say(HOSTILE)
    out.table(("JOB", "PROJECT"), [(HOSTILE, f"{HOSTILE}\nsecond")])
    out.log(f"\x1b[32mok{HOSTILE}", before="code │ ")
    board.print(Board([JobLine("job-1", HOSTILE, status="queued", note=HOSTILE)]))

    printed = said.getvalue()
    assert "52;" not in printed
    assert "\x1b[2J" not in printed
    assert "\u202e" not in printed
    assert "\x1b[32mok" in printed


def test_in_a_pipe_and_as_json_it_is_none_either(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).plain(HOSTILE)
    Output(as_json=False).log(f"\x1b[32mok\x1b[0m {HOSTILE}")
    Output(as_json=True).data({"name": HOSTILE + "\x9b"})

    lines = capsys.readouterr().out
    assert lines.splitlines()[:2] == ["shop\ufffd", "ok shop\ufffd"]
    assert "\\u202e\\u009b" in lines
    assert json.loads(lines.split("\n", 2)[2]) == {"name": HOSTILE + "\x9b"}


# ── words that are no command ─────────────────────────────────────────────────


def refused_words(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as end:
        parse(words)
    said = capsys.readouterr()
    return end.value.code, said.out, said.err


@pytest.mark.parametrize(("words", "command"), [((), "submit a job"), (("jobs",), "cancel-all")])
def test_whoever_names_no_command_is_shown_them(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], command: str
) -> None:
    code, out, err = refused_words(capsys, *words)

    assert (code, out) == (2, "")
    assert command in err


@pytest.mark.parametrize(("words", "meant"), [(("jbos",), "jobs"), (("jobs", "lst"), "list")])
def test_a_command_that_was_meant_is_named(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], meant: str
) -> None:
    code, _, err = refused_words(capsys, *words)

    assert code == 2
    assert err.endswith(f"Did you mean '{meant}'?\n")


def test_what_nothing_is_like_is_refused_without_a_guess(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean" not in refused_words(capsys, "xyzzy")[2]


@pytest.mark.parametrize(("words", "name", "number"), [("migrate", "replicas", 1), ("jobs list", "limit", 50)])
def test_a_number_that_nobody_names_is_the_default(words: str, name: str, number: int) -> None:
    assert getattr(parse(words.split()), name) == number


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_given_what_completes_words(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    args = parse(["completion", shell])

    assert args.run(args, Output(as_json=False)) == 0
    assert f"_HEADGATE_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_fish_is_told_all_that_a_word_stands_for(capsys: pytest.CaptureFixture[str]) -> None:
    args = parse(["completion", "fish"])
    args.run(args, Output(as_json=False))

    assert 'string split --max 1 "," $completion' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["jo"], ["jobs"]),
        (["jobs", "c"], ["counts", "confirm", "cancel", "cancel-all"]),
        (["submit", "--prio"], ["--priority"]),
        (["submit", "--priority", "h"], ["high"]),
        (["queue", "pause", "priority:u"], ["priority:urgent"]),
    ],
    ids=" ".join,
)
def test_a_word_that_was_begun_is_completed(words: list[str], offered: list[str]) -> None:
    complete = ShellComplete(commands(), {}, "headgate", COMPLETING)

    found = complete.get_completions(words[:-1], words[-1])

    assert [each.value for each in found] == offered


COMPLETES = """\
source <("$0" completion bash)
COMP_LINE=$1 COMP_POINT=${#1} _headgate_completion "$0"
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("headgate queue pause priority:u", ["urgent"]),  # bash leaves what stands before the colon
        ("headgate queue resume pri", [f"priority:{each.value}" for each in Priority]),
        ("headgate jobs list --status=re", ["ready"]),
        ("headgate jobs re", ["result", "retry"]),
    ],
)
def test_bash_completes_a_word_with_and_without_a_colon(line: str, offered: list[str]) -> None:
    bash, headgate = shutil.which("bash"), Path(sys.executable).with_name("headgate")
    assert bash is not None

    done = subprocess.run([bash, "-c", COMPLETES, headgate, line], capture_output=True, text=True, check=True)  # noqa: S603 - our own words

    assert (done.stdout.split(), done.stderr) == (offered, "")


@pytest.mark.parametrize(
    ("shell", "words", "current", "said"),
    [
        ("zsh", "headgate queue pause priority:u", "3", "plain\npriority:urgent\n_\n"),
        ("zsh", "headgate jobs re", "2", "plain\nresult\ndownload a job's result, and list its files\nplain\nretry\n"),
        ("fish", "headgate queue pause priority:u", "priority:u", "plain,priority:urgent\n"),
        ("fish", "headgate jobs ", "", "plain,list\tyour jobs, newest first; for operators, everybody's\n"),
    ],
)
def test_zsh_and_fish_are_answered_as_their_scripts_ask(
    shell: str,
    words: str,
    current: str,
    said: str,
    *,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in (("_HEADGATE_COMPLETE", f"{shell}_complete"), ("COMP_WORDS", words), ("COMP_CWORD", current)):
        monkeypatch.setenv(name, value)

    with pytest.raises(SystemExit):
        parse([])

    assert said in capsys.readouterr().out


def test_where_no_headgate_answers_nothing_is_offered_and_nothing_said(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    complete = ShellComplete(commands(), {}, "headgate", COMPLETING)

    assert complete.get_completions(["jobs", "show"], "j") == []
    assert complete.get_completions(["concurrency", "status"], "") == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("words", [["--version"], ["jobs", "--help"]])
def test_help_and_version_load_nothing_that_calls_or_draws(words: list[str]) -> None:
    loads = "import sys; from libs.cli.__main__ import main\ntry: main(sys.argv[1:])\nfinally: print(*sys.modules)"

    told = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-c", loads, *words], capture_output=True, text=True, check=True
    )

    loaded = set(told.stdout.splitlines()[-1].split())
    assert "libs.cli.command" in loaded
    assert not loaded & {"headgate", "httpx", "pydantic", "rich"}


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = refused_words(capsys, "--version")

    assert (code, out) == (0, f"headgate {version('headgate-server')}\n")

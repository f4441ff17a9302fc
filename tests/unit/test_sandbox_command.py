"""What may be asked of a sandbox, what a command is given, and what is passed on of what it says."""

import dataclasses
import json
from pathlib import Path

import pytest

from libs.policy import Policy
from services.worker.sandbox import kernel, landlock
from services.worker.sandbox.command import CommandBounds, KeeperOrder, Level, SandboxCommand
from services.worker.sandbox.keeper import KeeperReport
from services.worker.sandbox.levels import lacking_rights
from services.worker.sandbox.ownership import read_range
from services.worker.sandbox.running import LONGEST_LINE_CHARS, TAIL_CHARS, Output, environment

BOUNDS = CommandBounds(1, 2, 3, 4, 5, 6.0, 7)
BEST = Level("bubblewrap", bwrap="/usr/bin/bwrap", uids=(58000, 58255), filter=True, landlock=7, reads=("/opt/python",))
LEAST = Level("plain", why="bubblewrap is not installed")


def test_the_bounds_of_a_command_are_policy() -> None:
    assert CommandBounds.of(Policy().sandbox).processes == 256


@pytest.mark.parametrize("cwd", ["/etc", "..", "project/../..", "../other"])
def test_a_command_stands_in_its_workspace(cwd: str) -> None:
    with pytest.raises(ValueError, match="stands in its workspace"):
        SandboxCommand(argv=("ls",), timeout_s=1, cwd=cwd)


@pytest.mark.parametrize("name", ["LD_PRELOAD", "HOME", "TMPDIR", "path", "A=B", "", "GCONV_PATH", "A\nB"])
def test_some_names_are_not_a_commands_to_set(name: str) -> None:
    with pytest.raises(ValueError, match="environment may not have"):
        SandboxCommand(argv=("ls",), timeout_s=1, environ={name: "x"})


@pytest.mark.parametrize("argv", [(), ("a\0b",)])
def test_a_command_is_words(argv: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="at least one word"):
        SandboxCommand(argv=argv, timeout_s=1)


def test_nothing_is_inherited_but_what_is_on_the_list() -> None:
    ours = {"PATH": "/bin", "LANG": "C.UTF-8", "HEADGATE_NATS_URL": "nats://secret", "SSL_CERT_FILE": "/etc/ca.pem"}
    command = SandboxCommand(argv=("ls",), timeout_s=1, environ={"UV_OFFLINE": "1"})

    given, certificates = environment(command, ours, scratch=Path("/area/command-1"))

    assert given == {
        "PATH": "/bin",
        "LANG": "C.UTF-8",
        "UV_OFFLINE": "1",
        "HOME": "/area/command-1/home",
        "TMPDIR": "/area/command-1/tmp",
    }
    assert certificates == []


def test_whoever_reaches_the_network_is_told_which_certificates_to_trust() -> None:
    command = SandboxCommand(argv=("ls",), timeout_s=1, network=True)

    given, certificates = environment(command, {"SSL_CERT_FILE": "/nowhere/ca.pem"}, scratch=Path("/area"))

    assert given["SSL_CERT_FILE"] == "/nowhere/ca.pem"
    assert certificates == ["/nowhere/ca.pem"]


def test_an_order_survives_the_way_to_the_keeper() -> None:
    order = KeeperOrder(
        argv=("ls", "-l"),
        cwd="/w",
        workspace="/w",
        scratch="/s",
        environ={"PATH": "/bin"},
        reads=("/opt",),
        network=True,
        ports=(443,),
        timeout_s=1.5,
        grace_s=0.5,
        bounds=BOUNDS,
        level=BEST,
        uid=58000,
    )

    assert KeeperOrder.read(json.loads(json.dumps(dataclasses.asdict(order)))) == order


@pytest.mark.parametrize(
    ("told", "exit_code"),
    [
        (KeeperReport(exit_code=3), 3),
        (KeeperReport(exit_code=137, ended_by="memory"), None),
        (KeeperReport(ended_by="time"), None),
    ],
)
def test_only_a_command_that_ended_itself_has_an_exit_code(told: KeeperReport, exit_code: int | None) -> None:
    assert told.ran("said").exit_code == exit_code


def said_by(*parts: bytes, most_bytes: int = 10**6) -> tuple[list[str], Output]:
    lines = list[str]()
    output = Output(lines.append, most_bytes=most_bytes)
    for part in parts:
        if not output.take(part):
            break
    output.finish()
    return lines, output


def test_lines_are_passed_on_however_they_come() -> None:
    lines, output = said_by(b"one\ntw", b"o\r\nthr\xc3", b"\xa9e")

    assert lines == ["one", "two", "thrée"]
    assert output.tail == "one\ntwo\r\nthrée"


def test_what_is_no_text_is_passed_on_as_far_as_it_goes() -> None:
    assert said_by(b"\xff\xfe\n\xc3")[0] == ["��", "�"]


def test_a_line_without_an_end_is_passed_on_in_parts() -> None:
    lines, output = said_by(*[b"x" * 5000] * 10)

    assert {len(line) for line in lines[:-1]} == {LONGEST_LINE_CHARS}
    assert sum(map(len, lines)) == 50_000
    assert len(output.tail) == TAIL_CHARS


def test_output_beyond_its_bound_is_cut() -> None:
    lines, output = said_by(b"0123456789", b"abc", most_bytes=12)

    assert output.is_full
    assert lines == ["0123456789ab"]


def test_empty_lines_use_up_the_bound_too() -> None:
    lines, output = said_by(*[b"\n" * 10] * 10, most_bytes=2000)

    assert output.is_full
    assert len(lines) == 40


def test_a_level_says_what_it_has() -> None:
    assert BEST.line == (
        "sandbox: bubblewrap: users 58000 to 58255, own processes, files, network and IPC, Landlock 7, "
        "filtered system calls, memory and processes added up by a keeper"
    )


def test_a_level_says_what_it_lacks_and_why_it_is_no_better() -> None:
    has, lacks = LEAST.line.split(". NOT contained: ")

    assert has == (
        "sandbox: plain (bubblewrap is not installed): the worker's own user, memory and processes added up by a keeper"
    )
    assert lacks.split("; ") == [
        "a command without network has one",
        "a command reaches sockets of the machine by their names",
        "a command with network reaches any address and port, the metadata address too",
        "a command reads and writes what its user may",
        "a command may change rights and times of the worker's files",
        "a command may end or slow the worker's processes",
    ]


def test_a_level_that_contains_nothing_says_so_first() -> None:
    assert Level("trusted").line.startswith("sandbox: trusted: NOTHING IS CONTAINED. Commands of jobs may do all that")


def test_a_kernel_without_landlock_is_asked_for_no_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "call", lambda *_: pytest.fail("it has no such call"))

    landlock.restrict(landlock.Fence(files=True, writes=("/tmp",), ports=(443,)), version=0)  # noqa: S108 - a path


def test_a_root_without_its_rights_is_told_which_it_lacks() -> None:
    assert lacking_rights("Name:\tpython\nCapEff:\t00000000a80425fb\n") == []
    assert lacking_rights("CapEff:\t00000000000000c1\n") == ["CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL"]


def test_a_range_of_users_is_read() -> None:
    assert read_range("58000-58255") == (58000, 58255)


@pytest.mark.parametrize("text", ["", "58000", "9-5", "0-10", "a-b", "1--3", "-5-9"])
def test_what_is_no_range_of_users_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no range"):
        read_range(text)


def test_a_user_of_the_machine_is_nobodys_to_give() -> None:
    with pytest.raises(ValueError, match="which is the user"):
        read_range("1-60000")

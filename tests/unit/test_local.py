"""What the supervisor decides and keeps, without a single process."""

from __future__ import annotations

import errno
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate_contracts import TABLE, Writer
from libs.local.errors import AlreadyUp, StateUnusable, UpSettingsWrong
from libs.local.keeping import SETTLED_AFTER_S, deaths_after, has_failed, pause_s
from libs.local.permissions import UP_USERS, nats_users, writes
from libs.local.process import last_words, until
from libs.local.provisions import operator_url
from libs.local.settings import read_up_settings
from libs.local.state import StateFolder
from libs.local.up_file import RunningService, UpFile, read_up_file


def test_who_dies_now_and_then_is_back_at_once_and_who_keeps_dying_waits_longer_and_longer() -> None:
    pauses = [pause_s(deaths) for deaths in range(1, 12)]

    assert pauses[:3] == [0.0, 0.0, 0.0]
    assert pauses[3:] == sorted(pauses[3:])
    assert pauses[3] > 0
    assert pauses[-1] == 10.0
    assert pause_s(10_000) == 10.0


def test_what_was_never_ready_is_given_up_after_a_few_ends_and_what_was_once_is_not() -> None:
    assert [has_failed(deaths, was_ready=False) for deaths in range(5)] == [False, False, False, True, True]
    assert not any(has_failed(deaths, was_ready=True) for deaths in range(1000))


@pytest.mark.parametrize(
    ("lived_s", "was_ready", "deaths"),
    [(0.1, False, 3), (600.0, False, 3), (0.1, True, 3), (SETTLED_AFTER_S, True, 1)],
    ids=["dies young", "lives long and is never ready", "was ready and dies young", "was ready and lived well"],
)
def test_only_a_life_that_went_well_begins_a_new_count(lived_s: float, was_ready: bool, deaths: int) -> None:  # noqa: FBT001
    assert deaths_after(2, lived_s=lived_s, was_ready=was_ready) == deaths


ERROR = {
    "level": "ERROR",
    "message": "worker stops: composition failed",
    "exception": "Traceback …\n  …\nOSError: full",
}
INFO = {"level": "INFO", "message": "the last heartbeat"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "(nothing)"),
        (["", "  \n"], "(nothing)"),
        (["one", "worker: set it to a folder", ""], "worker: set it to a folder"),
        ([json.dumps(INFO)], "the last heartbeat"),
        ([json.dumps(ERROR), json.dumps(INFO)], "worker stops: composition failed: OSError: full"),
        ([json.dumps(ERROR), "ZeroDivisionError: by zero"], "ZeroDivisionError: by zero"),
        (['{"level": "ERROR"', "[1, 2]", "[7] [FTL] no room"], "[7] [FTL] no room"),
        (["nats://worker:secret@127.0.0.1:4222 refused"], "nats://***@127.0.0.1:4222 refused"),
        (["x" * 10_000], "x" * 300),
    ],
)
def test_of_a_log_the_line_is_told_that_says_why(lines: list[str], said: str) -> None:
    assert last_words("\n".join(lines)) == said


async def test_whether_it_came_in_time_is_the_outcome_of_waiting() -> None:
    answers = iter([False, False, True])

    assert await until(lambda: next(answers), every_s=0)
    assert not await until(lambda: False, within_s=0.01, every_s=0)
    with pytest.raises(ZeroDivisionError):
        await until(lambda: 1 // 0 == 0)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "/x/keys/private.pem"),
            "/x/keys/private.pem cannot be used",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "state cannot be used: No space left on device"),
    ],
)
def test_what_the_disk_refuses_is_said_with_what_to_do(fault: OSError, said: str, tmp_path: Path) -> None:
    with pytest.raises(StateUnusable, match=said), StateFolder(tmp_path / "state").usable():
        raise fault


def test_another_fault_is_none_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError), StateFolder(tmp_path).usable():
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


def test_a_second_supervisor_on_one_folder_is_told_who_has_it(tmp_path: Path) -> None:
    first, second = StateFolder(tmp_path / "state"), StateFolder(tmp_path / "state")
    first.lock()
    first.lock()

    with pytest.raises(AlreadyUp, match=r"pid \d+"):
        second.lock()
    first.unlock()
    first.unlock()

    second.lock()
    second.unlock()


def test_passwords_are_made_once_for_their_owners_eyes(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)

    first = state.passwords(["a", "b"])
    second = StateFolder(tmp_path).passwords(["a", "b", "c"])

    assert first == {"a": second["a"], "b": second["b"]}
    assert len(set(second.values())) == 3
    assert oct((tmp_path / "passwords.json").stat().st_mode & 0o777) == "0o600"


def test_a_password_that_is_asked_for_alone_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    before = state.passwords(["nats/consumer", "nats/operator"])

    url = operator_url("nats://consumer:x@127.0.0.1:4222", state)

    assert url == f"nats://operator:{before['nats/operator']}@127.0.0.1:4222"
    assert state.passwords(["nats/consumer"]) == {"nats/consumer": before["nats/consumer"]}


def test_passwords_that_cannot_be_read_are_no_reason_to_make_new_ones(tmp_path: Path) -> None:
    (tmp_path / "passwords.json").write_text("{")

    with pytest.raises(StateUnusable, match=r"passwords\.json"):
        StateFolder(tmp_path).passwords(["a"])


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StateUnusable, match="HEADGATE_STATE"):
        StateFolder(tmp_path / "file" / "state").lock()


def test_up_json_is_as_others_rely_on(tmp_path: Path) -> None:
    up = UpFile(
        url="http://127.0.0.1:8080",
        user_token="u",
        operator_token="o",
        tokens_expire_at=datetime(2030, 1, 31, tzinfo=UTC),
        nats_url="nats://",
        redis_url="redis://",
        services=(RunningService(name="worker", pid=7, url="http://127.0.0.1:1"),),
        servers=(),
    )
    path = tmp_path / "up.json"

    up.write(path)

    assert read_up_file(path) == up
    assert json.loads(path.read_text()) == {
        "url": "http://127.0.0.1:8080",
        "user_token": "u",
        "operator_token": "o",
        "tokens_expire_at": "2030-01-31T00:00:00Z",
        "nats_url": "nats://",
        "redis_url": "redis://",
        "services": [{"name": "worker", "pid": 7, "url": "http://127.0.0.1:1"}],
        "servers": [],
    }
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    assert [entry.name for entry in tmp_path.iterdir()] == ["up.json"]


def test_nothing_runs_where_there_is_no_up_json(tmp_path: Path) -> None:
    assert read_up_file(tmp_path / "up.json") is None


def test_options_outrank_the_environment_and_the_environment_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_WORKERS", "3")
    monkeypatch.setenv("HEADGATE_SLOTS", "5")

    settings = read_up_settings({"slots": 6, "workers": None})

    assert (settings.port, settings.workers, settings.slots) == (8080, 3, 6)


def test_a_setting_that_cannot_be_used_is_named_with_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_WORKERS", "many")

    with pytest.raises(UpSettingsWrong, match="HEADGATE_WORKERS: 'many' cannot be used; set it to 1 to 64"):
        read_up_settings({})


@pytest.mark.parametrize("writer", Writer)
def test_a_services_right_to_write_is_the_table_and_nothing_else(writer: Writer) -> None:
    events = {row.event.value for row in TABLE if row.writer is writer}

    assert {subject.split(".")[6] for subject in writes(writer)} == events


def test_nobody_may_write_to_all_of_the_log_or_hear_all_of_it() -> None:
    users = nats_users(dict.fromkeys(UP_USERS, "secret"), shard="main", pools=("default",))

    for user in users.values():
        assert not {">", "headgate.>", "headgate.jobs.>", "headgate.jobs.v1.>"} & {
            *(user.publish or (">",)),
            *(user.subscribe or (">",)),
        }

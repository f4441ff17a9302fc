"""What the supervisor decides and keeps, without a single process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate_contracts import TABLE, Writer
from libs.local.errors import AlreadyUp, StateUnusable, UpSettingsWrong
from libs.local.keeping import pause_s
from libs.local.permissions import NATS_USERS, nats_users, writes
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
    users = nats_users(dict.fromkeys(NATS_USERS, "secret"), shard="main", pools=("default",))

    for user in users.values():
        assert not {">", "headgate.>", "headgate.jobs.>", "headgate.jobs.v1.>"} & {
            *(user.publish or (">",)),
            *(user.subscribe or (">",)),
        }

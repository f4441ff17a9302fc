"""Folders that somebody hostile has left, and whose they are."""

import errno
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from services.worker.sandbox import kernel, ownership
from services.worker.sandbox.remains import MOST_LEVELS, below, clear


def a_deep_folder(top: Path, levels: int) -> None:
    """Deeper than any path can say."""
    folder = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(os.open("at the bottom", os.O_CREAT, dir_fd=folder))
    os.close(folder)


@pytest.fixture(params=["Linux", "another system"])
def _system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere a folder is opened up by its name, and a folder's name that is taken for a file's is not permitted."""
    if request.param == "Linux":
        return
    unlink = os.unlink

    def as_posix_has_it(name: Any, *, dir_fd: int | None = None) -> None:
        if stat.S_ISDIR(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), name)
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(kernel, "is_linux", lambda: False)
    monkeypatch.setattr(os, "unlink", as_posix_has_it)


@pytest.mark.usefixtures("_system")
def test_everything_is_removed_whatever_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "remains"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("x")
    (folder / "link").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
    (folder / "a" / "b").chmod(0)

    assert clear(folder)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_system")
def test_a_folder_as_deep_as_it_gets_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "remains"
    folder.mkdir()
    a_deep_folder(folder, 1500)

    assert clear(folder)

    assert not folder.exists()


@pytest.mark.usefixtures("_system")
def test_what_a_link_points_to_stays(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "theirs")

    assert clear(tmp_path / "link")

    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "theirs" / "file").exists()


def test_what_is_not_there_is_removed_already(tmp_path: Path) -> None:
    assert clear(tmp_path / "nothing")


def test_a_walk_goes_through_no_link_and_not_too_deep(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    a_deep_folder(tmp_path, MOST_LEVELS + 50)

    found = list(below(tmp_path))

    assert found[-2] is None or found[-1] is None
    assert {entry.path.split("/")[0] for entry in found if entry} == {"d", "link"}
    assert len(found) == MOST_LEVELS + 2


def test_what_is_left_out_is_not_entered(tmp_path: Path) -> None:
    for name in ("kept", "env"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")

    found = [entry.path for entry in below(tmp_path, leave_out=lambda path: path == "env") if entry]

    assert found == ["kept", "kept/file"]


def test_a_file_with_a_second_name_is_not_given_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[str]()
    monkeypatch.setattr(os, "chown", lambda name, *_, **__: given.append(os.fspath(name)))
    workspace = tmp_path / "workspace"
    (workspace / "folder").mkdir(parents=True)
    (workspace / "file").write_text("ours")
    (tmp_path / "elsewhere").write_text("somebody's")
    os.link(tmp_path / "elsewhere", workspace / "second name")

    ownership.hand_over(workspace, 58_001, uids=(58_000, 58_255))

    assert sorted(given) == [str(workspace), "file", "folder"]


def test_a_user_is_had_by_one_at_a_time(tmp_path: Path) -> None:
    uids, locks = (58_000, 58_001), (tmp_path / "locks",)
    first, second = ownership.take_user(uids, locks=locks), ownership.take_user(uids, locks=locks)

    with pytest.raises(ownership.CommandNotRun, match="are taken"):
        ownership.take_user(uids, locks=locks)
    first.release()
    third = ownership.take_user(uids, locks=locks)

    assert (first.uid, second.uid, third.uid) == (uids[0], uids[1], uids[0])
    second.release()
    third.release()


def test_locks_of_users_are_kept_where_they_can_be(tmp_path: Path) -> None:
    locks = (tmp_path / "is not there" / "locks", tmp_path / "locks")

    ownership.take_user((58_000, 58_000), locks=locks).release()

    assert [path.name for path in locks[1].iterdir()] == ["58000"]
    assert locks[1].stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_may_enter_keeps_no_locks(tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o711)

    with pytest.raises(ownership.CommandNotRun, match="only the worker's user may enter"):
        ownership.take_user((58_000, 58_000), locks=(open_folder,))


def test_a_link_to_a_folder_keeps_no_locks(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("folder")

    with pytest.raises(ownership.CommandNotRun, match="must be a folder"):
        ownership.take_user((58_000, 58_000), locks=(tmp_path / "link",))

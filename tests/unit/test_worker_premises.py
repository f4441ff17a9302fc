"""Where a worker's attempts have their folders: whose that is, and what is removed from it."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.worker import premises
from services.worker.errors import PremisesUnusable
from services.worker.premises import MARK, Premises, take


@pytest.fixture
def workspaces(tmp_path: Path) -> Path:
    return tmp_path / "workspaces"


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Premises]]:
    """Whose workers live until the test is over, or until they die in it."""
    monkeypatch.setattr(premises, "FREE_WITHIN_S", 0.0)
    living: list[Premises] = []
    yield living
    for each in living:
        os.close(each.lock)


def dies(worker: Premises) -> None:
    """The kernel lets go of its lock."""
    os.close(worker.lock)


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != MARK)


async def cleared(worker: Premises) -> None:
    await worker.clear_remains(asyncio.Event())


async def test_what_a_killed_worker_has_left_is_removed_by_the_next_of_its_name(workspaces: Path) -> None:
    dead = take(workspaces, "w1")
    (dead.folder / "job-1-1" / "kept").mkdir(parents=True)
    dies(dead)

    worker = take(workspaces, "w1")
    (worker.folder / "job-2-1").mkdir()
    await cleared(worker)
    dies(worker)

    assert left_in(workspaces / "w1") == ["job-2-1"]


async def test_the_next_of_any_name_removes_what_the_dead_have_left_and_nothing_of_the_living(
    workspaces: Path, taken: list[Premises]
) -> None:
    for name in ("dead", "living"):
        taken.append(take(workspaces, name))
        (taken[-1].folder / "job-1-1").mkdir()
    dies(taken.pop(0))

    taken.append(take(workspaces, "new"))
    await cleared(taken[-1])

    assert left_in(workspaces / "dead") == []
    assert left_in(workspaces / "living") == ["job-1-1"]


async def test_nothing_is_removed_from_a_folder_that_no_worker_has_made(
    workspaces: Path, taken: list[Premises]
) -> None:
    for name in ("w1", "photos"):
        (workspaces / name / "of-last-summer").mkdir(parents=True)

    for _ in range(2):
        taken.append(take(workspaces, "w1"))
        await cleared(taken[-1])
        dies(taken.pop())

    assert left_in(workspaces / "w1") == left_in(workspaces / "photos") == ["of-last-summer"]


def test_two_living_workers_have_two_names(workspaces: Path, taken: list[Premises]) -> None:
    taken.append(take(workspaces, "w1"))

    with pytest.raises(PremisesUnusable, match="another worker has the same HEADGATE_INSTANCE"):
        take(workspaces, "w1")


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_no_folder_is_refused(workspaces: Path, tmp_path: Path, kind: str) -> None:
    if kind == "file":
        workspaces.touch()
    else:
        workspaces.symlink_to(tmp_path)

    with pytest.raises(PremisesUnusable, match="it is no folder"):
        take(workspaces, "w1")


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes folders of others")
def test_a_folder_that_somebody_else_has_made_is_refused(workspaces: Path) -> None:
    workspaces.mkdir()
    os.chown(workspaces, 1, 1)

    with pytest.raises(PremisesUnusable, match="it belongs to another user"):
        take(workspaces, "w1")


def test_the_users_of_commands_come_through_and_see_nothing(workspaces: Path, taken: list[Premises]) -> None:
    before = os.umask(0o077)
    try:
        taken.append(take(workspaces, "w1"))
    finally:
        os.umask(before)

    assert [path.stat().st_mode & 0o777 for path in (workspaces, workspaces / "w1")] == [0o711, 0o711]


async def test_a_full_disk_is_waited_out_and_said_once(
    workspaces: Path, taken: list[Premises], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taken.append(take(workspaces, "w1"))
    free = iter([0, premises.ROOM_BYTES - 1, premises.ROOM_BYTES])
    monkeypatch.setattr(premises, "free_bytes", lambda _: next(free))
    monkeypatch.setattr(premises, "LOOK_FOR_ROOM_S", 0.0)

    await taken[0].room()

    assert next(free, None) is None
    assert caplog.text.count("nothing is taken") == 1

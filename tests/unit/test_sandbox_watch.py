"""What counts as used, and when it is too much."""

import os
from pathlib import Path

import pytest

from services.worker.sandbox import cgroup, watch
from services.worker.sandbox.command import CommandBounds
from services.worker.sandbox.watch import Disk, Processes, Used

MIB = 1024 * 1024
BOUNDS = CommandBounds(256 * MIB, 64, 256, MIB, MIB, 20.0, MIB)
STATUS = "Name:\tpytest\nRssAnon:\t  2048 kB\nRssFile:\t 99999 kB\nRssShmem:\t 1024 kB\nVmSwap:\t 1 kB\nThreads:\t7\n"


@pytest.mark.parametrize(
    ("used", "exceeded"),
    [
        (Used(tasks=66, memory_bytes=256 * MIB, cpu_s=20.0), None),
        (Used(tasks=67, memory_bytes=0, cpu_s=0.0), "processes"),
        (Used(tasks=1, memory_bytes=257 * MIB, cpu_s=0.0), "memory"),
        (Used(tasks=1, memory_bytes=0, cpu_s=20.1), "time"),
    ],
)
def test_a_tree_is_ended_beyond_its_bounds_and_not_at_them(
    monkeypatch: pytest.MonkeyPatch, used: Used, exceeded: str | None
) -> None:
    monkeypatch.setattr(watch, "used", lambda _: used)
    monkeypatch.setattr(watch, "exact_memory", lambda _: used.memory_bytes)

    assert Processes(BOUNDS, spared=2).exceeded([]) == exceeded


def test_what_is_only_shared_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "used", lambda _: Used(tasks=1, memory_bytes=1000 * MIB, cpu_s=0.0))
    monkeypatch.setattr(watch, "exact_memory", lambda _: 100 * MIB)

    assert Processes(BOUNDS, spared=0).exceeded([]) is None


def test_a_process_uses_what_it_wrote_to_and_what_it_shares_but_no_files() -> None:
    assert watch._status(STATUS) == (7, 3073 * 1024)


def test_our_own_process_is_seen() -> None:
    seen = watch.used([os.getpid()])

    assert seen.tasks >= 1
    assert seen.memory_bytes > MIB
    assert seen.cpu_s > 0


def test_who_is_gone_uses_nothing() -> None:
    assert watch.used([2**22 + 1]).tasks == 0
    assert watch.exact_memory([2**22 + 1]) == 0


def disk_of(folder: Path, *, bound: int = MIB) -> Disk:
    return Disk((str(folder),), bound=bound)


def test_files_are_added_up_over_folders(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for number in range(3):
        (tmp_path / "a" / "b" / str(number)).write_bytes(os.urandom(300_000))

    assert not disk_of(tmp_path).exceeded([])
    (tmp_path / "last").write_bytes(os.urandom(300_000))
    assert disk_of(tmp_path).exceeded([])
    assert disk_of(tmp_path).exceeded_in_the_end()


def test_two_names_of_one_file_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(os.urandom(700_000))
    os.link(tmp_path / "one", tmp_path / "two")

    assert not disk_of(tmp_path).exceeded_in_the_end()


def test_holes_take_no_room(tmp_path: Path) -> None:
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(10**9)

    assert not disk_of(tmp_path).exceeded_in_the_end()


def test_names_without_content_take_room(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / str(number)).touch()

    assert disk_of(tmp_path, bound=100_000).exceeded_in_the_end()


def test_a_look_at_a_large_folder_is_made_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LOOK_FOR_S", 0.0)
    for number in range(20):
        (tmp_path / str(number)).write_bytes(os.urandom(60_000))
    disk = disk_of(tmp_path)

    looks = next(number for number in range(1, 100) if disk.exceeded([]))

    assert looks > 10


def test_a_group_has_its_bounds_before_anybody_is_in_it(tmp_path: Path) -> None:
    for name in ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max"):
        (tmp_path / name).write_text("max")

    cgroup.CommandCgroup(tmp_path).bound(BOUNDS)

    assert (tmp_path / "memory.max").read_text() == str(256 * MIB)
    assert (tmp_path / "pids.max").read_text() == "64"
    assert (tmp_path / "memory.swap.max").read_text() == "0"


def test_a_group_without_controllers_bounds_nothing(tmp_path: Path) -> None:
    cgroup.CommandCgroup(tmp_path).bound(BOUNDS)

    assert list(tmp_path.iterdir()) == []
    assert cgroup.CommandCgroup(tmp_path).exceeded() is None


@pytest.mark.parametrize(
    ("memory", "pids", "exceeded"),
    [
        ("oom 1\noom_kill 1", "max 0", "memory"),
        ("oom 0\noom_kill 0", "max 3", "processes"),
        ("oom 1\noom_kill 0", "max 0", None),
    ],
)
def test_what_the_kernel_refused_a_group_is_read(tmp_path: Path, memory: str, pids: str, exceeded: str | None) -> None:
    (tmp_path / "memory.events").write_text(f"low 0\n{memory}\n")
    (tmp_path / "pids.events").write_text(f"{pids}\n")

    assert cgroup.CommandCgroup(tmp_path).exceeded() == exceeded


def test_a_folder_that_is_no_cgroup_is_none(tmp_path: Path) -> None:
    assert cgroup.find(tmp_path) is None
    assert list(tmp_path.iterdir()) == []

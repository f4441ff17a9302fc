"""What goes into an archive. What comes out of a hostile one: test_worker_unpacking."""

import os
import socket
from base64 import b64decode
from pathlib import Path

import pytest

from services.worker.child import packing
from services.worker.child.messages import Packed, read_by_parent
from services.worker.child.packing import ResultTooLarge, pack
from services.worker.sandbox.remains import MOST_LEVELS
from tests.unit.test_sandbox_remains import a_deep_folder
from tests.unit.test_worker_unpacking import MIB, unpacked


def test_what_is_packed_comes_out_again(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "run").write_text("#!/bin/sh")
    (folder / "bin" / "run").chmod(0o755)
    (folder / "readme – ü").write_text("text")
    (folder / os.fsdecode(b"\xff")).write_text("no text in its name")

    assert pack(folder, tmp_path / "a.tar.gz", max_bytes=MIB)
    names = unpacked(tmp_path / "a.tar.gz", tmp_path / "out")

    assert names == sorted(["bin", "bin/run", "readme – ü", os.fsdecode(b"\xff")])
    assert os.access(tmp_path / "out" / "bin" / "run", os.X_OK)
    assert not os.access(tmp_path / "out" / "readme – ü", os.X_OK)


def test_the_deepest_that_is_packed_comes_out_again(tmp_path: Path) -> None:
    (tmp_path / "result").mkdir()
    a_deep_folder(tmp_path / "result", MOST_LEVELS - 1)

    assert pack(tmp_path / "result", tmp_path / "a.tar.gz", max_bytes=MIB)

    assert len(unpacked(tmp_path / "a.tar.gz", tmp_path / "out", levels=MOST_LEVELS, entries=200)) >= MOST_LEVELS - 1


def test_the_same_content_is_the_same_archive(tmp_path: Path) -> None:
    for name, order in (("one", "ab"), ("two", "ba")):
        (tmp_path / name).mkdir()
        for file in order:
            (tmp_path / name / file).write_text(file)
        pack(tmp_path / name, tmp_path / f"{name}.tar.gz", max_bytes=MIB)

    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()


def test_what_is_small_may_stay_in_memory_and_is_the_same_there(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    folder.mkdir()
    (folder / "file").write_bytes(b"small")

    small = pack(folder, tmp_path / "none.tar.gz", max_bytes=MIB, in_memory=True)
    pack(folder, tmp_path / "a.tar.gz", max_bytes=MIB)
    (folder / "file").write_bytes(os.urandom(packing.SMALL_BYTES))
    large = pack(folder, tmp_path / "large.tar.gz", max_bytes=MIB, in_memory=True)

    assert small == (tmp_path / "a.tar.gz").read_bytes()
    assert large == (tmp_path / "large.tar.gz").stat().st_size
    assert not (tmp_path / "none.tar.gz").exists()
    assert read_by_parent(Packed(result=small).encoded()) == Packed(result=small)


@pytest.mark.parametrize("result", [b64decode("1234"), b"", 1234, None])
def test_a_result_is_heard_as_it_was_told(result: bytes | int | None) -> None:
    assert read_by_parent(Packed(result=result).encoded()) == Packed(result=result)


def test_nothing_but_files_and_folders_is_packed(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
    (folder / "file").write_text("x")

    pack(folder, tmp_path / "a.tar.gz", max_bytes=MIB)

    assert unpacked(tmp_path / "a.tar.gz", tmp_path / "out") == ["file"]


def test_a_result_that_is_a_link_is_none(tmp_path: Path) -> None:
    (tmp_path / "result").symlink_to("/etc")

    assert pack(tmp_path / "result", tmp_path / "a.tar.gz", max_bytes=MIB) is None


def test_a_file_that_becomes_a_link_while_it_is_packed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "result"
    folder.mkdir()
    (folder / "file").write_text("x")
    (tmp_path / "secret").write_text("secret")
    opened = os.open

    def swapping(path: str, *how: int, **where: int) -> int:
        if path == "file":
            (folder / "file").unlink()
            (folder / "file").symlink_to(tmp_path / "secret")
        return opened(path, *how, **where)

    monkeypatch.setattr(packing.os, "open", swapping)
    pack(folder, tmp_path / "a.tar.gz", max_bytes=MIB)
    monkeypatch.undo()

    assert unpacked(tmp_path / "a.tar.gz", tmp_path / "out") == []


def test_what_is_left_out_is_not_packed(tmp_path: Path) -> None:
    for name in ("env/lib", "src"):
        (tmp_path / "work" / name).mkdir(parents=True)

    pack(tmp_path / "work", tmp_path / "a.tar.gz", max_bytes=MIB, leave_out=lambda path: path.name == "env")

    assert unpacked(tmp_path / "a.tar.gz", tmp_path / "out") == ["src"]


def test_a_result_beyond_its_size_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "result").mkdir()
    (tmp_path / "result" / "noise").write_bytes(os.urandom(200_000))

    with pytest.raises(ResultTooLarge, match="larger than 100000 bytes"):
        pack(tmp_path / "result", tmp_path / "a.tar.gz", max_bytes=100_000)


def test_a_hole_of_a_terabyte_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "result").mkdir()
    with (tmp_path / "result" / "hole").open("wb") as file:
        file.truncate(10**12)

    with pytest.raises(ResultTooLarge, match="unpacked it is far larger"):
        pack(tmp_path / "result", tmp_path / "a.tar.gz", max_bytes=MIB)


def test_a_bottomless_result_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "result").mkdir()
    a_deep_folder(tmp_path / "result", 300)

    with pytest.raises(ResultTooLarge, match="folders deep"):
        pack(tmp_path / "result", tmp_path / "a.tar.gz", max_bytes=MIB)


def test_too_many_files_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MAX_ENTRIES", 3)
    (tmp_path / "result").mkdir()
    for number in range(4):
        (tmp_path / "result" / str(number)).touch()

    with pytest.raises(ResultTooLarge, match="more than 3 files"):
        pack(tmp_path / "result", tmp_path / "a.tar.gz", max_bytes=MIB)

"""What goes into an archive, and what comes out of a hostile one."""

import gzip
import io
import os
import socket
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from services.worker.child import packing
from services.worker.child.packing import ArchiveRefused, ResultTooLarge, pack, unpack
from tests.unit.test_sandbox_remains import a_deep_folder

MIB = 1024 * 1024
Made = Callable[[tarfile.TarFile], None]


def unpacked(source: Path, folder: Path, *, max_bytes: int = MIB, max_entries: int = 100) -> list[str]:
    unpack(source, folder, max_bytes=max_bytes, max_entries=max_entries)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def an_archive(path: Path, make: Made) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        make(archive)
    return path


def with_entry(name: str, *, kind: bytes = tarfile.REGTYPE, content: bytes = b"x", link: str = "") -> Made:
    def make(archive: tarfile.TarFile) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, link
        entry.size = len(content) if kind == tarfile.REGTYPE else 0
        archive.addfile(entry, io.BytesIO(content))

    return make


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


def test_the_same_content_is_the_same_archive(tmp_path: Path) -> None:
    for name, order in (("one", "ab"), ("two", "ba")):
        (tmp_path / name).mkdir()
        for file in order:
            (tmp_path / name / file).write_text(file)
        pack(tmp_path / name, tmp_path / f"{name}.tar.gz", max_bytes=MIB)

    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()


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


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (with_entry("../out-of-it"), "leads out"),
        (with_entry("a/../../out-of-it"), "leads out"),
        (with_entry("/out-of-it"), "leads out"),
        (with_entry("d/" * 200), "too deep"),
        (with_entry("link", kind=tarfile.SYMTYPE, link="/etc"), "neither a file nor a folder"),
        (with_entry("link", kind=tarfile.LNKTYPE, link="/etc/passwd"), "neither a file nor a folder"),
        (with_entry("device", kind=tarfile.CHRTYPE), "neither a file nor a folder"),
        (with_entry("disk", kind=tarfile.BLKTYPE), "neither a file nor a folder"),
        (with_entry("pipe", kind=tarfile.FIFOTYPE), "neither a file nor a folder"),
        (with_entry("large", content=bytes(2 * MIB)), "more than"),
    ],
)
def test_a_hostile_archive_is_refused_and_nothing_of_it_stays(tmp_path: Path, make: Made, why: str) -> None:
    def first_a_harmless_one(archive: tarfile.TarFile) -> None:
        with_entry("harmless")(archive)
        make(archive)

    source = an_archive(tmp_path / "a.tar.gz", first_a_harmless_one)

    with pytest.raises(ArchiveRefused, match=why):
        unpacked(source, tmp_path / "out")

    assert list((tmp_path / "out").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "out"]


def test_an_archive_that_writes_the_same_file_twice_is_refused(tmp_path: Path) -> None:
    def twice(archive: tarfile.TarFile) -> None:
        with_entry("file")(archive)
        with_entry("file")(archive)

    with pytest.raises(ArchiveRefused):
        unpacked(an_archive(tmp_path / "a.tar.gz", twice), tmp_path / "out")


def test_an_archive_of_too_many_files_is_refused(tmp_path: Path) -> None:
    def many(archive: tarfile.TarFile) -> None:
        for number in range(5):
            with_entry(str(number))(archive)

    with pytest.raises(ArchiveRefused, match="more than 4 entries"):
        unpacked(an_archive(tmp_path / "a.tar.gz", many), tmp_path / "out", max_entries=4)


def test_a_header_larger_than_the_machines_memory_is_not_read(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 8 * 1024**3
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(10_000), mtime=0))

    with pytest.raises(ArchiveRefused, match="larger than anything"):
        unpacked(tmp_path / "a.tar.gz", tmp_path / "out")


@pytest.mark.parametrize(
    "content", [b"", b"no archive", gzip.compress(b"no archive", mtime=0), gzip.compress(bytes(20_480), mtime=0)[:-9]]
)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar.gz").write_bytes(content)

    with pytest.raises(ArchiveRefused):
        unpacked(tmp_path / "a.tar.gz", tmp_path / "out")

"""What comes out of an archive, and what of a hostile one: nothing."""

import gzip
import io
import os
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from libs.runtime.archives import Most
from libs.runtime.errors import ArchiveRefused
from services.worker.child.unpacking import unpack

ROOT = Path(__file__).parents[2]
MIB = 1024 * 1024
Made = Callable[[tarfile.TarFile], None]


def unpacked(source: Path, folder: Path, *, size_bytes: int = MIB, entries: int = 100, levels: int = 100) -> list[str]:
    unpack(source, folder, most=Most(size_bytes=size_bytes, entries=entries, levels=levels))
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def an_archive(path: Path, make: Made) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        make(archive)
    return path


def with_entry(
    name: str, *, kind: bytes = tarfile.REGTYPE, content: bytes = b"x", link: str = "", mode: int = 0o644
) -> Made:
    def make(archive: tarfile.TarFile) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname, entry.mode = kind, link, mode
        entry.uid = entry.gid = 4321
        entry.size = len(content) if kind == tarfile.REGTYPE else 0
        archive.addfile(entry, io.BytesIO(content))

    return make


@pytest.mark.parametrize(("told", "given"), [(0o7777, 0o700), (0o6755, 0o700), (0o4644, 0o600), (0o666, 0o600)])
def test_a_file_is_its_owners_alone_and_has_no_rights_of_another(tmp_path: Path, told: int, given: int) -> None:
    source = an_archive(tmp_path / "a.tar.gz", with_entry("bin/run", mode=told))

    unpacked(source, tmp_path / "out")

    file, folder = (tmp_path / "out" / "bin" / "run").stat(), (tmp_path / "out" / "bin").stat()
    assert (file.st_mode & 0o7777, folder.st_mode & 0o7777) == (given, 0o700)
    assert (file.st_uid, file.st_gid) == (os.geteuid(), os.getegid())


def test_an_archive_may_be_in_memory(tmp_path: Path) -> None:
    source = an_archive(tmp_path / "a.tar.gz", with_entry("file", content=b"words"))

    unpack(io.BytesIO(source.read_bytes()), tmp_path / "out", most=Most(size_bytes=MIB, entries=1, levels=1))

    assert (tmp_path / "out" / "file").read_bytes() == b"words"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (with_entry("../out-of-it"), "leads out"),
        (with_entry("a/../../out-of-it"), "leads out"),
        (with_entry("/out-of-it"), "leads out"),
        (with_entry("d/" * 200), "too deep"),
        (with_entry("link", kind=tarfile.SYMTYPE, link="/etc"), "neither a file nor a folder"),
        (with_entry("link", kind=tarfile.SYMTYPE, link="../.."), "neither a file nor a folder"),
        (with_entry("link", kind=tarfile.SYMTYPE, link="harmless"), "neither a file nor a folder"),
        (with_entry("link", kind=tarfile.LNKTYPE, link="/etc/passwd"), "neither a file nor a folder"),
        (with_entry("link", kind=tarfile.LNKTYPE, link="harmless"), "neither a file nor a folder"),
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


def test_an_archive_may_have_many_entries_without_content(tmp_path: Path) -> None:
    """Their headers lie one after the other, more of them than one may have."""

    def many(archive: tarfile.TarFile) -> None:
        for number in range(3000):
            with_entry(str(number), kind=tarfile.DIRTYPE)(archive)

    source = an_archive(tmp_path / "a.tar.gz", many)

    assert len(unpacked(source, tmp_path / "out", entries=3000)) == 3000


def test_an_archive_of_too_many_files_is_refused(tmp_path: Path) -> None:
    def many(archive: tarfile.TarFile) -> None:
        for number in range(5):
            with_entry(str(number))(archive)

    with pytest.raises(ArchiveRefused, match="more than 4 entries"):
        unpacked(an_archive(tmp_path / "a.tar.gz", many), tmp_path / "out", entries=4)


def test_a_header_larger_than_the_machines_memory_is_not_read(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 8 * 1024**3
    content = header.tobuf(tarfile.GNU_FORMAT) + bytes(4 * MIB)  # newer Pythons read it in parts, and keep them all
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(content, mtime=0))

    with pytest.raises(ArchiveRefused, match="larger than anything"):
        unpacked(tmp_path / "a.tar.gz", tmp_path / "out", size_bytes=64 * MIB)


def test_headers_of_headers_without_end_are_not_followed(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type = tarfile.GNUTYPE_LONGNAME
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(1500 * header.tobuf(tarfile.GNU_FORMAT), mtime=0))

    with pytest.raises(ArchiveRefused):
        unpacked(tmp_path / "a.tar.gz", tmp_path / "out")


@pytest.mark.parametrize(
    "content", [b"", b"no archive", gzip.compress(b"no archive", mtime=0), gzip.compress(bytes(20_480), mtime=0)[:-9]]
)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar.gz").write_bytes(content)

    with pytest.raises(ArchiveRefused):
        unpacked(tmp_path / "a.tar.gz", tmp_path / "out")


@pytest.mark.parametrize("size", [-1, -(2**40)])
def test_an_entry_of_less_than_nothing_makes_no_room_for_others(tmp_path: Path, size: int) -> None:
    entry = tarfile.TarInfo("less")
    entry.size = size
    blocks = entry.tobuf(tarfile.GNU_FORMAT), tarfile.TarInfo("more").tobuf(), bytes(1024)
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(b"".join(blocks)))

    with pytest.raises(ArchiveRefused):
        unpacked(tmp_path / "a.tar.gz", tmp_path / "out")


def test_an_entry_that_cannot_be_read_is_not_taken_for_the_end(tmp_path: Path) -> None:
    blocks = tarfile.TarInfo("one").tobuf(), b"?" * 512, tarfile.TarInfo("two").tobuf(), bytes(1024)
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(b"".join(blocks)))

    with pytest.raises(ArchiveRefused, match="cannot be read"):
        unpacked(tmp_path / "a.tar.gz", tmp_path / "out")


def test_nobody_else_writes_what_an_archive_says() -> None:
    """`extractall` has its filter in Python 3.11.4 and not in 3.11.2.

    A result has a verb `extract` too, of the client.
    """
    ours = [path for top in ("contracts", "libs", "services", "tests") for path in (ROOT / top).rglob("*.py")]

    texts = {path: path.read_text(encoding="utf-8") for path in ours}
    writing = {path for path, text in texts.items() if re.search(r"\b(tar|archive)\.extract\(|\.extractall\(", text)}

    assert writing - {Path(__file__)} == set()

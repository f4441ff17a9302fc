"""Results that were made to do harm, folders that lead elsewhere, and a disk that takes nothing."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate import errors, fetching, unpacking, verbs
from headgate.orders import order
from headgate.unpacking import unpack
from tests.fixtures.scripted import JOB, play, says
from tests.unit.test_client import ARCHIVE, FAST, packed, part


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """The 512 bytes before an entry."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, kind
    return entry.tobuf(tarfile.GNU_FORMAT)


def zipped(*blocks: bytes) -> io.BytesIO:
    return io.BytesIO(gzip.compress(b"".join(blocks) + b"\0" * 1024))


def padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 512)


def names_in(folder: Path) -> list[str]:
    return sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*"))


@pytest.mark.parametrize("name", ["..\\up.py", "C:/up.py", "a/b:stream"])
def test_names_that_lead_elsewhere_on_windows_alone_are_refused_there_alone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = packed((name, b"1"))

    assert unpack(io.BytesIO(archive), tmp_path / "here") == (tmp_path / "here" / name,)
    monkeypatch.setattr(unpacking, "FORBIDDEN", unpacking.forbidden_on("nt"))
    with pytest.raises(errors.UnsafeArchive):
        unpack(io.BytesIO(archive), tmp_path / "there")


# ── what an archive may not hold ──────────────────────────────────────────────


@pytest.mark.parametrize("size", [-1, -512, -1024, -(2**40)])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_an_entry_of_less_than_nothing_is_refused(size: int, kind: bytes, tmp_path: Path) -> None:
    with pytest.raises(errors.UnsafeArchive):
        unpack(zipped(header("good.py", 0), header("bad.py", size, kind)), tmp_path / "out")

    assert list(tmp_path.iterdir()) == []


def test_a_size_below_nothing_makes_no_room_for_others(tmp_path: Path) -> None:
    words = b"18 size=-99999999\n"
    negative = header("pax", len(words), tarfile.XHDTYPE) + padded(words) + header("a", 0)

    with pytest.raises(errors.UnsafeArchive):
        unpack(zipped(negative, header("b", 0)), tmp_path / "out")


def test_entries_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_ENTRIES", 3)

    assert len(unpack(zipped(*(header(f"{n}", 0) for n in range(3))), tmp_path / "three")) == 3
    with pytest.raises(errors.UnsafeArchive, match="more than 3 entries"):
        unpack(zipped(*(header(f"{n}", 0) for n in range(4))), tmp_path / "four")


def test_bytes_are_counted_before_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_BYTES", 100_000)

    for blocks in ([header("a", 2**33)], [header("a", 60_000), bytes(60_416), header("b", 60_000), bytes(60_416)]):
        with pytest.raises(errors.UnsafeArchive):
            unpack(zipped(*blocks), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_header_of_megabytes_is_not_read(kind: bytes, tmp_path: Path) -> None:
    size = 64 * 1024**2

    with pytest.raises(errors.UnsafeArchive, match="larger than any may be"):
        unpack(zipped(header("a", size, kind), bytes(size), header("a", 0)), tmp_path / "out")


def test_headers_before_headers_have_an_end(tmp_path: Path) -> None:
    with pytest.raises(errors.UnsafeArchive):
        unpack(zipped(*[header("a", 2, tarfile.GNUTYPE_LONGNAME) + padded(b"b\0")] * 900), tmp_path / "out")


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_SPARSE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.LNKTYPE])
def test_what_is_no_plain_file_is_refused(kind: bytes, tmp_path: Path) -> None:
    with pytest.raises(errors.UnsafeArchive, match="neither a file nor a folder"):
        unpack(zipped(header("a", 0, kind)), tmp_path / "out")


def test_a_folder_may_be_named_by_a_dot(tmp_path: Path) -> None:
    blocks = (header(".", 0, tarfile.DIRTYPE), header("./empty/", 0, tarfile.DIRTYPE), header("./a.py", 0))

    assert unpack(zipped(*blocks), tmp_path / "out") == (tmp_path / "out" / "a.py",)
    assert (tmp_path / "out" / "empty").is_dir()


# ── where it goes ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize("to", ["../elsewhere", "../elsewhere/new"])
def test_a_link_that_is_in_the_folder_leads_nobody_out(to: str, tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    folder.mkdir()
    (folder / "shop").symlink_to(to)

    with pytest.raises(errors.UnsafeArchive, match="by a link"):
        unpack(io.BytesIO(packed(("good.py", b"1"), ("shop/app.py", b"2"))), folder)
    assert (names_in(elsewhere), names_in(folder)) == ([], ["shop"])


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept.py"
    kept.write_text("old")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "app.py").symlink_to(kept)

    [file] = unpack(io.BytesIO(packed(("app.py", b"new"))), tmp_path / "out")

    assert (kept.read_text(), file.read_text(), file.is_symlink()) == ("old", "new", False)


def test_a_folder_that_is_named_by_a_link_is_that_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "old.py").write_text("old")
    (tmp_path / "link").symlink_to("real")

    assert unpack(io.BytesIO(ARCHIVE), tmp_path / "link") == (tmp_path / "link" / "shop" / "app.py",)
    assert names_in(tmp_path / "real") == ["old.py", "shop", "shop/app.py"]


class _Stopped(io.BytesIO):
    """Its reader is stopped before its end."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() > 8000:
            raise KeyboardInterrupt
        return super().read(size)


@pytest.mark.parametrize("before", [[], ["out"]])
def test_who_is_stopped_leaves_nothing_half(before: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for name in before:
        (tmp_path / name).mkdir()
    content = packed(*((f"{n}.py", os.urandom(100_000)) for n in range(9)))  # Python 3.14 reads 128 KiB at once

    with pytest.raises(KeyboardInterrupt):
        unpack(_Stopped(content), folder)

    assert names_in(tmp_path) == before


# ── a machine that does not take it ───────────────────────────────────────────


def folder_for_a_file(path: Path) -> None:
    (path / "shop" / "app.py").mkdir(parents=True)


def file_for_a_folder(path: Path) -> None:
    path.mkdir()
    (path / "shop").write_text("mine")


def file_for_all_of_it(path: Path) -> None:
    path.write_text("mine")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize("made", [folder_for_a_file, file_for_a_folder, file_for_all_of_it, loop])
def test_what_has_no_place_is_not_stored_and_nothing_is_left(made: Callable[[Path], None], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    made(folder)
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(errors.NotStored):
        play(fetching.extract("j1", folder), *part(ARCHIVE))

    assert sorted(tmp_path.rglob("*")) == before


def test_a_result_is_not_saved_where_there_is_no_place_for_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(errors.NotStored, match="no/such"):
        play(fetching.save("j1", tmp_path / "no" / "such" / "r.tar.gz"))
    with pytest.raises(errors.NotStored):
        play(fetching.save("j1", tmp_path / "folder"), *part(ARCHIVE))
    assert names_in(tmp_path) == ["folder"]


def test_two_that_save_under_one_name_do_not_meet(tmp_path: Path) -> None:
    first, target = fetching.save("j1", tmp_path / "r.tar.gz"), tmp_path / "r.tar.gz"
    next(first)  # its temporary file is open

    play(fetching.save("j1", target), *part(ARCHIVE))
    first.close()

    assert (names_in(tmp_path), target.read_bytes()) == (["r.tar.gz"], ARCHIVE)


# ── many at once ──────────────────────────────────────────────────────────────


def test_one_of_a_batch_that_is_to_wait_long_keeps_none_of_the_others() -> None:
    soon, late = ({"status": 429, "problem": {**FAST, "retry_after_s": wait_s}} for wait_s in (9, 5400))
    taken = {"status": 202, "job": JOB}

    played = play(
        verbs.batch([order("a", project="shop"), order("b", project="shop")]),
        says(207, {"results": [soon, late]}),
        says(207, {"results": [taken, late]}),
    )

    assert played.pauses == [9]
    assert (played.returned[0].id, played.returned[1].retry_after) == ("j1", 5400)

"""What other users get to, and what is put where they do."""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.worker import premises
from services.worker.premises import settle
from services.worker.sandbox import reach
from services.worker.sandbox.command import Level
from services.worker.sandbox.errors import OutOfReach, SandboxMissing
from services.worker.sandbox.reach import barrier, elsewhere, is_readable, made_readable, make_passage
from services.worker.sandbox.remains import clear

LEVEL = Level("plain")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody gets to: pytest's own lets nobody in."""
    folder = Path(tempfile.mkdtemp(prefix="reach-", dir=reach.SHARED[-1]))
    folder.chmod(0o755)
    yield folder
    clear(folder)


@pytest.fixture
def _unmasked() -> Iterator[None]:
    """What is made here is for everybody to read, unless it is said otherwise."""
    mask = os.umask(0o022)
    yield
    os.umask(mask)


@pytest.fixture
def _masked() -> Iterator[None]:
    """What is made here is for its owner alone, unless it is said otherwise."""
    mask = os.umask(0o077)
    yield
    os.umask(mask)


def test_what_closes_the_way_is_named(shared: Path) -> None:
    (shared / "home").mkdir()
    (shared / "home" / "file").touch()
    (shared / "home").chmod(0o700)

    assert barrier(shared / "home") is None
    assert barrier(shared / "home" / "file") == shared / "home"


def test_a_link_leads_where_it_leads(shared: Path) -> None:
    (shared / "home").mkdir()
    (shared / "home" / "python").touch()
    (shared / "home").chmod(0o700)
    (shared / "python").symlink_to(shared / "home" / "python")

    assert barrier(shared / "python") == shared / "home"


@pytest.mark.usefixtures("_unmasked")
def test_a_folder_is_readable_with_all_that_is_in_it(shared: Path) -> None:
    (shared / "wheels").mkdir()
    (shared / "wheels" / "one.whl").touch()
    assert is_readable(shared / "wheels")

    (shared / "wheels" / "one.whl").chmod(0o600)
    assert not is_readable(shared / "wheels")


@pytest.mark.usefixtures("_masked")
def test_a_passage_is_one_whatever_the_mask(shared: Path) -> None:
    make_passage(shared / "area")

    assert (shared / "area").stat().st_mode & 0o777 == 0o711


@pytest.mark.usefixtures("_masked")
def test_what_others_cannot_read_is_copied_to_where_they_can(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shared / "home").mkdir()
    (shared / "home" / "uv").write_text("a program")
    (shared / "home" / "wheels").mkdir()
    (shared / "home" / "wheels" / "one.whl").write_text("a wheel")
    (shared / "open").touch()
    (shared / "open").chmod(0o644)
    closed = [shared / "home" / "uv", shared / "home" / "wheels"]
    monkeypatch.setattr(sys, "executable", str(shared / "open"))

    found = made_readable([*closed, shared / "open", shared / "home" / "nothing"], shared)

    assert found.keys() == {str(path) for path in closed}
    assert all(is_readable(Path(path)) for path in found.values())
    assert (Path(found[str(closed[1])]) / "one.whl").read_text() == "a wheel"
    assert not is_readable(closed[0])


def test_nothing_can_be_brought_to_where_nobody_gets(shared: Path) -> None:
    (shared / "home").mkdir(mode=0o700)

    with pytest.raises(OutOfReach, match="home is closed to them"):
        made_readable([], shared / "home" / "workspaces")


@pytest.mark.usefixtures("_unmasked")
def test_a_python_in_a_closed_home_stands_on_one_that_is_open_or_it_is_said(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = shared / "home" / "bin" / f"python3.{sys.version_info[1]}"
    base.parent.mkdir(parents=True)
    base.touch()
    monkeypatch.setattr(sys, "executable", str(shared / "env" / "bin" / "python"))
    monkeypatch.setattr(sys, "base_prefix", str(shared / "home"))
    monkeypatch.setattr(os, "__file__", str(base))
    assert made_readable([], shared) == {sys.executable: str(base)}

    (shared / "home").chmod(0o700)
    with pytest.raises(OutOfReach, match="home is closed to them"):
        made_readable([], shared)


def test_each_name_of_workspaces_has_a_place_of_its_own_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Path("/root/one/workspaces"), Path("/root/other/workspaces")

    assert elsewhere(one) == elsewhere(one) != elsewhere(other)
    assert barrier(elsewhere(one)) is None

    monkeypatch.setattr(tempfile, "tempdir", "/root")  # a place for files of its owner alone
    monkeypatch.setattr(reach, "_lets", lambda folder, _: folder != Path("/root"))
    assert elsewhere(one).parent in {Path("/var/tmp"), Path("/tmp")}  # noqa: S108 - where it is to be


@pytest.fixture
def _elsewhere(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(premises, "elsewhere", lambda _: shared / "elsewhere")


@pytest.mark.usefixtures("_elsewhere")
async def test_workspaces_that_are_out_of_reach_are_elsewhere_until_the_worker_leaves(
    tmp_path: Path, shared: Path
) -> None:
    async def find(folder: Path) -> Level:
        if folder.is_relative_to(tmp_path):
            raise OutOfReach(what=folder, closed=tmp_path)
        return LEVEL

    settled, level = await settle(tmp_path / "workspaces", "w1", find=find)

    assert (settled.folder, level) == (shared / "elsewhere" / "w1", LEVEL)
    settled.leave()
    assert not (shared / "elsewhere").exists()


@pytest.mark.usefixtures("_elsewhere")
async def test_a_worker_that_can_be_nowhere_leaves_nothing(tmp_path: Path, shared: Path) -> None:
    async def find(folder: Path) -> Level:
        raise OutOfReach(what=folder, closed=tmp_path)

    with pytest.raises(SandboxMissing, match="is closed to them"):
        await settle(tmp_path / "workspaces", "w1", find=find)

    assert not (shared / "elsewhere").exists()


async def test_workspaces_that_are_the_workers_own_stay(tmp_path: Path) -> None:
    async def find(_: Path) -> Level:
        return LEVEL

    settled, _ = await settle(tmp_path / "workspaces", "w1", find=find)
    settled.leave()

    assert settled.folder.is_dir()
    os.close(settled.lock)

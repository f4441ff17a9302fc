"""What builds are made of, on its way from a server of files into the state folder."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from libs.local.errors import WheelsNotFetched
from libs.local.ports import free_ports
from libs.local.wheels import LockedWheel, equipment, keep_wheels, wheels_of_this_machine

NAMES = ("a-1-py3-none-any.whl", "b-2-py3-none-any.whl")


class Files(SimpleHTTPRequestHandler):
    """A folder, and what was asked of it."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """Where two wheels are served, and which were asked for."""
    (tmp_path / "there").mkdir()
    for name in NAMES:
        (tmp_path / "there" / name).write_bytes(name.encode())
    Files.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(tmp_path / "there"))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", Files.asked
        server.shutdown()
        thread.join()


def locked(url: str, *names: str) -> list[LockedWheel]:
    return [LockedWheel(f"{url}/{name}", hashlib.sha256(name.encode()).hexdigest()) for name in names]


async def test_each_is_fetched_once_and_what_is_not_on_the_list_goes(
    asked: tuple[str, list[str]], tmp_path: Path
) -> None:
    url, paths = asked
    folder = tmp_path / "wheels"

    await keep_wheels(folder, locked(url, *NAMES))
    await keep_wheels(folder, locked(url, *NAMES))

    assert sorted(paths) == [f"/{name}" for name in NAMES]
    assert {path.name: path.read_text() for path in folder.iterdir()} == {name: name for name in NAMES}

    await keep_wheels(folder, locked(url, NAMES[1]))

    assert [path.name for path in folder.iterdir()] == [NAMES[1]]


async def test_a_file_with_another_hash_is_refused_and_nothing_of_it_stays(
    asked: tuple[str, list[str]], tmp_path: Path
) -> None:
    url, _ = asked
    false = LockedWheel(f"{url}/{NAMES[0]}", "0" * 64)

    with pytest.raises(WheelsNotFetched, match=f"{NAMES[0]} is not the file that was locked"):
        await keep_wheels(tmp_path / "wheels", [false, *locked(url, NAMES[1])])

    assert list((tmp_path / "wheels").iterdir()) == []


async def test_a_file_that_is_not_there_is_no_wheel(asked: tuple[str, list[str]], tmp_path: Path) -> None:
    url, _ = asked

    with pytest.raises(WheelsNotFetched, match="404"):
        await keep_wheels(tmp_path / "wheels", locked(url, "c-3-py3-none-any.whl"))


async def test_where_nothing_can_be_fetched_the_start_goes_on_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("sys.prefix", str(tmp_path))  # as an installed wheel is: without what set-up brings
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_ports(1)[0]}")

    told = await equipment({}, tmp_path / "wheels", say=said.append)

    assert told == {}
    assert "each build asks the index for it. HEADGATE_WHEELS names a folder that has it" in "".join(said)


async def test_what_is_there_is_what_workers_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    folder = tmp_path / "state"
    folder.mkdir()
    for wheel in wheels_of_this_machine():
        (folder / wheel.name).touch()

    assert await equipment({}, folder, say=print) == {"HEADGATE_WHEELS": str(folder)}
    assert await equipment({"HEADGATE_WHEELS": "/mine"}, folder, say=print) == {}

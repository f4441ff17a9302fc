"""Stands where a worker's attempt stands: runs what it is told in a sandbox, and says how it went.

It is a process of its own, so that a containment that fails takes this one down and not the tests, and so that it can
be another user. It imports nothing but the sandbox: any Python from 3.11 on will do. It has a secret in its
environment, a file that is its own, and an open port; none of them is the command's business.

    {"wanted", "without", "uid", "folder", "bounds", "ways": [{"script", …}]}  ──►  {"line", "ran": [{…}]}
"""

import asyncio
import dataclasses
import json
import os
import resource
import socket
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from services.worker.sandbox import kernel
from services.worker.sandbox.command import CommandBounds, Level, SandboxCommand
from services.worker.sandbox.errors import SandboxError
from services.worker.sandbox.kinship import keep_private
from services.worker.sandbox.levels import find_level
from services.worker.sandbox.remains import clear
from services.worker.sandbox.running import Sandbox
from services.worker.sandbox.watch import free_bytes

OUTER_DISK = "size=512m"
LARGEST_FILLER = 128 * 1024 * 1024


async def main() -> None:
    told = json.loads(sys.stdin.readline())
    folder = Path(told["folder"])
    _make_our_own(folder, told["uid"])
    keep_private()
    try:
        level = await _level(told, folder)
    except SandboxError as error:
        _say({"missing": str(error)})
        return
    with _listening(folder) as open_ports:
        ran = [await _run(level, told["bounds"], way, folder, open_ports) for way in told["ways"]]
    _say({"line": level.line, "ran": ran})


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()


def _make_our_own(folder: Path, uid: int | None) -> None:
    """A disk that is full before the machine's is, where we may mount one; then we are that user."""
    if os.getuid() == 0:
        kernel.unshare(kernel.NEW_MOUNTS)
        kernel.mount(None, "/", None, flags=kernel.RECURSIVE | kernel.PRIVATE)
        kernel.mount("none", str(folder), "tmpfs", flags=0, data=OUTER_DISK)
    if uid is not None:
        os.chown(folder, uid, uid)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    folder.chmod(0o711)
    (folder / "private.txt").write_text("a private file")
    (folder / "private.txt").chmod(0o600)
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)


async def _level(told: dict[str, Any], folder: Path) -> Level:
    level = await find_level(told["wanted"], workspaces=folder)
    without = told["without"]
    nothing: dict[str, Any] = {"spaces": "none", "landlock": 0, "filter": False, "cgroup": None}
    return dataclasses.replace(level, **{name: nothing[name] for name in without})


class _listening:  # noqa: N801 - used as a function
    """Doors of ours: TCP, UDP, a name that is no file, two that are, for everybody, and a terminal."""

    def __init__(self, folder: Path) -> None:
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self._name = f"hostile-{folder.name}"
        self._abstract = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._abstract.bind("\0" + self._name)
        self._abstract.listen()
        self._door = _for_everybody(socket.SOCK_STREAM, folder / "door")
        self._door.listen()
        self._letter_box = _for_everybody(socket.SOCK_DGRAM, folder / "letter box")
        self._terminal = os.openpty()

    def __enter__(self) -> dict[str, Any]:
        ports = {"TCP": self._tcp.getsockname()[1], "UDP": self._udp.getsockname()[1]}
        return ports | {"ABSTRACT": self._name, "TERMINAL": os.ttyname(self._terminal[1])}

    def __exit__(self, *_: object) -> None:
        for each in (self._tcp, self._udp, self._abstract, self._door, self._letter_box):
            each.close()
        for descriptor in self._terminal:
            os.close(descriptor)


def _for_everybody(kind: int, path: Path) -> socket.socket:
    found = socket.socket(socket.AF_UNIX, kind)
    found.bind(str(path))
    path.chmod(0o777)
    return found


async def _run(level: Level, bounds: dict[str, Any], way: dict[str, Any], folder: Path, open_ports: Any) -> Any:
    workspace = folder / "workspace"
    workspace.mkdir(mode=0o700, exist_ok=True)
    sandbox = Sandbox(level, bounds=CommandBounds(**bounds), workspace=workspace, area=folder / "area")
    known = {"DRIVER": str(os.getpid()), "FOLDER": str(folder), "NONCE": way["nonce"]}
    known |= {name: str(value) for name, value in open_ports.items()}
    command = SandboxCommand(
        argv=tuple(sys.executable if word == "python" else word for word in way["argv"]),
        timeout_s=way.get("timeout_s", 20.0),
        network=way.get("network", False),
        ports=(open_ports["TCP"],) if way.get("port_is_allowed") else (443,),
        environ=known,
    )
    filler = _filled(folder) if way.get("disk_is_full") else None
    began = time.monotonic()
    try:
        ran = dataclasses.asdict(await sandbox.run(command, on_line=lambda _: None))
    except SandboxError as error:
        ran = {"refused": str(error)}
    took_s = time.monotonic() - began
    sandbox.close()
    if filler is not None:
        clear(filler)
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    removed = clear(workspace)
    afterwards = await _afterwards(level, bounds, folder)
    left_in_area = [each.name for each in (folder / "area").iterdir()]
    return ran | {
        "took_s": took_s,
        "largest_bytes": largest,
        "afterwards": afterwards,
        "removed": removed,
        "area": left_in_area,
        "open": [each.name for each in (folder / "open").iterdir()],
    }


def _filled(folder: Path) -> Path:
    """By somebody else, to the last byte."""
    filler = folder / "filler"
    filler.mkdir()
    while free := free_bytes(folder):
        with (filler / str(free)).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, min(free, LARGEST_FILLER))
    return filler


async def _afterwards(level: Level, bounds: dict[str, Any], folder: Path) -> str:
    (folder / "next").mkdir(mode=0o700)
    sandbox = Sandbox(level, bounds=CommandBounds(**bounds), workspace=folder / "next", area=folder / "area")
    ran = await sandbox.run(SandboxCommand(argv=("echo", "still", "here"), timeout_s=20), on_line=lambda _: None)
    sandbox.close()
    return ran.output_tail.strip()


if __name__ == "__main__":
    asyncio.run(main())

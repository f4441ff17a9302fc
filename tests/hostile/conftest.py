"""Levels to be hostile in, and the bounds around all of it: a containment that fails must not take the machine down."""

import contextlib
import json
import os
import resource
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from services.worker.sandbox.remains import clear
from tests.fixtures.backend import missing
from tests.fixtures.pythons import python_for

MIB = 1024 * 1024
STRANGER = 57_999  # a user that nobody is
BOUNDS = {
    "memory_bytes": 256 * MIB,
    "processes": 64,
    "open_files": 256,
    "file_bytes": 48 * MIB,
    "disk_bytes": 64 * MIB,
    "cpu_s": 20.0,
    "output_bytes": MIB,
}
DRIVER = Path(__file__).parent / "driver.py"
SHARED_FOLDERS = ("/dev/shm", "/tmp", "/var/tmp")  # noqa: S108 - they are looked at
REFUSED = {"EPERM", "EACCES", "ENOENT", "ESRCH", "EROFS", "ENOSYS"}
UNREACHED = {"ECONNREFUSED", "ENETUNREACH", "EACCES", "EPERM"}
OUTER_S = 60
OUTER_MEMORY = 1536 * MIB
OUTER_PROCESSES = 1500


@dataclass(frozen=True)
class Place:
    """A level, as one kind of worker finds it."""

    name: str
    wanted: str = "plain"
    without: tuple[str, ...] = ()
    as_root: bool = False
    lacks: frozenset[str] = field(default_factory=frozenset)

    def __str__(self) -> str:
        return self.name


PLACES = (
    Place("bubblewrap-root", wanted="bubblewrap", as_root=True),
    Place("bubblewrap-user", wanted="bubblewrap"),
    Place("plain-root", as_root=True),
    Place("plain-user"),
    Place("plain-root-in-a-container", as_root=True, without=("spaces",)),
    Place("plain-user-in-a-container", without=("spaces",)),
)


class Hostile:
    """Runs scripts in one place."""

    def __init__(self, place: Place, groups: list[Path]) -> None:
        self.place = place
        self._groups = groups

    def run(self, *argv: str, **how: Any) -> dict[str, Any]:
        """One command; what became of it, and of the driver."""
        nonce = uuid.uuid4().hex
        with self.started([{"argv": argv, "nonce": nonce, **how}]) as driver:
            said, complaints = driver.communicate(timeout=OUTER_S)
        assert driver.returncode == 0, complaints
        answer = json.loads(said)
        if "missing" in answer:
            missing(answer["missing"])
        return answer["ran"][0] | {"line": answer["line"], "left": living(nonce), "shared": _taken_away(nonce)}

    def python(self, script: str, **how: Any) -> dict[str, Any]:
        return self.run("python", "-I", "-c", script, **how)

    def shell(self, script: str, **how: Any) -> dict[str, Any]:
        return self.run("bash", "-c", script, **how)

    @contextlib.contextmanager
    def started(self, ways: list[dict[str, Any]]) -> Iterator[subprocess.Popen[str]]:
        uid = STRANGER if os.getuid() == 0 and not self.place.as_root else None
        folder = Path(tempfile.mkdtemp(prefix="hostile-"))
        told = {
            "folder": str(folder),
            "wanted": self.place.wanted,
            "without": self.place.without,
            "uid": uid,
            "bounds": BOUNDS,
            "ways": ways,
        }
        driver = subprocess.Popen(  # noqa: S603 - ours
            [python_for(STRANGER if "spaces" in self.place.without and os.getuid() == 0 else uid), "-I", str(DRIVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PLANTED": "a planted secret"},
            preexec_fn=self._bound,  # noqa: PLW1509 - no threads here
        )
        assert driver.stdin is not None
        driver.stdin.write(json.dumps(told) + "\n")
        driver.stdin.flush()
        try:
            yield driver
        finally:
            driver.kill()
            driver.wait()
            clear(folder)
            for stream in (driver.stdin, driver.stdout, driver.stderr):
                if stream is not None:
                    stream.close()

    def _bound(self) -> None:
        for group in self._groups:
            (group / "cgroup.procs").write_text("0", encoding="ascii")
        resource.setrlimit(resource.RLIMIT_AS, (4 * 1024 * MIB, 4 * 1024 * MIB))
        resource.setrlimit(resource.RLIMIT_FSIZE, (256 * MIB, 256 * MIB))
        resource.setrlimit(resource.RLIMIT_CPU, (OUTER_S, OUTER_S))


def living(nonce: str) -> list[str]:
    """Processes with this in what they were started with."""
    found = list[str]()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if nonce.encode() in (path / "environ").read_bytes():
                found.append((path / "cmdline").read_text(encoding="utf-8", errors="replace"))
    return found


def _taken_away(nonce: str) -> list[str]:
    """What was written where anybody may write."""
    found = [path for folder in SHARED_FOLDERS for path in Path(folder).glob(f"{nonce}*")]
    for path in found:
        path.unlink()
    return [str(path) for path in found]


@pytest.fixture(scope="session")
def outer_groups() -> Iterator[list[Path]]:
    """Cgroups of either version, where this user may make any."""
    made = list[Path]()
    root = Path("/sys/fs/cgroup")
    for parent, bounds in (
        (root / "pids", {"pids.max": OUTER_PROCESSES}),
        (root / "memory", {"memory.limit_in_bytes": OUTER_MEMORY}),
        (root, {"pids.max": OUTER_PROCESSES, "memory.max": OUTER_MEMORY}),
    ):
        group = parent / f"headgate-hostile-{os.getpid()}"
        with contextlib.suppress(OSError):
            if not all(any(parent.glob(f"*/{name}")) for name in bounds):
                continue
            group.mkdir()
            made.append(group)
            for name, value in bounds.items():
                (group / name).write_text(str(value), encoding="ascii")
    yield made
    for group in made:
        _remove(group)


def _remove(group: Path) -> None:
    """It is busy for a moment after its last process."""
    for _ in range(500):
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.01)


@pytest.fixture(params=PLACES, ids=str)
def place(request: pytest.FixtureRequest) -> Place:
    return request.param


@pytest.fixture
def hostile(place: Place, outer_groups: list[Path]) -> Hostile:
    if place.as_root and os.getuid() != 0:
        pytest.skip("a worker that is root needs tests that are root")
    return Hostile(place, outer_groups)

"""A PostgreSQL of Debian's for one run: its own cluster in a folder of its own, on a socket in it, every commit synced.

It refuses to run as root, so there it runs as Debian's own user for it, by `setpriv`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from libs.local.process import ServerProcess
from tests.bench.environments import NotMadeError

USER: Final = "postgres"
ANYWHERE: Final = Path("/tmp")  # noqa: S108 - a folder that another user may enter, and whose name a socket can bear


class PostgresServer(ServerProcess):
    """One, for users who may open its socket."""

    ready_line = "database system is ready to accept connections"

    def __init__(self, folder: Path) -> None:
        super().__init__(name="postgres", folder=folder)
        self._data = folder / "data"

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@/postgres?host={self.folder}"

    def choose_ports(self) -> None:
        """It has none."""

    def prepare(self) -> list[str]:
        if not self._data.exists():
            made = ["--auth", "trust", "--username", USER, "--encoding", "UTF8", "--locale", "C", str(self._data)]
            command = [*_as_another(), str(binary("initdb")), *made]
            subprocess.run(command, check=True, capture_output=True, cwd=self.folder)  # noqa: S603 - Debian's own
        told = ["-D", str(self._data), "-k", str(self.folder), "-c", "listen_addresses=", "-c", "synchronous_commit=on"]
        return [*_as_another(), str(binary("postgres")), *told]


def binary(name: str) -> Path:
    """Debian's newest."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    if not found:
        raise NotMadeError("PostgreSQL", "it is not installed (Debian: postgresql)")
    return found[-1]


@asynccontextmanager
async def postgres() -> AsyncIterator[PostgresServer]:
    """One that is ready, and whose folder is gone afterwards."""
    binary("postgres")
    folder = Path(mkdtemp(prefix="headgate-bench-", dir=ANYWHERE))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, USER, USER)
        async with PostgresServer(folder) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _as_another() -> list[str]:
    """What makes a command one of a user whom it takes."""
    if os.geteuid() != 0:
        return []
    try:
        user = pwd.getpwnam(USER)
    except KeyError:
        raise NotMadeError("PostgreSQL", "it refuses root, and there is no user postgres") from None
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]

"""The supervisor's side of the fork server (`forking`).

Owns the socket to it. A caller that needs a fork starts the server if there is none. Linux alone: elsewhere a process
that has loaded a system library may not be forked, and none ends with its parent. Quick to import: it is launched
before anything else of `headgate up` is.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Final

from libs.local.environments import of_service
from libs.local.errors import ServerDidNotStart
from libs.local.forking import WORD_BYTES, ForkedProcess, ForkRequest
from libs.local.process import ChildProcess
from libs.local.tether import is_linux

ANSWERS_WITHIN_S: Final = 120.0  # it loads the module first, on a busy machine; an idle one needs 1
MODULES: Final[Mapping[str, str]] = {  # whose start is waited for longest comes first
    name: f"services.{name}" for name in ("scheduler", "worker", "admission", "notifier")
}
NOWHERE: Final = Path("/")  # no module is found there


def can_fork() -> bool:
    """Whether what is forked here ends with the one that has forked it."""
    return is_linux()


def launched() -> "ForkServer | None":
    """One that loads the four services from now on; null where each has to load its own."""
    if not can_fork():
        return None
    forks = ForkServer(tuple(MODULES.values()), folder=NOWHERE)
    forks.launch()
    return forks


class ForkServer(ChildProcess):
    """Loads these modules once. What it says before it has a folder is not kept: the next one says it again."""

    def __init__(self, modules: Sequence[str], *, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(name="forks", folder=folder)
        self.environment = of_service("", os.environ) if environment is None else environment
        self._modules = modules
        self._requests: socket.socket | None = None

    def prepare(self) -> list[str]:
        return [sys.executable, "-m", "libs.local.forking", str(self.inherited[0]), *self._modules]

    def launch(self) -> None:
        """It loads from now on. May be said before there is a loop."""
        if self.running:
            return
        self._hang_up()
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.inherited = (theirs.fileno(),)
            self._spawn()

    def settle(self, folder: Path) -> None:
        """Its log is there from the next start on, and so are those of what it forks."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.log_path = folder, folder / f"{self.name}.log"

    async def start(self) -> None:
        self.launch()

    async def stop(self) -> None:
        await super().stop()
        self._hang_up()

    async def fork(self, request: ForkRequest, *, name: str, log: IO[bytes]) -> ForkedProcess:
        """Until it is there. Raises ServerDidNotStart where the server dies meanwhile: the next one has another."""
        self.launch()
        assert self._requests is not None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with ExitStack() as closing:
            closing.enter_context(ours)
            with theirs, suppress(OSError):  # the answer then says it: there is none
                socket.send_fds(self._requests, [request.encoded()], [log.fileno(), theirs.fileno()])
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                word = await asyncio.get_running_loop().sock_recv(ours, WORD_BYTES)
            if word:
                closing.pop_all()
                return ForkedProcess(int(word), ours)
        raise ServerDidNotStart(name=name, said=self.last_words(), log=self.log_path)

    def _opened_log(self) -> IO[bytes]:
        return Path(os.devnull).open("ab") if self.folder == NOWHERE else super()._opened_log()

    def _hang_up(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None

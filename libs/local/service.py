"""One of the four services as a process of this machine.

Owns its port, its environment and the question whether it is ready. It runs from its start on, ready or not: a service
waits for its servers by itself.
"""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from libs.local.forking import ForkRequest
from libs.local.forks import ForkServer
from libs.local.ports import free_ports
from libs.local.process import ChildProcess

HOST: Final = "127.0.0.1"
ANSWER_WITHIN_S: Final = 2.0


class ServiceProcess(ChildProcess):
    """`python -m <module>`, or a fork that has loaded it, with this environment and a port."""

    def __init__(
        self,
        module: str,
        *,
        name: str,
        folder: Path,
        environment: Mapping[str, str],
        forks: ForkServer | None = None,
    ) -> None:
        super().__init__(name=name, folder=folder)
        self.port = free_ports(1)[0]
        self.module = module
        self.notes: tuple[str, ...] = ()  # what it says of itself beside that it is ready
        self._told = environment
        self._forks = forks

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def prepare(self) -> list[str]:
        if self.exit_code is not None and not self.has_served:
            self.port = free_ports(1)[0]  # it may have ended because of the old one, which nobody knows yet
        self.environment = {**self._told, "HEADGATE_HTTP_HOST": HOST, "HEADGATE_HTTP_PORT": str(self.port)}
        return [sys.executable, "-m", self.module]

    async def start(self) -> None:
        if self._forks is None:
            await super().start()
        elif not self.running:
            self.prepare()
            asked = ForkRequest(self.module, self.environment or {})
            with self._opened_log() as log:
                self._child = await self._forks.fork(asked, name=self.name, log=log)

    async def ready(self) -> bool:
        """What it says itself. It keeps its port from then on."""
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                answer = await _answer(self.port)
        except (OSError, TimeoutError):
            return False
        head, _, body = answer.partition(b"\r\n\r\n")
        says_so = head.split(b" ")[1:2] == [b"200"]
        self.notes = tuple(body.decode(errors="replace").splitlines()[1:]) if says_so else ()
        self.has_served = self.has_served or says_so
        return says_so


async def _answer(port: int) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: headgate\r\nConnection: close\r\n\r\n")
        return await reader.read()
    finally:
        writer.close()

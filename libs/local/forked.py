"""The supervisor's side of a process that the fork server has forked: a socket on which that tells its end."""

import os
import signal
import socket
from contextlib import suppress
from typing import Final

WORD_BYTES: Final = 64


class ForkedProcess:
    """One that the fork server has forked, as `subprocess.Popen` shows a child."""

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self._code: int | None = None
        self._channel = channel

    def poll(self) -> int | None:
        """Its exit code, once it has ended: with the fork server, in whatever way that did."""
        with suppress(BlockingIOError):
            if self._code is None:
                word = self._channel.recv(WORD_BYTES)
                self._code = int(word) if word else -signal.SIGKILL
                self._channel.close()
        return self._code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

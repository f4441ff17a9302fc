"""One process of ours: its life, its log, and the signals that end or freeze it.

Owns the child process and its log file. Knows neither NATS nor Valkey nor a service: a subclass says what to run. Of a
server it also says which line of the log means "ready": readiness is read from there and not from the port, where a
stranger might answer.
"""

import asyncio
import json
import math
import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, Self, cast

from libs.local.environments import of_machine
from libs.local.errors import ServerDidNotStart, ServerDidNotStop, ServerNotReady, ServerNotRunning, ServerPortTaken
from libs.local.forking import ForkedProcess
from libs.local.tether import ending_with_parent, is_linux, tether
from libs.runtime.terminal import without_credentials

LOOK_EVERY_S: Final = 0.005
START_WITHIN_S = 120.0  # nats-server reads what it has stored first; an idle one that has nothing needs 0.05
LAST_BYTES = 16_384
STOP_WITHIN_S = 30.0  # the same; nats-server flushes its stores first, a service hands its jobs over

Running = subprocess.Popen[bytes] | ForkedProcess


class ChildProcess(ABC):
    """Starts, stops, kills, freezes and thaws; each may be called twice."""

    environment: Mapping[str, str] | None = None  # what all of this machine may know, where it has none of its own
    inherited: Sequence[int] = ()  # what is open here and stays open there, under the same number

    def __init__(self, *, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.log_path = folder / f"{name}.log"
        self.has_served = False
        self._child: Running | None = None
        self._log_start = 0

    @abstractmethod
    def prepare(self) -> list[str]:
        """Writes what the process reads at its start, and returns the command."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop()

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int:
        return self._running_child("asked for its pid").pid

    @property
    def exit_code(self) -> int | None:
        """Of the last run, once it has ended. A negative one is a signal's number."""
        return None if self._child is None else self._child.poll()

    async def start(self) -> None:
        """Until it runs. What it does then is not waited for."""
        if not self.running:
            self._spawn()

    async def stop(self) -> None:
        """SIGTERM, then the wait for its end; where that does not come, by force. A frozen one is thawed first, as it
        could not hear otherwise."""
        if self._child is None or not self.running:
            self._let_go()
            return
        self.resume()
        self._child.send_signal(signal.SIGTERM)
        try:
            await self._ended()
        except ServerDidNotStop:
            await self.kill()

    def hurry(self) -> None:
        """Another SIGTERM."""
        if self._child is not None and self.running:
            self._child.send_signal(signal.SIGTERM)

    async def kill(self) -> None:
        """SIGKILL: what a crash is to its files and to its clients."""
        if self._child is None or not self.running:
            return
        self._child.kill()
        await self._ended()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def pause(self) -> None:
        """SIGSTOP: connections stay open, nothing answers."""
        self._running_child("paused").send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._running_child("resumed").send_signal(signal.SIGCONT)

    def words(self) -> str:
        """What the present process has written; earlier ones' lines stay in the file for people."""
        with self.log_path.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def last_words(self) -> str:
        """The line that tells most of how the present process ended, or of what it does."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(max(self._log_start, log.seek(0, os.SEEK_END) - LAST_BYTES))
                return last_words(log.read().decode(errors="replace"))
        except OSError:  # somebody has removed it
            return last_words("")

    def _running_child(self, done: str) -> Running:
        if self._child is None or not self.running:
            raise ServerNotRunning(name=self.name, done=done)
        return self._child

    def _spawn(self) -> Running:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = self.prepare()
        with self._opened_log() as log:
            self._child = subprocess.Popen(  # noqa: S603 - our own binary
                command,
                cwd=self.folder,
                env=of_machine(os.environ) if self.environment is None else self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=self.inherited,
                start_new_session=True,  # Ctrl-C is for us: we stop a server after those who need it
                preexec_fn=ending_with_parent() if is_linux() else None,  # noqa: PLW1509 - one call, no lock taken
            )
        if not is_linux():
            tether().hold(self._child.pid)
        return self._child

    def _opened_log(self) -> IO[bytes]:
        """For the next process: the one before it has ended."""
        self._let_go()
        log = self.log_path.open("ab")
        self._log_start = log.tell()
        return log

    def _let_go(self) -> None:
        """Its number may soon be another's."""
        if self._child is not None and not is_linux():
            tether().let_go(self._child.pid)

    async def _ended(self) -> None:
        child = self._child
        if child is None:
            return
        if not await until(lambda: child.poll() is not None, within_s=STOP_WITHIN_S):
            raise ServerDidNotStop(name=self.name, pid=child.pid, within_s=STOP_WITHIN_S)
        self._let_go()


class ServerProcess(ChildProcess):
    """One that others connect to: it has started when it serves. `start` after an end keeps ports and data."""

    ready_line: str  # what the server writes into its log once it serves

    @abstractmethod
    def choose_ports(self) -> None:
        """Takes other ports; called only as long as nobody can know the old ones."""

    async def start(self) -> None:
        """Until it serves. A port that is in use is left for another at first, and waited for later on."""
        if self.running:
            return
        give_up_at = asyncio.get_running_loop().time() + START_WITHIN_S
        while True:
            try:
                await self._ready(self._spawn())
            except ServerPortTaken:
                if asyncio.get_running_loop().time() > give_up_at:
                    raise
                await self._make_way()
            else:
                self.has_served = True
                return

    async def _ready(self, child: Running) -> None:
        in_time = await until(
            lambda: self.ready_line in self.words() or child.poll() is not None, within_s=START_WITHIN_S
        )
        if child.poll() is not None:
            raise self._start_failure()
        if not in_time:
            await self.kill()
            said = self.last_words()
            raise ServerNotReady(name=self.name, within_s=START_WITHIN_S, said=said, log=self.log_path)

    def _start_failure(self) -> ServerDidNotStart:
        taken = "address already in use" in self.words().lower()
        kind = ServerPortTaken if taken else ServerDidNotStart
        return kind(name=self.name, said=self.last_words(), log=self.log_path)

    async def _make_way(self) -> None:
        if self.has_served:
            await asyncio.sleep(0.1)  # clients know this port: wait until it is free again
        else:
            self.choose_ports()


async def until(check: Callable[[], bool], *, within_s: float = math.inf, every_s: float = LOOK_EVERY_S) -> bool:
    """Whether it became true within that time. What it means if not, its caller says."""
    time = asyncio.get_running_loop().time
    give_up_at = time() + within_s
    while not check():
        if time() >= give_up_at:
            return False
        await asyncio.sleep(every_s)
    return True


LONGEST: Final = 300
FAULTS: Final = frozenset({"ERROR", "CRITICAL"})
NOTHING: Final = "(nothing)"


def last_words(log: str) -> str:
    """The last line, unless that only tells of the ending which a fault before it has caused."""
    lines = [line for line in log.splitlines() if line.strip()]
    if not lines:
        return NOTHING
    told = [_record(line) for line in lines]
    last = len(lines) - 1
    faults = [number for number, record in enumerate(told) if record.get("level") in FAULTS]
    if faults and told[last]:
        last = faults[-1]
    return without_credentials(_sentence(told[last]) or lines[last].strip())[:LONGEST]


def _sentence(record: Mapping[str, Any]) -> str:
    """Its message, and the last line of the fault that it tells of."""
    exception = str(record.get("exception", "")).strip().rpartition("\n")[2]
    return ": ".join(filter(None, (str(record.get("message", "")), exception)))


def _record(line: str) -> Mapping[str, Any]:
    """Empty where it is no JSON."""
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", record) if isinstance(record, dict) else {}

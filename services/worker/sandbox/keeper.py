"""The process that keeps a command: starts it, watches it, ends all of it, and says how it went.

    attempt ──order, then one word──► keeper ──fork──► the command and whatever it starts
            ◄──how it ended──────────   │ ▲                                 │
                                        └─┴── looks, signals, buries ◄──────┘ (also what was let go)

It does not outlive its attempt: when the attempt's process is gone, however it went, the socket ends, and with it the
whole tree and then the keeper. It stands in a session of its own, so no signal to the attempt's group ends it before
its work is done. It has no secret, no connection and one thread; whatever it says about a command is true when it says
it: nothing of it is left.
"""

import dataclasses
import json
import os
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Final

from services.worker.sandbox import cgroup, launch
from services.worker.sandbox.command import EndedBy, KeeperOrder, Ran
from services.worker.sandbox.group import ProcessGroup
from services.worker.sandbox.kinship import adopt_orphans, adopts_orphans, child_ends, keep_private
from services.worker.sandbox.spaces import as_a_shell_says
from services.worker.sandbox.tree import ProcessTree
from services.worker.sandbox.watch import Disk, Processes

LOOK_EVERY_S: Final = 0.1
AROUND: Final = {"bubblewrap": 2, "spaces": 2, "none": 0}  # processes of ours around the command
PATIENT: Final = ("time", "cancel")  # ends that the command is asked for first


@dataclasses.dataclass(frozen=True, slots=True)
class KeeperReport:
    """To the attempt, once: how it ended, or why it could not begin."""

    exit_code: int | None = None
    ended_by: EndedBy = "itself"
    refused: str | None = None

    def ran(self, output_tail: str) -> Ran:
        return Ran(self.exit_code if self.ended_by == "itself" else None, self.ended_by, output_tail)


class Keeper:
    """The process that keeps one command."""

    def __init__(self, order: KeeperOrder, channel: socket.socket, group: cgroup.CommandCgroup | None) -> None:
        self._order = order
        self._channel = channel
        self._group = group
        self._until_s = time.monotonic() + order.timeout_s
        around = (
            "bubblewrap" if order.level.name == "bubblewrap" else "none" if order.level.spaces == "none" else "spaces"
        )
        self._processes = Processes(order.bounds, spared=AROUND[around])
        self._disk = Disk((order.workspace, order.scratch), bound=order.bounds.disk_bytes)
        self._words = b""  # of the one that becomes the command
        self._attempt = os.getppid()
        self._hung_up = False

    def keep(self, output: int) -> KeeperReport | None:
        """Until nothing is left of it. Null where the attempt that waited is gone."""
        ours, theirs = socket.socketpair()
        first = os.fork()
        if first == 0:
            launch.become(self._order, channel=theirs.fileno(), output=output)
        theirs.close()
        os.close(output)
        tree = ProcessTree(first) if adopts_orphans() else ProcessGroup(first)
        cause = self._until_over(tree, ours)
        self._end(tree, cause)
        if cause is None and self._disk.exceeded_in_the_end():
            cause = "disk"
        self._words += _rest_of(ours)
        return None if self._hung_up else self._told(tree, cause)

    def _until_over(self, tree: ProcessTree, words: socket.socket) -> EndedBy | None:
        """Why it is to be ended; null where it has ended itself, or its caller waits no more."""
        with child_ends() as ends, selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ, self._hear)
            selector.register(words, selectors.EVENT_READ, lambda: self._hear_start(words, selector))
            selector.register(ends, selectors.EVENT_READ, lambda: ends.recv(4096) and None)
            while tree.reap() and tree.status is None and not self._is_alone():
                cause = self._cause(tree)
                for key, _ in selector.select(self._patience_s()) if cause is None else ():
                    cause = key.data() or cause
                if cause is not None:
                    return cause
        return self._group.exceeded() if self._group and tree.status else None

    def _is_alone(self) -> bool:
        self._hung_up = self._hung_up or os.getppid() != self._attempt
        return self._hung_up

    def _patience_s(self) -> float:
        return max(0.0, min(LOOK_EVERY_S, self._until_s - time.monotonic()))

    def _cause(self, tree: ProcessTree) -> EndedBy | None:
        members = tree.members()
        if time.monotonic() >= self._until_s:
            return "time"
        if self._disk.exceeded(members):
            return "disk"
        return (self._group.exceeded() if self._group else None) or self._processes.exceeded(members)

    def _hear(self) -> EndedBy | None:
        """What the attempt wants, or that it is gone."""
        match self._channel.recv(64):
            case b"cancel\n":
                return "cancel"
            case b"output\n":
                return "output"
            case _:
                self._hung_up = True
                return None

    def _hear_start(self, words: socket.socket, selector: selectors.BaseSelector) -> None:
        heard = words.recv(4096)
        self._words += heard
        if not heard:
            selector.unregister(words)

    def _end(self, tree: ProcessTree, cause: EndedBy | None) -> None:
        if cause in PATIENT:
            around = [tree.first] if self._order.level.name == "bubblewrap" else []  # with it all of it would end
            tree.ask(spared=around)
            if tree.wait(self._order.grace_s):
                return
        if self._group is not None:
            self._group.kill()
        tree.kill()

    def _told(self, tree: ProcessTree, cause: EndedBy | None) -> KeeperReport:
        if cause is None and launch.STARTED not in self._words:
            return KeeperReport(refused=self._words.decode(errors="replace") or "it ended before it began")
        code = None if tree.status is None else as_a_shell_says(tree.status)
        return KeeperReport(exit_code=code, ended_by=cause or "itself")


def _rest_of(words: socket.socket) -> bytes:
    with words:
        words.setblocking(False)
        with suppress(BlockingIOError, ConnectionError):
            return words.recv(4096)
    return b""


def _prepare() -> None:
    """Hidden from the command, adopting what it lets go, told when the attempt dies in whatever way."""
    keep_private()
    adopt_orphans()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)  # the socket says it
    os.umask(0o077)


def _order(channel: socket.socket) -> KeeperOrder | None:
    told = b""
    while not told.endswith(b"\n"):
        part = channel.recv(65536)
        if not part:
            return None
        told += part
    return KeeperOrder.read(json.loads(told))


def main() -> None:
    channel, output = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    for descriptor in (channel.fileno(), output):
        os.set_inheritable(descriptor, False)
    _prepare()
    order = _order(channel)
    if order is None:
        return
    try:
        group = cgroup.make(order.level.cgroup, order.bounds) if order.level.cgroup else None
    except OSError as error:
        told = KeeperReport(refused=f"a group in {order.level.cgroup} could not be made: {error}")
    else:
        order = dataclasses.replace(order, cgroup=str(group.folder)) if group else order
        told = Keeper(order, channel, group).keep(output)
        if group is not None:
            group.remove()
    if told is not None:
        with suppress(ConnectionError):
            channel.sendall(json.dumps(dataclasses.asdict(told)).encode() + b"\n")


if __name__ == "__main__":
    main()

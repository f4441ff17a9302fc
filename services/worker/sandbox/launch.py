"""From a fork of the keeper to the first instruction of a stranger's program.

Owns the order in which a process gives up what it could do: it leaves the keeper's files behind, enters namespaces (its
own, or bubblewrap's), takes limits, becomes a user of its own, fences itself in, and only then becomes the command. A
step that fails ends it: it says why over the channel, and nothing of the command has run.
"""

import json
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import Final, NoReturn

from services.worker.sandbox import bubblewrap, cgroup, filter, kernel, landlock, spaces  # noqa: A004 - says what it is
from services.worker.sandbox.command import KeeperOrder
from services.worker.sandbox.kinship import allow_reading, end_before_others, end_with_parent
from services.worker.sandbox.system import CONFIGURATION, KERNEL, PROGRAMS, RESOLVERS

STARTED: Final = b"+"  # over the channel, right before the program begins
NOT_RUN: Final = 125
NOT_ALLOWED: Final = 126  # both as in a shell
NOT_FOUND: Final = 127
MAX_DESCRIPTORS: Final = 4096  # far more than a keeper ever opens
NICENESS: Final = 5  # heartbeats come first
DNS: Final = 53
SPARE: Final = 16  # processes above the bound: so that who goes beyond it is seen there, and ended
CROWD: Final = 1024  # where others' processes count too
RESERVED_BYTES: Final = 8 * 1024**3  # of addresses, beside the memory: what is only reserved costs nothing


def become(order: KeeperOrder, *, channel: int, output: int) -> NoReturn:
    """In a fork of the keeper."""
    try:
        _leave_the_keeper(channel, output)
        cgroup.join(order.cgroup)
        if order.level.name == "bubblewrap":
            bubblewrap.enter(order, channel)
        if order.level.spaces != "none":
            spaces.enter(order, channel)
        _settle(order)
        _run(order, channel)
    except OSError as error:
        _give_up(channel, error)


def inside() -> NoReturn:
    """In bubblewrap's namespaces, in a fresh interpreter: what is left to do there."""
    told, channel = (int(word) for word in sys.argv[1:3])
    try:
        with os.fdopen(told, "rb") as file:
            order = KeeperOrder.read(json.loads(file.read()))
        os.set_inheritable(channel, False)
        _settle(order)
        _run(order, channel)
    except OSError as error:
        _give_up(channel, error)


def _give_up(channel: int, error: OSError) -> NoReturn:
    with suppress(OSError):
        os.write(channel, str(error).encode()[:4096])
    os._exit(NOT_RUN)


def _leave_the_keeper(channel: int, output: int) -> None:
    allow_reading()
    signal.set_wakeup_fd(-1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard, descriptor in enumerate((nowhere, output, output)):
        os.dup2(descriptor, standard)
    os.closerange(3, channel)
    os.closerange(channel + 1, MAX_DESCRIPTORS)
    os.umask(0o022)  # for the folders on the way to what is mounted
    os.nice(NICENESS)
    end_before_others(1000)


def _settle(order: KeeperOrder) -> None:
    """Limits, user, place, fence, filter: in this order each is still possible. Who is trusted is not fenced in."""
    _limit(order)
    if order.uid is not None:
        os.setgroups([])
        os.setresgid(order.uid, order.uid, order.uid)
        os.setresuid(order.uid, order.uid, order.uid)
    if not order.level.own_processes:
        end_with_parent()
    with suppress(PermissionError):  # it leads one already
        os.setsid()
    os.umask(0o077)
    os.chdir(order.cwd)
    if order.level.name == "trusted":
        return
    kernel.prctl(kernel.NO_NEW_PRIVILEGES, 1)
    landlock.restrict(_fence(order), version=order.level.landlock)
    if order.level.filter:
        filter.install(network="shared" if order.network else "own" if order.level.own_processes else "none")


def _limit(order: KeeperOrder) -> None:
    bounds = order.bounds
    for name, most in (
        ("CPU", round(bounds.cpu_s) or 1),
        ("DATA", bounds.memory_bytes),
        ("AS", bounds.memory_bytes + RESERVED_BYTES),
        ("NPROC", _most_processes(order)),
        ("NOFILE", bounds.open_files),
        ("FSIZE", bounds.file_bytes),
        ("CORE", 0),
        ("MSGQUEUE", 0),
    ):
        limited = getattr(resource, f"RLIMIT_{name}", None)
        if limited is not None:
            _set_limit(limited, most, is_needed=order.level.name != "trusted")


def _set_limit(limited: int, most: int, *, is_needed: bool) -> None:
    """Some systems know a limit and take none below what is in use already."""
    hard = resource.getrlimit(limited)[1]
    value = most if hard == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(limited, (value, value))
    except (ValueError, OSError):
        if is_needed:
            raise


def _most_processes(order: KeeperOrder) -> int:
    """The kernel counts by user, and in a user namespace apart. Where others count too it is a last resort only."""
    processes = order.bounds.processes
    counted_alone = order.uid is not None or order.level.own_processes
    return processes + SPARE if counted_alone else 4 * processes + CROWD


def _fence(order: KeeperOrder) -> landlock.Fence:
    ports = (*order.ports, DNS) if order.network else None
    if order.level.name == "bubblewrap":  # it has a system of files of its own
        return landlock.Fence(files=False, ports=ports)
    own = ("/dev/pts", "/dev/shm", "/tmp") if order.level.own_processes else ()  # noqa: S108 - its own there
    reads = (*PROGRAMS, *CONFIGURATION, *KERNEL, *RESOLVERS, *order.reads)
    return landlock.Fence(files=True, writes=(order.workspace, order.scratch, *own), reads=reads, ports=ports)


def _run(order: KeeperOrder, channel: int) -> NoReturn:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError):  # the C library's own
            signal.signal(number, signal.SIG_DFL)
    os.write(channel, STARTED)
    try:
        os.execvpe(order.argv[0], order.argv, order.environ)  # noqa: S606 - that is what all of this is for
    except (FileNotFoundError, NotADirectoryError):
        code, why = NOT_FOUND, "no such program"
    except OSError as error:
        code, why = NOT_ALLOWED, error.strerror
    os.write(2, f"{order.argv[0]}: {why}\n".encode())
    os._exit(code)

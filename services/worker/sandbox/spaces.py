"""Namespaces without bubblewrap: processes, network, IPC and mounts, by root's right or inside of a user namespace.

    keeper ── waits, outside ── first of its namespace ── the command
                                (reaps; when it ends, so does all that is in there)

Owns what a command sees then: its own processes, one network interface that leads nowhere, and a root with nothing in
it but the system, read-only, and its own folders. What is not there has no socket either that could be called by name.
"""

import fcntl
import os
import signal
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from services.worker.sandbox import kernel, landlock, system
from services.worker.sandbox.command import KeeperOrder
from services.worker.sandbox.kinship import end_with_parent

SET_INTERFACE_FLAGS: Final = 0x8914
UP_AND_RUNNING: Final = 0x41
NO_PROGRAMS: Final = 8
LINKS: Final = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/ptmx": "pts/ptmx",
}


def enter(order: KeeperOrder, channel: int) -> None:
    """Returns in the process that is to become the command; the two around it stay until it has ended."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is for the command, which hears it itself
    separate(by_root=order.level.spaces == "root", network=order.network)
    _arrange_files(order)
    if not order.network:
        raise_loopback()
    _wait_for_child(channel)
    # A container may forbid it: then the machine's is seen, and still no other process's memory can be read.
    with suppress(OSError):
        kernel.mount("proc", "/proc", "proc", flags=kernel.NO_SETUID | kernel.NO_DEVICES | NO_PROGRAMS)
    _wait_for_child(channel)


def separate(*, by_root: bool, network: bool) -> None:
    """For this process, and in part for its children alone."""
    flags = kernel.NEW_PROCESSES | kernel.NEW_IPC | kernel.NEW_MOUNTS | (0 if network else kernel.NEW_NETWORK)
    user, group = os.getuid(), os.getgid()
    kernel.unshare(flags if by_root else flags | kernel.NEW_USER)
    if not by_root:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    end_with_parent()  # last: it is forgotten with every change of rights
    kernel.mount(None, "/", None, flags=kernel.RECURSIVE | kernel.PRIVATE)


def _wait_for_child(channel: int) -> None:
    """Fork and return in the child. The parent reaps whatever becomes its own, and ends as that child did."""
    child = os.fork()
    if child == 0:
        end_with_parent()
        return
    os.close(channel)
    while True:
        ended, status = os.wait()
        if ended == child:
            os._exit(as_a_shell_says(status))


def as_a_shell_says(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _arrange_files(order: KeeperOrder) -> None:
    """A root of its own, in memory, with nothing in it but what a command is given; its own folders are writable."""
    root = order.scratch
    shared = {"/dev/shm": f"{order.scratch}/shm", "/tmp": f"{order.scratch}/tmp"}  # noqa: S108 - with itself alone
    mine = {path: path for path in (order.workspace, order.scratch)}
    own = shared | mine
    given = {path: path for path in _of_the_system()} | shared | {path: path for path in sorted(order.reads)} | mine
    opened = {path: _opened(source) for path, source in given.items()}  # before anything is laid over them
    kernel.mount("none", root, "tmpfs", flags=kernel.NO_SETUID | kernel.NO_DEVICES, data="mode=755,size=1m")
    for path, descriptor in opened.items():
        if descriptor is not None:
            _show(root + path, descriptor, flags=kernel.BIND if path in own else kernel.BIND | kernel.RECURSIVE)
    for name, leads_to in (LINKS | system.links()).items():
        Path(root + name).symlink_to(leads_to)
    Path(f"{root}/dev/pts").mkdir()
    kernel.mount(
        "devpts", f"{root}/dev/pts", "devpts", flags=kernel.NO_SETUID, data="newinstance,ptmxmode=0666,mode=600"
    )
    kernel.set_read_only(root)
    for path in own:
        kernel.set_writable(root + path)
    kernel.change_root(root)


def _of_the_system() -> Iterator[str]:
    links = system.links()
    yield from (path for path in system.PROGRAMS if path not in links)
    yield from (*system.CONFIGURATION, *system.KERNEL, *landlock.DEVICES)


def _opened(path: str) -> int | None:
    """What is not there, or cannot be reached, is not given."""
    try:
        return os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return None


def _show(path: str, descriptor: int, *, flags: int) -> None:
    target = Path(path)
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        target.mkdir(mode=0o755, exist_ok=True)
    elif not target.exists():
        target.touch()
    kernel.mount(f"/proc/self/fd/{descriptor}", path, None, flags=flags)
    os.close(descriptor)


def raise_loopback() -> None:
    """Tests talk to servers that they start themselves."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_INTERFACE_FLAGS, struct.pack("16sh14x", b"lo", UP_AND_RUNNING))

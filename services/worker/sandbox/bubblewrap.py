"""How bubblewrap is called: what it shows of the machine, and what it keeps.

Owns the arguments. Everything that is not a namespace or a mount is done by `launch.inside` once bubblewrap is done, so
that both levels take limits, users, fence and filter in the same way. Where the worker is root bubblewrap is too, and
the command becomes a user of its own inside; else a user namespace is made.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NoReturn

from services.worker.sandbox.command import KeeperOrder
from services.worker.sandbox.system import CONFIGURATION, PROGRAMS, links

ROOT: Final = str(Path(__file__).parents[3])
OURS: Final = str(Path(__file__).parent)
INSIDE: Final = f"import sys; sys.path.insert(0, {ROOT!r}); from services.worker.sandbox.launch import inside; inside()"


def enter(order: KeeperOrder, channel: int) -> NoReturn:
    told = os.memfd_create("order", 0)
    os.write(told, json.dumps(dataclasses.asdict(order)).encode())
    os.lseek(told, 0, os.SEEK_SET)
    os.set_inheritable(channel, True)
    program = str(order.level.bwrap)
    shim = (sys.executable, "-I", "-S", "-B", "-c", INSIDE, str(told), str(channel))
    os.execve(program, (program, *arguments(order), "--", *shim), {})  # noqa: S606 - found at start


def arguments(order: KeeperOrder) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    yield from () if order.network else ("--unshare-net",)
    yield from () if order.uid is not None else ("--unshare-user",)
    yield from ("--die-with-parent", "--new-session", "--hostname", "sandbox")
    yield from _system()
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from ("--bind", f"{order.scratch}/shm", "/dev/shm")  # noqa: S108 - its own
    yield from ("--bind", f"{order.scratch}/tmp", "/tmp")  # noqa: S108 - its own
    yield from ("--ro-bind-try", "/sys/devices/system/cpu", "/sys/devices/system/cpu")
    shown = sorted({*order.reads, OURS})
    for folder in _on_the_way((*shown, order.workspace, order.scratch)):
        yield from ("--dir", folder)  # else it is made with the rights of what is below, which may be none
    for path in shown:
        yield from ("--ro-bind-try", path, path)
    yield from ("--bind", order.workspace, order.workspace, "--bind", order.scratch, order.scratch)
    for made in ("/dev", "/"):  # in memory, and the command's own where the worker is no root: it would not be counted
        yield from ("--remount-ro", made)
    yield from ("--chdir", "/")


def _on_the_way(paths: Iterable[str]) -> list[str]:
    return sorted({str(folder) for path in paths for folder in Path(path).parents} - {"/"})


def _system() -> Iterator[str]:
    yield from ("--dir", "/etc")
    names = links()
    for path in (*PROGRAMS, *CONFIGURATION):
        yield from ("--symlink", names[path], path) if path in names else ("--ro-bind-try", path, path)

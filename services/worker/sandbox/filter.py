"""The filter on system calls, as the program that the kernel runs at each of them.

Owns what would undo the rest: other processes' memory, pace and limits, new namespaces and mounts, asynchronous calls
that no filter sees, memory that belongs to no process, and sockets that lead out where Landlock does not look. It
cannot be taken off. Refuses to know addresses: a filter sees numbers, not what they point to.
"""

import ctypes
import errno
import os
import platform
import socket
import struct
from dataclasses import dataclass
from typing import Final, Literal

from services.worker.sandbox import kernel
from services.worker.sandbox.calls import ABSENT, ARCHITECTURE, JUDGED, NEVER

Network = Literal["own", "shared", "none"]  # the machine's is shared

SECCOMP: Final = 22
FILTER: Final = 2
ALLOW: Final = 0x7FFF_0000
REFUSE: Final = 0x0005_0000  # with an error's number
KILL: Final = 0x8000_0000

_LOAD: Final = 0x20
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_ANY_BIT: Final = 0x45
_AND: Final = 0x54
_RETURN: Final = 0x06

_ARGUMENT: Final = (16, 24, 32, 40)  # where the lower half of each stands
_X32: Final = 0x4000_0000  # a second set of numbers on x86-64
_NEW_SPACES: Final = 0x7E02_0000  # namespaces of any kind
_SOCKET_KIND: Final = 0xF
_NETLINK: Final = 16  # which other systems do not name
_FAST_OPEN: Final = 0x2000_0000  # sends with it connect, and Landlock does not see it
_PROCESS_OF_DISKS: Final = 1  # what PRIO_PROCESS is to ioprio_set


@dataclass(frozen=True, slots=True)
class FilterStep:
    """One instruction. `then` and `otherwise` say how many of the following are left out."""

    code: int
    value: int
    then: int = 0
    otherwise: int = 0

    def packed(self) -> bytes:
        return struct.pack("HBBI", self.code, self.then, self.otherwise, self.value)


_ALLOWED: Final = FilterStep(_RETURN, ALLOW)


def install(*, network: Network) -> None:
    """For this process and all that it starts. Only in a network of its own it may make any socket, and be a server."""
    kernel.prctl(kernel.NO_NEW_PRIVILEGES, 1)
    content = b"".join(step.packed() for step in program(platform.machine(), network=network))
    steps = ctypes.create_string_buffer(content, len(content))
    whole = struct.pack("HxxxxxxP", len(content) // 8, ctypes.addressof(steps))
    header = ctypes.create_string_buffer(whole, len(whole))
    kernel.prctl_pointer(SECCOMP, FILTER, ctypes.addressof(header))


def supported() -> bool:
    return platform.machine() in ARCHITECTURE


def program(machine: str, *, network: Network) -> tuple[FilterStep, ...]:
    steps = [
        FilterStep(_LOAD, 4),
        FilterStep(_EQUAL, ARCHITECTURE[machine], then=1),
        FilterStep(_RETURN, KILL),
        FilterStep(_LOAD, 0),
    ]
    if machine == "x86_64":
        steps += [FilterStep(_AT_LEAST, _X32, otherwise=1), _refused(errno.ENOSYS)]
    for number in NEVER[machine].values():
        steps += _when(number, (_refused(errno.EPERM),))
    for number in ABSENT.values():
        steps += _when(number, (_refused(errno.ENOSYS),))
    for name, judgement in _judgements(network).items():
        steps += _when(JUDGED[machine][name], judgement)
    return (*steps, _ALLOWED)


def _judgements(network: Network) -> dict[str, tuple[FilterStep, ...]]:
    on_itself = _allow_where((0, 0))
    schedules = ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
    return {
        "clone": _refuse_where(0, FilterStep(_ANY_BIT, _NEW_SPACES), errno.EPERM),
        "prctl": _refuse_where(0, FilterStep(_EQUAL, kernel.DUMPABLE), errno.EPERM),
        "prlimit64": on_itself,
        **dict.fromkeys(schedules, on_itself),
        "setpriority": _allow_where((0, os.PRIO_PROCESS), (1, 0)),
        "ioprio_set": _allow_where((0, _PROCESS_OF_DISKS), (1, 0)),
        "sendto": _refuse_where(3, FilterStep(_ANY_BIT, _FAST_OPEN), errno.EOPNOTSUPP),
        "sendmsg": _refuse_where(2, FilterStep(_ANY_BIT, _FAST_OPEN), errno.EOPNOTSUPP),
        "sendmmsg": _refuse_where(3, FilterStep(_ANY_BIT, _FAST_OPEN), errno.EOPNOTSUPP),
        "socket": _sockets(network),
        "socketpair": (_ALLOWED,) if network == "own" else _connected_pairs(),
        "bind": (_refused(errno.EACCES) if network == "none" else _ALLOWED,),  # one of a pair can take a name too
        "listen": (_ALLOWED if network == "own" else _refused(errno.EACCES),),
    }


def _refused(error: int) -> FilterStep:
    return FilterStep(_RETURN, REFUSE | error)


def _when(number: int, steps: tuple[FilterStep, ...]) -> tuple[FilterStep, ...]:
    """These, for the call of this number. They end in an answer."""
    return (FilterStep(_EQUAL, number, otherwise=len(steps)), *steps)


def _refuse_where(argument: int, condition: FilterStep, error: int) -> tuple[FilterStep, ...]:
    condition = FilterStep(condition.code, condition.value, otherwise=1)
    return (FilterStep(_LOAD, _ARGUMENT[argument]), condition, _refused(error), _ALLOWED)


def _allow_where(*wanted: tuple[int, int]) -> tuple[FilterStep, ...]:
    """Each of these arguments has to be this."""
    steps = [
        step
        for argument, value in wanted
        for step in (FilterStep(_LOAD, _ARGUMENT[argument]), FilterStep(_EQUAL, value, then=1), _refused(errno.EPERM))
    ]
    return (*steps, _ALLOWED)


def _sockets(network: Network) -> tuple[FilterStep, ...]:
    """Plain TCP and UDP, and questions about interfaces. Local ones are for a network of its own: elsewhere their names
    are the machine's, in files (which no Landlock before Linux 7.1 keeps apart) and without.

    Protocols such as MPTCP are none of them: what bounds the ports of TCP does not see them.
    """
    if network == "none":
        return (_refused(errno.EACCES),)
    local = (FilterStep(_EQUAL, socket.AF_UNIX, otherwise=1), _ALLOWED) if network == "own" else ()
    plain = (
        FilterStep(_LOAD, _ARGUMENT[1]),
        FilterStep(_AND, _SOCKET_KIND),
        FilterStep(_EQUAL, socket.SOCK_STREAM, then=2),
        FilterStep(_EQUAL, socket.SOCK_DGRAM, then=1),
        _refused(errno.EACCES),
        FilterStep(_LOAD, _ARGUMENT[2]),
        FilterStep(_EQUAL, 0, then=2),
        FilterStep(_EQUAL, socket.IPPROTO_TCP, then=1),
        FilterStep(_EQUAL, socket.IPPROTO_UDP, otherwise=1),
        _ALLOWED,
        _refused(errno.EACCES),
    )
    links = (FilterStep(_LOAD, _ARGUMENT[2]), FilterStep(_EQUAL, 0, otherwise=1), _ALLOWED, _refused(errno.EACCES))
    return (
        FilterStep(_LOAD, _ARGUMENT[0]),
        *local,
        FilterStep(_EQUAL, _NETLINK, otherwise=len(links)),
        *links,
        FilterStep(_EQUAL, socket.AF_INET, then=2),
        FilterStep(_EQUAL, socket.AF_INET6, then=1),
        _refused(errno.EACCES),
        *plain,
    )


def _connected_pairs() -> tuple[FilterStep, ...]:
    """Of kinds that are connected for good: one of datagrams sends to any name."""
    return (
        FilterStep(_LOAD, _ARGUMENT[1]),
        FilterStep(_AND, _SOCKET_KIND),
        FilterStep(_EQUAL, socket.SOCK_STREAM, then=2),
        FilterStep(_EQUAL, socket.SOCK_SEQPACKET, then=1),
        _refused(errno.EACCES),
        _ALLOWED,
    )

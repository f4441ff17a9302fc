"""What a curious command tries. It prints what it found, as JSON; an empty answer means that it found nothing."""

# It opens what it likes, and strangers' folders are what it is after:
# ruff: noqa: PTH101, PTH123, PTH207, PTH208, PTH211, S108

import ctypes
import errno
import glob
import json
import os
import resource
import socket
import sys
from typing import Any

DRIVER, FOLDER, NONCE = int(os.environ["DRIVER"]), os.environ["FOLDER"], os.environ["NONCE"]
libc = ctypes.CDLL(None, use_errno=True)
found: dict[str, Any] = {}


def tried(name: str, attempt: Any) -> None:
    """Keep what it gave, or by what it was refused."""
    try:
        found[name] = attempt()
    except OSError as error:
        found[name] = errno.errorcode.get(error.errno or 0, str(error))


def called(name: str, number: int, *arguments: Any) -> None:
    def attempt() -> int:
        result = libc.syscall(number, *arguments)
        if result < 0:
            raise OSError(ctypes.get_errno(), name)
        return result

    tried(name, attempt)


def of_others(file: str) -> list[str]:
    """Files in /proc of processes that are not this one, and that could be read from."""
    opened = []
    for path in glob.glob(f"/proc/[0-9]*/{file}"):
        if path.split("/")[2] in {str(os.getpid()), "self"}:
            continue
        try:
            with open(path, "rb") as content:
                opened.append(content.read(1 << 20).decode(errors="replace") if file == "environ" else path)
        except OSError:
            pass
    return opened


def wrote(path: str) -> str:
    with open(path, "w") as file:
        file.write(NONCE)
    return "written"


def read(path: str) -> str:
    with open(path) as file:
        return file.read(20)


def connected(family: int, kind: int, address: Any) -> str:
    with socket.socket(family, kind) as one:
        one.settimeout(2)
        one.connect(address)
        one.send(b"hello")
    return "connected"


def beckoned(send: Any) -> str:
    """Connected by sending at once (TCP Fast Open), which is no call of `connect`."""
    with socket.socket() as one:
        send(one, 0x20000000, ("127.0.0.1", int(os.environ["TCP"])))
        return f"connected to {one.getpeername()}"


def posted(path: str) -> str:
    """By one of a pair, which needs no socket of its own to be made."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        one.sendto(b"hello", path)
    return "posted"


def served(address: Any, family: int = socket.AF_INET) -> str:
    with socket.socket(family) as one:
        if address:
            one.bind(address)
        one.listen()
    return "served"


def named(name: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind(name)
    return "named"


def touched(path: str) -> str:
    os.chmod(path, 0o644)
    return "changed"


def opened(path: str) -> str:
    os.close(os.open(path, os.O_RDWR | os.O_NOCTTY))
    return "opened"


def number(intel: int, arm: int) -> int:
    return intel if os.uname().machine == "x86_64" else arm


found["secrets"] = [text for text in of_others("environ") if "planted" in text]
found["memories"] = of_others("mem")
found["names"] = sorted(os.environ)
found["descriptors"] = sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1]
with open("/proc/self/status") as status:
    found["rights"] = [line.split()[1] for line in status if line.startswith(("CapEff", "CapPrm"))]
found["user"] = os.getuid()
found["session"] = os.getsid(0) == os.getpid() == os.getpgrp()
called("attach", number(101, 117), 16, DRIVER, 0, 0)
called("unshare", number(272, 97), 0x10000000)
called("io_uring", 425, 8, ctypes.create_string_buffer(256))
tried("limits of the worker", lambda: str(resource.prlimit(DRIVER, resource.RLIMIT_NOFILE, (3, 3))))
tried("niceness of the worker", lambda: os.setpriority(os.PRIO_PROCESS, DRIVER, 19))
tried("niceness of its user", lambda: os.setpriority(os.PRIO_USER, 0, 19))
tried("processors of the worker", lambda: os.sched_setaffinity(DRIVER, {0}))
tried("schedule of the worker", lambda: os.sched_setscheduler(DRIVER, os.SCHED_IDLE, os.sched_param(0)))
tried("parameters of the worker", lambda: os.sched_setparam(DRIVER, os.sched_param(0)))
called("attributes of the worker", number(314, 274), DRIVER, b"\x30" + bytes(47), 0)
called("disks of the worker", number(251, 30), 1, DRIVER, 3 << 13)
tried("own niceness", lambda: os.nice(1))
tried("private file", lambda: read(f"{FOLDER}/private.txt"))
tried("shadow", lambda: read("/etc/shadow"))
tried("open folder", lambda: wrote(f"{FOLDER}/open/{NONCE}"))
tried("the machine's temporary files", lambda: wrote(f"/var/tmp/{NONCE}"))
tried("shared memory", lambda: wrote(f"/dev/shm/{NONCE}"))
tried("own temporary files", lambda: wrote(f"{os.environ['TMPDIR']}/{NONCE}"))
tried("own home", lambda: wrote(f"{os.environ['HOME']}/{NONCE}"))
tried("workspace", lambda: wrote("mine"))
tried("rights of a private file", lambda: touched(f"{FOLDER}/private.txt"))
tried("locks", lambda: os.listdir("/run/headgate-users"))
tried("terminal", lambda: opened(os.environ["TERMINAL"]))
os.symlink(FOLDER, "link")
tried("through a link", lambda: wrote(f"link/open/{NONCE}-link"))
tried("TCP", lambda: connected(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(os.environ["TCP"]))))
tried("abstract", lambda: connected(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + os.environ["ABSTRACT"]))
tried("door", lambda: connected(socket.AF_UNIX, socket.SOCK_STREAM, f"{FOLDER}/door"))
tried("letter box", lambda: posted(f"{FOLDER}/letter box"))
tried("fast open", lambda: beckoned(lambda one, flags, whom: one.sendto(b"hello", flags, whom)))
tried("fast open of messages", lambda: beckoned(lambda one, flags, whom: one.sendmsg([b"hello"], [], flags, whom)))
tried("serve at a port", lambda: served(("127.0.0.1", 0)))
tried("serve at any port", lambda: served(None))
tried("abstract name", lambda: named("\0" + NONCE))
tried("metadata", lambda: connected(socket.AF_INET, socket.SOCK_STREAM, ("169.254.169.254", 80)))
tried("MPTCP", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).close())
tried("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
tried("local", socket.socketpair()[0].close)
tried("the worker", lambda: os.kill(DRIVER, 9))
tried("everybody", lambda: os.kill(-1, 9))
json.dump(found, sys.stdout)

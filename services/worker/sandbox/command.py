"""A command, what bounds it, and what became of it.

Owns what may be asked: which names an environment may have, and where a command may stand.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, Self

EndedBy = Literal["itself", "time", "memory", "processes", "disk", "output", "cancel"]
HTTPS: Final = 443
KNOWS_PORTS: Final = 4  # versions of Landlock
KNOWS_SCOPES: Final = 6

TRUSTED: Final = (
    "sandbox: trusted: NOTHING IS CONTAINED. Commands of jobs may do all that this user may; they have a group of"
    " processes, an environment and limits of their own, and no more"
)

_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
# The loader's names would work on the sandbox's own programs; the others are the sandbox's to say.
_KEPT: Final = re.compile(r"LD_.*|GLIBC_.*|GCONV_PATH|HOME|TMPDIR")


@dataclass(frozen=True, slots=True)
class CommandBounds:
    """What one command and all that it starts may use together. `policy.sandbox` has the defaults."""

    memory_bytes: int
    processes: int
    open_files: int
    file_bytes: int
    disk_bytes: int
    cpu_s: float
    output_bytes: int

    @classmethod
    def of(cls, section: object) -> Self:
        """From whatever has these names, such as the policy's section."""
        return cls(**{each.name: getattr(section, each.name) for each in fields(cls)})


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxCommand:
    """What is to be run. Paths in `reads` may be read beside the system and the worker's own Python."""

    argv: tuple[str, ...]
    timeout_s: float
    cwd: str = "."
    network: bool = False
    ports: tuple[int, ...] = (HTTPS,)
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    reads: tuple[Path, ...] = ()
    grace_s: float = 0.5

    def __post_init__(self) -> None:
        if not self.argv or any("\0" in word for word in (*self.argv, *self.environ.values())):
            raise ValueError("a command has at least one word, and none with a NUL in it")
        cwd = PurePosixPath(self.cwd)
        if cwd.is_absolute() or ".." in cwd.parts:
            raise ValueError(f"a command stands in its workspace: {self.cwd!r} leads out of it")
        for name in self.environ:
            if not _NAME.fullmatch(name) or _KEPT.fullmatch(name):
                raise ValueError(f"a command's environment may not have {name!r}")


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of it. A signal n that ended it by itself is 128 + n; null: it was ended."""

    exit_code: int | None
    ended_by: EndedBy
    output_tail: str


@dataclass(frozen=True, slots=True)
class Level:
    """How commands are contained here, as it was found at start. Only plain fields: it travels between processes."""

    name: Literal["bubblewrap", "plain", "trusted"]
    bwrap: str | None = None
    uids: tuple[int, int] | None = None  # first and last; null: commands run as the worker's own user
    spaces: Literal["root", "user", "none"] = "none"  # by which right namespaces are made; bubblewrap makes its own
    filter: bool = False
    landlock: int = 0  # the version that the kernel has
    cgroup: str | None = None
    counts: bool = False  # whether the cgroup bounds memory and processes; else it is there to end them
    reads: tuple[str, ...] = ()
    found: dict[str, str] = field(default_factory=dict[str, str])  # where commands find what is closed to their users
    why: str = ""  # not the better one

    @property
    def own_processes(self) -> bool:
        """Whether a command sees no process and no files but its own, and dies as a whole with one."""
        return self.name == "bubblewrap" or self.spaces != "none"

    @property
    def as_another_user(self) -> bool:
        """Whether a command goes through the machine's own folders as another user."""
        return self.uids is not None and not self.own_processes

    @property
    def line(self) -> str:
        """What a worker says at start: what contains a command here, and what does not."""
        if self.name == "trusted":
            return TRUSTED
        has, lacks = ", ".join(self._has()), "; ".join(self._lacks())
        return f"sandbox: {self.name}{self.why and f' ({self.why})'}: {has}{lacks and f'. NOT contained: {lacks}'}"

    def _has(self) -> Iterator[str]:
        yield f"users {self.uids[0]} to {self.uids[1]}" if self.uids else "the worker's own user"
        if self.own_processes:
            yield "own processes, files, network and IPC"
        if self.landlock:
            yield f"Landlock {self.landlock}"
        if self.filter:
            yield "filtered system calls"
        if self.cgroup:
            yield f"cgroups in {self.cgroup}"
        if not self.counts:
            yield "memory and processes added up by a keeper"

    def _lacks(self) -> Iterator[str]:
        if not (self.own_processes or self.filter):
            yield "a command without network has one"
            yield "a command reaches sockets of the machine by their names"
        if not (self.filter and self.landlock >= KNOWS_PORTS):
            yield "a command with network reaches any address and port, the metadata address too"
        if not (self.own_processes or self.landlock):
            yield "a command reads and writes what its user may"
        if not (self.own_processes or self.uids):
            yield from self._lacks_a_user()

    def _lacks_a_user(self) -> Iterator[str]:
        yield "a command may change rights and times of the worker's files"
        if not (self.filter and self.landlock >= KNOWS_SCOPES):
            yield "a command may end or slow the worker's processes"


@dataclass(frozen=True, slots=True)
class KeeperOrder:
    """What a keeper is told: a command with all that was decided for it."""

    argv: tuple[str, ...]
    cwd: str
    workspace: str
    scratch: str
    environ: dict[str, str]
    reads: tuple[str, ...]
    network: bool
    ports: tuple[int, ...]
    timeout_s: float
    grace_s: float
    bounds: CommandBounds
    level: Level
    uid: int | None
    cgroup: str | None = None

    @classmethod
    def read(cls, told: dict[str, Any]) -> Self:
        """From JSON, which knows no tuples and no classes."""
        classes = {"bounds": CommandBounds(**told["bounds"]), "level": Level(**_with_tuples(told["level"]))}
        return cls(**(_with_tuples(told) | classes))


def _with_tuples(told: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}

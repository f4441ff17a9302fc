"""A command that a stage has run, what bounds it, and what became of it, as an author says and reads them.

The sandbox checks what may be asked for. It has these in words of its own, as it runs by the standard library alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

EndedBy = Literal["itself", "time", "memory", "processes", "disk", "output", "cancel"]
HTTPS: Final = 443


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCommand:
    """What is to be run. Paths in `reads` may be read beside the system and the worker's own Python."""

    argv: tuple[str, ...]
    timeout_s: float
    cwd: str = "."
    network: bool = False
    ports: tuple[int, ...] = (HTTPS,)
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    reads: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of it. A signal n that ended it by itself is 128 + n; null: it was ended."""

    exit_code: int | None
    ended_by: EndedBy
    output_tail: str

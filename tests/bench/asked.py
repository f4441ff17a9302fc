"""What a run of the bench is asked for, what a part of it answers, and how it says how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """`share` of the usual sizes: below 1 a run shows that all works, and its figures are worth nothing."""

    rounds: int
    share: float
    folder: Path
    begun: float = field(default_factory=time.monotonic)

    def some(self, usual: int, *, least: int = 1) -> int:
        """So many, or their share."""
        return max(least, round(usual * self.share))

    def sizes(self, *usual: int) -> list[int]:
        """Those up to the share of the largest, two at least."""
        return [size for size in usual if size <= usual[-1] * self.share] if self.share >= 1 else list(usual[:2])

    def room(self) -> Path:
        """A new folder, gone when the part is over."""
        return Path(mkdtemp(dir=self.folder))

    def say(self, what: str) -> None:
        sys.stderr.write(f"bench {time.monotonic() - self.begun:5.0f} s: {what}\n")
        sys.stderr.flush()


@dataclass(frozen=True, slots=True)
class Told:
    """Markdown for the page, and pictures by the names of their files."""

    text: str
    pictures: Mapping[str, str] = field(default_factory=dict[str, str])


Part = Callable[[Asked], Coroutine[Any, Any, Told]]

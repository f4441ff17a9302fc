"""Files that are made from code and checked in: written, or compared with what is there."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def keep(texts: Mapping[Path, str], *, by: str, check: bool) -> int:
    """Writes what differs; with `check` it says so and gives 1. `by` is the module that makes them."""
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if check:
            sys.stderr.write(f"{path.relative_to(ROOT)}: run `python -m {by}`\n")
        else:
            path.write_text(texts[path], encoding="utf-8")
    return 1 if stale and check else 0

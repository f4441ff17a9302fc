"""What a worker brings along for builds: an installer of environments, and wheels that are enough for most of them."""

import sys
from collections.abc import Mapping
from pathlib import Path

from uv import find_uv_bin


def installer() -> str:
    """A program of its own, beside the worker's Python."""
    return find_uv_bin()


def wheels(environ: Mapping[str, str], *, prefix: str = sys.prefix) -> Path:
    """`HEADGATE_WHEELS`, a folder; not set: `wheels` beside the worker's Python, where set-up and image put it."""
    return Path(environ.get("HEADGATE_WHEELS") or Path(prefix) / "wheels")

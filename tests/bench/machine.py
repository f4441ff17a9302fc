"""The machine that was measured on, and what else it did meanwhile."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path


def load() -> str:
    """How many processes wanted a processor, over the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def described() -> str:
    """When, and on what."""
    told = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("model name")[2].partition("\n")[0]
    model = told.strip("\t :") or platform.machine()
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC on {os.cpu_count()} × {model}, Python {platform.python_version()}"

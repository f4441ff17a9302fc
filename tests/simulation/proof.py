"""The page that a long run writes: what was run, on what, and what was found."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version

from tests.simulation.judge import INVARIANTS
from tests.simulation.plan import JOBS

LIBRARIES = ("pydantic", "nats-py", "faststream", "redis")


def proof_of(seeds: int, records: int, took_s: float, processes: int) -> str:
    invariants = "\n".join(f"| `{each.__name__}` | {_first_line(each.__doc__)} |" for each in INVARIANTS)
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"""# Simulated: {seeds} seeds

Written by `make simulate SEEDS={seeds} PROOF=docs/proof/simulation.md`; what is simulated is in
[tests/simulation](../../tests/simulation/README.md).

| | |
|---|---|
| on | {datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} processors, {processes} processes |
| with | {platform.python_implementation()} {platform.python_version()}, {versions} |
| seeds | 1 to {seeds}, of about {JOBS} orders each |
| records in their logs | {records} |
| took | {took_s:.0f} s, {seeds / took_s:.1f} seeds a second |
| violations | 0 |

| invariant | |
|---|---|
{invariants}
"""


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0]

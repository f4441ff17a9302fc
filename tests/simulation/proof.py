"""The page that a long run writes: what was run, on what, what was found, and what would have been."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.simulation.hunting import Hunt
from tests.simulation.judge import INVARIANTS
from tests.simulation.plan import JOBS

LIBRARIES: Final = ("pydantic", "nats-py", "faststream", "redis")


@dataclass(frozen=True, slots=True)
class Swept:
    """So many seeds, in which nothing was found."""

    seeds: int
    records: int
    took_s: float
    processes: int


def proof_of(swept: Swept, hunts: Sequence[Hunt]) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    found = sum(hunt.finding is not None for hunt in hunts)
    return f"""# Simulated: {swept.seeds} seeds, and {len(hunts)} planted bugs

Written by `make simulate SEEDS={swept.seeds} PROOF=docs/proof/simulation.md`; what is simulated is in
[tests/simulation](../../tests/simulation/README.md).

| | |
|---|---|
| on | {datetime.now(UTC):%Y-%m-%d}, {machine()}, {swept.processes} processes |
| with | {platform.python_implementation()} {platform.python_version()}, {versions} |
| seeds | 1 to {swept.seeds}, of about {JOBS} orders each |
| records in their logs | {swept.records} |
| took | {swept.took_s:.0f} s, {swept.seeds / (swept.took_s or 1):.1f} seeds a second |
| violations | 0 |
| planted bugs | {found} of {len(hunts)} found, each alone |

## What was asked of each

| invariant | |
|---|---|
{_rows((f"`{each.__name__}`", _first_line(each.__doc__)) for each in INVARIANTS)}

## What would have been found

Each bug of [tests/planted](../../tests/planted) replaces one function by its faulty twin. Seeds are tried from 1 on.

| bug | found after seeds | by |
|---|---|---|
{_rows(map(_row, hunts))}
"""


def machine() -> str:
    """This one, as it says of itself."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    name = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} × {name or 'processors'}"


def _row(hunt: Hunt) -> tuple[str, ...]:
    if hunt.finding is None:
        return hunt.bug, "–", f"not found in {hunt.seeds}" if hunt.seeds else "not looked for yet"
    return hunt.bug, str(hunt.seeds), hunt.finding.invariant


def _rows(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0]

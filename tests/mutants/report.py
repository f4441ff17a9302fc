"""The page about mutants: how many were noticed, by whom, and why those that were not may stay."""

from __future__ import annotations

import platform
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.mutants.running import SEEDS, Fate, Tried
from tests.mutants.targets import TARGETS, Target
from tests.simulation.proof import machine

REASONS: Final = Path(__file__).parent / "survivors.toml"
NONE: Final = "**none yet**"
Reasons = Mapping[str, Mapping[str, str]]  # target → mutant → why it may survive


def reasons() -> Reasons:
    return tomllib.loads(REASONS.read_text(encoding="utf-8"))


def share_noticed(all_tried: Sequence[Tried]) -> float:
    return sum(each.fate is not Fate.SURVIVED for each in all_tried) / len(all_tried)


def unexplained(all_tried: Sequence[Tried], why: Reasons) -> list[Tried]:
    return [each for each in survivors(all_tried) if each.mutant.name not in why.get(each.target.name, {})]


def survivors(all_tried: Iterable[Tried]) -> list[Tried]:
    return [each for each in all_tried if each.fate is Fate.SURVIVED]


def page_of(all_tried: Sequence[Tried], why: Reasons, took_s: float) -> str:
    targets = [target for target in TARGETS if any(each.target is target for each in all_tried)]
    left = [_explained(target, all_tried, why) for target in targets]
    return f"""# Mutants: {share_noticed(all_tried):.0%} of {len(all_tried)} are noticed

Written by `make mutants`. A mutant is a file with one small mistake in it: a comparison turned about, a line left out,
a number one too high, a row of a table less. [tests/mutants](../../tests/mutants) makes them, and runs for each the
tests that reach the file, then seeds {SEEDS[0]} to {SEEDS[-1]} of the
[simulation](../../tests/simulation/README.md), until one fails.

| | |
|---|---|
| on | {datetime.now(UTC):%Y-%m-%d}, {machine()}, {platform.python_implementation()} {platform.python_version()} |
| took | {took_s / 60:.0f} minutes |

| file | mutants | noticed by a test | by a seed | never came back | survive |
|---|---|---|---|---|---|
{chr(10).join(_row(target, all_tried) for target in targets)}

## Those that survive

Each with the reason, kept by hand in [survivors.toml](../../tests/mutants/survivors.toml).

{chr(10).join(filter(None, left)) or "None."}
"""


def _row(target: Target, all_tried: Iterable[Tried]) -> str:
    fates = Counter(each.fate for each in all_tried if each.target is target)
    counts = (sum(fates.values()), *(fates[fate] for fate in (Fate.TEST, Fate.SEED, Fate.HUNG, Fate.SURVIVED)))
    return f"| [{target.file}](../../{target.file}) | {' | '.join(map(str, counts))} |"


def _explained(target: Target, all_tried: Iterable[Tried], why: Reasons) -> str:
    rows = sorted(
        f"| {each.mutant.name} | {why.get(target.name, {}).get(each.mutant.name, NONE)} |"
        for each in survivors(all_tried)
        if each.target is target
    )
    return "\n".join((f"| {target.file} | why it may |", "|---|---|", *rows, "")) if rows else ""

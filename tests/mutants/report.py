"""The page about mutants: how many were noticed, by whom, and why those that were not may stay."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tests.mutants.kept import Part, untried
from tests.mutants.running import SEEDS, Fate
from tests.mutants.targets import ROOT, TARGETS, Target

PAGE: Final = ROOT / "docs/proof/mutants.md"
REASONS: Final = Path(__file__).parent / "survivors.toml"
NONE: Final = "**none yet**"
COUNTED: Final = (Fate.TEST, Fate.SEED, Fate.HUNG, Fate.SURVIVED)
Reasons = Mapping[str, Mapping[str, str]]  # target → mutant → why it may survive


def reasons() -> Reasons:
    return tomllib.loads(REASONS.read_text(encoding="utf-8"))


def unexplained(target: Target, part: Part, why: Reasons) -> list[str]:
    return [each.name for each in part.survivors(target) if each.name not in why.get(target.name, {})]


def page_of(parts: Mapping[str, Part], why: Reasons) -> str:
    tried = sum(part.tried for part in parts.values())
    survive = sum(part.count(Fate.SURVIVED) for part in parts.values())
    measured = [(target, parts[target.name]) for target in TARGETS if target.name in parts]
    return f"""# Mutants: {1 - survive / tried:.0%} of {tried} are noticed

Written by `make mutants` from what it keeps in [mutants.json](mutants.json). A mutant is a file with one small mistake
in it: a comparison turned about, a line left out, a number one too high, a row of a table less.
[tests/mutants](../../tests/mutants) makes them, and runs for each the tests that reach its line, the quickest first,
until one fails. Where none does and no reason is written below, seeds {SEEDS[0]} to {SEEDS[-1]} of the
[simulation](../../tests/simulation/README.md) are run too.

| file | mutants | tried | noticed by a test | by a seed | never came back | survive | noticed |
|---|---|---|---|---|---|---|---|
{_lines(_row(target, part) for target, part in measured)}

{_not_run(parts)}

| file | on | took |
|---|---|---|
{_lines(_when(target, part) for target, part in measured)}

## Those that survive

Each with the reason, kept by hand in [survivors.toml](../../tests/mutants/survivors.toml).

{_lines(filter(None, (_explained(target, part, why) for target, part in measured))) or "None."}
"""


def _row(target: Target, part: Part) -> str:
    counts = (len(part.fates), part.tried, *(part.count(fate) for fate in COUNTED))
    return f"| {_link(target)} | {' | '.join(map(str, counts))} | {part.share_noticed:.0%} |"


def _when(target: Target, part: Part) -> str:
    return f"| {_link(target)} | {part.on}, {part.machine}, {part.python} | {part.took_s / 60:.0f} minutes |"


def _not_run(parts: Mapping[str, Part]) -> str:
    """What the shares above say nothing about."""
    left = {target: len(part.fates) - part.tried for target, part in _all(parts)}
    names = [f"{count} of {_link(target)}" for target, count in left.items() if count]
    return f"**Not tried**: {', '.join(names)}. `make mutants REST=yes` tries them." if names else "All were tried."


def _all(parts: Mapping[str, Part]) -> list[tuple[Target, Part]]:
    return [(target, parts.get(target.name) or untried(target)) for target in TARGETS]


def _explained(target: Target, part: Part, why: Reasons) -> str:
    rows = sorted(
        f"| {each.name} | {why.get(target.name, {}).get(each.name, NONE)} |" for each in part.survivors(target)
    )
    return "\n".join((f"| {target.file} | why it may |", "|---|---|", *rows, "")) if rows else ""


def _link(target: Target) -> str:
    return f"[{target.file}](../../{target.file})"


def _lines(rows: Iterable[str]) -> str:
    return "\n".join(rows)

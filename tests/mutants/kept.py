"""What was measured, target by target, beside the page that is written from it: a part of a run is not lost.

A part counts as long as the same mutants are made of its file.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Final

from tests.mutants.mutant import Mutant, mutants_of
from tests.mutants.running import Fate
from tests.mutants.targets import ROOT, Target
from tests.simulation.proof import machine

KEPT: Final = ROOT / "docs/proof/mutants.json"
UNTRIED: Final = "?"
LETTERS: Final = {Fate.SURVIVED: "-", Fate.TEST: "t", Fate.SEED: "s", Fate.HUNG: "h"}


@dataclass(frozen=True, slots=True)
class Part:
    """One target's. `fates`: a letter for each mutant, in the order in which they are made."""

    made: str
    fates: str
    took_s: float = 0
    on: str = ""
    machine: str = ""
    python: str = ""

    def count(self, fate: Fate) -> int:
        return self.fates.count(LETTERS[fate])

    @property
    def tried(self) -> int:
        return len(self.fates) - self.fates.count(UNTRIED)

    @property
    def share_noticed(self) -> float:
        return 1 - self.count(Fate.SURVIVED) / self.tried if self.tried else 0

    def left(self) -> list[int]:
        """What was not tried yet, and what survived: a test may have come since. Out of order: a part is a sample."""
        numbers = [number for number, letter in enumerate(self.fates) if letter in (UNTRIED, LETTERS[Fate.SURVIVED])]
        return Random(0).sample(numbers, len(numbers))

    def survivors(self, target: Target) -> list[Mutant]:
        return [
            each for each, letter in zip(made_of(target), self.fates, strict=True) if letter == LETTERS[Fate.SURVIVED]
        ]

    def with_fate(self, number: int, fate: Fate) -> Part:
        return replace(self, fates=f"{self.fates[:number]}{LETTERS[fate]}{self.fates[number + 1 :]}")

    def dated(self, *, took_s: float) -> Part:
        """Here and now, so many seconds more."""
        return replace(
            self,
            took_s=round(self.took_s + took_s, 1),
            on=f"{datetime.now(UTC):%Y-%m-%d}",
            machine=machine(),
            python=f"{platform.python_implementation()} {platform.python_version()}",
        )


def made_of(target: Target) -> list[Mutant]:
    return list(mutants_of(target.module, target.source, data=target.data))


def untried(target: Target) -> Part:
    mutants = made_of(target)
    return Part(_digest(mutants), UNTRIED * len(mutants))


def kept(targets: Sequence[Target], *, path: Path = KEPT) -> dict[str, Part]:
    """By target; one of whose file other mutants are made by now is not among them."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    parts = {target.name: Part(**known[target.name]) for target in targets if target.name in known}
    return {
        target.name: parts[target.name]
        for target in targets
        if target.name in parts and parts[target.name].made == untried(target).made
    }


def keep(target: Target, part: Part, *, path: Path = KEPT) -> None:
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**known, target.name: asdict(part)}, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _digest(mutants: Sequence[Mutant]) -> str:
    return sha256("\n".join(each.name for each in mutants).encode()).hexdigest()[:16]

"""The page of a soak: how long it really was, what was done, what each series did, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.machine import described
from tests.bench.page import table
from tests.soak.flatness import Verdict

WHOLE_MINUTES: Final = 60.0
INTRODUCTION: Final = """\
Written by `make soak`: the system as `headgate up` runs it, under a steady load, looked at from outside. After the
warm-up the rest is cut into three; the medians of the first and of the last part are compared."""
ALLOWED: Final = """\
Allowed is a tenth of the first part, or what comes and goes anyway (12 MiB, 24 of nats-server; 8 descriptors or tasks;
100 keys), and what each job leaves on purpose for as long as policy keeps it: its subjects in the log, their part of
nats-server's memory, and its row in admission's index. A leak that is smaller than this, in this time, is not seen."""


@dataclass(frozen=True, slots=True)
class Soaked:
    """What was done, and what was found."""

    minutes: float
    warm_up_minutes: float
    jobs: int
    readings: int
    load: str
    verdicts: Sequence[Verdict]
    faults: Sequence[str]
    unanswered: int = 0

    @property
    def is_well(self) -> bool:
        return not self.faults and all(verdict.is_flat for verdict in self.verdicts)


def page(soaked: Soaked) -> str:
    """As Markdown."""
    facts = [
        ["ran for", f"{soaked.minutes:.1f} min, of which {soaked.warm_up_minutes:.1f} are the warm-up"],
        ["load", soaked.load],
        ["jobs that ended", f"{soaked.jobs:,}"],
        ["cancels without an answer in time", str(soaked.unanswered)],
        ["readings of each", str(soaked.readings)],
        ["measured", described()],
        ["verdict", "flat" if soaked.is_well else "**not flat, or a job was lost**"],
    ]
    heads = ("", "first part", "last part", "more", "allowed", "flat")
    return "\n".join(
        [
            f"# A soak of {soaked.minutes:.0f} minutes",
            "",
            INTRODUCTION,
            "",
            *_length(soaked),
            table(("", ""), facts),
            "",
            table(heads, [_row(each) for each in soaked.verdicts]),
            "",
            *(f"* {fault}" for fault in soaked.faults),
            ALLOWED,
        ]
    )


def _row(each: Verdict) -> list[str]:
    return [
        each.name,
        f"{each.first:,.0f}",
        f"{each.last:,.0f}",
        f"{each.grown:+,.0f}",
        f"{each.allowed:,.0f}",
        "yes" if each.is_flat else "**no**",
    ]


def _length(soaked: Soaked) -> list[str]:
    if soaked.minutes >= WHOLE_MINUTES:
        return []
    said = f"**This run was {soaked.minutes:.1f} minutes long.** A whole one is {WHOLE_MINUTES:.0f}"
    return [f"{said}: what takes longer than this to show did not show.", ""]

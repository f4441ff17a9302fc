"""Ruff and pytest, run as commands without a network, and what they found, in words for a user and for a model.

Owns which checks there are and what counts as failed. First a machine mends what a machine can mend (imports, layout):
no iteration of a model is spent on that. Their rules come from files that the build itself writes.
"""

import re
from dataclasses import dataclass
from typing import Final, assert_never

from headgate_pipeline import Context, Ran
from services.worker.build.deps import ENVIRONMENT, PROJECT

MAX_OUTPUT_CHARS: Final = 7_000  # of one check, for the next iteration: its beginning and its end
_COUNTED: Final = re.compile(r"\d+ (?:failed|passed|error).{0,80}|Found \d+ errors?|\d+ files? would be reformatted")
_BIN: Final = f"../{ENVIRONMENT}/bin"
_RUFF: Final = (f"{_BIN}/ruff",)
_NARROW: Final = ("-o", "console_output_style=classic")  # no percentage at the 80th column of a log's line
_PYTEST: Final = (f"{_BIN}/python", "-IB", "-m", "pytest")


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    argv: tuple[str, ...]
    timeout_s: float = 60.0
    says: str = ""  # in its last line, where it passed: code under test can end the whole process with 0


TIDYING: Final = (
    Check("ruff mends", (*_RUFF, "check", "--fix-only", "--quiet", "--no-cache", ".")),
    Check("ruff formats", (*_RUFF, "format", "--quiet", "--no-cache", ".")),
)
CHECKS: Final = (
    Check("ruff check", (*_RUFF, "check", "--output-format=concise", "--no-cache", ".")),
    Check("ruff format", (*_RUFF, "format", "--check", "--no-cache", ".")),
    Check(
        "pytest",
        (*_PYTEST, "-q", "-p", "no:cacheprovider", "--color=no", "--tb=short", "--maxfail=20", *_NARROW),
        timeout_s=300.0,
        says=" passed",
    ),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A check that failed: what it is called, how it ended in a few words, and what it said."""

    name: str
    how: str
    output: str


async def tidy(ctx: Context) -> None:
    """What cannot be mended is found by the checks."""
    for each in TIDYING:
        await _run(ctx, each)


async def find_faults(ctx: Context) -> list[Finding]:
    """All checks, whatever the first of them says: one iteration mends what all have found."""
    findings: list[Finding] = []
    for each in CHECKS:
        ran = await _run(ctx, each)
        how = _how(ran, says=each.says)
        ctx.log(f"{each.name}: {how or 'passed'}")
        if how:
            findings.append(Finding(each.name, how, ran.output_tail))
    return findings


def summary_of(findings: list[Finding]) -> str:
    return "; ".join(f"{finding.name} {finding.how}" for finding in findings)


def detail_of(findings: list[Finding]) -> str:
    """What the next iteration is shown."""
    return "\n\n".join(f"$ {each.name}: {each.how}\n{shortened(each.output)}" for each in findings)


def shortened(output: str) -> str:
    """Its beginning and its end, where it is too long."""
    if len(output) <= MAX_OUTPUT_CHARS:
        return output
    half = MAX_OUTPUT_CHARS // 2
    return f"{output[:half]}\n… [{len(output) - 2 * half} characters left out]\n{output[-half:]}"


async def _run(ctx: Context, check: Check) -> Ran:
    return await ctx.run(*check.argv, cwd=PROJECT, network=False, timeout_s=check.timeout_s)


def _how(ran: Ran, *, says: str) -> str:
    """How it failed; empty where it passed."""
    match ran.ended_by:
        case "itself":
            return _how_by_itself(ran, says=says)
        case "time":
            return "took too long"
        case "memory" | "disk" | "processes":
            return f"used too much: {ran.ended_by}"
        case "output":
            return "wrote too much"
        case "cancel":
            return "was cancelled"
        case _:
            assert_never(ran.ended_by)


def _how_by_itself(ran: Ran, *, says: str) -> str:
    last = ran.output_tail.strip().rpartition("\n")[2].strip("= ")
    if ran.exit_code == 0:
        return "" if says in last else "ended without a result"
    counted = _COUNTED.search(last)
    return f"failed: {counted.group(0)}" if counted else f"ended with code {ran.exit_code}"

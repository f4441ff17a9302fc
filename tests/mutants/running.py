"""Tries mutants, each in a process of its own that has all imported and the tests collected already.

    collect ─┬─► fork ──► every test, without a mistake ──► which lines it reaches, and how long it takes
             └─► fork ──► plant ──► the tests that reach the line, the quickest first ──► some simulated seeds

The first that fails has noticed it. No seeds are asked where it is written why the mutant may survive. A mistake that
goes round and round is ended by the limit on its processor time, one that waits by the tests' own limit.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
from hypothesis import Phase, settings

from tests.mutants.mutant import Mutant
from tests.mutants.targets import ROOT, TARGETS, Target

SEEDS: Final = range(1, 9)
SEEDS_S: Final = 30  # of processor, for all of them: sound ones take 4
TESTS_S: Final = 3  # and three times what they take without a mistake
WAITS_S: Final = 60  # one test
WORDS: Final = (
    *("-q", "--no-header", "--no-summary", "--assert=plain", "-p", "no:cacheprovider", "-k", "not valkey"),
    *("-o", f"timeout={WAITS_S}", "--hypothesis-profile=mutants"),
)
Ended = Callable[[int, "Fate"], None]


class Fate(Enum):
    """What became of a mutant: who noticed it."""

    SURVIVED = 0
    TEST = 1
    SEED = 2
    HUNG = 3


@dataclass(frozen=True, slots=True)
class _Reach:
    """What one test does where there is no mistake."""

    name: str
    lines: tuple[int, ...]
    took_s: float
    failed: bool


def get_ready() -> None:
    """Import once what every try needs, in the process that they are forked from."""
    importlib.import_module("tests.simulation.run")
    for target in TARGETS:
        importlib.import_module(target.module)
    phases = (Phase.explicit, Phase.generate)  # how small an example may be does not matter here
    settings.register_profile("mutants", deadline=None, database=None, derandomize=True, phases=phases)
    os.environ["TEST_BACKEND"] = "embedded"


def are_seeds_sound() -> bool:
    """Whether they find nothing where there is no mistake."""
    child = os.fork() or os._exit(int(_seeds_find()))
    return os.waitpid(child, 0)[1] == 0


def unsound_of(
    target: Target, mutants: Mapping[int, Mutant], *, seeded: Iterable[int], width: int, ended: Ended
) -> list[str]:
    """Tries these, so many at once, and tells each that has ended. Nothing is tried where tests fail without a mistake:
    those come back."""
    trials = _Trials(target, mutants, frozenset(seeded), width, ended)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        pytest.main([*WORDS, *target.tests], plugins=[trials])
    return trials.unsound


@dataclass(eq=False, slots=True)  # a plugin is known by what it is
class _Trials:
    """Takes the place of pytest's loop over a target's tests."""

    target: Target
    mutants: Mapping[int, Mutant]
    seeded: frozenset[int]
    width: int
    ended: Ended
    unsound: list[str] = field(default_factory=lambda: ["no test was collected"])
    _failed: bool = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        reaches = self._reaches(session.items)
        self.unsound = [each.name for each in reaches if each.failed] or ([] if reaches else ["what ran all tests"])
        out: dict[int, int] = {}
        for number, mutant in self.mutants.items() if not self.unsound else ():
            if len(out) == self.width:
                self._tell(out)
            near = [pair for pair in zip(reaches, session.items, strict=True) if _touches(mutant, pair[0])]
            near.sort(key=lambda pair: pair[0].took_s)
            limit_s = TESTS_S + 3 * sum(reach.took_s for reach, _ in near)
            out[os.fork() or self._live(number, [item for _, item in near], limit_s)] = number
        while out:
            self._tell(out)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed = self._failed or report.failed

    def _tell(self, out: dict[int, int]) -> None:
        child, status = os.wait()
        self.ended(out.pop(child), _fate(status))

    # ── in a child, to its end ────────────────────────────────────────────────

    def _live(self, number: int, items: list[pytest.Item], limit_s: float) -> int:
        fate = Fate.TEST  # whatever breaks has noticed it
        try:
            _be_quiet()
            _limit(limit_s)
            self.mutants[number].plant()
            if self._pass(items):
                fate = Fate.SEED if number in self.seeded and _seeds_find() else Fate.SURVIVED
        finally:
            os._exit(fate.value)

    def _pass(self, items: list[pytest.Item]) -> bool:
        for item, following in zip(items, [*items[1:], None], strict=False):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                return False
        return True

    def _reaches(self, items: list[pytest.Item]) -> list[_Reach]:
        """Each test by itself, as it goes where there is no mistake."""
        inlet, outlet = os.pipe()
        if child := os.fork():
            os.close(outlet)
            with os.fdopen(inlet) as told:
                reaches = [_Reach(**json.loads(line)) for line in told]
            os.waitpid(child, 0)
            return reaches if len(reaches) == len(items) else []
        try:
            _be_quiet()
            with os.fdopen(outlet, "w") as telling:
                for item, following in zip(items, [*items[1:], None], strict=False):
                    telling.write(json.dumps(self._reach(item, following)) + "\n")
        finally:
            os._exit(0)

    def _reach(self, item: pytest.Item, following: pytest.Item | None) -> dict[str, Any]:
        lines, self._failed = set[int](), False
        trace = _tracing(str(ROOT / self.target.file), lines)
        began_s = time.process_time()
        threading.settrace(trace)
        sys.settrace(trace)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        sys.settrace(None)
        took_s = time.process_time() - began_s
        return {"name": item.nodeid, "lines": sorted(lines), "took_s": took_s, "failed": self._failed}


def _seeds_find() -> bool:
    _limit(time.process_time() + SEEDS_S)
    drawing = importlib.import_module("tests.simulation.drawing")
    run = importlib.import_module("tests.simulation.run")
    try:
        return any(run.simulate(drawing.plan_of(seed)).findings for seed in SEEDS)
    except run.Stuck:
        return True


def _touches(mutant: Mutant, reach: _Reach) -> bool:
    """Data is read when it is imported, which no test is seen to do."""
    return not mutant.function or any(line in mutant.lines for line in reach.lines)


def _tracing(path: str, lines: set[int]) -> Any:
    def line(frame: FrameType, event: str, arg: object) -> Any:
        lines.add(frame.f_lineno)
        return line

    def call(frame: FrameType, event: str, arg: object) -> Any:
        return line if frame.f_code.co_filename == path else None

    return call


def _be_quiet() -> None:
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)


def _limit(processor_s: float) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (round(processor_s) + 1, resource.RLIM_INFINITY))


def _fate(status: int) -> Fate:
    if os.WIFSIGNALED(status):
        return Fate.HUNG if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else Fate.TEST
    return Fate(os.WEXITSTATUS(status))

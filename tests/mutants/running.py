"""Tries mutants, each in a process of its own that has everything imported already.

    fork ──► plant ──► the target's tests, up to the first failure ──► some simulated seeds ──► noticed, or not

A mistake that goes round and round is ended by the limit on its processor time, one that waits by the tests' own limit.
"""

from __future__ import annotations

import importlib
import os
import resource
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final

import pytest
from hypothesis import Phase, settings

from tests.mutants.mutant import Mutant
from tests.mutants.targets import TARGETS, Target

SEEDS: Final = range(1, 9)
PROCESSOR_S: Final = 30  # of one try; a sound one takes 2 to 10
WAITS_S: Final = 60  # one test
OURS: Final = ("headgate_contracts", "libs", "services", "tests")


class Fate(Enum):
    """What became of a mutant: who noticed it."""

    SURVIVED = 0
    TEST = 1
    SEED = 2
    HUNG = 3


def get_ready() -> None:
    """Import once what every try needs, in the process that they are forked from."""
    importlib.import_module("tests.simulation.run")
    for target in TARGETS:
        importlib.import_module(target.module)
    phases = (Phase.explicit, Phase.generate)  # how small an example may be does not matter here
    settings.register_profile("mutants", deadline=None, database=None, derandomize=True, phases=phases)


def is_sound(target: Target) -> bool:
    """Whether nothing is noticed where there is no mistake: else every one would be."""
    child = os.fork() or _live(target, None)
    return _fate(os.waitpid(child, 0)[1]) is Fate.SURVIVED


def tried(
    target: Target, mutants: Sequence[Mutant], numbers: Iterable[int], *, width: int
) -> Iterator[tuple[int, Fate]]:
    """What becomes of these, as they end, so many at once."""
    out: dict[int, int] = {}
    for number in numbers:
        if len(out) == width:
            yield _ended(out)
        out[os.fork() or _live(target, mutants[number])] = number
    while out:
        yield _ended(out)


def _ended(out: dict[int, int]) -> tuple[int, Fate]:
    child, status = os.wait()
    return out.pop(child), _fate(status)


def _fate(status: int) -> Fate:
    if os.WIFSIGNALED(status):
        return Fate.HUNG if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else Fate.TEST
    return Fate(os.WEXITSTATUS(status))


def _live(target: Target, mutant: Mutant | None) -> int:
    """In the child, to its end."""
    fate = Fate.TEST  # whatever breaks has noticed it
    try:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S + 5))
        if target.data:
            _forget_ours()
        if mutant is not None:
            mutant.plant()
        if _tests_pass(target):
            fate = Fate.SEED if _seeds_find() else Fate.SURVIVED
    finally:
        os._exit(fate.value)


def _forget_ours() -> None:
    """Who is mutated in its data is read anew, and so are all who have read it."""
    for name in tuple(sys.modules):
        if name.partition(".")[0] in OURS and not name.startswith("tests.mutants"):
            del sys.modules[name]


def _tests_pass(target: Target) -> bool:
    os.environ["TEST_BACKEND"] = "embedded"
    words = ("-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-o", f"timeout={WAITS_S}", "-k", "not valkey")
    return pytest.main([*words, "--hypothesis-profile=mutants", *target.tests]) == pytest.ExitCode.OK


def _seeds_find() -> bool:
    drawing = importlib.import_module("tests.simulation.drawing")
    run = importlib.import_module("tests.simulation.run")
    try:
        return any(run.simulate(drawing.plan_of(seed)).findings for seed in SEEDS)
    except run.Stuck:
        return True

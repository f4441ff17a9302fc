"""`make check` and `make test` on the oldest and the newest Python that are supported, as a user and as root; and the
wheels in clean environments there, with what their pages show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fresh.conftest import Verdict
from tests.fresh.machines import HARD, NEWEST, OLDEST, Container

ENDS_WITHIN_S = 1400
pytestmark = [pytest.mark.pythons, pytest.mark.timeout(1500)]


def test_all_passes_on_the_newest_python_for_a_user(engine: None, source: Path, ends: Verdict) -> None:
    machine = Container(NEWEST, source, ("--user=1000:1000", "--env=CI=true"))

    ends(machine.runs("make check test", before=HARD, within_s=ENDS_WITHIN_S), 0)


def test_all_passes_on_the_oldest_python_as_root(engine: None, source: Path, ends: Verdict) -> None:
    ends(Container(OLDEST, source, ("--env=CI=true",)).runs("make check test", within_s=ENDS_WITHIN_S), 0)


@pytest.mark.parametrize("image", [OLDEST, NEWEST])
def test_the_wheels_run_what_their_pages_show_on_the_oldest_and_the_newest_python(
    engine: None, source: Path, image: str, ends: Verdict
) -> None:
    machine = Container(image, source, ("--user=1000:1000", "--env=CI=true"))

    ends(machine.runs("make wheels", before=HARD, within_s=ENDS_WITHIN_S), 0)


def test_the_same_seed_is_the_same_log_on_the_newest_python(engine: None, source: Path, ends: Verdict) -> None:
    command = "-m tests.simulation --seeds 5 --hashes"
    here = subprocess.run([sys.executable, *command.split()], cwd=source, capture_output=True, text=True, check=True)
    there = Container(NEWEST, source, ("--user=1000:1000",)).runs(f"sh -c 'make setup && .venv/bin/python {command}'")

    ends(there, 0)
    assert there.said.splitlines()[-5:] == here.stdout.splitlines()

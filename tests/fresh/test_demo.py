"""`make demo` on machines that nobody has prepared."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fresh.conftest import Verdict
from tests.fresh.machines import HARD, NEWEST, OLDEST, Container, Newcomer

pytestmark = pytest.mark.timeout(600)
# Without a name or a home, as build servers run containers.
USERS = {"root": (), "a user": ("--user=1000:1000",)}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("image", [OLDEST, NEWEST])
def test_the_demo_runs_in_an_ordinary_container(
    engine: None, source: Path, ends: Verdict, image: str, user: str
) -> None:
    ended = Container(image, source, USERS[user]).runs("make demo")

    ends(ended, 0)


@pytest.mark.parametrize("image", [OLDEST, NEWEST])
def test_the_demo_runs_for_a_root_whose_home_is_closed(engine: None, source: Path, ends: Verdict, image: str) -> None:
    """Commands are other users there, without namespaces, and all that they need lies behind it."""
    at_home = ('export FOLDER="$HOME"', "chmod 700 .", "umask 077")

    ended = Container(image, source).runs("make demo", before=('cd "$HOME"', *at_home))

    ends(ended, 0)
    assert "users 58000 to 58255" in ended.said


def test_the_demo_runs_for_a_new_user(ann: Newcomer, taken_port: int, ends: Verdict) -> None:
    ended = ann.runs("make demo", before=HARD)

    ends(ended, 0)
    assert ann.left() == []


def test_two_clones_run_the_demo_at_once(ann: Newcomer, ends: Verdict) -> None:
    folders = ("one", "two")

    with ThreadPoolExecutor() as both:
        ended = both.map(lambda folder: ann.runs("make demo", before=('mkdir "$FOLDER"',), folder=folder), folders)

    for each in ended:
        ends(each, 0)
    assert ann.left() == []


def test_two_clones_run_tests_with_servers_at_once(ann: Newcomer, ends: Verdict) -> None:
    some = "tests/integration/test_gateway.py tests/integration/test_up.py tests/conformance/test_log.py"
    folders = ("one", "two")

    with ThreadPoolExecutor() as both:
        ended = both.map(
            lambda folder: ann.runs(f'make test ARGS="{some}"', before=('mkdir "$FOLDER"',), folder=folder), folders
        )

    for each in ended:
        ends(each, 0)
    assert ann.left() == []

"""Each test is of one suite, each suite has a target that CI runs, and `make test` alone holds every rule."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from tests.fixtures.suites import SUITES, TARGETS, pytest_xdist_auto_num_workers, suite_of
from tests.unit.test_rules_page import NAMED, rows

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = sorted(path.parent for path in (ROOT / "tests").glob("*/test_*.py"))
# Collects without running: every test, by file and sentence, with its suites.
COLLECTED: Final = """
import contextlib, json, sys
import pytest

class Names:
    found = set()

    def pytest_collection_finish(self, session):
        for item in session.items:
            file, suite = item.path.stem.removeprefix("test_"), item.get_closest_marker
            sentence = item.originalname.removeprefix("test_").replace("_", " ")
            self.found |= {(file, sentence, name) for name in json.loads(sys.argv[1]) if suite(name)}

names = Names()
with contextlib.redirect_stdout(sys.stderr):
    code = pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *sys.argv[2:]], plugins=[names])
print(json.dumps([int(code), sorted(names.found)]))
"""


@pytest.fixture(scope="module")
def of_suite() -> dict[str, set[tuple[str, str]]]:
    """The tests of each suite, by file and sentence."""
    words = (sys.executable, "-c", COLLECTED, json.dumps([*SUITES]), *map(str, dict.fromkeys(FOLDERS)))
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - our own words
    code, found = json.loads(said.stdout.splitlines()[-1])
    assert code == 0, said.stdout + said.stderr
    return {suite: {(file, sentence) for file, sentence, name in found if name == suite} for suite in SUITES}


def test_each_rule_is_held_by_a_test_of_every_day(of_suite: dict[str, set[tuple[str, str]]]) -> None:
    everyday = of_suite["everyday"]

    assert [rule for rule, depths in rows() if everyday.isdisjoint(NAMED.findall("<br>".join(depths)))] == []


def test_each_suite_has_tests_and_what_is_run_by_name_is_found_there(
    of_suite: dict[str, set[tuple[str, str]]],
) -> None:
    assert [name for name, tests in of_suite.items() if not tests and name != "bench"] == []


def test_each_suite_is_run_by_its_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipes = dict(re.findall(r"^([a-z-]+):.*\n\t(@.*(?:pytest|PYTEST).*)$", makefile, flags=re.MULTILINE))

    targets = {name: target for name, target in TARGETS.items() if name != "bench"}  # it runs files one by one
    run_by = {name: re.findall(r'-m (?:"([^"]*)"|(\w+))', recipes[target]) for name, target in targets.items()}
    assert {name for name, [(several, one)] in run_by.items() if name not in (several or one).split(" or ")} == set()


def test_the_page_of_rules_says_of_each_suite_what_it_holds() -> None:
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")

    said = dict(re.findall(r"^\| `make ([a-z-]+)` \| (.+?) \|", page, flags=re.MULTILINE))
    assert said == {TARGETS[name]: suite.holds for name, suite in SUITES.items()}


def an_item(folder: str, *marks: str, fixtures: tuple[str, ...] = ()) -> Any:
    path = Path("tests") / folder / "test_it.py"
    found = [SimpleNamespace(name=mark) for mark in marks]
    return SimpleNamespace(path=path, nodeid=str(path), fixturenames=fixtures, iter_markers=lambda: iter(found))


@pytest.mark.parametrize(
    ("item", "suite"),
    [
        (an_item("unit", "asyncio"), "everyday"),
        (an_item("integration", "races", "timeout"), "races"),
        (an_item("e2e"), "system"),
        (an_item("e2e", "compose"), "compose"),
        (an_item("conformance", fixtures=("worker_nats_cluster",)), "cluster"),
    ],
)
def test_a_test_is_of_the_suite_it_is_marked_with_else_of_its_folders(item: Any, suite: str) -> None:
    assert suite_of(item) == suite


def test_a_test_of_two_suites_is_refused() -> None:
    with pytest.raises(pytest.UsageError, match="kills, races"):
        suite_of(an_item("integration", "races", "kills"))


def a_run(source: pytest.Config.ArgsSource = pytest.Config.ArgsSource.TESTPATHS, **option: Any) -> Any:
    return SimpleNamespace(args_source=source, option=SimpleNamespace(**{"keyword": "", "lf": False, **option}))


def test_all_tests_of_a_suite_are_shared_by_processes_and_named_ones_wait_for_none() -> None:
    some = [a_run(keyword="cluster"), a_run(lf=True), a_run(source=pytest.Config.ArgsSource.ARGS)]

    assert pytest_xdist_auto_num_workers(a_run()) > 1
    assert [pytest_xdist_auto_num_workers(run) for run in some] == [0, 0, 0]

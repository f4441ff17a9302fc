"""Green means that all of it ran: the verdicts of .ci/run on commands that end as they are told to."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from jsonschema import validators

from tests.fixtures.suites import TARGETS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason=".ci/run is for Linux: it needs GNU's timeout")
ROOT: Final = Path(__file__).parents[2]
# What a run of pytest leaves behind that failed; it passes when only what failed is run.
FAILS_ONCE: Final = """
mkdir -p .pytest_cache/v/cache
echo '{"tests/unit/test_a.py::test_one[x-1]": true,
  "tests/unit/test_b.py::test_two": true}' > .pytest_cache/v/cache/lastfailed
case "$ARGS" in *--last-failed*) exit 0;; *) exit 2;; esac
"""


def ran(folder: Path, *parts: str, limit_s: int = 60, only: str = "") -> tuple[int, dict[str, str], list[str]]:
    """The exit code, each part's verdict as the table has it, and what stands below the table."""
    lines = [
        "set -uo pipefail",
        f"readonly limit_s={limit_s} only=({only})",
        f". '{ROOT}/.ci/parts.sh'",
        *parts,
        "summary",
    ]
    ended = subprocess.run(  # noqa: S603 - our own words
        ["/bin/bash", "-c", "\n".join(lines)], cwd=folder, capture_output=True, text=True, check=False
    )
    _, _, table = ended.stdout.rpartition("\npart ")
    found = [re.fullmatch(r"(\w[\w ]*?) {2,}(.+?) +\d+ s", line) for line in table.splitlines()]
    verdicts = {row[1]: row[2] for row in found if row}
    return ended.returncode, verdicts, table.splitlines()[len(verdicts) + 1 :]


def test_parts_that_all_pass_are_green(tmp_path: Path) -> None:
    assert ran(tmp_path, "part one true", "part two true") == (0, {"one": "ok", "two": "ok", "all": "ok"}, [])


def test_only_the_parts_that_are_asked_for_are_run(tmp_path: Path) -> None:
    parts = ["part 'set up' true", "part one false", "part two true"]

    assert ran(tmp_path, *parts, only="two 'set up'") == (0, {"set up": "ok", "two": "ok", "all": "ok"}, [])


def test_a_part_that_is_asked_for_and_not_there_is_red(tmp_path: Path) -> None:
    status, verdicts, _ = ran(tmp_path, "part one true", only="one tow")

    assert (status, verdicts) == (1, {"one": "ok", "tow": "no such part", "all": "failed"})


def test_a_part_that_fails_is_red_and_those_after_it_are_run(tmp_path: Path) -> None:
    status, verdicts, _ = ran(tmp_path, "part one sh -c 'exit 7'", "part two true")

    assert (status, verdicts) == (1, {"one": "failed (7)", "two": "ok", "all": "failed"})


def test_what_the_time_cuts_off_and_what_it_leaves_out_are_red(tmp_path: Path) -> None:
    status, verdicts, _ = ran(tmp_path, "part one true", "part two sleep 60", "part three true", limit_s=3)

    assert status == 1
    assert verdicts == {"one": "ok", "two": "cut off", "three": "left out", "all": "failed"}


def test_a_run_that_only_leaves_out_is_red(tmp_path: Path) -> None:
    status, verdicts, _ = ran(tmp_path, "part one true", limit_s=0)

    assert (status, verdicts) == (1, {"one": "left out", "all": "failed"})


def test_what_is_cut_off_may_take_down_what_it_started(tmp_path: Path) -> None:
    tidy = "trap 'touch taken-down; exit 130' INT; while :; do sleep 0.1; done"

    ran(tmp_path, f'part one bash -c "{tidy}"', limit_s=1)

    assert (tmp_path / "taken-down").exists()


def test_tests_that_pass_only_when_run_again_are_named_and_counted(tmp_path: Path) -> None:
    (tmp_path / "tests.sh").write_text(FAILS_ONCE)

    status, verdicts, below = ran(tmp_path, "part one sh tests.sh", "part two true")

    assert (status, verdicts) == (0, {"one": "unsteady", "two": "ok", "all": "ok"})
    assert below == [
        "2 passed only when run again:",
        "  tests/unit/test_a.py::test_one[x-1]",
        "  tests/unit/test_b.py::test_two",
    ]


def test_tests_that_fail_again_are_red(tmp_path: Path) -> None:
    (tmp_path / "tests.sh").write_text(FAILS_ONCE.replace("exit 0", "exit 1"))

    assert ran(tmp_path, "part one sh tests.sh") == (1, {"one": "failed (2)", "all": "failed"}, [])


def test_what_failed_in_the_part_before_excuses_nothing(tmp_path: Path) -> None:
    (tmp_path / "tests.sh").write_text(FAILS_ONCE)

    _, verdicts, _ = ran(tmp_path, "part one sh tests.sh", "part two false")

    assert verdicts == {"one": "unsteady", "two": "failed (1)", "all": "failed"}


def test_so_many_that_fail_have_one_cause_and_are_not_run_again(tmp_path: Path) -> None:
    many = ", ".join(f'"test_a.py::test_{number}": true' for number in range(11))
    (tmp_path / "tests.sh").write_text(re.sub(r"\{.*\}", f"{{{many}}}", FAILS_ONCE, flags=re.DOTALL))

    assert ran(tmp_path, "part one sh tests.sh") == (1, {"one": "failed (2)", "all": "failed"}, [])


@pytest.mark.parametrize("where", ["Makefile: test-all", ".ci/run"])
def test_every_suite_is_run(where: str) -> None:
    makefile, run = (ROOT / "Makefile").read_text(), (ROOT / ".ci" / "run").read_text()
    suites = set(TARGETS.values()) - {"bench"}
    named = {
        "Makefile: test-all": re.findall(r"^test-all:([^#]*)", makefile, flags=re.MULTILINE)[0].split(),
        ".ci/run": re.findall(r"^part .*\bmake (?:--\S+ )*([a-z-]+)", run, flags=re.MULTILINE),
    }[where]

    assert suites <= set(named)
    assert "check" in named


def test_each_part_is_in_one_row_of_the_workflow() -> None:
    parts = re.findall(r"^part (?:'(.*?)'|(\w+)) ", (ROOT / ".ci" / "run").read_text(), flags=re.MULTILINE)
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())

    rows = [shlex.split(row["parts"]) for row in workflow["jobs"]["run"]["strategy"]["matrix"]["include"]]

    everywhere = {"set up", "browser and images"}  # what others need, so in each row that needs it
    named = sorted(part for row in rows for part in row if part not in everywhere)
    assert named == sorted({quoted or bare for quoted, bare in parts} - everywhere)


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("workflows/*", "github-workflows"),
        ("dependabot.yml", "dependabot"),
        ("ISSUE_TEMPLATE/[!c]*", "github-issue-forms"),
        ("ISSUE_TEMPLATE/config.yml", "github-issue-config"),
    ],
)
def test_what_the_host_of_the_repository_reads_is_as_it_reads_it(path: str, schema: str) -> None:
    found = sorted((ROOT / ".github").glob(path))
    checked = get_builtin_schema(f"vendor.{schema}")

    for file in found:
        read = yaml.safe_load(file.read_text())
        said = {"on" if key is True else key: value for key, value in read.items()}  # YAML 1.1 takes `on` for true
        validators.validator_for(checked)(checked).validate(said)
    assert found

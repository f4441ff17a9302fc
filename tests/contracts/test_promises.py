"""The page of promises: every test that it names is there, and every promise names one."""

import re
from pathlib import Path

from headgate_contracts.envelope import DATA_BY_TYPE
from headgate_contracts.generate import HERE
from libs.policy import Policy

PAGE = (HERE / "PROMISES.md").read_text()
TESTS = Path(__file__).parents[1]
ROW = re.compile(r"^\| (?!promise|---)(?P<promise>.+?) \| (?P<tests>.+?) \|$", re.MULTILINE)


def test_every_test_that_the_page_names_is_there() -> None:
    there = {
        name
        for path in TESTS.rglob("test_*.py")
        if "node_modules" not in path.parts
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }

    assert set(re.findall(r"`(test_\w+)`", PAGE)) - there == set()


def test_every_promise_names_what_breaks_with_it() -> None:
    rows = ROW.findall(PAGE)

    assert len(rows) > 20
    assert [promise for promise, tests in rows if "`test_" not in tests and tests != "the same"] == []


def test_no_event_has_a_field_for_content() -> None:
    """What a job is made from is named by its digest, what it made by its name in a bucket."""
    fields = {name for data in DATA_BY_TYPE.values() for name in data.model_fields}

    assert fields & {"input", "prompt", "content", "log", "line", "lines", "output", "files"} == set()


def test_events_are_kept_longer_than_a_job_can_live() -> None:
    policy = Policy()

    assert policy.retention.events_days * 86_400 > policy.longest_life_s

"""Alerts, their pages and their cases belong together: what is missing here nobody would miss before the bad night."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from libs.deployment.generated import DASHBOARDS, RESOURCE, RULES
from libs.deployment.panels import NAMES
from libs.local.monitoring.rules import AlertRules
from services.scheduler.signals import WAITS_S

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted((ROOT / "docs" / "runbooks").glob("*.md"))
GROUPS: Final[list[dict[str, Any]]] = yaml.safe_load(RULES.read_text())["groups"]
ALERTS: Final = {rule["alert"]: rule for group in GROUPS for rule in group["rules"] if "alert" in rule}
CASES: Final = yaml.safe_load((ROOT / "tests" / "alerts" / "rules_test.yaml").read_text())["tests"]
TELEMETRY: Final = set(re.findall(r"`(headgate_[a-z_]+)`", (ROOT / "docs" / "telemetry.md").read_text()))
UNITS_S: Final = {"m": 60, "h": 3600, "d": 86_400}


def test_the_page_of_metrics_has_those_that_the_code_makes_and_no_other() -> None:
    paths = [path for folder in ("libs", "services") for path in (ROOT / folder).rglob("*.py")]
    made = {name for path in paths for name in re.findall(r'"(headgate_[a-z_]+)"', path.read_text())}

    assert {name.removesuffix("_total") for name in TELEMETRY} == made


def test_each_alert_has_a_page_and_each_page_names_its_alerts() -> None:
    named = {ROOT / rule["annotations"]["runbook_url"]: set[str]() for rule in ALERTS.values()}
    for name, rule in ALERTS.items():
        named[ROOT / rule["annotations"]["runbook_url"]].add(name)

    assert sorted(named) == PAGES
    assert {page: set(re.findall(r"`(Headgate\w+)`", page.read_text())) for page in PAGES} == named


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_it_means_what_to_look_at_and_what_to_do(page: Path) -> None:
    assert re.findall(r"^\*\*(What.*?)\*\*", page.read_text(), re.MULTILINE) == [
        "What it means.",
        "What to look at",
        "What to do",
    ]


def test_each_alert_has_a_case_in_which_it_fires_and_clears_after() -> None:
    fires: dict[str, list[float]] = defaultdict(list)
    silent: dict[str, list[float]] = defaultdict(list)
    for number, case in enumerate(CASES):
        for expected in case["alert_rule_test"]:
            at = (fires if expected["exp_alerts"] else silent)[expected["alertname"]]
            at.append(number * 1e9 + _seconds(expected["eval_time"]))

    assert fires.keys() == ALERTS.keys()
    for name, times in fires.items():
        begun = [at // 1e9 for at in times]
        assert any(at > max(times) and at // 1e9 in begun for at in silent[name]), f"{name} does not clear"
        assert any(at < min(times) and at // 1e9 in begun for at in silent[name]), f"{name} fires from the start"


def test_each_alert_says_whom_it_is_for_and_what_is_wrong() -> None:
    assert {rule["labels"]["severity"] for rule in ALERTS.values()} == {"page", "ticket"}
    assert all(rule["annotations"]["summary"] for rule in ALERTS.values())


def test_rules_ask_for_metrics_that_there_are() -> None:
    asked = set(re.findall(r"\bheadgate_[a-z_]+", RULES.read_text()))

    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked} - TELEMETRY == set()


@pytest.mark.parametrize("name", NAMES)
def test_a_dashboard_asks_for_metrics_that_there_are_and_names_its_lines_by_labels_that_they_have(name: str) -> None:
    panels = json.loads((DASHBOARDS / f"{name}.json").read_text())["panels"]
    recorded = {rule["record"] for group in GROUPS for rule in group["rules"] if "record" in rule}

    for panel in panels:
        for target in panel["targets"]:
            asked = set(re.findall(r"\bheadgate_[a-z_]+", target["expr"]))
            assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked} <= TELEMETRY
            assert set(re.findall(r"\bheadgate:[a-z_:]+", target["expr"])) <= recorded
            grouped = set(re.findall(r"\w+", " ".join(re.findall(r"by \((.*?)\)", target["expr"]))))
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= grouped | {"window", "instance"}
    assert len({panel["title"] for panel in panels}) == len(panels)


def test_how_soon_a_job_is_to_start_is_a_bound_of_a_bucket() -> None:
    assert AlertRules().start_within_s in WAITS_S


def test_the_operator_has_the_same_rules_as_everybody() -> None:
    resource = yaml.safe_load(RESOURCE.read_text())

    assert (resource["kind"], resource["spec"]) == ("PrometheusRule", {"groups": GROUPS})


def _seconds(duration: str) -> float:
    return int(duration[:-1]) * UNITS_S[duration[-1]]

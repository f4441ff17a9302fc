"""The rules that compose and Kubernetes have, as Prometheus reads them: each alert fires and clears."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from libs.deployment.generated import RULES
from tests.fixtures.backend import missing

CASES = Path(__file__).with_name("rules_test.yaml")


@pytest.mark.parametrize("words", [("check", "rules", RULES), ("test", "rules", CASES)], ids=lambda words: words[0])
def test_prometheus_reads_the_rules_and_each_alert_fires_and_clears(words: tuple[str | Path, ...]) -> None:
    promtool = shutil.which("promtool") or missing("promtool is not here: apt install prometheus")

    ran = subprocess.run([promtool, *words], capture_output=True, text=True, check=False)  # noqa: S603 - our own words

    assert ran.returncode == 0, ran.stdout + ran.stderr

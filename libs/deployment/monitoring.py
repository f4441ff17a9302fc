"""The alerts' rules and Grafana's dashboards as files, for compose and `k8s/components/monitoring`:
`python -m libs.deployment.monitoring`.

With `--check` it only says whether they are up to date. What is in the rules stands in `libs.local.monitoring.rules`,
what is in the dashboards in `panels`; here is what the Prometheus operator has around the rules.
"""

from __future__ import annotations

import sys
import textwrap
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Final

from libs.deployment.generated import ROOT, keep
from libs.deployment.panels import NAMES, dashboard
from libs.local.monitoring.rules import AlertRules

FOLDER: Final = ROOT / "k8s" / "components" / "monitoring"
RULES: Final = FOLDER / "rules.yaml"
RESOURCE: Final = FOLDER / "prometheusrule.yaml"
DASHBOARDS: Final = FOLDER / "dashboards"
AROUND: Final = """apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: headgate
spec:
"""


def main(words: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="python -m libs.deployment.monitoring")
    parser.add_argument("--check", action="store_true")
    rules = AlertRules().render()
    head, groups, rest = rules.partition("groups:\n")
    texts = {RULES: rules, RESOURCE: head + AROUND + textwrap.indent(groups + rest, "  ")}
    texts |= {DASHBOARDS / f"{name}.json": dashboard(name) for name in NAMES}
    return keep(texts, by="libs.deployment.monitoring", check=parser.parse_args(words).check)


if __name__ == "__main__":
    sys.exit(main())

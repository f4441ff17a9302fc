"""What is made from code and checked in for compose and Kubernetes: `python -m libs.deployment.generated` writes it,
with `--check` it only says whether all of it is up to date.

    accounts, valkey-users   who may do what at NATS and Valkey      `accounts`, for the pools of the policy beside them
    Caddyfile                the gateway                             `libs.local.caddyfile`
    rules, prometheusrule    alerts                                  `libs.local.monitoring.rules`
    dashboards               Grafana's                               `panels`

The chart is made by itself (`chart`), as that needs kubectl.
"""

import sys
import textwrap
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from libs.deployment import ROOT
from libs.deployment.accounts import FOLDER, nats_accounts, valkey_accounts
from libs.deployment.panels import NAMES, dashboard
from libs.local.caddyfile import Caddyfile
from libs.local.monitoring.rules import AlertRules
from libs.policy import load_policy

GATEWAY: Final = ROOT / "k8s" / "components" / "ingress" / "Caddyfile"
MONITORING: Final = ROOT / "k8s" / "components" / "monitoring"
RULES: Final = MONITORING / "rules.yaml"
RESOURCE: Final = MONITORING / "prometheusrule.yaml"
DASHBOARDS: Final = MONITORING / "dashboards"
AROUND: Final = """apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: headgate
spec:
"""


def texts() -> dict[Path, str]:
    pools = load_policy(FOLDER / "policy.toml", environ={}).pools.served
    rules = AlertRules().render()
    head, groups, rest = rules.partition("groups:\n")
    return {
        FOLDER / "accounts.conf": nats_accounts(pools=pools),
        FOLDER / "valkey-users.conf": valkey_accounts(),
        GATEWAY: Caddyfile(admission="admission:8080", notifier="notifier:8080").render(),
        RULES: rules,
        RESOURCE: head + AROUND + textwrap.indent(groups + rest, "  "),
        **{DASHBOARDS / f"{name}.json": dashboard(name) for name in NAMES},
    }


def keep(made: Mapping[Path, str], *, by: str, check: bool) -> int:
    """Writes what differs; with `check` it says so and gives 1. `by` is the module that makes them."""
    stale = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if check:
            sys.stderr.write(f"{path.relative_to(ROOT)}: run `python -m {by}`\n")
        else:
            path.write_text(made[path], encoding="utf-8")
    return 1 if stale and check else 0


def main(words: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="python -m libs.deployment.generated")
    parser.add_argument("--check", action="store_true")
    return keep(texts(), by="libs.deployment.generated", check=parser.parse_args(words).check)


if __name__ == "__main__":
    sys.exit(main())

"""The alerts' rules. What they say stands in `rules.yaml.template`, and for each window in
`objective.yaml.template`, as Prometheus reads it.

Owns what differs between an installation and a trial of a minute: windows, and how long is too long. Refuses to start
anything: `prometheus` runs them on one machine, compose and Kubernetes have them from `libs.deployment.generated`.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template
from typing import Final

TEMPLATE: Final = Path(__file__).with_name("rules.yaml.template")
OBJECTIVE: Final = Path(__file__).with_name("objective.yaml.template")
WINDOWS: Final = ("fast_short", "fast_long", "slow_short", "slow_long")


class _Rules(Template):
    delimiter = "@"  # Prometheus' own templates have the usual one


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRules:
    """Those of an installation, unless something else is said. Durations are in Prometheus' words."""

    fast_short: str = "5m"  # of a budget for 30 days 2 % are gone in an hour
    fast_long: str = "1h"
    slow_short: str = "30m"  # 5 % in six hours
    slow_long: str = "6h"
    fast_burn: float = 14.4
    slow_burn: float = 6
    start_within_s: int = 300  # a bound of the histogram's buckets
    start_budget: float = 0.05
    end_budget: float = 0.005
    brief: str = "2m"  # for which something may be wrong without a word
    recent: str = "5m"
    while_: str = "15m"
    day: str = "6h"
    lost: float = 2.5  # attempts, as increase() counts them: three, which is more than one worker may take along
    old_urgent_s: int = 900
    old_high_s: int = 1800
    old_normal_s: int = 7200
    old_low_s: int = 21_600
    old_background_s: int = 86_400

    def render(self) -> str:
        facts = {name.removesuffix("_"): value for name, value in asdict(self).items()}
        objective = _Rules(OBJECTIVE.read_text(encoding="utf-8"))
        objectives = [objective.substitute(facts, role=role, window=facts[role]) for role in WINDOWS]
        return _Rules(TEMPLATE.read_text(encoding="utf-8")).substitute(facts, objectives="".join(objectives))

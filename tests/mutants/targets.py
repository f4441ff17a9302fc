"""What is mutated, and which tests reach it: the closest ones first, as the first failure ends a try."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Target:
    """One file: its functions, or its data."""

    name: str
    module: str
    file: str
    tests: tuple[str, ...]
    data: bool = False

    @property
    def source(self) -> str:
        return (ROOT / self.file).read_text(encoding="utf-8")


def _unit(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/unit/test_{name}.py" for name in names)


def _conformance(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/conformance/test_{name}.py" for name in names)


TARGETS: Final = (
    Target(
        "table",
        "headgate_contracts.table",
        "contracts/headgate_contracts/table.py",
        _unit("contracts_lifecycle"),
        data=True,
    ),
    Target(
        "lifecycle",
        "headgate_contracts.lifecycle",
        "contracts/headgate_contracts/lifecycle.py",
        _unit("contracts_lifecycle", "contracts_events", "ledger"),
    ),
    Target("settling", "libs.eventlog.settling", "libs/eventlog/settling.py", _unit("log_settling")),
    Target(
        "turns",
        "libs.capacity.turns",
        "libs/capacity/turns.py",
        _unit("ledger_turns", "scheduler_order", "forecast_run"),
    ),
    Target(
        "plan",
        "libs.capacity.memory.planning",
        "libs/capacity/memory/planning.py",
        (*_unit("engine"), *_conformance("view_plan", "view_limits", "view_shut"), *_unit("scheduler_order")),
    ),
    Target(
        "blocking",
        "libs.capacity.memory.blocking",
        "libs/capacity/memory/blocking.py",
        (*_unit("engine"), *_conformance("view_plan", "view_limits", "view_shut"), *_unit("scheduler_order")),
    ),
    Target(
        "engine",
        "libs.capacity.engine",
        "libs/capacity/engine.py",
        (*_unit("engine", "policy_reloading", "scheduler_border"), *_conformance("view_plan", "view_shut")),
    ),
    Target(
        "staff",
        "libs.capacity.staff",
        "libs/capacity/staff.py",
        (*_unit("engine", "scheduler_border", "scheduler_alone", "scheduler_cycle"), *_conformance("view_workers")),
    ),
    Target(
        "planner",
        "services.scheduler.planning",
        "services/scheduler/planning.py",
        _unit(
            "scheduler_proposals",
            "scheduler_cycle",
            "scheduler_order",
            "scheduler_border",
            "scheduler_rules",
            "scheduler_ended",
            "scheduler_faults",
            "scheduler_alone",
        ),
    ),
)

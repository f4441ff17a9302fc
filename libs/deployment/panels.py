"""Grafana's dashboards, from `dashboards/*.toml`: each panel a title, a unit and its queries by their legend.

Owns what all panels have alike and where they stand. Which Prometheus is asked, Grafana lets its user choose.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

SOURCES: Final = Path(__file__).parent / "dashboards"
ASKED: Final = {"type": "prometheus", "uid": "${datasource}"}
WIDE, HIGH, COLUMNS = 8, 7, 3  # of 24 columns
NAMES: Final = tuple(sorted(path.stem for path in SOURCES.glob("*.toml")))


def dashboard(name: str) -> str:
    """As Grafana imports it."""
    said = tomllib.loads((SOURCES / f"{name}.toml").read_text(encoding="utf-8"))
    made = {
        "uid": f"headgate-{name}",
        "title": said["title"],
        "tags": ["headgate"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}]
        },
        "panels": [_panel(number, panel) for number, panel in enumerate(said["panel"])],
    }
    return json.dumps(made, indent=2) + "\n"


def queries(name: str) -> list[str]:
    """All that its panels ask."""
    said = tomllib.loads((SOURCES / f"{name}.toml").read_text(encoding="utf-8"))
    return [query for panel in said["panel"] for query in panel["queries"].values()]


def _panel(number: int, said: Mapping[str, Any]) -> Mapping[str, Any]:
    row, column = divmod(number, COLUMNS)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": said["title"],
        "datasource": ASKED,
        "gridPos": {"x": column * WIDE, "y": row * HIGH, "w": WIDE, "h": HIGH},
        "fieldConfig": {"defaults": {"unit": said.get("unit", "short"), "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": ASKED, "expr": query, "legendFormat": legend}
            for place, (legend, query) in enumerate(said["queries"].items())
        ],
    }

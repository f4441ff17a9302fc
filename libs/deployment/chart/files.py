"""All files of the chart, by their path below it."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from libs.deployment import ROOT
from libs.deployment.chart.emitting import document
from libs.deployment.chart.rendering import NAMES, rendered
from libs.deployment.chart.tree import Expression, Node, found, overlaid, replaced
from libs.deployment.chart.values import as_yaml, placed, schema_of, values_of

MADE: Final = "# Made by `python -m libs.deployment.chart` from k8s/base and k8s/components: change those.\n"
NAME: Final = "app.kubernetes.io/name"
_CHECKSUM: Final = ("spec", "template", "metadata", "annotations", "checksum/config")


def chart(kubectl: Path) -> Mapping[str, str]:
    tree = _tree(kubectl)
    values = values_of(tree)
    template = _rolled(placed(tree))
    texts = {
        "Chart.yaml": MADE + _described(),
        "values.yaml": MADE + as_yaml(values),
        "values.schema.json": json.dumps(schema_of(values), indent=2) + "\n",
        "templates/NOTES.txt": NOTES,
    }
    for name, node in template.items():
        path = _path(name, node)
        texts[path] = texts.get(path, MADE) + document(node)
    return texts


def _tree(kubectl: Path) -> dict[str, Any]:
    """The base, and on a condition what each component makes of it."""
    base = dict(rendered(kubectl))
    tree: Node = base
    for name in NAMES:
        tree = overlaid(tree, base, dict(rendered(kubectl, name)), f".Values.components.{name}")
    return tree


def _rolled(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """A changed ConfigMap is a new pod of each workload that reads it, by an annotation: Helm's names stay as they
    are."""
    made = dict(tree)
    for name, node in tree.items():
        if name.startswith(("Deployment/", "StatefulSet/")):
            read = sorted({each["name"] for key in ("configMap", "configMapRef") for each in found(node, key)})
            ours = [each for each in read if f"ConfigMap/{each}" in tree]
            files = " ".join(f'(include (print $.Template.BasePath "/config-{each}.yaml") .)' for each in ours)
            if ours:
                total = Expression(f'{{{{ list {files} | join "" | sha256sum }}}}')
                made[name] = replaced(node, _CHECKSUM, lambda _, total=total: total)
    return made


def _path(name: str, node: Node) -> str:
    """Manifests of one part stand in one file, each ConfigMap in its own, which others take a sum of."""
    kind, _, own = name.partition("/")
    if kind == "ConfigMap":
        return f"templates/config-{own}.yaml"
    if kind in {"NetworkPolicy", "PriorityClass", "ServiceAccount"}:
        return f"templates/{kind.lower()}.yaml"
    labels = next(found({"": node}, "metadata")).get("labels", {})
    return f"templates/{labels.get(NAME, kind.lower())}.yaml"


def _described() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"""apiVersion: v2
name: headgate
description: {json.dumps(project["description"])}
type: application
version: {project["version"]}
appVersion: {json.dumps(project["version"])}
kubeVersion: ">=1.32.0-0"
"""


NOTES: Final = """Headgate is starting in the namespace {{ .Release.Namespace }}. It waits for its Secrets: docs/run.md.

  kubectl --namespace {{ .Release.Namespace }} wait --for=condition=available --timeout=300s deployment --all
"""

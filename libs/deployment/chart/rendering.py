"""What kubectl makes of the base, alone and with a component, each manifest by its kind and name.

A ConfigMap's name ends in a hash of its content there, which Helm's do not: it is taken off, wherever it stands.
"""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from libs.deployment import ROOT
from libs.deployment.chart.tree import Node, mapped

BASE: Final = ROOT / "k8s" / "base"
COMPONENTS: Final = ROOT / "k8s" / "components"
VALUES_ONLY: Final = "place"  # says for kustomize what the values say for Helm
NAMES: Final = tuple(sorted(folder.name for folder in COMPONENTS.iterdir() if folder.name != VALUES_ONLY))
_HASHED: Final = re.compile(r"-[2456789bcdfghkmt]{10}$")

Manifests = Mapping[str, Any]


def rendered(kubectl: Path, *components: str) -> Manifests:
    """By `Kind/name`. The namespace itself is left out: it is there before a release is."""
    with TemporaryDirectory() as made:
        here = Path(made).resolve()
        overlay = {
            "resources": [os.path.relpath(BASE, here)],
            "components": [os.path.relpath(COMPONENTS / name, here) for name in components],
            "namespace": "headgate",
        }
        (here / "kustomization.yaml").write_text(json.dumps(overlay), encoding="utf-8")
        said = subprocess.run(  # noqa: S603 - our own words
            [kubectl, "kustomize", here], check=True, capture_output=True, text=True
        ).stdout
    return plain(said)


def plain(said: str) -> Manifests:
    """What stands in a stream of YAML, with names that do not follow from a content."""
    found = [manifest for manifest in yaml.load_all(said, yaml.CSafeLoader) if manifest]
    hashed = {each["metadata"]["name"] for each in found if each["kind"] == "ConfigMap"}
    names = {name: _HASHED.sub("", name) for name in hashed}
    unhashed = [_renamed(each, names) for each in found if each["kind"] != "Namespace"]
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in unhashed}


def _renamed(manifest: Node, names: Mapping[str, str]) -> Node:
    return mapped(manifest, lambda _, leaf: names.get(leaf, leaf) if isinstance(leaf, str) else leaf)

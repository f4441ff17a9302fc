"""An image's bill of materials, in CycloneDX 1.5, from what uv says of the lock: pure.

The same lock, sources and base give the same bytes: its time is that of the commit, its number follows from what it
says. It lists what the lock brings into the image, with hashes, our own packages and the base; what the base itself
holds is its makers' to say.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from packaging.markers import Marker

_MARKER: Final = "uv:package:marker"

Component = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BaseImage:
    """What an image starts from. The digest is a registry's: there is none where none gave it."""

    name: str
    digest: str | None = None

    @property
    def component(self) -> Component:
        name, _, tag = self.name.partition("@")[0].rpartition(":")
        purl = f"pkg:docker/{name}@{self.digest or tag}"
        return {"type": "container", "bom-ref": purl, "name": name, "version": tag, "purl": purl}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What goes into one image: exports of uv, and what the lock does not name."""

    image: str
    version: str
    exports: Sequence[Mapping[str, Any]]
    ours: Mapping[str, str]
    bases: Sequence[BaseImage]
    environment: Mapping[str, str]  # of markers: the image's platform and Python
    epoch_s: int


def bill_of(contents: Contents) -> str:
    """As JSON."""
    ours = [_ours(name, version) for name, version in sorted(contents.ours.items())]
    locked = _locked(contents)
    components = [*ours, *(_plain(each) for each in locked), *(base.component for base in contents.bases)]
    kept = {each["bom-ref"] for each in locked}
    bill: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(contents.epoch_s, UTC).isoformat().replace("+00:00", "Z"),
            "tools": [tool for export in contents.exports[:1] for tool in export["metadata"]["tools"]],
            "component": {
                "type": "container",
                "bom-ref": f"headgate-{contents.image}",
                "name": f"headgate-{contents.image}",
                "version": contents.version,
            },
        },
        "components": components,
        "dependencies": [
            {**each, "dependsOn": [ref for ref in each.get("dependsOn", []) if ref in kept]}
            for export in contents.exports
            for each in export["dependencies"]
            if each["ref"] in kept
        ],
    }
    number = uuid5(NAMESPACE_URL, json.dumps(bill, sort_keys=True))
    return json.dumps({"serialNumber": f"urn:uuid:{number}", **bill}, indent=2) + "\n"


def _locked(contents: Contents) -> list[Component]:
    """What is needed there, once each."""
    found = {each["bom-ref"]: each for export in contents.exports for each in export["components"]}
    return [each for each in found.values() if _is_needed(each, contents.environment) and "purl" in each]


def _is_needed(component: Component, environment: Mapping[str, str]) -> bool:
    markers: Iterable[str] = (each["value"] for each in component.get("properties", []) if each["name"] == _MARKER)
    return all(Marker(marker).evaluate(dict(environment)) for marker in markers)


def _plain(component: Component) -> Component:
    return {key: value for key, value in component.items() if key != "properties"}


def _ours(name: str, version: str) -> Component:
    purl = f"pkg:pypi/{name}@{version}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}

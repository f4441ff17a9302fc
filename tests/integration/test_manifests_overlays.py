"""What the overlays add to the base: each value of a place stands once, and is read where it is needed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.manifests import COMPONENTS, OVERLAYS, ROOT, Rendered, containers, render, render_with

PLACED = ("staging", "production")
PAIRED = ("admission", "scheduler", "notifier")


@pytest.mark.parametrize("name", PLACED)
def test_the_class_of_disks_is_one_value(name: str) -> None:
    [claim] = render(OVERLAYS / name).named("StatefulSet", "nats")["spec"]["volumeClaimTemplates"]

    assert claim["spec"]["storageClassName"] == _place(name)["storage_class"]


def test_without_a_word_of_it_the_class_of_disks_is_that_of_the_cluster() -> None:
    [claim] = render(OVERLAYS / "local").named("StatefulSet", "nats")["spec"]["volumeClaimTemplates"]

    assert "storageClassName" not in claim["spec"]


@pytest.mark.parametrize("name", PLACED)
def test_the_host_and_the_gateway_are_one_value_each(name: str) -> None:
    route = render(OVERLAYS / name).named("HTTPRoute", "headgate")["spec"]

    place = _place(name)
    assert route["hostnames"] == [place["host"]]
    assert route["parentRefs"] == [{"name": place["gateway"], "namespace": place["gateway_namespace"]}]


@pytest.mark.parametrize("name", PLACED)
def test_the_registry_is_one_value(name: str) -> None:
    ours = {image for image in _images(render(OVERLAYS / name)) if "headgate-" in image}

    assert len(ours) == 5
    assert all(image.startswith(f"{_place(name)['registry']}/headgate-") for image in ours)


@pytest.mark.parametrize("name", PLACED)
def test_values_of_a_place_are_read_and_not_applied(name: str) -> None:
    configured = {each["metadata"]["name"] for each in render(OVERLAYS / name).of_kind("ConfigMap")}

    assert not [each for each in configured if each.startswith("place")]


def test_in_staging_as_many_can_be_lost_as_in_production_and_each_asks_for_less() -> None:
    staging, production = render(OVERLAYS / "staging"), render(OVERLAYS / "production")

    for rendered in (staging, production):
        assert rendered.named("StatefulSet", "nats")["spec"]["replicas"] == 3
        assert all(_least(rendered, name) == 2 for name in PAIRED)
    for name, pod in staging.pods().items():
        [asked], [there] = pod["containers"], production.pods()[name]["containers"]
        assert _milli(asked) <= _milli(there), name
        assert asked["resources"]["limits"] == there["resources"]["limits"], name


def test_on_one_machine_there_is_one_of_each() -> None:
    workloads = render(OVERLAYS / "local").of_kind("Deployment", "StatefulSet")

    assert {each["spec"]["replicas"] for each in workloads} == {1}


def test_an_ingress_sends_everything_to_the_one_that_knows_whose_a_path_is() -> None:
    rendered = render_with("ingress")

    [ingress] = rendered.of_kind("Ingress")
    [rule] = ingress["spec"]["rules"]
    [path] = rule["http"]["paths"]
    assert (path["path"], path["pathType"]) == ("/", "Prefix")
    service = rendered.named("Service", path["backend"]["service"]["name"])
    assert path["backend"]["service"]["port"]["name"] in {each["name"] for each in service["spec"]["ports"]}
    assert service["spec"]["selector"].items() <= rendered.labels()["gateway"].items()
    assert not rendered.of_kind("HTTPRoute")


def test_an_ingress_is_at_the_host_of_its_place_and_by_tls_alone(tmp_path: Path) -> None:
    overlay = _copied(tmp_path, "production")
    text = (overlay / "kustomization.yaml").read_text()
    at = "components:\n"
    (overlay / "kustomization.yaml").write_text(text.replace(at, f"{at}  - ../../components/ingress\n"))

    [ingress] = render(overlay).of_kind("Ingress")

    host = _place("production")["host"]
    assert [rule["host"] for rule in ingress["spec"]["rules"]] == [host]
    assert [tls["hosts"] for tls in ingress["spec"]["tls"]] == [[host]]


def test_the_values_that_the_guide_shows_can_be_applied(tmp_path: Path) -> None:
    overlay = _copied(tmp_path, "production")
    [shown] = re.findall(
        r"^```ini\n(registry=.*?)^```", (ROOT / "docs" / "run.md").read_text(), re.DOTALL | re.MULTILINE
    )
    (overlay / "place.env").write_text(shown)

    mine = render(overlay)

    values = _read(shown)
    assert values.keys() == _place("production").keys()
    assert mine.named("HTTPRoute", "headgate")["spec"]["hostnames"] == [values["host"]]
    assert all(image.startswith(f"{values['registry']}/") for image in _images(mine) if "headgate-" in image)


def _copied(folder: Path, name: str) -> Path:
    for part in ("base", "components"):
        shutil.copytree(COMPONENTS.parent / part, folder / part)
    return shutil.copytree(OVERLAYS / name, folder / "overlays" / "mine")


def _place(name: str) -> dict[str, str]:
    return _read((OVERLAYS / name / "place.env").read_text())


def _read(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def _images(rendered: Rendered) -> set[str]:
    return {container["image"] for pod in rendered.pods().values() for container in containers(pod)}


def _least(rendered: Rendered, name: str) -> int:
    """How many there are at least, by number or by who scales it."""
    scaled = {
        each["metadata"]["name"]: each["spec"]["minReplicas"] for each in rendered.of_kind("HorizontalPodAutoscaler")
    }
    return scaled.get(name) or rendered.named("Deployment", name)["spec"]["replicas"]


def _milli(container: dict[str, Any]) -> int:
    cpu = container["resources"]["requests"]["cpu"]
    return int(cpu.removesuffix("m")) if cpu.endswith("m") else int(cpu) * 1000

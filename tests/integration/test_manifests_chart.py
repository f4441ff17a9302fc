"""The Helm chart says what the base and its components say, and nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from libs.deployment.chart.binaries import NEWEST
from libs.deployment.chart.rendering import Manifests, rendered
from tests.fixtures.chart import CHART, checksum, linted, refused, templated, without_checksums
from tests.fixtures.kubectl import HELMS, kubectl
from tests.fixtures.manifests import COMPONENT_NAMES, OVERLAYS, ROOT, VERSION, render
from tests.integration.test_manifests import VERSIONS

ALL = {"components": dict.fromkeys(COMPONENT_NAMES, True)}
# That of the ingress labels all that was taken before it.
ALL_BY_NAME = sorted(COMPONENT_NAMES, key=lambda name: name != "ingress")
# What is read from a file beside each overlay stands in the values here.
PLACE = {
    "registry": "registry.example.com",
    "host": "headgate.example.com",
    "gateway": {"name": "public", "namespace": "gateways"},
    "storage": {"class": "local-ssd"},
}


def by_kubectl(*components: str) -> Manifests:
    return rendered(kubectl(NEWEST), *components)


@pytest.mark.parametrize("version", HELMS)
def test_without_a_value_the_chart_is_the_base(version: str) -> None:
    assert without_checksums(templated(by=version)) == by_kubectl()


@pytest.mark.parametrize("name", COMPONENT_NAMES)
def test_each_component_makes_of_the_chart_what_it_makes_of_the_base(name: str) -> None:
    assert without_checksums(templated({"components": {name: True}})) == by_kubectl(name)


@pytest.mark.parametrize("version", HELMS)
def test_all_components_go_together_as_they_do_on_the_base(version: str) -> None:
    assert without_checksums(templated(ALL, by=version)) == by_kubectl(*ALL_BY_NAME)


def test_with_the_values_of_its_place_the_chart_is_the_overlay_for_production() -> None:
    values = {**PLACE, "replicas": {"worker": 6}, "components": {"autoscaling": True}}

    overlay = render(OVERLAYS / "production").manifests
    names = {f"{each['kind']}/{_plain(each)}" for each in overlay} - {"Namespace/headgate"}
    mine = without_checksums(templated(values))
    assert mine.keys() == names
    assert mine["HTTPRoute/headgate"] in overlay
    assert mine["StatefulSet/nats"]["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"] == "local-ssd"
    [there] = [each for each in overlay if (each["kind"], each["metadata"]["name"]) == ("Deployment", "worker")]
    assert mine["Deployment/worker"]["spec"]["replicas"] == there["spec"]["replicas"]
    assert _images(mine["Deployment/scheduler"]) == {
        f"registry.example.com/headgate-scheduler:{VERSION}",
        f"registry.example.com/headgate-operator:{VERSION}",
    }


def test_an_ingress_is_at_the_host_of_its_place() -> None:
    ingress = templated({**PLACE, "components": {"ingress": True}})["Ingress/headgate"]

    assert ingress["spec"]["rules"][0]["host"] == PLACE["host"]
    assert ingress["spec"]["tls"][0]["hosts"] == [PLACE["host"]]


def test_everything_is_in_the_namespace_of_the_release_and_certificates_know_its_name() -> None:
    mine = templated(ALL, namespace="queue")

    there = by_kubectl(*ALL_BY_NAME)
    spaces = {name: each["metadata"].get("namespace") for name, each in mine.items()}
    assert spaces == {name: "queue" if "namespace" in each["metadata"] else None for name, each in there.items()}
    assert "nats.queue.svc" in mine["Certificate/nats-tls"]["spec"]["dnsNames"]


def test_a_changed_policy_rolls_whoever_reads_it_and_nobody_else() -> None:
    before, after = templated(), templated({"policy": "[tiers.partner]\njobs_per_day = 60\n"})

    rolled = {
        name
        for name in before
        if name.startswith(("Deployment/", "StatefulSet/")) and checksum(before[name]) != checksum(after[name])
    }
    assert rolled == {f"Deployment/{name}" for name in ("admission", "notifier", "scheduler", "worker")}
    assert after["ConfigMap/policy"]["data"]["policy.toml"] == "[tiers.partner]\njobs_per_day = 60\n"


def test_a_second_release_in_a_cluster_leaves_the_priority_classes_to_the_first() -> None:
    left_out = templated().keys() - templated({"priorityClasses": False}).keys()

    assert left_out == {f"PriorityClass/headgate-{name}" for name in ("servers", "services", "work")}


def test_an_image_may_be_named_by_its_digest() -> None:
    digest = f"headgate-worker:{VERSION}@sha256:{'0' * 64}"

    assert _images(templated({"images": {"worker": digest}})["Deployment/worker"]) == {digest}


@pytest.mark.parametrize("version", HELMS)
@pytest.mark.parametrize(
    "wrong", [{"component": {"tls": True}}, {"components": {"tsl": True}}, {"replicas": {"worker": "six"}}]
)
def test_a_value_that_nobody_reads_is_refused(version: str, wrong: dict[str, Any]) -> None:
    assert next(iter(wrong)) in refused(wrong, by=version)


@pytest.mark.parametrize("version", HELMS)
def test_helm_finds_nothing_to_say_against_it(version: str) -> None:
    assert linted(by=version) == []


def test_the_values_that_the_guide_shows_are_taken() -> None:
    [shown] = re.findall(
        r"^```yaml\n(registry:.*?)^```", (ROOT / "docs" / "run.md").read_text(), re.DOTALL | re.MULTILINE
    )

    mine = templated(yaml.safe_load(shown))

    assert mine["Deployment/worker"]["spec"]["replicas"] == 6
    assert {"HorizontalPodAutoscaler/admission", "PrometheusRule/headgate"} <= mine.keys()


def test_the_guide_promises_the_helms_that_are_run_and_the_chart_the_oldest_kubernetes() -> None:
    text = (ROOT / "docs" / "run.md").read_text()

    assert re.findall(r"Helm (\d\.\d+) and (\d\.\d+)", text) == [tuple(HELMS)]
    assert f'kubeVersion: ">={VERSIONS[0]}.0-0"' in (CHART / "Chart.yaml").read_text()


def _images(workload: dict[str, Any]) -> set[str]:
    pod = workload["spec"]["template"]["spec"]
    return {each["image"] for each in [*pod.get("initContainers", []), *pod["containers"]]}


def _plain(manifest: dict[str, Any]) -> str:
    name = manifest["metadata"]["name"]
    return re.sub(r"-[2456789bcdfghkmt]{10}$", "", name) if manifest["kind"] == "ConfigMap" else name

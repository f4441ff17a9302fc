"""What an overlay may take besides: each alone and all at once is what Kubernetes knows."""

from __future__ import annotations

import json
import re

import kubernetes_validate
import pytest

from libs.deployment.panels import NAMES
from tests.fixtures.kubectl import NEWEST, OLDEST
from tests.fixtures.manifests import BASE, COMPONENT_NAMES, Rendered, render, render_with
from tests.integration.test_manifests import VERSIONS

ALONE = [(name,) for name in COMPONENT_NAMES]
MADE_OF = re.compile(r"-[a-z0-9]{10}$")  # what a ConfigMap holds, in its name
INSTEAD = {"ingress": {("HTTPRoute", "headgate")}}  # what a component has something else for
FOREIGN = {
    "Certificate",
    "Issuer",
    "HTTPRoute",
    "ScaledObject",
    "PodMonitor",
    "PrometheusRule",
}  # kinds that no schema of Kubernetes has; other tests look at them


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("taken", [*ALONE, COMPONENT_NAMES], ids=" ".join)
def test_a_component_is_what_kubernetes_knows(taken: tuple[str, ...], version: str) -> None:
    for manifest in render_with(*taken).manifests:
        if manifest["kind"] not in FOREIGN:
            kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("taken", [*ALONE, COMPONENT_NAMES], ids=" ".join)
def test_the_oldest_kubectl_renders_a_component_as_the_newest_does(taken: tuple[str, ...]) -> None:
    assert render_with(*taken, by=OLDEST) == render_with(*taken, by=NEWEST)


@pytest.mark.parametrize("name", COMPONENT_NAMES)
def test_a_component_takes_nothing_away_that_the_base_has(name: str) -> None:
    def known(rendered: Rendered) -> set[tuple[str, str]]:
        return {(each["kind"], MADE_OF.sub("", each["metadata"]["name"])) for each in rendered.manifests}

    assert known(render(BASE)) - known(render_with(name)) == INSTEAD.get(name, set())


def test_monitoring_brings_the_rules_and_every_dashboard_where_grafana_looks() -> None:
    brought = render_with("monitoring")

    assert brought.named("PrometheusRule", "headgate")["spec"]["groups"]
    dashboards = brought.named("ConfigMap", "headgate-dashboards")
    assert dashboards["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert dashboards["data"].keys() == {f"{name}.json" for name in NAMES}
    assert all(json.loads(text)["panels"] for text in dashboards["data"].values())


def test_who_is_scaled_by_load_has_no_number_of_its_own() -> None:
    scaled = render_with("autoscaling")

    for autoscaler in scaled.of_kind("HorizontalPodAutoscaler"):
        target = autoscaler["spec"]["scaleTargetRef"]
        assert "replicas" not in scaled.named(target["kind"], target["name"])["spec"], target["name"]
        assert autoscaler["spec"]["minReplicas"] >= 2, target["name"]
    assert {each["metadata"]["name"] for each in scaled.of_kind("HorizontalPodAutoscaler")} == {"admission", "notifier"}


def test_hostile_work_has_machines_and_a_kernel_of_its_own_and_nobody_else_goes_there() -> None:
    pods = render_with("hostile").pods()

    [toleration] = pods["worker"]["tolerations"]
    assert (
        pods["worker"]["nodeSelector"] == {toleration["key"]: toleration["value"]} == {"headgate.dev/work": "hostile"}
    )
    assert toleration["effect"] == "NoSchedule"
    assert pods["worker"]["runtimeClassName"] == "gvisor"
    assert not [name for name, pod in pods.items() if name != "worker" and "nodeSelector" in pod]


def test_workers_are_scaled_by_the_work_there_is_and_by_the_slots_that_they_have() -> None:
    rendered = render_with("backlog")
    scaled = rendered.named("ScaledObject", "worker")["spec"]
    told = {
        each["name"]: each["value"] for each in rendered.pods()["worker"]["containers"][0]["env"] if "value" in each
    }

    assert scaled["scaleTargetRef"] == {"name": "worker"}
    assert "replicas" not in rendered.named("Deployment", "worker")["spec"]
    assert scaled["minReplicaCount"] >= 2
    work, busy = (each["metadata"] for each in scaled["triggers"])
    assert (work["query"], busy["query"]) == (
        f'max(headgate_backlog_seconds{{pool="{told["HEADGATE_POOL"]}"}})',
        f'max(headgate_concurrency_slots_active{{group="pool:{told["HEADGATE_POOL"]}"}})',
    )
    assert int(busy["threshold"]) == int(told["HEADGATE_SLOTS"])
    assert int(work["threshold"]) == int(told["HEADGATE_SLOTS"]) * 600

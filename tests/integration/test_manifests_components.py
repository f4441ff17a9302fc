"""What an overlay may take besides: each alone and all at once is what Kubernetes knows."""

from __future__ import annotations

import kubernetes_validate
import pytest

from tests.fixtures.kubectl import NEWEST, OLDEST
from tests.fixtures.manifests import BASE, COMPONENT_NAMES, Rendered, render, render_with
from tests.integration.test_manifests import VERSIONS

ALONE = [(name,) for name in COMPONENT_NAMES]
FOREIGN = {"HTTPRoute", "PodMonitor"}  # kinds that no schema of Kubernetes has; test_manifests_network.py looks at them


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
        return {(each["kind"], each["metadata"]["name"]) for each in rendered.manifests}

    assert known(render(BASE)) <= known(render_with(name))


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

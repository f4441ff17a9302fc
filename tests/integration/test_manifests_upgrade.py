"""What an upgrade of the manifests meets, and in which order it goes. How to do it: docs/upgrade.md."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.fixtures.manifests import (
    BASE,
    COMPONENT_NAMES,
    FOLDERS,
    ROOT,
    WITH_PODS,
    Manifest,
    Rendered,
    referred,
    render,
    render_with,
)

WAVE = "argocd.argoproj.io/sync-wave"


@pytest.fixture(params=FOLDERS)
def rendered(request: pytest.FixtureRequest) -> Rendered:
    return render(FOLDERS[request.param])


def test_nothing_is_applied_that_could_not_be_applied_again_with_another_content(rendered: Rendered) -> None:
    assert not rendered.of_kind("Job", "Pod")  # the template of either cannot be changed


def test_the_log_is_brought_in_line_before_a_scheduler_starts(rendered: Rendered) -> None:
    [migrate] = rendered.pods()["scheduler"]["initContainers"]

    assert migrate["args"][0] == "migrate"
    assert "--replicas=$(HEADGATE_LOG_REPLICAS)" in migrate["args"]
    assert "--wait=30m" in migrate["args"]


def test_a_log_that_cannot_be_brought_in_line_leaves_the_schedulers_of_before(rendered: Rendered) -> None:
    assert rendered.named("Deployment", "scheduler")["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_the_log_is_brought_in_line_with_the_policy_that_the_scheduler_reads(rendered: Rendered) -> None:
    pod = rendered.pods()["scheduler"]
    [migrate], [scheduler] = pod["initContainers"], pod["containers"]

    [policy] = [each["value"] for each in scheduler["env"] if each["name"] == "HEADGATE_POLICY"]
    assert f"--policy={policy}" in migrate["args"]
    assert _mounted(migrate, "policy") == _mounted(scheduler, "policy")


def test_who_syncs_in_waves_takes_servers_then_schedulers_then_the_rest() -> None:
    waves = {each["metadata"]["name"]: _wave(each) for each in render(BASE).of_kind(*WITH_PODS)}

    assert waves == {"nats": 0, "valkey": 0, "scheduler": 1, "admission": 2, "worker": 2, "notifier": 2}


@pytest.mark.parametrize("components", [(), COMPONENT_NAMES], ids=["base", "with every component"])
def test_no_wave_waits_for_what_a_later_one_brings(components: tuple[str, ...]) -> None:
    synced = render_with(*components)
    waves = {(each["kind"], each["metadata"]["name"]): _wave(each) for each in synced.manifests}

    waiting = {
        (kind, name, needed): wave
        for (kind, name), wave in waves.items()
        for needed in _needed(synced.named(kind, name))
        if waves.get(needed, wave) > wave  # Secrets, and the ConfigMap of the issuer's keys, are there before
    }
    assert not waiting
    assert ("Namespace", "headgate") in waves


@pytest.mark.parametrize("components", [(), COMPONENT_NAMES], ids=["base", "with every component"])
def test_each_step_by_hand_brings_all_that_its_pods_refer_to(components: tuple[str, ...]) -> None:
    """The selectors as the page has them; the last step takes all."""
    page = (ROOT / "docs" / "upgrade.md").read_text(encoding="utf-8")
    left_out = [set(names.split(",")) for names in re.findall(r"app.kubernetes.io/name notin \(([a-z,]+)\)", page)]
    manifests = render_with(*components).manifests
    steps = {
        (each["kind"], each["metadata"]["name"]): sum(_name(each) in names for names in left_out) for each in manifests
    }

    assert [len(names) for names in left_out] == [4, 3]
    assert steps["StatefulSet", "nats"] == 0 < steps["Deployment", "scheduler"] < steps["Deployment", "worker"]
    for each in manifests:
        step = steps[each["kind"], each["metadata"]["name"]]
        assert not [needed for needed in _needed(each) if steps.get(needed, step) > step]


def _name(manifest: Manifest) -> str | None:
    labels: dict[str, str] = manifest["metadata"].get("labels", {})
    return labels.get("app.kubernetes.io/name")


def _mounted(container: Manifest, volume: str) -> Manifest:
    [found] = [each for each in container["volumeMounts"] if each["name"] == volume]
    return found


def _wave(manifest: Manifest) -> int:
    """Argo CD applies a wave when all that is in those before it is healthy; what names none is in 0."""
    return int(manifest["metadata"].get("annotations", {}).get(WAVE, 0))


def _needed(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """What has to be there before it gets healthy."""
    if "namespace" in manifest["metadata"]:
        yield "Namespace", manifest["metadata"]["namespace"]
    if manifest["kind"] in WITH_PODS:
        yield from referred(manifest["spec"]["template"]["spec"])
    if manifest["kind"] == "StatefulSet":
        yield "Service", manifest["spec"]["serviceName"]
    if manifest["kind"] == "HorizontalPodAutoscaler":
        scaled = manifest["spec"]["scaleTargetRef"]
        yield scaled["kind"], scaled["name"]

"""What an upgrade of the manifests meets, and in which order it goes. How to do it: docs/upgrade.md."""

from __future__ import annotations

import pytest

from tests.fixtures.manifests import BASE, FOLDERS, Manifest, Rendered, render

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
    workloads = render(BASE).of_kind("Deployment", "StatefulSet")
    waves = {each["metadata"]["name"]: int(each["metadata"]["annotations"][WAVE]) for each in workloads}

    assert waves == {"nats": -1, "valkey": -1, "scheduler": 0, "admission": 1, "worker": 1, "notifier": 1}


def _mounted(container: Manifest, volume: str) -> Manifest:
    [found] = [each for each in container["volumeMounts"] if each["name"] == volume]
    return found

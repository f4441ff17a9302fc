"""What the loss of a machine leaves of each part, as far as manifests can tell. What it costs: docs/operations.md."""

from __future__ import annotations

import pytest

from tests.fixtures.manifests import BASE, FOLDERS, ROOT, Manifest, Rendered, render

GONE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@pytest.fixture(params=FOLDERS)
def rendered(request: pytest.FixtureRequest) -> Rendered:
    return render(FOLDERS[request.param])


def test_nothing_ties_the_view_to_a_machine(rendered: Rendered) -> None:
    pod = rendered.named("Deployment", "valkey")["spec"]["template"]["spec"]

    assert not [each for each in rendered.of_kind("StatefulSet") if each["metadata"]["name"] == "valkey"]
    assert {kind for volume in pod["volumes"] for kind in volume.keys() - {"name"}} == {"configMap", "emptyDir"}


def test_the_view_is_elsewhere_within_a_minute_of_the_loss_of_its_machine(rendered: Rendered) -> None:
    pod = rendered.named("Deployment", "valkey")["spec"]["template"]["spec"]

    assert {each["key"]: each["tolerationSeconds"] for each in pod["tolerations"]} == dict.fromkeys(GONE, 5)
    assert {(each["effect"], each["operator"]) for each in pod["tolerations"]} == {("NoExecute", "Exists")}


def test_a_rollout_ends_the_server_of_the_view_before_it_starts_another(rendered: Rendered) -> None:
    valkey = rendered.named("Deployment", "valkey")["spec"]

    assert (valkey["replicas"], valkey["strategy"]) == (1, {"type": "Recreate"})


def test_the_view_is_written_nowhere() -> None:
    lines = (BASE / "config" / "valkey.conf").read_text().splitlines()

    assert {'save ""', "appendonly no", "maxmemory-policy noeviction"} <= set(lines)


def test_what_must_not_be_lost_is_on_three_machines() -> None:
    nats = render(BASE).named("StatefulSet", "nats")["spec"]
    [apart] = nats["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert apart["labelSelector"] == nats["selector"]
    assert nats["replicas"] == 3


def test_replicas_of_a_service_are_spread_over_machines(rendered: Rendered) -> None:
    for name in ("admission", "scheduler", "worker", "notifier"):
        deployment = rendered.named("Deployment", name)["spec"]

        assert (
            _spread(deployment["template"]["spec"], "kubernetes.io/hostname")["labelSelector"]
            == (deployment["selector"])
        ), name


def test_the_page_of_operations_says_what_the_loss_of_each_part_costs() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()

    for name in render(BASE).pods():
        assert f"| {name} |" in text, name


def _spread(pod: Manifest, over: str) -> Manifest:
    [found] = [each for each in pod["topologySpreadConstraints"] if each["topologyKey"] == over]
    return found

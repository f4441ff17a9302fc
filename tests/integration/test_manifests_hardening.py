"""What keeps a bad day of one part from being that of another: identities, priorities, zones, budgets, bounds."""

from __future__ import annotations

import pytest

from tests.fixtures.manifests import BASE, FOLDERS, Rendered, render

OFFERED = ("admission", "notifier", "scheduler")


@pytest.fixture(params=FOLDERS)
def rendered(request: pytest.FixtureRequest) -> Rendered:
    return render(FOLDERS[request.param])


def test_each_pod_has_an_identity_of_its_own(rendered: Rendered) -> None:
    made = {account["metadata"]["name"] for account in rendered.of_kind("ServiceAccount")}

    assert {name: pod["serviceAccountName"] for name, pod in rendered.pods().items()} == {name: name for name in made}


def test_no_identity_may_ask_the_cluster_anything(rendered: Rendered) -> None:
    assert not rendered.of_kind("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
    assert not any(account["automountServiceAccountToken"] for account in rendered.of_kind("ServiceAccount"))


def test_servers_stay_before_services_and_services_before_work(rendered: Rendered) -> None:
    values = {each["metadata"]["name"]: each["value"] for each in rendered.of_kind("PriorityClass")}
    priority = {name: values[pod["priorityClassName"]] for name, pod in rendered.pods().items()}

    assert priority["nats"] == priority["valkey"] > max(priority[name] for name in OFFERED)
    assert min(priority[name] for name in OFFERED) > priority["worker"]


def test_work_drives_nobody_away(rendered: Rendered) -> None:
    assert rendered.named("PriorityClass", "headgate-work")["preemptionPolicy"] == "Never"


def test_replicas_are_spread_over_zones() -> None:
    for name in ("admission", "scheduler", "worker", "notifier", "nats"):
        constraints = render(BASE).pods()[name]["topologySpreadConstraints"]
        [zone] = [each for each in constraints if each["topologyKey"] == "topology.kubernetes.io/zone"]

        assert zone["labelSelector"]["matchLabels"].items() <= render(BASE).labels()[name].items(), name
        assert zone["whenUnsatisfiable"] == "ScheduleAnyway", name  # one zone is better than none


def test_what_does_not_get_ready_keeps_no_machine_from_being_emptied(rendered: Rendered) -> None:
    for budget in rendered.of_kind("PodDisruptionBudget"):
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow", budget["metadata"]["name"]


def test_a_worker_may_write_as_much_as_its_workspaces_hold(rendered: Rendered) -> None:
    pod = rendered.pods()["worker"]
    [workspaces] = [each["emptyDir"] for each in pod["volumes"] if each["name"] == "workspaces"]

    [container] = pod["containers"]
    assert (workspaces["sizeLimit"], container["resources"]["limits"]["ephemeral-storage"]) == ("10Gi", "12Gi")


def test_one_of_three_servers_sends_its_clients_away_before_it_stops() -> None:
    pod = render(BASE).pods()["nats"]
    [nats] = pod["containers"]

    assert nats["lifecycle"]["preStop"]["exec"]["command"] == ["/nats-server", "--signal", "ldm=1"]
    lines = (BASE / "config" / "nats.conf").read_text().splitlines()
    assert {'lame_duck_grace_period: "2s"', 'lame_duck_duration: "30s"'} <= set(lines)
    assert pod["terminationGracePeriodSeconds"] >= 30 + 2 + 10

"""What no pod may, each by itself, so that what was given away is named: the base, each overlay, all components at
once, and the Helm chart with all of them."""

from __future__ import annotations

import pytest

from tests.fixtures.backend import CADDY_IMAGE
from tests.fixtures.chart import templated
from tests.fixtures.manifests import COMPONENT_NAMES, FOLDERS, Rendered, containers, render, render_with

EVERYTHING, CHART = "every component", "the chart"
NEEDED = {CADDY_IMAGE: {"add": ["NET_BIND_SERVICE"]}}  # all that the restricted profile lets a pod have
VOLUMES = {"configMap", "emptyDir", "secret"}
ROLES = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")


@pytest.fixture(params=[*FOLDERS, EVERYTHING, CHART])
def rendered(request: pytest.FixtureRequest) -> Rendered:
    if request.param == CHART:
        values = {"components": dict.fromkeys(COMPONENT_NAMES, True)}
        return Rendered(tuple(dict(each) for each in templated(values).values()))
    return render_with(*COMPONENT_NAMES) if request.param == EVERYTHING else render(FOLDERS[request.param])


def test_no_pod_is_root(rendered: Rendered) -> None:
    for name, pod in rendered.pods().items():
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["runAsUser"] > 0, name
        assert pod["securityContext"]["runAsGroup"] > 0, name
        assert not [each for each in containers(pod) if "runAsUser" in each["securityContext"]], name


def test_every_pod_has_the_calls_of_the_runtimes_own_filter_alone(rendered: Rendered) -> None:
    for name, pod in rendered.pods().items():
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not [each for each in containers(pod) if "seccompProfile" in each["securityContext"]], name


def test_no_container_can_gain_rights(rendered: Rendered) -> None:
    for name, pod in rendered.pods().items():
        for container in containers(pod):
            assert container["securityContext"]["allowPrivilegeEscalation"] is False, name
            assert not container["securityContext"].get("privileged"), name


def test_no_container_has_a_capability_but_the_gateway_the_one_of_its_image(rendered: Rendered) -> None:
    for name, pod in rendered.pods().items():
        for container in containers(pod):
            allowed = {"drop": ["ALL"]} | NEEDED.get(container["image"], {})
            assert container["securityContext"]["capabilities"] == allowed, name


def test_no_container_writes_to_its_root(rendered: Rendered) -> None:
    for name, pod in rendered.pods().items():
        assert all(each["securityContext"]["readOnlyRootFilesystem"] is True for each in containers(pod)), name


def test_no_pod_shares_anything_of_its_machine(rendered: Rendered) -> None:
    for name, pod in rendered.pods().items():
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys(), name
        ports = [port for container in containers(pod) for port in container.get("ports", [])]
        assert not [port for port in ports if "hostPort" in port], name


def test_no_pod_mounts_anything_of_its_machine(rendered: Rendered) -> None:
    for name, pod in rendered.pods().items():
        assert all(volume.keys() & VOLUMES for volume in pod.get("volumes", [])), name


def test_no_folder_of_a_pod_grows_without_an_end(rendered: Rendered) -> None:
    for name, pod in rendered.pods().items():
        made = [volume["emptyDir"] for volume in pod.get("volumes", []) if "emptyDir" in volume]
        assert all("sizeLimit" in each for each in made), name


def test_no_pod_is_given_a_token_for_the_cluster(rendered: Rendered) -> None:
    assert all(pod["automountServiceAccountToken"] is False for pod in rendered.pods().values())
    assert not any(account["automountServiceAccountToken"] for account in rendered.of_kind("ServiceAccount"))
    assert not rendered.of_kind(*ROLES)


def test_no_pod_is_told_of_other_services_by_its_environment(rendered: Rendered) -> None:
    assert all(pod["enableServiceLinks"] is False for pod in rendered.pods().values())


def test_no_secret_stands_in_a_manifest(rendered: Rendered) -> None:
    assert not rendered.of_kind("Secret")
    for name, pod in rendered.pods().items():
        told = [each for container in containers(pod) for each in container.get("env", [])]
        assert not [each for each in told if "PASSWORD" in each["name"] or "@" in str(each.get("value", ""))], name


def test_no_service_has_a_port_of_a_machine_or_an_address_of_its_own_outside(rendered: Rendered) -> None:
    for service in rendered.of_kind("Service"):
        assert service["spec"].get("type", "ClusterIP") == "ClusterIP", service["metadata"]["name"]
        assert "externalIPs" not in service["spec"]


def test_nobody_speaks_to_anybody_unless_a_policy_says_so(rendered: Rendered) -> None:
    closed = rendered.named("NetworkPolicy", "nothing")["spec"]

    assert closed == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_no_policy_lets_everybody_in_or_out(rendered: Rendered) -> None:
    """The gateway of one machine aside: what is forwarded to it comes from the machine itself."""
    for policy in rendered.of_kind("NetworkPolicy"):
        for way, ends in (("ingress", "from"), ("egress", "to")):
            open_to_all = [rule for rule in policy["spec"].get(way, []) if ends not in rule]
            is_forwarded = policy["metadata"]["name"] == "gateway" and not rendered.of_kind("Ingress")
            assert not open_to_all or (is_forwarded and way == "ingress"), policy["metadata"]["name"]
            assert all("ports" in rule for rule in policy["spec"].get(way, [])), policy["metadata"]["name"]


def test_no_image_is_whatever_is_newest(rendered: Rendered) -> None:
    for name, pod in rendered.pods().items():
        for container in containers(pod):
            _, _, tag = container["image"].rpartition("/")[2].partition(":")
            assert tag not in ("", "latest"), name

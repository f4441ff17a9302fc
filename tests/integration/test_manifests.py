"""What is said to Kubernetes: valid to the letter, restricted, complete."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import kubernetes_validate
import pytest

from libs.deployment.secrets import environments, kubernetes
from libs.local.permissions import NATS_USERS, VALKEY_USERS
from services.admission.settings import AdmissionSettings
from services.notifier.settings import NotifierSettings
from services.scheduler.settings import SchedulerSettings
from services.worker.settings import WorkerSettings
from tests.fixtures.backend import CADDY_IMAGE, NATS_IMAGE, VALKEY_IMAGE
from tests.fixtures.manifests import BASE, FOLDERS, ROOT, Manifest, Rendered, containers, referred, render

VERSIONS = ("1.32", "1.34", "1.37")  # of Kubernetes: the oldest and the newest that are promised, and one between
SETTINGS = {
    "admission": AdmissionSettings,
    "scheduler": SchedulerSettings,
    "worker": WorkerSettings,
    "notifier": NotifierSettings,
}
TOLD = environments(dict.fromkeys(("system", *NATS_USERS), "p"), dict.fromkeys(VALKEY_USERS, "p"), webhooks={})
REGISTRY = "registry.example.com"  # where an overlay says that images are
BROUGHT = json.loads(kubernetes(TOLD, jwks="{}", teams=""))["items"]


@pytest.fixture(params=FOLDERS)
def rendered(request: pytest.FixtureRequest) -> Rendered:
    return render(FOLDERS[request.param])


@pytest.mark.parametrize("version", VERSIONS)
def test_every_manifest_is_what_kubernetes_knows_and_nothing_beside_it(rendered: Rendered, version: str) -> None:
    for manifest in (*rendered.manifests, *BROUGHT):
        if manifest["kind"] != "HTTPRoute":  # test_manifests_network.py looks at that one
            kubernetes_validate.validate(manifest, version, strict=True)


def test_everything_is_in_one_namespace_that_admits_restricted_pods_alone(rendered: Rendered) -> None:
    [namespace] = rendered.of_kind("Namespace")

    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    others = [each for each in rendered.manifests if each["kind"] not in ("Namespace", "PriorityClass")]
    assert {manifest["metadata"]["namespace"] for manifest in others} == {namespace["metadata"]["name"]}


def test_every_container_says_what_it_needs_and_where_it_ends(rendered: Rendered) -> None:
    for name, pod in rendered.pods().items():
        for container in containers(pod):
            assert container["resources"]["requests"].keys() == {"cpu", "memory", "ephemeral-storage"}, name
            assert container["resources"]["limits"].keys() == {"cpu", "memory", "ephemeral-storage"}, name


def test_everything_that_stays_is_asked_whether_it_lives_and_whether_it_is_ready(rendered: Rendered) -> None:
    for workload in rendered.of_kind("Deployment", "StatefulSet"):
        for container in workload["spec"]["template"]["spec"]["containers"]:
            assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys(), workload["metadata"]["name"]


def test_whether_a_service_lives_never_hangs_on_whether_its_servers_do(rendered: Rendered) -> None:
    for name in SETTINGS:
        [container] = rendered.pods()[name]["containers"]

        assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_whatever_a_pod_refers_to_is_made_here_or_brought_by_make_secrets(rendered: Rendered) -> None:
    made = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in (*rendered.manifests, *BROUGHT)}

    for name, pod in rendered.pods().items():
        assert not set(referred(pod)) - made, name


def test_no_secret_is_invented_here(rendered: Rendered) -> None:
    assert not rendered.of_kind("Secret")
    assert "PASSWORD" not in json.dumps(rendered.of_kind("Deployment", "StatefulSet", "Job"))


def test_each_pod_gets_its_own_secret_and_no_other(rendered: Rendered) -> None:
    for name, pod in rendered.pods().items():
        secrets = {used for kind, used in referred(pod) if kind == "Secret"}

        others = {
            "scheduler": {"scheduler", "operator", "nats-teams"},
            "nats": {"nats", "nats-teams"},
            "gateway": set[str](),
        }
        assert secrets == others.get(name, {name})


def test_what_may_change_streams_is_known_to_the_step_before_a_scheduler_alone(rendered: Rendered) -> None:
    pod = rendered.pods()["scheduler"]

    assert [each["name"] for each in containers(pod) if _told_secret(each, "operator")] == ["migrate"]
    assert [each["name"] for each in containers(pod) if _told_secret(each, "scheduler")] == ["scheduler"]
    [scheduler] = pod["containers"]
    assert "teams" not in {mounted["name"] for mounted in scheduler["volumeMounts"]}


def test_every_variable_is_one_that_its_service_reads(rendered: Rendered) -> None:
    for name, settings in SETTINGS.items():
        [container] = rendered.pods()[name]["containers"]
        told = {variable["name"] for variable in container["env"]} | TOLD[name].keys() | _shared(rendered).keys()

        assert {variable.removeprefix("HEADGATE_").lower() for variable in told} <= settings.model_fields.keys(), name


def test_there_are_as_many_copies_of_a_stream_as_there_are_servers(rendered: Rendered) -> None:
    copies = _shared(rendered)["HEADGATE_LOG_REPLICAS"]

    assert int(copies) == rendered.named("StatefulSet", "nats")["spec"]["replicas"]
    for name in SETTINGS:
        for container in containers(rendered.pods()[name]):
            assert any(each.get("configMapRef", {}).get("name", "").startswith("log-") for each in container["envFrom"])


def test_a_worker_has_time_to_hand_over_before_it_is_killed(rendered: Rendered) -> None:
    pod = rendered.pods()["worker"]
    told = {variable["name"]: variable["value"] for variable in pod["containers"][0]["env"]}

    assert float(told["HEADGATE_DRAIN_GRACE_S"]) + 15 <= pod["terminationGracePeriodSeconds"]


def test_no_single_pod_of_a_service_stands_alone() -> None:
    base = render(BASE)

    for name in ("admission", "scheduler", "notifier"):
        assert base.named("Deployment", name)["spec"]["replicas"] >= 2
        assert base.named("PodDisruptionBudget", name)["spec"]["minAvailable"] == 1
    assert base.named("StatefulSet", "nats")["spec"]["replicas"] == 3
    assert base.named("PodDisruptionBudget", "nats")["spec"]["maxUnavailable"] == 1


def test_a_budget_never_keeps_a_machine_from_being_emptied(rendered: Rendered) -> None:
    replicas = {
        workload["metadata"]["name"]: workload["spec"].get("replicas", 2)  # who has none is scaled, from two on
        for workload in rendered.of_kind("Deployment", "StatefulSet")
    }

    for budget in rendered.of_kind("PodDisruptionBudget"):
        assert budget["spec"].get("minAvailable", 0) < replicas[budget["metadata"]["name"]]


def test_images_are_of_this_version_and_servers_of_those_that_are_tested(rendered: Rendered) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    named = {container["image"] for pod in rendered.pods().values() for container in containers(pod)}
    images = {image.removeprefix(f"{REGISTRY}/") for image in named}

    assert {image for image in images if image.startswith("headgate-")} == {
        f"headgate-{name}:{version}" for name in _ours(rendered)
    }
    gateway = {CADDY_IMAGE} if "gateway" in rendered.pods() else set[str]()
    assert {image for image in images if not image.startswith("headgate-")} == {NATS_IMAGE, VALKEY_IMAGE} | gateway


def test_a_changed_policy_rolls_whoever_reads_it(tmp_path: Path) -> None:
    shutil.copytree(BASE, tmp_path / "base")
    (tmp_path / "base" / "config" / "policy.toml").write_text("[queue]\ncap = 200\n")

    changed = render(tmp_path / "base")

    def policy(rendered: Rendered) -> str:
        [name] = [name for kind, name in referred(rendered.pods()["scheduler"]) if name.startswith("policy")]
        return name

    assert policy(changed) != policy(render(BASE))


def _shared(rendered: Rendered) -> dict[str, str]:
    """What all that speaks to the log is told."""
    [found] = [each for each in rendered.of_kind("ConfigMap") if each["metadata"]["name"].startswith("log-")]
    return found["data"]


def _ours(rendered: Rendered) -> set[str]:
    return {"operator"} | rendered.pods().keys() - {"nats", "valkey", "gateway"}


def _told_secret(container: Manifest, name: str) -> bool:
    return {"secretRef": {"name": name}} in container["envFrom"]

"""What compose is told, looked at without starting it. tests/e2e/test_compose.py does start it."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from jsonschema import validators

from libs.deployment.secrets import environments
from libs.local.permissions import NATS_USERS, VALKEY_USERS
from tests.fixtures.backend import CADDY_IMAGE, NATS_IMAGE, VALKEY_IMAGE
from tests.fixtures.manifests import ROOT

Composed = dict[str, Any]
WATCHERS = {"prometheus", "alertmanager", "grafana"}
ONE_SHOT = {"migrate"}
LOG = ("nats", "nats-1", "nats-2")
TOLD = environments(dict.fromkeys(("system", *NATS_USERS), "p"), dict.fromkeys(VALKEY_USERS, "p"), webhooks={})


@pytest.fixture(scope="module")
def composed() -> Composed:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


@pytest.fixture(scope="module")
def services(composed: Composed) -> dict[str, Composed]:
    return composed["services"]


def test_it_is_what_the_compose_specification_knows(composed: Composed) -> None:
    schema = get_builtin_schema("vendor.compose-spec")

    validators.validator_for(schema)(schema).validate(composed)


def test_every_container_runs_with_the_least_that_there_is(services: dict[str, Composed]) -> None:
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert {"mem_limit", "cpus", "pids_limit"} <= service.keys(), name
        assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "gateway" else []), name
        assert not service.keys() & {"privileged", "pid", "devices"}, name


def test_the_servers_are_nobody_in_particular_either(services: dict[str, Composed]) -> None:
    assert {services[server]["user"] for server in ("valkey", "gateway")} == {"10001:10001"}


def test_nats_collects_below_what_it_may_have_as_in_a_cluster(services: dict[str, Composed]) -> None:
    for name in ("nats", "nats-1", "nats-2"):
        assert services[name]["environment"] == {"GOMEMLIMIT": "800MiB", "SERVER_NAME": name}
        assert services[name]["mem_limit"] == "1g"


def test_what_stays_is_started_again_and_what_ends_is_not_for_ever(services: dict[str, Composed]) -> None:
    for name, service in services.items():
        assert (service["restart"] == "unless-stopped") is (name not in ONE_SHOT), name


def test_one_port_is_open_and_those_of_who_watches_and_to_this_machine_alone(services: dict[str, Composed]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]

    assert ports == [
        "127.0.0.1:${HEADGATE_PORT:-8080}:8080",
        "127.0.0.1:${HEADGATE_PROMETHEUS_PORT:-9090}:9090",
        "127.0.0.1:${HEADGATE_ALERTMANAGER_PORT:-9093}:9093",
        "127.0.0.1:${HEADGATE_GRAFANA_PORT:-3000}:3000",
    ]
    assert {name for name in services if services[name].get("profiles") == ["observability"]} == WATCHERS


def test_who_does_not_speak_to_a_server_is_on_no_network_with_it(
    composed: Composed, services: dict[str, Composed]
) -> None:
    on = {
        network: {name for name, service in services.items() if network in service.get("networks", [])}
        for network in composed["networks"]
    }

    assert on["view"] == {"valkey", "admission", "scheduler"}
    assert on["log"] == {*LOG, "admission", "scheduler", "worker", "notifier", "migrate", "prometheus"}
    assert on["front"] == {"gateway", "admission", "notifier", *WATCHERS}
    assert [name for name, network in composed["networks"].items() if not network.get("internal")] == ["front"]


def test_who_speaks_to_a_server_starts_after_it_and_ends_before_it(services: dict[str, Composed]) -> None:
    for name in ("admission", "scheduler", "worker", "notifier", "migrate"):
        for network, server in (("log", "nats"), ("view", "valkey")):
            assert network not in services[name]["networks"] or server in services[name]["depends_on"], (name, server)


def test_who_asks_the_view_starts_when_it_answers(services: dict[str, Composed]) -> None:
    for name in ("admission", "scheduler"):
        assert services[name]["depends_on"]["valkey"] == {"condition": "service_healthy"}, name
    assert "healthcheck" in services["valkey"]


def test_who_asks_the_log_starts_when_it_answers(services: dict[str, Composed]) -> None:
    for name in ("admission", "scheduler", "worker", "notifier", "migrate"):
        assert services[name]["depends_on"]["nats"] == {"condition": "service_healthy"}, name


def test_each_process_is_told_its_own_secrets_from_a_file_that_is_made(services: dict[str, Composed]) -> None:
    for name, service in services.items():
        if "env_file" in service:
            [told] = re.findall(r"/secrets/(\w+)\.env$", service["env_file"])
            assert told == {"migrate": "operator", "nats-1": "nats", "nats-2": "nats"}.get(name, name)
            assert told in TOLD
    assert {name for name, service in services.items() if "env_file" not in service} == {"gateway", *WATCHERS}


def test_prometheus_scrapes_each_service_by_the_names_that_the_rules_know(services: dict[str, Composed]) -> None:
    told = yaml.safe_load((ROOT / "k8s/overlays/local/observability/prometheus.yml").read_text())

    [scraped] = told["scrape_configs"]
    [found] = scraped["dns_sd_configs"]
    assert (scraped["job_name"], found["port"]) == ("headgate", 8080)
    assert set(found["names"]) == {"admission", "scheduler", "worker", "notifier"} < services.keys()
    assert [each["target_label"] for each in scraped["relabel_configs"]] == ["service"]


def test_no_password_stands_in_it() -> None:
    text = (ROOT / "docker-compose.yml").read_text()

    assert "PASSWORD" not in text
    assert not re.findall(r"://[^/\s]*@", text)


def test_every_file_it_mounts_is_there(services: dict[str, Composed]) -> None:
    mounted = {
        volume for service in services.values() for volume in service.get("volumes", []) if isinstance(volume, str)
    }

    told = (re.sub(r"^\$\{HEADGATE_NATS_CONF:-(.*?)\}", r"\1", volume) for volume in mounted)
    files = {volume.split(":")[0] for volume in told if volume.startswith("./")}
    assert files
    assert all((ROOT / file).is_file() for file in files)


def test_images_are_of_this_version_and_servers_of_those_that_are_tested(services: dict[str, Composed]) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    for name, service in services.items():
        if "build" in service:
            assert service["image"] == f"headgate-{service['build']['target']}:{version}", name
    servers = {"valkey": VALKEY_IMAGE, "gateway": CADDY_IMAGE}
    assert {name: services[name]["image"] for name in servers} == servers
    assert f"ARG NATS={NATS_IMAGE}\n" in (ROOT / "Dockerfile").read_text()


def test_as_a_cluster_it_is_three_servers_by_one_name_with_a_disk_each(services: dict[str, Composed]) -> None:
    names = {name: services[name]["networks"]["log"]["aliases"] for name in LOG}
    disks = [services[name]["volumes"][-1] for name in LOG]

    routes = re.findall(r"nats://(.*):6222", (ROOT / _cluster()["HEADGATE_NATS_CONF"]).read_text())
    assert sorted(routes) == sorted(f"nats-{number}.nats-servers" for number in range(3))
    assert [names["nats"], *(names[each] for each in LOG[1:])] == [
        ["nats-0.nats-servers"],
        ["nats", "nats-1.nats-servers"],
        ["nats", "nats-2.nats-servers"],
    ]
    assert disks == [f"{name}:/data" for name in LOG]
    assert {name for name in services if services[name].get("profiles") == ["cluster"]} == set(LOG[1:])


def test_as_a_cluster_it_is_two_of_each_service_and_three_copies(services: dict[str, Composed]) -> None:
    told = _cluster()

    assert (told["COMPOSE_PROFILES"], told["HEADGATE_LOG_REPLICAS"]) == ("cluster", "3")
    assert told["HEADGATE_REPLICAS"] == "2"
    for name in ("admission", "scheduler", "worker", "notifier"):
        assert services[name]["scale"] == "${HEADGATE_REPLICAS:-1}", name
        assert services[name]["environment"]["HEADGATE_LOG_REPLICAS"] == "${HEADGATE_LOG_REPLICAS:-1}", name


def _cluster() -> dict[str, str]:
    lines = (ROOT / "cluster.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))

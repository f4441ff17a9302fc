"""Who may speak to whom in the cluster, and where a request from outside goes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import jsonschema
import pytest
import yaml

from tests.fixtures.manifests import BASE, LOCAL, NAME, Manifest, Rendered, containers, render, render_with, rule_of

PORTS = (4222, 6222, 8222, 6379, 8080, 9090)

# The schema of its own kind is the Gateway API's, which no package brings: so this is what we use of it, and no more.
PATH = {
    "type": "object",
    "additionalProperties": False,
    "required": ["type", "value"],
    "properties": {
        "type": {"enum": ["Exact", "PathPrefix", "RegularExpression"]},
        "value": {"type": "string", "pattern": "^/", "maxLength": 1024},
    },
}
RULE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["matches", "backendRefs"],
    "properties": {
        "matches": {
            "type": "array",
            "items": {"type": "object", "additionalProperties": False, "properties": {"path": PATH}},
        },
        "timeouts": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"request": {"type": "string", "pattern": r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"}},
        },
        "backendRefs": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "port"],
                "properties": {"name": {"type": "string"}, "port": {"type": "integer", "minimum": 1}},
            },
        },
    },
}
HTTP_ROUTE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "parentRefs": {
            "type": "array",
            "items": {"required": ["name"], "additionalProperties": False, "properties": {"name": {}}},
        },
        "rules": {"type": "array", "maxItems": 16, "items": RULE},
    },
}

# Who may open a connection to whom, and to which port. Nothing else gets through.
SERVICES = ("admission", "scheduler", "worker", "notifier")
SPEAKING = {
    *product(SERVICES, [("nats", 4222)]),
    *product(("admission", "scheduler"), [("valkey", 6379)]),
    ("nats", ("nats", 6222)),
}
THROUGH_THE_GATEWAY = {("gateway", ("admission", 8080)), ("gateway", ("notifier", 8080))}


def test_the_route_is_what_the_gateway_api_knows() -> None:
    for route in render(BASE).of_kind("HTTPRoute"):
        jsonschema.validate(route["spec"], HTTP_ROUTE)


def test_only_those_speak_who_must() -> None:
    assert set(_open(render(BASE))) == SPEAKING
    assert set(_open(render(LOCAL))) == SPEAKING | THROUGH_THE_GATEWAY
    assert set(_open(render_with("ingress"))) == SPEAKING | THROUGH_THE_GATEWAY


def test_from_outside_only_what_has_a_public_address_is_reached() -> None:
    assert _reached(render(BASE), "gateway") == {("admission", 8080), ("notifier", 8080)}
    assert _reached(render(LOCAL), "gateway") == {("gateway", 8080)}
    assert _reached(render_with("ingress"), "gateway") == {("gateway", 8080)}


def test_a_scraper_is_let_in_where_it_is_asked_for_and_to_metrics_alone() -> None:
    scraped = render_with("monitoring")

    assert _reached(render(BASE), "monitoring") == set()
    assert _reached(scraped, "monitoring") == {(name, 9090) for name in SERVICES}
    assert _reached(scraped, "gateway") == _reached(render(BASE), "gateway")
    assert set(_open(scraped)) == SPEAKING


def test_other_teams_are_let_in_to_nats_alone_where_it_is_asked_for() -> None:
    assert _reached(render(BASE), "team") == set()
    assert _reached(render_with("teams"), "team") == {("nats", 4222)}
    assert set(_open(render_with("teams"))) == SPEAKING


def test_what_a_gateway_reaches_answers_no_metrics() -> None:
    for name in ("admission", "notifier"):
        [container] = render(BASE).pods()[name]["containers"]

        assert {"name": "HEADGATE_METRICS_PORT", "value": "9090"} in container["env"]
        assert {each["name"]: each["containerPort"] for each in container["ports"]} == {"http": 8080, "metrics": 9090}


def test_every_service_of_ours_shows_metrics_at_one_port() -> None:
    for name in SERVICES:
        [service] = [each for each in render(BASE).of_kind("Service") if each["metadata"]["name"] == name]
        [container] = render(BASE).pods()[name]["containers"]

        assert "metrics" in {each["name"] for each in service["spec"]["ports"]}, name
        assert {"name": "metrics", "containerPort": 9090} in container["ports"], name


def test_telemetry_has_a_way_to_the_collector_where_it_is_asked_for_and_no_other() -> None:
    def ways_out(rendered: Rendered) -> set[tuple[str, int]]:
        collector = {"metadata": {"labels": {"headgate.dev/collector": "true"}}}
        return {
            (name, port)
            for name, labels in rendered.labels().items()
            for port in (443, 4317, 4318, 8080)
            if any(_admits(rule, port, namespace=collector) for rule in _rules(rendered, labels, "Egress"))
        }

    assert ways_out(render(BASE)) == set()
    assert ways_out(render_with("otel")) == set(product(SERVICES, (4317, 4318)))


def test_every_service_is_told_of_the_collector() -> None:
    sent = render_with("otel")
    [told] = [each for each in sent.of_kind("ConfigMap") if each["metadata"]["name"].startswith("otel-")]

    assert told["data"]["OTEL_EXPORTER_OTLP_ENDPOINT"].endswith(":4318")
    for name in SERVICES:
        [container] = sent.pods()[name]["containers"]
        assert {"configMapRef": {"name": told["metadata"]["name"]}} in container["envFrom"], name


def test_the_collector_keeps_what_fails_also_where_it_fails_after_its_trace_was_judged() -> None:
    [kept] = [
        each for each in render_with("otel").of_kind("ConfigMap") if each["metadata"]["name"][:10] == "collector-"
    ]
    told = yaml.safe_load(kept["data"]["collector.yaml"])
    processors, ways = told["processors"], told["service"]["pipelines"]

    policies = {each["name"]: each for each in processors["tail_sampling"]["policies"]}
    assert policies["failed"]["status_code"]["status_codes"] == ["ERROR"]
    assert policies["some"]["probabilistic"]["sampling_percentage"] < 100
    assert processors["filter/failed"]["traces"]["span"] == ["status.code != STATUS_CODE_ERROR"]
    assert ways["traces"]["processors"][0] == "tail_sampling"
    assert ways["traces/failed"]["processors"][0] == "filter/failed"
    for way in ways.values():
        assert set(way["receivers"]) <= told["receivers"].keys()
        assert set(way["processors"]) <= processors.keys()
        assert set(way["exporters"]) <= told["exporters"].keys()


def test_receivers_of_webhooks_are_called_by_notifiers_alone_and_at_no_private_address() -> None:
    called = render_with("webhooks")
    policy = called.named("NetworkPolicy", "to-receivers")["spec"]
    [rule] = policy["egress"]

    assert policy["podSelector"]["matchLabels"] == {NAME: "notifier"}
    assert rule["ports"] == [{"protocol": "TCP", "port": 443}]
    private = {each for block in rule["to"] for each in block["ipBlock"]["except"]}
    assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"} <= private
    assert {"fc00::/7", "fe80::/10", "64:ff9b::/96", "64:ff9b:1::/48"} <= private
    assert set(_open(called)) == SPEAKING


def test_a_scraper_finds_the_pods_by_the_port_that_they_have() -> None:
    monitor = render_with("monitoring").named("PodMonitor", "headgate")["spec"]

    [selected] = monitor["selector"]["matchExpressions"]
    assert (selected["key"], selected["operator"], set(selected["values"])) == (NAME, "In", set(SERVICES))
    [endpoint] = monitor["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"]) == ("metrics", "/metrics")


@pytest.mark.parametrize("path", ["/v1/stream", "/v1/jobs/j1/stream"])
def test_nobody_ends_a_stream_because_of_its_length(path: str) -> None:
    rule = rule_of(path)

    assert rule
    assert rule["timeouts"]["request"] == "0s"


def _reached(rendered: Rendered, of: str) -> set[tuple[str, int]]:
    """By pods of a namespace with this label of ours."""
    outside = {"metadata": {"labels": {f"headgate.dev/{of}": "true"}}}
    return {
        (name, port)
        for name, labels in rendered.labels().items()
        for port in PORTS
        if any(_admits(rule, port, namespace=outside) for rule in _rules(rendered, labels, "Ingress"))
    }


def _open(rendered: Rendered) -> Iterator[tuple[str, tuple[str, int]]]:
    """Every connection that both ends allow."""
    labels = rendered.labels()
    for (speaker, its), (hearer, others), port in product(labels.items(), labels.items(), PORTS):
        leaves = any(_admits(rule, port, pod=others) for rule in _rules(rendered, its, "Egress"))
        enters = any(_admits(rule, port, pod=its) for rule in _rules(rendered, others, "Ingress"))
        if leaves and enters and hearer in _listening(rendered, port):
            yield speaker, (hearer, port)


def _listening(rendered: Rendered, port: int) -> set[str]:
    return {
        name
        for name, pod in rendered.pods().items()
        for container in containers(pod)
        for listening in container.get("ports", [])
        if listening["containerPort"] == port
    }


def _rules(rendered: Rendered, labels: dict[str, str], direction: str) -> Iterator[Manifest]:
    for policy in rendered.of_kind("NetworkPolicy"):
        spec = policy["spec"]
        if direction in spec["policyTypes"] and _selects(spec["podSelector"], labels):
            yield from spec.get(direction.lower(), [])


def _admits(rule: Manifest, port: int, *, pod: dict[str, str] | None = None, namespace: Manifest | None = None) -> bool:
    if port not in [each["port"] for each in rule["ports"]]:
        return False
    peers = rule.get("from", rule.get("to"))
    if peers is None:
        return True
    if pod is not None:
        return any(peer.keys() == {"podSelector"} and _selects(peer["podSelector"], pod) for peer in peers)
    labels = namespace["metadata"]["labels"] if namespace else {}
    return any("namespaceSelector" in peer and _selects(peer["namespaceSelector"], labels) for peer in peers)


def _selects(selector: Manifest, labels: dict[str, str]) -> bool:
    wanted = selector.get("matchLabels", {}).items()
    listed = selector.get("matchExpressions", [])
    assert all(each["key"] == NAME and each["operator"] == "In" for each in listed)
    return wanted <= labels.items() and all(labels.get(each["key"]) in each["values"] for each in listed)

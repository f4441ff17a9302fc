"""What a place may say, with the base's own values as what it says by itself, and where in the chart each stands.

Owns `values.yaml` and its schema. Few on purpose: what nobody needs to say is said by the base.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from libs.deployment.chart.rendering import NAMES
from libs.deployment.chart.tree import ABSENT, Expression, Node, When, found, keyed, mapped, replaced

POD: Final = ("spec", "template", "spec")
CLAIM: Final = ("spec", "volumeClaimTemplates", 0, "spec")
REPLICATED: Final = ("admission", "scheduler", "worker", "notifier", "gateway")
WORKLOADS: Final = {**{name: f"Deployment/{name}" for name in (*REPLICATED, "valkey")}, "nats": "StatefulSet/nats"}
OURS: Final = "headgate-"
SAYS: Final[Mapping[str, str]] = {
    "registry": "where the images of Headgate are, as registry.example.com/tools; empty: they have no registry",
    "images": "each may be given with its digest: headgate-admission:0.2.0@sha256:...",
    "host": "the name under which it is reached; with TLS at the Gateway or the Ingress",
    "gateway": "the Gateway that the HTTPRoute belongs to, and its namespace where it is another",
    "replicas": "of admission, notifier and worker only where no autoscaler says it",
    "storage": "of each nats-server; without a class: the cluster's own",
    "resources": "of each container",
    "policy": "a whole policy.toml, by --set-file policy=policy.toml; empty: that of the base",
    "priorityClasses": "false where another release in the same cluster has made them",
    "otel": "where the component otel sends to",
    "prometheus": "whom the component backlog asks",
    "components": "as under `components:` of an overlay; docs/run.md says what each brings and needs",
}


def values_of(tree: Mapping[str, Node]) -> Mapping[str, Any]:
    """What the values are where nobody says another."""
    resources = {name: _value(tree, at, (*POD, "containers", 0, "resources")) for name, at in WORKLOADS.items()}
    resources["migrate"] = _value(tree, WORKLOADS["scheduler"], (*POD, "initContainers", 0, "resources"))
    return {
        "registry": "",
        "images": {_short(image): image for image in sorted(set(found(dict(tree), "image")))},
        "host": "",
        "gateway": {"name": "headgate", "namespace": ""},
        "replicas": {name: _value(tree, WORKLOADS[name], ("spec", "replicas")) for name in REPLICATED},
        "storage": {"class": "", "size": _value(tree, WORKLOADS["nats"], (*CLAIM, "resources", "requests", "storage"))},
        "resources": dict(sorted(resources.items())),
        "policy": "",
        "priorityClasses": True,
        "otel": {"endpoint": _value(tree, "ConfigMap/otel", ("data", "OTEL_EXPORTER_OTLP_ENDPOINT"))},
        "prometheus": next(found(tree["ScaledObject/worker"], "serverAddress")),
        "components": dict.fromkeys(NAMES, False),
    }


def placed(tree: Mapping[str, Node]) -> Node:
    """The tree with the values read where they stand."""
    for path, make in _places():
        tree = replaced(tree, path, make)
    tree = mapped(tree, _named_values)
    return {name: _in_namespace(name, node) for name, node in tree.items()}


def _places() -> Iterator[tuple[tuple[str | int, ...], Callable[[Node], Node]]]:
    for name in REPLICATED:
        yield (WORKLOADS[name], "spec", "replicas"), _as(f".Values.replicas.{name}")
    for name, at in WORKLOADS.items():
        yield (at, *POD, "containers", 0, "resources"), _as(f"toJson .Values.resources.{name}")
    scheduler = WORKLOADS["scheduler"]
    yield (scheduler, *POD, "initContainers", 0, "resources"), _as("toJson .Values.resources.migrate")
    yield ("StatefulSet/nats", *CLAIM, "resources", "requests", "storage"), _as(".Values.storage.size | quote")
    yield ("StatefulSet/nats", *CLAIM, "storageClassName"), _said(".Values.storage.class")
    route = ("HTTPRoute/headgate", "spec")
    yield (*route, "parentRefs", 0, "name"), _as(".Values.gateway.name | quote")
    yield (*route, "parentRefs", 0, "namespace"), _said(".Values.gateway.namespace")
    yield (*route, "hostnames"), lambda _: When(".Values.host", [_as(".Values.host | quote")(None)])
    for path in (("rules", 0, "host"), ("tls", 0, "hosts", 0)):
        yield (
            ("Ingress/headgate", "spec", *path),
            lambda host: When(".Values.host", _as(".Values.host | quote")(0), host),
        )
    yield (
        ("ConfigMap/policy", "data", "policy.toml"),
        lambda text: When(".Values.policy", _as("toJson .Values.policy")(0), text),
    )
    yield ("ConfigMap/otel", "data", "OTEL_EXPORTER_OTLP_ENDPOINT"), _as(".Values.otel.endpoint | quote")
    for name in ("headgate-servers", "headgate-services", "headgate-work"):
        yield (f"PriorityClass/{name}",), lambda whole: When(".Values.priorityClasses", whole)


def _named_values(key: str, value: Node) -> Node:
    """Those that stand at several places, known by their key."""
    if key == "image":
        registry = "{{ with .Values.registry }}{{ . }}/{{ end }}" if value.startswith(OURS) else ""
        return Expression(f'"{registry}{{{{ .Values.images.{_short(value)} }}}}"')
    if key == "dnsNames" and ".headgate" in value:
        return Expression(json.dumps(value.replace(".headgate", ".{{ .Release.Namespace }}")))
    return _as(".Values.prometheus | quote")(value) if key == "serverAddress" else value


def _in_namespace(name: str, node: Node) -> Node:
    """That of the release, for what has one."""
    has_one = "namespace" in next(found({"": node}, "metadata"))
    return replaced(node, ("metadata", "namespace"), _as(".Release.Namespace")) if has_one else node


def _as(text: str) -> Callable[[Node], Node]:
    return lambda _: Expression(f"{{{{ {text} }}}}")


def _said(name: str) -> Callable[[Node], Node]:
    """Only where it is not empty."""
    return lambda _: When(name, Expression(f"{{{{ {name} | quote }}}}"), ABSENT)


def _short(image: str) -> str:
    """`headgate-admission:0.2.0` is `admission`, `valkey/valkey:9.1` is `valkey`."""
    return image.rpartition("/")[2].partition(":")[0].removeprefix(OURS)


def _value(tree: Mapping[str, Node], at: str, path: tuple[str | int, ...]) -> Node:
    """What stands there first, on whatever condition."""
    node: Any = tree[at]
    for step in (*path, None):
        while isinstance(node, When):
            node = node.otherwise if node.then is ABSENT else node.then
        node = node if step is None else node[step]
    return node


def as_yaml(values: Mapping[str, Any]) -> str:
    """`values.yaml`, each with what it is for."""
    return "\n".join(
        line for name, value in values.items() for line in (f"# {SAYS[name]}", *_shown(name, value, 0), "")
    )


def _shown(name: str, value: object, depth: int) -> Iterator[str]:
    if keyed(value) and any(keyed(each) for each in value.values()):
        yield f"{' ' * depth}{name}:"
        for key, each in value.items():
            yield from _shown(key, each, depth + 2)
    elif keyed(value) and depth == 0:
        yield f"{name}:"
        yield from (f"  {key}: {json.dumps(each)}" for key, each in value.items())
    elif keyed(value):
        inner = ", ".join(f"{key}: {json.dumps(each)}" for key, each in value.items())
        yield f"{' ' * depth}{name}: {{{inner}}}"
    else:
        yield f"{' ' * depth}{name}: {json.dumps(value)}"


def schema_of(value: Node, *, of: str = "") -> Mapping[str, Any]:
    """JSON Schema, with which Helm refuses a word that nobody reads. What is asked for is Kubernetes' to judge."""
    if keyed(value) and of == "resources":
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": {key: {"type": "object"} for key in value},
        }
    if keyed(value):
        parts = {name: schema_of(each, of=name) for name, each in value.items()}
        return {"type": "object", "additionalProperties": False, "properties": parts}
    if isinstance(value, int) and not isinstance(value, bool):
        return {"type": "integer", "minimum": 0}
    return {"type": "boolean" if isinstance(value, bool) else "string"}

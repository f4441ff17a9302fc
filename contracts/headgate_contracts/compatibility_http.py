"""Whether clients of the HTTP API as it was released still understand it, and it them: route by route.

A client is the writer of what it sends and the reader of what it gets. So a request must be readable from then to
today, and an answer from today to then: a new optional parameter or field is no breach, a new answer to a route
neither. Each breach names the route and the field.

Owns how an operation becomes two objects, what is sent and what is answered. The rules themselves are `compatibility`.
"""

from collections.abc import Iterator
from typing import Any

from headgate_contracts.compatibility import Breach, Schema, gone, marked, once, readable
from headgate_contracts.schema_words import resolved

METHODS = ("get", "put", "post", "delete", "patch", "head")


def http_breaches(released: Schema, today: Schema) -> list[Breach]:
    """Everything by which today's API breaks a client of the released one. Both are OpenAPI documents."""
    now = dict(_operations(today))
    found: list[Breach] = []
    for route, operation in _operations(released):
        if route not in now:
            found.append(Breach(route, "", "the route is gone"))
            continue
        found += _of_requests(route, operation, now[route], roots=(released, today))
        found += _of_answers(route, operation, now[route], roots=(released, today))
    return once(found)


def _of_requests(route: str, old: Schema, new: Schema, *, roots: tuple[Schema, Schema]) -> list[Breach]:
    then, now = _sent(old), _sent(new)
    found = [*readable(then, now, message=route, roots=roots), *gone(then, now, message=route, roots=roots)]
    return marked(found, when="a released client's request, read today")


def _of_answers(route: str, old: Schema, new: Schema, *, roots: tuple[Schema, Schema]) -> list[Breach]:
    then, now = _answered(old, roots[0]), _answered(new, roots[1])
    found = [
        *readable(now, then, message=route, roots=(roots[1], roots[0])),
        *gone(then, now, message=route, roots=roots),
    ]
    return marked(found, when="today's answer, read by a released client")


def _operations(document: Schema) -> Iterator[tuple[str, Schema]]:
    for path, item in document["paths"].items():
        yield from ((f"{method.upper()} {path}", item[method]) for method in METHODS if method in item)


def _sent(operation: Schema) -> Schema:
    """All that a client sends as one object: each parameter by its place and name, the body by its type."""
    parameters = operation.get("parameters", ())
    body = operation.get("requestBody", {})
    fields: dict[str, Any] = {f"{each['in']} {each['name']}": each.get("schema", {}) for each in parameters}
    bodies = {f"body {kind}": content.get("schema", {}) for kind, content in body.get("content", {}).items()}
    required = [f"{each['in']} {each['name']}" for each in parameters if each.get("required")]
    needed = list(bodies) if body.get("required") and len(bodies) == 1 else []
    return {"type": "object", "properties": fields | bodies, "required": [*required, *needed]}


def _answered(operation: Schema, root: Schema) -> Schema:
    """All that a client may be answered as one object: each answer by its status and type, and each event of a stream
    by its name."""
    answers: dict[str, Any] = {}
    for status, answer in operation["responses"].items():
        contents: Schema = answer.get("content") or {"": {}}
        for kind, content in contents.items():
            name = f"{status} {kind}".strip()
            answers |= {name: content.get("schema", {})} | {
                f"{name} {event}": {"$ref": ref} for event, ref in _items(content, root).items()
            }
    return {"type": "object", "properties": answers}


def _items(content: Schema, root: Schema) -> Schema:
    """What comes on a stream: the schema's place by the event's name. A client ignores a name that it does not know."""
    items: Schema = content.get("x-itemSchema", {})
    return resolved(items, root)["discriminator"]["mapping"] if items else {}

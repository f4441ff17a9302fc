"""The OpenAPI 3.1 document of the HTTP API, put together from what each service says of its own routes.

Which service answers is nobody's business: behind one gateway they are one API. Owns the words about the whole.
"""

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Final

VERSION: Final = "1.0.0"
ABOUT: Final = """Submit jobs, see where they stand and why, and operate the queue.

Every answer that is no success is a problem (RFC 9457) with a `debug_id`. Send an `Idempotency-Key` with each
submission: the same key and body is the same job. Streams are server-sent events; a client that comes back with its
last id misses nothing."""
SERVERS: Final = [
    {
        "url": "{headgate}",
        "description": "One gateway in front of all services.",
        "variables": {"headgate": {"default": "http://127.0.0.1:8080", "description": "as `headgate up` has it"}},
    }
]
SUBJECTS: Final = {  # by the first word of a path
    "jobs": "Jobs",
    "workflows": "Workflows",
    "stream": "Streams",
    "stream-tickets": "Streams",
    "pipelines": "Pipelines",
    "usage": "Usage",
    "queue": "Queue",
    "concurrency": "Groups and slots",
    "workers": "Workers",
    "stats": "Operating",
    "audit": "Operating",
    "tokens": "Operating",
    "policy": "Operating",
    "users": "Operating",
}


def openapi_document() -> dict[str, Any]:
    """As it was generated. A new copy each time."""
    return json.loads(files("headgate_contracts").joinpath("openapi.json").read_text(encoding="utf-8"))


def whole(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One document of these. What two of them name, both must mean alike."""
    paths: dict[str, Any] = {}
    components: dict[str, dict[str, Any]] = {}
    for part in parts:
        _add(paths, part["paths"])
        for kind, named in part["components"].items():
            _add(components.setdefault(kind, {}), named)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headgate", "description": ABOUT, "version": VERSION},
        "servers": SERVERS,
        "tags": [{"name": subject} for subject in dict.fromkeys(SUBJECTS.values())],
        "paths": {path: _tagged(path, operations) for path, operations in sorted(paths.items())},
        "components": {kind: dict(sorted(named.items())) for kind, named in sorted(components.items())},
    }


def _tagged(path: str, operations: Mapping[str, Any]) -> dict[str, Any]:
    subject = "Streams" if path.endswith("/stream") else SUBJECTS[path.split("/")[2]]
    return {method: {"tags": [subject], **operation} for method, operation in operations.items()}


def _add(known: dict[str, Any], more: Mapping[str, Any]) -> None:
    clashes = [name for name in known.keys() & more.keys() if known[name] != more[name]]
    if clashes:
        raise ValueError(f"two services say different things of {', '.join(sorted(clashes))}")
    known.update(more)

"""The OpenAPI document of the whole HTTP API, as its services serve it: `python -m libs.deployment.openapi [--check]`.

Made of the services' own routes, so it cannot say anything else than they do. Admission and the notifier stand behind
one gateway and are one API to clients; which of them answers is nobody's business. Owns `contracts/openapi.yaml`, and
the copy that admission serves.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from fastapi import FastAPI
from opentelemetry.metrics import NoOpMeter

from headgate_contracts.generate import HERE
from headgate_contracts.yaml_text import yaml_text
from libs.runtime.http import PROBLEM_RESPONSE, PROBLEM_SCHEMA
from services.admission.api import Edge
from services.admission.api_bulk import bulk_routes
from services.admission.api_content import erasure_routes, log_routes, result_routes
from services.admission.api_jobs import change_routes, submit_routes
from services.admission.api_queue import group_routes, queue_routes
from services.admission.api_reading import reading_routes
from services.admission.api_tickets import ticket_routes
from services.admission.api_workflows import workflow_routes, workflow_submit_routes
from services.admission.refusals import Refusals
from services.notifier.api import streams

VERSION: Final = "1.0.0"
ABOUT: Final = """Submit jobs, see where they stand and why, and operate the queue.

Every answer that is no success is a problem (RFC 9457) with a `debug_id`. Send an `Idempotency-Key` with each
submission: the same key and body is the same job. Streams are server-sent events; a client that comes back with its
last id misses nothing."""


def document() -> dict[str, Any]:
    """Everything under /v1. No route is called here, so none needs what it would answer from."""
    app = FastAPI(title="Headgate", version=VERSION, description=ABOUT, responses={"default": PROBLEM_RESPONSE})
    nobody = cast("Any", None)
    edge = cast("Edge", SimpleNamespace(refusals=Refusals(nobody, NoOpMeter("nobody"))))
    for router in (
        submit_routes(edge),
        bulk_routes(edge),
        workflow_submit_routes(edge),
        change_routes(edge),
        workflow_routes(edge),
        reading_routes(edge, nobody),
        queue_routes(edge, nobody, nobody),
        group_routes(nobody, nobody),
        result_routes(edge, nobody),
        log_routes(edge, nobody),
        erasure_routes(nobody),
        ticket_routes(nobody, nobody),
        streams(nobody),
    ):
        app.include_router(router)
    made = app.openapi()
    made["components"]["schemas"]["Problem"] = PROBLEM_SCHEMA
    made["paths"] = dict(sorted(made["paths"].items()))
    return json.loads(json.dumps(made))


def main(words: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="python -m libs.deployment.openapi", description="Writes contracts/openapi.yaml.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 where it is out of date")
    parser.add_argument("--root", type=Path, default=HERE, help="the folder contracts/ (default: %(default)s)")
    options = parser.parse_args(words)
    stale = {path: text for path, text in _files(options.root).items() if _read(path) != text}
    for path, text in stale.items():
        if options.check:
            sys.stderr.write(f"{path.name}: run make generate\n")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if stale and options.check else 0


def _files(root: Path) -> dict[Path, str]:
    """For people, and for the package that admission serves it from."""
    made = document()
    packed = json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n"
    return {root / "openapi.yaml": yaml_text(made), root / "headgate_contracts" / "openapi.json": packed}


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main())

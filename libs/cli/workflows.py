"""Commands about workflows: phases in order, each queued when the one before it is ready."""

from __future__ import annotations

import json
import uuid
from argparse import Namespace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from libs.cli.client import Api
from libs.cli.errors import Usage
from libs.cli.output import Output
from libs.cli.target import find_target


def submit(args: Namespace, out: Output) -> int:
    """All phases, or none."""
    api = Api(find_target())
    asked = {"project_id": args.project, "phases": _phases(args), "priority": args.priority}
    body = {name: value for name, value in asked.items() if value is not None}
    workflow = api.post("/v1/workflows", body, key=args.idempotency_key or uuid.uuid4().hex)
    return _shown(workflow, out)


def show(args: Namespace, out: Output) -> int:
    """Its phases, and where each stands."""
    return _shown(Api(find_target()).get(_path(args.workflow)), out)


def cancel(args: Namespace, out: Output) -> int:
    """All phases that have not ended."""
    return _shown(Api(find_target()).send("POST", f"{_path(args.workflow)}/cancel", {"reason": args.reason}), out)


def _shown(workflow: dict[str, Any], out: Output) -> int:
    out.data(workflow)
    out.say(f"{workflow['id']}  {workflow['status']}", style="bold")
    rows = [
        (str(number), phase["id"], phase["status"], phase["pipeline"], phase["message"])
        for number, phase in enumerate(workflow["phases"], 1)
    ]
    out.table(("PHASE", "JOB", "STATUS", "PIPELINE", "MESSAGE"), rows)
    return 0


def _path(workflow: str) -> str:
    return f"/v1/workflows/{quote(workflow, safe='')}"


def _phases(args: Namespace) -> list[object]:
    """One for each prompt, or those of the file."""
    if args.prompts and args.file:
        raise Usage(what="Name the phases as prompts or in a file, not both.")
    if args.prompts:
        return [{"input": {"prompt": prompt}} for prompt in args.prompts]
    if not args.file:
        raise Usage(what="Say what the phases are: a prompt for each, or --file with a JSON list of them.")
    try:
        phases: object = json.loads(Path(args.file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Usage(what=f"--file {args.file} cannot be read as JSON ({error}).") from error
    if not isinstance(phases, list):
        raise Usage(what='--file holds no list: write [{"input": {"prompt": "…"}}, …].')
    return phases  # pyright: ignore[reportUnknownVariableType] - the API checks each

"""Commands about workflows: phases in order, each queued when the one before it is ready."""

from __future__ import annotations

import uuid
from argparse import Namespace
from typing import Any

from libs.cli.client import path_of, user_api
from libs.cli.errors import Usage
from libs.cli.given import json_of_file
from libs.cli.output import Output


def submit(args: Namespace, out: Output) -> int:
    """All phases, or none."""
    asked = {"project_id": args.project, "phases": _phases(args), "priority": args.priority}
    body = {name: value for name, value in asked.items() if value is not None}
    workflow = user_api().post("/v1/workflows", body, key=args.idempotency_key or uuid.uuid4().hex)
    return _shown(workflow, out)


def show(args: Namespace, out: Output) -> int:
    """Its phases, and where each stands."""
    return _shown(user_api().get(path_of("workflows", args.workflow)), out)


def cancel(args: Namespace, out: Output) -> int:
    """All phases that have not ended."""
    path = path_of("workflows", args.workflow, "cancel")
    return _shown(user_api().send("POST", path, {"reason": args.reason}), out)


def _shown(workflow: dict[str, Any], out: Output) -> int:
    out.data(workflow)
    out.say(f"{workflow['id']}  {workflow['status']}", style="bold")
    rows = [
        (str(number), phase["id"], phase["status"], phase["pipeline"], phase["message"])
        for number, phase in enumerate(workflow["phases"], 1)
    ]
    out.table(("PHASE", "JOB", "STATUS", "PIPELINE", "MESSAGE"), rows)
    return 0


def _phases(args: Namespace) -> list[object]:
    """One for each prompt, or those of the file."""
    if args.prompts and args.file:
        raise Usage(what="Name the phases as prompts or in a file, not both.")
    if args.prompts:
        return [{"input": {"prompt": prompt}} for prompt in args.prompts]
    if not args.file:
        raise Usage(what="Say what the phases are: a prompt for each, or --file with a JSON list of them.")
    phases = json_of_file(args.file, option="--file")
    if not isinstance(phases, list):
        raise Usage(what='--file holds no list: write [{"input": {"prompt": "…"}}, …].')
    return phases  # pyright: ignore[reportUnknownVariableType] - the API checks each

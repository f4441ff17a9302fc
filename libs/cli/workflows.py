"""Commands about workflows: phases in order, each queued when the one before it is ready."""

from argparse import Namespace
from typing import Any

from headgate import Order
from libs.cli.client import as_user
from libs.cli.errors import Usage
from libs.cli.output import Output
from libs.cli.submitting import json_of_file


def submit(args: Namespace, out: Output) -> int:
    """All phases, or none."""
    options: Any = {"priority": args.priority} if args.priority else {}
    with as_user() as hg:
        workflow = hg.submit_workflow(_phases(args), project=args.project, key=args.idempotency_key, **options)
    return _shown(workflow.as_dict(), out)


def show(args: Namespace, out: Output) -> int:
    """Its phases, and where each stands."""
    with as_user() as hg:
        return _shown(hg.workflow(args.workflow).as_dict(), out)


def cancel(args: Namespace, out: Output) -> int:
    """All phases that have not ended."""
    with as_user() as hg:
        return _shown(hg.cancel_workflow(args.workflow, reason=args.reason).as_dict(), out)


def _shown(workflow: dict[str, Any], out: Output) -> int:
    out.data(workflow)
    out.say(f"{workflow['id']}  {workflow['status']}", style="bold")
    rows = [
        (str(number), phase["id"], phase["status"], phase["pipeline"], phase["message"])
        for number, phase in enumerate(workflow["phases"], 1)
    ]
    out.table(("PHASE", "JOB", "STATUS", "PIPELINE", "MESSAGE"), rows)
    return 0


def _phases(args: Namespace) -> list[str | Order]:
    """One for each prompt, or those of the file."""
    if args.prompts and args.file:
        raise Usage(what="Name the phases as prompts or in a file, not both.")
    if args.prompts:
        return [*args.prompts]
    if not args.file:
        raise Usage(what="Say what the phases are: a prompt for each, or --file with a JSON list of them.")
    phases = json_of_file(args.file, option="--file")
    if not isinstance(phases, list) or not all(isinstance(each, dict) for each in phases):  # pyright: ignore[reportUnknownVariableType]
        raise Usage(what='--file holds no list of objects: write [{"input": {"prompt": "…"}}, …].')
    return [Order(each) for each in phases]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - the API checks each

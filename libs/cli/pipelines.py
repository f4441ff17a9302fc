"""Commands about pipelines: which there are, an operator's removal of one; a new one, and what is wrong with one."""

import sys
from argparse import Namespace
from pathlib import Path

from headgate_pipeline.checking import checked
from headgate_pipeline.starting import NotStarted, start
from libs.cli.calling import called
from libs.cli.client import as_operator, as_user
from libs.cli.errors import Failed, Usage
from libs.cli.output import Output


def show(args: Namespace, out: Output) -> int:
    """Each with its pool, its stages and what its input may have."""
    with as_user() as hg:
        found = hg.pipelines()
    out.data([each.as_dict() for each in found])
    rows = (
        (
            each.name,
            each.pool or "every",
            each.version or "",
            " ".join(stage.name for stage in each.stages),
            " ".join((each.input_schema or {}).get("properties", ())),
        )
        for each in found
    )
    out.table(("PIPELINE", "POOL", "VERSION", "STAGES", "INPUT"), rows)
    return 0


def remove(args: Namespace, out: Output) -> int:
    """No new job of it is taken in for the pool, until a worker that has it starts again."""
    with as_operator() as hg:
        told = hg.ops.remove_pipeline(args.pipeline, pool=args.pool, reason=args.reason)
    out.data(told.as_dict())
    out.say(f"{told.message}.")
    return 0


def new(args: Namespace, out: Output) -> int:
    """A package of one's own, whose tests pass."""
    try:
        written = start(args.name, Path.cwd())
    except NotStarted as fault:
        raise Usage(what=str(fault)) from fault
    out.data({"written": [str(path) for path in written]})
    for path in written:
        out.say(f"written  {path.relative_to(Path.cwd())}")
    module = written[1].stem
    out.say(f"Its tests: cd {args.name}, then python -m pytest; what is wrong: {called()} pipelines check {module}")
    return 0


def check(args: Namespace, out: Output) -> int:
    """As a worker would load it, from this folder."""
    sys.path.insert(0, str(Path.cwd()))
    found = checked(args.module)
    out.data({"module": args.module, "wrong": found.wrong, "advice": found.advice})
    for word in found.advice:
        out.say(f"{args.module}: {word}")
    if found.wrong or found.pipeline is None:
        raise Failed(reason=f"{args.module} cannot be run: {'; '.join(found.wrong)}")
    stages = ", ".join(step.stage for step in found.pipeline.steps)
    out.say(f"{args.module} is the pipeline {found.pipeline.name}: {stages}")
    return 0

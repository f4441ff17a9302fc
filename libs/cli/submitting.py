"""Commands that take jobs in: submit one, try out what would come of it, submit one again."""

import json
from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from libs.cli.board import with_pause
from libs.cli.calling import called
from libs.cli.client import as_user
from libs.cli.errors import Usage
from libs.cli.following import watch
from libs.cli.jobs import shown_job
from libs.cli.output import Output, start_text
from libs.cli.target import find_target


def submit(args: Namespace, out: Output) -> int:
    """Take the words, the options and the input together, and follow the job where asked to."""
    asked = {
        "title": args.title,
        "priority": args.priority,
        "pipeline": args.pipeline,
        "pool": args.pool,
        "concurrency_group": args.group,
        "concurrency_limit": args.group_limit,
        "queue_ttl_s": args.queue_ttl,
        "run_timeout_s": args.run_timeout,
        "run_at": args.run_at,
        "notify_url": args.notify_url,
        "labels": labels(args.label),
    }
    options: Any = {name: value for name, value in asked.items() if value is not None}
    what = _input_of(args.prompt, args.input)
    with as_user() as hg:
        if args.dry_run:
            return _tried_out(hg.dry_run(what, project=args.project, **options).as_dict(), out)
        job = hg.submit(what, project=args.project, key=args.idempotency_key, **options)
    return _taken_in(job.state.as_dict(), args, out)


def retry(args: Namespace, out: Output) -> int:
    """Submit it again: with the work that its finished stages left, or from a stage that is named."""
    what = None if args.input is None else _input_of(None, args.input)
    with as_user() as hg:
        job = hg.retry(args.job, start=args.start, what=what, key=args.idempotency_key)
    return _taken_in(job.state.as_dict(), args, out)


def _taken_in(job: Mapping[str, Any], args: Namespace, out: Output) -> int:
    """Where the new job stands; followed to its end where that is asked for."""
    if args.follow:
        out.say(f"{job['id']}  {with_pause(job['message'], job)}")
        return watch(find_target(), job["id"], out)
    shown_job(job, out)
    out.say(f"Watch it with `{called()} jobs follow {job['id']}`.")
    return 0


def _tried_out(job: Mapping[str, Any], out: Output) -> int:
    out.data(job)
    out.say(f"Nothing was submitted. {job['message']}")
    queue: Mapping[str, Any] = job["queue"] or {}
    if queue.get("message"):
        out.say(start_text(queue, "It would start in"))
    for reason in job["waiting_on"]:
        out.say(f"  {reason['message']}")
    return 0


def _input_of(prompt: str | None, given: str | None) -> dict[str, Any]:
    """The prompt, in the input where there is one: JSON, or a file of it."""
    if prompt is None and given is None:
        raise Usage(
            what='Say what to run: a prompt in quotes, or --pipeline rehearsal --input \'{"stages": {"code": 2}}\'.'
        )
    known = json_in(given, option="--input") if given else dict[str, Any]()
    if not isinstance(known, dict):
        raise Usage(what='--input is JSON and no object: write it as \'{"prompt": "…"}\'.')
    return known if prompt is None else {"prompt": prompt, **known}  # pyright: ignore[reportUnknownVariableType] - its values are anything


def labels(pairs: Iterable[str]) -> dict[str, str] | None:
    """NAME=VALUE, many times; null where there is none."""
    found = dict[str, str]()
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise Usage(what=f"--label {pair} is no label: write it as name=value.")
        found[name] = value
    return found or None


def json_in(text: str, *, option: str) -> object:
    """What the text says, or the file that it names after an @."""
    if text.startswith("@"):
        return json_of_file(text[1:], option=option)
    return _parsed(text, option, ": write JSON, or @ and the name of a file that holds it")


def json_of_file(name: str, *, option: str) -> object:
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise Usage(what=f"{option}: {name} cannot be read ({why}).") from error
    return _parsed(text, f"{option} {name}")


def _parsed(text: str, what: str, remedy: str = "") -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Usage(what=f"{what} is not JSON ({error}){remedy}.") from error
    except RecursionError as error:
        raise Usage(what=f"{what} is nested too deep.") from error

"""Commands that take jobs in: submit one, try out what would come of it, submit one again."""

from __future__ import annotations

import uuid
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from libs.cli.calling import called
from libs.cli.client import Api, path_of, user_api
from libs.cli.errors import Usage
from libs.cli.following import watch
from libs.cli.given import json_in, labels
from libs.cli.jobs import told
from libs.cli.output import Output


def submit(args: Namespace, out: Output) -> int:
    """Take the words, the options and the input together, and follow the job where asked to."""
    asked = {
        "project_id": args.project,
        "input": _input_of(args.prompt, args.input),
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
    body = {name: value for name, value in asked.items() if value is not None}
    api = user_api()
    if args.dry_run:
        return _try_out(api, body, out)
    return _taken_in(api, "/v1/jobs", body, args, out)


def retry(args: Namespace, out: Output) -> int:
    """Submit a failed or cancelled one again, with the work that its finished stages left."""
    return _taken_in(user_api(), path_of("jobs", args.job, "retry"), {}, args, out)


def _taken_in(api: Api, path: str, body: Mapping[str, object], args: Namespace, out: Output) -> int:
    """Where the new job stands; followed to its end where that is asked for."""
    job = api.post(path, body, key=args.idempotency_key or uuid.uuid4().hex)
    if args.follow:
        out.say(f"{job['id']}  {job['message']}")
        return watch(api, job["id"], out)
    told(job, out)
    out.say(f"Watch it with `{called()} jobs follow {job['id']}`.")
    return 0


def _try_out(api: Api, body: Mapping[str, object], out: Output) -> int:
    job = api.post("/v1/jobs?dry_run=true", body)
    out.data(job)
    out.say(f"Nothing was submitted. {job['message']}")
    queue: Mapping[str, Any] = job["queue"] or {}
    if queue.get("message"):
        out.say(f"It would start in {queue['message']} (confidence {queue['confidence']}).")
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

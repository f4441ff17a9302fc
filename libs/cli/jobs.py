"""Commands about jobs: submit one, look at it, end it, fetch what it made."""

from __future__ import annotations

import io
import json
import sys
import tarfile
import uuid
from argparse import Namespace
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from libs.cli.client import Api
from libs.cli.errors import NoArchive, Usage
from libs.cli.following import watch
from libs.cli.output import Output, local_time
from libs.cli.target import find_target

SHOWN: Final = ("id", "status", "message", "project_id", "priority", "pipeline", "pool", "tier", "attempt", "debug_id")
PAGE: Final = 100  # as many as the API gives at once
OF_EVERY_EVENT: Final = frozenset({"seq", "at", "event", "job_id", "user_id", "project_id", "status", "submission"})


def submit(args: Namespace, out: Output) -> int:
    """Take the words, the options and the input together, and follow the job where asked to."""
    body = {
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
        "labels": _labels(args.label),
    }
    api = Api(find_target())
    if args.dry_run:
        return _try_out(api, {name: value for name, value in body.items() if value is not None}, out)
    key = args.idempotency_key or uuid.uuid4().hex
    job = api.post("/v1/jobs", {name: value for name, value in body.items() if value is not None}, key=key)
    if not args.follow:
        out.data(job)
    out.say(f"{job['id']}  {job['message']}")
    if args.follow:
        return watch(api, job["id"], out)
    out.say(f"Watch it with `headgate jobs follow {job['id']}`.")
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


def list_jobs(args: Namespace, out: Output) -> int:
    """One's own, newest first."""
    asked = {"status": args.status, "project": args.project, "workflow": args.workflow}
    asked["limit"] = str(min(args.limit, PAGE))
    pages = Api(find_target()).pages(f"/v1/jobs?{urlencode({name: value for name, value in asked.items() if value})}")
    jobs = list(islice((job for page in pages for job in page), args.limit))
    out.data(jobs)
    rows = [
        (job["id"], job["status"], job["project_id"], job["priority"], local_time(job["created_at"]), job["message"])
        for job in jobs
    ]
    out.table(("JOB", "STATUS", "PROJECT", "PRIORITY", "CREATED", "MESSAGE"), rows)
    if not rows:
        out.say("No jobs: submit one with `headgate submit`.")
    return 0


def show(args: Namespace, out: Output) -> int:
    """One job, as its owner sees it."""
    job = Api(find_target()).get(_path(args.job))
    out.data(job)
    for name, value in _shown(job):
        out.say(f"{name:<12} {value}")
    return 0


def events(args: Namespace, out: Output) -> int:
    """Its history, from the log."""
    found = Api(find_target()).get(f"{_path(args.job)}/events")
    out.data(found)
    rows = [(str(each["seq"]), local_time(each["at"]), each["event"], each["status"], _rest(each)) for each in found]
    out.table(("SEQ", "AT", "EVENT", "STATUS THEN", ""), rows)
    return 0


def confirm(args: Namespace, out: Output) -> int:
    """Grant a job that asks for it another batch of cycles."""
    job = Api(find_target()).post(f"{_path(args.job)}/confirm", {})
    out.data(job)
    out.say(f"{job['id']}  {job['message']}")
    return 0


def priority(args: Namespace, out: Output) -> int:
    """Another class for a job that has not started."""
    job = Api(find_target()).send("PATCH", _path(args.job), {"priority": args.priority, "reason": args.reason})
    out.data(job)
    out.say(f"{job['id']}  is {job['priority']} now: {job['message']}")
    return 0


def retry(args: Namespace, out: Output) -> int:
    """Submit a failed or cancelled one again, with the work that its finished stages left."""
    api = Api(find_target())
    job = api.post(f"{_path(args.job)}/retry", {}, key=args.idempotency_key or uuid.uuid4().hex)
    if not args.follow:
        out.data(job)
    out.say(f"{job['id']}  {job['message']}")
    return watch(api, job["id"], out) if args.follow else 0


def log(args: Namespace, out: Output) -> int:
    """What it said, as long as that is kept."""
    text = Api(find_target()).fetch("GET", f"{_path(args.job)}/log").decode(errors="replace")
    out.data({"job_id": args.job, "log": text})
    if text:
        out.plain(text.rstrip("\n"))
    return 0


def cancel_many(args: Namespace, out: Output) -> int:
    """All unfinished ones of a project, a workflow or a label."""
    asked = {"project": args.project, "workflow": args.workflow, "label": args.label, "reason": args.reason}
    body = {name: value for name, value in asked.items() if value}
    results = Api(find_target()).send("POST", "/v1/jobs/cancel", body)["results"]
    out.data(results)
    for each in results:
        job, problem = each.get("job"), each.get("problem")
        out.say(f"{job['id']}  {job['message']}" if job else f"not cancelled: {problem['detail']}")
    if not results:
        out.say("No unfinished job of that kind.")
    return 0 if all(each["status"] < 300 for each in results) else 1


def cancel(args: Namespace, out: Output) -> int:
    """Ask for its end."""
    job = Api(find_target()).post(f"{_path(args.job)}/cancel", {"reason": args.reason})
    out.data(job)
    out.say(f"{job['id']}  {job['message']}")
    return 0


def result(args: Namespace, out: Output) -> int:
    """Fetch what the job made, and say what is in it."""
    content = Api(find_target()).fetch("GET", f"{_path(args.job)}/result")
    if args.output == "-":
        sys.stdout.buffer.write(content)
        return 0
    path = Path(args.output or f"{args.job}.tar.gz")
    try:
        path.write_bytes(content)
    except OSError as error:
        raise Usage(what=f"{path} cannot be written ({error.strerror}): name another file with -o.") from error
    files = contents(content)
    out.data({"file": str(path), "bytes": len(content), "contents": files})
    out.say(f"{path} ({len(content)} bytes)")
    for name, size in files.items():
        out.say(f"  {size:>8}  {name}")
    return 0


def follow(args: Namespace, out: Output) -> int:
    """Its stream, to the end."""
    return watch(Api(find_target()), args.job, out)


def contents(archive: bytes) -> dict[str, int]:
    """Each file in a result, with its size."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as files:
            return {entry.name: entry.size for entry in files if entry.isfile()}
    except tarfile.TarError as error:
        raise NoArchive from error


def _path(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}"


def _input_of(prompt: str | None, given: str | None) -> dict[str, Any]:
    """The prompt, in the input where there is one: JSON, or a file of it."""
    if prompt is None and given is None:
        raise Usage(what='Say what to run: a prompt in quotes, or --input \'{"stages": {"code": 2}}\'.')
    known = _json_object(given) if given else {}
    return known if prompt is None else {"prompt": prompt, **known}


def _json_object(given: str) -> dict[str, Any]:
    try:
        text = Path(given[1:]).read_text(encoding="utf-8") if given.startswith("@") else given
        value: object = json.loads(text)
    except OSError as error:
        raise Usage(what=f"--input: {given[1:]} cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise Usage(what=f"--input is not JSON ({error}): write an object, or @ and the name of a file.") from error
    if not isinstance(value, dict):
        raise Usage(what='--input is JSON and no object: write it as \'{"prompt": "…"}\'.')
    return value  # pyright: ignore[reportUnknownVariableType] - its values are anything


def _labels(pairs: Iterable[str]) -> dict[str, str] | None:
    labels = dict[str, str]()
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise Usage(what=f"--label {pair} is no label: write it as name=value.")
        labels[name] = value
    return labels or None


def _shown(job: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    yield from ((name, str(job[name])) for name in SHOWN if job.get(name) not in (None, ""))
    for name in ("created_at", "updated_at", "scheduled_for"):
        if job.get(name):
            yield name, local_time(job[name])
    used = job["iterations"]
    yield "iterations", f"{used['used']} of {used['cap']}, {used['batch']} at a time"
    yield from (("waits for", reason["message"]) for reason in job["waiting_on"])
    if job.get("error"):
        yield "error", job["error"]["summary"]
        yield "detail", job["error"]["detail"]
    if job.get("result_url"):
        yield "result", f"headgate jobs result {job['id']}"


def _rest(event: Mapping[str, Any]) -> str:
    """What this event says beside what all say."""
    told = ((name, _short(value)) for name, value in event.items() if name not in OF_EVERY_EVENT)
    return " ".join(f"{name}={value}" for name, value in told if value)


def _short(value: Any) -> str:
    """Nothing for what says nothing."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value or "")  # pyright: ignore[reportUnknownArgumentType] - of anything

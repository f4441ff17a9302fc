"""Commands about jobs that are in: look at one, change or end it, fetch what it made."""

from __future__ import annotations

import io
import json
import shlex
import sys
import tarfile
from argparse import Namespace
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from libs.cli.calling import called
from libs.cli.client import path_of, user_api, with_query
from libs.cli.errors import NoArchive, Usage
from libs.cli.following import watch
from libs.cli.output import Output, clock_time, counted, local_time
from libs.cli.timeline import BAR_WIDTH, HEAD, attempts, bars, hops, in_ms

SHOWN: Final = ("id", "status", "message", "project_id", "priority", "pipeline", "pool", "tier", "attempt", "debug_id")
PAGE: Final = 100  # as many as the API gives at once
OF_EVERY_EVENT: Final = frozenset({"seq", "at", "event", "job_id", "user_id", "project_id", "status", "submission"})


def list_jobs(args: Namespace, out: Output) -> int:
    """One's own, newest first."""
    which = {"status": args.status, "project": args.project, "workflow": args.workflow}
    pages = user_api().pages(with_query("/v1/jobs", **which, limit=str(min(args.limit, PAGE))))
    jobs = list(islice((job for page in pages for job in page), args.limit))
    out.data(jobs)
    rows = [
        (job["id"], job["status"], job["project_id"], job["priority"], clock_time(job["created_at"]), job["message"])
        for job in jobs
    ]
    out.table(("JOB", "STATUS", "PROJECT", "PRIORITY", "CREATED", "MESSAGE"), rows)
    if not rows:
        out.say(f"No jobs: submit one with `{called()} submit`.")
    return 0


def show(args: Namespace, out: Output) -> int:
    """One job, as its owner sees it, or each hop of its life."""
    if args.timeline:
        return _show_timeline(args.job, out)
    job = user_api().get(path_of("jobs", args.job))
    out.data(job)
    for name, value in _shown(job):
        out.say(f"{name:<12} {value}")
    return 0


def events(args: Namespace, out: Output) -> int:
    """Its history, from the log."""
    found = user_api().get(path_of("jobs", args.job, "events"))
    out.data(found)
    rows = [(str(each["seq"]), local_time(each["at"]), each["event"], each["status"], _rest(each)) for each in found]
    out.table(("SEQ", "AT", "EVENT", "STATUS THEN", ""), rows)
    return 0


def _show_timeline(job_id: str, out: Output) -> int:
    told = hops(user_api().get(path_of("jobs", job_id, "events")))
    taken = attempts(told)
    out.data(
        {
            "job_id": job_id,
            "hops": [hop.as_data for hop in told],
            "attempts": [{"attempt": attempt, "took_ms": round(took_ms, 3)} for attempt, took_ms in taken.items()],
        }
    )
    rows = [hop.row for hop in told]
    width = min(out.room_beside(HEAD[:-1], rows), BAR_WIDTH if not out.is_terminal else sys.maxsize)
    out.table(HEAD, [(*row, drawn) for row, drawn in zip(rows, bars(told, width=max(1, width)), strict=True)])
    for attempt, took_ms in taken.items() if len(taken) > 1 else ():
        out.say(f"attempt {attempt}: {in_ms(took_ms)} ms from its dispatch")
    return 0


def log(args: Namespace, out: Output) -> int:
    """What it said, as long as that is kept."""
    text = user_api().fetch(path_of("jobs", args.job, "log")).decode(errors="replace")
    out.data({"job_id": args.job, "log": text})
    for line in text.splitlines():
        out.log(line)
    return 0


def result(args: Namespace, out: Output) -> int:
    """Fetch what the job made, and say where it was put and what is in it."""
    to_stdout = args.output == "-"
    if to_stdout and (args.json or sys.stdout.isatty()):
        wrong = "--json says where a file was put" if args.json else "a terminal cannot show a .tar.gz"
        raise Usage(what=f"{wrong}: name a file with -o, or send what `-o -` gives elsewhere.")
    path = _place(args.output, args.job)
    if not (to_stdout or args.force) and path.exists():
        raise _there_already(path)
    content = user_api().fetch(path_of("jobs", args.job, "result"))
    if to_stdout:
        sys.stdout.buffer.write(content)
        return 0
    files = contents(content)
    _write(path, content, over=args.force)
    out.data({"file": str(path.absolute()), "bytes": len(content), "contents": files})
    out.say(f"The result is in {path.absolute()} ({len(content)} bytes). It holds:")
    for name, size in files.items():
        out.say(f"  {size:>8}  {name}")
    out.say(f"`tar -xzf {shlex.quote(str(path))}` unpacks it.")
    return 0


def follow(args: Namespace, out: Output) -> int:
    """Its stream, to the end."""
    return watch(user_api(), args.job, out)


def usage(args: Namespace, out: Output) -> int:
    """What is used of one's day."""
    used = user_api().get("/v1/usage")
    out.data(used)
    out.say(
        f"{counted(used['jobs_used'], 'job')} used today, {used['jobs_remaining']} left; a new day begins at "
        f"{local_time(used['daily_limit_resets_at'])}."
    )
    return 0


def confirm(args: Namespace, out: Output) -> int:
    """Grant a job that asks for it another batch of iterations."""
    return told(user_api().post(path_of("jobs", args.job, "confirm"), {}), out)


def priority(args: Namespace, out: Output) -> int:
    """Another class for a job that has not started."""
    job = user_api().send("PATCH", path_of("jobs", args.job), {"priority": args.priority, "reason": args.reason})
    out.data(job)
    out.say(f"{job['id']}  is {job['priority']} now: {job['message']}")
    return 0


def cancel(args: Namespace, out: Output) -> int:
    """Ask for its end."""
    return told(user_api().post(path_of("jobs", args.job, "cancel"), {"reason": args.reason}), out)


def cancel_many(args: Namespace, out: Output) -> int:
    """All unfinished ones of a project, a workflow or a label."""
    asked = {"project": args.project, "workflow": args.workflow, "label": args.label, "reason": args.reason}
    body = {name: value for name, value in asked.items() if value}
    results = user_api().send("POST", "/v1/jobs/cancel", body)["results"]
    out.data(results)
    for each in results:
        job, problem = each.get("job"), each.get("problem")
        out.say(f"{job['id']}  {job['message']}" if job else f"not cancelled: {problem['detail']}")
    if not results:
        out.say("No unfinished job of that kind.")
    return 0 if all(each["status"] < 300 for each in results) else 1


def told(job: Mapping[str, Any], out: Output) -> int:
    """A job that was changed or taken in, and where it stands now."""
    out.data(job)
    out.say(f"{job['id']}  {job['message']}")
    return 0


def contents(archive: bytes) -> dict[str, int]:
    """Each file in a result, with its size."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as files:
            return {entry.name: entry.size for entry in files if entry.isfile()}
    except (tarfile.TarError, EOFError) as error:
        raise NoArchive from error


def _place(asked: str | None, job_id: str) -> Path:
    """The file that was asked for, or one named after the job: here, or in the folder that was asked for."""
    place, usual = Path(asked or "."), f"{job_id}.tar.gz"
    if asked and asked.endswith("/") and not place.is_dir():
        raise Usage(what=f"there is no folder {asked}: make it, or name a file with -o.")
    return place / usual if place.is_dir() else place


def _write(path: Path, content: bytes, *, over: bool) -> None:
    try:
        with path.open("wb" if over else "xb") as file:
            file.write(content)
    except FileExistsError:
        raise _there_already(path) from None
    except OSError as error:
        raise Usage(what=f"{path} cannot be written ({error.strerror}): name another file with -o.") from error


def _there_already(path: Path) -> Usage:
    return Usage(what=f"{path} is there already: name another file with -o, or replace it with --force.")


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
        yield "result", f"{called()} jobs result {job['id']}"


def _rest(event: Mapping[str, Any]) -> str:
    """What this event says beside what all say."""
    told = ((name, _short(value)) for name, value in event.items() if name not in OF_EVERY_EVENT)
    return " ".join(f"{name}={value}" for name, value in told if value)


def _short(value: Any) -> str:
    """Nothing for what says nothing."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return ",".join(map(str, value)) if isinstance(value, list) else str(value or "")  # pyright: ignore[reportUnknownArgumentType] - of anything

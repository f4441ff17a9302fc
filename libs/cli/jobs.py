"""Commands about jobs that are in: look at one, change or end it, fetch what it made."""

import io
import json
import shlex
import sys
import tarfile
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from headgate import Problem, Question, SyncHeadgate, SyncJob
from headgate.orders import Wanted
from libs.cli.board import with_pause
from libs.cli.calling import called
from libs.cli.client import as_operator, as_user
from libs.cli.errors import NoArchive, Usage
from libs.cli.following import watch
from libs.cli.output import Output, clock_time, local_time, wall_time, zoned
from libs.cli.target import find_target
from libs.cli.timeline import BAR_WIDTH, HEAD, attempts, bars, hops, in_ms, with_waits
from libs.runtime.wording import counted

SHOWN: Final = (
    "id",
    "title",
    "status",
    "message",
    "project_id",
    "priority",
    "pipeline",
    "pool",
    "tier",
    "attempt",
    "debug_id",
)
OF_EVERY_EVENT: Final = frozenset({"seq", "at", "event", "job_id", "user_id", "project_id", "status", "submission"})


def list_jobs(args: Namespace, out: Output) -> int:
    """One's own, an operator's: everybody's."""
    wanted: Wanted = {**_which(args), "sort": args.sort}
    with _asker(args) as hg:
        jobs = [job.as_dict() for job in hg.jobs(**wanted, limit=None if args.all else args.limit)]
    out.data(jobs)
    rows = [_row(job) for job in jobs]
    out.table(("JOB", "STATUS", "PROJECT", zoned("CREATED"), "TITLE", "MESSAGE"), rows)
    if not rows:
        is_chosen = any(_which(args).values())
        out.say("No job is like that." if is_chosen else f"No jobs: submit one with `{called()} submit`.")
    return 0


def _row(job: Mapping[str, Any]) -> Sequence[str]:
    created, says = clock_time(job["created_at"]), with_pause(job["message"], job)
    return job["id"], job["status"], job["project_id"], created, job.get("title") or "", says


def counts(args: Namespace, out: Output) -> int:
    """How many there are, by what they have in common; the most frequent first."""
    with _asker(args) as hg:
        told = hg.counts((args.by,), **_which(args)).as_dict()
    out.data(told)
    rows = [(str(count), name) for name, count in told["counts"][args.by].items()]
    out.table(("JOBS", args.by.upper()), rows)
    if not rows:
        out.say("No jobs.")
    return 0


def _asker(args: Namespace) -> AbstractContextManager[SyncHeadgate]:
    """Whose jobs are named by their user is an operator's question."""
    return as_operator() if args.user else as_user()


def _which(args: Namespace) -> Wanted:
    """The filters that were given."""
    return {
        "text": args.text,
        "status": args.status,
        "project": args.project,
        "pipeline": args.pipeline,
        "pool": args.pool,
        "label": args.label,
        "workflow": args.workflow,
        "user": args.user,
        "since": args.since,
        "until": args.until,
    }


def show(args: Namespace, out: Output) -> int:
    """One job, as its owner sees it, or each hop of its life."""
    if args.timeline:
        return _show_timeline(args.job, out)
    with as_user() as hg:
        job = hg.job(args.job).state.as_dict()
    out.data(job)
    for name, value in shown_lines(job):
        out.say(f"{name:<12} {value}")
    return 0


def events(args: Namespace, out: Output) -> int:
    """Its history, from the log."""
    found = _history(args.job)
    out.data(found)
    rows = [(str(each["seq"]), wall_time(each["at"]), each["event"], each["status"], _rest(each)) for each in found]
    out.table(("SEQ", zoned("AT"), "EVENT", "STATUS THEN", ""), rows)
    return 0


def _history(job_id: str) -> list[dict[str, Any]]:
    with as_user() as hg:
        return [event.as_dict() for event in hg.history(job_id)]


def _show_timeline(job_id: str, out: Output) -> int:
    with as_user() as hg:
        history, waits = [event.as_dict() for event in hg.history(job_id)], hg.waits(job_id)
    told = hops(history)
    taken = attempts(told)
    out.data(
        {
            "job_id": job_id,
            "hops": [hop.as_data for hop in told],
            "attempts": [{"attempt": attempt, "took_ms": round(took_ms, 3)} for attempt, took_ms in taken.items()],
            "waits": [wait.as_dict() for wait in waits],
        }
    )
    told = with_waits(told, history, waits)
    rows = [hop.row for hop in told]
    width = min(out.room_beside(HEAD[:-1], rows), BAR_WIDTH if not out.is_terminal else sys.maxsize)
    out.table(HEAD, [(*row, drawn) for row, drawn in zip(rows, bars(told, width=max(1, width)), strict=True)])
    for attempt, took_ms in taken.items() if len(taken) > 1 else ():
        out.say(f"attempt {attempt}: {in_ms(took_ms)} ms from its dispatch")
    return 0


def log(args: Namespace, out: Output) -> int:
    """What it said, as long as that is kept."""
    with as_user() as hg:
        text = hg.log(args.job)
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
    with as_user() as hg:
        content = hg.content(args.job)
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


def files(args: Namespace, out: Output) -> int:
    """What its result holds, or one file of it, as it is where that goes into a pipe."""
    with as_user() as hg:
        if args.path is not None:
            return _print_file(hg.file(args.job, args.path), args.path, out)
        found = hg.files(args.job)
    out.data([each.as_dict() for each in found])
    out.table(("SIZE", "TYPE", "FILE"), [(str(each.size), each.type.partition(";")[0], each.path) for each in found])
    return 0


def _print_file(content: bytes, path: str, out: Output) -> int:
    if not out.as_json and not sys.stdout.isatty():
        sys.stdout.buffer.write(content)
        return 0
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise Usage(what=f"{path} is not a text file: redirect it into a file with >.") from None
    out.data({"path": path, "content": text})
    out.plain(text)
    return 0


def follow(args: Namespace, out: Output) -> int:
    """Its stream, to the end."""
    return watch(find_target(), args.job, out)


def usage(args: Namespace, out: Output) -> int:
    """What is used of one's day."""
    with as_user() as hg:
        used = hg.usage().as_dict()
    out.data(used)
    out.say(
        f"{counted(used['jobs_used'], 'job')} used today, {used['jobs_remaining']} left; a new day begins at "
        f"{local_time(used['daily_limit_resets_at'])}."
    )
    return 0


def confirm(args: Namespace, out: Output) -> int:
    """Grant a job that asks for it another batch of iterations."""
    with as_user() as hg:
        return shown_job(hg.confirm(args.job).state.as_dict(), out)


def answer(args: Namespace, out: Output) -> int:
    """Tell a job what it asks."""
    with as_user() as hg:
        asked = hg.job(args.job).state.question
        content = _as_asked(args.answer, asked)
        question = args.question or (asked.id if asked else "none")
        return shown_job(hg.answer(args.job, content, question=question).state.as_dict(), out)


def _as_asked(text: str, asked: Question | None) -> Any:
    """As JSON where the question has a schema: what is none is taken for a text."""
    if asked is None or asked.answer_schema is None:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def priority(args: Namespace, out: Output) -> int:
    """Another class for a job that has not started."""
    with as_user() as hg:
        job = hg.reprioritize(args.job, args.priority, reason=args.reason).state.as_dict()
    out.data(job)
    out.say(f"{job['id']}  is {job['priority']} now: {job['message']}")
    return 0


def cancel(args: Namespace, out: Output) -> int:
    """Ask for its end."""
    with as_user() as hg:
        return shown_job(hg.cancel(args.job, reason=args.reason).state.as_dict(), out)


def cancel_many(args: Namespace, out: Output) -> int:
    """All unfinished ones of a project, a workflow or a label."""
    named = {"project": args.project, "workflow": args.workflow, "label": args.label, "reason": args.reason}
    with as_user() as hg:
        outcomes = hg.cancel_all(**{name: value for name, value in named.items() if value})
    out.data([_outcome(each) for each in outcomes])
    for each in outcomes:
        out.say(f"not cancelled: {each}" if isinstance(each, Problem) else f"{each.id}  {each.message}")
    if not outcomes:
        out.say("No unfinished job of that kind.")
    return 1 if any(isinstance(each, Problem) for each in outcomes) else 0


def _outcome(each: SyncJob | Problem) -> dict[str, Any]:
    """As the API has it."""
    if isinstance(each, Problem):
        return {"status": each.status, "job": None, "problem": each.problem}
    return {"status": 202, "job": each.state.as_dict(), "problem": None}


def shown_job(job: Mapping[str, Any], out: Output) -> int:
    """A job that was changed or taken in, where it stands now, and the pause that holds it there."""
    out.data(job)
    out.say(f"{job['id']}  {with_pause(job['message'], job)}")
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
        raise Usage(what=f"there is no folder {asked}: create it, or name a file with -o.")
    return place / usual if place.is_dir() else place


def _write(path: Path, content: bytes, *, over: bool) -> None:
    try:
        with path.open("wb" if over else "xb") as file:
            file.write(content)
    except FileExistsError:
        raise _there_already(path) from None
    except OSError as error:
        if not over:  # then what is there of it is ours
            path.unlink(missing_ok=True)
        raise Usage(what=f"{path} cannot be written ({error.strerror}): name another file with -o.") from error


def _there_already(path: Path) -> Usage:
    return Usage(what=f"{path} is there already: name another file with -o, or replace it with --force.")


def shown_lines(job: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    yield from ((name, str(job[name])) for name in SHOWN if job.get(name) not in (None, ""))
    for name in ("created_at", "updated_at", "scheduled_for"):
        if job.get(name):
            yield name, local_time(job[name])
    used = job["iterations"]
    yield "iterations", f"{used['used']} of {used['cap']}, {used['batch']} at a time"
    yield from (("waits for", reason["message"]) for reason in job["waiting_on"])
    if told := job.get("progress"):
        yield "progress", f"{told['fraction']:.0%} {told['message']}".rstrip()
    if used := job.get("model_usage"):
        yield from _model_usage(used)
    if job.get("question"):
        yield from _question(job["question"])
    if job.get("error"):
        yield "error", job["error"]["summary"]
        yield "detail", job["error"]["detail"]
    if job.get("result_url"):
        yield "result", f"{called()} jobs result {job['id']}"


def _model_usage(used: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    yield "tokens", f"{_tokens(used)}; {counted(used['calls'], 'call')}"
    for each in used["stages"]:
        yield "", f"{each.get('stage') or '?'}: {_tokens(each)} ({each['provider']}, {each['model']})"


def _tokens(used: Mapping[str, Any]) -> str:
    cached = f" ({used['cached_tokens']:,} cached)" if used["cached_tokens"] else ""
    return f"{used['input_tokens']:,} in{cached}, {used['output_tokens']:,} out"


def _question(asked: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    yield "asks", f"{asked['text']}  ({asked['id']}, until {local_time(asked['expires_at'])})"
    yield from (("choice", choice) for choice in asked["choices"])
    if asked.get("schema"):
        yield "schema", json.dumps(asked["schema"], ensure_ascii=False)
    if reason := asked.get("reason"):
        yield "reason", reason["summary"]
        yield from (("", line) for line in reason["detail"].splitlines())


def _rest(event: Mapping[str, Any]) -> str:
    """What this event says beside what all say."""
    told = ((name, _short(value)) for name, value in event.items() if name not in OF_EVERY_EVENT)
    return " ".join(f"{name}={value}" for name, value in told if value)


def _short(value: Any) -> str:
    """Nothing for what says nothing."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return ",".join(map(_short, value)) if isinstance(value, list) else str(value or "")  # pyright: ignore[reportUnknownArgumentType] - of anything

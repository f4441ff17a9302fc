"""Commands about the queue as a whole: who waits and why, who holds what, and what operators may do about it.

Each prints what the API says, as a table or as JSON. Where `headgate up` runs they act as its operator.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

from libs.cli.client import Api
from libs.cli.output import Output, clock_time, local_time
from libs.cli.target import find_target

QUEUE_HEAD: Final = ("#", "JOB", "PRIORITY", "TIER", "USER / PROJECT", "POOL", "WAITED", "STARTS IN")
ERASED_WITHIN_S: Final = 120.0  # its jobs are ended first, and there may be thousands


def explain(args: Namespace, out: Output) -> int:
    """Why a job waits, who holds what, what would let it run."""
    told = _operator().get(f"/v1/jobs/{quote(args.job, safe='')}/explain")
    out.data(told)
    out.say(f"{told['id']}  {told['message']}", style="bold")
    queue: Mapping[str, Any] = told["queue"] or {}
    if queue.get("message"):
        out.say(f"It starts in {queue['message']} (confidence {queue['confidence']}).")
    if not told["waiting_on"]:
        out.say("It waits for nothing.")
    for number, (reason, way) in enumerate(zip(told["waiting_on"], told["would_run"], strict=True), 1):
        since = f" (since {local_time(reason['since'])})" if reason.get("since") else ""
        out.say(f"\n{number}. {reason['message']}{since}", style="yellow")
        out.say(f"   it goes on when: {way}")
    return 0


def usage(args: Namespace, out: Output) -> int:
    """What is used of one's day."""
    told = Api(find_target()).get("/v1/usage")
    out.data(told)
    out.say(
        f"{told['jobs_used']} jobs used today, {told['jobs_remaining']} left; a new day begins at "
        f"{local_time(told['daily_limit_resets_at'])}."
    )
    return 0


def queue_show(args: Namespace, out: Output) -> int:
    """Every job in order, for operators; its length and one's own places otherwise."""
    queue = _operator().get("/v1/queue")
    out.data(queue)
    out.say(f"{queue['length']} of {queue['cap']} places are taken.")
    for pause in queue["paused"]:
        why = f": {pause['reason']}" if pause["reason"] else ""
        out.say(f"paused: {pause['scope']} by {pause['by']} since {local_time(pause['since'])}{why}", style="yellow")
    if queue["jobs"]:
        out.table(QUEUE_HEAD, [_queue_line(line) for line in queue["jobs"]])
    held_back = [(line["job_id"], _reasons(line)) for line in queue["jobs"] or () if _reasons(line)]
    if held_back:
        out.say("\nHeld back by more than those ahead", style="bold")
        out.table(("JOB", "WAITS FOR"), held_back)
    for own in queue["own"]:
        out.say(f"{own['job_id']}  #{own['position']}")
    return 0


def pause(args: Namespace, out: Output) -> int:
    """Nothing in the scope is started until it is resumed."""
    return _ordered(args, out, "pause", "is paused: what runs goes on, nothing new is started")


def resume(args: Namespace, out: Output) -> int:
    """The scope may start again."""
    return _ordered(args, out, "resume", "may start again")


def move(args: Namespace, out: Output) -> int:
    """Put a queued job right before or right after another."""
    place = {"before": args.before} if args.before else {"after": args.after}
    told = _operator().send("POST", "/v1/queue/move", {"job_id": args.job, "reason": args.reason, **place})
    out.data(told)
    out.say(f"{args.job}  {told['message']}")
    return 0


def analytics(args: Namespace, out: Output) -> int:
    """Waits by priority and tier, and how good the forecast was."""
    told = _operator().get("/v1/queue/analytics")
    out.data(told)
    waits = [
        (row["priority"], row["tier"], str(row["count"]), *(_span(row[name]) for name in ("mean", "p50", "p90", "p99")))
        for row in told["waits"]
    ]
    out.say("Waits to the first start", style="bold")
    out.table(("PRIORITY", "TIER", "JOBS", "MEAN", "P50", "P90", "P99"), waits)
    if not waits:
        out.say("No job has started yet.")
    out.say("\nForecasts", style="bold")
    rates = [
        (row["tier"] or "all", str(row["count"]), f"{row['hit_rate']:.0%}", _span(row["error"]))
        for row in told["forecast"]
    ]
    out.table(("TIER", "JOBS", "INSIDE THE RANGE", "MEAN ERROR"), rates)
    refused = [(local_time(row["hour"]), row["reason"], str(row["count"])) for row in told.get("refused", ())]
    if refused:
        out.say("\nRefused submissions", style="bold")
        out.table(("HOUR", "WHY", "TIMES"), refused)
    return 0


def concurrency_status(args: Namespace, out: Output) -> int:
    """Every group, or one with who holds its slots."""
    api = _operator()
    groups = [api.get(_group(args.group))] if args.group else api.get("/v1/concurrency")
    out.data(groups[0] if args.group else groups)
    out.table(
        ("GROUP", "LIMIT", "ACTIVE", "WAITING", ""),
        [
            (each["group"], str(each["limit"]), str(each["active"]), str(each["waiting"]), _shut(each))
            for each in groups
        ],
    )
    holders = [_holder_line(each) for group in groups if args.group for each in group["holders"]]
    if holders:
        out.say()
        out.table(("LEASE", "JOB", "ATTEMPT", "WORKER", "SINCE", "EXPIRES"), holders)
    return 0


def concurrency_release(args: Namespace, out: Output) -> int:
    """Free a lease by force. A running job's own slot is freed by giving its attempt back."""
    path = f"{_group(args.group)}/leases/{quote(args.lease, safe='')}"
    told = _operator().send("DELETE", _with_reason(path, args))
    out.data(told)
    out.say(f"{args.lease}  {told['message']}.")
    return 0


def concurrency_set(args: Namespace, out: Output) -> int:
    """Another limit, at once, for the backlog too; it survives restarts."""
    told = _operator().send("PUT", _group(args.group), {"limit": args.limit, "reason": args.reason})
    out.data(told)
    out.say(f"{told['group']}  {_counted(told['limit'], 'slot')} from now on.")
    return 0


def workers(args: Namespace, out: Output) -> int:
    """Who is there to run jobs."""
    found = _operator().get("/v1/workers")
    out.data(found)
    rows = [
        (
            each["worker"],
            each["pool"],
            f"{len(each['jobs'])} of {each['slots']}",
            "draining" if each["draining"] else "",
            clock_time(each["heard_at"]),
            " ".join(each["jobs"]),
        )
        for each in found
    ]
    out.table(("WORKER", "POOL", "SLOTS", "", "HEARD", "JOBS"), rows)
    if not rows:
        out.say("No worker is heard of: nothing can start.")
    return 0


def audit(args: Namespace, out: Output) -> int:
    """Who did what, and why."""
    asked = f"?{urlencode({'since': args.since})}" if args.since else ""
    found = [entry for page in _operator().pages(f"/v1/audit{asked}") for entry in page]
    out.data(found)
    rows = [(local_time(each["at"]), each["by"], each["act"], each["about"], each["reason"]) for each in found]
    out.table(("AT", "BY", "ACT", "ABOUT", "WHY"), rows)
    if not rows:
        out.say("Nobody did anything in that time.")
    return 0


def erase(args: Namespace, out: Output) -> int:
    """A user's inputs, workspaces, results and logs, for good. Unfinished jobs are cancelled."""
    path = f"/v1/users/{quote(args.user, safe='')}/content"
    told = _operator().send("DELETE", _with_reason(path, args), within_s=ERASED_WITHIN_S)
    out.data(told)
    out.say(f"{args.user}  {told['message']}.")
    return 1 if told["unfinished"] else 0


def _operator() -> Api:
    return Api(find_target(as_operator=True))


def _ordered(args: Namespace, out: Output, act: str, words: str) -> int:
    told = _operator().send("POST", f"/v1/queue/{act}", {"scope": args.scope, "reason": args.reason})
    out.data(told)
    done = told["changed"] and told["message"] == "done"
    out.say(f"{told['scope']}  {words if done else told['message']}.")
    return 0


def _with_reason(path: str, args: Namespace) -> str:
    return f"{path}?{urlencode({'reason': args.reason})}" if args.reason else path


def _queue_line(line: Mapping[str, Any]) -> Sequence[str]:
    return (
        str(line["position"]),
        line["job_id"],
        line["priority"],
        line["tier"],
        f"{line['user_id']} / {line['project_id']}",
        line["pool"],
        _waited(line["queued_at"]),
        "" if line["estimate_seconds"] is None else _span(line["estimate_seconds"]),
    )


def _reasons(line: Mapping[str, Any]) -> str:
    """What holds a job back beside those ahead of it."""
    return "; ".join(reason["message"] for reason in line["waiting_on"] if reason["reason"] != "behind")


def _holder_line(holder: Mapping[str, Any]) -> Sequence[str]:
    return (
        holder["lease"],
        holder["job_id"] or "",
        str(holder["attempt"] or ""),
        holder["worker"] or "",
        clock_time(holder["since"]),
        clock_time(holder["expires_at"]),
    )


def _group(name: str) -> str:
    return f"/v1/concurrency/{quote(name, safe='')}"


def _shut(group: Mapping[str, Any]) -> str:
    return f"shut until {local_time(group['shut_until'])}" if group.get("shut_until") else ""


def _waited(moment: str) -> str:
    then = datetime.fromisoformat(moment)
    return _span((datetime.now(then.tzinfo) - then).total_seconds())


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def _span(seconds: float) -> str:
    """4.2 s, 17 m, 2.1 h."""
    if seconds < 90:
        return f"{max(0.0, seconds):.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} m" if seconds < 5400 else f"{seconds / 3600:.1f} h"

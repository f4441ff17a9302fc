"""Commands about the queue: who waits and why, and what operators do about it.

Each prints what the API says, as a table or as JSON. Where `headgate up` runs they act as its operator.
"""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from libs.cli.calling import called
from libs.cli.client import as_operator
from libs.cli.output import Output, local_time, start_text, wall_time, zoned

QUEUE_HEAD: Final = ("#", "JOB", "TITLE", "PRIORITY", "TIER", "USER / PROJECT", "WAITED", "STARTS IN", "POOL")
USUAL_POOL: Final = "default"


def explain(args: Namespace, out: Output) -> int:
    """Why a job waits, who holds what, what would let it run."""
    with as_operator() as hg:
        told = hg.explain(args.job).as_dict()
    out.data(told)
    out.say(f"{told['id']}  {told['message']}", style="bold")
    queue: Mapping[str, Any] = told["queue"] or {}
    if queue.get("message"):
        out.say(start_text(queue, "It starts in"))
    if not told["waiting_on"]:
        out.say("It waits for nothing.")
    for number, (reason, way) in enumerate(zip(told["waiting_on"], told["would_run"], strict=True), 1):
        since = f" (since {local_time(reason['since'])})" if reason.get("since") else ""
        out.say(f"\n{number}. {reason['message']}{since}", style="yellow")
        out.say(f"   it goes on when: {way}")
    if told.get("may_wait_s"):
        out.say(f"\nIt may wait for {_span(told['may_wait_s'])}, then it fails.")
        out.say("Pauses, outages and time without a worker do not count.")
    return 0


def show(args: Namespace, out: Output) -> int:
    """Every job in order, for operators; its length and one's own places otherwise."""
    with as_operator() as hg:
        queue = hg.queue().as_dict()
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
    with as_operator() as hg:
        told = hg.ops.pause(args.scope, reason=args.reason).as_dict()
    out.data(told)
    done = "is paused: what runs goes on, nothing new is started"
    out.say(f"{told['scope']}  {done if _in_force(told) else told['message']}.")
    return 0


def resume(args: Namespace, out: Output) -> int:
    """The scope may start again."""
    with as_operator() as hg:
        told = hg.ops.resume(args.scope, reason=args.reason).as_dict()
    out.data(told)
    not_done = told["message"] if told["changed"] else f"was not paused: `{called()} queue show` says what is"
    out.say(f"{told['scope']}  {'may start again' if _in_force(told) else not_done}.")
    return 0


def move(args: Namespace, out: Output) -> int:
    """Put a queued job right before or right after another."""
    with as_operator() as hg:
        told = hg.ops.move(args.job, before=args.before, after=args.after, reason=args.reason).as_dict()
    out.data(told)
    out.say(f"{args.job}  {told['message']}")
    return 0


def analytics(args: Namespace, out: Output) -> int:
    """Waits by priority and tier, and how good the forecast was."""
    with as_operator() as hg:
        told = hg.ops.analytics().as_dict()
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
        (row["tier"] or row.get("priority") or "all", str(row["count"]), f"{row['hit_rate']:.0%}", _span(row["error"]))
        for row in (*told["forecast"], *told.get("by_class", ()))
    ]
    out.table(("TIER OR CLASS", "JOBS", "INSIDE THE RANGE", "MEAN ERROR"), rates)
    if not rates:
        out.say("No forecast has come due yet.")
    refused = [(wall_time(row["hour"]), row["reason"], str(row["count"])) for row in told.get("refused", ())]
    if refused:
        out.say("\nRefused submissions", style="bold")
        out.table((zoned("HOUR"), "WHY", "TIMES"), refused)
    return 0


def stats(args: Namespace, out: Output) -> int:
    """Figures over time, a line each: levels as they are now, waits of the last step, of all else the sum."""
    with as_operator() as hg:
        told = hg.ops.stats(since=args.since).as_dict()
    out.data(told)
    rows = [(line["name"], line["of"] or "", *_told_of(line)) for line in told["lines"]]
    out.table(("FIGURE", "OF", "NOW, OR IN ALL", "AT MOST IN A STEP"), rows)
    out.say(f"Since {local_time(told['since'])}, in steps of {_span(told['step_s'])}.")
    return 0


def _told_of(line: Mapping[str, Any]) -> Sequence[str]:
    known = [value for value in line["values"] if value is not None]
    if not known:
        return ("–", "–")
    if line["name"].startswith("wait"):
        return (_span(known[-1]), _span(max(known)))
    return (f"{known[-1] if line['name'] in ('queued', 'running') else sum(known):,.0f}", f"{max(known):,.0f}")


def _in_force(told: Mapping[str, Any]) -> bool:
    return told["changed"] and told["message"] == "done"


def _queue_line(line: Mapping[str, Any]) -> Sequence[str]:
    return (
        "–" if any(reason["reason"] == "paused" for reason in line["waiting_on"]) else str(line["position"]),
        line["job_id"],
        line["title"] or "",
        line["priority"],
        line["tier"],
        f"{line['user_id']} / {line['project_id']}",
        _waited(line["queued_at"]),
        "" if line["estimate_seconds"] is None else _span(line["estimate_seconds"]),
        "" if line["pool"] == USUAL_POOL else line["pool"],
    )


def _reasons(line: Mapping[str, Any]) -> str:
    """What holds a job back beside those ahead of it."""
    return "; ".join(reason["message"] for reason in line["waiting_on"] if reason["reason"] != "behind")


def _waited(moment: str) -> str:
    then = datetime.fromisoformat(moment)
    return _span((datetime.now(then.tzinfo) - then).total_seconds())


def _span(seconds: float) -> str:
    """4.2 s, 17 m, 2.1 h."""
    if seconds < 90:
        return f"{max(0.0, seconds):.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} m" if seconds < 5400 else f"{seconds / 3600:.1f} h"

"""Commands about groups: how many slots there are, who holds them, and what operators do about that."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from headgate.leasing import new_lease
from headgate.overseen import LeaseState
from libs.cli.client import as_operator, as_user
from libs.cli.output import Output, clock_time, local_time, zoned
from libs.runtime.wording import counted


def status(args: Namespace, out: Output) -> int:
    """Every group, or one with who holds its slots."""
    with as_operator() as hg:
        found = (hg.ops.group(args.group),) if args.group else hg.ops.groups()
    groups = [group.as_dict() for group in found]
    out.data(groups[0] if args.group else groups)
    out.table(
        ("GROUP", "LIMIT", "ACTIVE", "WAITING", ""),
        [
            (each["group"], str(each["limit"]), str(each["active"]), str(each["waiting"]), _shut(each))
            for each in groups
        ],
    )
    holders = [_holder_line(each, brief=out.is_terminal) for group in groups if args.group for each in group["holders"]]
    if holders:
        out.say()
        out.table(("LEASE", "JOB", "ATTEMPT", "TITLE", "WORKER", zoned("SINCE"), zoned("EXPIRES")), holders)
    return 0


def release(args: Namespace, out: Output) -> int:
    """Free a lease by force. A running job's own slot is freed by giving its attempt back."""
    with as_operator() as hg:
        told = hg.ops.release(args.group, args.lease, reason=args.reason).as_dict()
    out.data(told)
    out.say(f"{args.lease}  {told['message']}.")
    return 0


def set_limit(args: Namespace, out: Output) -> int:
    """Another limit, at once, for the backlog too; it survives restarts."""
    with as_operator() as hg:
        told = hg.ops.set_limit(args.group, args.limit, reason=args.reason).as_dict()
    out.data(told)
    out.say(f"{told['group']}  {counted(told['limit'], 'slot')} from now on.")
    return 0


def unset_limit(args: Namespace, out: Output) -> int:
    """Take back what was set: what the group's jobs bring holds again, or what policy says."""
    with as_operator() as hg:
        told = hg.ops.unset_limit(args.group, reason=args.reason).as_dict()
    out.data(told)
    out.say(f"{told['group']}  {counted(told['limit'], 'slot')} from now on: nothing is set by hand.")
    return 0


def take(args: Namespace, out: Output) -> int:
    """A slot for what is no job, waited for in line. It is held for its time, or until it is given back."""
    lease = args.lease or new_lease()
    with as_user() as hg:
        state = hg.take_slot(
            args.group, lease, project=args.project, limit=args.limit, ttl_s=args.ttl, wait_s=args.wait
        )
    return _held(state, out)


def extend(args: Namespace, out: Output) -> int:
    """It is held for as long from now."""
    with as_user() as hg:
        state = hg.extend_slot(args.group, args.lease, project=args.project, ttl_s=args.ttl)
    return _held(state, out)


def give_back(args: Namespace, out: Output) -> int:
    """The next in line has it at once."""
    with as_user() as hg:
        hg.give_slot_back(args.group, args.lease, project=args.project)
    out.data({"lease": args.lease})
    out.say(f"{args.lease}  is held no more.")
    return 0


def _held(state: LeaseState, out: Output) -> int:
    told = state.as_dict()
    out.data(told)
    out.plain(told["lease"])
    if out.is_terminal:  # elsewhere a program reads the lease, and nothing else
        out.say(f"It is held until {local_time(told['expires_at'])}.", style="dim")
    return 0


def _holder_line(holder: Mapping[str, Any], *, brief: bool) -> Sequence[str]:
    """A running job's own slot is called after it: in a terminal that is not said twice."""
    own_slot = brief and holder["lease"] == f"{holder['job_id']}:{holder['attempt']}"
    return (
        holder["lease"],
        "" if own_slot else holder["job_id"] or f"none, of {holder['user_id']}",
        "" if own_slot else str(holder["attempt"] or ""),
        holder["title"] or "",
        holder["worker"] or "",
        clock_time(holder["since"]),
        clock_time(holder["expires_at"]),
    )


def _shut(group: Mapping[str, Any]) -> str:
    return f"shut until {local_time(group['shut_until'])}" if group.get("shut_until") else ""

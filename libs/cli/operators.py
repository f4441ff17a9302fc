"""Commands for operators of the whole: the workers, what was done, and the end of a user's content.

Where `headgate up` runs they act as its operator.
"""

import base64
import json
import sys
from argparse import Namespace
from typing import Final, cast

from libs.cli.client import as_operator
from libs.cli.errors import Usage
from libs.cli.output import Output, clock_time, wall_time, zoned

JWT_PARTS: Final = 3
JWT_BEGINS: Final = "eyJ"  # the base64 of an object's first two characters


def workers(args: Namespace, out: Output) -> int:
    """Who is there to run jobs."""
    with as_operator() as hg:
        found = [worker.as_dict() for worker in hg.ops.workers()]
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
    out.table(("WORKER", "POOL", "SLOTS", "STATUS", zoned("HEARD"), "JOBS"), rows)
    if not rows:
        out.say("No worker is heard of: nothing can start.")
    return 0


def audit(args: Namespace, out: Output) -> int:
    """Who did what, and why."""
    with as_operator() as hg:
        found = [record.as_dict() for record in hg.ops.audit(since=args.since)]
    out.data(found)
    rows = [(wall_time(each["at"]), each["by"], each["act"], each["about"], each["reason"]) for each in found]
    out.table((zoned("AT"), "BY", "ACT", "ABOUT", "WHY"), rows)
    if not rows:
        out.say("Nobody did anything in that time.")
    return 0


def revoke(args: Namespace, out: Output) -> int:
    """A token lets nobody in any more."""
    jti = _id_of(args.token)
    with as_operator() as hg:
        told = hg.ops.revoke(jti, reason=args.reason).as_dict()
    out.data(told)
    out.say(f"{told['jti']}  {told['message']}.")
    return 0


def _id_of(token: str) -> str:
    """What names it: the text itself, or where that is a whole token its `jti`, so that the token is not sent."""
    parts = token.split(".")
    if len(parts) != JWT_PARTS or not token.startswith(JWT_BEGINS):
        return token
    try:
        claims: object = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        claims = None
    named: object = cast("dict[str, object]", claims).get("jti") if isinstance(claims, dict) else None
    if not isinstance(named, str):
        raise Usage(what="That token has no id (jti) and cannot be revoked by itself: withdraw its key.")
    return named


def erase(args: Namespace, out: Output) -> int:
    """A user's inputs, workspaces, results and logs, for good. Unfinished jobs are cancelled."""
    if not args.yes:
        _make_sure(args.user)
    with as_operator() as hg:
        told = hg.ops.erase(args.user, reason=args.reason).as_dict()
    out.data(told)
    out.say(f"{args.user}  {told['message']}.")
    return 1 if told["unfinished"] else 0


def _make_sure(user: str) -> None:
    """What is erased comes back by no backup: a person says the name once more."""
    if not sys.stdin.isatty():
        raise Usage(what=f"This erases what {user} ever had built, for good. Say --yes if that is what you want.")
    print(f"This erases what {user} ever had built, for good. Type the user's name to go on: ", end="", file=sys.stderr)
    sys.stderr.flush()
    if sys.stdin.readline().strip() != user:
        raise Usage(what="Nothing was erased: that was another name.")

"""`headgate policy`: a file looked at before it is used, what is in force, how they differ, one in place of the other.

A file is checked here as a service checks it at its start, each fault with its line. Who reloads is an operator.
"""

import os
from argparse import Namespace
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import headgate
from headgate.overseen import PolicyState
from libs.cli.calling import called
from libs.cli.client import as_operator
from libs.cli.errors import Usage
from libs.cli.output import Output, local_time
from libs.policy.errors import PolicyError, Problem
from libs.policy.lines import line_of
from libs.policy.loading import policy_from, read_document
from libs.policy.model import Policy
from libs.policy.reloading import Difference, as_toml, differences
from libs.policy.sections import keys, toml_text
from libs.runtime.wording import counted

DEFAULT: Final = Path("policy.toml")


def show(args: Namespace, out: Output) -> int:
    """As a file that could be loaded again."""
    with as_operator() as hg:
        state = hg.ops.policy()
    out.data(state.as_dict())
    out.say(f"# version {state.version}, {_since(state)}", style="dim")
    out.say(as_toml(policy_from(dict(state.policy), environ={})))
    return 0


def check(args: Namespace, out: Output) -> int:
    """What it would change of the defaults, or every reason why it cannot be used."""
    file = args.file or DEFAULT
    policy = _read(file)
    changes, doubts = policy.changes(), policy.doubts()
    out.data({"file": str(file), "changes": changes, "doubts": doubts})
    for change in changes:
        out.say(change)
    for doubt in doubts:
        out.say(f"Is that meant? {doubt}.", style="yellow")
    out.say(f"{file} can be used: {counted(len(changes), 'number')} of {len([*keys(policy)])} not the default.")
    return 0


def diff(args: Namespace, out: Output) -> int:
    """Number by number, from what is in force to what the file says. Ends with 1 where they differ."""
    file = args.file or DEFAULT
    wanted = _read(file)
    with as_operator() as hg:
        state = hg.ops.policy()
    found = [*differences(policy_from(dict(state.policy), environ={}), wanted)]
    out.data([_as_data(each) for each in found])
    _say(found, out)
    if found:
        out.say(f"In force is version {state.version}, {_since(state)}.", style="dim")
    else:
        out.say(f"{file} says what is in force, {_since(state)}.")
    return 1 if found else 0


def reload(args: Namespace, out: Output) -> int:
    """From this record of the log on it holds for everybody. It takes the place of what was in force when the file was
    compared with it, or a moment ago: what somebody else reloads meanwhile is not undone unseen."""
    file = args.file or DEFAULT
    _read(file)
    with _told_by_line(file), as_operator() as hg:
        seen = args.replaces or hg.ops.policy().version
        state = hg.ops.reload_policy(read_document(file), reason=args.reason, version=seen)
    out.data(state.as_dict())
    for change in state.changed:
        out.say(change)
    if state.changed:
        out.say(f"{counted(len(state.changed), 'number')} changed. What runs goes on; what waits is decided by it.")
    else:
        out.say(f"Nothing to change: {file} says what is in force, {_since(state)}.")
    return 0


def _read(file: Path) -> Policy:
    with _told_by_line(file):
        return policy_from(read_document(file), environ=os.environ)


@contextmanager
def _told_by_line(file: Path) -> Generator[None]:
    """Every fault of the file with the line that it is in, whether it was found here or there."""
    try:
        yield
    except PolicyError as error:
        raise Usage(what=_lines(file, error.problems)) from error
    except headgate.Invalid as error:
        problems = [Problem(key, *wrong.split("; ", 1)) for key, wrong in error.fields.items() if "; " in wrong]
        if not problems:
            raise
        raise Usage(what=_lines(file, problems)) from error


def _lines(file: Path, problems: Iterable[Problem]) -> str:
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    found = [(line_of(text, problem.key), problem) for problem in problems]
    found.sort(key=lambda each: each[0] or 0)
    return "\n".join(f"{file}:{line}: {problem}" if line else str(problem) for line, problem in found)


def _say(found: Iterable[Difference], out: Output) -> None:
    for each in found:
        out.say(f"- {each.key} = {toml_text(each.before)}", style="red")
        out.say(f"+ {each.key} = {toml_text(each.after)}{_at_start(each)}", style="green")


def _at_start(each: Difference) -> str:
    return "    # taken at a service's start, not by a reload" if each.at_start else ""


def _as_data(each: Difference) -> dict[str, Any]:
    return {"key": each.key, "before": each.before, "after": each.after, "at_start": each.at_start}


def _since(state: PolicyState) -> str:
    if state.since is None:
        return f"as the services were started; `{called()} policy reload FILE` changes it"
    why = f": {state.reason}" if state.reason else ""
    return f"since {local_time(state.since.isoformat())} by {state.by}{why}"

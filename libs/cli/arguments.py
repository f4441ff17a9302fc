"""The words of `headgate`: commands, options, and examples that can be pasted.

Owns the parser alone. Each command names the function that carries it out.
"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from headgate_contracts.vocabulary import Priority, Tier
from libs.cli import jobs

ABOUT: Final = """Headgate: a capacity queue for long, expensive jobs.

It decides who may run, in which order and how many at once, shows everybody where they stand, and loses nothing."""

EXAMPLES: Final = """examples:
  headgate demo                                        a tour of a minute, in a folder of its own
  headgate up                                          start the system here, and stay
  headgate submit "a URL shortener" --project shop     take a job in, and say where it stands
  headgate jobs list                                   what became of one's jobs
  headgate token --user u1 --tier partner              sign in as another user of this machine

settings:
  HEADGATE_URL, HEADGATE_TOKEN   which Headgate, and as whom; without them the one that `headgate up` started here
  HEADGATE_STATE                 where that keeps its state (.headgate)

exit codes: 0 done, 1 failed, 2 wrong usage, 3 busy: try later, 4 refused"""

UP_EXAMPLES: Final = """examples:
  headgate up
  HEADGATE_PORT=9000 headgate up --workers 4 --slots 2
  headgate up --state /var/tmp/headgate --policy policy.toml

Ctrl-C stops it. The state stays, and the next start goes on from there. What dies is started again by itself."""

SUBMIT_EXAMPLES: Final = """examples:
  headgate submit "a URL shortener" --project shop --follow
  headgate submit "a URL shortener" --project shop --priority high --label team=growth
  headgate submit --project shop --pipeline rehearsal --input '{"stages": {"code": 5}, "failing_cycles": 1}'
  headgate submit --project shop --input @input.json --run-at 2030-01-31T06:00:00Z"""

JOBS_EXAMPLES: Final = """examples:
  headgate jobs list --limit 10
  headgate jobs show JOB --json
  headgate jobs follow JOB
  headgate jobs result JOB -o site.tar.gz"""

Parsers = Any  # argparse's own type for these is private


def parser() -> ArgumentParser:
    """All commands."""
    root = _parser(ArgumentParser, prog="headgate", description=ABOUT, epilog=EXAMPLES)
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_up(commands)
    _add(commands, "demo", _later("demo"), "the whole system in a folder of its own, and a word about each thing")
    _add_submit(commands)
    _add_jobs(commands)
    _add_token(commands)
    _add_migrate(commands)
    _add_log(commands)
    return root


def _add_up(commands: Parsers) -> None:
    up_command = _add(commands, "up", _later("up"), "start everything on this machine, and stay", UP_EXAMPLES)
    up_command.add_argument("--port", type=int, help="of dashboard and API (HEADGATE_PORT, 8080; 0 takes a free one)")
    up_command.add_argument("--state", type=Path, help="folder that everything is kept in (HEADGATE_STATE, .headgate)")
    up_command.add_argument("--policy", type=Path, help="tiers, limits, priorities (HEADGATE_POLICY, the defaults)")
    up_command.add_argument("--workers", type=int, help="how many (HEADGATE_WORKERS, 2)")
    up_command.add_argument("--slots", type=int, help="jobs at once of each worker (HEADGATE_SLOTS, 4)")


def _add_submit(commands: Parsers) -> None:
    submit = _add(commands, "submit", jobs.submit, "submit a job", SUBMIT_EXAMPLES)
    submit.add_argument("prompt", nargs="?", help="what to build, in words")
    submit.add_argument("--project", required=True, help="whose it is")
    submit.add_argument("--priority", choices=[priority.value for priority in Priority], help="(normal)")
    submit.add_argument("--pipeline", help="which pipeline runs it (build)")
    submit.add_argument("--pool", help="whose workers run it (default)")
    submit.add_argument("--input", metavar="JSON", help="an object, or @ and the name of a file that holds one")
    submit.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help="may be given many times")
    submit.add_argument("--run-at", metavar="TIME", help="not before: 2030-01-31T06:00:00Z")
    submit.add_argument("--idempotency-key", metavar="KEY", help="the same key again is the same job (a new one)")
    submit.add_argument("--follow", action="store_true", help="watch it until it ends; 0 if it becomes ready, else 1")


def _add_jobs(commands: Parsers) -> None:
    about = _parser(commands.add_parser, "jobs", help="look at jobs, end them, fetch results", epilog=JOBS_EXAMPLES)
    verbs = about.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = _add(verbs, "list", jobs.list_jobs, "one's own, newest first")
    listing.add_argument("--limit", type=int, default=50, help="at most so many (50)")
    _add(verbs, "show", jobs.show, "one job: where it stands and why").add_argument("job")
    _add(verbs, "events", jobs.events, "its history, from the log").add_argument("job")
    confirm = _add(verbs, "confirm", jobs.confirm, "let a job that asks go on for another batch of cycles")
    confirm.add_argument("job")
    cancel = _add(verbs, "cancel", jobs.cancel, "end it, running or not")
    cancel.add_argument("job")
    cancel.add_argument("--reason", default="", help="kept in its history")
    result = _add(verbs, "result", jobs.result, "fetch what it made, and list what is in it")
    result.add_argument("job")
    result.add_argument("-o", "--output", metavar="FILE", help="(JOB.tar.gz), or - for stdout")
    _add(verbs, "follow", jobs.follow, "watch it until it ends; 0 if it becomes ready, else 1").add_argument("job")


def _add_token(commands: Parsers) -> None:
    token = _add(commands, "token", _later("operations", "token"), "sign a token with the key pair of this machine")
    token.add_argument("--user", required=True)
    token.add_argument("--tier", choices=[tier.value for tier in Tier], default=Tier.BOOTSTRAPPER.value)
    token.add_argument("--scope", help="(jobs:read jobs:write); add ops for an operator")
    token.add_argument("--project", action="append", default=[], help="only these projects; may be given many times")
    token.add_argument("--hours", type=int, default=24, help="how long it is good for (24)")


def _add_migrate(commands: Parsers) -> None:
    migrate = _add(
        commands, "migrate", _later("operations", "migrate_log"), "make the streams and buckets, or bring them in line"
    )
    migrate.add_argument("--policy", type=Path, help="retention is read from there")
    migrate.add_argument("--replicas", type=int, default=1, help="3 on three servers (1)")


def _add_log(commands: Parsers) -> None:
    about = _parser(commands.add_parser, "log", help="read the log")
    verbs = about.add_subparsers(title="commands", metavar="COMMAND", required=True)
    tail = _add(verbs, "tail", _later("operations", "tail_log"), "each event as it is written")
    tail.add_argument("-n", "--last", type=int, default=20, help="begin so many records back (20)")
    tail.add_argument("--no-follow", action="store_true", help="end where the log ends now")


def _later(module: str, function: str | None = None) -> Callable[[Any, Any], int]:
    """A command whose module is imported when it is carried out: a job's status must not wait for a server's code."""

    def run(args: Any, out: Any) -> int:
        return getattr(import_module(f"libs.cli.{module}"), function or module)(args, out)

    return run


def _add(commands: Parsers, name: str, run: object, about: str, epilog: str | None = None) -> ArgumentParser:
    command = _parser(commands.add_parser, name, help=about, description=about.capitalize() + ".", epilog=epilog)
    command.add_argument("--json", action="store_true", help="for programs: JSON and nothing else on stdout")
    command.set_defaults(run=run)
    return command


def _parser(make: Any, *names: str, **options: Any) -> ArgumentParser:
    parser: ArgumentParser = make(*names, formatter_class=RawDescriptionHelpFormatter, **options)
    return parser


def parse(words: Sequence[str] | None = None) -> Any:
    """What was asked for. Wrong usage ends the process with 2, as everywhere."""
    return parser().parse_args(words)

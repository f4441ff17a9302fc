"""The words of `headgate`: commands, options, and examples that can be pasted.

Owns the parser alone. Each command names the function that carries it out.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from headgate_contracts.vocabulary import Priority, Status, Tier
from libs.cli.arguments_operators import REASON, add_operators, add_workflow
from libs.cli.calling import called
from libs.cli.words import (
    COMMAND,
    CommandParser,
    Parsers,
    Verbs,
    VersionFlag,
    add,
    command_parser,
    duration,
    later,
    moment,
    positive,
    verbs,
)

ABOUT: Final = """Headgate: a capacity queue for long, expensive jobs.

It decides who may run, in which order and how many at once, shows everybody
where they stand, and loses nothing."""

EXAMPLES: Final = """examples:
  headgate demo             a tour of a minute
  headgate up               start the system, and stay
  headgate jobs list        what became of one's jobs
  headgate submit "a URL shortener" --project shop --follow
  headgate token --user u1 --tier partner

settings:
  HEADGATE_URL, HEADGATE_TOKEN   which Headgate, and as whom; without them the
                                 one that `headgate up` started here
  HEADGATE_STATE                 where that keeps its state (.headgate)

exit codes: 0 done, 1 failed, 2 wrong usage, 3 busy: try later, 4 refused"""

UP_EXAMPLES: Final = """examples:
  headgate up
  HEADGATE_PORT=9000 headgate up --workers 4 --slots 2
  headgate up --state /var/tmp/headgate --policy policy.toml

Ctrl-C stops it. The state stays, and the next start goes on from there. What
dies is started again by itself."""

SUBMIT_EXAMPLES: Final = """examples:
  headgate submit "a URL shortener" --project shop --follow
  headgate submit "a URL shortener" --project shop --priority high
  headgate submit --project shop --pipeline rehearsal --input '{"stages": {}}'
  headgate submit --project p --input @in.json --run-at 2030-01-31T06:00Z
  headgate submit "a URL shortener" --project shop --dry-run"""

JOBS_EXAMPLES: Final = """examples:
  headgate jobs list --limit 10
  headgate jobs list --text "url short" --since 7d
  headgate jobs show JOB --json
  headgate jobs show JOB --timeline
  headgate jobs follow JOB
  headgate jobs events JOB
  headgate jobs log JOB
  headgate jobs files JOB
  headgate jobs files JOB README.md
  headgate jobs result JOB
  headgate jobs result JOB -o site.tar.gz
  headgate jobs result JOB -o - | tar -xz
  headgate jobs confirm JOB
  headgate jobs priority JOB high --reason "a demo at noon"
  headgate jobs cancel JOB --reason "not needed"
  headgate jobs cancel-all --label team=growth
  headgate jobs retry JOB --follow"""

TOKEN_EXAMPLES: Final = """examples:
  headgate token --user u1 --tier partner
  export HEADGATE_TOKEN=$(headgate token --user u2)
  headgate token --user boss --scope "jobs:read ops" --expires 12h
  headgate token revoke 01KJPZ7QXN5B2D9F4H8K3M6PRV --reason "a lost laptop"

The services take no token that is good for longer than policy allows (30d)."""

REVOKE_EXAMPLES: Final = """examples:
  headgate token revoke 01KJPZ7QXN5B2D9F4H8K3M6PRV --reason "a lost laptop"
  headgate token revoke "$HEADGATE_TOKEN"

Of a whole token only its id (jti) is read and sent. What it has opened ends."""

MIGRATE_EXAMPLES: Final = """examples:
  HEADGATE_NATS_URL=tls://operator:password@nats:4222 headgate migrate --policy policy.toml --replicas 3
  headgate migrate --teams teams.conf"""

TEAMS_EXAMPLES: Final = """examples:
  headgate teams add billing
  headgate teams add billing --consumer failures --filter "headgate.jobs.v1.*.*.shop.failed"
  headgate teams add billing --deployed
  headgate teams list
  headgate teams remove billing

What is printed first is the URL for NATS, with the password: once, and never again.
A consumer is named after its team: billing, or billing-failures for --consumer failures."""

SIMULATE_EXAMPLES: Final = """examples:
  headgate simulate --policy other.toml
  headgate simulate --policy other.toml --today policy.toml --since 7d --plot waits.svg
  HEADGATE_NATS_URL=tls://operator:password@nats:4222 headgate simulate --policy other.toml --json

Jobs come when they came and take as long as they took; who waits for whom
follows from the policy. What was recorded and what today's policy gives in the
simulation should be near each other: that far the third is to be believed."""

LOG_EXAMPLES: Final = """examples:
  headgate log tail
  headgate log tail -n 100 --no-follow --json | jq -r .type"""


def parser() -> ArgumentParser:
    """All commands."""
    root = command_parser(CommandParser, prog=called(), description=ABOUT, epilog=EXAMPLES)
    root.add_argument("--version", action=VersionFlag, help="which version this is")
    commands = root.add_subparsers(title="commands", metavar=COMMAND, required=True)
    _add_up(commands)
    add(commands, "demo", later("demo"), "the whole system in a folder of its own, and a word about each thing")
    _add_submit(commands)
    _add_jobs(commands)
    add_workflow(commands)
    add_operators(commands)
    _add_token(commands)
    _add_migrate(commands)
    _add_teams(commands)
    _add_simulate(commands)
    _add_log(commands)
    return root


def _add_up(commands: Parsers) -> None:
    up_command = add(commands, "up", later("up"), "start everything on this machine, and stay", UP_EXAMPLES)
    up_command.add_argument("--port", type=int, help="of dashboard and API (HEADGATE_PORT, 8080; 0 takes a free one)")
    up_command.add_argument("--state", type=Path, help="folder that everything is kept in (HEADGATE_STATE, .headgate)")
    up_command.add_argument("--policy", type=Path, help="tiers, limits, priorities (HEADGATE_POLICY, the defaults)")
    up_command.add_argument("--workers", type=int, help="how many (HEADGATE_WORKERS, 2)")
    up_command.add_argument("--slots", type=int, help="jobs at once of each worker (HEADGATE_SLOTS, 4)")


def _add_submit(commands: Parsers) -> None:
    submit = add(commands, "submit", later("submitting", "submit"), "submit a job", SUBMIT_EXAMPLES)
    submit.add_argument("prompt", nargs="?", help="what to build, in words")
    submit.add_argument("--project", required=True, help="whose it is")
    submit.add_argument("--title", help="what lists call it (the first line of the prompt)")
    submit.add_argument("--priority", choices=[priority.value for priority in Priority], help="(normal)")
    submit.add_argument("--pipeline", help="which pipeline runs it (build)")
    submit.add_argument("--pool", help="whose workers run it (default)")
    submit.add_argument("--input", metavar="JSON", help="an object, or @ and the name of a file that holds one")
    submit.add_argument("--group", metavar="NAME", help="take a slot of this group of the project while it runs")
    submit.add_argument("--group-limit", type=positive, metavar="N", help="its slots, where nobody has set them yet")
    submit.add_argument("--queue-ttl", type=positive, metavar="SECONDS", help="fail where it has not started by then")
    submit.add_argument("--run-timeout", type=positive, metavar="SECONDS", help="fail where it runs for longer")
    submit.add_argument(
        "--notify-url", metavar="URL", help="call this for questions and the end, where policy allows it"
    )
    submit.add_argument("--dry-run", action="store_true", help="say what would happen, and submit nothing")
    submit.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help="may be given many times")
    submit.add_argument("--run-at", metavar="TIME", help="not before: 2030-01-31T06:00:00Z")
    submit.add_argument("--idempotency-key", metavar="KEY", help="the same key again is the same job (a new one)")
    submit.add_argument("--follow", action="store_true", help="watch it until it ends; 0 if it becomes ready, else 1")


def _add_jobs(commands: Parsers) -> None:
    below = verbs(commands, "jobs", "look at jobs, change or end them, fetch results", JOBS_EXAMPLES)
    _add_list(below)
    showing = below.add("show", later("jobs", "show"), "one job: where it stands and why")
    showing.add_argument("job")
    showing.add_argument(
        "--timeline", action="store_true", help="each hop of its life: when it began, how long it took"
    )
    below.add("events", later("jobs", "events"), "its history, from the log").add_argument("job")
    below.add("log", later("jobs", "log"), "what it said").add_argument("job")
    result = below.add("result", later("jobs", "result"), "fetch what it made, and list what is in it")
    result.add_argument("job")
    result.add_argument(
        "-o", "--output", metavar="FILE", help="where to: a file, a folder, or - for stdout (JOB.tar.gz, here)"
    )
    result.add_argument("--force", action="store_true", help="replace the file where it is there already")
    files = below.add("files", later("jobs", "files"), "what its result holds, or one of its files")
    files.add_argument("job")
    files.add_argument("path", nargs="?", help="of the file that is printed; without it all are listed")
    below.add("follow", later("jobs", "follow"), "watch it until it ends; 0 if it becomes ready, else 1").add_argument(
        "job"
    )
    _add_changes(below)


def _add_list(below: Verbs) -> None:
    listing = below.add("list", later("jobs", "list_jobs"), "one's own, newest first; an operator's: everybody's")
    listing.add_argument("--limit", type=positive, default=50, help="at most so many (50)")
    listing.add_argument("--all", action="store_true", help="all of them, however many")
    listing.add_argument("--text", help="only those with these words, or their beginnings, in title, id or labels")
    statuses = [status.value for status in Status]
    listing.add_argument("--status", choices=statuses, metavar="STATUS", help=f"only those: {', '.join(statuses)}")
    for name in ("project", "pipeline", "pool", "workflow"):
        listing.add_argument(f"--{name}", help="only those")
    listing.add_argument("--label", metavar="NAME=VALUE", help="only those")
    listing.add_argument("--user", help="only theirs; for operators")
    listing.add_argument(
        "--since", type=moment, metavar="WHEN", help="submitted then or later: a moment, or 90m, 24h, 7d"
    )
    listing.add_argument("--until", type=moment, metavar="WHEN", help="submitted before")
    listing.add_argument("--sort", choices=("newest", "oldest", "updated", "priority"), help="(newest)")


def _add_changes(below: Verbs) -> None:
    """What a job's owner may do about it."""
    confirm = below.add(
        "confirm", later("jobs", "confirm"), "let a job that asks go on for another batch of iterations"
    )
    confirm.add_argument("job")
    cancel = below.add("cancel", later("jobs", "cancel"), "end it, running or not")
    cancel.add_argument("job")
    cancel.add_argument("--reason", default="", help="kept in its history")
    many = below.add(
        "cancel-all", later("jobs", "cancel_many"), "end all unfinished ones of a project, a workflow or a label"
    )
    which = many.add_mutually_exclusive_group(required=True)
    which.add_argument("--project")
    which.add_argument("--workflow")
    which.add_argument("--label", metavar="NAME=VALUE")
    many.add_argument("--reason", default="", help="kept in their histories")
    priority = below.add("priority", later("jobs", "priority"), "another class for a job that has not started")
    priority.add_argument("job")
    priority.add_argument("priority", choices=[priority.value for priority in Priority])
    priority.add_argument("--reason", default="", help="kept in its history")
    retry = below.add(
        "retry", later("submitting", "retry"), "submit a failed or cancelled one again, with the work that it left"
    )
    retry.add_argument("job")
    retry.add_argument("--idempotency-key", metavar="KEY", help="the same key again is the same job (a new one)")
    retry.add_argument("--follow", action="store_true", help="watch it until it ends; 0 if it becomes ready, else 1")


def _add_token(commands: Parsers) -> None:
    about = "sign a token with the key pair of this machine"
    token = add(commands, "token", later("operations", "token"), about, TOKEN_EXAMPLES)
    token.add_argument("--user", help="whose it is")
    token.add_argument("--tier", choices=[tier.value for tier in Tier], default=Tier.BOOTSTRAPPER.value)
    token.add_argument("--scope", help="(jobs:read jobs:write leases); add ops for an operator")
    token.add_argument(
        "--project",
        action="append",
        default=[],
        help="a project to share with all whose token names it; may be given many times",
    )
    good_for = "how long it is good: 90m, 12h, 7d (1d)"
    token.add_argument("--expires", type=duration, default=timedelta(days=1), metavar="IN", help=good_for)
    below = token.add_subparsers(title="commands", metavar="COMMAND")
    revoke = add(below, "revoke", later("operators", "revoke"), "let a token open nothing any more", REVOKE_EXAMPLES)
    revoke.add_argument("token", metavar="JTI", help="its id, or the token itself")
    revoke.add_argument("--reason", default="", help=REASON)


def _add_migrate(commands: Parsers) -> None:
    about = "make the streams and buckets, or bring them in line"
    migrate = add(commands, "migrate", later("operations", "migrate_log"), about, MIGRATE_EXAMPLES)
    migrate.add_argument("--policy", type=Path, help="retention is read from there")
    migrate.add_argument("--replicas", type=positive, default=1, help="3 on three servers (1)")
    teams = "the file of other teams: their consumers are made, those of teams that are gone are removed"
    migrate.add_argument("--teams", type=Path, metavar="FILE", help=teams)
    wait = "how long to try where NATS does not answer, or has no leader yet"
    migrate.add_argument("--wait", type=duration, default=timedelta(), metavar="TIME", help=wait)


def _add_teams(commands: Parsers) -> None:
    below = verbs(commands, "teams", "let other teams read the log", TEAMS_EXAMPLES)
    new = below.add("add", later("teams", "add"), "give a team credentials and consumers of its own")
    new.add_argument("name", metavar="NAME", help="1 to 32 of a-z 0-9 -")
    new.add_argument("--consumer", action="append", default=[], metavar="FOR", help="one more, for this purpose")
    new.add_argument("--filter", action="append", default=[], metavar="SUBJECT", help="what it may read (every job)")
    gone = below.add("remove", later("teams", "remove"), "let a team read nothing any more")
    gone.add_argument("name", metavar="NAME", help="of the team")
    shown = below.add("list", later("teams", "show"), "every team, its consumers, what they let through")
    for command in (new, gone, shown):
        command.add_argument("--deployed", action="store_true", help="in compose or Kubernetes, not by `up` here")


def _add_simulate(commands: Parsers) -> None:
    about = "replay the recorded events under another policy, and compare the waits"
    simulation = add(commands, "simulate", later("simulate"), about, SIMULATE_EXAMPLES)
    simulation.add_argument("--policy", type=Path, required=True, metavar="FILE", help="the other policy")
    simulation.add_argument(
        "--today", type=Path, metavar="FILE", help="the policy that was in force (HEADGATE_POLICY, the defaults)"
    )
    simulation.add_argument(
        "--since", type=moment, metavar="WHEN", help="only starts since then: a moment, or 90m, 24h, 7d"
    )
    simulation.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the mean waits into this file")


def _add_log(commands: Parsers) -> None:
    below = verbs(commands, "log", "read the log", LOG_EXAMPLES)
    tail = below.add("tail", later("operations", "tail_log"), "each event as it is written")
    tail.add_argument("-n", "--last", type=positive, default=20, help="begin so many records back (20)")
    tail.add_argument("--no-follow", action="store_true", help="end where the log ends now")


def parse(words: Sequence[str] | None = None) -> Any:
    """What was asked for. Wrong usage ends the process with 2, as everywhere."""
    return parser().parse_args(words)

"""The words of `headgate`: commands, options, and examples that can be pasted.

Owns the words alone. Each command names the function that carries it out.
"""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any, Final

import click

from headgate_contracts.vocabulary import Priority, Status, Tier
from libs.cli.arguments_operators import REASON, add_operators, add_workflow
from libs.cli.grammar import (
    FILE,
    CommandGroup,
    argument,
    as_json,
    completed_by,
    duration,
    flag,
    later,
    moment,
    option,
    positive,
    read_words,
    repeated,
    sentence,
    version_flag,
)

ABOUT: Final = """Headgate: a job queue for long, expensive jobs.

It decides which job may run, in which order and how many at once, shows
users where their jobs stand, and loses none of them."""

EXAMPLES: Final = """examples:
  headgate demo             a tour of one minute
  headgate up               start the system, until Ctrl-C
  headgate jobs list        your jobs
  headgate submit "a URL shortener" --project shop --follow
  headgate token --user u1 --tier partner

settings:
  HEADGATE_URL, HEADGATE_TOKEN   which Headgate to use, and as whom; without
                                 them the one that `headgate up` started here
  HEADGATE_STATE                 where that one keeps its state (.headgate)

exit codes: 0 done, 1 failed, 2 wrong usage, 3 busy: try later, 4 refused"""

UP_EXAMPLES: Final = """examples:
  headgate up
  HEADGATE_PORT=9000 headgate up --workers 4 --slots 2
  headgate up --state /var/tmp/headgate --policy policy.toml

Ctrl-C stops it. The state is kept, and the next start continues from it. A
process that dies is restarted."""

SUBMIT_EXAMPLES: Final = """examples:
  headgate submit "a URL shortener" --project shop --follow
  headgate submit "a URL shortener" --project shop --priority high
  headgate submit --project shop --pipeline rehearsal --input '{"stages": {}}'
  headgate submit --project p --input @in.json --run-at 2030-01-31T06:00Z
  headgate submit "a URL shortener" --project shop --dry-run"""

JOBS_EXAMPLES: Final = """examples:
  headgate jobs list --limit 10
  headgate jobs list --text "url short" --since 7d
  headgate jobs counts --by project
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
  headgate jobs answer JOB MIT
  headgate jobs priority JOB high --reason "a demo at noon"
  headgate jobs cancel JOB --reason "not needed"
  headgate jobs cancel-all --label team=growth
  headgate jobs retry JOB --follow
  headgate jobs retry JOB --from code --input @in.json"""

TOKEN_EXAMPLES: Final = """examples:
  headgate token --user u1 --tier partner
  export HEADGATE_TOKEN=$(headgate token --user u2)
  headgate token --user boss --scope "jobs:read ops" --expires 12h
  headgate token revoke 01KJPZ7QXN5B2D9F4H8K3M6PRV --reason "a lost laptop"

The services refuse a token that is valid for longer than policy allows (30d)."""

REVOKE_EXAMPLES: Final = """examples:
  headgate token revoke 01KJPZ7QXN5B2D9F4H8K3M6PRV --reason "a lost laptop"
  headgate token revoke "$HEADGATE_TOKEN"

Of a whole token only its id (jti) is read and sent. Streams that were opened
with it end."""

MIGRATE_EXAMPLES: Final = """examples:
  HEADGATE_NATS_URL=tls://operator:password@nats:4222 headgate migrate --policy policy.toml --replicas 3
  headgate migrate --teams teams.conf"""

TEAMS_EXAMPLES: Final = """examples:
  headgate teams add billing
  headgate teams add billing --consumer failures --filter "headgate.jobs.v1.*.*.shop.failed"
  headgate teams add billing --deployed
  headgate teams list
  headgate teams remove billing

The URL for NATS, with the password, is printed first, and only this once.
A consumer is named after its team: billing, or billing-failures for --consumer failures."""

SIMULATE_EXAMPLES: Final = """examples:
  headgate simulate --policy other.toml
  headgate simulate --policy other.toml --today policy.toml --since 7d --plot waits.svg
  HEADGATE_NATS_URL=tls://operator:password@nats:4222 headgate simulate --policy other.toml --json

Jobs come when they came and take as long as they took; who waits for whom
follows from the policy. The recorded waits and those simulated under today's
policy should be close: the closer they are, the more you can trust the third."""

LOG_EXAMPLES: Final = """examples:
  headgate log tail
  headgate log tail -n 100 --no-follow --json | jq -r .type"""

COMPLETION_EXAMPLES: Final = """examples:
  source <(headgate completion bash)                    for this shell; in ~/.bashrc for all
  source <(headgate completion zsh)                     in ~/.zshrc, below compinit
  headgate completion fish > ~/.config/fish/completions/headgate.fish

Ids of jobs and names of groups come from the Headgate that commands use."""

PRIORITIES: Final = click.Choice([priority.value for priority in Priority])
STATUSES: Final = [status.value for status in Status]
TIERS: Final = click.Choice([tier.value for tier in Tier])
KEY: Final = "the same key again gives the same job (a new key)"
FOLLOW: Final = "follow the job until it ends; exits with 0 if it becomes ready, else 1"
TOKEN_ABOUT: Final = "sign a token with this machine's key pair"


def commands() -> CommandGroup:
    """All of them."""
    root = CommandGroup("headgate", ABOUT, EXAMPLES, params=[version_flag()])
    _add_up(root)
    root.verb("demo", "command.demo", "a tour: the whole system in a temporary folder, step by step")
    _add_submit(root)
    _add_jobs(root)
    add_workflow(root)
    add_operators(root)
    root.add_command(_token())
    _add_migrate(root)
    _add_teams(root)
    _add_simulate(root)
    _add_log(root)
    _add_completion(root)
    return root


def job() -> click.Argument:
    return argument("job", shell_complete=completed_by("job_ids"))


def _add_up(root: CommandGroup) -> None:
    root.verb(
        "up",
        "command.up",
        "start everything on this machine, until Ctrl-C",
        option("--port", type=int, help="port of the dashboard and the API (HEADGATE_PORT, 8080; 0: any free one)"),
        option("--state", type=FILE, help="folder for all state (HEADGATE_STATE, .headgate)"),
        option("--policy", type=FILE, help="file of tiers, limits, priorities (HEADGATE_POLICY, the defaults)"),
        option("--workers", type=int, help="number of workers (HEADGATE_WORKERS, 2)"),
        option("--slots", type=int, help="jobs that each worker runs at once (HEADGATE_SLOTS, 4)"),
        examples=UP_EXAMPLES,
    )


def _add_submit(root: CommandGroup) -> None:
    root.verb(
        "submit",
        "submitting.submit",
        "submit a job",
        argument("prompt", "what to build, in words", required=False),
        option("--project", required=True, help="the project it belongs to"),
        option("--title", help="its name in lists (the first line of the prompt)"),
        option("--priority", type=PRIORITIES, help="(normal)"),
        option("--pipeline", help="the pipeline that runs it (build)"),
        option("--pool", help="the pool whose workers run it (default)"),
        option("--input", metavar="JSON", help="a JSON object, or @ and the name of a file with one"),
        option("--group", metavar="NAME", help="take a slot of this group of the project while it runs"),
        option("--group-limit", type=positive, metavar="N", help="slots of the group, if none are set yet"),
        option("--queue-ttl", type=positive, metavar="SECONDS", help="fail if it has not started by then"),
        option("--run-timeout", type=positive, metavar="SECONDS", help="fail if it runs for longer"),
        option(
            "--notify-url", metavar="URL", help="call this address on questions and at the end, if policy allows it"
        ),
        flag("--dry-run", "say what would happen, and submit nothing"),
        repeated("--label", "a label to find it by", metavar="NAME=VALUE"),
        option("--run-at", metavar="TIME", help="not before: 2030-01-31T06:00:00Z"),
        option("--idempotency-key", metavar="KEY", help=KEY),
        flag("--follow", FOLLOW),
        examples=SUBMIT_EXAMPLES,
    )


def _add_jobs(root: CommandGroup) -> None:
    jobs = root.below("jobs", "list, change and end jobs, download results", JOBS_EXAMPLES)
    _add_list(jobs)
    timeline = flag("--timeline", "each step of its life: when it began, how long it took, what held it")
    jobs.verb("show", "jobs.show", "one job: where it stands and why", job(), timeline)
    jobs.verb("events", "jobs.events", "a job's history, from the log", job())
    jobs.verb("log", "jobs.log", "what a job has printed", job())
    jobs.verb(
        "result",
        "jobs.result",
        "download a job's result, and list its files",
        job(),
        option("-o", "--output", metavar="FILE", help="a file, a folder, or - for stdout (JOB.tar.gz in this folder)"),
        flag("--force", "overwrite the file if it exists"),
    )
    path = argument("path", "the file to print; without it all are listed", required=False)
    jobs.verb("files", "jobs.files", "list the files of a result, or print one", job(), path)
    jobs.verb("follow", "jobs.follow", FOLLOW, job())
    _add_changes(jobs)


def _add_list(jobs: CommandGroup) -> None:
    facets = click.Choice(["status", "project", "pipeline", "pool", "label", "user"])
    by = option("--by", type=facets, default="status", help="what to count by (status)")
    jobs.verb("counts", "jobs.counts", "count jobs, by status, project and the like", by, *_filters())
    jobs.verb(
        "list",
        "jobs.list_jobs",
        "your jobs, newest first; for operators, everybody's",
        option("--limit", type=positive, default=50, help="at most this many (50)"),
        flag("--all", "all of them, however many"),
        *_filters(),
        option("--sort", type=click.Choice(["newest", "oldest", "updated", "priority"]), help="(newest)"),
    )


def _filters() -> tuple[click.Option, ...]:
    return (
        option("--text", help="only jobs with these words, or words that begin so, in title, id or labels"),
        option("--status", type=click.Choice(STATUSES), metavar="STATUS", help=f"only these: {', '.join(STATUSES)}"),
        *(option(f"--{name}", help="only those") for name in ("project", "pipeline", "pool", "workflow")),
        option("--label", metavar="NAME=VALUE", help="only those"),
        option("--user", help="only jobs of this user; for operators"),
        option("--since", type=moment, metavar="WHEN", help="submitted then or later: a time, or 90m, 24h, 7d ago"),
        option("--until", type=moment, metavar="WHEN", help="submitted before"),
    )


def _add_changes(jobs: CommandGroup) -> None:
    """What a job's owner may do about it."""
    why = option("--reason", default="", help="kept in its history")
    jobs.verb("confirm", "jobs.confirm", "let a job that asks continue for another batch of iterations", job())
    jobs.verb(
        "answer",
        "jobs.answer",
        "answer a job's question",
        job(),
        argument("answer", "one of its choices, a text, or JSON if it asks for that"),
        option("--question", metavar="ID", help="only if this question is open (any question)"),
    )
    jobs.verb("cancel", "jobs.cancel", "end a job, running or not", job(), why)
    jobs.verb(
        "cancel-all",
        "jobs.cancel_many",
        "end all unfinished jobs of a project, a workflow or a label",
        option("--project", help="of this project"),
        option("--workflow", help="of this workflow"),
        option("--label", metavar="NAME=VALUE", help="with this label"),
        option("--reason", default="", help="kept in their histories"),
        one_of=("project", "workflow", "label"),
    )
    another = argument("priority", type=PRIORITIES)
    jobs.verb("priority", "jobs.priority", "change the priority of a job that has not started", job(), another, why)
    jobs.verb(
        "retry",
        "submitting.retry",
        "run a job again, with the work it left, or from a given stage",
        job(),
        option("--from", "start", metavar="STAGE", help="begin with this stage; the job must have ended"),
        option("--input", metavar="JSON", help="another input: a JSON object, or @ and the name of a file"),
        option("--idempotency-key", metavar="KEY", help=KEY),
        flag("--follow", FOLLOW),
    )


def _token() -> CommandGroup:
    """The one that does something by itself and has a command below it."""

    def read(**values: Any) -> Namespace:
        return Namespace(run=later("operations.token"), **values)

    given = [
        option("--user", help="the user it is for"),
        option("--tier", type=TIERS, default=Tier.BOOTSTRAPPER.value, help="(bootstrapper)"),
        option("--scope", help="(jobs:read jobs:write leases); add ops for an operator"),
        repeated("--project", "a project shared with all whose tokens name it"),
        option("--expires", type=duration, default="1d", metavar="IN", help="how long it is valid: 90m, 12h, 7d (1d)"),
        as_json(),
    ]
    more = {"params": given, "callback": read, "invoke_without_command": True, "no_args_is_help": False}
    token = CommandGroup("token", sentence(TOKEN_ABOUT), TOKEN_EXAMPLES, short_help=TOKEN_ABOUT, **more)
    token.verb(
        "revoke",
        "operators.revoke",
        "revoke a token",
        argument("token", "its id (jti), or the token itself", metavar="JTI"),
        option("--reason", default="", help=REASON),
        examples=REVOKE_EXAMPLES,
    )
    return token


def _add_migrate(root: CommandGroup) -> None:
    root.verb(
        "migrate",
        "operations.migrate_log",
        "create the streams and buckets, or update them to the policy",
        option("--policy", type=FILE, help="file with the retention"),
        option("--replicas", type=positive, default=1, help="copies of each stream: 3 on three servers (1)"),
        option(
            "--teams",
            type=FILE,
            metavar="FILE",
            help="file of other teams: creates their consumers, removes those of teams that are gone",
        ),
        option(
            "--wait",
            type=duration,
            metavar="TIME",
            help="how long to retry if NATS does not answer or has no leader yet",
        ),
        examples=MIGRATE_EXAMPLES,
    )


def _add_teams(root: CommandGroup) -> None:
    teams = root.below("teams", "let other teams read the log", TEAMS_EXAMPLES)
    deployed = flag("--deployed", "for compose or Kubernetes, not for `up` here")
    teams.verb(
        "add",
        "teams.add",
        "give a team credentials and consumers of its own",
        argument("name", "1 to 32 of a-z 0-9 -"),
        repeated("--consumer", "one more consumer, for this purpose", metavar="FOR"),
        repeated("--filter", "what it may read (every job)", metavar="SUBJECT"),
        deployed,
    )
    teams.verb("remove", "teams.remove", "end a team's access", argument("name", "of the team"), deployed)
    teams.verb("list", "teams.show", "all teams, their consumers and filters", deployed)


def _add_simulate(root: CommandGroup) -> None:
    root.verb(
        "simulate",
        "simulate.simulate",
        "replay the recorded events under another policy, and compare the waits",
        option("--policy", type=FILE, required=True, metavar="FILE", help="the other policy"),
        option(
            "--today", type=FILE, metavar="FILE", help="the policy that was in force (HEADGATE_POLICY, the defaults)"
        ),
        option("--since", type=moment, metavar="WHEN", help="only starts since then: a time, or 90m, 24h, 7d ago"),
        option("--plot", type=FILE, metavar="FILE.svg", help="draw the mean waits into this file"),
        examples=SIMULATE_EXAMPLES,
    )


def _add_log(root: CommandGroup) -> None:
    log = root.below("log", "read the log", LOG_EXAMPLES)
    log.verb(
        "tail",
        "operations.tail_log",
        "print each event as it is written",
        option("-n", "--last", type=positive, default=20, help="begin this many records back (20)"),
        flag("--no-follow", "stop at the log's current end"),
    )


def _add_completion(root: CommandGroup) -> None:
    root.verb(
        "completion",
        "completing.completion",
        "a script for completion in a shell, of job ids and groups too",
        argument("shell", type=click.Choice(["bash", "zsh", "fish"])),
        examples=COMPLETION_EXAMPLES,
    )


def parse(words: Sequence[str] | None = None) -> Any:
    """What was asked for. Wrong usage ends the process with 2, as everywhere."""
    return read_words(commands(), None if words is None else list(words))

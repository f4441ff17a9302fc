"""The words of the commands about the queue as a whole, and about workflows."""

from __future__ import annotations

from typing import Final

from headgate_contracts.vocabulary import Priority
from libs.cli.words import Parsers, add, later, moment, positive, verbs

EXPLAIN_EXAMPLES: Final = """examples:
  headgate explain JOB
  headgate explain JOB --json | jq -r '.waiting_on[].reason'

HEADGATE_TOKEN says who asks: an operator may ask about any job."""

USAGE_EXAMPLES: Final = """examples:
  headgate usage
  HEADGATE_TOKEN=$(headgate token --user u1 --tier partner) headgate usage --json"""

WORKERS_EXAMPLES: Final = """examples:
  headgate workers
  headgate workers --json | jq '[.[].slots] | add'"""

AUDIT_EXAMPLES: Final = """examples:
  headgate audit
  headgate audit --since 7d --json"""

ERASE_EXAMPLES: Final = """examples:
  headgate erase u1 --reason "asked to be forgotten"
  headgate erase u1 --yes    asks nothing, for programs

Ends with 1 while a worker still ends a job of theirs: the same command again
erases what that job wrote."""

REBUILD_EXAMPLES: Final = """examples:
  headgate rebuild
  HEADGATE_REDIS_URL=rediss://user:password@valkey:6379 headgate rebuild --within 300

Nothing is lost by it: the log is the truth. Until it is done, submissions are
answered with 503."""

WORKFLOW_EXAMPLES: Final = """examples:
  headgate workflow submit "a URL shortener" "an API for it" --project shop
  headgate workflow submit --file phases.json --project shop --priority high
  headgate workflow show WORKFLOW
  headgate workflow cancel WORKFLOW --reason superseded"""

QUEUE_EXAMPLES: Final = """examples:
  headgate queue show
  headgate queue pause priority:low --reason "the release first"
  headgate queue resume priority:low
  headgate queue move JOB --before OTHER --reason "blocks the release"
  headgate queue analytics --json

scopes: all, priority:NAME, pool:NAME, user:ID, project:ID, workflow:ID
  project:shop is the project that all share whose tokens name it, project:ann:shop is ann's own"""

CONCURRENCY_EXAMPLES: Final = """examples:
  headgate concurrency status
  headgate concurrency status llm:openai
  headgate concurrency set llm:openai --limit 6 --reason "new quota"
  headgate concurrency unset llm:openai
  headgate concurrency release group:shop:staging-db LEASE --force

Where nobody has set the LIMIT of a project, it depends on the tier of the job
that starts: the highest is shown, `headgate explain JOB` tells a job's own."""

REASON: Final = "kept in the log, with who it was"


def add_workflow(commands: Parsers) -> None:
    below = verbs(commands, "workflow", "phases in order, whole or not at all", WORKFLOW_EXAMPLES)
    submit = below.add("submit", later("workflows", "submit"), "submit all phases, or none")
    submit.add_argument("prompts", nargs="*", metavar="PROMPT", help="what each phase builds, in words")
    submit.add_argument("--file", metavar="FILE", help="a JSON list of phases, each with input, pipeline, pool")
    submit.add_argument("--project", required=True, help="whose it is")
    submit.add_argument("--priority", choices=[priority.value for priority in Priority], help="of all phases (normal)")
    submit.add_argument("--idempotency-key", metavar="KEY", help="the same key again is the same workflow (a new one)")
    below.add("show", later("workflows", "show"), "its phases, and where each stands").add_argument("workflow")
    cancel = below.add("cancel", later("workflows", "cancel"), "end all phases that have not ended")
    cancel.add_argument("workflow")
    cancel.add_argument("--reason", default="", help=REASON)


def add_operators(commands: Parsers) -> None:
    why = "why a job waits, who holds what, what would let it run"
    explain = add(commands, "explain", later("queue", "explain"), why, EXPLAIN_EXAMPLES)
    explain.add_argument("job")
    add(
        commands,
        "usage",
        later("jobs", "usage"),
        "how many jobs one has used today, and how many are left",
        USAGE_EXAMPLES,
    )
    _add_queue(commands)
    _add_concurrency(commands)
    add(commands, "workers", later("operators", "workers"), "who is there to run jobs", WORKERS_EXAMPLES)
    audit = add(commands, "audit", later("operators", "audit"), "who did what to the queue, and why", AUDIT_EXAMPLES)
    audit.add_argument("--since", type=moment, metavar="WHEN", help="from then on: a moment, or 90m, 24h, 7d (24h)")
    about = "a user's inputs, workspaces, results and logs, for good"
    erase = add(commands, "erase", later("operators", "erase"), about, ERASE_EXAMPLES)
    erase.add_argument("user")
    erase.add_argument("--reason", default="", help=REASON)
    erase.add_argument("--yes", action="store_true", help="erase without a question")
    run = later("rebuilding", "rebuild")
    rebuild = add(commands, "rebuild", run, "fold the view again from the log", REBUILD_EXAMPLES)
    rebuild.add_argument(
        "--within", type=positive, default=120, metavar="SECONDS", help="how long to wait for it (120)"
    )


def _add_queue(commands: Parsers) -> None:
    below = verbs(commands, "queue", "who waits, and what operators do about it", QUEUE_EXAMPLES)
    below.add("show", later("queue", "show"), "every job that waits, in order")
    for name, run, words in (
        ("pause", later("queue", "pause"), "start nothing in a scope until it is resumed"),
        ("resume", later("queue", "resume"), "let a scope start again"),
    ):
        verb = below.add(name, run, words)
        verb.add_argument("scope", nargs="?", default="all", help="(all)")
        verb.add_argument("--reason", default="", help=REASON)
    move = below.add("move", later("queue", "move"), "put a queued job right before or after another")
    move.add_argument("job")
    place = move.add_mutually_exclusive_group(required=True)
    place.add_argument("--before", metavar="JOB")
    place.add_argument("--after", metavar="JOB")
    move.add_argument("--reason", default="", help=REASON)
    below.add("analytics", later("queue", "analytics"), "waits by priority and tier, and how good the forecast was")


def _add_concurrency(commands: Parsers) -> None:
    below = verbs(commands, "concurrency", "how many at once, and who holds what", CONCURRENCY_EXAMPLES)
    status = below.add("status", later("concurrency", "status"), "every group, or one with its holders")
    status.add_argument("group", nargs="?")
    release = below.add("release", later("concurrency", "release"), "free a lease by force")
    release.add_argument("group")
    release.add_argument("lease")
    release.add_argument("--force", action="store_true", required=True, help="its holder is told that it is gone")
    release.add_argument("--reason", default="", help=REASON)
    limit = below.add("set", later("concurrency", "set_limit"), "another limit, at once and for good")
    limit.add_argument("group")
    limit.add_argument("--limit", type=positive, required=True, metavar="N")
    limit.add_argument("--reason", default="", help=REASON)
    unset = below.add("unset", later("concurrency", "unset_limit"), "what was set is taken back")
    unset.add_argument("group")
    unset.add_argument("--reason", default="", help=REASON)

"""The words of the commands about the queue as a whole, and about workflows."""

from typing import Final

import click

from headgate_contracts.vocabulary import Priority
from libs.cli.grammar import FILE, CommandGroup, argument, completed_by, flag, moment, option, positive

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
  headgate queue stats --since 7d

scopes: all, priority:NAME, pool:NAME, user:ID, project:ID, workflow:ID
  project:shop is the project that all share whose tokens name it, project:ann:shop is ann's own"""

CONCURRENCY_EXAMPLES: Final = """examples:
  headgate concurrency status
  headgate concurrency status llm:openai
  headgate concurrency set llm:openai --limit 6 --reason "new quota"
  headgate concurrency unset llm:openai
  headgate concurrency release group:shop:staging-db LEASE --force
  headgate concurrency take staging-db --project shop --limit 3 --wait 60
  headgate concurrency extend staging-db LEASE --project shop
  headgate concurrency give-back staging-db LEASE --project shop

Where nobody has set the LIMIT of a project, it depends on the tier of the job
that starts: the highest is shown, `headgate explain JOB` tells a job's own."""

PIPELINES_EXAMPLES: Final = """examples:
  headgate pipelines list
  headgate pipelines new weather       a package with tests that pass
  headgate pipelines check weather     what is wrong with the module weather.py
  headgate pipelines remove weather --pool default

An input is checked when a job is submitted: `--json` has each one's JSON Schema."""

POLICY_EXAMPLES: Final = """examples:
  headgate policy check policy.toml    here alone: what is wrong with it, line by line
  headgate policy show > policy.toml
  headgate policy diff policy.toml     ends with 1 where they differ
  headgate policy reload policy.toml --reason "the launch"
  headgate policy reload policy.toml --replaces 5d41402abc4b2a76    as diff has named it

A reload holds from its record in the log on, above the file that services start
with. It ends no running job; what only a start can change, it refuses."""

REASON: Final = "kept in the log, with who it was"


def why() -> click.Option:
    return option("--reason", default="", help=REASON)


def add_workflow(root: CommandGroup) -> None:
    workflow = root.below("workflow", "phases in order, whole or not at all", WORKFLOW_EXAMPLES)
    priorities = click.Choice([priority.value for priority in Priority])
    workflow.verb(
        "submit",
        "workflows.submit",
        "submit all phases, or none",
        argument("prompts", "what each phase builds, in words", nargs=-1, metavar="[PROMPT]..."),
        option("--file", metavar="FILE", help="a JSON list of phases, each with input, pipeline, pool"),
        option("--project", required=True, help="whose it is"),
        option("--priority", type=priorities, help="of all phases (normal)"),
        option("--idempotency-key", metavar="KEY", help="the same key again is the same workflow (a new one)"),
    )
    workflow.verb("show", "workflows.show", "its phases, and where each stands", argument("workflow"))
    workflow.verb("cancel", "workflows.cancel", "end all phases that have not ended", argument("workflow"), why())


def add_operators(root: CommandGroup) -> None:
    job = argument("job", shell_complete=completed_by("job_ids"))
    reason = "why a job waits, who holds what, what would let it run"
    root.verb("explain", "queue.explain", reason, job, examples=EXPLAIN_EXAMPLES)
    used = "how many jobs one has used today, and how many are left"
    root.verb("usage", "jobs.usage", used, examples=USAGE_EXAMPLES)
    _add_queue(root)
    _add_concurrency(root)
    _add_pipelines(root)
    _add_policy(root)
    root.verb("workers", "operators.workers", "who is there to run jobs", examples=WORKERS_EXAMPLES)
    since = option("--since", type=moment, metavar="WHEN", help="from then on: a moment, or 90m, 24h, 7d (24h)")
    root.verb("audit", "operators.audit", "who did what to the queue, and why", since, examples=AUDIT_EXAMPLES)
    root.verb(
        "erase",
        "operators.erase",
        "a user's inputs, workspaces, results and logs, for good",
        argument("user"),
        why(),
        flag("--yes", "erase without a question"),
        examples=ERASE_EXAMPLES,
    )
    within = option("--within", type=positive, default=120, metavar="SECONDS", help="how long to wait for it (120)")
    root.verb("rebuild", "rebuilding.rebuild", "fold the view again from the log", within, examples=REBUILD_EXAMPLES)


def _add_queue(root: CommandGroup) -> None:
    queue = root.below("queue", "who waits, and what operators do about it", QUEUE_EXAMPLES)
    scope = argument("scope", "(all)", required=False, default="all", shell_complete=completed_by("scopes"))
    queue.verb("show", "queue.show", "every job that waits, in order")
    queue.verb("pause", "queue.pause", "start nothing in a scope until it is resumed", scope, why())
    queue.verb("resume", "queue.resume", "let a scope start again", scope, why())
    queue.verb(
        "move",
        "queue.move",
        "put a queued job right before or after another",
        argument("job", shell_complete=completed_by("job_ids")),
        option("--before", metavar="JOB", help="right before this one", shell_complete=completed_by("job_ids")),
        option("--after", metavar="JOB", help="right after this one", shell_complete=completed_by("job_ids")),
        why(),
        one_of=("before", "after"),
    )
    since = option("--since", type=moment, metavar="WHEN", help="from then on: a moment, or 90m, 24h, 7d (24h)")
    queue.verb("stats", "queue.stats", "what was queued, ran, started and ended, how long it waited, over time", since)
    queue.verb("analytics", "queue.analytics", "waits by priority and tier, and how good the forecast was")


def _add_concurrency(root: CommandGroup) -> None:
    groups = root.below("concurrency", "how many at once, and who holds what", CONCURRENCY_EXAMPLES)
    group = argument("group", shell_complete=completed_by("group_names"))
    maybe = argument("group", required=False, shell_complete=completed_by("group_names"))
    groups.verb("status", "concurrency.status", "every group, or one with its holders", maybe)
    groups.verb(
        "release",
        "concurrency.release",
        "free a lease by force",
        group,
        argument("lease"),
        option("--force", is_flag=True, required=True, help="its holder is told that it is gone"),
        why(),
    )
    limit = option("--limit", type=positive, required=True, metavar="N", help="so many at once")
    groups.verb("set", "concurrency.set_limit", "another limit, at once and for good", group, limit, why())
    groups.verb("unset", "concurrency.unset_limit", "what was set is taken back", group, why())
    project = option("--project", required=True, help="whose group it is")
    name, lease = argument("group", "its name within the project"), argument("lease")
    ttl = option("--ttl", type=positive, metavar="SECONDS", help="how long it is held (300)")
    groups.verb(
        "take",
        "concurrency.take",
        "a slot of a project's group for what is no job",
        name,
        project,
        option("--limit", type=positive, metavar="N", help="so many at once, where nobody has set the group's limit"),
        ttl,
        option("--wait", type=positive, metavar="SECONDS", help="wait in line for so long at most (until it is there)"),
        option("--lease", metavar="ULID", help="the same lease again is the same slot (a new one)"),
    )
    groups.verb("extend", "concurrency.extend", "hold a slot for longer", name, lease, project, ttl)
    groups.verb("give-back", "concurrency.give_back", "let go of a slot", name, lease, project)


def _add_policy(root: CommandGroup) -> None:
    policy = root.below("policy", "every number an operator may change", POLICY_EXAMPLES)
    file = argument("file", "(policy.toml)", type=FILE, required=False)
    policy.verb("show", "policy.show", "what is in force, as a file")
    policy.verb("check", "policy.check", "what is wrong with a file, or what it changes of the defaults", file)
    policy.verb("diff", "policy.diff", "from what is in force to what a file says", file)
    seen = option("--replaces", metavar="VERSION", help="only in place of this one, as `show` and `diff` name it")
    text = "a file in place of what is in force, for everybody at once"
    policy.verb("reload", "policy.reload", text, file, seen, why())


def _add_pipelines(root: CommandGroup) -> None:
    pipelines = root.below("pipelines", "which there are; a new one, what is wrong with one", PIPELINES_EXAMPLES)
    pipelines.verb("list", "pipelines.show", "each with its pool, its stages and its input")
    name = argument("name", "of the pipeline, and of its folder here")
    pipelines.verb("new", "pipelines.new", "write a package with a pipeline and its tests", name)
    module = argument("module")
    pipelines.verb("check", "pipelines.check", "load a module as a worker would, and say what is wrong", module)
    pool = option("--pool", default="default", metavar="POOL", help="whose workers had announced it (default)")
    pipelines.verb("remove", "pipelines.remove", "take in no more jobs of one", argument("pipeline"), pool, why())

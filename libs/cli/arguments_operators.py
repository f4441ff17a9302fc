"""The words of the commands about the queue as a whole, and about workflows."""

from typing import Final

import click

from headgate_contracts.vocabulary import Priority
from libs.cli.grammar import FILE, CommandGroup, argument, completed_by, flag, moment, option, positive

EXPLAIN_EXAMPLES: Final = """examples:
  headgate explain JOB
  headgate explain JOB --json | jq -r '.waiting_on[].reason'

HEADGATE_TOKEN decides who asks: an operator may ask about any job."""

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
  headgate erase u1 --yes    without a question, for scripts

Exits with 1 while a worker is still ending one of the user's jobs: run the same
command again to erase what that job has written."""

REBUILD_EXAMPLES: Final = """examples:
  headgate rebuild
  HEADGATE_REDIS_URL=rediss://user:password@valkey:6379 headgate rebuild --within 300

Nothing is lost: the log is the truth. Until it is done, submissions get a 503."""

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
  project:shop is the project shared by all whose tokens name it, project:ann:shop is ann's own"""

CONCURRENCY_EXAMPLES: Final = """examples:
  headgate concurrency status
  headgate concurrency status llm:openai
  headgate concurrency set llm:openai --limit 6 --reason "new quota"
  headgate concurrency unset llm:openai
  headgate concurrency release group:shop:staging-db LEASE --force
  headgate concurrency take staging-db --project shop --limit 3 --wait 60
  headgate concurrency extend staging-db LEASE --project shop
  headgate concurrency give-back staging-db LEASE --project shop

If a project's LIMIT is not set, it depends on the tier of the job that starts:
the highest is shown here, `headgate explain JOB` shows the one of a job."""

PIPELINES_EXAMPLES: Final = """examples:
  headgate pipelines list
  headgate pipelines new weather       a package with tests that pass
  headgate pipelines check weather     what is wrong with the module weather.py
  headgate pipelines remove weather --pool default

Inputs are checked when a job is submitted; `--json` shows each JSON Schema."""

POLICY_EXAMPLES: Final = """examples:
  headgate policy check policy.toml    on this machine: what is wrong with it, line by line
  headgate policy show > policy.toml
  headgate policy diff policy.toml     exits with 1 if they differ
  headgate policy reload policy.toml --reason "the launch"
  headgate policy reload policy.toml --replaces 5d41402abc4b2a76    as diff has named it

A reload takes effect with its record in the log, and takes precedence over the
file that services start with. It ends no running job. It refuses numbers that
only a restart can change."""

REASON: Final = "kept in the log, with who did it"


def why() -> click.Option:
    return option("--reason", default="", help=REASON)


def add_workflow(root: CommandGroup) -> None:
    workflow = root.below("workflow", "several jobs in a row, as phases", WORKFLOW_EXAMPLES)
    priorities = click.Choice([priority.value for priority in Priority])
    workflow.verb(
        "submit",
        "workflows.submit",
        "submit all phases, or none",
        argument("prompts", "what each phase builds, in words", nargs=-1, metavar="[PROMPT]..."),
        option("--file", metavar="FILE", help="a JSON list of phases, each with input, pipeline, pool"),
        option("--project", required=True, help="the project it belongs to"),
        option("--priority", type=priorities, help="of all phases (normal)"),
        option("--idempotency-key", metavar="KEY", help="the same key again gives the same workflow (a new key)"),
    )
    workflow.verb("show", "workflows.show", "a workflow's phases, and where each stands", argument("workflow"))
    workflow.verb("cancel", "workflows.cancel", "end all phases that have not ended", argument("workflow"), why())


def add_operators(root: CommandGroup) -> None:
    job = argument("job", shell_complete=completed_by("job_ids"))
    reason = "why a job waits, who holds what, what would let it run"
    root.verb("explain", "queue.explain", reason, job, examples=EXPLAIN_EXAMPLES)
    used = "how many jobs you have used today, and how many are left"
    root.verb("usage", "jobs.usage", used, examples=USAGE_EXAMPLES)
    _add_queue(root)
    _add_concurrency(root)
    _add_pipelines(root)
    _add_policy(root)
    root.verb("workers", "operators.workers", "the workers, and what they run", examples=WORKERS_EXAMPLES)
    since = option("--since", type=moment, metavar="WHEN", help="from then on: a time, or 90m, 24h, 7d ago (24h)")
    root.verb("audit", "operators.audit", "who did what to the queue, and why", since, examples=AUDIT_EXAMPLES)
    root.verb(
        "erase",
        "operators.erase",
        "erase a user's inputs, workspaces, results and logs for good",
        argument("user"),
        why(),
        flag("--yes", "erase without asking"),
        examples=ERASE_EXAMPLES,
    )
    within = option("--within", type=positive, default=120, metavar="SECONDS", help="how long to wait for it (120)")
    root.verb("rebuild", "rebuilding.rebuild", "rebuild the view from the log", within, examples=REBUILD_EXAMPLES)


def _add_queue(root: CommandGroup) -> None:
    queue = root.below("queue", "what waits, and what operators can do about it", QUEUE_EXAMPLES)
    scope = argument("scope", "(all)", required=False, default="all", shell_complete=completed_by("scopes"))
    queue.verb("show", "queue.show", "every job that waits, in order")
    queue.verb("pause", "queue.pause", "start no job of a scope until it is resumed", scope, why())
    queue.verb("resume", "queue.resume", "let jobs of a scope start again", scope, why())
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
    since = option("--since", type=moment, metavar="WHEN", help="from then on: a time, or 90m, 24h, 7d ago (24h)")
    queue.verb("stats", "queue.stats", "jobs queued, running, started and ended, and their waits, over time", since)
    queue.verb("analytics", "queue.analytics", "waits by priority and tier, and how accurate the forecast was")


def _add_concurrency(root: CommandGroup) -> None:
    groups = root.below("concurrency", "limits of groups, and who holds their slots", CONCURRENCY_EXAMPLES)
    group = argument("group", shell_complete=completed_by("group_names"))
    maybe = argument("group", required=False, shell_complete=completed_by("group_names"))
    groups.verb("status", "concurrency.status", "all groups, or one with its holders", maybe)
    groups.verb(
        "release",
        "concurrency.release",
        "free a slot by force",
        group,
        argument("lease"),
        option("--force", is_flag=True, required=True, help="required: the holder loses it"),
        why(),
    )
    limit = option("--limit", type=positive, required=True, metavar="N", help="slots at once")
    groups.verb(
        "set", "concurrency.set_limit", "set a group's limit, at once and until it is unset", group, limit, why()
    )
    groups.verb("unset", "concurrency.unset_limit", "remove a limit that was set", group, why())
    project = option("--project", required=True, help="the project the group belongs to")
    name, lease = argument("group", "its name within the project"), argument("lease")
    ttl = option("--ttl", type=positive, metavar="SECONDS", help="how long to hold it (300)")
    groups.verb(
        "take",
        "concurrency.take",
        "take a slot of a project's group outside any job",
        name,
        project,
        option("--limit", type=positive, metavar="N", help="slots at once, if the group's limit is not set"),
        ttl,
        option(
            "--wait", type=positive, metavar="SECONDS", help="wait in line for at most this long (until it is free)"
        ),
        option("--lease", metavar="ULID", help="the same lease again gives the same slot (a new lease)"),
    )
    groups.verb("extend", "concurrency.extend", "hold a slot for longer", name, lease, project, ttl)
    groups.verb("give-back", "concurrency.give_back", "give a slot back", name, lease, project)


def _add_policy(root: CommandGroup) -> None:
    policy = root.below("policy", "limits, priorities and all other numbers of the policy", POLICY_EXAMPLES)
    file = argument("file", "(policy.toml)", type=FILE, required=False)
    policy.verb("show", "policy.show", "print the policy in force, as a file")
    policy.verb(
        "check", "policy.check", "check a file: what is wrong with it, or how it differs from the defaults", file
    )
    policy.verb("diff", "policy.diff", "how a file differs from the policy in force", file)
    seen = option("--replaces", metavar="VERSION", help="only if this version is in force; `show` and `diff` print it")
    text = "put a file in force in all services at once"
    policy.verb("reload", "policy.reload", text, file, seen, why())


def _add_pipelines(root: CommandGroup) -> None:
    pipelines = root.below("pipelines", "list, create, check and remove pipelines", PIPELINES_EXAMPLES)
    pipelines.verb("list", "pipelines.show", "all pipelines, with pool, stages and input")
    name = argument("name", "name of the pipeline and of its new folder")
    pipelines.verb("new", "pipelines.new", "write a package with a pipeline and its tests", name)
    module = argument("module")
    pipelines.verb("check", "pipelines.check", "load a module as a worker would, and report what is wrong", module)
    pool = option("--pool", default="default", metavar="POOL", help="the pool whose workers announced it (default)")
    pipelines.verb("remove", "pipelines.remove", "stop accepting jobs of a pipeline", argument("pipeline"), pool, why())

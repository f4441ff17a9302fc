"""The numbers an operator may change, grouped by who reads them.

Owns each number's default, unit, bounds and meaning. Refuses what several numbers must keep together (`model`), and
names that clients see (`headgate_contracts.vocabulary`).
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from headgate_contracts.vocabulary import MAX_INPUT_BYTES, Priority
from libs.policy.errors import key_path


@dataclass(frozen=True)
class Unit:
    """What a number counts, for the reference table."""

    name: str


Default = TypeVar("Default")
Table = Mapping[str, Any]

# Durations start at one millisecond, the step of the view's clock. The upper bounds keep every sum of milliseconds
# exact in the doubles that Lua counts with.
Seconds = Annotated[float, Field(ge=0.001, le=1e9, allow_inf_nan=False), Unit("s")]
Days = Annotated[int, Field(ge=1, le=10_000), Unit("days")]
Count = Annotated[int, Field(ge=1, le=10**9)]
Jobs = Annotated[Count, Unit("jobs")]
Iterations = Annotated[Count, Unit("iterations")]
Slots = Annotated[Count, Unit("slots")]
Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False), Unit("share")]
Class = Annotated[Priority, Field(strict=False), Unit("priority")]
Text = Annotated[str, Unit("text")]

MINUTE_MS: Final = 60_000

GROUP: Final = r"^[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9_-]{1,64}){0,3}$"
PROVIDER: Final = r"^[a-z0-9_]{1,64}$"
POOL: Final = r"^[A-Za-z0-9_-]{1,64}$"
HOST: Final = r"^[a-z0-9.-]{1,253}(:[0-9]{1,5})?$"
TRACE_URL: Final = r"^(https?://[^\s{}]+\{trace_id\}[^\s{}]*)?$"
IN_WORDS: Final = {
    TRACE_URL: "nothing, or a web address with {trace_id} in it once, like https://tempo.example.com/trace/{trace_id}",
    GROUP: "a group's name, like db or group:shop:db",
    PROVIDER: "a provider's name of a-z, 0-9 and _",
    POOL: "a pool's name of A-Z, a-z, 0-9, _ and -",
    HOST: "a host in lower case, like hooks.example.com or hooks.example.com:8443, without https:// and path",
}
GroupKey = Annotated[str, Field(pattern=GROUP)]
ProviderName = Annotated[str, Field(pattern=PROVIDER)]
PoolName = Annotated[str, Field(pattern=POOL)]
Host = Annotated[str, Field(pattern=HOST)]
USUAL_POOL: Final = "default"


class Section(BaseModel):
    """A table of the file. What the file does not name keeps its default, also inside a table that has some keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _over_the_default(cls, value: Any, info: ValidationInfo) -> Any:
        base: Any = cls.model_fields[info.field_name or ""].default
        if isinstance(base, Section):
            base = base.model_dump(exclude_unset=True)  # without what is derived: it is derived again
        are_tables = all(isinstance(one, Mapping) for one in (base, value))
        return {**base, **value} if are_tables else value


@dataclass(frozen=True)
class Key:
    """One number of the policy: where it stands, what it is now, and what it means."""

    path: str
    value: Any
    unit: str
    meaning: str


def keys(section: Section, prefix: str = "") -> Iterator[Key]:
    """Every number below a section, in the order of the source."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from keys(value, f"{prefix}{name}.")
        else:
            units = [mark.name for mark in field.metadata if isinstance(mark, Unit)]
            yield Key(f"{prefix}{name}", value, units[0], field.description or "")


def toml_text(value: Any) -> str:
    """A number of the policy as it stands in a file."""
    if isinstance(value, Mapping):
        entries = cast("Table", value)
        return f"{{{', '.join(f'{key_path(name)} = {toml_text(entry)}' for name, entry in entries.items())}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml_text, cast('tuple[Any, ...]', value)))}]"
    return json.dumps(value, ensure_ascii=False).removesuffix(".0")


def default(value: Default, meaning: str) -> Default:
    """A number's default and its line in the reference. Typed as the default, so that type checkers see one."""
    return Field(default=value, description=meaning)


def _derived(derive: Callable[[dict[str, Any]], Any], meaning: str) -> Any:
    return Field(default_factory=derive, description=meaning)


class TierLimits(Section):
    """What a user's tier gives. Read at the moment of a decision, never copied onto a job."""

    jobs_per_user: Jobs = default(2, "jobs of one user that run at once")
    jobs_per_project: Jobs = default(2, "jobs of one project that run at once, by the starting job's tier")
    jobs_per_day: Jobs = default(5, "jobs of one user in a UTC day; more are scheduled for a later day")
    boost: Annotated[int, Field(ge=0, le=1000), Unit("places")] = default(0, "places a new job moves ahead")
    cycles_per_batch: Iterations = default(2, "iterations before the user is asked to go on")
    hard_cap: Iterations = _derived(
        lambda known: 3 * known["cycles_per_batch"], "iterations after which a job fails; not set: 3 × cycles_per_batch"
    )
    first_duration_s: Seconds = default(480, "first guess of a job's duration, until some have been measured")
    highest_priority: Class = default(Priority.NORMAL, "highest priority a user may ask for")
    upgrade_url: Text = default("", "where the next tier is offered; empty: there is none")


class Tiers(Section):
    """What each tier gives. Limits are read at the moment of a decision: a change applies to the backlog at once."""

    bootstrapper: TierLimits = TierLimits()
    partner: TierLimits = TierLimits(
        jobs_per_user=3,
        jobs_per_project=3,
        jobs_per_day=50,
        boost=2,
        cycles_per_batch=3,
        first_duration_s=600,
        highest_priority=Priority.HIGH,
    )
    cto_scale: TierLimits = TierLimits(
        jobs_per_user=10,
        jobs_per_project=5,
        jobs_per_day=200,
        boost=5,
        cycles_per_batch=5,
        first_duration_s=900,
        highest_priority=Priority.URGENT,
    )


class Submissions(Section):
    """What admission accepts, from whom and how fast."""

    # All of a minute's may come at once, so a batch of 100, the most there is, is within it.
    per_minute: Jobs = default(60, "jobs and phases that one user submits in a minute, all at once or not, then 429")
    # With the default an eighth of the bucket: six greedy users crowd it, and no number of them closes it.
    user_input_bytes: Annotated[Count, Unit("bytes")] = default(
        67_108_864, "inputs that are kept of one user, each counted with 128 bytes for its name; then 429"
    )
    crowded: Share = default(
        0.8, "part of the bucket of inputs above which a user's share shrinks, so that the largest are refused first"
    )
    # Twenty phases of the largest input are 1.25 MiB, so the largest workflow is within a minute's too.
    bytes_per_minute: Annotated[Count, Unit("bytes")] = default(
        2_097_152, "inputs that one user submits in a minute, all at once or not, then 429"
    )
    # A change of a workflow is one event for each phase that has not ended: six of the largest workflow a minute.
    changes_per_minute: Jobs = default(
        120, "jobs and phases that one user changes in a minute at one replica (class, cancel, confirm), then 429"
    )
    max_input_bytes: Annotated[int, Field(ge=1, le=MAX_INPUT_BYTES), Unit("bytes")] = default(
        MAX_INPUT_BYTES, "largest input of a job; the API takes no larger one"
    )
    # One workflow is one atomic batch, and the log takes 50 events in one.
    max_phases: Annotated[int, Field(ge=1, le=50), Unit("phases")] = default(20, "phases of one workflow")
    idempotency_s: Annotated[Seconds, Field(ge=86_400)] = default(
        86_400, "how long an Idempotency-Key is known at least"
    )
    reservation_s: Seconds = default(60, "how long a place is held for a submission not yet in the log")
    append_deadline_s: Seconds = default(30, "after its reservation, how long admission tries to append")

    def cost_ms(self, *, phases: int, input_bytes: int) -> int:
        """What a submission costs of its user's minute: by its phases or by its bytes, whichever is more. One that is
        larger than a minute allows costs all of it, or it could never be made."""
        by_phases = phases * max(1, MINUTE_MS // self.per_minute)
        by_bytes = math.ceil(input_bytes * MINUTE_MS / self.bytes_per_minute)
        return min(MINUTE_MS, max(by_phases, by_bytes))

    def change_cost_ms(self, events: int) -> int:
        """What a change costs of its user's minute, by the events that it writes; a larger one costs all of it."""
        return min(MINUTE_MS, events * max(1, MINUTE_MS // self.changes_per_minute))


class Queue(Section):
    """How much may wait, and for how long ahead."""

    cap: Jobs = default(100, "jobs queued at once, then 503")
    user_share: Jobs = _derived(
        lambda known: max(1, known["cap"] // 2), "queued jobs of one user, then 429; not set: half of cap"
    )
    busy_step_minutes: Annotated[Count, Unit("minutes")] = default(
        15, "'try again in N minutes' is rounded up to a multiple of this"
    )
    default_ttl_s: Seconds = default(
        604_800,
        "how long a job may wait for its first start that names no queue_ttl_s; pauses, outages and time without a "
        "worker of its pool do not count",
    )
    horizon_days: Days = default(30, "how far ahead a job may be scheduled, then 429")
    release_spread_s: Annotated[int, Field(ge=0, le=86_400), Unit("s")] = default(
        3600, "scheduled jobs are released over this time after midnight UTC"
    )

    def ttl_s(self, asked_s: int | None) -> float:
        """How long a job may wait that asks for this, or for nothing."""
        return self.default_ttl_s if asked_s is None else asked_s


class Pools(Section):
    """Whose workers may run a job. A job of a pool that is not named here is refused, a worker of one does not start.
    A pool is given up in two steps: first to `closing`, and out of that once nothing of it waits any more."""

    names: Annotated[tuple[PoolName, ...], Field(strict=False), Unit("pools")] = default(
        (), "pools beside `default`, which is always one; `headgate migrate` makes what their workers take jobs from"
    )
    closing: Annotated[tuple[PoolName, ...], Field(strict=False), Unit("pools")] = default(
        (), "pools that take no new jobs, while their workers go on with what waits"
    )

    @property
    def open(self) -> tuple[str, ...]:
        """Those that a job may name."""
        return tuple(dict.fromkeys((USUAL_POOL, *self.names)))

    @property
    def served(self) -> tuple[str, ...]:
        """Those that may have workers."""
        return tuple(dict.fromkeys((*self.open, *self.closing)))


class Order(Section):
    """Who goes first, and what keeps everybody moving."""

    max_passed: Annotated[int, Field(ge=0, le=10**9), Unit("times")] = default(
        10, "how often boosted jobs may pass one job"
    )
    ageing_after_s: Seconds = default(3600, "a job that has waited this long rises one class, and again")
    ageing_ceiling: Class = default(Priority.HIGH, "the class above which no job rises by waiting")
    starved_after_s: Seconds = default(3600, "a class that could have started but did not for so long starves")
    starved_every: Annotated[int, Field(ge=2, le=10**9), Unit("starts")] = default(
        10, "a starving class gets every n-th start"
    )

    def risen(self, priority: Priority) -> Priority | None:
        """One class up, by waiting; null where no job rises any further."""
        above = [each for each in Priority if each.class_number < priority.class_number]  # the highest first
        return above[-1] if above and above[-1].class_number >= self.ageing_ceiling.class_number else None


class Runs(Section):
    """How long an attempt may take, how often its worker may be lost, and how much it may leave."""

    timeout_s: Seconds = default(21_600, "deadline of an attempt that asks for none")
    max_timeout_s: Seconds = default(86_400, "longest run_timeout_s that a job may ask for")
    max_lost: Annotated[int, Field(ge=0, le=1000), Unit("times")] = default(
        3, "how often a job is given back because its worker was lost; then it fails"
    )
    log_lines: Annotated[Count, Unit("lines")] = default(100_000, "log lines of one attempt; what comes after is cut")
    log_bytes: Annotated[Count, Unit("bytes")] = default(16_777_216, "log of one attempt; what comes after is cut")
    # Both lie in object stores that the worker writes from memory, as many at once as it has slots.
    result_bytes: Annotated[Count, Unit("bytes")] = default(
        268_435_456, "packed result of a job; a larger one fails it"
    )
    checkpoint_bytes: Annotated[Count, Unit("bytes")] = default(
        134_217_728, "packed workspace after a stage, environments left out; a larger one fails the job"
    )
    reused_pipelines: Annotated[tuple[PoolName, ...], Field(strict=False), Unit("pipelines")] = default(
        (), "whose author vouches that nothing of a job stays in the process: it may have the next job of the pipeline"
    )


class Sandbox(Section):
    """What one command of a job, and all that it starts, may use: hostile code included."""

    timeout_s: Seconds = default(900, "longest a command runs where its stage does not say")
    memory_bytes: Annotated[int, Field(ge=16_777_216, le=2**40), Unit("bytes")] = default(
        1_073_741_824, "memory; a worker needs this for each of its slots, and some for itself"
    )
    processes: Annotated[int, Field(ge=4, le=100_000), Unit("processes")] = default(256, "processes and threads")
    open_files: Annotated[int, Field(ge=16, le=1_000_000), Unit("files")] = default(1024, "open files of each process")
    file_bytes: Annotated[int, Field(ge=4096, le=2**50), Unit("bytes")] = default(536_870_912, "size of each file")
    disk_bytes: Annotated[int, Field(ge=1_048_576, le=2**50), Unit("bytes")] = default(
        2_147_483_648, "workspace and temporary files together"
    )
    cpu_s: Seconds = default(1800, "time on processors, of all processes together")
    output_bytes: Annotated[Count, Unit("bytes")] = default(8_388_608, "what it may print; each line counts 64 more")


class Leases(Section):
    """How long a slot or the lead is held by someone who has fallen silent."""

    job_s: Seconds = default(30, "lease of a running job and of what it takes inside")
    heartbeat_s: Seconds = default(5, "how often a worker extends its leases")
    # An outage of all of NATS makes leases longer; a worker that alone is cut off cannot tell the two apart.
    cut_off_s: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False), Unit("s")] = default(
        600, "how long beyond its leases a worker that reaches nobody goes on with its jobs"
    )
    leader_s: Seconds = default(5, "lease of the leading scheduler")
    leader_heartbeat_s: Seconds = default(1, "how often the leading scheduler extends its lease")


class Concurrency(Section):
    """Slots of named groups. `[concurrency.limits]` holds full names (`workflows`, `group:shop:db`), or the last part
    alone (`db`), which then is the limit of every project's group of that name. What stands there has a label in the
    metrics; all other groups are `other`."""

    default_lease_duration_secs: Seconds = default(300, "lease asked for outside a job, and the longest there is")
    default_limit: Slots = default(1, "slots of a named group for which nobody has set or asked a limit")
    leases_per_user: Slots = default(100, "slots that one user may hold and wait for at once outside jobs")
    limits: Annotated[Mapping[GroupKey, Slots], Unit("slots")] = default({"workflows": 5}, "slots by group")

    @property
    def longest_lease_ms(self) -> int:
        """Of a lease outside a job. Where the view was lost, nobody knows for so long who holds one."""
        return round(self.default_lease_duration_secs * 1000)


class Projects(Section):
    """Whose a project is. One is shared by the users whose tokens claim it; any other name is each user's own."""

    shared: Annotated[bool, Unit("yes or no")] = default(
        False, "all names are shared by all users, claimed or not: for one company"
    )


class Providers(Section):
    """Calls to LLM providers at once. `LLM_MAX_CONCURRENCY_<PROVIDER>` and `LLM_MAX_CONCURRENCY_GLOBAL` override."""

    global_limit: Slots = default(12, "calls at once over all providers")
    limits: Annotated[Mapping[ProviderName, Slots], Unit("slots")] = default(
        {"ollama": 4, "gemini": 8, "openai": 10, "deepseek": 8}, "calls at once by provider"
    )
    pause_s: Seconds = default(60, "pause of a provider that asks for one and does not say how long")
    give_back_after_s: Seconds = default(60, "a job gives its slots back where its provider pauses for longer")


class Confirmation(Section):
    """How long a job waits for its user's answer, from the question on."""

    reminders_s: Annotated[tuple[Seconds, ...], Field(strict=False), Unit("s")] = default(
        (43_200, 82_800), "when the user is reminded"
    )
    timeout_s: Seconds = default(86_400, "when the job fails")


class Forecast(Section):
    """How the plain estimate is made."""

    alpha: Share = default(0.3, "weight of the newest duration in the moving average")
    spread: Share = default(0.3, "the bounds lie this far below and above the estimate")
    medium_below: Annotated[Count, Unit("position")] = default(10, "confidence is medium below this, low from here")


class TokenRules(Section):
    """How long a token may be good. One that is taken back is remembered for that long."""

    longest_days: Days = default(30, "longest life of a token, from its `iat`; one that is good for longer is refused")


class Stream(Section):
    """What one client's event stream costs and how often it hears."""

    per_user: Annotated[Count, Unit("streams")] = default(10, "open streams of one user at one replica, then 429")
    per_replica: Annotated[Count, Unit("streams")] = default(5000, "open streams of one replica, then 429")
    tickets_per_user: Annotated[Count, Unit("tickets")] = default(
        30, "tickets of one user that are good at once, for 30 s each, used or not; then 429"
    )
    slow_after_s: Seconds = default(10, "a client that takes nothing for so long is cut off, and resumes")
    comment_s: Seconds = default(15, "time between heartbeat comments")
    retry_ms: Annotated[Count, Unit("ms")] = default(2000, "when a client should connect again")
    positions_per_second: Annotated[Count, Unit("per s")] = default(4, "most position updates, merged")
    position_every_s: Seconds = default(5, "longest time between position updates")


def _host_of(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.netloc.lower() if parts.scheme in ("http", "https") else None


class Tracing(Section):
    """Where traces are read. The link is shown to operators alone: what leads there holds everybody's spans, and a user
    is asked for the debug id, which is the same."""

    url_template: Annotated[str, Field(pattern=TRACE_URL), Unit("text")] = default(
        "", "address of a job's trace, with `{trace_id}` in it; nothing: no link"
    )

    def url_of(self, trace_id: str) -> str | None:
        return self.url_template.replace("{trace_id}", trace_id) or None


class Webhooks(Section):
    """Where `notify_url` may point, and how often it is called. Without a host nobody is."""

    hosts: Annotated[tuple[Host, ...], Field(strict=False), Unit("hosts")] = default(
        (), "hosts that may be called, `host` or `host:port`, in lower case, at addresses of the internet"
    )
    internal: Annotated[tuple[Host, ...], Field(strict=False), Unit("hosts")] = default(
        (), "hosts of your own network that may be called; those above are not where their address is private"
    )

    timeout_s: Seconds = default(10, "how long a host has to answer")
    tries: Annotated[int, Field(ge=1, le=100), Unit("times")] = default(
        8, "how often a call is made until one is answered"
    )
    first_pause_s: Seconds = default(10, "pause after the first try; twice as long after each further one")

    @property
    def receivers(self) -> tuple[str, ...]:
        """All that may be called."""
        return tuple(dict.fromkeys((*self.hosts, *self.internal)))

    def allows(self, url: str) -> bool:
        """Whether this address may be called: its host stands in a list just as it stands in the address, with the
        same port or with none, and no password beside it."""
        return _host_of(url) in self.receivers

    def is_internal(self, url: str) -> bool:
        """Whether its host may be on a network of our own."""
        return _host_of(url) in self.internal


class Retention(Section):
    """How long things are kept."""

    events_days: Days = default(90, "events; longer than any job can live")
    events_bytes: Annotated[int, Field(ge=1, le=2**50), Unit("bytes")] = default(
        1_073_741_824,
        "the stream of events: some 150,000 jobs; a full one takes no more. `headgate migrate` makes it as large",
    )
    inputs_days: Days = default(1, "inputs, after the job's end: so long it can be submitted again")
    inputs_bytes: Annotated[Count, Unit("bytes")] = default(
        536_870_912, "the bucket of inputs; `headgate migrate` makes one that is there as large"
    )
    results_days: Days = default(7, "results, after the job's end")
    workspaces_days: Days = default(1, "workspaces, after the job's end")
    stage_workspaces: Annotated[Count, Unit("workspaces")] = default(
        4, "of an attempt, the newest: a job can be run again from the stages that began with them; 1: the last alone"
    )
    stage_workspace_bytes: Annotated[Count, Unit("bytes")] = default(
        262_144, "the largest, packed, that is kept when the job itself needs it no more"
    )
    logs_days: Days = default(1, "build log lines")
    ended_s: Seconds = default(60, "how long a finished job is known without a look into the log")
    ended_jobs: Jobs = default(1000, "finished jobs that are known so, the last ones; what is longer ago sooner")

"""The policy: every number an operator may change, in one frozen object that is valid wherever it exists.

Owns what numbers must keep together and the look-ups that decisions make. Refuses decisions, files and the environment.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from headgate_contracts.vocabulary import Tier
from libs.policy.errors import Problem, key_path
from libs.policy.sections import (
    Concurrency,
    Confirmation,
    Forecast,
    Leases,
    Order,
    Pools,
    Projects,
    Providers,
    Queue,
    Retention,
    Runs,
    Sandbox,
    Section,
    Stream,
    Submissions,
    TierLimits,
    Tiers,
    TokenRules,
    Tracing,
    Webhooks,
    keys,
    toml_text,
)

DAY_S: Final = 86_400
CONFLICTS: Final = "conflicts"
BEATS_PER_LEASE: Final = 3  # two heartbeats may be lost before a lease ends
LIMITED_ELSEWHERE: Final = {
    "user": "set tiers.<tier>.jobs_per_user",
    "project": "set tiers.<tier>.jobs_per_project",
    "pool": "give its workers more slots",
    "llm": "set providers.limits or providers.global_limit",
}


class Policy(Section):
    """Everything the file can say. `Policy()` is the default."""

    tiers: Tiers = Tiers()
    submissions: Submissions = Submissions()
    queue: Queue = Queue()
    order: Order = Order()
    pools: Pools = Pools()
    runs: Runs = Runs()
    sandbox: Sandbox = Sandbox()
    leases: Leases = Leases()
    concurrency: Concurrency = Concurrency()
    projects: Projects = Projects()
    providers: Providers = Providers()
    confirmation: Confirmation = Confirmation()
    forecast: Forecast = Forecast()
    tokens: TokenRules = TokenRules()
    stream: Stream = Stream()
    tracing: Tracing = Tracing()
    webhooks: Webhooks = Webhooks()
    retention: Retention = Retention()

    def tier_limits(self, tier: Tier) -> TierLimits:
        return getattr(self.tiers, tier.value)

    @property
    def longest_life_s(self) -> float:
        """From a submission to the end of its job at the latest, but for the queue: see `queue.default_ttl_s`."""
        batches = max(-(-limits.hard_cap // limits.cycles_per_batch) for limits in map(self.tier_limits, Tier))
        running = (batches + self.runs.max_lost) * self.runs.max_timeout_s
        return self.queue.horizon_days * DAY_S + running + (batches - 1) * self.confirmation.timeout_s

    def changes(self) -> tuple[str, ...]:
        """Each number that is not the default, as it is said at start."""
        changed = (key for key in keys(self) if key.value != DEFAULTS[key.path])
        return tuple(
            f"{key.path} = {toml_text(key.value)} (default {toml_text(DEFAULTS[key.path])})" for key in changed
        )

    def doubts(self) -> tuple[str, ...]:
        """What is allowed and looks like a mistake, as it is said at start."""
        return tuple(_doubts(self))

    @model_validator(mode="after")
    def _keep_what_belongs_together(self) -> Self:
        conflicts = tuple(_conflicts(self))
        if conflicts:
            text = "\n".join(map(str, conflicts))
            raise PydanticCustomError(CONFLICTS, "{text}", {"text": text, CONFLICTS: conflicts})
        return self


def _conflicts(policy: Policy) -> Iterator[Problem]:
    """Numbers that are each possible and together are not. The text names every key that has a part in it."""
    yield from _conflicts_in_waiting(policy)
    yield from _conflicts_in_running(policy)
    yield from _conflicts_in_keeping(policy)
    yield from _conflicts_in_groups(policy)


def _conflicts_in_waiting(policy: Policy) -> Iterator[Problem]:
    queue, submissions, stream, times = policy.queue, policy.submissions, policy.stream, policy.confirmation
    if queue.user_share > queue.cap:
        wrong = f"{queue.user_share} is more than the whole queue"
        yield Problem("queue.user_share", wrong, f"write {queue.cap} or less, or raise queue.cap")
    # What is appended after its reservation has lapsed may exceed a limit.
    largest = submissions.max_phases * submissions.max_input_bytes
    if not largest < submissions.user_input_bytes <= policy.retention.inputs_bytes:
        wrong = f"{submissions.user_input_bytes} bytes do not hold the largest workflow, or are more than the bucket"
        instead = f"write more than {largest} and at most {policy.retention.inputs_bytes} (retention.inputs_bytes)"
        yield Problem("submissions.user_input_bytes", wrong, instead)
    if submissions.append_deadline_s >= submissions.reservation_s:
        wrong = f"{toml_text(submissions.append_deadline_s)} s outlasts the reservation"
        instead = f"write less than {toml_text(submissions.reservation_s)}, or raise submissions.reservation_s"
        yield Problem("submissions.append_deadline_s", wrong, instead)
    if _ms(stream.position_every_s) * stream.positions_per_second < 1000:
        wrong = f"{toml_text(stream.position_every_s)} s is more often than {stream.positions_per_second} a second"
        least_ms = -(-1000 // stream.positions_per_second)
        instead = f"write {toml_text(least_ms / 1000)} or more, or raise stream.positions_per_second"
        yield Problem("stream.position_every_s", wrong, instead)
    if any(later <= earlier for earlier, later in pairwise((*times.reminders_s, times.timeout_s))):
        wrong = f"{toml_text(times.reminders_s)} does not rise towards the end at {toml_text(times.timeout_s)} s"
        yield Problem("confirmation.reminders_s", wrong, "write rising times below confirmation.timeout_s")


def _conflicts_in_running(policy: Policy) -> Iterator[Problem]:
    leases, runs = policy.leases, policy.runs
    for tier in Tier:
        limits = policy.tier_limits(tier)
        if limits.hard_cap < limits.cycles_per_batch:
            wrong = f"{limits.hard_cap} is less than one batch of iterations"
            instead = f"write {limits.cycles_per_batch} or more, or lower tiers.{tier}.cycles_per_batch"
            yield Problem(f"tiers.{tier}.hard_cap", wrong, instead)
    for beat, lease in (("heartbeat_s", "job_s"), ("leader_heartbeat_s", "leader_s")):
        beat_s, lease_s = getattr(leases, beat), getattr(leases, lease)
        longest_ms = _ms(lease_s) // BEATS_PER_LEASE
        if _ms(beat_s) > longest_ms:
            wrong = f"{toml_text(beat_s)} s does not fit {BEATS_PER_LEASE} times into a lease of {toml_text(lease_s)} s"
            instead = f"write {toml_text(longest_ms / 1000)} or less, or raise leases.{lease}"
            yield Problem(f"leases.{beat}", wrong, instead)
    if runs.timeout_s > runs.max_timeout_s:
        wrong = f"{toml_text(runs.timeout_s)} s is more than a job may ask for"
        instead = f"write {toml_text(runs.max_timeout_s)} or less, or raise runs.max_timeout_s"
        yield Problem("runs.timeout_s", wrong, instead)


def _conflicts_in_keeping(policy: Policy) -> Iterator[Problem]:
    kept, life_days = policy.retention, policy.longest_life_s / DAY_S
    if kept.events_days <= life_days:
        wrong = f"{kept.events_days} days is not longer than the horizon and the longest run together"
        instead = f"write {int(life_days) + 1} or more, or lower queue.horizon_days or runs.max_timeout_s"
        yield Problem("retention.events_days", f"{wrong} ({life_days:.6g} days)", instead)
    # Whose an input is, and when its job ended, is known from the log alone.
    if kept.inputs_days > kept.events_days:
        wrong = f"{kept.inputs_days} days is longer than events are kept"
        instead = f"write {kept.events_days} or less, or raise retention.events_days"
        yield Problem("retention.inputs_days", wrong, instead)
    # What was taken back is known from the log alone.
    if policy.tokens.longest_days >= kept.events_days:
        wrong = f"{policy.tokens.longest_days} days is not shorter than the log knows which tokens were taken back"
        instead = f"write {kept.events_days - 1} or less, or raise retention.events_days"
        yield Problem("tokens.longest_days", wrong, instead)
    # The log itself refuses the second job of a key, for as long as it holds the first.
    if policy.submissions.idempotency_s > kept.events_days * DAY_S:
        wrong = f"{toml_text(policy.submissions.idempotency_s)} s is longer than events are kept"
        instead = f"write {kept.events_days * DAY_S} or less, or raise retention.events_days"
        yield Problem("submissions.idempotency_s", wrong, instead)


def _conflicts_in_groups(policy: Policy) -> Iterator[Problem]:
    for group in policy.concurrency.limits:
        kind = group.partition(":")[0]
        if kind in LIMITED_ELSEWHERE:
            wrong = f"a group of kind {kind} has no limit here"
            instead = f"leave it out and {LIMITED_ELSEWHERE[kind]}"
            yield Problem(key_path("concurrency", "limits", group), wrong, instead)
    for pool in dict.fromkeys(policy.pools.closing):
        if pool in policy.pools.open:
            wrong = f"{pool} cannot take new jobs and take none"
            yield Problem("pools.closing", wrong, "leave it out here, or in pools.names; default is always open")
    if "global" in policy.providers.limits:
        yield Problem("providers.limits.global", "global is no provider", "write it as providers.global_limit")


def _ms(seconds: float) -> int:
    """The step of every clock here, so that 0.1 s fits three times into 0.3 s."""
    return round(seconds * 1000)


def _doubts(policy: Policy) -> Iterator[str]:
    """Numbers that are allowed and still look like a mistake."""
    limits, total = policy.providers.limits, policy.providers.global_limit
    largest = max(limits, key=lambda name: limits[name])
    if total < limits[largest]:
        yield f"providers.global_limit {total} is below {largest}'s {limits[largest]}, which can never be reached"
    for lower, higher in pairwise(Tier):
        less, more = policy.tier_limits(lower), policy.tier_limits(higher)
        for name in ("jobs_per_user", "jobs_per_project", "jobs_per_day", "boost", "cycles_per_batch", "hard_cap"):
            if getattr(less, name) > getattr(more, name):
                yield f"tiers.{lower}.{name} {getattr(less, name)} is above {higher}'s {getattr(more, name)}"
        if less.highest_priority.class_number < more.highest_priority.class_number:
            yield f"tiers.{lower}.highest_priority {less.highest_priority} is above {higher}'s {more.highest_priority}"


DEFAULTS: Final = {key.path: key.value for key in keys(Policy())}

"""The policy's numbers are the product's, and a wrong file is refused with everything that is wrong with it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from headgate_contracts.vocabulary import Priority, Tier
from libs.policy import Policy, PolicyError, Queue, load_policy, loading, reference
from libs.policy.model import DEFAULTS
from libs.policy.reloading import as_toml
from libs.policy.sections import Order, keys, toml_text

# jobs per user, per project and per day, boost, iterations, hard cap, first duration, highest priority, tier above
TIERS = {
    Tier.BOOTSTRAPPER: (2, 2, 5, 0, 2, 6, 480, Priority.NORMAL, False),
    Tier.PARTNER: (3, 3, 50, 2, 3, 9, 600, Priority.HIGH, False),
    Tier.CTO_SCALE: (10, 5, 200, 5, 5, 15, 900, Priority.URGENT, False),
}

NUMBERS = {
    "submissions.per_minute": 60,
    "submissions.user_input_bytes": 67_108_864,
    "submissions.crowded": 0.8,
    "submissions.bytes_per_minute": 2_097_152,
    "submissions.changes_per_minute": 120,
    "submissions.max_input_bytes": 64 * 1024,
    "submissions.max_phases": 20,
    "submissions.idempotency_s": 24 * 3600,
    "submissions.reservation_s": 60,
    "submissions.append_deadline_s": 30,
    "queue.cap": 100,
    "queue.user_share": 50,
    "queue.busy_step_minutes": 15,
    "queue.default_ttl_s": 604_800,
    "queue.horizon_days": 30,
    "queue.release_spread_s": 3600,
    "order.max_passed": 10,
    "order.ageing_after_s": 3600,
    "order.ageing_ceiling": Priority.HIGH,
    "order.starved_after_s": 3600,
    "order.starved_every": 10,
    "pools.names": (),
    "pools.closing": (),
    "runs.timeout_s": 6 * 3600,
    "runs.max_timeout_s": 24 * 3600,
    "runs.max_lost": 3,
    "runs.log_lines": 100_000,
    "runs.log_bytes": 16 * 1024 * 1024,
    "runs.result_bytes": 256 * 1024 * 1024,
    "runs.checkpoint_bytes": 128 * 1024 * 1024,
    "runs.reused_pipelines": (),
    "sandbox.timeout_s": 900,
    "sandbox.memory_bytes": 1024**3,
    "sandbox.processes": 256,
    "sandbox.open_files": 1024,
    "sandbox.file_bytes": 512 * 1024**2,
    "sandbox.disk_bytes": 2 * 1024**3,
    "sandbox.cpu_s": 1800,
    "sandbox.output_bytes": 8 * 1024**2,
    "leases.job_s": 30,
    "leases.heartbeat_s": 5,
    "leases.cut_off_s": 600,
    "leases.leader_s": 5,
    "leases.leader_heartbeat_s": 1,
    "concurrency.default_lease_duration_secs": 300,
    "concurrency.default_limit": 1,
    "concurrency.leases_per_user": 100,
    "concurrency.limits": {"workflows": 5},
    "projects.shared": False,
    "providers.global_limit": 12,
    "providers.limits": {"ollama": 4, "gemini": 8, "openai": 10, "deepseek": 8},
    "providers.pause_s": 60,
    "providers.give_back_after_s": 60,
    "confirmation.reminders_s": (12 * 3600, 23 * 3600),
    "confirmation.timeout_s": 24 * 3600,
    "forecast.alpha": 0.3,
    "forecast.spread": 0.3,
    "forecast.medium_below": 10,
    "tokens.longest_days": 30,
    "stream.per_user": 10,
    "stream.per_replica": 5000,
    "stream.tickets_per_user": 30,
    "stream.slow_after_s": 10,
    "stream.comment_s": 15,
    "stream.retry_ms": 2000,
    "stream.positions_per_second": 4,
    "stream.position_every_s": 5,
    "tracing.url_template": "",
    "webhooks.hosts": (),
    "webhooks.internal": (),
    "webhooks.timeout_s": 10,
    "webhooks.tries": 8,
    "webhooks.first_pause_s": 10,
    "retention.events_days": 90,
    "retention.events_bytes": 1_073_741_824,
    "retention.inputs_days": 1,
    "retention.inputs_bytes": 536_870_912,
    "retention.results_days": 7,
    "retention.workspaces_days": 1,
    "retention.stage_workspaces": 4,
    "retention.stage_workspace_bytes": 262_144,
    "retention.logs_days": 1,
    "retention.ended_s": 60,
    "retention.ended_jobs": 1000,
}

CONFLICTS = [
    (
        "queue.user_share = 120",
        "queue.user_share: 120 is more than the whole queue; write 100 or less, or raise queue.cap",
    ),
    (
        "submissions.append_deadline_s = 60",
        (
            "submissions.append_deadline_s: 60 s outlasts the reservation; "
            "write less than 60, or raise submissions.reservation_s"
        ),
    ),
    (
        "stream.position_every_s = 0.2",
        (
            "stream.position_every_s: 0.2 s is more often than 4 a second; "
            "write 0.25 or more, or raise stream.positions_per_second"
        ),
    ),
    (
        "confirmation.reminders_s = [7200, 3600]",
        (
            "confirmation.reminders_s: [7200, 3600] does not rise towards the end at 86400 s; "
            "write rising times below confirmation.timeout_s"
        ),
    ),
    (
        "confirmation.timeout_s = 82800",
        (
            "confirmation.reminders_s: [43200, 82800] does not rise towards the end at 82800 s; "
            "write rising times below confirmation.timeout_s"
        ),
    ),
    (
        "tiers.partner.hard_cap = 2",
        (
            "tiers.partner.hard_cap: 2 is less than one batch of iterations; "
            "write 3 or more, or lower tiers.partner.cycles_per_batch"
        ),
    ),
    (
        "leases.job_s = 12",
        "leases.heartbeat_s: 5 s does not fit 3 times into a lease of 12 s; write 4 or less, or raise leases.job_s",
    ),
    (
        "leases.leader_heartbeat_s = 2",
        (
            "leases.leader_heartbeat_s: 2 s does not fit 3 times into a lease of 5 s; "
            "write 1.666 or less, or raise leases.leader_s"
        ),
    ),
    (
        "runs.timeout_s = 100_000",
        "runs.timeout_s: 100000 s is more than a job may ask for; write 86400 or less, or raise runs.max_timeout_s",
    ),
    (
        "retention.events_days = 38",
        (
            "retention.events_days: 38 days is not longer than the horizon and the longest run together (38 days); "
            "write 39 or more, or lower queue.horizon_days or runs.max_timeout_s"
        ),
    ),
    (
        "retention.inputs_days = 91",
        (
            "retention.inputs_days: 91 days is longer than events are kept; "
            "write 90 or less, or raise retention.events_days"
        ),
    ),
    (
        "submissions.user_input_bytes = 1_000_000",
        (
            "submissions.user_input_bytes: 1000000 bytes do not hold the largest workflow, or are more than the "
            "bucket; write more than 1310720 and at most 536870912 (retention.inputs_bytes)"
        ),
    ),
    (
        "tokens.longest_days = 90",
        (
            "tokens.longest_days: 90 days is not shorter than the log knows which tokens were taken back; "
            "write 89 or less, or raise retention.events_days"
        ),
    ),
    (
        "submissions.idempotency_s = 7_776_001",
        (
            "submissions.idempotency_s: 7776001 s is longer than events are kept; "
            "write 7776000 or less, or raise retention.events_days"
        ),
    ),
    (
        "concurrency.limits.'user:u1' = 3",
        (
            'concurrency.limits."user:u1": a group of kind user has no limit here; '
            "leave it out and set tiers.<tier>.jobs_per_user"
        ),
    ),
    (
        "providers.limits.global = 3",
        "providers.limits.global: global is no provider; write it as providers.global_limit",
    ),
]

FAULTS = [
    ("queue.cap = 'many'", "queue.cap: 'many' is not a whole number; write for example 100"),
    ("queue.cap = true", "queue.cap: True is not a whole number; write for example 100"),
    ("queue.cap = 0", "queue.cap: 0 is not 1 or more; write for example 100"),
    ("queue.cap = 2.5", "queue.cap: 2.5 is not a whole number; write for example 100"),
    ("leases.job_s = inf", "leases.job_s: inf is not a finite number; write for example 30"),
    ("projects.shared = 1", "projects.shared: 1 is not true or false; write for example false"),
    ("forecast.alpha = nan", "forecast.alpha: nan is not a finite number; write for example 0.3"),
    ("forecast.alpha = 1.1", "forecast.alpha: 1.1 is not less than 1; write for example 0.3"),
    ("forecast.alpha = 0", "forecast.alpha: 0 is not more than 0; write for example 0.3"),
    (f"leases.job_s = 1{'0' * 400}", "leases.job_s: 10"),
    (f"queue.cap = 1{'0' * 400}", "queue.cap: 10"),
    ("order.max_passed = -1", "order.max_passed: -1 is not 0 or more; write for example 10"),
    (
        "order.ageing_ceiling = 'top'",
        (
            "order.ageing_ceiling: 'top' is not one of 'urgent', 'high', 'normal', 'low' or 'background'; "
            'write for example "high"'
        ),
    ),
    ("concurrency.limits = 3", "concurrency.limits: 3 is not a table; write for example {workflows = 5}"),
    ("tiers.partner.upgrade_url = 1", "tiers.partner.upgrade_url: 1 is not a text in quotes; write for example"),
    ("queue = 5", "queue: 5 is not a table; write a table"),
    ("confirmation.reminders_s = 5", "confirmation.reminders_s: 5 is not a list; write for example [43200, 82800]"),
    ("confirmation.reminders_s = ['x']", "confirmation.reminders_s: 'x' is not a number; write for example"),
    ("concurrency.limits.db = 0", "concurrency.limits.db: 0 is not 1 or more; write 1 or more"),
    ("concurrency.limits.'a b' = 1", "concurrency.limits.\"a b\": 'a b' is not a group's name"),
    ("providers.limits.OpenAI = 1", "providers.limits.OpenAI: 'OpenAI' is not a provider's name of a-z, 0-9 and _"),
    (
        "tracing.url_template = 'https://tempo/{id}'",
        "tracing.url_template: 'https://tempo/{id}' is not nothing, or a web",
    ),
    ("tracing.url_template = 'javascript:{trace_id}'", "tracing.url_template: 'javascript:{trace_id}' is not nothing"),
    ("webhooks.hosts = ['https://x/']", "webhooks.hosts: 'https://x/' is not a host in lower case"),
    ("queue.capp = 5", "queue.capp: there is no such key; write queue.cap if you mean that, or leave it out"),
    ("queue.heartbeat_s = 5", "queue.heartbeat_s: there is no such key; write leases.heartbeat_s if you mean that"),
    ("quee.cap = 5", "quee: there is no such key; write queue if you mean that"),
    ("tiers.gold.boost = 5", "tiers.gold: there is no such key; write tiers."),
    ("tiers.partner.bost = 5", "tiers.partner.bost: there is no such key; write tiers.partner.boost if you mean that"),
]

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_policy(text: str) -> Path:
        path = tmp_path / "policy.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_policy


def problems_of(path: Path | None, **environ: str) -> list[str]:
    with pytest.raises(PolicyError) as refusal:
        load_policy(path, environ=environ)
    return str(refusal.value).splitlines()


def outcome_of(path: Path) -> Policy | PolicyError:
    try:
        return load_policy(path, environ={})
    except PolicyError as refusal:
        return refusal


def test_without_a_file_every_number_is_the_products() -> None:
    policy = load_policy(None, environ={})

    numbers = {key.path: key.value for key in keys(policy) if not key.path.startswith("tiers.")}

    assert policy == Policy()
    assert numbers == NUMBERS


@pytest.mark.parametrize("tier", Tier)
def test_each_tier_gives_what_the_product_promises(tier: Tier) -> None:
    limits = Policy().tier_limits(tier)

    assert TIERS[tier] == (
        limits.jobs_per_user,
        limits.jobs_per_project,
        limits.jobs_per_day,
        limits.boost,
        limits.cycles_per_batch,
        limits.hard_cap,
        limits.first_duration_s,
        limits.highest_priority,
        bool(limits.upgrade_url),
    )


def test_a_file_changes_what_it_names_and_nothing_else(write: Write) -> None:
    path = write("[tiers.partner]\njobs_per_day = 80\n[concurrency.limits]\nstaging-db = 3")

    policy = load_policy(path, environ={})

    changed = {key.path: key.value for key in keys(policy) if key.value != DEFAULTS[key.path]}
    assert changed == {"tiers.partner.jobs_per_day": 80, "concurrency.limits": {"workflows": 5, "staging-db": 3}}


def test_a_shorter_file_may_be_called_headgate_toml(tmp_path: Path) -> None:
    path = tmp_path / "headgate.toml"
    path.write_text("[concurrency]\ndefault_lease_duration_secs = 120\n[concurrency.limits]\nworkflows = 8")

    policy = load_policy(path, environ={})

    assert policy.concurrency.default_lease_duration_secs == 120
    assert policy.concurrency.limits["workflows"] == 8


def test_heartbeats_that_just_fit_are_accepted(write: Write) -> None:
    policy = load_policy(write("leases.job_s = 0.3\nleases.heartbeat_s = 0.1"), environ={})

    assert policy.leases.heartbeat_s == 0.1


@pytest.mark.parametrize(
    ("phases", "input_bytes", "cost_ms"),
    [(1, 0, 1000), (20, 20, 20_000), (1, 524_288, 15_000), (100, 0, 60_000), (1, 10**9, 60_000)],
)
def test_a_submission_costs_by_its_phases_or_by_its_bytes(phases: int, input_bytes: int, cost_ms: int) -> None:
    assert Policy().submissions.cost_ms(phases=phases, input_bytes=input_bytes) == cost_ms


def test_what_follows_from_a_number_follows_from_the_changed_one(write: Write) -> None:
    policy = load_policy(write("queue.cap = 7\ntiers.partner.cycles_per_batch = 4"), environ={})

    assert policy.queue.user_share == 3
    assert policy.tiers.partner.hard_cap == 12


def test_a_policy_written_out_and_read_again_is_the_same(write: Write) -> None:
    policy = load_policy(write("tiers.partner.hard_cap = 20\nwebhooks.hosts = ['hooks.example.com:8443']"), environ={})

    again = load_policy(write(as_toml(policy)), environ={})

    assert again == policy


def test_a_policy_cannot_be_changed() -> None:
    policy = Policy()

    with pytest.raises(ValidationError):
        policy.queue.cap = 5
    with pytest.raises(ValidationError):
        policy.queue = Queue()


def test_numbers_that_do_not_fit_together_make_no_policy_in_code_either() -> None:
    with pytest.raises(ValidationError, match=r"queue\.user_share: 60 is more than the whole queue"):
        Policy(queue=Queue(cap=50, user_share=60))


@pytest.mark.parametrize(("text", "line"), CONFLICTS)
def test_numbers_that_do_not_fit_together_are_refused(write: Write, text: str, line: str) -> None:
    assert problems_of(write(text)) == [line]


@pytest.mark.parametrize(("text", "start"), FAULTS)
def test_a_key_that_cannot_be_right_is_refused(write: Write, text: str, start: str) -> None:
    (line,) = problems_of(write(text))

    assert line.startswith(start)


def test_all_that_is_wrong_is_said_at_once(write: Write) -> None:
    path = write("queue.cap = 'many'\nqueue.user_share = 200\nleases.job_s = 12\nordr = 1")

    lines = problems_of(path, LLM_MAX_CONCURRENCY_OLLAMA="six")

    assert [line.partition(":")[0] for line in lines] == [
        "LLM_MAX_CONCURRENCY_OLLAMA",
        "queue.cap",
        "ordr",
        "leases.heartbeat_s",  # and not queue.user_share: what it is compared with is unknown
    ]


def test_of_many_problems_the_first_are_listed_and_looked_up(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = list[str]()

    def nearest(word: str, *_: object, **__: object) -> list[str]:
        searched.append(word)
        return ["queue.cap"]

    monkeypatch.setattr(loading, "get_close_matches", nearest)
    path = write("\n".join(f"queue.{'x' * 900}{number} = 1" for number in range(500)) + "\nqueue.cap = 'many'")

    lines = problems_of(path)

    assert len(lines) == 21
    assert lines[-1].startswith("policy: and 481 more; ")
    assert sum("write queue.cap if you mean that" in line for line in lines) == len(searched)
    assert 0 < len(searched) <= 20
    assert max(map(len, searched)) == 200


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "absent.toml"

    assert problems_of(path) == [f"{path}: cannot be read (No such file or directory); name a TOML file that exists"]


@pytest.mark.parametrize("content", [b"queue = ", b"# \xff"])
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(content)

    (line,) = problems_of(path)

    assert line.startswith(f"{path}: is not TOML (")


def test_the_environment_overrides_the_providers_of_the_file(write: Write) -> None:
    path = write("providers.limits = {openai = 3, mistral = 2}")

    policy = load_policy(
        path,
        environ={
            "LLM_MAX_CONCURRENCY_OPENAI": "6",
            "LLM_MAX_CONCURRENCY_MISTRAL": "5",
            "LLM_MAX_CONCURRENCY_GLOBAL": "20",
            "LLM_MAX_CONCURRENCY_GEMINI": "",
            "PATH": "/usr/bin",
        },
    )

    assert policy.providers.global_limit == 20
    assert policy.providers.limits == {"ollama": 4, "gemini": 8, "openai": 6, "deepseek": 8, "mistral": 5}


@pytest.mark.parametrize("value", ["0", "-1", "six", "4.0", " 4", "1" * 5000, "\u0664"])
def test_an_override_that_is_no_limit_is_refused(value: str) -> None:
    (line,) = problems_of(None, LLM_MAX_CONCURRENCY_GLOBAL=value)

    assert re.fullmatch(r"LLM_MAX_CONCURRENCY_GLOBAL: '.+' is not a whole number from 1 up; .+", line)


def test_an_override_of_an_unknown_provider_names_the_nearest() -> None:
    assert problems_of(None, LLM_MAX_CONCURRENCY_OLAMA="4") == [
        (
            "LLM_MAX_CONCURRENCY_OLAMA: there is no such provider; "
            "set LLM_MAX_CONCURRENCY_OLLAMA, or add the provider to providers.limits"
        )
    ]


def test_the_defaults_need_no_report() -> None:
    assert (Policy().changes(), Policy().doubts()) == ((), ())


def test_what_was_changed_and_what_is_doubtful_is_told_apart(write: Write) -> None:
    path = write("queue.cap = 20\ntiers.bootstrapper = {jobs_per_day = 60, highest_priority = 'urgent'}")

    policy = load_policy(path, environ={"LLM_MAX_CONCURRENCY_GLOBAL": "6"})

    assert policy.changes() == (
        "tiers.bootstrapper.jobs_per_day = 60 (default 5)",
        'tiers.bootstrapper.highest_priority = "urgent" (default "normal")',
        "queue.cap = 20 (default 100)",
        "queue.user_share = 10 (default 50)",
        "providers.global_limit = 6 (default 12)",
    )
    assert policy.doubts() == (
        "providers.global_limit 6 is below openai's 10, which can never be reached",
        "tiers.bootstrapper.jobs_per_day 60 is above partner's 50",
        "tiers.bootstrapper.highest_priority urgent is above partner's high",
    )


SCALARS = st.one_of(
    st.integers(),
    st.integers(1, 100),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0.01, 1),
    st.booleans(),
    st.text("az09_.-:/ ", max_size=8),
)
VALUES = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=3).map(tuple), st.dictionaries(st.text("az:", min_size=1), SCALARS, max_size=2)
)
PATHS = st.sampled_from(sorted(DEFAULTS)).flatmap(lambda path: st.sampled_from([path, path, path, f"{path}x"]))


@settings(max_examples=100)
@given(entries=st.dictionaries(PATHS, VALUES, max_size=4))
def test_any_file_gives_a_policy_that_reads_back_or_lines_that_say_what_to_write(
    entries: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text("\n".join(f"{key} = {toml_text(value)}" for key, value in entries.items()))

    match outcome_of(path):
        case PolicyError() as refusal:
            assert all(re.fullmatch(r"[a-z]+\.\S.*: .+; write .+", line) for line in str(refusal).splitlines())
        case policy:
            path.write_text(as_toml(policy))
            assert load_policy(path, environ={}) == policy


def test_the_reference_is_up_to_date_and_its_example_is_a_policy(write: Write) -> None:
    text = reference.reference()
    example = re.search(r"```toml\n(.+?)```", text, re.DOTALL)

    assert reference.PATH.read_text(encoding="utf-8") == text
    assert example
    assert load_policy(write(example[1]), environ={}).queue.cap == 200
    assert {f"`{key.path.rpartition('.')[2]}`" for key in keys(Policy())} <= set(re.findall(r"`\w+`", text))


def test_a_reference_that_is_out_of_date_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "PATH", tmp_path / "policy.md")

    before = reference.main(["--check"])
    written = reference.main([])
    after = reference.main(["--check"])

    assert before == "docs/policy.md is out of date: run python -m libs.policy.reference"
    assert (written, after) == (None, None)


def test_every_number_says_what_it_is() -> None:
    unexplained = [key.path for key in keys(Policy()) if not (key.unit and key.meaning)]

    assert unexplained == []


def test_toml_text_is_toml() -> None:
    value = {"a b": (1, 0.5, 600.0, 'x"y'), "c": {"d": True}}

    assert tomllib.loads(f"value = {toml_text(value)}") == {"value": {"a b": [1, 0.5, 600, 'x"y'], "c": {"d": True}}}


@pytest.mark.parametrize(
    ("ceiling", "before", "after"),
    [
        ("high", Priority.BACKGROUND, Priority.LOW),
        ("high", Priority.NORMAL, Priority.HIGH),
        ("high", Priority.HIGH, None),
        ("urgent", Priority.HIGH, Priority.URGENT),
        ("urgent", Priority.URGENT, None),
        ("low", Priority.NORMAL, None),
    ],
)
def test_who_waits_long_rises_one_class_up_to_the_ceiling(
    ceiling: str, before: Priority, after: Priority | None
) -> None:
    assert Order(ageing_ceiling=Priority(ceiling)).risen(before) is after

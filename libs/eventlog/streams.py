"""The streams and buckets of Headgate: their names, and every setting that something rests on.

    JOBS         the log                                   every fact, kept for months, never deleted singly
    LOGS         headgate.logs.v1.<job>.<stage>            build output, no expectation, the oldest goes first
    INPUTS       a bucket of keys                          what jobs are made from: for workers and retries
    TITLES       a bucket of keys                          what jobs are called: content too, and shown in lists
    PIPELINES    a bucket of keys                          what workers say of their pipelines: it lasts
    PROGRESS     a bucket of keys                          how far a running job is: the last word alone
    SNAPSHOTS    a bucket of objects                       folds of the log: they grow past what one message may hold
    WORKSPACES   a bucket of objects                       a stage's work
    RESULTS      a bucket of objects                       what a job made

Settings are in the server's own words, as its API takes them and gives them back. What must not be is named too
(`None`): somebody may have switched it on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headgate_contracts.envelope import MAX_EVENT_BYTES
from headgate_contracts.subjects import LOG_SUBJECTS
from libs.eventlog.errors import LogRefused
from libs.policy import Retention

JOBS: Final = "JOBS"
LOGS: Final = "LOGS"
INPUTS: Final = "INPUTS"
TITLES: Final = "TITLES"
PIPELINES: Final = "PIPELINES"
PROGRESS: Final = "PROGRESS"
SNAPSHOTS: Final = "SNAPSHOTS"
WORKSPACES: Final = "WORKSPACES"
RESULTS: Final = "RESULTS"
LINES_SUBJECTS: Final = "headgate.logs.v1.>"

DUPLICATE_WINDOW_S: Final = 120  # how long the server knows an id; acts rest on it, other events on their expectation
HEADERS_BYTES: Final = 1024  # of an event: id, expectation, filter, traceparent, seat in a batch: at most 600
MIB: Final = 1024 * 1024
# Of a stream whose consumers come and go with what is asked of it, and of one without consumers.
MANY_CONSUMERS: Final = (
    8192  # some 30 KB of the server's memory each; a stream of a user needs up to two while it opens
)
FEW_CONSUMERS: Final = 64
SECOND_NS: Final = 1_000_000_000  # durations are in nanoseconds there
_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What differs from one installation to another. The server sets aside what `max_bytes` names."""

    replicas: int = 1  # 3 on three servers: the loss of one loses nothing
    retention: Retention = field(default_factory=Retention)
    pools: tuple[str, ...] = ("default",)
    jobs_max_bytes: int | None = None  # null: what policy says. An alert comes at 70 %
    logs_max_bytes: int = 256 * MIB
    inputs_max_bytes: int | None = None  # null: what policy says
    titles_max_bytes: int = 128 * MIB
    pipelines_max_bytes: int = 16 * MIB
    progress_max_bytes: int = 16 * MIB  # some 40,000 jobs
    snapshots_max_bytes: int = 256 * MIB
    workspaces_max_bytes: int = 1024 * MIB
    results_max_bytes: int = 1024 * MIB

    def __post_init__(self) -> None:
        if self.replicas not in (1, 3, 5):
            raise LogRefused(reason=f"replicas is {self.replicas}: use 1, 3 or 5, an even number survives no more")


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream's name and its settings. `None`: must not be set."""

    name: str
    settings: Mapping[str, Any]


def streams(settings: LogSettings) -> tuple[Stream, ...]:
    """All that `migrate` makes and the guard compares."""
    kept = settings.retention
    return (
        _jobs(settings),
        _logs(settings),
        # Inputs and workspaces go some time after their job's end, which nobody knows beforehand: the age of the bucket
        # itself is only the last resort.
        _bucket(INPUTS, settings, max_bytes=settings.inputs_max_bytes or kept.inputs_bytes, days=kept.events_days),
        _titles(settings),
        _bucket(PIPELINES, settings, max_bytes=settings.pipelines_max_bytes, days=0),  # for ever
        _progress(settings),
        _objects(SNAPSHOTS, settings, max_bytes=settings.snapshots_max_bytes, days=kept.events_days),
        _objects(WORKSPACES, settings, max_bytes=settings.workspaces_max_bytes, days=kept.events_days),
        _objects(RESULTS, settings, max_bytes=settings.results_max_bytes, days=kept.results_days),
    )


def _jobs(settings: LogSettings) -> Stream:
    kept = settings.retention
    return Stream(
        JOBS,
        _common(settings, max_bytes=settings.jobs_max_bytes or kept.events_bytes, days=kept.events_days)
        | {
            "subjects": list(LOG_SUBJECTS),
            "discard": "new",  # a full log refuses; it never forgets what it has accepted
            "deny_delete": True,
            "deny_purge": True,
            "allow_rollup_hdrs": False,  # a rollup would delete a job's chain
            "allow_msg_ttl": False,  # an expired last event would let "nothing yet" be true again
            "allow_msg_schedules": False,  # they would switch rollups on
            "allow_msg_counter": False,
            "allow_direct": True,
            "allow_atomic": True,
            "max_consumers": MANY_CONSUMERS,
            "max_msg_size": MAX_EVENT_BYTES + HEADERS_BYTES,
            "duplicate_window": DUPLICATE_WINDOW_S * SECOND_NS,
        },
    )


def _logs(settings: LogSettings) -> Stream:
    return Stream(
        LOGS,
        _common(settings, max_bytes=settings.logs_max_bytes, days=settings.retention.logs_days)
        | {
            "subjects": [LINES_SUBJECTS],
            "discard": "old",
            "allow_direct": True,
            "deny_purge": False,
            "max_consumers": MANY_CONSUMERS,
        },
    )


def _bucket(name: str, settings: LogSettings, *, max_bytes: int, days: int) -> Stream:
    """What NATS calls a key-value store: a stream that keeps the last message of each subject."""
    return Stream(
        f"KV_{name}",
        _common(settings, max_bytes=max_bytes, days=days)
        | {
            "subjects": [f"$KV.{name}.>"],
            "discard": "new",
            "max_msgs_per_subject": 1,
            "allow_rollup_hdrs": True,  # erasing a key
            "deny_delete": True,
            "allow_direct": False,  # a replica may not have yet what was put a moment ago
        },
    )


def _titles(settings: LogSettings) -> Stream:
    """As long as the events of their jobs. A list asks for all its titles in one question, which only a direct get is:
    a copy may be a moment behind. A title decorates: where there is no room, the oldest goes and no job is refused."""
    kept = _bucket(TITLES, settings, max_bytes=settings.titles_max_bytes, days=settings.retention.events_days)
    return Stream(kept.name, {**kept.settings, "allow_direct": True, "discard": "old"})


def _progress(settings: LogSettings) -> Stream:
    """What is told twice a second and is wrong a moment later: the last word of a job is enough. In a file, as a server
    that is alone forgets a stream in memory, its settings too, when it starts again."""
    kept = _bucket(PROGRESS, settings, max_bytes=settings.progress_max_bytes, days=settings.retention.logs_days)
    return Stream(kept.name, {**kept.settings, "allow_direct": True, "discard": "old"})


def _objects(name: str, settings: LogSettings, *, max_bytes: int, days: int) -> Stream:
    """What NATS calls an object store: chunks, and one message about each object."""
    return Stream(
        f"OBJ_{name}",
        _common(settings, max_bytes=max_bytes, days=days)
        | {
            "subjects": [f"$O.{name}.C.>", f"$O.{name}.M.>"],
            "discard": "new",
            "allow_rollup_hdrs": True,  # the newest word about an object replaces the one before
            "allow_direct": False,
        },
    )


def _common(settings: LogSettings, *, max_bytes: int, days: int) -> dict[str, Any]:
    return {
        "storage": "file",
        "retention": "limits",
        "num_replicas": settings.replicas,
        "max_bytes": max_bytes,
        "max_age": days * _DAY_S * SECOND_NS,
        "max_msgs": -1,
        "max_consumers": FEW_CONSUMERS,
        "max_msgs_per_subject": -1,
        "no_ack": False,
        "sealed": False,
        "mirror": None,
        "sources": None,
        "republish": None,
        "subject_transform": None,
        "persist_mode": None,  # "async" would acknowledge before anything is on disk
    }

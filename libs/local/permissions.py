"""Who may say what on NATS and in Valkey: one user for each kind of process, with what it needs and nothing else.

Owns the rights. What may be written to the log is not listed here: it follows from the contracts' table "who writes
what", by the event's token. Refuses to make passwords: they are arguments.

    admission   its events, operators' acts, inputs, titles; reads the log, log lines, results, and what jobs were made
                of; erases a user's lines, inputs, titles, workspaces and results; removes pipelines; asks for slots
                outside jobs
    scheduler   its events, its chain, snapshots, positions, grants; follows the log, answers commands, hears who is
                watched
    worker      its events, log lines, workspaces, results, the pipelines that it has; pulls what is dispatched, reads
                inputs, sends commands, hears who is to be cancelled
    notifier    writes nothing; follows the log, hears lines, positions and progress, asks for positions, says who is
                watched
    operator    makes and changes streams, buckets and the consumers of pools and teams: `headgate migrate`
    team-…      what another team gets: pulls from its own consumers, in an account of its own
    consumer    `headgate up` alone: reads the log, with consumers of its own. It belongs to the machine's owner, whose
                operator's token stands in the same file: what may make consumers may have them deliver to any subject

Answers come to each user on inboxes of its own, where no other may listen. A right is about a subject and not about
what a message holds: which job an event may be about, and what may follow what, is for the log's expectations and for
`advance`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headgate_contracts import TABLE, EventName, OpsSubject, SchedSubject, Writer, consumer_filter
from headgate_contracts.commands import CMD_PREFIX, LIVE_PREFIX, LOGS_PREFIX, command_subject, watching_subject
from headgate_contracts.vocabulary import ActName
from libs.capacity.lua_files import access_rules
from libs.eventlog import LogSettings
from libs.eventlog.connection import SHARED_INBOXES
from libs.eventlog.pools import pool_consumer
from libs.eventlog.servers import SERVERS_SUBJECT
from libs.eventlog.streams import (
    INPUTS,
    JOBS,
    LOGS,
    PIPELINES,
    PROGRESS,
    RESULTS,
    SNAPSHOTS,
    TITLES,
    WORKSPACES,
    streams,
)
from libs.local.nats_config import NatsUser, team_asks
from libs.local.servers import ValkeyUser

Subjects = tuple[str, ...]

NATS_USERS: Final = ("admission", "scheduler", "worker", "notifier", "operator")
READER: Final = "consumer"  # of `headgate up`
UP_USERS: Final = (*NATS_USERS, READER)
VALKEY_USERS: Final = ("headgate", "admission", "scheduler")
API: Final = "$JS.API"
ACKS: Final = "$JS.ACK"
WEBHOOKS: Final = "webhooks"  # the consumer by which notifiers call `notify_url`s
EVERY_STREAM: Final = tuple(stream.name for stream in streams(LogSettings()))


@dataclass(frozen=True, slots=True)
class Rights:
    """What a user may send and hear beside its own inboxes. What is refused is refused though a wildcard allows it."""

    publish: Subjects = ()
    subscribe: Subjects = ()
    refused: Subjects = ()
    answers: bool = False

    def user(self, name: str, password: str) -> NatsUser:
        return NatsUser(
            name,
            password,
            publish=self.publish,
            subscribe=(f"{SHARED_INBOXES}_{name}.>", *self.subscribe),
            refused=self.refused,
            allow_responses=self.answers,
        )


def nats_users(passwords: Mapping[str, str], *, shard: str, pools: Sequence[str]) -> dict[str, NatsUser]:
    """The users of NATS that have a password here. `pools` are those that have workers."""
    rights = {
        "admission": _admission(shard, pools),
        "scheduler": _scheduler(shard, pools),
        "worker": _worker(shard, pools),
        "notifier": _notifier(shard, pools),
        "operator": _operator(pools),
        READER: _consumer(pools),
    }
    return {name: each.user(name, passwords[name]) for name, each in rights.items() if name in passwords}


def team_user(name: str, password: str, consumers: Sequence[str]) -> NatsUser:
    """A team's. In an account of its own nobody else's inbox can be heard."""
    rights = Rights(publish=team_asks(consumers), subscribe=(f"{SHARED_INBOXES}.>",))
    return rights.user(name, password)


def valkey_users(passwords: Mapping[str, str], *, shard: str) -> dict[str, ValkeyUser]:
    """Every user of Valkey. The first has full rights: it is this machine's owner. The others are services."""
    owner, *services = VALKEY_USERS
    rules = access_rules(shard)
    users = {name: ValkeyUser(name, passwords[name], rules) for name in services}
    return {owner: ValkeyUser(owner, passwords[owner]), **users}


def writes(writer: Writer) -> Subjects:
    """The subjects of the events that this service writes, by the table."""
    events = {row.event for row in TABLE if row.writer is writer}
    return tuple(consumer_filter(event=event) for event in EventName if event in events)


def _admission(shard: str, pools: Sequence[str]) -> Rights:
    acts = (str(OpsSubject(act)) for act in ActName)
    return Rights(
        publish=(
            *writes(Writer.ADMISSION),
            *acts,
            *_opens_log(),
            *_scans(JOBS),  # lists of what has left the view, and the audit
            *_scans(LOGS),
            f"{API}.STREAM.PURGE.{LOGS}",  # an operator erases a user's content
            f"$KV.{INPUTS}.*",
            f"$KV.{TITLES}.*",
            *_reads_titles(),
            *_writes_pipelines(),
            f"$KV.{PROGRESS}.*",
            *_reads_progress(),
            f"{API}.STREAM.MSG.GET.KV_{INPUTS}",  # a job that is submitted again gets a copy
            *_deletes_objects(RESULTS),
            *_deletes_objects(WORKSPACES),
            *(command_subject(shard, command) for command in ("acquire", "give_up")),
        ),
        subscribe=(f"{CMD_PREFIX}.{shard}.granted.*",),
        refused=(*_disturbs_workers(pools), *_disturbs_webhooks()),
    )


def _scheduler(shard: str, pools: Sequence[str]) -> Rights:
    return Rights(
        publish=(
            *writes(Writer.SCHEDULER),
            str(SchedSubject(shard)),
            *_opens_log(),
            *_scans(JOBS),
            *_reads_objects(SNAPSHOTS),
            *_writes_objects(SNAPSHOTS),
            *_deletes_objects(WORKSPACES),
            f"{API}.STREAM.PURGE.KV_{INPUTS}",  # after their jobs' end
            f"{LIVE_PREFIX}.{shard}.position.*.*",
            f"{CMD_PREFIX}.{shard}.granted.*",
        ),
        subscribe=(
            *(command_subject(shard, each) for each in ("beat", "acquire", "give_up", "position", "shut", "redeem")),
            watching_subject(shard),
        ),
        refused=(*_disturbs_workers(pools), *_disturbs_webhooks()),
        answers=True,
    )


def _worker(shard: str, pools: Sequence[str]) -> Rights:
    return Rights(
        publish=(
            *writes(Writer.WORKER),
            *_opens_log(),
            *_pulls_dispatches(pools),
            f"{API}.STREAM.MSG.GET.KV_{INPUTS}",
            *_reads_objects(WORKSPACES),
            *_writes_objects(WORKSPACES),
            *_writes_objects(RESULTS),
            *_writes_pipelines(),
            f"{LOGS_PREFIX}.*",
            f"$KV.{PROGRESS}.*",
            *(command_subject(shard, command) for command in ("beat", "acquire", "give_up", "shut")),
        ),
        subscribe=(f"{CMD_PREFIX}.{shard}.granted.*", consumer_filter(event=EventName.CANCEL_REQUESTED)),
    )


def _notifier(shard: str, pools: Sequence[str]) -> Rights:
    return Rights(
        publish=(
            *_opens_log(),
            *_scans(JOBS),
            *_scans(LOGS),
            f"{API}.STREAM.MSG.GET.{LOGS}",  # how far the lines of a job go
            *_reads_titles(),
            *_reads_progress(),
            *_calls_webhooks(),
            *(command_subject(shard, command) for command in ("position", "redeem")),
            watching_subject(shard),
        ),
        subscribe=(f"{LIVE_PREFIX}.{shard}.position.*.*", f"$KV.{PROGRESS}.*"),
        refused=(*_disturbs_workers(pools), *_remakes_webhooks()),
    )


def _operator(pools: Sequence[str]) -> Rights:
    """Makes and ends what lasts, and reads the log: `headgate log`, `headgate simulate`."""
    return Rights(
        publish=(
            *_opens_log(),
            *_changes_streams(),
            *_scans(JOBS),
            f"{API}.CONSUMER.INFO.{JOBS}.*",
            f"{API}.CONSUMER.LIST.{JOBS}",
        ),
        refused=tuple(
            subject
            for consumer in (*_shared_consumers(pools), f"{JOBS}.{WEBHOOKS}")
            for subject in (
                f"{API}.CONSUMER.MSG.NEXT.{consumer}",
                f"{API}.CONSUMER.DELETE.{consumer}",
                f"{ACKS}.{consumer}.>",
            )
        ),
    )


def _consumer(pools: Sequence[str]) -> Rights:
    """As the clients of other teams ask by themselves, without a word about inboxes."""
    return Rights(
        publish=(
            f"{API}.INFO",  # what most clients ask first
            f"{API}.STREAM.NAMES",
            f"{API}.STREAM.INFO.{JOBS}",
            f"{API}.STREAM.MSG.GET.{JOBS}",
            f"{API}.DIRECT.GET.{JOBS}",
            f"{API}.DIRECT.GET.{JOBS}.>",
            f"{API}.CONSUMER.CREATE.{JOBS}.*.>",
            f"{API}.CONSUMER.DURABLE.CREATE.{JOBS}.*",
            f"{API}.CONSUMER.INFO.{JOBS}.*",
            *_scans(JOBS),
            f"{ACKS}.{JOBS}.>",
        ),
        subscribe=(f"{SHARED_INBOXES}.>",),
        refused=(*_disturbs_workers(pools), *_disturbs_webhooks()),
    )


def _opens_log() -> Subjects:
    """What every service asks when it starts, and when it reads a job."""
    return (*_sees_streams(), SERVERS_SUBJECT, f"{API}.STREAM.MSG.GET.{JOBS}")


def _scans(stream: str) -> Subjects:
    """By consumers of one's own. Their name must stand in the subject: without one there, any may stand in the body."""
    return tuple(f"{API}.CONSUMER.{verb}.{stream}.*" for verb in ("CREATE", "MSG.NEXT", "DELETE"))


def _pulls_dispatches(pools: Sequence[str]) -> Subjects:
    """From the one consumer that all workers of a pool share, and that none of them may change."""
    return tuple(
        subject
        for consumer in _shared_consumers(pools)
        for subject in (
            f"{API}.CONSUMER.INFO.{consumer}",
            f"{API}.CONSUMER.MSG.NEXT.{consumer}",
            f"{ACKS}.{consumer}.>",
        )
    )


def _disturbs_workers(pools: Sequence[str]) -> Subjects:
    """What wildcards for one's own consumers would allow with the workers': to take what is dispatched, to end it."""
    return tuple(
        subject
        for consumer in _shared_consumers(pools)
        for subject in (
            f"{API}.CONSUMER.CREATE.{consumer}",
            f"{API}.CONSUMER.CREATE.{consumer}.>",
            f"{API}.CONSUMER.DURABLE.CREATE.{consumer}",
            f"{API}.CONSUMER.DELETE.{consumer}",
            f"{API}.CONSUMER.MSG.NEXT.{consumer}",
            f"{ACKS}.{consumer}.>",
        )
    )


def _calls_webhooks() -> Subjects:
    """By the one consumer that all notifiers share."""
    place = f"{JOBS}.{WEBHOOKS}"
    return (f"{API}.CONSUMER.CREATE.{place}", f"{API}.CONSUMER.MSG.NEXT.{place}", f"{ACKS}.{place}.>")


def _disturbs_webhooks() -> Subjects:
    """What is to be told once would be told to somebody else."""
    return (*_calls_webhooks(), *_remakes_webhooks())


def _remakes_webhooks() -> Subjects:
    """Not even those who call need to end the consumer, or to make it another."""
    place = f"{JOBS}.{WEBHOOKS}"
    verbs = ("DURABLE.CREATE", "DELETE", "INFO")
    return (*(f"{API}.CONSUMER.{verb}.{place}" for verb in verbs), f"{API}.CONSUMER.CREATE.{place}.>")


def _shared_consumers(pools: Sequence[str]) -> Subjects:
    return tuple(f"{JOBS}.{pool_consumer(pool)}" for pool in pools)


def _sees_streams() -> Subjects:
    return tuple(f"{API}.STREAM.INFO.{name}" for name in EVERY_STREAM)


def _changes_streams() -> Subjects:
    return tuple(f"{API}.STREAM.{verb}.{name}" for verb in ("CREATE", "UPDATE") for name in EVERY_STREAM)


def _reads_titles() -> Subjects:
    """One from the leader, a list's in one question."""
    return (f"{API}.STREAM.MSG.GET.KV_{TITLES}", f"{API}.DIRECT.GET.KV_{TITLES}")


def _writes_pipelines() -> Subjects:
    """Each under its pool and name, after a look at what is there."""
    return (f"$KV.{PIPELINES}.*.*", f"{API}.STREAM.MSG.GET.KV_{PIPELINES}")


def _reads_progress() -> Subjects:
    return (f"{API}.STREAM.MSG.GET.KV_{PROGRESS}", f"{API}.DIRECT.GET.KV_{PROGRESS}")


def _reads_objects(bucket: str) -> Subjects:
    return (f"{API}.STREAM.MSG.GET.OBJ_{bucket}",)


def _writes_objects(bucket: str) -> Subjects:
    """Chunks, the word about them, and the removal of what they replace."""
    looks_first = _reads_objects(bucket)
    return (*looks_first, f"$O.{bucket}.C.*", f"$O.{bucket}.M.*", f"{API}.STREAM.PURGE.OBJ_{bucket}")


def _deletes_objects(bucket: str) -> Subjects:
    """What is there is found by its word; then chunks and word are removed."""
    return (*_reads_objects(bucket), f"{API}.STREAM.PURGE.OBJ_{bucket}")

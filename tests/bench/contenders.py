"""The queues that are measured beside each other: how each is started, what it syncs, and what a kill costs it.

All have sixteen slots on the same machine and run a job that does nothing. Each stands here as it comes from its
makers, and, where it can, with every write synced before it is acknowledged, as Headgate's are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

Server = Literal["valkey", "nats", "postgres", "headgate"]


@dataclass(frozen=True, slots=True)
class Contender:
    """One, in one way of running it. `workers` processes are started with the words of `worker`."""

    name: str
    environment: str
    server: Server
    worker: tuple[str, ...]
    workers: int
    synced: bool
    syncs: str
    killed: str
    script: str = ""  # of its client, where it is not named after the environment
    policy: str = ""  # of Headgate, beside what all have

    @property
    def client(self) -> tuple[str, ...]:
        if self.environment == "bullmq":
            return ("node", "of_bullmq.mjs", "client")
        return ("python", self.script or f"of_{self.environment}.py")


NOTHING: Final = "nothing"
EACH_COMMAND: Final = "each command that writes (`appendfsync always`)"
LOST: Final = "lost"
HEADGATE: Final = Contender(
    name="Headgate",
    environment="headgate",
    server="headgate",
    worker=(),
    workers=2,
    synced=True,
    syncs="each of 8 events (`sync_interval: always`)",
    killed="runs again, from its last stage",
)
PROCRASTINATE: Final = Contender(
    name="Procrastinate",
    environment="procrastinate",
    server="postgres",
    worker=("procrastinate", "--app=of_procrastinate.app", "worker", "--concurrency=8"),
    workers=2,
    synced=True,
    syncs="each commit (`synchronous_commit`)",
    killed="stays `doing`, until somebody retries it",
)
_ARQ: Final = Contender("arq", "arq", "valkey", ("arq", "of_arq.Worker"), 2, False, NOTHING, "runs again")
_CELERY: Final = Contender(
    name="Celery",
    environment="celery",
    server="valkey",
    worker=("celery", "--app=of_celery", "worker", "--concurrency=16", "--loglevel=warning"),
    workers=1,
    synced=False,
    syncs=NOTHING,
    killed=LOST,
)
_RQ: Final = Contender(
    name="RQ, a process a job",
    environment="rq",
    server="valkey",
    worker=("rq", "worker-pool", "--num-workers=16", "--quiet", "--url={url}"),
    workers=1,
    synced=False,
    syncs=NOTHING,
    killed="found later, and failed",
)
_TASKIQ: Final = Contender(
    name="taskiq, Redis",
    environment="taskiq",
    server="valkey",
    worker=("taskiq", "worker", "of_taskiq:broker", "--workers=2", "--max-async-tasks=8", "--log-level=WARNING"),
    workers=1,
    synced=False,
    syncs=NOTHING,
    killed=LOST,
)
_BULLMQ: Final = Contender(
    name="BullMQ",
    environment="bullmq",
    server="valkey",
    worker=("node", "of_bullmq.mjs", "worker"),
    workers=2,
    synced=False,
    syncs=NOTHING,
    killed="runs again, as stalled",
)


def _synced(contender: Contender, *, syncs: str = EACH_COMMAND, killed: str | None = None) -> Contender:
    name = f"{contender.name}, synced"
    return replace(contender, name=name, synced=True, syncs=syncs, killed=killed or contender.killed)


FLOOR: Final = Contender(
    name="floor: a bare JetStream message",
    environment="taskiq",
    server="nats",
    worker=("python", "of_jetstream.py", "worker"),
    workers=1,
    synced=True,
    syncs="each message (`sync_interval: always`)",
    killed="",
    script="of_jetstream.py",
)
_TASKIQ_NATS: Final = replace(_TASKIQ, name="taskiq, NATS", server="nats", syncs="nothing, and stores nothing")
_TRUSTED: Final = replace(
    HEADGATE, name="Headgate, jobs share processes", policy='[runs]\nreused_pipelines = ["rehearsal"]\n'
)
CONTENDERS: Final = (
    HEADGATE,
    _TRUSTED,
    PROCRASTINATE,
    _synced(_BULLMQ),
    _synced(_CELERY, killed="runs again, after an hour"),
    _synced(_TASKIQ, killed="runs again, after ten minutes"),
    _synced(_TASKIQ_NATS, syncs="each message (`sync_interval: always`)", killed="runs again, after 30 s"),
    _synced(_ARQ),
    _synced(_RQ),
    _BULLMQ,
    _CELERY,
    _TASKIQ,
    _TASKIQ_NATS,
    _ARQ,
    _RQ,
)

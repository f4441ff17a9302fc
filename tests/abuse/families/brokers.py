"""Broker and store: each service and each other team, with its own credentials, has nothing of another's."""

from __future__ import annotations

from typing import Final

from headgate_contracts import EventName, JobSubject
from tests.abuse.attempts import Attempt, Commands, Hears, Says

API: Final = "$JS.API"


def _event(name: EventName) -> str:
    return str(JobSubject("j", "u", "p", name, "default" if name is EventName.DISPATCHED else None))


def _says(user: str, *subjects: str) -> dict[str, Attempt]:
    return {f"{user} says {subject}": Says(user, subject) for subject in subjects}


def _hears(user: str, *subjects: str) -> dict[str, Attempt]:
    return {f"{user} hears {subject}": Hears(user, subject) for subject in subjects}


def _events(user: str, *names: EventName) -> dict[str, Attempt]:
    return {f"{user} writes {name}": Says(user, _event(name)) for name in names}


def _commands(user: str, *commands: str) -> dict[str, Attempt]:
    return {f"{user}: {command}": Commands(user, tuple(command.split(" "))) for command in commands}


E: Final = EventName
TABLE: Final[dict[str, dict[str, Attempt]]] = {
    "events have one writer": {
        **_events("worker", E.QUEUED, E.DISPATCHED, E.CONFIRMED, E.REPRIORITIZED, E.MOVED, E.CANCEL_REQUESTED),
        **_events("notifier", E.QUEUED, E.READY, E.CANCELLED, E.DISPATCHED, E.STARTED),
        **_events("scheduler", E.READY, E.STARTED, E.CONFIRMED),
        **_events("admission", E.DISPATCHED, E.READY, E.STARTED),
        **_events("consumer", E.QUEUED, E.READY, E.DISPATCHED),
    },
    "acts are an operator's, by admission": {
        f"{user} {act}": Says(user, f"headgate.ops.v1.{act}")
        for user, acts in {
            "worker": ("paused", "resumed", "limit_set", "token_revoked", "lease_released"),
            "scheduler": ("paused", "limit_set", "token_revoked"),
            "notifier": ("paused", "resumed", "token_revoked"),
            "consumer": ("paused", "limit_set", "token_revoked"),
        }.items()
        for act in acts
    },
    "the chain is the scheduler's": {
        **_says("worker", "headgate.sched.v1.main"),
        **_says("admission", "headgate.sched.v1.main"),
        **_says("notifier", "headgate.sched.v1.main"),
        **_says("consumer", "headgate.sched.v1.main"),
        **_says("operator", "headgate.sched.v1.main"),
        **_says("scheduler", "headgate.sched.v1.other"),
    },
    "commands have their senders and their answerers": {
        **_says("consumer", *(f"headgate.cmd.v1.main.{verb}" for verb in ("beat", "acquire", "position", "redeem"))),
        **_says("admission", "headgate.cmd.v1.main.beat", "headgate.cmd.v1.main.redeem"),
        **_says("notifier", "headgate.cmd.v1.main.beat", "headgate.cmd.v1.main.acquire"),
        **_says("worker", "headgate.cmd.v1.main.redeem", "headgate.cmd.v1.main.granted.l1", "headgate.logs.v1.a.b"),
        **_says("worker", "headgate.cmd.v1.other.beat"),
        **_hears("worker", "headgate.cmd.v1.main.redeem", "headgate.cmd.v1.main.beat", "headgate.cmd.v1.>"),
        **_hears("notifier", "headgate.cmd.v1.main.redeem"),
    },
    "streams are made, emptied and ended by nobody who serves": {
        **_says("worker", f"{API}.STREAM.DELETE.JOBS", f"{API}.STREAM.PURGE.JOBS", f"{API}.STREAM.UPDATE.JOBS"),
        **_says("admission", f"{API}.STREAM.DELETE.JOBS", f"{API}.STREAM.PURGE.JOBS", f"{API}.STREAM.MSG.DELETE.JOBS"),
        **_says("scheduler", f"{API}.STREAM.DELETE.JOBS", f"{API}.STREAM.PURGE.JOBS"),
        **_says("notifier", f"{API}.STREAM.DELETE.LOGS", f"{API}.STREAM.PURGE.LOGS"),
        **_says("consumer", f"{API}.STREAM.DELETE.JOBS", f"{API}.STREAM.PURGE.JOBS", f"{API}.STREAM.CREATE.MINE"),
        **_says("operator", f"{API}.STREAM.DELETE.JOBS", f"{API}.STREAM.PURGE.JOBS"),
        **_says("worker", f"{API}.STREAM.SNAPSHOT.JOBS", f"{API}.STREAM.RESTORE.JOBS"),
    },
    "consumers are their owner's": {
        **_says("consumer", f"{API}.CONSUMER.DELETE.JOBS.worker-default", f"{API}.CONSUMER.CREATE.JOBS"),
        **_says("consumer", f"{API}.CONSUMER.MSG.NEXT.JOBS.worker-default", "$JS.ACK.JOBS.worker-default.1.2.3.4.5"),
        **_says("consumer", f"{API}.CONSUMER.DURABLE.CREATE.JOBS.worker-default"),
        **_says("consumer", f"{API}.CONSUMER.CREATE.JOBS.worker-default.headgate.jobs.v1.>"),
        **_says("consumer", f"{API}.CONSUMER.DELETE.JOBS.webhooks", f"{API}.CONSUMER.MSG.NEXT.JOBS.webhooks"),
        **_says("admission", f"{API}.CONSUMER.MSG.NEXT.JOBS.worker-default"),
        **_says("scheduler", f"{API}.CONSUMER.DELETE.JOBS.worker-default"),
        **_says("notifier", f"{API}.CONSUMER.DELETE.JOBS.webhooks", f"{API}.CONSUMER.MSG.NEXT.JOBS.worker-default"),
        **_says("worker", f"{API}.CONSUMER.MSG.NEXT.JOBS.webhooks", f"{API}.CONSUMER.DELETE.JOBS.worker-default"),
        **_says("worker", f"{API}.CONSUMER.MSG.NEXT.JOBS.worker-gpu", f"{API}.CONSUMER.CREATE.JOBS.worker-default"),
    },
    "what jobs bring and make is read by few": {
        **_says("consumer", f"{API}.STREAM.MSG.GET.KV_INPUTS", f"{API}.DIRECT.GET.KV_INPUTS"),
        **_says("consumer", f"{API}.STREAM.MSG.GET.OBJ_RESULTS", f"{API}.STREAM.MSG.GET.LOGS"),
        **_says("consumer", f"{API}.CONSUMER.CREATE.LOGS.mine", f"{API}.CONSUMER.CREATE.OBJ_RESULTS.mine"),
        **_says("notifier", f"{API}.STREAM.MSG.GET.KV_INPUTS", f"{API}.STREAM.MSG.GET.OBJ_RESULTS"),
        **_says("scheduler", f"{API}.STREAM.MSG.GET.KV_INPUTS", f"{API}.STREAM.MSG.GET.OBJ_RESULTS"),
        **_says("notifier", "$KV.INPUTS.j", "$O.RESULTS.M.x"),
        **_says("worker", "$KV.INPUTS.j", "$O.SNAPSHOTS.M.x"),
        **_says("consumer", "$KV.INPUTS.j", "$O.RESULTS.C.x", "$O.WORKSPACES.M.x"),
        **_hears("consumer", "$KV.INPUTS.>", "headgate.logs.v1.*"),
    },
    "answers are heard by who asked": {
        **_hears("worker", "_INBOX.>", "_INBOX_admission.>", "_INBOX_scheduler.>"),
        **_hears("admission", "_INBOX_worker.>", "_INBOX.>"),
        **_hears("notifier", "_INBOX_admission.>"),
        **_hears("consumer", "_INBOX_admission.>", "_INBOX_operator.>"),
        **_says("worker", "_INBOX_admission.x", "_INBOX_scheduler.x"),
        **_hears("consumer", ">", f"{API}.>", "$SYS.>"),
        **_hears("worker", "headgate.jobs.>", "headgate.live.v1.main.position.*.*"),
        **_says("consumer", "$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.USER.INFO"),
    },
    "Valkey does for a service what its scripts need": {
        **_commands("admission", "FLUSHALL", "FLUSHDB", "KEYS *", "CONFIG GET *", "CONFIG SET dir /", "ACL LIST"),
        **_commands("admission", "SHUTDOWN", "DEBUG SLEEP 0", "SAVE", "MODULE LIST", "MONITOR", "CLIENT LIST"),
        **_commands("scheduler", "FLUSHALL", "CONFIG SET maxmemory 1", "ACL SETUSER x", "SCRIPT KILL", "REPLICAOF a 1"),
        **_commands("scheduler", "SUBSCRIBE x", "SWAPDB 0 1"),
    },
    "a service's keys are its shard's": {
        **_commands("admission", "GET {hg:other}:view", "SET {hg:other}:view x", "DEL key", "HGETALL {hg:}:x"),
        **_commands("scheduler", "GET {hg:other}:view", "SET outside x", "DEL {hg:other}:lead"),
    },
    "whoever has no password is not let in": {
        **_commands("nobody", "PING", "INFO", "KEYS *", "EVAL return(1) 0"),
        **_commands("default", "PING", "CONFIG GET *"),
        **_commands("somebody", "PING", "GET {hg:main}:view"),
    },
}

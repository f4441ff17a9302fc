"""The event log: the only code that appends to it or names its streams.

nc = await connect(url, name="admission")
await migrate(nc, settings, new_epoch=...)        # `headgate migrate`, not the services
log = await open_log(nc, settings, seen=mark)     # refuses what is not set up as it has to be
match await log.append(event, after=job):
    case Appended(records): ...
    case Conflicted(entry, winner): ...
"""

from libs.eventlog.connection import connect, inbox_prefix
from libs.eventlog.errors import (
    EpochDiffers,
    LogError,
    LogFull,
    LogMissing,
    LogRefused,
    LogUnavailable,
    OutcomeUnknown,
    RecordsMissing,
    SettingsDiffer,
    WentBack,
)
from libs.eventlog.guard import open_log, require_seen
from libs.eventlog.jetstream import JetStreamLog
from libs.eventlog.migrate import Migrated, migrate
from libs.eventlog.ports import EventLog, Snapshots
from libs.eventlog.snapshots import JetStreamSnapshots
from libs.eventlog.streams import LogSettings
from libs.eventlog.values import Appended, Conflicted, Entry, Mark, Page, Record, Stored, Unreadable, Wanted

__all__ = [
    "Appended",
    "Conflicted",
    "Entry",
    "EpochDiffers",
    "EventLog",
    "JetStreamLog",
    "JetStreamSnapshots",
    "LogError",
    "LogFull",
    "LogMissing",
    "LogRefused",
    "LogSettings",
    "LogUnavailable",
    "Mark",
    "Migrated",
    "OutcomeUnknown",
    "Page",
    "Record",
    "RecordsMissing",
    "SettingsDiffer",
    "Snapshots",
    "Stored",
    "Unreadable",
    "Wanted",
    "WentBack",
    "connect",
    "inbox_prefix",
    "migrate",
    "open_log",
    "require_seen",
]

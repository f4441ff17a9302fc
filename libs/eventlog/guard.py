"""Opens the log for a service, after a look at what it stands on.

On other settings a service would break its promises in silence. Without `sync_interval: always` a power cut loses
what was acknowledged and gives its sequences to other events; a stream that may delete forgets who won; on a log that
went back every reader that was ahead is wrong. So each service looks when it starts, and refuses by naming the
difference.
"""

import json
from collections.abc import Mapping
from typing import Any

from nats.aio.client import Client

from libs.eventlog.api import require_same_log, state_of
from libs.eventlog.errors import LogRefused, SettingsDiffer
from libs.eventlog.jetstream import JetStreamLog
from libs.eventlog.servers import servers_of
from libs.eventlog.settling import SETTLE_WITHIN_S
from libs.eventlog.streams import DUPLICATE_WINDOW_S, JOBS, SECOND_NS, LogSettings, Stream, streams
from libs.eventlog.values import Mark
from libs.runtime.clock import Clock

_DURATIONS = {"max_age", "duplicate_window", "ack_wait"}


async def open_log(
    nc: Client,
    settings: LogSettings,
    *,
    seen: Mark | None = None,
    clock: Clock | None = None,
    settle_within_s: float = SETTLE_WITHIN_S,
) -> JetStreamLog:
    """The log, if it is set up as it has to be and is no other and no shorter one than was `seen`."""
    if settle_within_s > DUPLICATE_WINDOW_S / 2:
        raise LogRefused(reason=f"settle_within_s is {settle_within_s:g}, must be {DUPLICATE_WINDOW_S // 2} or less")
    differences: list[str] = []
    for stream in streams(settings):
        differences += stream_differences(stream, (await state_of(nc, stream.name)).config)
    jobs = await state_of(nc, JOBS)
    for server in await servers_of(nc, jobs.peers):
        differences += server.differences()
    if jobs.epoch is None:
        differences.append(f"{JOBS}: it has no epoch")
    if differences or jobs.epoch is None:
        raise SettingsDiffer(differences="; ".join(differences))
    if seen:
        require_same_log(jobs, seen)
    return JetStreamLog(nc, epoch=jobs.epoch, clock=clock, settle_within_s=settle_within_s)


async def require_seen(nc: Client, seen: Mark) -> None:
    """Refuse a log that is another one than was seen, or that ends before what was seen."""
    require_same_log(await state_of(nc, JOBS), seen)


def stream_differences(stream: Stream, found: Mapping[str, Any]) -> list[str]:
    """Each setting that is not as it must be, in the server's own words."""
    return settings_differences(stream.name, stream.settings, found)


def settings_differences(name: str, settings: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """The same, of whatever has this name."""
    return [
        f"{name}: {key} is {_shown(key, found.get(key))}, must be {_shown(key, wanted)}"
        for key, wanted in settings.items()
        if (found.get(key) or None) != (wanted or None)  # what is off may also be left out
    ]


def _shown(key: str, value: object) -> str:
    if isinstance(value, int) and key in _DURATIONS:
        return f"{value // SECOND_NS} s"
    return "unset" if value is None else json.dumps(value)

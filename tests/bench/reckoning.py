"""What so many jobs a day ask of a log, from what one job was measured to ask: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DAY_S: Final = 86_400
GIB: Final = 1 << 30
PEAK: Final = 10  # times the mean of the day
HEADS: Final = (
    "jobs a day",
    "days kept",
    "events",
    "disk",
    "nats-server's memory",
    f"jobs a second, mean; {PEAK} times that",
    "events a second then",
    "processors of a scheduler then",
)


@dataclass(frozen=True, slots=True)
class OneJob:
    """What a job leaves in the log, and costs on its way."""

    events: float
    subjects: float
    disk_bytes: float
    kept_bytes: float  # of nats-server's memory, started again
    written_bytes: float  # the same, with what it remembers of the last minutes
    scheduler_s: float = 0.0  # of a processor


@dataclass(frozen=True, slots=True)
class Asks:
    """Of one shard."""

    events: float
    disk_gib: float
    kept_gib: float
    written_gib: float
    events_a_second: float  # at the peak
    scheduler_cores: float  # at the peak


def asks(job: OneJob, *, a_day: int, days: int) -> Asks:
    jobs, peak = a_day * days, PEAK * a_day / DAY_S
    return Asks(
        events=jobs * job.events,
        disk_gib=jobs * job.disk_bytes / GIB,
        kept_gib=jobs * job.kept_bytes / GIB,
        written_gib=jobs * job.written_bytes / GIB,
        events_a_second=peak * job.events,
        scheduler_cores=peak * job.scheduler_s,
    )


def row_of(job: OneJob, *, a_day: int, days: int) -> list[str]:
    """Under these heads."""
    it, mean = asks(job, a_day=a_day, days=days), a_day / DAY_S
    return [
        f"{a_day:,}",
        f"{days}",
        f"{it.events / 1e6:,.0f} million",
        f"{it.disk_gib:,.1f} GiB",
        f"{it.kept_gib:,.1f} to {it.written_gib:,.1f} GiB",
        f"{mean:.2f}; {PEAK * mean:,.1f}" if mean < 1 else f"{mean:.1f}; {PEAK * mean:,.1f}",
        f"{it.events_a_second:,.0f}",
        f"{it.scheduler_cores:.2f}",
    ]

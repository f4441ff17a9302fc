"""Headgate's contracts: events, subjects, the life of a job.

event = parse_event(message.data)          # tolerant: UnknownEvent for what a newer writer added
job = advance(job, event, seq=...)         # or fold(events): what the events of one job add up to
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate_contracts.envelope import Event, JobEvent, UnknownEvent, parse_event
    from headgate_contracts.errors import ContractError, EventTooLarge, IllegalTransition, InvalidEvent, InvalidToken
    from headgate_contracts.holder import Holder
    from headgate_contracts.job import Job
    from headgate_contracts.lifecycle import TABLE, advance, fold, step_over
    from headgate_contracts.subjects import (
        JobSubject,
        OpsSubject,
        SchedSubject,
        consumer_filter,
        job_filter,
        parse_subject,
    )
    from headgate_contracts.tokens import foreign_token
    from headgate_contracts.vocabulary import EventName, Priority, Status, Tier, Writer

__all__ = [
    "TABLE",
    "ContractError",
    "Event",
    "EventName",
    "EventTooLarge",
    "Holder",
    "IllegalTransition",
    "InvalidEvent",
    "InvalidToken",
    "Job",
    "JobEvent",
    "JobSubject",
    "OpsSubject",
    "Priority",
    "SchedSubject",
    "Status",
    "Tier",
    "UnknownEvent",
    "Writer",
    "advance",
    "consumer_filter",
    "fold",
    "foreign_token",
    "job_filter",
    "parse_event",
    "parse_subject",
    "step_over",
]

# The light ones first: who asks for a word of the vocabulary does not wait for the models.
_HOMES = ("vocabulary", "errors", "tokens", "subjects", "holder", "envelope", "job", "lifecycle")


def __getattr__(name: str) -> Any:
    """Each name is loaded when it is asked for: the models alone are half of the time of `headgate --help`."""
    for home in _HOMES if name in __all__ else ():
        module = import_module(f"{__name__}.{home}")
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

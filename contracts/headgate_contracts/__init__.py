"""Headgate's contracts: events, subjects, the life of a job.

event = parse_event(message.data)          # tolerant: UnknownEvent for what a newer writer added
job = advance(job, event, seq=...)         # or fold(events): what the events of one job add up to
"""

from headgate_contracts.envelope import Event, JobEvent, UnknownEvent, parse_event
from headgate_contracts.errors import ContractError, EventTooLarge, IllegalTransition, InvalidEvent, InvalidToken
from headgate_contracts.holder import Holder
from headgate_contracts.job import Job
from headgate_contracts.lifecycle import TABLE, advance, fold, step_over
from headgate_contracts.subjects import JobSubject, OpsSubject, SchedSubject, consumer_filter, job_filter, parse_subject
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

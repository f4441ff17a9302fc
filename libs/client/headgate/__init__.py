"""Headgate's client: submit jobs, follow them, fetch what they made. httpx and pydantic are all it needs.

    async with Headgate() as hg:                                   # HEADGATE_URL, HEADGATE_TOKEN
        job = await hg.submit("a URL shortener", project="shop")
        async for event in job.events():
            print(event)
        await (await job.result()).extract("out/")

Owns requests, their repetition, streams and what an answer means. Refuses to decide anything for its caller beyond
that: what cannot be had is an error of one tree, `HeadgateError`.
"""

from headgate.async_slot import Slot
from headgate.asynchronous import Headgate, Job, Operators, Result
from headgate.errors import (
    Busy,
    Conflict,
    Gone,
    HeadgateError,
    Invalid,
    NoSlot,
    NotAllowed,
    NotAsPromised,
    NotConfigured,
    NotFound,
    NotHeadgate,
    NotInTime,
    NotSignedIn,
    NotStored,
    OverShare,
    Problem,
    Rejected,
    ServerFault,
    SlotLost,
    TooFast,
    TryLater,
    Unavailable,
    Unreachable,
    UnsafeArchive,
)
from headgate.exchange import Patience
from headgate.happenings import (
    Asked,
    End,
    Event,
    LogLine,
    PositionChanged,
    Progressed,
    Resync,
    Snapshot,
    StatusChanged,
)
from headgate.leasing import new_lease
from headgate.orders import Order, order, phase
from headgate.sync_slot import SyncSlot
from headgate.synchronous import SyncHeadgate, SyncJob, SyncOperators, SyncResult
from headgate.values import JobState, Question, StageTitle, WorkflowState

__all__ = [
    "Asked",
    "Busy",
    "Conflict",
    "End",
    "Event",
    "Gone",
    "Headgate",
    "HeadgateError",
    "Invalid",
    "Job",
    "JobState",
    "LogLine",
    "NoSlot",
    "NotAllowed",
    "NotAsPromised",
    "NotConfigured",
    "NotFound",
    "NotHeadgate",
    "NotInTime",
    "NotSignedIn",
    "NotStored",
    "Operators",
    "Order",
    "OverShare",
    "Patience",
    "PositionChanged",
    "Problem",
    "Progressed",
    "Question",
    "Rejected",
    "Result",
    "Resync",
    "ServerFault",
    "Slot",
    "SlotLost",
    "Snapshot",
    "StageTitle",
    "StatusChanged",
    "SyncHeadgate",
    "SyncJob",
    "SyncOperators",
    "SyncResult",
    "SyncSlot",
    "TooFast",
    "TryLater",
    "Unavailable",
    "Unreachable",
    "UnsafeArchive",
    "WorkflowState",
    "new_lease",
    "order",
    "phase",
]

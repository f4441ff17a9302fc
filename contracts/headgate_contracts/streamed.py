"""What server-sent events carry, as the notifier writes them. They may grow: a client ignores what it does not know.

    id: <log's epoch>-<sequence>     of snapshots and statuses: who comes back with the last one misses nothing
    event: status                    a name of `STREAMED`, or `snapshot`
    data: {"event": "stage", …}      one line of JSON

OpenAPI 3.1 has no word for the items of such a stream, 3.2 has `itemSchema`: the document names them beside the answer
as `x-itemSchema`, each item as an object of its three fields with `data` read.
"""

from collections.abc import Mapping
from inspect import getdoc
from typing import Annotated, Any, Final

from pydantic import AwareDatetime, ConfigDict, Field

from headgate_contracts.questions import AnswerSchema, FailedWork
from headgate_contracts.records import OpenStatus
from headgate_contracts.shown import QueuePart, Shown, ShownJob, WaitingOn
from headgate_contracts.vocabulary import QuestionKind

EVENT_ID: Final = r"^[0-9A-Z]{26}-[0-9]{1,15}$"


class SnapshotOfJobs(Shown):
    """All of one's jobs, as they stand."""

    jobs: tuple[ShownJob, ...]


class StreamedStatus(Shown):
    """An event that changed the job's status, and what it says besides under the names that the events have. Of one
    that this version does not know: its type as `event`, and these alone."""

    model_config = ConfigDict(frozen=True, extra="allow")

    event: Annotated[str, Field(description="as in the types of events: `queued`, `stage`, …; more may come")]
    at: AwareDatetime
    job_id: str
    status: OpenStatus
    attempt: int | None = None
    user_id: str | None = None
    project_id: str | None = None


class StreamedPosition(Shown):
    """Where the job stands in the queue now, null where it has left it."""

    job_id: str
    queue: QueuePart | None
    waiting_on: tuple[WaitingOn, ...]


class StreamedProgress(Shown):
    """How far the stage is that the job is in, from 0 to 1."""

    job_id: str
    attempt: int
    stage: str
    fraction: float
    message: str


class StreamedQuestion(Shown):
    """What the job asks its user, as `question` of the job has it; or that this is still open, for so many hours more:
    then it has `hours_left`, and what it does not repeat is left out."""

    job_id: str
    id: str | None = None
    kind: QuestionKind | None = None
    text: str | None = None
    choices: tuple[str, ...] = ()
    schema_: Annotated[AnswerSchema | None, Field(alias="schema")] = None
    reason: FailedWork | None = None
    iterations_used: int | None = None
    next_batch: int | None = None
    expires_at: AwareDatetime | None = None
    hours_left: int | None = None


class StreamedLine(Shown):
    """A line of the job's log. A client that comes back names the `seq` of its last one as `log_after`."""

    job_id: str
    attempt: int
    seq: int
    stage: str
    line: str
    ts: AwareDatetime


class StreamedResync(Shown):
    """The client's last id leads nowhere: what it knows is to be thrown away, a snapshot follows."""

    reason: str


class StreamedEnd(Shown):
    """The job has ended and all of it was told: nothing follows, and there is no need to come back."""


STREAMED: Final[Mapping[str, type[Shown]]] = {
    "status": StreamedStatus,
    "position": StreamedPosition,
    "progress": StreamedProgress,
    "confirmation": StreamedQuestion,
    "log": StreamedLine,
    "resync": StreamedResync,
    "end": StreamedEnd,
}
SNAPSHOTS: Final[Mapping[str, type[Shown]]] = {"JobStreamItem": ShownJob, "JobsStreamItem": SnapshotOfJobs}
OF_ONE_JOB: Final = frozenset({"log", "end"})
WITH_ID: Final = frozenset({"snapshot", "status"})


def item_ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def stream_items() -> dict[str, Any]:
    """The schemas of items and of what each stream is made of, by the names that a document of OpenAPI refers to."""
    items = {f"{event.capitalize()}Item": _item(event, model) for event, model in STREAMED.items()}
    streams: dict[str, Any] = {}
    for name, model in SNAPSHOTS.items():
        snapshot = f"{model.__name__}Item"
        items[snapshot] = _item("snapshot", model)
        others = {event: f"{event.capitalize()}Item" for event in STREAMED}
        if model is SnapshotOfJobs:
            others = {event: item for event, item in others.items() if event not in OF_ONE_JOB}
        streams[name] = _either({"snapshot": snapshot, **others})
    return items | streams


def _item(event: str, model: type[Shown]) -> dict[str, Any]:
    fields: dict[str, Any] = {"event": {"type": "string", "const": event}, "data": item_ref(model.__name__)}
    if event in WITH_ID:
        fields["id"] = {"type": "string", "pattern": EVENT_ID}
    return {"type": "object", "description": getdoc(model), "properties": fields, "required": ["event", "data"]}


def _either(items: Mapping[str, str]) -> dict[str, Any]:
    mapping = {event: item_ref(item)["$ref"] for event, item in items.items()}
    refs = [item_ref(item) for item in items.values()]
    return {"oneOf": refs, "discriminator": {"propertyName": "event", "mapping": mapping}}

"""The envelope around every event: CloudEvents 1.0 in structured mode.

Owns the bytes. `Event` is what this package writes and reads; `UnknownEvent` is what a newer writer sent and this
reader does not know yet: it still says whose job it is and where the job stands, so nobody halts on it.

Each type of event has one model of its envelope, `ENVELOPES`. They read an event in one pass, types taken strictly, and
the schemas that other teams get are theirs.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, cast

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    StringConstraints,
    ValidationError,
    create_model,
)
from pydantic_core import PydanticSerializationError, to_json

from headgate_contracts.errors import EventTooLarge, InvalidEvent
from headgate_contracts.events import ACT_DATA, JOB_DATA, Act, Data, JobData, SchedulerCommitted
from headgate_contracts.records import Amount, Count, OpenStatus, refused
from headgate_contracts.tokens import JobId
from headgate_contracts.vocabulary import Status, Writer

CONTENT_TYPE: Final = "application/cloudevents+json"
MAX_EVENT_BYTES: Final = 32 * 1024  # an event of a job with every text at its bound, each character escaped, fits

SEQUENCE: Final = (
    "An extension attribute: this is the job's n-th event, counted from 1 without a gap. An Integer of CloudEvents, so"
    " a number in JSON. (The extension that others call by this name is a String which sorts; ours counts.)"
)

EventId = Annotated[str, StringConstraints(pattern=r"^[0-9A-HJKMNP-TV-Z]{26}$")]
D_co = TypeVar("D_co", bound=Data, covariant=True)

DATA_BY_TYPE: Final[dict[str, type[Data]]] = {
    data.type_name(): data for data in (*JOB_DATA, *ACT_DATA, SchedulerCommitted)
}
_JOB_TYPES: Final = "dev.headgate.job."
_STATUSES: Final = frozenset(Status)
_SOURCES: Final = {f"/headgate/{writer.value}": writer for writer in Writer}


@dataclass(frozen=True, slots=True)
class Event(Generic[D_co]):
    """One fact. `sequence` counts the events of a job from 1; acts and commits have none."""

    id: str
    writer: Writer
    time: datetime
    data: D_co
    sequence: int | None = None

    @property
    def type(self) -> str:
        return self.data.type_name()

    @property
    def subject(self) -> str:
        """The NATS subject to publish on."""
        return str(self.data.route())

    def encode(self) -> bytes:
        """The bytes to publish; raises where they would not be read back as the same event."""
        encoded = _dump(self)
        if len(encoded) > MAX_EVENT_BYTES:
            raise EventTooLarge("data", f"the event has {len(encoded)} bytes, the contract allows {MAX_EVENT_BYTES}")
        if parse_event(encoded) != self:
            raise InvalidEvent("event", "it would be read back as another event")
        return encoded


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """A fact that a newer writer knows and this reader does not: its type, or the job's status after it. What is said
    of a job is null where it is of none."""

    id: str
    type: str
    time: datetime
    job_id: str | None
    status: Status | str | None
    sequence: int | None = None
    attempt: int | None = None
    user_id: str | None = None
    project_id: str | None = None


JobEvent = Event[JobData]
ActEvent = Event[Act]
CommitEvent = Event[SchedulerCommitted]
AnyEvent = Event[Data]


class _Attributes(BaseModel):
    """What the envelope of every event has, in every version."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    specversion: Literal["1.0"]
    id: Annotated[EventId, Field(description="A ULID, the event's own for ever, however often it is delivered.")]
    type: str
    subject: Annotated[
        str,
        Field(
            description="What it is about: a job, a scope, a group, a user, a token (its `jti`), a pipeline or a shard."
        ),
    ]
    time: Annotated[AwareDatetime, Field(description="The writer's clock. The order is the stream's, not this one's.")]
    datacontenttype: Literal["application/json"] = "application/json"


class Envelope(_Attributes):
    """The attributes of CloudEvents that Headgate uses."""

    source: Annotated[
        Literal["/headgate/admission", "/headgate/scheduler", "/headgate/worker"],
        Field(description="The service that wrote it."),
    ]
    dataschema: Annotated[str, Field(description="The schema of `data`: a part of `schemas/<type>.json`.")]
    data: Any


class JobEnvelope(Envelope):
    """The same for the events of a job, which are counted."""

    sequence: Annotated[Count, Field(description=SEQUENCE)]


class _UnknownJobData(BaseModel):
    """What every event of a job carries, in every version."""

    job_id: JobId
    status: OpenStatus
    attempt: Amount
    user_id: str | None = None
    project_id: str | None = None


class _UnknownJobEnvelope(_Attributes):
    sequence: Count
    data: _UnknownJobData


def _envelope_of(name: str, data: type[Data]) -> type[Envelope]:
    base = JobEnvelope if issubclass(data, JobData) else Envelope
    fields: dict[str, Any] = {"type": (Literal[name], ...), "data": (data, ...)}
    return create_model(f"{data.__name__}Event", __base__=base, __doc__=data.__doc__, **fields)


def _either(one: Any, other: Any) -> Any:
    return one | other


ENVELOPES: Final = {name: _envelope_of(name, data) for name, data in DATA_BY_TYPE.items()}
_UNION: Final[Any] = reduce(_either, ENVELOPES.values())
_Reader: Final = create_model("Reader", __base__=RootModel[Any], root=(_UNION, Field(discriminator="type")))


def parse_event(payload: bytes) -> AnyEvent | UnknownEvent:
    """Read an event tolerantly: unknown fields are ignored, an unknown type or status is `UnknownEvent`."""
    try:
        envelope = _Reader.model_validate_json(payload, strict=True).root
    except ValidationError as error:
        match error.errors(include_url=False, include_input=False)[0]["type"]:
            case "union_tag_invalid":
                return _unknown(payload)
            case "union_tag_not_found":
                raise InvalidEvent("type", "Field required") from error
            case _:
                raise refused(error, skip=1) from error  # in a union the first name is the type
    data = cast("Data", envelope.data)
    if data.about() != envelope.subject:
        raise InvalidEvent("subject", f"{envelope.subject!r} is not what the data is about: {data.about()!r}")
    if isinstance(data, JobData) and data.status not in _STATUSES:
        return _unknown(payload)
    sequence = envelope.sequence if isinstance(data, JobData) else None
    return Event(envelope.id, _SOURCES[envelope.source], envelope.time, data, sequence)


def dataschema(model: type[Data]) -> str:
    """The name of the schema that the data follows: a part of the event's schema, `schemas/<type>.json`."""
    return f"{schema_id(model)}#/$defs/{model.__name__}"


def schema_id(model: type[Data]) -> str:
    """The name of the schema of the whole event."""
    return f"urn:headgate:schema:{model.type_name()}"


def utc(now_ms: int) -> datetime:
    """Milliseconds since 1970 as the time of an event."""
    return datetime.fromtimestamp(now_ms / 1000, UTC)


def _dump(event: AnyEvent) -> bytes:
    """Nothing is checked here but that it can be written at all: the reader checks what was written."""
    attributes: dict[str, Any] = {
        "specversion": "1.0",
        "id": event.id,
        "type": event.type,
        "source": f"/headgate/{event.writer}",
        "subject": event.data.about(),
        "time": event.time,
        "datacontenttype": "application/json",
        "dataschema": dataschema(type(event.data)),
        **({} if event.sequence is None else {"sequence": event.sequence}),
        "data": event.data,
    }
    try:
        return to_json(attributes, by_alias=True, exclude_none=True)
    except PydanticSerializationError as error:
        raise InvalidEvent("event", str(error)) from error


def _unknown(payload: bytes) -> UnknownEvent:
    try:
        envelope = _Attributes.model_validate_json(payload, strict=True)
        if not envelope.type.startswith(_JOB_TYPES):
            return UnknownEvent(envelope.id, envelope.type, envelope.time, None, None)
        known = _UnknownJobEnvelope.model_validate_json(payload, strict=True)
    except ValidationError as error:
        raise refused(error) from error
    if known.subject != known.data.job_id:
        raise InvalidEvent("subject", f"{known.subject!r} is not what the data is about: {known.data.job_id!r}")
    return UnknownEvent(
        id=known.id,
        type=known.type,
        time=known.time,
        job_id=known.data.job_id,
        status=known.data.status,
        sequence=known.sequence,
        attempt=known.data.attempt,
        user_id=known.data.user_id,
        project_id=known.data.project_id,
    )

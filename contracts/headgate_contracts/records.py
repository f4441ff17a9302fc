"""The base of everything that travels, and the bounds of its fields.

Owns what all records share: they are frozen, ignore what they do not know, and one that cannot be made raises
`InvalidEvent` with the name of the field. Refuses meaning: what a field says is told where it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from headgate_contracts.errors import InvalidEvent

if TYPE_CHECKING:
    _Base = BaseModel
else:

    class _Named(type(BaseModel)):
        """Turns the library's error into ours where a record is made, and costs nothing where one is read."""

        def __call__(cls, *args: Any, **fields: Any) -> Any:
            try:
                return super().__call__(*args, **fields)
            except ValidationError as error:
                raise refused(error) from error

    class _Base(BaseModel, metaclass=_Named):
        pass


Count = Annotated[int, Field(ge=1, le=2**31 - 1)]  # the integers of CloudEvents
Amount = Annotated[int, Field(ge=0, le=2**31 - 1)]
Rank = Annotated[int, Field(ge=0, le=2**53 - 1)]  # exact for every reader of JSON, and as a score
Who = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Note = Annotated[str, StringConstraints(max_length=500)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[!-~]+$", max_length=2048)]
GroupName = Annotated[str, StringConstraints(pattern=r"^[a-z]+(:[A-Za-z0-9_-]{1,64}){0,2}$", max_length=160)]
HeldGroups = Annotated[tuple[GroupName, ...], Field(max_length=32)]
LabelKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_./-]{1,64}$")]
LabelValue = Annotated[str, StringConstraints(max_length=128)]
Scope = Annotated[
    str,
    StringConstraints(
        pattern=r"^(all|priority:(urgent|high|normal|low|background)|(pool|user|project|workflow):[A-Za-z0-9_-]{1,64})$"
    ),
]


class Record(_Base):
    """A frozen piece of a contract."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


def refused(error: ValidationError, *, skip: int = 0) -> InvalidEvent:
    """The first thing that is wrong, by the name of its field, without the first `skip` parts of that name."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"][skip:])
    return InvalidEvent(field or "event", first["msg"])

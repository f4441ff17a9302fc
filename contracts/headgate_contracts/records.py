"""The base of everything that travels, and the bounds of its fields.

Owns what all records share: they are frozen, ignore what they do not know, and one that cannot be made raises
`InvalidEvent` with the name of the field. Refuses meaning: what a field says is told where it is used.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from headgate_contracts.errors import InvalidEvent
from headgate_contracts.tokens import Token
from headgate_contracts.vocabulary import Status, Tier

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
TokenId = Annotated[
    str, StringConstraints(pattern=r"^[!-~]{1,256}$")
]  # the `jti` of somebody's token, a credential of none
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
PolicyKey = Annotated[str, StringConstraints(min_length=1, max_length=400)]
Note = Annotated[str, StringConstraints(max_length=500)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[!-~]+$", max_length=2048)]
GroupName = Annotated[str, StringConstraints(pattern=r"^[a-z]+(:[A-Za-z0-9_-]{1,64}){0,3}$", max_length=224)]
HeldGroups = Annotated[tuple[GroupName, ...], Field(max_length=32)]
LabelKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_./-]{1,64}$")]
LabelValue = Annotated[str, StringConstraints(max_length=128)]
# The kinds of today are priority, pool, user, project and workflow. Readers take any: the door is where one is refused.
# A project has two parts where it is a user's own: `project:ann:shop`.
Scope = Annotated[str, StringConstraints(pattern=r"^(all|[a-z_]{1,32}(:[A-Za-z0-9_-]{1,64}){1,2})$")]


def _open(words: type[StrEnum]) -> Any:
    """One of these words, or a later one, as a text."""
    known = {word.value: word for word in words}
    return Annotated[
        Token,
        AfterValidator(lambda word: known.get(word, word)),
        Field(description=f"{', '.join(words)}. More may come."),
    ]


if TYPE_CHECKING:
    OpenTier = Tier
    OpenStatus = Status
else:
    # What is sold changes more often than contracts do, so a reader takes a tier that it does not know, as a text. Our
    # own services know them all (a token with another is refused at the door), and so their types say.
    OpenTier = _open(Tier)
    # Of an event with a status that it does not know, a reader is given an `UnknownEvent`: again the types are right.
    OpenStatus = _open(Status)


class Record(_Base):
    """A frozen piece of a contract."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class StageTitle(Record):
    """A stage, as its pipeline's author names it, and what people are told while it runs."""

    name: Token
    title: Annotated[str, StringConstraints(min_length=1, max_length=80)]


def refused(error: ValidationError, *, skip: int = 0) -> InvalidEvent:
    """The first thing that is wrong, by the name of its field, without the first `skip` parts of that name."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"][skip:])
    return InvalidEvent(field or "event", first["msg"])

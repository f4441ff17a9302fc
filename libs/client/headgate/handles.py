"""A job and a result in a caller's hands: what is known of them. What can be asked of them is each driver's."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, Generic, ParamSpec, TypeVar

from headgate.fetching import ResultFacts
from headgate.values import JobState

H = TypeVar("H")
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Handle(Generic[H]):
    """Something of one job's, and whom to ask about it."""

    hg: H
    id: str


@dataclass(frozen=True, slots=True)
class JobHandle(Handle[H]):
    """A job. `state` is how it stood when it was asked for."""

    state: JobState

    @property
    def status(self) -> str:
        return self.state.status

    @property
    def message(self) -> str:
        return self.state.message

    @property
    def has_ended(self) -> bool:
        return self.state.has_ended


@dataclass(frozen=True, slots=True)
class ResultHandle(Handle[H]):
    """A result that is there and not yet fetched. `digest` is its SHA-256."""

    facts: ResultFacts

    @property
    def size(self) -> int:
        return self.facts.size

    @property
    def digest(self) -> str:
        return self.facts.digest


def of_one(verb: Callable[Concatenate[H, str, P], R]) -> Callable[Concatenate[Handle[H], P], R]:
    """A verb that names a job, as a method of what is that job's."""

    @wraps(verb)
    def method(it: Handle[H], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return verb(it.hg, it.id, *args, **kwargs)

    return method

"""What calls to models came to, added up: by an attempt's worker up to its next event, by every reader over a job.

Owns the sum and its bounds. One entry a model of a provider, in the order of their first use; where there would be too
many, further ones are one, by the name `other`.
"""

from collections.abc import Iterable
from typing import Final, TypeVar

from headgate_contracts.events import ModelUsage
from headgate_contracts.tokens import Token
from headgate_contracts.vocabulary import OTHER

MOST_OF_A_JOB: Final = 64
_MOST: Final = 2**31 - 1  # of one number, as its field has it
NUMBERS: Final = ("calls", "input_tokens", "output_tokens", "cached_tokens", "took_ms")
U = TypeVar("U", bound=ModelUsage)


class StageUsage(ModelUsage):
    """The same of one stage, over all its iterations, tries and attempts. Without a `stage` it was of one that the
    reader does not know."""

    stage: Token | None = None


def with_usage(known: tuple[U, ...], more: U, *, most: int) -> tuple[U, ...]:
    """Both together."""
    by_model = {_model_of(each): each for each in known}
    if _model_of(more) not in by_model and len(known) >= most - 1:
        more = more.model_copy(update={"provider": OTHER, "model": OTHER})
    same = by_model.get(_model_of(more))
    by_model[_model_of(more)] = more if same is None else _sum(same, more)
    return tuple(by_model.values())


def usage_after(
    known: tuple[StageUsage, ...], more: Iterable[ModelUsage], *, stage: str | None
) -> tuple[StageUsage, ...]:
    """A job's, once an event has told what this stage came to."""
    for each in more:
        known = with_usage(known, StageUsage(**dict(each), stage=stage), most=MOST_OF_A_JOB)
    return known


def _model_of(usage: ModelUsage) -> tuple[str | None, str, str]:
    return usage.stage if isinstance(usage, StageUsage) else None, usage.provider, usage.model


def _sum(one: U, other: U) -> U:
    sums = {name: min(_MOST, getattr(one, name) + getattr(other, name)) for name in NUMBERS}
    return one.model_copy(update=sums)

"""Which pipelines there are, followed: what workers have announced, and what is built in.

    the bucket ── each second, if it has grown ──► the book ◄── a submission that names one which is not in it:
                                                               the bucket is asked once more before it is refused

Owns the refusal of a pipeline that there is not, and of an input that its schema does not allow. Refuses to check what
no schema says: the worker's own reading of the input is the last word.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jsonschema_rs import Draft202012Validator, ValidationError, ValidationErrorKind
from pydantic_core import from_json

from headgate_pipeline.rules import BUILT_IN
from libs.eventlog.errors import LogError
from libs.eventlog.pipelines import AnnouncedPipeline
from libs.eventlog.ports import PipelineBucket
from libs.runtime.clock import Clock
from libs.runtime.schemas import validator_of, wrong_schema
from services.admission.domain import NewJob
from services.admission.limits import NotAllowed

logger = logging.getLogger(__name__)

LOOK_EVERY_MS: Final = 1000
MOST_FAULTS: Final = 20  # of one input
MOST_SAID: Final = 200  # of one fault: its words hold what was wrong with them
MISSING: Final = "it is missing"

PoolAndName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class InputCheck:
    """What an author's schema says of inputs, by field and in words."""

    schema: Mapping[str, Any]
    validator: Draft202012Validator

    @classmethod
    def of(cls, announced: AnnouncedPipeline) -> InputCheck | None:
        """Null where there is no schema, or none that can be used: then nothing is checked here."""
        schema = announced.input_schema
        if schema is None:
            return None
        if wrong := wrong_schema(schema):
            logger.warning("the input of %s is not checked: its schema is none: %s", announced.name, wrong)
            return None
        return cls(schema, validator_of(schema))

    def faults(self, content: object) -> Iterator[tuple[str, str]]:
        for fault in self.validator.iter_errors(content):
            yield from self._in_words(fault)

    def _in_words(self, fault: ValidationError) -> Iterator[tuple[str, str]]:
        """By the field that is missing or unknown, not by what it should stand in."""
        field = ".".join(("input", *map(str, fault.instance_path)))
        match fault.kind:
            case ValidationErrorKind.Required(missing):
                yield f"{field}.{missing}", MISSING
            case ValidationErrorKind.AdditionalProperties(unexpected):
                said = f"it is unknown here: name one of {', '.join(self._known(fault))}"[:MOST_SAID]
                yield from ((f"{field}.{name}", said) for name in unexpected)
            case ValidationErrorKind.PropertyNames(wrong):
                yield f"{field}.{wrong.instance}", wrong.message[:MOST_SAID]
            case _:
                yield field, fault.message[:MOST_SAID]

    def _known(self, fault: ValidationError) -> Sequence[str]:
        """The properties that the schema has where the fault is."""
        *where, _ = fault.schema_path
        there: Any = self.schema
        for key in where:
            there = there[key]
        return list(there.get("properties", {}))


@dataclass(frozen=True, slots=True)
class PipelineBook:
    """Those that there are now, by pool and name, each with what checks its input where it has a schema."""

    announced: Mapping[PoolAndName, AnnouncedPipeline] = field(default_factory=dict[PoolAndName, AnnouncedPipeline])
    checks: Mapping[PoolAndName, InputCheck] = field(default_factory=dict[PoolAndName, InputCheck])

    @classmethod
    def of(cls, announced: Sequence[AnnouncedPipeline]) -> PipelineBook:
        checks = {each.place: check for each in announced if (check := InputCheck.of(each)) is not None}
        return cls({each.place: each for each in announced}, checks)

    def has(self, pool: str, name: str) -> bool:
        return name in BUILT_IN or (pool, name) in self.announced

    def names(self, pool: str) -> list[str]:
        return sorted({*BUILT_IN, *(name for place, name in self.announced if place == pool)})

    def faults(self, pool: str, name: str, content: bytes) -> Iterator[tuple[str, str]]:
        """What the schema says against this input: field and words."""
        check = self.checks.get((pool, name))
        return iter(()) if check is None else check.faults(from_json(content))

    def refusal(self, new: NewJob) -> NotAllowed | None:
        pool, name = new.submission.pool, new.submission.pipeline
        if not self.has(pool, name):
            there = ", ".join(self.names(pool))
            elsewhere = sorted(place for place, known in self.announced if known == name)
            where = f"; it runs in pool {', '.join(elsewhere)}" if elsewhere else ""
            return NotAllowed("pipeline", f"there is no {name!r} in pool {pool!r}{where}: name one of {there}")
        faults = [fault for fault, _ in zip(self.faults(pool, name, new.input), range(MOST_FAULTS), strict=False)]
        return NotAllowed(*faults[0], also=tuple(faults[1:])) if faults else None


class Pipelines:
    """The book of this replica, as it follows the bucket."""

    def __init__(self, bucket: PipelineBucket, clock: Clock) -> None:
        self.book = PipelineBook()
        self._bucket, self._clock = bucket, clock
        self._revision = -1
        self._reading = asyncio.Lock()

    async def refresh(self) -> None:
        """Until the book is as the bucket. Raises LogError where that cannot be asked."""
        async with self._reading:
            revision = await self._bucket.revision()
            if revision != self._revision:
                self.book, self._revision = PipelineBook.of(await self._bucket.all()), revision

    async def follow(self, stopping: asyncio.Event) -> None:
        """As long as this replica lives. While nobody answers, the last book stands."""
        while not stopping.is_set():
            try:
                await self.refresh()
            except LogError as fault:
                logger.debug("pipelines were not looked at: %s", fault)
            await self._clock.sleep_ms(LOOK_EVERY_MS)

    async def refusal(self, phases: Sequence[NewJob]) -> NotAllowed | None:
        """What is not allowed about the first of these for which anything is not, by the bucket as it is now."""
        if self._first_refusal(phases) is None:
            return None
        await self.refresh()
        return self._first_refusal(phases)

    async def remove(self, pool: str, name: str) -> None:
        await self._bucket.remove(pool, name)
        await self.refresh()

    def _first_refusal(self, phases: Sequence[NewJob]) -> NotAllowed | None:
        for number, new in enumerate(phases):
            refusal = self.book.refusal(new)
            if refusal is not None:
                return refusal if len(phases) == 1 else refusal.below(f"phases.{number}")
        return None

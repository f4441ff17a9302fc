"""What a pipeline is made of: 1 to 20 stages, each a Python function that is given a context.

A stage may be run again after an attempt was lost in its middle: it should begin by clearing what it is about to make.
"""

import json
import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast

from pydantic import BaseModel, PydanticUserError, ValidationError

from headgate_contracts.records import StageTitle
from headgate_contracts.vocabulary import MOST_STAGES
from headgate_pipeline.context import Context
from headgate_pipeline.errors import PipelineBroken
from headgate_pipeline.rules import PLAIN, KnownPipeline, StageRules

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,48}")  # of a pipeline or a stage: it stands in groups, subjects and labels
MAX_VERSION_CHARS: Final = 64
Input = TypeVar("Input", bound=BaseModel)
StageFunction = Callable[[Context], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Step:
    """A stage, what people are told while it runs, the function that does its work, and how many jobs of the pipeline
    may be in it at once; how long it may take, how often it is run again, and after which errors beside `TryAgain`."""

    stage: str
    title: str
    run: StageFunction
    max_concurrent: int | None = None
    rules: StageRules = PLAIN
    retry_on: tuple[type[Exception], ...] = ()


def stage(
    name: str,
    *,
    title: str | None = None,
    max_concurrent: int | None = None,
    timeout_s: float | None = None,
    retries: int = 0,
    backoff_s: tuple[float, float] = (1, 60),
    retry_on: Sequence[type[Exception]] = (),
) -> Callable[[StageFunction], Step]:
    """Mark the function that does the work of this stage. Without a title its name is one.

    A try may take `timeout_s`, waiting for slots included. After `TryAgain`, or an error of `retry_on`, the stage is
    run again up to `retries` times, after pauses that double from the first of `backoff_s` up to the second.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a stage: use 1 to 48 of A-Z a-z 0-9 _ -")
    title = title or name.replace("_", " ").replace("-", " ").strip().capitalize() or name
    if max_concurrent is not None and max_concurrent < 1:
        raise ValueError(f"max_concurrent of {name} is {max_concurrent}: use 1 or more, or leave it out")
    try:
        rules = StageRules(timeout_s=timeout_s, retries=retries, backoff_s=backoff_s)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{first['loc'][0]} of {name}: {first['msg']}") from error
    return lambda function: Step(name, title, function, max_concurrent, rules, tuple(retry_on))


@dataclass(frozen=True)
class Pipeline:
    """1 to 20 steps under a name, in the order in which they run.

    An iteration whose last stage has raised `ChecksFailed` is followed by one that begins with the stage `again_at`, or
    with the first one.
    `read_input` turns the job's input into what `ctx.input` is; a ValueError of it is told to the job's user.
    `version` is shown beside the name, and means nothing to Headgate.
    `not_kept` are paths below the workspace that are made again where they are missing, so no checkpoint has them.
    """

    name: str
    steps: tuple[Step, ...]
    read_input: Callable[[str], Any] = json.loads
    not_kept: tuple[str, ...] = ()
    again_at: str | None = None
    version: str = ""

    def __post_init__(self) -> None:
        names = [step.stage for step in self.steps]
        if not 1 <= len(names) <= MOST_STAGES:
            raise PipelineBroken(self.name, f"it has {len(names)} stages, and may have 1 to {MOST_STAGES}")
        if len(set(names)) < len(names):
            raise PipelineBroken(self.name, f"two of its stages have one name: {', '.join(names)}")
        if self.again_at is not None and self.again_at not in names:
            raise PipelineBroken(self.name, f"it begins again at {self.again_at}, which is none of its stages")
        if not NAME.fullmatch(self.name):
            raise PipelineBroken(self.name, "a name is 1 to 48 of A-Z a-z 0-9 _ -")
        if len(self.version) > MAX_VERSION_CHARS:
            raise PipelineBroken(self.name, f"a version has {MAX_VERSION_CHARS} characters at most")

    @property
    def stages(self) -> KnownPipeline:
        """What others are told of them."""
        titles = tuple(StageTitle(name=step.stage, title=step.title) for step in self.steps)
        rules = {step.stage: step.rules for step in self.steps}
        return KnownPipeline(
            titles=titles, again_at=self.again_at, rules=rules, version=self.version, input_schema=self.input_schema
        )

    @property
    def input_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the input, where a model reads it."""
        read = cast("InputModel[BaseModel] | Callable[[str], Any]", self.read_input)
        return read.schema if isinstance(read, InputModel) else None

    def step(self, wanted: str) -> Step:
        return next(step for step in self.steps if step.stage == wanted)

    def is_last(self, stage: str) -> bool:
        return stage == self.steps[-1].stage


@dataclass(frozen=True)
class InputModel(Generic[Input]):
    """A `read_input` that wants a model of pydantic."""

    model: type[Input]

    def __call__(self, text: str) -> Input:
        try:
            return self.model.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"]) or "input"
            raise ValueError(f"{field}: {first['msg']}") from error

    @property
    def schema(self) -> dict[str, Any] | None:
        """By which a submission is checked; null where the model has a part that JSON Schema has no word for."""
        try:
            return self.model.model_json_schema()
        except PydanticUserError:
            return None


def input_as(model: type[Input]) -> InputModel[Input]:
    """A `read_input` that wants this model of pydantic, and says which field is wrong, and how. A submission is checked
    by its JSON Schema, and the page makes its form of that."""
    return InputModel(model)

"""What is wrong with a module that is to be a pipeline, and what its author may want to know, in words.

`wrong` keeps a worker from running it; `advice` does not.
"""

import inspect
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from headgate_pipeline.errors import PipelineBroken
from headgate_pipeline.loading import pipeline_of
from headgate_pipeline.pipeline import InputModel, Pipeline, Step
from headgate_pipeline.rules import BUILT_IN, MAX_SCHEMA_BYTES


@dataclass(frozen=True, slots=True)
class CheckedPipeline:
    """A module, looked at. Without a pipeline it is none."""

    pipeline: Pipeline | None
    wrong: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


def checked(module: str, *, taken: Collection[str] = BUILT_IN) -> CheckedPipeline:
    """Import the module as a worker would, and look. `taken` are names of other pipelines."""
    try:
        pipeline = pipeline_of(module)
    except PipelineBroken as broken:
        return CheckedPipeline(None, (broken.why,))
    wrong = [f"its name is taken: {pipeline.name} is built in"] if pipeline.name in taken else []
    wrong += [fault for step in pipeline.steps for fault in _wrong_with(step)]
    return CheckedPipeline(pipeline, tuple(wrong), tuple(_advice(pipeline)))


def _wrong_with(step: Step) -> Iterator[str]:
    if not inspect.iscoroutinefunction(step.run):
        yield f"the stage {step.stage} is not `async def`"
    try:
        inspect.signature(step.run).bind(None)
    except TypeError:
        yield f"the stage {step.stage} does not take one argument, its context"


def _advice(pipeline: Pipeline) -> Iterator[str]:
    schema = pipeline.input_schema
    if schema is not None and len(json.dumps(schema)) > MAX_SCHEMA_BYTES:
        yield f"the schema of its input is larger than {MAX_SCHEMA_BYTES} bytes: no submission is checked by it"
    elif schema is None:
        why = "has a part that is no JSON Schema" if isinstance(pipeline.read_input, InputModel) else "is none"
        yield f"a model of its input {why}: no submission is checked, and the page has no form (`input_as(Model)`)"
    for step in pipeline.steps:
        if step.retry_on and not step.rules.retries:
            yield f"the stage {step.stage} names errors to retry on and has no `retries`: it is never run again"

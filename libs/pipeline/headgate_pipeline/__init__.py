"""What an author of a pipeline needs: stages, the context that each is given, and the errors it may raise.

    from headgate_pipeline import Context, Pipeline, stage

    @stage("code")
    async def code(ctx: Context) -> None:
        async with ctx.provider("ollama"):
            ctx.log("writing")

    pipeline = Pipeline("mine", (plan, code, checks), again_at="code")

`headgate_pipeline.testing` runs a pipeline in a test. Whatever else stands in this package is the worker's.
"""

from headgate_pipeline.commands import CommandBounds, Ran
from headgate_pipeline.context import Context, Endpoint, ModelCall, Slots
from headgate_pipeline.errors import (
    ChecksFailed,
    NoSlot,
    PipelineBroken,
    PipelineError,
    SlotLost,
    StageFailed,
    TryAgain,
)
from headgate_pipeline.pipeline import Pipeline, input_as, stage

__all__ = [
    "ChecksFailed",
    "CommandBounds",
    "Context",
    "Endpoint",
    "ModelCall",
    "NoSlot",
    "Pipeline",
    "PipelineBroken",
    "PipelineError",
    "Ran",
    "SlotLost",
    "Slots",
    "StageFailed",
    "TryAgain",
    "input_as",
    "stage",
]

"""The pipeline `rehearsal`: stages that take the time, fail and say as much as the job's input asks for.

For load tests, demonstrations and game days. Owns nothing but pretence: it needs no file of an earlier stage, so an
attempt that goes on where another stopped has nothing to restore. Input, all of it optional:

    {"stages": {"scaffold": 0.1, "code": 0.5, "deps": 0.1, "checks": 0.1}, "failing_cycles": 2, "fail_at": "code",
     "provider": "ollama", "log_lines": 20, "ask_at": "deps", "questions": 1}

Durations are seconds. The first `failing_cycles` end in failed checks; `fail_at` breaks the job in that stage; the
provider's slots are held during `code`, where also the log lines are written, evenly over its time.
"""

import asyncio
from contextlib import AsyncExitStack
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from headgate_contracts.tokens import Token
from headgate_pipeline import ChecksFailed, Context, Pipeline, StageFailed, TryAgain, input_as, stage

FOR_PEOPLE = "A rehearsal goes through every stage and does nothing: for trying things out."
COLOURS = ("red", "green", "blue")
UNSAID_S = 0.1  # a stage of which the input says nothing: short, and still to be seen on a page

StageName = Literal["scaffold", "code", "deps", "checks"]
Duration = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]


class RehearsalInput(BaseModel):
    """What the rehearsal is told. A submission with anything else is refused; what was taken in before is run. Titles
    and descriptions are what a form of it says."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", json_schema_extra={"additionalProperties": False, "description": FOR_PEOPLE}
    )

    prompt: Annotated[str | None, Field(title="Called", description="nothing is made of it")] = None
    stages: Annotated[dict[StageName, Duration], Field(title="Seconds")] = {}
    failing_cycles: Annotated[int, Field(ge=0, title="Failing iterations")] = 0
    fail_at: Annotated[StageName | None, Field(title="Breaks in")] = None
    failing_tries: Annotated[int, Field(ge=0, title="Failing tries of code")] = 0
    provider: Annotated[Token | None, Field(title="Provider held in code")] = None
    log_lines: Annotated[int, Field(ge=0, le=100_000, title="Log lines")] = 0
    ask_at: Annotated[StageName | None, Field(title="Asks in")] = None
    questions: Annotated[int, Field(ge=1, le=20, title="Questions")] = 1


@stage("scaffold", title="Setting up the project")
async def scaffold(ctx: Context) -> None:
    await _play(ctx)


@stage("code", title="Writing code", retries=3, backoff_s=(0.2, 60))
async def code(ctx: Context) -> None:
    asked: RehearsalInput = ctx.input
    async with AsyncExitStack() as held:
        if asked.provider:
            await held.enter_async_context(ctx.provider(asked.provider))
        await _play(ctx, lines=asked.log_lines)
    if ctx.tries < asked.failing_tries:
        raise TryAgain("The rehearsal stumbled, as its input asked for.", f"Try {ctx.tries + 1}.")


@stage("deps", title="Installing dependencies")
async def deps(ctx: Context) -> None:
    await _play(ctx)


@stage("checks", title="Checking")
async def checks(ctx: Context) -> None:
    await _play(ctx)
    if ctx.iteration <= ctx.input.failing_cycles:
        raise ChecksFailed(f"Told to fail by its input: failing_cycles is {ctx.input.failing_cycles}.")
    ctx.result.mkdir(exist_ok=True)
    told = {"job_id": ctx.job_id, "iterations": ctx.iteration, "input": ctx.input}
    (ctx.result / "rehearsal.json").write_bytes(to_json(told, indent=2) + b"\n")


async def _play(ctx: Context, *, lines: int = 0) -> None:
    asked: RehearsalInput = ctx.input
    if asked.ask_at == ctx.stage:
        for number in range(1, asked.questions + 1):
            colour = await ctx.ask(f"Question {number}: which colour?", choices=COLOURS, key=f"colour-{number}")
            ctx.log(f"the answer to question {number} is {colour}")
    duration_s = next((asked_s for name, asked_s in asked.stages.items() if name == ctx.stage), UNSAID_S)
    for number in range(1, lines + 1):
        ctx.log(f"line {number} of {lines} of iteration {ctx.iteration}")
        ctx.progress(number / lines, f"{number} of {lines} lines")
        await asyncio.sleep(duration_s / lines)
    if not lines:
        await asyncio.sleep(duration_s)
    if asked.fail_at == ctx.stage:
        raise StageFailed(f"The rehearsal broke in {ctx.stage}, as its input asked for.")


pipeline = Pipeline("rehearsal", (scaffold, code, deps, checks), input_as(RehearsalInput))

"""What the process of an attempt says of its calls and commands, as spans of its stage.

Calls are named by the GenAI conventions. The process runs code that nobody vouches for, so only what is configured here
gets into a name, and no free word of it into an attribute unread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry.trace import SpanKind

from libs.runtime.spans import passed
from services.worker.attempt.secrets import for_users
from services.worker.child.messages import CommandEnded, ModelCalled, ProviderEndpoint

KNOWN: Final = {"gemini": "gcp.gemini"}  # where the conventions have another word for it
OTHER: Final = "other"


def show_call(told: ModelCalled, *, endpoints: Mapping[str, ProviderEndpoint]) -> None:
    """A call to a provider. A model that is not the configured one is the user's to name, and in no span's name."""
    endpoint = endpoints.get(told.provider)
    configured = endpoint is not None and endpoint.model == told.model
    secrets = [each.key for each in endpoints.values() if each.key]
    said: dict[str, str | int] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": OTHER if endpoint is None else KNOWN.get(told.provider, told.provider),
        "gen_ai.request.model": told.model if configured else for_users(told.model, known=secrets),
        "headgate.outcome": told.outcome,
    }
    for name, tokens in (("input", told.input_tokens), ("output", told.output_tokens)):
        if tokens is not None:
            said[f"gen_ai.usage.{name}_tokens"] = tokens
    wrong = None if told.outcome == "answered" else f"the provider's answer: {told.outcome}"
    if wrong is not None:
        said["error.type"] = told.outcome
    passed(
        f"chat {told.model}" if configured else "chat",
        said,
        took_s=told.took_ms / 1000,
        kind=SpanKind.CLIENT,
        wrong=wrong,
    )


def show_command(told: CommandEnded) -> None:
    """A command. One that ended with a code may have found what it looked for: that is the stage's to judge."""
    said: dict[str, str | int | bool] = {
        "process.executable.name": told.program,
        "headgate.network": told.network,
        "headgate.outcome": told.ended_by,
    }
    if told.exit_code is not None:
        said["process.exit.code"] = told.exit_code
    wrong = None if told.ended_by == "itself" else f"the command was ended: {told.ended_by}"
    passed("command", said, took_s=told.took_ms / 1000, wrong=wrong)

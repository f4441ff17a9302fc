"""What the process of an attempt says of its calls and commands: calls are counted for the attempt's next event and for
the worker's metrics, and both are spans of their stage.

Calls are named by the GenAI conventions. The process runs code that is not trusted, so only what is configured here
gets into a name, and no free word of it into an attribute unread.
"""

import re
from collections.abc import Mapping
from typing import Final

from opentelemetry.trace import SpanKind

from headgate_contracts.events import ModelUsage
from headgate_contracts.usage import with_usage
from headgate_contracts.vocabulary import MOST_MODELS, OTHER
from libs.runtime.spans import passed
from services.worker.attempt.secrets import for_users
from services.worker.child.messages import CommandEnded, ModelCalled, ProviderEndpoint
from services.worker.signals import Signals

KNOWN: Final = {"gemini": "gcp.gemini"}  # where the conventions have another word for it
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9._:/@+-]+")


class CallBook:
    """The calls of one attempt."""

    def __init__(self, endpoints: Mapping[str, ProviderEndpoint], signals: Signals) -> None:
        self._endpoints = endpoints
        self._signals = signals
        self._since: tuple[ModelUsage, ...] = ()  # the attempt's last event

    def add(self, told: ModelCalled) -> None:
        """One is over. A model that is not the configured one is the user's to name: it is in no span's name and in no
        metric."""
        endpoint = self._endpoints.get(told.provider)
        configured = endpoint is not None and endpoint.model == told.model
        secrets = [each.key for each in self._endpoints.values() if each.key]
        model = told.model if configured else for_users(told.model, known=secrets)
        provider = OTHER if endpoint is None else told.provider
        self._since = with_usage(self._since, _usage_of(told, provider, model), most=MOST_MODELS)
        self._signals.called(told, provider=provider, model=model if configured else OTHER)
        _show(told, provider=provider, model=model, configured=configured)

    def taken(self) -> tuple[ModelUsage, ...]:
        """What came of them since this was asked last: the event that is to be written tells it."""
        since, self._since = self._since, ()
        return since


def _usage_of(told: ModelCalled, provider: str, model: str) -> ModelUsage:
    return ModelUsage(
        provider=provider,
        model=_NO_NAME.sub("_", model).strip("_")[:100] or OTHER,
        calls=1,
        input_tokens=told.input_tokens or 0,
        output_tokens=told.output_tokens or 0,
        cached_tokens=told.cached_tokens or 0,
        took_ms=told.took_ms,
    )


def _show(told: ModelCalled, *, provider: str, model: str, configured: bool) -> None:
    said: dict[str, str | int] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": KNOWN.get(provider, provider),
        "gen_ai.request.model": model,
        "headgate.outcome": told.outcome,
    }
    counted = {"input": told.input_tokens, "output": told.output_tokens, "cache_read.input": told.cached_tokens}
    for name, tokens in counted.items():
        if tokens is not None:
            said[f"gen_ai.usage.{name}_tokens"] = tokens
    wrong = None if told.outcome == "answered" else f"the provider's answer: {told.outcome}"
    if told.outcome == "broken_off":
        wrong = "the call was broken off"
    if wrong is not None:
        said["error.type"] = told.outcome
    passed(
        f"chat {model}" if configured else "chat",
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

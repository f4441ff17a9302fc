"""What a build is asked for: the job's input, read and bounded.

    {"prompt": "a URL shortener", "provider": "ollama", "model": "qwen3-coder"}

Only the prompt is required. Without a provider the first one that is configured is used; a model that is named takes
the place of the one configured.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from headgate_contracts.tokens import Token

MAX_PROMPT_CHARS = 32_000  # an input has 64 KiB; the rest of what a model reads is the project itself

Prompt = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_PROMPT_CHARS)]
Model = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$")]


class BuildInput(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: Prompt
    provider: Token | None = None
    model: Model | None = None

"""What `headgate up` is told: `HEADGATE_*` variables, or the command's options, which outrank them.

Owns the names, defaults and bounds. What services find of the rest is in `environments`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from headgate_contracts.tokens import Token
from libs.local.errors import UpSettingsWrong
from libs.local.state import DEFAULT_STATE

PREFIX: Final = "HEADGATE_"


class UpSettings(BaseSettings):
    """A description ends the sentence "set it to …" in a message."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    port: Annotated[int, Field(ge=0, le=65535, description="0 to 65535; 0 takes a free one")] = 8080
    state: Annotated[Path, Field(description="a folder, made where there is none")] = DEFAULT_STATE
    policy: Annotated[Path | None, Field(description="a TOML file, or leave it out for the defaults")] = None
    workers: Annotated[int, Field(ge=1, le=64, description="1 to 64")] = 2  # so that the loss of one is not the end
    slots: Annotated[int, Field(ge=1, le=256, description="1 to 256, for each worker")] = 4
    shard: Annotated[Token, Field(description="1 to 64 of A-Z a-z 0-9 _ -")] = "main"


def read_up_settings(options: Mapping[str, object]) -> UpSettings:
    """From the environment, and over it whatever option is not null."""
    try:
        return UpSettings.model_validate({name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        lines = [_line(detail) for detail in error.errors(include_url=False)]
        raise UpSettingsWrong(lines="\n    ".join(lines)) from None


def _line(detail: ErrorDetails) -> str:
    name = str(detail["loc"][0])
    wanted = UpSettings.model_fields[name].description
    return f"{PREFIX}{name.upper()}: {detail['input']!r} cannot be used; set it to {wanted}"

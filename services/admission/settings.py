"""What admission is told from outside, beside what all services are told."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from libs.runtime.settings import ServiceSettings


class AdmissionSettings(ServiceSettings):
    """`HEADGATE_*`."""

    http_port: Annotated[int, Field(ge=0, le=65535, description="0 to 65535; 0 takes a free one")] = 8081

    index_folder: Annotated[
        Path | None,
        Field(description="a folder of this machine for the index of jobs, or leave it out for a passing one"),
    ] = None

    @model_validator(mode="after")
    def _knows_its_users(self) -> Self:
        if not self.jwks:
            raise ValueError("HEADGATE_JWKS: is not set; set it to the key set that your users' tokens are signed with")
        return self

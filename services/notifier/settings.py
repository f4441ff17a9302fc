"""What the notifier is told from outside, beside what all services are told."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from libs.runtime.settings import ServiceSettings


class NotifierSettings(ServiceSettings):
    """`HEADGATE_*`."""

    http_port: Annotated[int, Field(ge=0, le=65535, description="0 to 65535; 0 takes a free one")] = 8082

    webhook_secret: Annotated[
        SecretStr | None,
        Field(description="signs the calls to notify_url: whsec_ and base64 of 24 to 64 bytes"),
    ] = None

    @field_validator("webhook_secret")
    @classmethod
    def _is_a_secret(cls, value: SecretStr | None) -> SecretStr | None:
        text = "" if value is None else value.get_secret_value()
        if text and re.fullmatch(r"whsec_[A-Za-z0-9+/]{32,86}={0,2}", text) is None:
            raise ValueError("write whsec_ and the base64 of 24 to 64 random bytes")
        return value if text else None

    @model_validator(mode="after")
    def _knows_its_users(self) -> Self:
        if not self.jwks:
            raise ValueError("HEADGATE_JWKS: is not set; set it to the key set that your users' tokens are signed with")
        return self

"""What the notifier is told from outside, beside what all services are told."""

from typing import Annotated, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from libs.runtime.settings import ServiceSettings
from services.notifier.receivers import receivers_in


class NotifierSettings(ServiceSettings):
    """`HEADGATE_*`."""

    http_port: Annotated[int, Field(ge=0, le=65535, description="0 to 65535; 0 takes a free one")] = 8082

    webhook_secrets: Annotated[
        SecretStr,
        Field(description='JSON, as {"hooks.example.com": ["whsec_…"]}, with base64 of 24 to 64 random bytes each'),
    ] = SecretStr("")

    @field_validator("webhook_secrets")
    @classmethod
    def _are_secrets(cls, value: SecretStr) -> SecretStr:
        try:
            receivers_in(value.get_secret_value())
        except ValueError as error:
            raise PydanticCustomError("headgate", "{what}", {"what": str(error)}) from None
        return value

    @model_validator(mode="after")
    def _knows_its_users(self) -> Self:
        if not self.jwks:
            raise ValueError("HEADGATE_JWKS: is not set; set it to the key set that your users' tokens are signed with")
        return self

"""What all services are told from outside: `HEADGATE_*` variables, read once, frozen, checked before anything starts.

Owns the shared fields and the wording of what is wrong with them. Refuses to show a secret: where a value may hold one,
a message names the variable alone.
"""

import os
import reprlib
import socket
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict, SettingsError

from headgate_contracts.tokens import Token, foreign_token
from libs.runtime.errors import SettingsWrong
from libs.runtime.tls import trusting

PREFIX: Final = "HEADGATE_"

S = TypeVar("S", bound="ServiceSettings")


def _wrong(what: str) -> PydanticCustomError:
    return PydanticCustomError("headgate", "{what}", {"what": what})


def _server_url(*schemes: str) -> AfterValidator:
    """A secret, as servers' URLs carry a password."""

    def checked(url: SecretStr) -> SecretStr:
        if not _is_url(url.get_secret_value(), schemes):
            raise _wrong(f"is not a URL that begins with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        return url

    return AfterValidator(checked)


def _http_url(url: str) -> str:
    if not _is_url(url, ("http", "https")):
        raise _wrong("is not a URL that begins with http:// or https://")
    return url


def _is_url(url: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none, a bracket that is not closed
        return False


def _odd(copies: int) -> int:
    if copies not in (1, 3, 5):
        raise _wrong("is none of 1, 3 and 5")
    return copies


def _listed(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _jwks_source(source: str) -> str:
    if "://" in source:
        return _http_url(source)
    if not Path(source).is_file():
        raise _wrong("is neither a URL nor a file that exists")
    return source


def _authorities(file: Path) -> Path:
    try:
        trusting(file)
    except OSError:  # ssl's own errors are of this kind
        raise _wrong("is no PEM file that can be read") from None
    return file


def _instance() -> str:
    return foreign_token(f"{socket.gethostname()}-{os.getpid()}")


LogLevel = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_upper)]
JwksSource = Annotated[str, AfterValidator(_jwks_source)]
JwksSources = Annotated[tuple[JwksSource, ...], NoDecode, BeforeValidator(_listed)]  # with commas, not JSON


class ServiceSettings(BaseSettings):
    """What all four share. Each service's own class adds its fields, and its checks across fields as validators.

    A description ends the sentence "set it to …" in a message.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    nats_url: Annotated[
        SecretStr, _server_url("nats", "tls"), Field(description="nats://user:password@host:4222, or tls://")
    ]
    redis_url: Annotated[
        SecretStr, _server_url("redis", "rediss"), Field(description="redis://user:password@host:6379/0, or rediss://")
    ]
    ca_file: Annotated[
        Path | None,
        AfterValidator(lambda file: file and _authorities(file)),
        Field(description="the authorities of NATS and Valkey as PEM, or leave it out where they speak without TLS"),
    ] = None
    log_replicas: Annotated[
        int, AfterValidator(_odd), Field(description="1, 3 or 5, as `headgate migrate --replicas` was told")
    ] = 1
    policy: Annotated[Path | None, Field(description="a TOML file, or leave it out for the defaults")] = None
    shard: Annotated[Token, Field(description="1 to 64 of A-Z a-z 0-9 _ -, the same in all services")] = "main"
    instance: Token = Field(
        default_factory=_instance, description="1 to 64 of A-Z a-z 0-9 _ -, another for each process"
    )

    http_host: Annotated[str, Field(description="an address of this machine")] = "127.0.0.1"  # nobody else by default
    http_port: Annotated[int, Field(ge=0, le=65535, description="0 to 65535; 0 takes a free one")] = 0
    # So that a network may let a scraper in where no client comes.
    metrics_port: Annotated[
        int | None, Field(ge=0, le=65535, description="0 to 65535, or leave it out for the port of all else")
    ] = None

    jwks: Annotated[
        JwksSources, Field(description="the files or http(s) URLs of JSON Web Key Sets, with commas between them")
    ] = ()
    jwt_issuer: Annotated[str, Field(min_length=1, description="the `iss` of tokens")] = "headgate"
    jwt_audience: Annotated[str, Field(min_length=1, description="the `aud` of tokens")] = "headgate"

    log_level: Annotated[LogLevel, Field(description="DEBUG, INFO, WARNING or ERROR")] = "INFO"
    # How long a server may be silent before it counts as away: one heartbeat.
    outage_patience_s: Annotated[float, Field(gt=0, allow_inf_nan=False, description="seconds, more than 0")] = 5.0


def read_settings(kind: type[S]) -> S:
    """The settings from the environment, or every reason why not."""
    try:
        return kind.model_validate({})  # every value comes from the environment
    except ValidationError as error:
        raise SettingsWrong([_line(kind, detail) for detail in error.errors(include_url=False)]) from None
    except SettingsError as error:  # a variable that should be JSON
        raise SettingsWrong([str(error)]) from None


def _line(kind: type[ServiceSettings], detail: ErrorDetails) -> str:
    if not detail["loc"]:  # a check across fields: its author named the variables
        return detail["msg"].removeprefix("Value error, ")
    name = str(detail["loc"][0])
    field = kind.model_fields[name]
    said = _said(detail, secret=field.annotation is SecretStr)
    return f"{PREFIX}{name.upper()}: {said}; set it to {field.description or 'another value'}"


def _said(detail: ErrorDetails, *, secret: bool) -> str:
    if detail["type"] == "missing":
        return "is not set"
    what = detail["msg"] if detail["type"] == "headgate" else "cannot be used"
    hidden = secret or "@" in str(detail["input"])  # a password in a URL of any kind
    return f"what is set {what}" if hidden else f"{reprlib.repr(detail['input'])} {what}"

"""What a worker is told from outside, beside what all services are told."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

from headgate_contracts.tokens import Token
from libs.runtime.settings import ServiceSettings

MIB = 1024 * 1024


def _listed(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Modules = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed), Field(min_length=1)]  # with commas, not JSON


class WorkerSettings(ServiceSettings):
    """`HEADGATE_*`."""

    pool: Annotated[Token, Field(description="the pool whose jobs it runs: 1 to 64 of A-Z a-z 0-9 _ -")] = "default"
    slots: Annotated[int, Field(ge=1, le=256, description="1 to 256 jobs at once")] = 4
    pipelines: Annotated[Modules, Field(description="the modules that pipelines are in, with commas between them")] = (
        "services.worker.rehearsal",
    )
    workspaces: Annotated[Path, Field(description="a folder for what jobs write while they run")] = (
        Path(tempfile.gettempdir()) / "headgate-workspaces"
    )
    # Ten seconds are what a process commonly gets before it is killed: the grace, the end, and some for the rest.
    drain_grace_s: Annotated[float, Field(ge=0, le=86_400, description="seconds to finish when told to stop")] = 6.0
    end_grace_s: Annotated[float, Field(ge=0, le=60, description="seconds from SIGTERM to SIGKILL for a stage")] = 1.0
    max_log_lines: Annotated[int, Field(ge=1, description="lines of one attempt's log, 1 or more")] = 100_000
    max_result_bytes: Annotated[int, Field(ge=1024, description="bytes of a packed result, 1024 or more")] = 256 * MIB

"""What a worker is told from outside, beside what all services are told."""

import os
import tempfile
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from pydantic_settings import NoDecode

from headgate_contracts.tokens import Token
from libs.runtime.settings import ServiceSettings


def _listed(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _absolute(path: Path) -> Path:
    """Processes of attempts stand in a folder that commands write to: what is relative would be looked for there."""
    if not path.is_absolute():
        raise ValueError("relative")
    return path


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]
ProviderName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,64}$")]
ProviderNames = Annotated[tuple[ProviderName, ...], NoDecode, BeforeValidator(_listed)]
Modules = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]  # with commas, not JSON
BUILT_IN: Final = ("services.worker.build", "services.worker.rehearsal")


class WorkerSettings(ServiceSettings):
    """`HEADGATE_*`."""

    pool: Annotated[Token, Field(description="the pool whose jobs it runs: 1 to 64 of A-Z a-z 0-9 _ -")] = "default"
    slots: Annotated[int, Field(ge=1, le=256, description="1 to 256 jobs at once")] = 4
    pipelines: Annotated[Modules, Field(description="modules of more pipelines, with commas between them")] = ()
    providers: Annotated[
        ProviderNames, Field(description="providers it may call, in order, with commas between them")
    ] = ()
    # These two are read by the pipeline `build`, in the process of an attempt; here they are checked at start.
    index: Annotated[str, Field(pattern=r"^(https?://\S+)?$", description="an http(s) address, or empty for none")] = (
        "https://pypi.org/simple"
    )
    wheels: Annotated[
        AbsolutePath | None, Field(description="the whole path of a folder of wheels, or leave it out")
    ] = None
    workspaces: Annotated[AbsolutePath, Field(description="the path from / to a folder for what jobs write")] = (
        Path(tempfile.gettempdir()).absolute() / f"headgate-workspaces-{os.getuid()}"
    )
    sandbox: Annotated[
        Literal["auto", "bubblewrap", "plain", "trusted"], Field(description="auto, bubblewrap, plain or trusted")
    ] = "auto"
    sandbox_uids: Annotated[str, Field(description="the users that commands run as where the worker is root")] = (
        "58000-58255"
    )
    sandbox_cgroup: Annotated[Path | None, Field(description="a folder of cgroup v2 that is delegated to us")] = None
    # Ten seconds are what a process commonly gets before it is killed: the grace, the end, and some for the rest.
    drain_grace_s: Annotated[float, Field(ge=0, le=86_400, description="seconds to finish when told to stop")] = 6.0
    end_grace_s: Annotated[float, Field(ge=0, le=60, description="seconds from SIGTERM to SIGKILL for a stage")] = 1.0

    @property
    def modules(self) -> tuple[str, ...]:
        """Of all pipelines: what is built in comes first, so that no other pipeline takes their names."""
        return tuple(dict.fromkeys((*BUILT_IN, *self.pipelines)))

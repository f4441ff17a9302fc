"""`up.json`: where a running Headgate is, for people, scripts and the command line.

Owns its shape, its writing and its reading. It is there while everything runs; a start removes an old one first, so
to wait for the file is to wait for a system that is ready. It holds tokens and passwords: for its owner alone.
"""

from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from libs.local.state import write_private


class RunningServer(BaseModel):
    """A server's process."""

    model_config = ConfigDict(frozen=True)

    name: str
    pid: int


class RunningService(RunningServer):
    """A service's process, and where it answers for itself."""

    url: str


class UpFile(BaseModel):
    """All of it. `nats_url` may read the log and nothing else; `redis_url` may do anything."""

    model_config = ConfigDict(frozen=True)

    url: str
    user_token: str
    operator_token: str
    tokens_expire_at: AwareDatetime
    nats_url: str
    redis_url: str
    services: tuple[RunningService, ...]
    servers: tuple[RunningServer, ...]

    def write(self, path: Path) -> None:
        """Atomically: a reader sees the old one or the new one."""
        write_private(path, self.model_dump_json(indent=2) + "\n")


def read_up_file(path: Path) -> UpFile | None:
    """Null where nothing runs, as far as the file tells."""
    try:
        return UpFile.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None

"""The folder in which one machine's Headgate keeps everything, so that a second start goes on where the first ended.

    .headgate/
      lock            held by the one supervisor that runs here
      passwords.json  of every user of NATS and Valkey, made once
      webhooks.json   each receiver's secrets, made once; an operator may write there, two for one while they change
      keys/           the key pair that signs tokens, and its public half for the services
      nats/ valkey/   the servers' configuration and data: the log is in there
      caddy/          the gateway's configuration, and what it was asked
      logs/           what the services say
      workspaces/     what jobs write while they run
      index/          what lists of jobs are read from; may be deleted
      wheels/         what builds are made of, where set-up has not brought it
      up.json         while it runs: where everything is

Owns the layout, the lock and the passwords. All of it is for its owner's eyes alone. Refuses to be used by two
supervisors at once: they would start two servers on one log.
"""

import base64
import errno
import fcntl
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Final

from libs.local.errors import AlreadyUp, StateUnusable

VARIABLE: Final = "HEADGATE_STATE"
DEFAULT_STATE: Final = Path(".headgate")
PASSWORD_BYTES: Final = 24
WEBHOOK_SECRET_BYTES: Final = 32
ROOM_BYTES: Final = 64 * 1024 * 1024  # below that workers take nothing
OF_A_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})  # said without the name of a file


class StateFolder:
    """Made when it is first used. `lock` and `unlock` may be called twice."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._lock: IO[str] | None = None

    @property
    def keys(self) -> Path:
        return self.root / "keys"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def index(self) -> Path:
        return self.root / "index"

    @property
    def workspaces(self) -> Path:
        return self.root / "workspaces"

    @property
    def wheels(self) -> Path:
        return self.root / "wheels"

    @property
    def teams(self) -> Path:
        """What the nats-server of this machine knows of other teams. Those of compose and Kubernetes have another."""
        return self.root / "nats" / "teams.conf"

    @property
    def deployed_teams(self) -> Path:
        return self.root / "secrets" / "teams" / "teams.conf"

    @property
    def up_file(self) -> Path:
        return self.root / "up.json"

    @property
    def is_ours(self) -> bool:
        return self._lock is not None

    def lock(self) -> None:
        """For this process alone, until it ends in whatever way."""
        if self._lock is not None:
            return
        with self.usable():
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _locked(self.root / "lock")
            free_bytes = shutil.disk_usage(self.root).free
        if free_bytes < ROOM_BYTES:
            raise StateUnusable(folder=self.root, reason=f"its disk has {free_bytes // 1024**2} MiB left")

    @contextmanager
    def usable(self) -> Generator[None]:
        """Around whatever is written there: what the disk refuses is said with what to do."""
        try:
            yield
        except OSError as error:
            if error.filename is None and error.errno not in OF_A_DISK:
                raise
            raise StateUnusable(folder=error.filename or self.root, reason=error.strerror) from error

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.truncate(0)
            self._lock.close()
            self._lock = None

    def passwords(self, users: Iterable[str]) -> dict[str, str]:
        """One for each user; those that were made before stay as they are."""
        path = self.root / "passwords.json"
        known: Mapping[str, str] = _read_passwords(path) if path.exists() else {}
        wanted = {user: known.get(user) or secrets.token_urlsafe(PASSWORD_BYTES) for user in users}
        if wanted.items() - known.items():
            write_private(path, json.dumps({**known, **wanted}, indent=2) + "\n")
        return wanted

    def webhook_secrets(self, receivers: Iterable[str]) -> dict[str, list[str]]:
        """Each receiver's own, the newest first. Those that stand in the file stay as they are, also those of an
        operator's hand."""
        path = self.root / "webhooks.json"
        known = _read_webhook_secrets(path) if path.exists() else {}
        made = {receiver: [_webhook_secret()] for receiver in receivers if not _has_one(receiver, known)}
        if made:
            write_private(path, json.dumps({**known, **made}, indent=2) + "\n")
        return {**known, **made}


def _webhook_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(WEBHOOK_SECRET_BYTES)).decode()}"


def _has_one(receiver: str, known: Iterable[str]) -> bool:
    """Whole, or for parts of it."""
    return any(place == receiver or place.startswith(f"{receiver}/") for place in known)


def _locked(path: Path) -> IO[str]:
    """Held by this process, whose number stands in it."""
    with ExitStack() as closing:
        held = closing.enter_context(path.open("a+", encoding="utf-8"))
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            held.seek(0)
            raise AlreadyUp(folder=path.parent, pid=held.read().strip() or "unknown") from error
        held.truncate(0)
        held.write(f"{os.getpid()}\n")
        held.flush()
        closing.pop_all()
    return held


def state_here() -> StateFolder:
    """Where this machine's Headgate keeps its state, for commands that do not start it."""
    return StateFolder(Path(os.environ.get(VARIABLE) or DEFAULT_STATE))


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, for its owner alone."""
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # readable by its owner alone
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _read_passwords(path: Path) -> dict[str, str]:
    try:
        return {str(user): str(password) for user, password in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise StateUnusable(folder=path, reason="it cannot be read as passwords") from error


def _read_webhook_secrets(path: Path) -> dict[str, list[str]]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return {str(receiver): [str(secret) for secret in theirs] for receiver, theirs in told.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise StateUnusable(folder=path, reason="it cannot be read as secrets of webhooks") from error

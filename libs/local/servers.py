"""The two servers Headgate stands on, as processes of this machine: nats-server and valkey-server.

Owns how they are set up for one machine and for tests; deployments use the official images. They listen on the loopback
address alone, on ports that stay the same over restarts, and keep their data in the folder they are given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from libs.local.nats_config import ClusterSeat, NatsConfig, NatsUser, require_url_safe
from libs.local.ports import free_ports
from libs.local.process import ServerProcess
from libs.local.programs import NATS_SERVER, VALKEY_SERVER, path_of

DEFAULT_NATS_USERS = (NatsUser("headgate", "headgate"),)
SYSTEM_USER = NatsUser("system", "system")

Fsync = Literal["always", "everysec"]


class NatsServer(ServerProcess):
    """One nats-server with JetStream; alone, or in a seat of a cluster."""

    ready_line = "Server is ready"

    def __init__(
        self,
        folder: Path,
        *,
        name: str = "nats",
        users: Sequence[NatsUser] = DEFAULT_NATS_USERS,
        more_accounts: Mapping[str, Sequence[NatsUser]] | None = None,
        system_user: NatsUser = SYSTEM_USER,
        sync_interval: str = "always",
        port: int | None = None,
        seat: ClusterSeat | None = None,
        teams: str | None = None,
    ) -> None:
        super().__init__(name=name, folder=folder)
        self.port = port or free_ports(1)[0]
        self._users = tuple(users)
        self._more_accounts = dict(more_accounts or {})
        self._system_user = system_user
        self._sync_interval = sync_interval
        self._seat = seat
        self._teams = teams

    @property
    def url(self) -> str:
        """For the first of the users."""
        return self.url_for(self._users[0])

    @property
    def system_url(self) -> str:
        """For the system account: step-downs and whatever else only an operator of NATS may do."""
        return self.url_for(self._system_user)

    def url_for(self, user: NatsUser) -> str:
        return f"nats://{user.name}:{user.password}@127.0.0.1:{self.port}"

    def choose_ports(self) -> None:
        self.port = free_ports(1)[0]

    def prepare(self) -> list[str]:
        config = NatsConfig(
            name=self.name,
            port=self.port,
            store=self.folder,  # the server adds /jetstream
            users=self._users,
            more_accounts=self._more_accounts,
            system_user=self._system_user,
            sync_interval=self._sync_interval,
            seat=self._seat,
            teams=self._teams,
        )
        path = _write_private(self.folder / f"{self.name}.conf", config.render())
        return [str(path_of(NATS_SERVER)), "--config", str(path)]


@dataclass(frozen=True, slots=True)
class ValkeyUser:
    """A user and its ACL rules, in Valkey's own words: `~hg:* -@all +evalsha`."""

    name: str
    password: str
    rules: str = "~* &* +@all"

    def __post_init__(self) -> None:
        require_url_safe(self.name, self.password)

    def as_acl(self) -> str:
        return f"user {self.name} on >{self.password} {self.rules}"


class ValkeyServer(ServerProcess):
    """One valkey-server. Without `fsync` it keeps nothing on disk; without users the loopback address is trusted."""

    ready_line = "Ready to accept connections"

    def __init__(
        self, folder: Path, *, name: str = "valkey", users: Sequence[ValkeyUser] = (), fsync: Fsync | None = None
    ) -> None:
        super().__init__(name=name, folder=folder)
        self.port = free_ports(1)[0]
        self._users = tuple(users)
        self._fsync = fsync

    @property
    def url(self) -> str:
        """For the first of the users, or for anybody where there are none."""
        return self.url_for(self._users[0]) if self._users else f"redis://127.0.0.1:{self.port}/0"

    def url_for(self, user: ValkeyUser) -> str:
        return f"redis://{user.name}:{user.password}@127.0.0.1:{self.port}/0"

    def choose_ports(self) -> None:
        self.port = free_ports(1)[0]

    def prepare(self) -> list[str]:
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f'dir "{self.folder}"',
            'save ""',  # no snapshots: the log is the truth, and a half-old view would only be folded again
            f"appendonly {'yes' if self._fsync else 'no'}",
            f"appendfsync {self._fsync or 'no'}",
            "maxmemory-policy noeviction",  # an evicted lease would be a slot given twice
        ]
        if self._users:
            acl = "\n".join(["user default off", *(user.as_acl() for user in self._users)])
            lines.append(f'aclfile "{_write_private(self.folder / f"{self.name}.acl", acl + chr(10))}"')
        path = _write_private(self.folder / f"{self.name}.conf", "\n".join(lines) + "\n")
        return [str(path_of(VALKEY_SERVER)), str(path)]


def _write_private(path: Path, text: str) -> Path:
    """Passwords stand in it in the clear, so it is made for its owner's eyes before anything is written."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    return path

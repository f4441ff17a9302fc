"""The gateway of one machine: Caddy, behind a door that is ours.

Owns the process and its folder. The socket it listens on is made before anything is started and handed down to each new
process: so nobody else gets the port, though Caddy itself would share it, and a client that comes before Caddy is
there, or while it is started again, waits in the socket. What Caddy does is in `caddyfile`.
"""

import socket
from pathlib import Path
from typing import Final

from libs.local.caddyfile import Caddyfile, GatewayBounds
from libs.local.process import ServerProcess
from libs.local.programs import CADDY, path_of
from libs.local.service import HOST

BOUNDS: Final = GatewayBounds()
BACKLOG: Final = 4096  # of clients that come while nobody accepts; the kernel may hold fewer (net.core.somaxconn)


def open_door(port: int) -> socket.socket:
    """This port, or with 0 any that is free, for us alone. Who comes early waits until somebody accepts."""
    door = socket.socket()
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((HOST, port))
        door.listen(BACKLOG)  # at once: Linux lets others bind where nobody listens yet
    except OSError:
        door.close()
        raise
    return door


class CaddyServer(ServerProcess):
    """Forwards what comes through the door, which stays its opener's."""

    ready_line = "serving initial configuration"

    def __init__(
        self, folder: Path, *, door: socket.socket, admission: str, notifier: str, bounds: GatewayBounds = BOUNDS
    ) -> None:
        super().__init__(name="caddy", folder=folder)
        self._told = Caddyfile(
            admission=admission,
            notifier=notifier,
            port=door.getsockname()[1],
            listen=f"fd/{door.fileno()}",
            requests_log="requests.log",
            bounds=bounds,
        )
        self.inherited = (door.fileno(),)
        self.environment = {"XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._told.port}"

    def choose_ports(self) -> None:
        """There is none to choose: the door is there."""

    def prepare(self) -> list[str]:
        path = self.folder / "Caddyfile"
        path.write_text(self._told.render(), encoding="utf-8")
        return [str(path_of(CADDY)), "run", "--config", str(path), "--adapter", "caddyfile"]

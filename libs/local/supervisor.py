"""The whole system on one machine: two servers, the four services, a gateway in front of them.

    start    lock ─► nats-server, Valkey ─► streams and buckets ─► scheduler, workers, admission, notifier,
                     each forked once a process that was launched first has loaded it
    ready    all of them ready ─► gateway ─► up.json
    stop     up.json ─► workers, admission, notifier ─► scheduler ─► gateway ─► nats-server, Valkey ─► lock

At the end open streams are told so by the notifier while the gateway still carries them, the workers hand over what
they run, and the scheduler sees that. Owns the order and `up.json`. What dies in between is started again by `keeping`.
Refuses to hold anything that is not in the state folder: a second start goes on where the first one ended, however it
ended.
"""

import asyncio
import os
import secrets
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from headgate_contracts.tokens import ulid
from headgate_contracts.vocabulary import Tier
from libs.eventlog import LogSettings, connect, migrate
from libs.eventlog.teams import settle_teams
from libs.local.caddy import CaddyServer, open_door
from libs.local.environments import SANDBOX, sandbox_here
from libs.local.errors import GatewayPortTaken, NotReady
from libs.local.forks import MODULES, ForkServer, can_fork
from libs.local.keeping import SupervisedProcess
from libs.local.nats_config import TEAMS_FILE
from libs.local.process import ChildProcess
from libs.local.provisions import OPERATOR_SCOPE, TOKEN_TTL_S, USER_SCOPE, Provisions
from libs.local.servers import NatsServer, ValkeyServer
from libs.local.service import HOST, ServiceProcess
from libs.local.settings import UpSettings
from libs.local.state import StateFolder
from libs.local.teams import consumers_of, teams_in
from libs.local.up_file import RunningServer, RunningService, UpFile
from libs.local.wheels import equipment
from libs.policy import load_policy
from libs.policy.model import DAY_S

Say = Callable[[str], None]
C = TypeVar("C", bound=ChildProcess)

LOOK_EVERY_S: Final = 0.05
SAY_AFTER_S: Final = 15.0  # who is not ready by then is named
READY_WITHIN_S: Final = 300.0  # a long log is folded first, on a busy machine; an idle one with a new log needs 2


class Supervisor:
    """One machine's Headgate. `start`, `ready`, then `stop` whatever happened; the latter may be called at any time.

    `forks` may have been launched before.
    """

    name = "headgate"

    def __init__(
        self,
        settings: UpSettings,
        *,
        say: Say,
        modules: Mapping[str, str] = MODULES,
        forks: ForkServer | None = None,
    ) -> None:
        self.state = StateFolder(settings.state)
        self._settings = settings
        self._say = say
        self._modules = modules
        self._servers: list[SupervisedProcess[NatsServer] | SupervisedProcess[ValkeyServer]] = []
        self._services: dict[str, list[SupervisedProcess[ServiceProcess]]] = {}
        self._door: socket.socket | None = None
        self._forks = forks
        self._gateway: SupervisedProcess[CaddyServer] | None = None
        self._up: UpFile | None = None
        self._token_ttl_s = TOKEN_TTL_S

    async def start(self) -> None:
        """Until every process runs. What it needs that is not there is a fault."""
        policy = load_policy(self._settings.policy, environ=os.environ)
        self._sandbox = sandbox_here(os.environ, platform=sys.platform)
        self._token_ttl_s = min(TOKEN_TTL_S, policy.tokens.longest_days * DAY_S)
        self.state.lock()
        with self.state.usable():
            self.state.up_file.unlink(missing_ok=True)
            self._door = self._open_door()
            self._load_services()
            self._provisions = Provisions.of(self._settings, self.state, policy)
            self._shell = (
                os.environ | {SANDBOX: self._sandbox} | await equipment(os.environ, self.state.wheels, say=self._say)
            )
            self._make_servers()
            await _all(server.start() for server in self._servers)
            await self._migrate(LogSettings(retention=policy.retention, pools=policy.pools.served))
            self._services = {kind: [self._service(kind, name) for name in self._names(kind)] for kind in self._modules}
            await _all(service.start() for service in self._every_service())

    async def ready(self) -> UpFile:
        """Until all of it can be used; then it is in `up.json`, and stays there for as long as it runs. What ends again
        and again, or is not ready after a long time, is a fault."""
        await self._until_ready()
        for note in dict.fromkeys(note for kept in self._every_service() for note in kept.child.notes):
            self._say(note)
        with self.state.usable():
            gateway = await self._start_gateway()
        provisions = self._provisions
        ttl_s = self._token_ttl_s
        user = provisions.token("user", tier=Tier.PARTNER, scope=USER_SCOPE, ttl_s=ttl_s)
        operator = provisions.token("operator", tier=Tier.CTO_SCALE, scope=OPERATOR_SCOPE, ttl_s=ttl_s)
        self._up = UpFile(
            url=gateway.url,
            user_token=user.text,
            operator_token=operator.text,
            tokens_expire_at=user.expires_at,
            nats_url=self._nats.url_for(provisions.nats["consumer"]),
            redis_url=self._valkey.url,
            services=(),
            servers=(),
        )
        with self.state.usable():
            self._tell()
        return self._up_now()

    async def ended(self) -> None:
        """Never, but for a fault of ours."""
        await asyncio.gather(*(kept.ended() for kept in (*self._servers, *self._every_service())))

    async def stop(self) -> None:
        """Until nothing runs any more. Where another runs on this folder, nothing of it is touched."""
        if not self.state.is_ours:
            return
        self._up = None
        self.state.up_file.unlink(missing_ok=True)
        others = [kept for kind, services in self._services.items() if kind != "scheduler" for kept in services]
        await _all(kept.stop() for kept in others)
        await _all(kept.stop() for kept in self._services.get("scheduler", []))
        if self._forks is not None:
            await self._forks.stop()
        if self._gateway is not None:
            await self._gateway.stop()
        if self._door is not None:
            self._door.close()
        await _all(server.stop() for server in self._servers)
        self.state.unlock()

    def hurry(self) -> None:
        """While it stops: a process that still finishes something gets a second signal, and finishes nothing."""
        for kept in self._every_service():
            kept.child.hurry()

    def _make_servers(self) -> None:
        provisions, root = self._provisions, self.state.root
        self._teams = teams_in(self.state.teams)
        users = list(provisions.nats.values())
        self._nats = NatsServer(root / "nats", users=users, system_user=provisions.nats_system, teams=TEAMS_FILE)
        self._valkey = ValkeyServer(root / "valkey", users=list(provisions.valkey.values()))
        self._servers = [self._kept(self._nats), self._kept(self._valkey)]

    def _load_services(self) -> None:
        """What they import, while the servers start; where nothing is forked each loads its own."""
        if self._forks is None and can_fork():
            self._forks = ForkServer(tuple(dict.fromkeys(self._modules.values())), folder=self.state.logs)
        if self._forks is not None:
            self._forks.settle(self.state.logs)
            self._forks.launch()

    async def _migrate(self, settings: LogSettings) -> None:
        client = await connect(self._nats.url_for(self._provisions.nats["operator"]), name="migrate")
        try:
            await migrate(client, settings, new_epoch=ulid(time.time_ns() // 1_000_000, secrets.token_bytes(10)))
            await settle_teams(client, consumers_of(self._teams))
        finally:
            await client.close()

    async def _until_ready(self) -> None:
        time = asyncio.get_running_loop().time
        say_at, give_up_at = time() + SAY_AFTER_S, time() + READY_WITHIN_S
        while missing := await self._not_ready():
            for failure in (kept.failure for kept in missing if kept.failure):
                raise failure
            if time() >= give_up_at:
                raise NotReady(within_s=READY_WITHIN_S, lines=_said_by(missing), logs=self.state.logs)
            if time() >= say_at:
                say_at += SAY_AFTER_S
                self._say(f"still waiting, with what was said last, for\n    {_said_by(missing)}")
            await asyncio.sleep(LOOK_EVERY_S)

    async def _not_ready(self) -> list[SupervisedProcess[ServiceProcess]]:
        every = self._every_service()
        answers = await asyncio.gather(*(kept.child.ready() for kept in every))
        return [kept for kept, ready in zip(every, answers, strict=True) if not ready]

    def _names(self, kind: str) -> Sequence[str]:
        """The first worker is called as all services are; the others have a number."""
        return (
            ["worker", *(f"worker-{n}" for n in range(2, self._settings.workers + 1))] if kind == "worker" else [kind]
        )

    def _service(self, kind: str, name: str) -> SupervisedProcess[ServiceProcess]:
        environment = self._provisions.environment(
            kind, name=name, nats_url=self._nats.url, redis_url=self._valkey.url, inherited=self._shell
        )
        return self._kept(
            ServiceProcess(
                self._modules[kind], name=name, folder=self.state.logs, environment=environment, forks=self._forks
            )
        )

    def _kept(self, child: C) -> SupervisedProcess[C]:
        return SupervisedProcess(child, changed=self._tell, say=self._say)

    def _every_service(self) -> list[SupervisedProcess[ServiceProcess]]:
        return [kept for services in self._services.values() for kept in services]

    def _open_door(self) -> socket.socket:
        try:
            return open_door(self._settings.port)
        except OSError as error:
            raise GatewayPortTaken(port=self._settings.port) from error

    async def _start_gateway(self) -> CaddyServer:
        """Once the services are ready, as they keep their ports from then on."""
        assert self._door is not None
        folder = self.state.root / "caddy"
        server = CaddyServer(folder, door=self._door, admission=self._at("admission"), notifier=self._at("notifier"))
        self._gateway = self._kept(server)
        await self._gateway.start()
        return server

    def _at(self, kind: str) -> str:
        return f"{HOST}:{self._services[kind][0].child.port}"

    def _tell(self) -> None:
        """Write down who runs, once it is known where."""
        if self._up is not None:
            self._up_now().write(self.state.up_file)

    def _up_now(self) -> UpFile:
        assert self._up is not None
        services = tuple(RunningService(name=k.name, pid=k.pid, url=k.child.url) for k in self._every_service())
        kept_servers = (*self._servers, *([] if self._gateway is None else [self._gateway]))
        servers = tuple(RunningServer(name=kept.name, pid=kept.pid) for kept in kept_servers)
        return self._up.model_copy(update={"services": services, "servers": servers})


def _said_by(missing: Iterable[SupervisedProcess[ServiceProcess]]) -> str:
    """A line each."""
    return "\n    ".join(f"{kept.name}: {kept.child.last_words()}" for kept in missing)


async def _all(acts: Iterable[Awaitable[None]]) -> None:
    """All at once, and to their end; then the first fault, if there was one."""
    ends = await asyncio.gather(*acts, return_exceptions=True)
    for fault in (end for end in ends if end is not None):
        raise fault

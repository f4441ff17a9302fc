"""From settings to clients: the part that is the same in each service's composition root.

    telemetry ─► HTTP server (alive, not ready) ─► NATS ─► the log, looked at ─► the view's store

Each of them is waited for, said once, for as long as it takes: a service that starts before its servers is alive and
not ready. What the guard refuses is no matter of time: the service ends and says the difference.
Owns the order and the names. Refuses everything that is one service's own; what clients meet is in `public`.
"""

import asyncio
import os
import secrets
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeVar

from faststream.nats import NatsBroker
from nats.aio.client import Client
from opentelemetry.metrics import Meter, Observation
from starlette.types import ASGIApp

from headgate_contracts.tokens import ulid
from libs.eventlog import JetStreamLog, LogMissing, LogSettings, LogUnavailable, connect, open_log
from libs.foundation.live import AWAY, hang_up
from libs.policy import PolicyInForce, load_policy
from libs.runtime.clock import Clock, SystemClock
from libs.runtime.connect import wait_for
from libs.runtime.gate import Gate
from libs.runtime.http import HttpServer
from libs.runtime.lifecycle import Health, Service
from libs.runtime.probes import Probes
from libs.runtime.settings import ServiceSettings
from libs.runtime.spans import lent
from libs.runtime.telemetry import Telemetry
from libs.runtime.tls import trusting

NATS: Final = "NATS"
LOG: Final = "the log"
VIEW: Final = "the view's store"
S = TypeVar("S", bound=ServiceSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Base(Generic[S]):
    """What a service has before it has asked anybody."""

    settings: S
    policy: PolicyInForce
    clock: Clock
    health: Health
    telemetry: Telemetry
    gate: Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground(Base[S]):
    """What a composition root goes on from."""

    nc: Client
    log: JetStreamLog

    def new_id(self) -> str:
        """A ULID for an event, made once."""
        return ulid(self.clock.now_ms(), secrets.token_bytes(10))

    async def live(self, service: Service, broker: NatsBroker) -> None:
        """Start the connection for what is not kept, once the server is there."""
        service.closing("the live connection", partial(hang_up, broker))
        await wait_for(NATS, broker.start, away=AWAY, health=self.health, clock=self.clock)


async def bootstrap(service: Service, settings: S, *, needs: tuple[str, ...]) -> Ground[S]:
    """The ground of a service without clients: everything started, waited for, and closed in its turn. It can be looked
    at until its end."""
    base = await start_base(service, settings, needs=needs)
    await listen(service, base)
    return await connected(service, base)


async def listen(
    service: Service, base: Base[S], *, rest: ASGIApp | None = None, leaving: asyncio.Event | None = None
) -> None:
    """From here on it answers. Metrics have a port of their own where one is set, which outlives what clients ask."""
    host, port, apart = base.settings.http_host, base.settings.http_port, base.settings.metrics_port
    probes = partial(Probes, gate=base.gate, health=base.health, telemetry=base.telemetry)
    if apart is not None:
        await service.start(HttpServer(probes(), host=host, port=apart))
    with lent(base.telemetry.tracer):  # to whatever answers a request
        await service.start(HttpServer(probes(rest=rest, metrics=apart is None), host=host, port=port, leaving=leaving))


async def start_base(service: Service, settings: S, *, needs: tuple[str, ...]) -> Base[S]:
    policy = PolicyInForce.of(load_policy(settings.policy, environ=os.environ))
    telemetry = await service.start(telemetry_of(service.name, settings))
    show_tasks(telemetry.meter)
    return Base(
        settings=settings,
        policy=policy,
        clock=SystemClock(),
        health=Health(*needs),
        telemetry=telemetry,
        gate=Gate(),
    )


async def connected(service: Service, base: Base[S]) -> Ground[S]:
    """With the log, and the connection on which it is asked."""
    waited = partial(wait_for, health=base.health, clock=base.clock)
    url, tls = base.settings.nats_url.get_secret_value(), trusting(base.settings.ca_file)
    shape = LogSettings(replicas=base.settings.log_replicas, retention=base.policy.retention)
    nc = await waited(NATS, lambda: connect(url, name=service.name, tls=tls), away=(LogUnavailable,))
    service.closing(NATS, nc.close)
    log = await waited(LOG, lambda: open_log(nc, shape, clock=base.clock), away=(LogUnavailable, LogMissing))
    return Ground(
        settings=base.settings,
        policy=base.policy,
        clock=base.clock,
        health=base.health,
        telemetry=base.telemetry,
        gate=base.gate,
        nc=nc,
        log=log,
    )


def telemetry_of(name: str, settings: ServiceSettings) -> Telemetry:
    """As its settings tell. The one place that makes it, so that a test may look at what four services say at once."""
    return Telemetry(name, instance=settings.instance, log_level=settings.log_level)


def show_tasks(meter: Meter) -> None:
    """From now on, of the loop that this is called on; metrics are read on other threads too."""
    loop = asyncio.get_running_loop()
    meter.create_observable_gauge(
        "headgate_tasks",
        [lambda _: [Observation(len(asyncio.all_tasks(loop)))]],
        description="tasks on the loop of this process",
    )

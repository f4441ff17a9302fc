"""From settings to clients: the part that is the same in each service's composition root.

    telemetry ─► HTTP server (alive, not ready) ─► NATS ─► the log, looked at ─► the view's store

Each of them is waited for, said once, for as long as it takes: a service that starts before its servers is alive and
not ready. What the guard refuses is no matter of time: the service ends and says the difference.
Owns the order and the names. Refuses everything that is one service's own.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Final, Generic, TypeVar

from faststream.nats import NatsBroker
from nats.aio.client import Client

from headgate_contracts.tokens import ulid
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.eventlog import (
    JetStreamLog,
    LogFull,
    LogMissing,
    LogSettings,
    LogUnavailable,
    OutcomeUnknown,
    connect,
    open_log,
)
from libs.eventlog.history import JetStreamScans
from libs.foundation.live import AWAY, hang_up
from libs.foundation.revoking import RevocationFollower
from libs.policy import Policy, load_policy
from libs.runtime.auth import Tokens
from libs.runtime.claims import DAY_S, Terms
from libs.runtime.clock import Clock, SystemClock
from libs.runtime.connect import wait_for
from libs.runtime.descriptors import allow_all_descriptors
from libs.runtime.errors import KeysAway
from libs.runtime.gate import Gate
from libs.runtime.http import HttpServer, create_app
from libs.runtime.keysets import Keys
from libs.runtime.lifecycle import Health, Loop, Service
from libs.runtime.openapi import DescribedApp
from libs.runtime.problems import Faults, Problem
from libs.runtime.settings import ServiceSettings
from libs.runtime.telemetry import Telemetry

NATS, LOG, VIEW, KEYS = "NATS", "the log", "the view's store", "the keys"
S = TypeVar("S", bound=ServiceSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground(Generic[S]):
    """What a composition root goes on from."""

    settings: S
    policy: Policy
    clock: Clock
    health: Health
    telemetry: Telemetry
    gate: Gate
    app: DescribedApp
    nc: Client
    log: JetStreamLog
    tokens: Tokens

    def new_id(self) -> str:
        """A ULID for an event, made once."""
        return ulid(self.clock.now_ms(), secrets.token_bytes(10))

    async def live(self, service: Service, broker: NatsBroker) -> None:
        """Start the connection for what is not kept, once the server is there."""
        service.closing("the live connection", partial(hang_up, broker))
        await wait_for(NATS, broker.start, away=AWAY, health=self.health, clock=self.clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Front:
    """What answers before there is anything to answer from."""

    health: Health
    gate: Gate
    telemetry: Telemetry
    app: DescribedApp


async def lay(
    service: Service,
    settings: S,
    *,
    needs: tuple[str, ...] = (NATS, LOG, VIEW),
    behind_gateway: bool = False,
) -> Ground[S]:
    """The ground for this service: everything started, waited for, and closed in its turn.

    Behind a gateway it takes as many connections as the machine allows, and no new one once it leaves, and knows which
    tokens were taken back; else it can be looked at until its end.
    """
    if behind_gateway:
        allow_all_descriptors()
    policy, clock = load_policy(settings.policy, environ=os.environ), SystemClock()
    terms = Terms(settings.jwt_issuer, settings.jwt_audience, policy.tokens.longest_days * DAY_S)
    tokens = Tokens(Keys(settings.jwks, clock=clock), terms, clock=clock)
    front = await _front(service, settings, tokens=tokens, health=Health(*needs))
    leaving = front.gate.draining if behind_gateway else None
    await service.start(HttpServer(front.app, host=settings.http_host, port=settings.http_port, leaving=leaving))
    waited = partial(wait_for, health=front.health, clock=clock)
    url = settings.nats_url.get_secret_value()
    shape = LogSettings(replicas=settings.log_replicas, retention=policy.retention)
    nc = await waited(NATS, lambda: connect(url, name=service.name), away=(LogUnavailable,))
    service.closing(NATS, nc.close)
    log = await waited(LOG, lambda: open_log(nc, shape, clock=clock), away=(LogUnavailable, LogMissing))
    await waited(KEYS, tokens.keys.load, away=(KeysAway,))
    if behind_gateway:
        taken_back = RevocationFollower(
            log, JetStreamScans(nc), tokens.revocations, longest_s=terms.longest_s, clock=clock
        )
        await waited(LOG, taken_back.catch_up, away=(LogUnavailable,))
        await service.start(Loop("tokens taken back", taken_back.run))
    return Ground(
        settings=settings,
        policy=policy,
        clock=clock,
        health=front.health,
        telemetry=front.telemetry,
        gate=front.gate,
        app=front.app,
        nc=nc,
        log=log,
        tokens=tokens,
    )


async def _front(service: Service, settings: ServiceSettings, *, tokens: Tokens, health: Health) -> _Front:
    gate = Gate()
    telemetry = await service.start(telemetry_of(service.name, settings))
    app = create_app(
        service.name,
        version=version("headgate"),
        gate=gate,
        health=health,
        telemetry=telemetry,
        tokens=tokens,
        faults=LATER,
    )
    return _Front(health=health, gate=gate, telemetry=telemetry, app=app)


def telemetry_of(name: str, settings: ServiceSettings) -> Telemetry:
    """As its settings tell. The one place that makes it, so that a test may look at what four services say at once."""
    return Telemetry(
        name, instance=settings.instance, otlp_endpoint=settings.otlp_endpoint, log_level=settings.log_level
    )


def _away(fault: Exception) -> Problem:
    detail = "a server behind this service is away for the moment: try again, with the same Idempotency-Key"
    return Problem(status=503, slug="unavailable", title="Not now", detail=detail, retry_after_s=2)


def _full(fault: Exception) -> Problem:
    detail = "there is no room for new work until an operator makes some: what was accepted is safe"
    return Problem(status=503, slug="full", title="Full", detail=detail, retry_after_s=60)


LATER: Final[Faults] = {
    LogFull: _full,
    **dict.fromkeys((LogUnavailable, OutcomeUnknown, ViewLost, ViewUnavailable, TimeoutError), _away),
}

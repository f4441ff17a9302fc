"""The ground of a service that clients ask, from behind a gateway: its application, and who may ask.

base ─► application, behind a closed gate ─► NATS, the log ─► the keys of tokens ─► the tokens that were taken back
"""

from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Final

from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.eventlog import LogFull, LogUnavailable, OutcomeUnknown
from libs.eventlog.history import JetStreamScans
from libs.foundation.ground import LOG, Base, Ground, S, connected, listen, start_base
from libs.foundation.revoking import RevocationFollower
from libs.runtime.app import create_app
from libs.runtime.auth import Tokens
from libs.runtime.claims import DAY_S, Terms
from libs.runtime.connect import wait_for
from libs.runtime.errors import KeysAway
from libs.runtime.faults import Faults
from libs.runtime.keysets import Keys
from libs.runtime.lifecycle import Loop, Service
from libs.runtime.openapi import DescribedApp
from libs.runtime.problems import Problem
from libs.runtime.sockets import allow_all_descriptors

KEYS: Final = "the keys"


@dataclass(frozen=True, slots=True)
class Front:
    """What clients meet. Routes are added to `app` before the gate opens."""

    app: DescribedApp
    tokens: Tokens


async def bootstrap_public(service: Service, settings: S, *, needs: tuple[str, ...]) -> tuple[Ground[S], Front]:
    """It takes as many connections as the machine allows, and no new one once it leaves, and knows which tokens were
    taken back."""
    allow_all_descriptors()
    base = await start_base(service, settings, needs=needs)
    terms = Terms(settings.jwt_issuer, settings.jwt_audience, base.policy.tokens.longest_days * DAY_S)
    tokens = Tokens(Keys(settings.jwks, clock=base.clock), terms, clock=base.clock)
    app = await _listen(service, base, tokens)
    ground = await connected(service, base)
    waited = partial(wait_for, health=base.health, clock=base.clock)
    await waited(KEYS, tokens.keys.load, away=(KeysAway,))
    taken_back = RevocationFollower(
        ground.log, JetStreamScans(ground.nc), tokens.revocations, longest_s=terms.longest_s, clock=base.clock
    )
    await waited(LOG, taken_back.catch_up, away=(LogUnavailable,))
    await service.start(Loop("tokens taken back", taken_back.run))
    return ground, Front(app, tokens)


async def _listen(service: Service, base: Base[S], tokens: Tokens) -> DescribedApp:
    gate, telemetry = base.gate, base.telemetry
    app = create_app(
        service.name, version=version("headgate-server"), gate=gate, telemetry=telemetry, tokens=tokens, faults=LATER
    )
    await listen(service, base, rest=app, leaving=gate.draining)
    return app


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

"""What each process of this machine is given: its users, its environment, and tokens for people.

Owns who gets which credentials. Each service gets its own two and nobody else's; the worker and the notifier have no
business in Valkey, so they get no user there. Refuses to start anything.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from headgate_contracts.tokens import ulid
from headgate_contracts.vocabulary import Tier
from libs.local.environments import of_service
from libs.local.nats_config import NatsUser
from libs.local.permissions import UP_USERS, VALKEY_USERS, nats_users, valkey_users
from libs.local.servers import ValkeyUser
from libs.local.settings import UpSettings
from libs.local.state import StateFolder
from libs.policy import Policy
from libs.policy.sections import USUAL_POOL
from libs.runtime.keys import PUBLIC_FILE, keep_keys, sign_token

ISSUER: Final = "headgate"
AUDIENCE: Final = "headgate"
SYSTEM: Final = "system"
TOKEN_TTL_S: Final = 30 * 86_400
USER_SCOPE: Final = "jobs:read jobs:write leases"
OPERATOR_SCOPE: Final = f"{USER_SCOPE} ops"


@dataclass(frozen=True, slots=True)
class Provisions:
    """Made from the state folder, the same at each start."""

    settings: UpSettings
    keys: Path
    workspaces: Path
    index: Path
    nats: Mapping[str, NatsUser]
    nats_system: NatsUser
    valkey: Mapping[str, ValkeyUser]
    webhook_secrets: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, settings: UpSettings, state: StateFolder, policy: Policy) -> Provisions:
        """With a secret for each receiver of webhooks, and rights at the pools that policy names."""
        passwords = state.passwords(
            [SYSTEM, *(f"nats/{name}" for name in UP_USERS), *(f"valkey/{name}" for name in VALKEY_USERS)]
        )
        keep_keys(state.keys)
        return cls(
            settings,
            state.keys,
            state.workspaces,
            state.index,
            nats=nats_users(_of(passwords, "nats/"), shard=settings.shard, pools=policy.pools.served),
            nats_system=NatsUser(SYSTEM, passwords[SYSTEM]),
            valkey=valkey_users(_of(passwords, "valkey/"), shard=settings.shard),
            webhook_secrets=state.webhook_secrets(policy.webhooks.receivers),
        )

    def environment(
        self, service: str, *, name: str, nats_url: str, redis_url: str, inherited: Mapping[str, str]
    ) -> dict[str, str]:
        """All that a service finds: what it may inherit, and over that what it is told here. The servers' URLs may be
        anybody's.

        Its name stays the same over restarts. That is safe here, as the one before it is known to be dead, and good: a
        scheduler takes its own lead back at once, a worker's slots are not counted twice.
        """
        at_nats, at_valkey = self.nats[service], self.valkey.get(service)
        told = {
            "HEADGATE_NATS_URL": with_user(nats_url, at_nats.name, at_nats.password),
            "HEADGATE_REDIS_URL": with_user(redis_url, *((at_valkey.name, at_valkey.password) if at_valkey else ())),
            "HEADGATE_INSTANCE": name,
            "HEADGATE_SHARD": self.settings.shard,
        }
        if self.settings.policy:
            told["HEADGATE_POLICY"] = str(self.settings.policy.absolute())
        return of_service(service, inherited) | told | self._told_alone(service)

    def _told_alone(self, service: str) -> dict[str, str]:
        users = {
            "HEADGATE_JWKS": str(self.keys / PUBLIC_FILE),
            "HEADGATE_JWT_ISSUER": ISSUER,
            "HEADGATE_JWT_AUDIENCE": AUDIENCE,
        }
        match service:
            case "admission":
                return users | {"HEADGATE_INDEX_FOLDER": str(self.index)}
            case "notifier":
                return users | {"HEADGATE_WEBHOOK_SECRETS": json.dumps(self.webhook_secrets)}
            case "worker":
                return {
                    "HEADGATE_POOL": USUAL_POOL,
                    "HEADGATE_SLOTS": str(self.settings.slots),
                    "HEADGATE_WORKSPACES": str(self.workspaces),
                }
            case _:
                return {}

    def token(self, user: str, *, tier: Tier, scope: str, ttl_s: int) -> LocalToken:
        return signed(self.keys, user=user, tier=tier, scope=scope, ttl_s=ttl_s)


@dataclass(frozen=True, slots=True)
class LocalToken:
    """A token of this machine's own issuer. By its id it can be taken back."""

    text: str = field(repr=False)
    id: str
    expires_at: datetime


def signed(
    keys: Path, *, user: str, tier: Tier, scope: str, ttl_s: int = TOKEN_TTL_S, projects: Iterable[str] = ()
) -> LocalToken:
    """A new one."""
    now_ms = time.time_ns() // 1_000_000
    token_id = ulid(now_ms, secrets.token_bytes(10))
    text = sign_token(
        keep_keys(keys),
        user=user,
        tier=tier,
        scope=scope,
        issuer=ISSUER,
        audience=AUDIENCE,
        now_ms=now_ms,
        ttl_s=ttl_s,
        projects=projects,
        token_id=token_id,
    )
    return LocalToken(text, token_id, datetime.fromtimestamp(now_ms // 1000 + ttl_s, UTC))


def operator_url(nats_url: str, state: StateFolder) -> str:
    """For `headgate migrate`, where another user's URL of the same server is known."""
    return with_user(nats_url, "operator", state.passwords(["nats/operator"])["nats/operator"])


def system_url(nats_url: str, state: StateFolder) -> str:
    """For whatever only an operator of NATS may do."""
    return with_user(nats_url, SYSTEM, state.passwords([SYSTEM])[SYSTEM])


def with_user(url: str, user: str = "", password: str = "") -> str:
    """The same server, as somebody else, or as nobody."""
    parts = urlsplit(url)
    door = f"{parts.hostname}:{parts.port}"
    return parts._replace(netloc=f"{user}:{password}@{door}" if user else door).geturl()


def _of(passwords: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): word for name, word in passwords.items() if name.startswith(prefix)}

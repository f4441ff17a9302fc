"""The configuration of a nats-server: who may do what, and what its store promises.

Owns the layout of accounts. Refuses to be a general template: it says what Headgate needs and nothing else.

    SYS       the servers' own account; exports one question, "who is there and how are you set up?"
    HEADGATE  JetStream and the users of services; imports that question as `headgate.servers`, and exports what other
              teams may ask of their consumers
    TEAM-…    another team: no JetStream, one user, what HEADGATE exports of this team's consumers. From a file of its
              own, so that a team comes and goes while the server runs
    others    the same again, with streams and subjects of their own: one server for several installations

So a service learns each server's version and `jetstream.config.sync_always` from NATS itself, with no more right than
to publish on one subject. Of the server's questions it is VARZ that is exported: its answer is about the server alone,
while JSZ would list the streams of every account to any account that asks.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from libs.eventlog.servers import SERVERS_SUBJECT
from libs.eventlog.streams import JOBS
from libs.local.errors import UnsafeCredential

_URL_SAFE = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SERVERS_QUESTION = "$SYS.REQ.SERVER.PING.VARZ"
TEAMS_FILE: Final = "teams.conf"
# A client of a team asks JetStream as all do. Its account has none, and the server would answer so itself: what is
# asked is renamed before it leaves the account, and by that name imported. Rights are about the new name.
TEAM_API: Final = "headgate.api"
_JS_API: Final = "$JS.API"
_TEAM_VERBS: Final = ("CONSUMER.INFO", "CONSUMER.MSG.NEXT")
_EXPORTS: Final = (
    {"service": f"{_JS_API}.CONSUMER.INFO.{JOBS}.*"},
    {"service": f"{_JS_API}.CONSUMER.MSG.NEXT.{JOBS}.*", "response_type": "stream"},
    {"service": f"$JS.ACK.{JOBS}.>"},
)


# The server takes one response off for each delivery of a request to a connection after the first, and the scheduler's
# hears a heartbeat twice: as the one of its group that answers, and as one of all.
RESPONSES: Final = {"max": 2, "expires": "2m"}


@dataclass(frozen=True, slots=True)
class NatsUser:
    """A user of the account HEADGATE. None allows every subject, an empty tuple none; what is refused is refused
    though a wildcard allows it."""

    name: str
    password: str
    publish: tuple[str, ...] | None = None
    subscribe: tuple[str, ...] | None = None
    refused: tuple[str, ...] = ()  # of what may be published
    allow_responses: bool = False  # a user that answers requests need not know their inboxes

    def __post_init__(self) -> None:
        require_url_safe(self.name, self.password)

    def as_config(self) -> dict[str, object]:
        publish = _allow(self.publish)
        if self.refused and self.publish != ():  # with nothing allowed all is refused already
            publish["deny"] = list(self.refused)
        permissions: dict[str, object] = {"publish": publish, "subscribe": _allow(self.subscribe)}
        if self.allow_responses:
            permissions["allow_responses"] = RESPONSES
        return {"user": self.name, "password": self.password, "permissions": permissions}


@dataclass(frozen=True, slots=True)
class ClusterSeat:
    """A server's place in a cluster: where it listens for the others, and where they are."""

    cluster: str
    port: int
    routes: tuple[str, ...]

    def as_config(self) -> dict[str, object]:
        return {
            "name": self.cluster,
            "listen": f"127.0.0.1:{self.port}",
            "routes": list(self.routes),
            "no_advertise": True,  # nats-py connects to addresses it was told of without its URL's user and password
        }


# Without it the server takes 75 % of what the disk has left, and a small disk, or a /tmp in memory, has no room for the
# 4 GiB that the streams set aside: they could not even be made.
MOST_STORED_BYTES: Final = 64 * 1024**3


@dataclass(frozen=True, slots=True)
class NatsConfig:
    name: str
    port: int
    store: Path
    users: Sequence[NatsUser]
    system_user: NatsUser
    host: str = "127.0.0.1"
    sync_interval: str = "always"  # any other value is for the test that services refuse it
    seat: ClusterSeat | None = None
    teams: str | None = None  # the file with the accounts of teams, as seen from this one
    more_accounts: Mapping[str, Sequence[NatsUser]] = field(default_factory=dict[str, Sequence[NatsUser]])

    def render(self) -> str:
        """JSON, which nats-server reads as its own format: values need no escaping rules of ours."""
        config: dict[str, object] = {
            "server_name": self.name,
            "listen": f"{self.host}:{self.port}",
            "jetstream": {
                "store_dir": str(self.store),
                "sync_interval": self.sync_interval,
                "max_file_store": MOST_STORED_BYTES,
            },
            "accounts": self._accounts(),
            "system_account": "SYS",
        }
        if self.seat:
            config["cluster"] = self.seat.as_config()
        return including(self.teams, json.dumps(config, indent=2, ensure_ascii=False))

    def _accounts(self) -> dict[str, object]:
        ours = {"HEADGATE": self.users, **self.more_accounts}
        # a stream of responses: each server of a cluster gives its own
        question = {"service": _SERVERS_QUESTION, "response_type": "stream", "accounts": list(ours)}
        system: dict[str, object] = {"users": [self.system_user.as_config()], "exports": [question]}
        return {"SYS": system, **{name: _account(users) for name, users in ours.items()}}


def including(file: str | None, config: str) -> str:
    """This configuration with the accounts of that file: a word of nats-server's own, which JSON has none for."""
    return config if file is None else config.replace('"accounts": {', f'"accounts": {{\n    include "{file}"', 1)


def team_asks(consumers: Sequence[str]) -> tuple[str, ...]:
    """What a team may publish, in its own account."""
    api = (f"{TEAM_API}.{verb}.{JOBS}.{consumer}" for consumer in consumers for verb in _TEAM_VERBS)
    return (*api, *(f"$JS.ACK.{JOBS}.{consumer}.>" for consumer in consumers))


def team_account(user: NatsUser, consumers: Sequence[str]) -> dict[str, object]:
    """By the names of its consumers: what is imported by a wildcard, an answer can be sent to."""
    renamed = {
        f"{_JS_API}.{verb}.{JOBS}.{consumer}": f"{TEAM_API}.{verb}.{JOBS}.{consumer}"
        for consumer in consumers
        for verb in _TEAM_VERBS
    }
    asks = [{"service": {"account": "HEADGATE", "subject": theirs}, "to": ours} for theirs, ours in renamed.items()]
    acks = [{"service": {"account": "HEADGATE", "subject": f"$JS.ACK.{JOBS}.{each}.>"}} for each in consumers]
    return {"users": [user.as_config()], "mappings": renamed, "imports": [*asks, *acks]}


def _account(users: Sequence[NatsUser]) -> dict[str, object]:
    question = {"service": {"account": "SYS", "subject": _SERVERS_QUESTION}, "to": SERVERS_SUBJECT}
    return {
        "jetstream": "enabled",
        "users": [user.as_config() for user in users],
        "exports": list(_EXPORTS),
        "imports": [question],
    }


def require_url_safe(*credentials: str) -> None:
    """nats-py takes user and password out of a URL as they stand and never unquotes them."""
    for credential in credentials:
        if not _URL_SAFE.fullmatch(credential):
            raise UnsafeCredential(length=len(credential))


def _allow(subjects: tuple[str, ...] | None) -> dict[str, object]:
    if subjects is None:
        return {"allow": [">"]}
    return {"allow": list(subjects)} if subjects else {"deny": [">"]}  # an empty allow list would allow everything

"""The users of NATS and Valkey as files, for servers that compose or Kubernetes runs.

Owns the files' shape. Who may do what stands in `libs.local.permissions`. Refuses to know a password: each is the name
of a variable that the server finds in its environment.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from libs.deployment import ROOT
from libs.local.nats_config import TEAMS_FILE, NatsConfig, NatsUser, including
from libs.local.permissions import NATS_USERS, VALKEY_USERS, nats_users, valkey_users
from libs.policy.sections import USUAL_POOL

FOLDER: Final = ROOT / "k8s" / "base" / "config"
SHARD: Final = "main"
SYSTEM: Final = "system"
TEAMS: Final = f"../nats-teams/{TEAMS_FILE}"  # a folder of its own: it is a secret, and changes while the server runs
HEAD: Final = "# Made by `python -m libs.deployment.generated`. Passwords come from the server's environment.\n"
_NATS_PASSWORD: Final = re.compile(r'(?<="password": )"(\w+)"')
_VALKEY_PASSWORD: Final = re.compile(r"(?<= on )>(\w+)")


def variable(server: str, user: str) -> str:
    """The variable that holds the password of this user."""
    return f"{server}_{user}_PASSWORD".upper()


def nats_accounts(*, shard: str = SHARD, pools: Sequence[str] = (USUAL_POOL,)) -> str:
    """For `include` in a nats-server's configuration."""
    users = nats_users(_variables("NATS", NATS_USERS), shard=shard, pools=pools)
    config = NatsConfig(
        name="",
        port=0,
        store=Path(),
        users=list(users.values()),
        system_user=NatsUser(SYSTEM, variable("NATS", SYSTEM)),
    )
    whole = json.loads(config.render())
    ours = {key: whole[key] for key in ("accounts", "system_account")}
    # what stands in quotes is a text to nats-server, what does not is the name of a variable
    return HEAD + including(TEAMS, _NATS_PASSWORD.sub(r"$\1", json.dumps(ours, indent=2))) + "\n"


def valkey_accounts(*, shard: str = SHARD) -> str:
    """For `valkey.sh`, which puts the passwords in: Valkey reads no variables."""
    users = valkey_users(_variables("VALKEY", VALKEY_USERS), shard=shard)
    lines = (_VALKEY_PASSWORD.sub(r">${\1}", user.as_acl(), count=1) for user in users.values())
    return HEAD + "\n".join(["user default off", *lines]) + "\n"


def _variables(server: str, users: Sequence[str]) -> Mapping[str, str]:
    return {user: variable(server, user) for user in users}

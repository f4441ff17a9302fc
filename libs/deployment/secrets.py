"""Passwords and keys for an installation in compose or Kubernetes: `python -m libs.deployment.secrets`.

    .headgate/
      keys/              the key pair that signs tokens, the same that `headgate up` uses
      secrets/
        passwords.json   of every user of NATS and Valkey, made once
        webhooks.json    a secret for each receiver that the policy lists, made once
        <process>.env    what this process finds in its environment, and no other's
        teams/teams.conf what nats-server knows of other teams, by `headgate teams`
        kubernetes.json  the same as Secrets, and the public keys as a ConfigMap: kubectl apply -f
        kustomization.yaml  the same for an overlay of this machine, which has pods restarted when a Secret changes

Made once and then kept: run again it writes the same, and what was written into `webhooks.json`. Owns the files;
refuses to start or to reach anything.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from libs.deployment.accounts import FOLDER, SYSTEM, variable
from libs.local.nats_config import TEAMS_FILE
from libs.local.permissions import NATS_USERS, VALKEY_USERS
from libs.local.state import StateFolder, state_here, write_private
from libs.local.teams import teams_file, teams_in
from libs.policy import load_policy
from libs.runtime.keys import PUBLIC_FILE, keep_keys

NATS_AT: Final = "nats:4222"  # both names are those of the services of compose and of Kubernetes
VALKEY_AT: Final = "valkey:6379"
KUBERNETES_FILE: Final = "kubernetes.json"
TEAMS_SECRET: Final = "nats-teams"
KUSTOMIZE_FILE: Final = "kustomization.yaml"

Environments = Mapping[str, Mapping[str, str]]


def environments(
    nats: Mapping[str, str], valkey: Mapping[str, str], *, webhooks: Mapping[str, Sequence[str]]
) -> Environments:
    """For each process what it is told, from the users' passwords and the receivers' secrets."""
    servers = {
        "nats": {variable("nats", user): password for user, password in nats.items()},
        "valkey": {variable("valkey", user): password for user, password in valkey.items()},
    }
    processes = {user: _of_process(user, nats, valkey) for user in NATS_USERS}
    processes["notifier"]["HEADGATE_WEBHOOK_SECRETS"] = json.dumps(webhooks)
    return servers | processes


def kubernetes(told: Environments, *, jwks: str, teams: str) -> str:
    """A list that `kubectl apply` takes, without a namespace: the one that is chosen there."""
    items: list[object] = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque", "stringData": dict(texts)}
        for name, texts in {**told, TEAMS_SECRET: {TEAMS_FILE: teams}}.items()
    ]
    items.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "jwks"}, "data": {PUBLIC_FILE: jwks}})
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2) + "\n"


def component(told: Environments) -> str:
    """For `components:` of an overlay. A name follows from what a Secret holds, so a change is a new pod."""
    secrets: list[object] = [{"name": name, "envs": [f"{name}.env"]} for name in told]
    secrets.append({"name": TEAMS_SECRET, "files": [f"teams/{TEAMS_FILE}"]})
    whole = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "secretGenerator": secrets,
        "configMapGenerator": [{"name": "jwks", "files": [PUBLIC_FILE]}],
    }
    return json.dumps(whole, indent=2) + "\n"


def write_secrets(state: StateFolder, *, receivers: Iterable[str] = ()) -> Path:
    """All files, with a secret for each of these receivers of webhooks. Gives the folder they are in."""
    kept = StateFolder(state.root / "secrets")
    for folder in (state.root, kept.root):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    nats, valkey = _passwords(kept, "nats", (SYSTEM, *NATS_USERS)), _passwords(kept, "valkey", VALKEY_USERS)
    keep_keys(state.keys)
    told = environments(nats, valkey, webhooks=kept.webhook_secrets(receivers))
    for name, texts in told.items():
        write_private(kept.root / f"{name}.env", "".join(f"{key}={value}\n" for key, value in texts.items()))
    jwks = (state.keys / PUBLIC_FILE).read_text(encoding="utf-8")
    state.deployed_teams.parent.mkdir(exist_ok=True)
    state.deployed_teams.parent.chmod(0o755)  # whatever the mask: a server in a container is another user
    teams = teams_file(teams_in(state.deployed_teams))
    write_private(kept.root / KUBERNETES_FILE, kubernetes(told, jwks=jwks, teams=teams))
    write_private(kept.root / PUBLIC_FILE, jwks)  # kustomize reads nothing outside the folder
    write_private(kept.root / KUSTOMIZE_FILE, component(told))
    return kept.root


def _of_process(user: str, nats: Mapping[str, str], valkey: Mapping[str, str]) -> dict[str, str]:
    told = {"HEADGATE_NATS_URL": f"nats://{user}:{nats[user]}@{NATS_AT}"}
    if user in VALKEY_USERS:
        told["HEADGATE_REDIS_URL"] = f"redis://{user}:{valkey[user]}@{VALKEY_AT}/0"
    elif user != "operator":
        told["HEADGATE_REDIS_URL"] = f"redis://{VALKEY_AT}/0"  # every service is told where it is; these have no user
    return told


def _passwords(kept: StateFolder, server: str, users: Sequence[str]) -> dict[str, str]:
    """With a letter first: nats-server reads a variable like a line of its configuration, `-x` and `10m` as numbers."""
    words = kept.passwords(f"{server}/{user}" for user in users)
    return {user: f"p{words[f'{server}/{user}']}" for user in users}


def main(words: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="python -m libs.deployment.secrets", description="Makes passwords and keys, once.")
    parser.add_argument("--state", type=Path, default=state_here().root, help="(%(default)s)")
    parser.add_argument(
        "--policy", type=Path, default=FOLDER / "policy.toml", help="whose receivers of webhooks (%(default)s)"
    )
    args = parser.parse_args(words)
    receivers = load_policy(args.policy, environ={}).webhooks.receivers
    folder = write_secrets(StateFolder(args.state), receivers=receivers)
    sys.stdout.write(f"{folder}: a file for each process. Keep them as you would keep a password.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

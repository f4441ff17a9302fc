"""What each process of an installation is told, and the files that are made for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from libs.deployment.accounts import nats_accounts, valkey_accounts
from libs.deployment.generated import keep
from libs.deployment.secrets import environments, main
from libs.local.permissions import NATS_USERS, VALKEY_USERS
from services.notifier.receivers import receivers_in

NATS = {user: f"pn-{user}" for user in ("system", *NATS_USERS)}
WEBHOOKS = "HEADGATE_WEBHOOK_SECRETS"
SECRET = "whsec_" + "w" * 32
VALKEY = {user: f"pv-{user}" for user in VALKEY_USERS}


def test_each_process_is_told_its_own_passwords_and_nobody_elses() -> None:
    told = environments(NATS, VALKEY, webhooks={"hooks.example.com": [SECRET]})

    for user in NATS_USERS:
        others = {password for name, password in (NATS | VALKEY).items() if name != user}
        words = " ".join(told[user].values())
        assert NATS[user] in words
        assert not [password for password in others - {VALKEY.get(user)} if f":{password}@" in words]


def test_the_notifier_alone_is_told_the_secrets_of_receivers_and_can_read_them() -> None:
    told = environments(NATS, VALKEY, webhooks={"hooks.example.com": [SECRET]})

    [(process, text)] = [(name, texts[WEBHOOKS]) for name, texts in told.items() if WEBHOOKS in texts]
    assert process == "notifier"
    assert receivers_in(text).without(("hooks.example.com", "other.example.com")) == ("other.example.com",)
    assert not [name for name, texts in told.items() if name != process and SECRET in "".join(texts.values())]


def test_secrets_are_made_for_the_receivers_that_policy_lists_and_then_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, kept = tmp_path / "policy.toml", tmp_path / "secrets" / "webhooks.json"
    words = ["--state", str(tmp_path), "--policy", str(policy)]
    policy.write_text("webhooks.hosts = ['hooks.example.com']")
    assert main(words) == 0
    first = json.loads(kept.read_text())
    rotating = {"hooks.example.com": [SECRET, *first["hooks.example.com"]], "in.example/team": [SECRET.upper()]}
    kept.write_text(json.dumps(rotating))
    policy.write_text("webhooks.hosts = ['hooks.example.com', 'other.example.com']\nwebhooks.internal = ['in.example']")

    assert main(words) == 0

    told = json.loads(kept.read_text())
    assert {place: secrets for place, secrets in told.items() if place != "other.example.com"} == rotating
    assert len({*first["hooks.example.com"], *told["other.example.com"]}) == 2
    assert f"{WEBHOOKS}={json.dumps(told)}\n" in (tmp_path / "secrets" / "notifier.env").read_text()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_who_has_no_user_in_valkey_is_told_none() -> None:
    told = environments(NATS, VALKEY, webhooks={"hooks.example.com": [SECRET]})

    assert "@" in told["scheduler"]["HEADGATE_REDIS_URL"]
    assert "@" not in told["worker"]["HEADGATE_REDIS_URL"] + told["notifier"]["HEADGATE_REDIS_URL"]
    assert "HEADGATE_REDIS_URL" not in told["operator"]


def test_a_file_of_users_names_variables_and_holds_no_password() -> None:
    nats, valkey = nats_accounts(), valkey_accounts()

    assert nats.count('"password": $NATS_') == nats.count('"password"') == len(NATS)
    assert valkey.count(" on >${VALKEY_") == valkey.count(" on >") == len(VALKEY_USERS)


def test_another_pool_is_known_to_nats() -> None:
    assert "worker-gpu" not in nats_accounts()
    assert "worker-gpu" in nats_accounts(pools=("default", "gpu"))


def test_a_file_that_differs_is_named_when_it_is_checked_and_else_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("libs.deployment.generated.ROOT", tmp_path)
    texts = {tmp_path / "file": "new"}

    assert keep(texts, by="maker", check=True) == 1
    assert capsys.readouterr().err == "file: run `python -m maker`\n"
    assert keep(texts, by="maker", check=False) == 0
    assert keep(texts, by="maker", check=True) == 0

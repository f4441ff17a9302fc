"""What each process of an installation is told, and how the gateway is."""

from __future__ import annotations

import argparse

import pytest

from libs.deployment.accounts import nats_accounts, valkey_accounts
from libs.deployment.gateway import address
from libs.deployment.secrets import environments
from libs.local.gateway import Upstream
from libs.local.permissions import NATS_USERS, VALKEY_USERS

NATS = {user: f"pn-{user}" for user in ("system", *NATS_USERS)}
VALKEY = {user: f"pv-{user}" for user in VALKEY_USERS}


def test_each_process_is_told_its_own_passwords_and_nobody_elses() -> None:
    told = environments(NATS, VALKEY, webhooks="w" * 32)

    for user in NATS_USERS:
        others = {password for name, password in (NATS | VALKEY).items() if name != user}
        words = " ".join(told[user].values())
        assert NATS[user] in words
        assert not [password for password in others - {VALKEY.get(user)} if f":{password}@" in words]


def test_who_has_no_user_in_valkey_is_told_none() -> None:
    told = environments(NATS, VALKEY, webhooks="w" * 32)

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


@pytest.mark.parametrize(
    ("text", "where"),
    [("admission:8080", Upstream("admission", 8080)), ("[::1]:0", Upstream("::1", 0))],
)
def test_an_address_is_a_host_and_a_port(text: str, where: Upstream) -> None:
    assert address(text) == where


@pytest.mark.parametrize("text", ["", "admission", ":8080", "admission:", "admission:http", "admission:65536"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        address(text)

"""Webhooks without a network: whose secret signs, and which addresses may be called."""

from __future__ import annotations

import base64
import json

import pytest
from pydantic import SecretStr

from libs.runtime.errors import SettingsWrong
from libs.runtime.settings import read_settings
from services.notifier.addresses import may_be_called
from services.notifier.receivers import receivers_in
from services.notifier.settings import NotifierSettings


def secret(letter: str) -> str:
    return "whsec_" + base64.b64encode(letter.encode() * 32).decode()


A, B, C, D = (secret(letter) for letter in "abcd")
TOLD = {
    "hooks.example.com": [A],
    "hooks.example.com:8443": [B],
    "shared.example.com/team-a": [C],
    "shared.example.com/team-a/inner": [D],
}


@pytest.mark.parametrize(
    ("url", "letter"),
    [
        ("https://hooks.example.com/any/path?x=1", "a"),
        ("https://HOOKS.example.com", "a"),
        ("https://hooks.example.com:8443/", "b"),
        ("https://shared.example.com/team-a", "c"),
        ("https://shared.example.com/team-a/?x", "c"),
        ("https://shared.example.com/team-a/inner/x", "d"),
        ("https://shared.example.com/team-a/innermost", "c"),
        ("https://hooks.example.com:443/", None),
        ("https://hooks.example.com.evil.example/", None),
        ("https://shared.example.com/", None),
        ("https://shared.example.com/team-ab", None),
        ("https://shared.example.com/team-b", None),
        ("https://shared.example.com/team-a/../team-b", None),
        ("https://shared.example.com/team-a/%2e%2e/team-b", None),
        ("https://shared.example.com/team-a/..%2fteam-b", None),
        ("https://shared.example.com/team-a//team-b", None),
        ("https://shared.example.com//team-a", None),
        ("https://shared.example.com/Team-A", None),
    ],
)
def test_a_call_is_signed_with_the_secret_of_its_receiver_and_never_with_anothers(url: str, letter: str | None) -> None:
    keys = receivers_in(json.dumps(TOLD)).keys_for(url)

    assert keys == (() if letter is None else (letter.encode() * 32,))


def test_two_secrets_of_one_receiver_sign_both_while_one_takes_the_others_place() -> None:
    receivers = receivers_in(json.dumps({"hooks.example.com": [B, A]}))

    assert receivers.keys_for("https://hooks.example.com/") == (b"b" * 32, b"a" * 32)


def test_who_has_a_secret_for_a_part_alone_is_not_without_one() -> None:
    hosts = ("hooks.example.com", "shared.example.com", "other.example.com")

    assert receivers_in(json.dumps(TOLD)).without(hosts) == ("other.example.com",)


@pytest.mark.parametrize(
    "told",
    [
        "whsec_no-json",
        "[]",
        json.dumps({"hooks.example.com": A}),
        json.dumps({"hooks.example.com": []}),
        json.dumps({"hooks.example.com": [A, B, C]}),
        json.dumps({"https://hooks.example.com": [A]}),
        json.dumps({"hooks.example.com/../x": [A]}),
        json.dumps({"hooks.example.com": ["whsec_short"]}),
        json.dumps({"hooks.example.com": [A.removeprefix("whsec_")]}),
        json.dumps({"hooks.example.com": [A], "other.example.com": [A]}),
    ],
)
def test_what_are_no_secrets_of_receivers_is_refused_and_shown_to_nobody(
    monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    for name, value in (("NATS_URL", "nats://n"), ("REDIS_URL", "redis://r"), ("JWKS", "https://issuer.example")):
        monkeypatch.setenv(f"HEADGATE_{name}", value)
    monkeypatch.setenv("HEADGATE_WEBHOOK_SECRETS", told)

    with pytest.raises(SettingsWrong) as wrong:
        read_settings(NotifierSettings)

    assert "HEADGATE_WEBHOOK_SECRETS: " in str(wrong.value)
    assert not [part for part in ("whsec_no", "whsec_short", A[6:20], B[6:20]) if part in str(wrong.value)]


def test_secrets_are_in_no_representation() -> None:
    text = json.dumps(TOLD)

    assert not [each for each in (A, "aaaa") if each in repr(receivers_in(text)) + repr(SecretStr(text))]


@pytest.mark.parametrize(
    "address",
    [
        *("93.184.215.14", "8.8.8.8", "100.63.255.255", "172.32.0.1", "192.0.1.1", "11.0.0.1", "223.255.255.254"),
        *("2606:2800:21f:cb07:6820:80da:af6b:8b2c", "2a00:1450:4001:82f::200e", "2001:4860:4860::8888"),
        *("64:ff9b::8.8.8.8", "::ffff:8.8.8.8", "2002:808:808::1"),
    ],
)
def test_an_address_of_the_internet_may_be_called(address: str) -> None:
    assert may_be_called(address, internal=False)
    assert may_be_called(address, internal=True)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.255.254", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1"),
        *("::1", "fc00::1", "fdff::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a00:1"),
    ],
)
def test_an_address_of_our_own_network_may_be_called_only_for_a_host_that_is_there(address: str) -> None:
    assert not may_be_called(address, internal=False)
    assert may_be_called(address, internal=True)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "169.254.169.254",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "fd00:ec2::254",
            "fe80::1",
            "fe80::1%eth0",
        ),
        *("::ffff:169.254.169.254", "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1", "2a00::5efe:169.254.169.254"),
        *("2a00::200:5efe:10.0.0.1", "fd00::5efe:10.0.0.1", "2002:7f00:1::", "2002:a00:1::"),
        *("64:ff9b:1::8.8.8.8", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "3fff::1"),
        *("0.0.0.0", "0.1.2.3", "::", "::8.8.8.8", "::127.0.0.1", "100::1", "fec0::1", "ff02::1", "4000::1"),
        *("192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1"),
        *("240.0.0.1", "255.255.255.255", "not-an-address", "", "0x7f000001", "2130706433", "127.1"),
    ],
)
def test_what_is_no_ones_or_configures_machines_is_called_for_nobody(address: str) -> None:
    assert not may_be_called(address, internal=False)
    assert not may_be_called(address, internal=True)

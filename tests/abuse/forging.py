"""Tokens as nobody should make them, from the parts that everybody knows and, where a row says so, our own key."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives import serialization

from libs.runtime.keys import KeyPair, jwks
from tests.fixtures.issuer import part

STRANGER: Final = KeyPair.generate("EdDSA")
STRANGERS_RSA: Final = KeyPair.generate("RS256")


def forged(pair: KeyPair, header: Mapping[str, Any] | bytes, claims: Mapping[str, Any] | bytes, *, by: str) -> str:
    """Good but for what is named; null leaves a member out."""
    head = header if isinstance(header, bytes) else _without_null({"alg": "EdDSA", "kid": pair.kid, **header})
    body = claims if isinstance(claims, bytes) else _without_null(good_claims() | dict(claims))
    text = f"{part(head)}.{part(body)}"
    return f"{text}.{part(_signature(pair, text.encode(), by=by))}"


def good_claims() -> dict[str, Any]:
    now_s = int(time.time())
    who = {"sub": "ann", "tier": "partner", "scope": "jobs:read jobs:write ops"}
    return {**who, "iss": "headgate", "aud": "headgate", "iat": now_s, "exp": now_s + 600}


def _without_null(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _signature(pair: KeyPair, text: bytes, *, by: str) -> bytes:
    match by:
        case "us":
            return pair.private.sign(text)  # type: ignore[call-arg,union-attr] - EdDSA, as all keys of `headgate up`
        case "a stranger":
            return STRANGER.private.sign(text)  # type: ignore[call-arg,union-attr]
        case "a stranger's RSA":
            return jwt.get_algorithm_by_name("RS256").sign(text, STRANGERS_RSA.private)
        case "nobody":
            return b""
        case "zeros":
            return bytes(64)
        case _:
            return hmac.new(_public(pair)[by], text, hashlib.sha256).digest()


def _public(pair: KeyPair) -> dict[str, bytes]:
    """What everybody can know, for who takes it for a shared secret."""
    public = pair.private.public_key()
    raw, pem, spki = serialization.Encoding.Raw, serialization.Encoding.PEM, serialization.PublicFormat
    return {
        "HMAC of the public key": public.public_bytes(raw, spki.Raw),
        "HMAC of its PEM": public.public_bytes(pem, spki.SubjectPublicKeyInfo),
        "HMAC of the key set": jwks(pair),
        "HMAC of nothing": b"",
        "HMAC of its kid": pair.kid.encode(),
    }

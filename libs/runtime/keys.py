"""The key pair of a machine that has no issuer of tokens: made once, kept beside the rest of its state.

Owns both files and the signing of tokens for development and tests. Refuses to check tokens: that is `auth`, which
reads the public file as it would anybody's.
"""

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from headgate_contracts.vocabulary import Tier
from libs.runtime.claims import Algorithm

PRIVATE_FILE: Final = "private-key.pem"
PUBLIC_FILE: Final = "jwks.json"
REQUIRED_MEMBERS: Final = frozenset({"crv", "e", "kty", "n", "x", "y"})  # of a thumbprint (RFC 7638)

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

GENERATE: Final[Mapping[Algorithm, Callable[[], PrivateKey]]] = {
    "RS256": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Signs. Its `kid` follows from the key, so the same key never has two names."""

    algorithm: Algorithm
    private: PrivateKey = field(repr=False)

    @classmethod
    def generate(cls, algorithm: Algorithm = "EdDSA") -> "KeyPair":
        return cls(algorithm, GENERATE[algorithm]())

    @property
    def kid(self) -> str:
        required = {name: value for name, value in self._public().items() if name in REQUIRED_MEMBERS}
        canonical = json.dumps(required, sort_keys=True, separators=(",", ":"))
        return base64.urlsafe_b64encode(hashlib.sha256(canonical.encode()).digest()).decode().rstrip("=")

    def jwk(self) -> dict[str, Any]:
        return {**self._public(), "kid": self.kid, "alg": self.algorithm, "use": "sig"}

    def sign(self, claims: Mapping[str, object]) -> str:
        return jwt.encode(dict(claims), self.private, algorithm=self.algorithm, headers={"kid": self.kid})

    def _public(self) -> dict[str, Any]:
        members = jwt.get_algorithm_by_name(self.algorithm).to_jwk(self.private.public_key(), as_dict=True)
        return {name: value for name, value in members.items() if name != "key_ops"}


def jwks(*pairs: KeyPair) -> bytes:
    """The public halves, as an issuer would serve them."""
    return json.dumps({"keys": [pair.jwk() for pair in pairs]}, indent=2).encode()


def keep_keys(folder: Path) -> KeyPair:
    """The pair of this folder: made on the first call, the same ever after. `jwks.json` is what services read."""
    folder.mkdir(parents=True, exist_ok=True)
    private_file = folder / PRIVATE_FILE
    if not private_file.exists():
        _write_private(private_file, KeyPair.generate())
    pair = _read_private(private_file)
    _replace(folder / PUBLIC_FILE, jwks(pair))
    return pair


def sign_token(
    pair: KeyPair,
    *,
    user: str,
    tier: Tier,
    scope: str,
    issuer: str,
    audience: str,
    now_ms: int,
    ttl_s: int,
    projects: Iterable[str] = (),
    token_id: str | None = None,
) -> str:
    """A token as the issuer of a real installation would give it to this user; taken back it can be by its id alone."""
    claims: dict[str, object] = {
        "sub": user,
        "tier": tier.value,
        "scope": scope,
        "iss": issuer,
        "aud": audience,
        "iat": now_ms // 1000,
        "exp": now_ms // 1000 + ttl_s,
    }
    if projects:
        claims["projects"] = list(projects)
    return pair.sign(claims if token_id is None else {**claims, "jti": token_id})


def _write_private(path: Path, pair: KeyPair) -> None:
    """Whole or not at all; of two that write at once, the first wins."""
    pem = pair.private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    draft = _draft(path.parent, pem)
    with suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()


def _read_private(path: Path) -> KeyPair:
    private = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(private, ed25519.Ed25519PrivateKey):
        raise TypeError(f"{path} holds another kind of key than was made here: delete it, and a new one is made")
    return KeyPair("EdDSA", private)


def _replace(path: Path, content: bytes) -> None:
    draft = _draft(path.parent, content)
    draft.chmod(0o644)
    draft.replace(path)


def _draft(folder: Path, content: bytes) -> Path:
    """A file of its own, readable by its owner alone."""
    descriptor, name = tempfile.mkstemp(dir=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return Path(name)

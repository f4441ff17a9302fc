"""A machine's key pair is made once, and only its owner can read the private half."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from libs.runtime.keys import PRIVATE_FILE, PUBLIC_FILE, KeyPair, keep_keys


def test_the_pair_of_a_folder_stays_the_same(tmp_path: Path) -> None:
    first = keep_keys(tmp_path / "keys")
    second = keep_keys(tmp_path / "keys")

    assert first.kid == second.kid
    [public] = json.loads((tmp_path / "keys" / PUBLIC_FILE).read_bytes())["keys"]
    assert public == first.jwk()


def test_the_private_half_is_for_its_owner_alone(tmp_path: Path) -> None:
    keep_keys(tmp_path)

    assert stat.S_IMODE((tmp_path / PRIVATE_FILE).stat().st_mode) == 0o600


def test_two_that_start_at_once_agree_on_one_pair(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        kids = {pair.kid for pair in pool.map(keep_keys, [tmp_path] * 8)}

    assert len(kids) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [PUBLIC_FILE, PRIVATE_FILE]


def test_a_foreign_private_key_is_not_taken_for_ours(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    pem = KeyPair.generate("RS256").private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / PRIVATE_FILE).write_bytes(pem)

    with pytest.raises(TypeError, match="delete it"):
        keep_keys(tmp_path)


def test_the_name_of_a_key_is_its_thumbprint() -> None:
    """The example of RFC 8037, appendix A.3."""
    from cryptography.hazmat.primitives.asymmetric import ed25519

    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")

    pair = KeyPair("EdDSA", ed25519.Ed25519PrivateKey.from_private_bytes(seed))

    assert pair.kid == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"

"""Which secret signs a call: each receiver has its own, and none of another's is ever used for it.

    {"hooks.example.com": ["whsec_new", "whsec_old"],      two while one takes the other's place: both sign
     "shared.example.com/team-a": ["whsec_a"],             a part of a host; the longest one that fits
     "shared.example.com/team-b": ["whsec_b"]}

Owns the form, and which receiver an address belongs to. A path that a server may read in another way than we do, with
`..`, `%` or an empty part, belongs to no part of a host. Refuses a secret that two receivers share.
"""

import base64
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

_PARTS: Final = r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*"
_PLAIN: Final = re.compile(rf"{_PARTS}/?")

Place = Annotated[str, StringConstraints(pattern=rf"^[a-z0-9.-]{{1,253}}(:[0-9]{{1,5}})?{_PARTS}$")]
Secret = Annotated[str, StringConstraints(pattern=r"^whsec_([A-Za-z0-9+/]{4}){8,21}([A-Za-z0-9+/]{2,3}={1,2})?$")]
Secrets = Annotated[tuple[Secret, ...], Field(min_length=1, max_length=2)]
_SECRETS: Final = TypeAdapter(dict[Place, Secrets])


@dataclass(frozen=True, slots=True)
class Receivers:
    """All that may be signed for."""

    keys: Mapping[str, tuple[bytes, ...]] = field(repr=False)

    def keys_for(self, url: str) -> tuple[bytes, ...]:
        """What signs a call to this address, the newest first; nothing where nobody there has a secret."""
        parts = urlsplit(url)
        host, path = parts.netloc.lower(), parts.path
        fits = [place for place in self.keys if _is_at(host, path, place)]
        return self.keys[max(fits, key=len)] if fits else ()

    def without(self, hosts: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the hosts that have no secret, neither whole nor for a part."""
        known = {place.partition("/")[0] for place in self.keys}
        return tuple(host for host in hosts if host not in known)


def _is_at(host: str, path: str, place: str) -> bool:
    its_host, _, its_path = place.partition("/")
    if host != its_host or not its_path:
        return host == its_host
    return _PLAIN.fullmatch(path) is not None and f"{path}/".startswith(f"/{its_path}/")


def receivers_in(text: str) -> Receivers:
    """As they are told. Raises ValueError, which shows no secret."""
    try:
        told = _SECRETS.validate_json(text) if text else {}
    except ValidationError as error:
        where = {str(detail["loc"][0]) for detail in error.errors() if detail["loc"]}
        raise ValueError(f"cannot be used{''.join(f', at {place[:80]!r}' for place in sorted(where))}") from None
    uses = Counter(secret for secrets in told.values() for secret in secrets)
    if any(count > 1 for count in uses.values()):
        raise ValueError("has a secret that stands there twice")
    return Receivers({place: tuple(map(secret_bytes, secrets)) for place, secrets in told.items()})


def secret_bytes(text: str) -> bytes:
    """`whsec_` and base64, as receivers are given it."""
    return base64.b64decode(text.removeprefix("whsec_"), validate=True)

"""TLS to NATS and Valkey: whose certificates are believed.

Owns that a connection is either by TLS, with the server's name checked, or was not asked to be: none falls back.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from libs.runtime.errors import SettingsWrong

CA_FILE: Final = "HEADGATE_CA_FILE"


def trusting(authorities: Path | None) -> ssl.SSLContext | None:
    """What believes these authorities and no other; null where there is to be no TLS."""
    return None if authorities is None else ssl.create_default_context(cafile=authorities)


def authorities_in(environ: Mapping[str, str]) -> Path | None:
    """For commands, which have no settings. `SettingsWrong` where the file is not what it should be."""
    named = environ.get(CA_FILE)
    if not named:
        return None
    try:
        trusting(Path(named))
    except OSError as error:  # ssl's own errors are of this kind
        raise SettingsWrong([f"{CA_FILE}: cannot be read as PEM ({error})"]) from None
    return Path(named)

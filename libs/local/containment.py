"""What contains the commands of jobs on one machine, before anything is started there.

Owns when everything is trusted unasked: the system can contain nothing, and nobody but the author that needs no model
writes code. Whoever writes it else is trusted by a word of the user's, never by ours. On Linux it is the worker that
finds out, by running a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from libs.local.errors import NothingContains

SANDBOX: Final = "HEADGATE_SANDBOX"
PROVIDERS: Final = "HEADGATE_PROVIDERS"
TRUSTED: Final = "trusted"


def sandbox_here(environ: Mapping[str, str], *, platform: str) -> str:
    """What the workers of this machine are told. Raises NothingContains."""
    asked = environ.get(SANDBOX) or "auto"
    if platform == "linux" or asked == TRUSTED:
        return asked
    if asked != "auto":
        raise NothingContains(platform=platform, why=f"{SANDBOX}={asked} asks for it")
    if providers := environ.get(PROVIDERS, "").strip():
        raise NothingContains(platform=platform, why=f"a model is to write some of it ({PROVIDERS}={providers})")
    return TRUSTED

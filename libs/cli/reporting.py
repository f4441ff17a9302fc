"""From what a library expects to go wrong to how a command ends. Apart from `errors`: libraries are slow to import."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from libs.capacity.errors import ViewError
from libs.cli.errors import Failed, Usage
from libs.eventlog.errors import LogError
from libs.local.errors import LocalServerError, UpSettingsWrong
from libs.policy.errors import PolicyError
from libs.runtime.errors import RuntimeFault

WRONG: Final = (UpSettingsWrong, PolicyError)
FAILED: Final = (LocalServerError, LogError, RuntimeFault, ViewError)


@contextmanager
def reported() -> Generator[None]:
    """Around whatever such a library does for a command."""
    try:
        yield
    except WRONG as error:
        raise Usage(what=str(error)) from error
    except FAILED as error:
        raise Failed(reason=str(error)) from error

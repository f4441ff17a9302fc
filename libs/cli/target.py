"""Which Headgate a command speaks to, and as whom.

HEADGATE_URL and HEADGATE_TOKEN where they are set; else what `headgate up` wrote into `.headgate/up.json`.
"""

import os
from collections.abc import Mapping

from headgate import NotConfigured
from headgate.edge import TOKEN, URL, Target, target_of
from libs.cli.errors import NotUp, Usage
from libs.local.state import state_here
from libs.local.up_file import UpFile, read_up_file


def running_here(*, instead: str) -> UpFile:
    """What runs on this machine. `instead` are the variables that would do without."""
    state = state_here()
    up = read_up_file(state.up_file)
    if up is None:
        raise NotUp(folder=state.root, instead=instead)
    return up


def find_target(environ: Mapping[str, str] = os.environ, *, as_operator: bool = False) -> Target:
    """From the environment, else from this machine. A token of this machine is never sent elsewhere."""
    url, token = environ.get(URL), environ.get(TOKEN)
    if url and not token:
        raise Usage(what=f"{URL} is set and {TOKEN} is not: set it to the token of a user there.")
    if url and token:
        return _checked(url, token)
    up = running_here(instead=f"{URL} and {TOKEN}")
    return _checked(up.url, token or (up.operator_token if as_operator else up.user_token))


def _checked(url: str, token: str) -> Target:
    try:
        return target_of(url, token, {})
    except NotConfigured as fault:
        raise Usage(what=f"{URL} and {TOKEN}: {fault}.") from fault

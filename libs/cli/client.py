"""The client as commands use it: asked as a user or as an operator, and its errors as words with an exit code.

What a command prints is what was told: `Mapping`s in the API's own words.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager

import headgate
from headgate import HeadgateError, SyncHeadgate
from libs.cli.calling import called
from libs.cli.errors import Busy, CliError, Failed, NobodyAnswers, NoHeadgate, Refused, ServerFault
from libs.cli.target import Target, find_target
from libs.runtime.terminal import plain


@contextmanager
def as_user() -> Generator[SyncHeadgate]:
    """As a user; where `headgate up` runs, as its first one."""
    with _asked(find_target()) as hg:
        yield hg


@contextmanager
def as_operator() -> Generator[SyncHeadgate]:
    """The same; where `headgate up` runs, as its operator."""
    with _asked(find_target(as_operator=True)) as hg:
        yield hg


@contextmanager
def in_words(url: str) -> Generator[None]:
    """What the client may raise, as what a command ends with."""
    try:
        yield
    except HeadgateError as fault:
        raise ending_of(fault, url) from fault


def ending_of(fault: HeadgateError, url: str) -> CliError:
    match fault:
        case headgate.Unreachable(reason=reason):
            return NobodyAnswers(url=url, reason=reason)
        case headgate.NotHeadgate(elsewhere=elsewhere):
            return NoHeadgate(url=url, where=elsewhere or "where Headgate runs")
        case headgate.Problem():
            return _refusal(fault)
        case _:
            return Failed(reason=f"{str(fault).rstrip('.')}.")


def _refusal(fault: headgate.Problem) -> CliError:
    detail = fault.detail.rstrip(".")
    match fault:
        case headgate.Unavailable():
            away = detail.partition(": try again")[0]  # what comes after it is for programs that send keys
            return ServerFault(detail=away, debug_id=fault.debug_id)
        case headgate.ServerFault():
            return ServerFault(detail=detail, debug_id=fault.debug_id)
        case headgate.TryLater():
            return Busy(detail=detail)
        case headgate.NotSignedIn():
            wrong = detail.partition(". ")[0]  # what comes after it is for programs that write headers
            remedy = f"Set HEADGATE_TOKEN to a valid one: `{called()} token` signs one on this machine."
            return Refused(detail=f"{wrong}. {remedy}")
        case headgate.NotAllowed() if "lacks the scope" in detail:
            wrong = detail.partition(". ")[0]
            remedy = f"Set HEADGATE_TOKEN to one that has it: `{called()} token --help` says how it is signed."
            return Refused(detail=f"{wrong}. {remedy}")
        case headgate.NotFound() if "/openapi.json" in detail:  # no route, where an id or a name has a slash
            return Refused(detail="There is nothing of that name. An id has letters, digits, - and _.")
        case _:
            return Refused(detail=f"{detail}.")


@contextmanager
def _asked(target: Target) -> Generator[SyncHeadgate]:
    heard = list[str]()
    with in_words(target.url), SyncHeadgate(target.url, target.token, catching_up=heard.append) as hg:
        yield hg
    if heard:
        how_far = plain(heard[-1]).replace("/", " of ")
        sys.stderr.write(f"headgate: the index is catching up ({how_far} records): what it lacks is not shown yet.\n")

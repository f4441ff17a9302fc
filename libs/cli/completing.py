"""What a shell completes beside words that are fixed: ids of jobs, names of groups, scopes.

Asked of the Headgate that commands speak to, once: who types is waiting. Where that does not answer, or lets nobody in,
nothing is offered and nothing is said.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from typing import Final

from click.shell_completion import CompletionItem, ShellComplete, ZshComplete

from headgate import HeadgateError, Patience, SyncHeadgate
from headgate.overseen import GroupState
from headgate_contracts.vocabulary import Priority
from libs.cli.arguments import commands
from libs.cli.calling import NAME
from libs.cli.errors import CliError
from libs.cli.grammar import COMPLETING, BashWords, FishWords
from libs.cli.output import Output
from libs.cli.target import find_target

ONCE: Final = Patience(tries=1, within_s=2)
MOST: Final = 50
SCOPES: Final = ("all", *(f"priority:{each.value}" for each in Priority), "pool:", "user:", "project:", "workflow:")

SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": BashWords, "zsh": ZshComplete, "fish": FishWords}

Offer = tuple[str, str]  # a word, and what it stands for


def completion(args: Namespace, _: Output) -> int:
    """The script that a shell reads: it asks this very command how a word may go on."""
    sys.stdout.write(SHELLS[args.shell](commands(), {}, NAME, COMPLETING).source())
    return 0


def job_ids(beginning: str) -> list[CompletionItem]:
    """The newest jobs, each with what it is called."""
    jobs = _asked(lambda hg: [(job.id, job.title or job.project_id) for job in hg.jobs(limit=MOST)])
    return _offered(jobs, beginning)


def group_names(beginning: str) -> list[CompletionItem]:
    """Each with how full it is."""
    groups = _asked(lambda hg: [(group.group, _fullness(group)) for group in hg.ops.groups()], as_operator=True)
    return _offered(groups, beginning)


def _fullness(group: GroupState) -> str:
    return f"{group.active} of {group.limit} slots taken, {group.waiting} waiting"


def scopes(beginning: str) -> list[CompletionItem]:
    return _offered(((scope, "") for scope in SCOPES), beginning)


def _asked(question: Callable[[SyncHeadgate], list[Offer]], *, as_operator: bool = False) -> list[Offer]:
    try:
        target = find_target(as_operator=as_operator)
        with SyncHeadgate(target.url, target.token, patience=ONCE) as hg:
            return question(hg)
    except (HeadgateError, CliError):
        return []


def _offered(offers: Iterable[Offer], beginning: str) -> list[CompletionItem]:
    return [CompletionItem(word, help=about or None) for word, about in offers if word.startswith(beginning)]

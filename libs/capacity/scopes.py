"""Which pauses hold a job: those of the scopes that name it. The one list in Python; `queue.lua` has the one in Lua.

all · priority:<class> · pool:<pool> · user:<user> · project:<project> · workflow:<workflow>
"""

from collections.abc import Iterable
from typing import Final

from headgate_contracts import Job
from headgate_contracts.vocabulary import CLASS_NUMBERS

ALL: Final = "all"
CLASS_OF_SCOPE: Final = {f"priority:{priority.value}": number for priority, number in CLASS_NUMBERS.items()}
OWNERS: Final = ("user:", "project:")  # what the groups of `owners_of` begin with
_SCOPE_OF_CLASS: Final = {number: scope for scope, number in CLASS_OF_SCOPE.items()}


def owners_of(user: str, project: str, workflow: str | None = None) -> tuple[str, ...]:
    """Whose a job is. Its user and its project are groups too: each job of theirs needs a slot there."""
    own = (f"user:{user}", f"project:{project}")
    return own if workflow is None else (*own, f"workflow:{workflow}")


def taking_aside(class_number: int, owners: Iterable[str]) -> tuple[str, ...]:
    """The scopes whose pause takes the job out of its line. `all` and pools are looked at when planning."""
    own = _SCOPE_OF_CLASS.get(class_number)
    return tuple(owners) if own is None else (own, *owners)


def scopes_of(class_number: int, pool: str, owners: Iterable[str]) -> tuple[str, ...]:
    """Every scope that names such a job, the widest first: a pause of any of them holds it."""
    return (ALL, *taking_aside(class_number, ()), f"pool:{pool}", *owners)


def scopes_of_job(job: Job) -> tuple[str, ...]:
    """Those of a job of the log, as it stands now."""
    asked = job.submission
    owners = owners_of(job.user_id, job.project_scope, asked.workflow)
    return scopes_of(job.priority.class_number, asked.pool, owners)

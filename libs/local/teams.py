"""Other teams: who they are, and the file by which nats-server knows them.

    # {"teams": [...]}            what the file was made from: the one thing that is read back
    {"TEAM-1": {...}, "TEAM-2": {}, ...}      accounts, which the server's configuration includes

Each team has an account of its own. What it may ask is imported there by the names of its consumers and nothing else,
so an answer can arrive in its own account alone: nats-server checks what is published, never where an answer is to go.
All accounts are there from the start, most of them empty, as nats-server takes new users into an account it has when it
is told to read its files again, and forgets the imports of one that it has not (seen on 2.15).

Owns the file and the names. Refuses to speak to a server.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from headgate_contracts.subjects import JOBS_PREFIX
from libs.eventlog.teams import TeamConsumer
from libs.local.errors import TeamRefused, TeamsUnreadable
from libs.local.nats_config import team_account
from libs.local.permissions import team_user
from libs.local.state import write_private

MOST: Final = 32  # accounts that are set aside
OURS: Final = ("worker", "follow", "webhooks")  # what consumers of Headgate's own begin with
HEAD: Final = "# Made by `headgate teams` from the line below. Its readers can read what these teams may."
NAME_FORM: Final = "name of a team or a consumer: use up to 32 of a-z and 0-9, with single dashes in between"
FILTER_FORM: Final = f"subjects of the log: write them as {JOBS_PREFIX}.*.*.PROJECT.EVENT, {JOBS_PREFIX}.> for all"
EVERY_JOB: Final = f"{JOBS_PREFIX}.>"

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](-?[a-z0-9])*$", max_length=32)]
Filter = Annotated[str, StringConstraints(pattern=r"^headgate\.(jobs|sched|ops)\.v1(\.[A-Za-z0-9_*-]+)*(\.>)?$")]


class Team(BaseModel):
    """Its password, its consumers and its account. What the consumers let through is all that it ever reads."""

    model_config = ConfigDict(frozen=True)

    name: Name
    password: str = Field(repr=False)
    consumers: tuple[Name, ...] = Field(min_length=1)
    filters: tuple[Filter, ...] = (EVERY_JOB,)
    account: int = Field(default=1, ge=1, le=MOST)  # it keeps it while others come and go: its connections stay

    @property
    def user(self) -> str:
        return f"team-{self.name}"


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True)

    teams: tuple[Team, ...] = ()


def new_team(name: str, *, password: str, purposes: Sequence[str], filters: Sequence[str]) -> Team:
    """Its consumers are named after it: one for each purpose, or one that has its name."""
    consumers = [f"{name}-{purpose}" for purpose in purposes] or [name]
    try:
        team = Team(name=name, password=password, consumers=tuple(consumers), filters=tuple(filters) or (EVERY_JOB,))
    except ValidationError as wrong:
        fault = wrong.errors(include_url=False)[0]
        instead = FILTER_FORM if fault["loc"][0] == "filters" else NAME_FORM
        raise TeamRefused(reason=f"{fault['input']!r} is no {instead}") from None
    if name.split("-", maxsplit=1)[0] in OURS:
        raise TeamRefused(reason=f"names that begin with {', '.join(OURS)} are Headgate's own")
    return team


def with_team(teams: Sequence[Team], team: Team) -> tuple[Team, ...]:
    """With it, in the first account that is free."""
    if any(each.name == team.name for each in teams):
        raise TeamRefused(reason=f"there is a team {team.name} already: remove it first")
    taken = {consumer for each in teams for consumer in each.consumers}
    if both := taken & set(team.consumers):
        raise TeamRefused(reason=f"the consumer {min(both)} is another team's")
    free = set(range(1, MOST + 1)) - {each.account for each in teams}
    if not free:
        raise TeamRefused(reason=f"there are {MOST} teams, and no account is left for another")
    return (*teams, team.model_copy(update={"account": min(free)}))


def without_team(teams: Sequence[Team], name: str) -> tuple[Team, ...]:
    """All but this one."""
    if not any(each.name == name for each in teams):
        known = ", ".join(sorted(each.name for each in teams))
        raise TeamRefused(reason=f"there is no team {name}; there is {known}" if known else "there is no team yet")
    return tuple(each for each in teams if each.name != name)


def teams_file(teams: Iterable[Team]) -> str:
    """For `include` among nats-server's accounts."""
    kept = _Kept(teams=tuple(teams))
    accounts = dict[str, object]({f"TEAM-{number}": {} for number in range(1, MOST + 1)})
    for team in kept.teams:
        user = team_user(team.user, team.password, team.consumers)
        accounts[f"TEAM-{team.account}"] = team_account(user, team.consumers)
    return f"{HEAD}\n# {kept.model_dump_json()}\n{json.dumps(accounts, indent=2)}\n"


def read_teams(text: str) -> tuple[Team, ...]:
    """Out of such a file."""
    try:
        return _Kept.model_validate_json(text.splitlines()[1].removeprefix("# ")).teams
    except (IndexError, ValidationError) as wrong:
        raise TeamsUnreadable from wrong


def teams_in(path: Path) -> tuple[Team, ...]:
    """Those of this file, which is made where there is none: a server does not start without what it includes."""
    if not path.exists():
        write_teams(path, ())
    return read_teams(path.read_text(encoding="utf-8"))


def write_teams(path: Path, teams: Iterable[Team]) -> None:
    """Whole or not at all. Its folder is for its owner alone, or below one that is: a server in a container, which is
    another user, must read it."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    write_private(path, teams_file(teams))
    path.chmod(0o644)


def consumers_of(teams: Iterable[Team]) -> tuple[TeamConsumer, ...]:
    return tuple(TeamConsumer(consumer, team.name, team.filters) for team in teams for consumer in team.consumers)

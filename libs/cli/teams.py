"""`headgate teams`: credentials and consumers for those who read the log.

Here, where `headgate up` runs, all of it is done at once. For servers in compose or Kubernetes (`--deployed`) the file
that they include is written; that they read it again, and `headgate migrate --teams`, is for an operator who reaches
them.
"""

import asyncio
import secrets
from argparse import Namespace
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from libs.cli.calling import called
from libs.cli.errors import Failed, Refused
from libs.cli.output import Output
from libs.cli.reporting import reported
from libs.cli.target import running_here
from libs.eventlog import connect
from libs.eventlog.servers import reload_server
from libs.eventlog.teams import settle_teams
from libs.local.errors import TeamRefused
from libs.local.provisions import operator_url, system_url, with_user
from libs.local.state import PASSWORD_BYTES, StateFolder, state_here
from libs.local.teams import Team, consumers_of, new_team, teams_in, with_team, without_team, write_teams

NATS_AT: Final = "nats://nats:4222"  # the service's name in compose and in Kubernetes
NEXT: Final = (
    "The servers do not know that yet: have them read the file again, then run `headgate migrate` there with --teams."
    " docs/run.md has the commands, under Other teams."
)


def add(args: Namespace, out: Output) -> int:
    """A password, an account and consumers of its own. The URL is shown this once."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    with _told():
        team = new_team(args.name, password=password, purposes=args.consumer, filters=args.filter)
        place = _place(deployed=args.deployed)
        place.settle(with_team(place.teams, team))
    url = with_user(place.nats_url, team.user, team.password)
    out.data({"team": team.name, "nats_url": url, "consumers": team.consumers, "filters": team.filters})
    out.plain(url)
    out.say(f"consumers  {', '.join(team.consumers)}")
    out.say(f"subjects   {', '.join(team.filters)}")
    _say_what_is_left(place, out)
    return 0


def remove(args: Namespace, out: Output) -> int:
    """Its connections are closed, its password opens nothing, its consumers are gone."""
    with _told():
        place = _place(deployed=args.deployed)
        place.settle(without_team(place.teams, args.name))
    out.data({"removed": args.name})
    out.say(f"removed  {args.name}")
    _say_what_is_left(place, out)
    return 0


def show(args: Namespace, out: Output) -> int:
    """Without their passwords."""
    with _told():
        teams = sorted(_place(deployed=args.deployed).teams, key=lambda team: team.name)
    out.data([team.model_dump(exclude={"password"}) for team in teams])
    out.table(
        ("TEAM", "CONSUMERS", "SUBJECTS"),
        [(team.name, ", ".join(team.consumers), ", ".join(team.filters)) for team in teams],
    )
    if not teams:
        out.say(f"There is no team yet: `{called()} teams add NAME` makes one.")
    return 0


@dataclass(frozen=True, slots=True)
class _Place:
    """Where nats-server reads of teams, and how it is reached: null where that is not from here."""

    file: Path
    nats_url: str
    state: StateFolder | None

    @property
    def teams(self) -> tuple[Team, ...]:
        return teams_in(self.file)

    def settle(self, teams: Sequence[Team]) -> None:
        """A team that is not among them has lost its rights before its consumers end; a new one has its consumers
        before anybody is told the password."""
        write_teams(self.file, teams)
        if self.state is not None:
            asyncio.run(_settled(self.nats_url, self.state, teams))


def _place(*, deployed: bool) -> _Place:
    state = state_here()
    if not deployed:
        return _Place(state.teams, running_here(instead="--deployed for compose or Kubernetes").nats_url, state)
    if not state.deployed_teams.parent.parent.exists():
        raise Failed(reason=f"There is no {state.deployed_teams.parent.parent}: run `make secrets` first.")
    return _Place(state.deployed_teams, NATS_AT, None)


async def _settled(nats_url: str, state: StateFolder, teams: Sequence[Team]) -> None:
    system = await connect(system_url(nats_url, state), name="headgate teams")
    try:
        await reload_server(system)
    finally:
        await system.close()
    operator = await connect(operator_url(nats_url, state), name="headgate teams")
    try:
        await settle_teams(operator, consumers_of(teams))
    finally:
        await operator.close()


def _say_what_is_left(place: _Place, out: Output) -> None:
    if place.state is None:
        out.say(NEXT)


@contextmanager
def _told() -> Generator[None]:
    """What a team may not be is the asker's matter, all else the machine's."""
    with reported():
        try:
            yield
        except TeamRefused as refused:
            raise Refused(detail=str(refused)) from None

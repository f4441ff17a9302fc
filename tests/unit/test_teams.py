"""Other teams: their names, their consumers, and the file that nats-server includes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from libs.local.errors import TeamRefused, TeamsUnreadable
from libs.local.teams import MOST, Team, new_team, read_teams, teams_file, with_team, without_team


def team(name: str, *purposes: str) -> Team:
    return new_team(name, password=f"secret-of-{name}", purposes=purposes, filters=())


def accounts(text: str) -> dict[str, Any]:
    return json.loads(text.split("\n", 2)[2])


def test_a_consumer_is_named_after_its_team() -> None:
    assert team("billing").consumers == ("billing",)
    assert team("billing", "failures", "ends").consumers == ("billing-failures", "billing-ends")


@pytest.mark.parametrize("name", ["", "Billing", "a.b", "a*", ">", "a b", "-a", "a--b", "x" * 33])
def test_a_name_that_is_no_plain_word_is_refused(name: str) -> None:
    with pytest.raises(TeamRefused, match="is no name of a team or a consumer: use up to 32 of a-z"):
        team(name)


@pytest.mark.parametrize("name", ["worker", "worker-default", "webhooks", "follow-x"])
def test_a_name_of_headgates_own_consumers_is_refused(name: str) -> None:
    with pytest.raises(TeamRefused, match="Headgate's own"):
        team(name)


@pytest.mark.parametrize("subject", [">", "$JS.API.>", "headgate.cmd.v1.>", "$KV.INPUTS.>", "headgate.logs.v1.>"])
def test_a_team_is_shown_subjects_of_the_log_alone(subject: str) -> None:
    with pytest.raises(TeamRefused, match=r"no subjects of the log: write them as headgate\.jobs\.v1\."):
        new_team("billing", password="p", purposes=(), filters=(subject,))


def test_two_teams_share_no_name_and_no_consumer() -> None:
    teams = with_team((), team("a", "b-c"))

    with pytest.raises(TeamRefused, match="there is a team a already"):
        with_team(teams, team("a"))
    with pytest.raises(TeamRefused, match="the consumer a-b-c is another team's"):
        with_team(teams, team("a-b", "c"))


def test_there_are_as_many_teams_as_accounts() -> None:
    teams: tuple[Team, ...] = ()
    for number in range(MOST):
        teams = with_team(teams, team(f"t{number}"))

    with pytest.raises(TeamRefused, match="no account is left"):
        with_team(teams, team("one-more"))


def test_a_team_keeps_its_account_while_others_come_and_go() -> None:
    teams = with_team(with_team((), team("a")), team("b"))

    left = without_team(teams, "a")
    again = with_team(left, team("c"))

    assert [(each.name, each.account) for each in again] == [("b", 2), ("c", 1)]


def test_a_team_that_is_not_there_cannot_go_and_those_that_are_there_are_named() -> None:
    with pytest.raises(TeamRefused, match="there is no team c; there is a, b"):
        without_team((team("b"), team("a")), "c")


def test_the_file_is_read_back_as_it_was_written() -> None:
    teams = with_team(with_team((), team("a")), team("b", "ends"))

    assert read_teams(teams_file(teams)) == teams
    assert read_teams(teams_file(())) == ()


@pytest.mark.parametrize("text", ["", "{}", "# made\n# {broken\n{}"])
def test_a_file_of_somebody_elses_is_not_taken_for_one_without_teams(text: str) -> None:
    with pytest.raises(TeamsUnreadable):
        read_teams(text)


def test_an_account_imports_what_its_team_may_ask_and_all_accounts_are_always_there() -> None:
    empty, made = accounts(teams_file(())), accounts(teams_file(with_team(with_team((), team("a")), team("b"))))

    assert empty.keys() == made.keys()
    assert {name for name, account in made.items() if account} == {"TEAM-1", "TEAM-2"}
    for account, consumer in (("TEAM-1", "a"), ("TEAM-2", "b")):
        imported = {each["service"]["subject"] for each in made[account]["imports"]}
        assert imported == {
            f"$JS.API.CONSUMER.INFO.JOBS.{consumer}",
            f"$JS.API.CONSUMER.MSG.NEXT.JOBS.{consumer}",
            f"$JS.ACK.JOBS.{consumer}.>",
        }

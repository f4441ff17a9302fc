"""The consumers of other teams: made and removed by the operator, so that a team has what it was given and no more.

Owns their settings and whose they are, which stands in their metadata. What a team has acknowledged stays with its
consumer for as long as that is wanted. Refuses to touch a consumer that bears no team's name.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from nats.aio.client import Client

from libs.eventlog.api import ask
from libs.eventlog.errors import LogMissing
from libs.eventlog.guard import settings_differences
from libs.eventlog.streams import JOBS, SECOND_NS

TEAM_KEY: Final = "headgate.team"
ACK_WITHIN_S: Final = 30


@dataclass(frozen=True, slots=True)
class TeamConsumer:
    """One consumer, whose it is, and which subjects it lets through."""

    name: str
    team: str
    filters: tuple[str, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """In the server's own words. A team that is slow holds up no other: what it did not take waits in the log."""
        one = len(self.filters) == 1
        return {
            "durable_name": self.name,
            "deliver_policy": "all",
            "ack_policy": "explicit",
            "ack_wait": ACK_WITHIN_S * SECOND_NS,
            "max_deliver": -1,
            "max_ack_pending": 1000,
            "filter_subject": self.filters[0] if one else None,  # the server gives one back as one
            "filter_subjects": None if one else list(self.filters),
        }


async def settle_teams(nc: Client, wanted: Sequence[TeamConsumer]) -> tuple[list[str], list[str]]:
    """Make what is wanted and not there, end what is a team's and not wanted. Their names: made, ended."""
    found = await _consumers(nc)
    made: list[str] = []
    for consumer in wanted:
        there = found.get(consumer.name)
        if there is None or settings_differences(consumer.name, consumer.settings, there):
            config = {key: value for key, value in consumer.settings.items() if value is not None}
            question = {"stream_name": JOBS, "config": config | {"metadata": {TEAM_KEY: consumer.team}}}
            await ask(nc, "CONSUMER.CREATE", stream=f"{JOBS}.{consumer.name}", question=question)
            made.append(consumer.name)
    kept = {consumer.name for consumer in wanted}
    ended = [name for name, config in found.items() if TEAM_KEY in config.get("metadata", {}) and name not in kept]
    for name in ended:
        with suppress(LogMissing):  # somebody else has ended it meanwhile
            await ask(nc, "CONSUMER.DELETE", stream=f"{JOBS}.{name}", question={})
    return made, ended


async def _consumers(nc: Client) -> dict[str, Mapping[str, Any]]:
    """The settings of each, by its name. The server tells them by the 256."""
    found = dict[str, Mapping[str, Any]]()
    seen = 0
    while True:
        answer = await ask(nc, "CONSUMER.LIST", stream=JOBS, question={"offset": seen})
        page: list[dict[str, Any]] = answer.get("consumers") or []
        found |= {each["name"]: each["config"] for each in page}
        seen += len(page)
        if not page or seen >= answer.get("total", 0):
            return found

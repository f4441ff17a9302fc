"""Who is watched: whose streams notifiers have open, as they said lately.

    a stream opens ──► Watching, at once ──┐
    every few seconds ──► Watching, all ───┴──► heard by every replica, forgotten after three times as long

Owns nothing that must not be lost: a word that was lost delays a position until the next one, and one that holds for
too long costs a message without a reader. Bounded by the streams that policy lets notifiers have.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from headgate_contracts import Job
from headgate_contracts.commands import Watching
from libs.capacity.roster import Roster

LOST_WORDS: Final = 2  # one after the other, after which it is still known


@dataclass(slots=True)
class Watchers:
    """Jobs and users, each with the moment until which it counts as watched."""

    every_ms: int  # between two words about the same
    _jobs: dict[str, int] = field(default_factory=dict[str, int])
    _users: dict[str, int] = field(default_factory=dict[str, int])

    def note(self, said: Watching, *, now_ms: int) -> bool:
        """Whether anybody is among them who was not watched before."""
        before = len(self._jobs) + len(self._users)
        until_ms = now_ms + (LOST_WORDS + 1) * self.every_ms
        self._jobs.update(dict.fromkeys(said.jobs, until_ms))
        self._users.update(dict.fromkeys(said.users, until_ms))
        return len(self._jobs) + len(self._users) > before

    def forget(self, *, now_ms: int) -> None:
        """Those whom no notifier has named for long."""
        for names in (self._jobs, self._users):
            for name in [name for name, until_ms in names.items() if until_ms <= now_ms]:
                del names[name]

    def among(self, roster: Roster) -> tuple[Job, ...]:
        """The queued jobs that are watched. What it costs goes by who is watched, not by how many are queued."""
        watched = dict(self._of_users(roster, self._users))
        watched.update((name, roster.queued[name]) for name in self._jobs if name in roster.queued)
        return tuple(watched.values())

    def _of_users(self, roster: Roster, users: Iterable[str]) -> Iterator[tuple[str, Job]]:
        for user in users:
            yield from roster.queued_of.get(user, {}).items()

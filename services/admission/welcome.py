"""Whose next input is put while its job's place is still asked for: a sync less in the way of a submission.

    taken in ─► welcome ─► the next one: input and place at once ─► taken in ─► welcome again
                                                 └─ refused: the input is left to the janitor, its user is not welcome

Owns the rule that refusals cost no writes that add up: before each input that is put for nothing a submission of the
same user was taken in, and paid for.
"""

from __future__ import annotations

from typing import Final

MOST_USERS: Final = 10_000  # that are remembered; the one that was taken in longest ago goes first


class Welcome:
    """The users whose last submission this replica has accepted."""

    def __init__(self) -> None:
        self._users: dict[str, None] = {}

    def takes(self, user: str) -> bool:
        """Whether their input may be put at once. Until that is taken in no other one may."""
        if user not in self._users:
            return False
        del self._users[user]
        return True

    def taken_in(self, user: str) -> None:
        """A submission of theirs is in the log."""
        self._users[user] = None
        if len(self._users) > MOST_USERS:
            del self._users[next(iter(self._users))]

"""In a reload of the policy: who goes on by the numbers of before."""

from __future__ import annotations

from typing import Any, Final

from libs.capacity.engine import Engine
from libs.capacity.ledger import Ledger
from libs.foundation.policing import PolicyFollower
from tests.planted.bug import Bug


def plans_by_what_was(sound: Any) -> Any:
    def renew(self: Engine, ledger: Ledger) -> None:
        before = self._state.defaults
        sound(self, ledger)
        self._state.defaults = before

    return renew


def looks_at_its_start_alone(sound: Any) -> Any:
    async def look(self: PolicyFollower) -> None:
        """What was in force then is taken for good."""

    return look


POLICY: Final = (
    Bug(
        "reload-not-planned-by",
        "libs.capacity.engine:Engine.renew",
        plans_by_what_was,
        "A lower limit holds for all that starts from its record on. The plan goes on with the one of before until "
        "this replica is started again, and its links say so (I5).",
    ),
    Bug(
        "reload-heard-at-the-start-alone",
        "libs.foundation.policing:PolicyFollower.look",
        looks_at_its_start_alone,
        "Admission asks for the newest policy once a second. A replica that has heard of one never looks again: it "
        "takes jobs into a queue that the others call full (I5).",
    ),
)

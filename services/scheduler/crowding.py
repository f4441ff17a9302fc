"""How full the bucket of inputs is: shown as metrics, and said in the log when users begin to be refused for it.

Owns the words. How much a user may hold then is `libs.capacity.rooms`; who is refused is the view's to say.
"""

import logging
from collections.abc import Iterable
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from libs.capacity.errors import ViewError
from libs.capacity.ports import ViewReadings
from libs.capacity.rooms import Room
from libs.policy import Policy
from services.scheduler.leader import Leader

logger = logging.getLogger(__name__)

MB: Final = 1_000_000


class Crowding:
    """One replica's. It speaks while that leads, so that nothing is said or counted twice."""

    def __init__(self, meter: Meter, *, policy: Policy, view: ViewReadings, leader: Leader) -> None:
        self._policy = policy
        self._view = view
        self._leader = leader
        self._stored: int | None = None  # null: not known, or another's to say
        self._is_crowded = False
        for name, observe, description in (
            ("headgate_inputs_bytes", self._bytes, "inputs that are kept, of all users"),
            ("headgate_inputs_limit_bytes", self._limit, "what the bucket of inputs takes"),
            ("headgate_inputs_share_bytes", self._share, "inputs that one user may hold now; less while it is crowded"),
        ):
            meter.create_observable_gauge(name, [observe], unit="By", description=description)

    @property
    def _room(self) -> Room:
        return Room.of(self._policy)

    async def look(self) -> None:
        """Ask the view once, and say what has changed."""
        try:
            self._stored = await self._view.stored() if self._leader.leads else None
        except ViewError:
            self._stored = None
        if self._stored is None:
            return
        was, self._is_crowded = self._is_crowded, self._stored > self._room.crowded_at
        if self._is_crowded and not was:
            logger.warning("the bucket of inputs is crowded, the largest users are refused first: %s", self._words())
        elif was and not self._is_crowded:
            logger.info("the bucket of inputs is not crowded any more: %s", self._words())

    def _words(self) -> str:
        stored, room = self._stored or 0, self._room
        allowance = room.allowance(stored) / MB
        return f"{stored / MB:.1f} of {room.bucket / MB:.1f} MB are held, one user may hold {allowance:.1f} MB"

    def _bytes(self, _: CallbackOptions) -> Iterable[Observation]:
        return () if self._stored is None else (Observation(self._stored),)

    def _limit(self, _: CallbackOptions) -> Iterable[Observation]:
        return () if self._stored is None else (Observation(self._room.bucket),)

    def _share(self, _: CallbackOptions) -> Iterable[Observation]:
        return () if self._stored is None else (Observation(self._room.allowance(self._stored)),)

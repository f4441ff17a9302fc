"""What the leading scheduler has published about the time to come, as this replica last saw it.

It is made anew every few seconds at most, so it is asked for once a second and shared by all requests in between.
"""

from typing import Final

from libs.capacity.ports import ViewReadings
from libs.forecast.table import NAME, Forecast
from libs.policy import Policy
from libs.runtime.clock import Clock

FRESH_MS: Final = 1000


class Forecasts:
    """The newest forecast; without one, nothing is known."""

    def __init__(self, view: ViewReadings, policy: Policy, clock: Clock) -> None:
        self._view = view
        self._policy = policy
        self._clock = clock
        self._asked_ms: int | None = None
        self._seen: tuple[str | None, Forecast] = (None, Forecast.load(None, policy))

    async def current(self) -> Forecast:
        now_ms = self._clock.monotonic_ms()
        if self._asked_ms is None or now_ms - self._asked_ms >= FRESH_MS:
            text = await self._view.published(NAME)
            self._asked_ms = now_ms
            if text != self._seen[0]:
                self._seen = (text, Forecast.load(text, self._policy))
        return self._seen[1]

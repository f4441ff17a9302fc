"""How many submissions were refused, and why: a metric of this replica, and a count that all replicas share.

What is counted is the problem's slug. Refuses to make an answer fail, or wait for a store that is away.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from opentelemetry.metrics import Meter

from headgate_contracts import ContractError
from libs.capacity.errors import ViewError
from libs.foundation.public import LATER
from libs.runtime.faults import Refused, problem_for
from libs.runtime.problems import Problem
from services.admission.bodies import AdmissionRoute

AWAY: Final = tuple(LATER)
REFUSALS: Final = (Refused, ContractError, RequestValidationError, *AWAY)  # of those who may submit at all


class Counts(Protocol):
    async def count_refused(self, reason: str) -> None: ...


class Refusals:
    """The counts."""

    def __init__(self, view: Counts, meter: Meter) -> None:
        self._view = view
        self._counter = meter.create_counter(
            "headgate_admission_refused", description="submissions that were refused, by reason"
        )

    async def count(self, problem: Problem) -> None:
        self._counter.add(1, {"reason": problem.slug})
        if problem.slug not in ("unavailable", "full"):
            with suppress(ViewError):
                await self._view.count_refused(problem.slug)

    def route(self) -> type[AdmissionRoute]:
        """Routes whose refusals are counted, those of dry runs aside."""
        count = self.count

        class Counted(AdmissionRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                handle = super().get_route_handler()

                async def counted(request: Request) -> Response:
                    try:
                        return await handle(request)
                    except REFUSALS as fault:
                        if "dry_run" not in request.query_params:
                            await count(problem_for(fault, LATER))
                        raise

                return counted

        return Counted

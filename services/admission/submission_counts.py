"""How submissions were answered, how long it took, and why those were refused that were: metrics of this replica, and
of refusals a count that all replicas share.

What is counted of a refusal is the problem's slug. Refuses to make an answer fail, or wait for a store that is away.
"""

import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from opentelemetry.metrics import Meter
from pydantic import TypeAdapter, ValidationError

from headgate_contracts import ContractError
from libs.capacity.errors import ViewError
from libs.capacity.ports import View
from libs.foundation.public import LATER
from libs.runtime.faults import Refused, problem_for
from libs.runtime.problems import Problem
from services.admission.bodies import AdmissionRoute

logger = logging.getLogger(__name__)

AWAY: Final = tuple(LATER)
ACCEPTS_S: Final = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15]
REFUSALS: Final = (Refused, ContractError, RequestValidationError, *AWAY)  # of those who may submit at all
_FLAG: Final = TypeAdapter(bool)


class SubmissionCounts:
    """Counters and times of one replica's answers to submissions."""

    def __init__(self, view: View, meter: Meter) -> None:
        self._view = view
        self._counter = meter.create_counter(
            "headgate_admission_refused", description="submissions that were refused, by reason"
        )
        self._answers = meter.create_counter(
            "headgate_admission_submissions", description="submissions, by the status of the answer; each of a batch"
        )
        self._accepted = meter.create_histogram(
            "headgate_admission_accept_seconds",
            description="from a submission to its 202",
            explicit_bucket_boundaries_advisory=ACCEPTS_S,
        )

    def took(self, status: int, began_s: float) -> None:
        """A submission that came at this time is answered with this status."""
        self._answers.add(1, {"answer": str(status)})
        if status == 202:
            self._accepted.record(time.perf_counter() - began_s)

    async def count(self, problem: Problem) -> None:
        self._counter.add(1, {"reason": problem.slug})
        if problem.slug not in ("unavailable", "full"):
            with suppress(ViewError):
                await self._view.count_refused(problem.slug)

    async def refused(self, problem: Problem, began_s: float, user: str | None) -> None:
        """A submission of this user that came at this time is answered with this problem."""
        await self.count(problem)
        logger.info("a submission was refused: %s", problem.slug, extra={"user_id": user})
        self.took(problem.status, began_s)

    def route(self) -> type[AdmissionRoute]:
        """Routes whose answers are counted, those of dry runs aside."""
        refused, took = self.refused, self.took

        class Counted(AdmissionRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                handle = super().get_route_handler()

                async def counted(request: Request) -> Response:
                    if _is_dry_run(request):
                        return await handle(request)
                    began_s = time.perf_counter()
                    try:
                        response = await handle(request)
                    except REFUSALS as fault:
                        who = getattr(request.state, "principal", None)
                        await refused(problem_for(fault, LATER), began_s, None if who is None else who.user)
                        raise
                    took(response.status_code, began_s)
                    return response

                return counted

        return Counted


def _is_dry_run(request: Request) -> bool:
    """As the route reads it; what it cannot read, it refuses as a submission."""
    try:
        return _FLAG.validate_python(request.query_params.get("dry_run", False))
    except ValidationError:
        return False

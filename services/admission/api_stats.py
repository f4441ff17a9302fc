"""HTTP: the routes that tell operators what was, over time."""

from datetime import timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from headgate_contracts.asked import Moment
from headgate_contracts.envelope import utc
from headgate_contracts.shown import ShownStats, WorkerAttempt
from headgate_contracts.tokens import Token
from libs.runtime.faults import Refused
from services.admission import problems
from services.admission.api import Edge, Operator, route_group
from services.admission.api_reading import LISTED, catching_up

A_DAY: Final = timedelta(days=1)


def stats_routes(edge: Edge) -> APIRouter:
    router = route_group()

    @router.get("/stats", response_model=ShownStats, responses=LISTED)
    async def get_stats(
        who: Operator,
        since: Annotated[Moment | None, Query(description="a day ago where it is not said")] = None,
        step: Annotated[
            int | None,
            Query(ge=60, le=86_400, multiple_of=60, description="seconds; longer where it would be over 1,000 steps"),
        ] = None,
    ) -> JSONResponse:
        """Figures for charts: jobs queued, running, started and ended, how long they waited, and refused submissions;
        as far back as the log goes."""
        found = await edge.charting.stats(since or utc(edge.clock.now_ms()) - A_DAY, step_s=step)
        if found is None:
            raise Refused(problems.no_index())
        return JSONResponse(found[1].model_dump(mode="json"), headers=catching_up(found[0]))

    @router.get("/workers/attempts", response_model=list[WorkerAttempt], responses=LISTED)
    async def list_attempts(
        who: Operator, worker: Token | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100
    ) -> JSONResponse:
        """The attempts that workers took up and what became of them, newest first."""
        found = await edge.charting.attempts(worker, count=limit)
        if found is None:
            raise Refused(problems.no_index())
        return JSONResponse([each.model_dump(mode="json") for each in found[1]], headers=catching_up(found[0]))

    return router

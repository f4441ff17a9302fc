"""The HTTP edge of admission: what its routes share.

They parse, call a use case and turn its outcome into an answer. No decision is made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Path, Query, Request
from fastapi.responses import JSONResponse

from headgate_contracts import Job
from headgate_contracts.shown import ShownJob
from libs.policy import Policy
from libs.runtime.auth import Principal, principal
from libs.runtime.clock import Clock
from libs.runtime.errors import Forbidden
from libs.runtime.problems import Refused
from libs.runtime.telemetry import Telemetry
from services.admission import problems
from services.admission.changing import Changing
from services.admission.ports import Ids
from services.admission.reading import Reading
from services.admission.refusals import Refusals
from services.admission.retrying import Retrying
from services.admission.submitting import Submitting

READ: Final = "jobs:read"
WRITE: Final = "jobs:write"
OPS: Final = "ops"
Reason = Annotated[str, Query(max_length=500, description="why, for the audit")]
JobIdPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
Reader = Annotated[Principal, Depends(principal(scope=READ))]
Writer = Annotated[Principal, Depends(principal(scope=WRITE))]
Operator = Annotated[Principal, Depends(principal(scope=OPS))]


async def writer_or_operator(who: Annotated[Principal, Depends(principal())]) -> Principal:
    """Who may change a job: its owner, or an operator, who needs no right to submit for that."""
    if not (who.may(WRITE) or who.may(OPS)):
        raise Forbidden(WRITE)
    return who


Changer = Annotated[Principal, Depends(writer_or_operator)]


@dataclass(frozen=True, slots=True)
class Edge:
    """What the routes share."""

    submitting: Submitting
    retrying: Retrying
    changing: Changing
    reading: Reading
    policy: Policy
    clock: Clock
    telemetry: Telemetry
    refusals: Refusals
    ids: Ids

    async def own(self, job_id: str, who: Principal) -> Job:
        """A job of the asker's; another's does not exist."""
        job = await self.reading.find(job_id)
        if job is None or not (who.may(OPS) or (job.user_id == who.user and who.may_use(job.project_id))):
            raise Refused(problems.not_found(job_id))
        return job

    async def show(self, job: Job, who: Principal) -> ShownJob:
        """In words for its owner, or for an operator who looks at another's."""
        return (await self.reading.shown([job], owner=job.user_id == who.user))[0]

    async def answer(self, job: Job, who: Principal, *, status: int = 200) -> JSONResponse:
        """The job as the body. Its ETag is its last sequence: what `If-Match` is compared with."""
        return _answer(job, await self.show(job, who), status, {})

    async def taken(self, job: Job, who: Principal) -> ShownJob:
        """A job that was just taken in, whatever has become of the view since."""
        return (await self.reading.taken([job], owner=job.user_id == who.user))[0]

    async def located(self, job: Job, who: Principal) -> JSONResponse:
        """That job as the body, and where it is found from now on."""
        return _answer(job, await self.taken(job, who), 202, {"Location": f"/v1/jobs/{job.id}"})


def _answer(job: Job, shown: ShownJob, status: int, headers: Mapping[str, str]) -> JSONResponse:
    return JSONResponse(shown.model_dump(mode="json"), status, headers={"ETag": f'"{job.seq}"', **headers})


def next_link(request: Request, cursor: str) -> dict[str, str]:
    """The header that names the page after this one: the same request, from there on."""
    url = request.url.include_query_params(cursor=cursor)
    return {"Link": f'<{url.path}?{url.query}>; rel="next"'}

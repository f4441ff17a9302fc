"""The HTTP edge of admission: what its routes share.

They parse, call a use case and turn its outcome into an answer. No decision is made here.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.responses import JSONResponse

from headgate_contracts import Job
from headgate_contracts.asked import ONE_LINE
from headgate_contracts.shown import ShownJob
from libs.capacity.ports import Tickets
from libs.eventlog.ports import Inputs, Lines, Objects
from libs.policy import Policy
from libs.runtime.auth import OPS, READ, WRITE, Identity, Principal
from libs.runtime.clock import Clock
from libs.runtime.etags import tags_in
from libs.runtime.faults import Refused, known_query
from libs.runtime.telemetry import Telemetry
from services.admission import problems
from services.admission.acts import Revoking
from services.admission.answering import Answering
from services.admission.bodies import AdmissionRoute
from services.admission.changing import Changing
from services.admission.charting import Charting
from services.admission.domain import etag_of
from services.admission.erasing import Erasing
from services.admission.leasing import Leasing
from services.admission.listing import Listing
from services.admission.operating import Operating
from services.admission.outcomes import Accepted, NotChanged
from services.admission.overseeing import Overseeing
from services.admission.ports import Ids
from services.admission.reading import Reading
from services.admission.reloading import Reloading
from services.admission.retrying import Retrying
from services.admission.submission_counts import SubmissionCounts
from services.admission.submitting import Submitting
from services.admission.waiting import Waiting

ReasonQuery = Annotated[str, Query(max_length=500, pattern=ONE_LINE, description="why, for the audit")]
JobIdPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
Reader = Annotated[Principal, Depends(Identity(READ))]
Submitter = Annotated[Principal, Depends(Identity(WRITE))]
Operator = Annotated[Principal, Depends(Identity(OPS))]
Changer = Annotated[Principal, Depends(Identity(WRITE, OPS))]  # an operator needs no right to submit to change a job


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """What the routes share: the use cases, what is fetched as it was kept, and what every answer is made with."""

    submitting: Submitting
    retrying: Retrying
    changing: Changing
    answering: Answering
    reading: Reading
    listing: Listing
    charting: Charting
    waiting: Waiting
    overseeing: Overseeing
    operating: Operating
    erasing: Erasing
    leasing: Leasing
    revoking: Revoking
    reloading: Reloading
    inputs: Inputs
    results: Objects
    lines: Lines
    tickets: Tickets
    policy: Policy
    clock: Clock
    telemetry: Telemetry
    counts: SubmissionCounts
    ids: Ids
    folded: Callable[[int], Awaitable[bool]]  # whether the view has come as far as this record of the log, soon enough

    async def own(self, job_id: str, who: Principal) -> Job:
        """A job of the asker's; another's does not exist."""
        job = await self.reading.find(job_id)
        if job is None or not who.may_see(job):
            raise Refused(problems.not_found(job_id))
        return job

    async def show(self, job: Job, who: Principal) -> ShownJob:
        """In words for its owner, or for an operator who looks at another's."""
        return self._for(who, (await self.reading.shown([job], owner=who.owns(job)))[0])

    async def answer(self, job: Job, who: Principal, *, status: int = 200) -> JSONResponse:
        """The job as the body. Its ETag is its last sequence: what `If-Match` is compared with."""
        return _answer(job, await self.show(job, who), status, {})

    async def answer_change(self, outcome: Accepted | NotChanged, who: Principal, *, status: int = 200) -> JSONResponse:
        """The job that was changed as the body, or why it was not."""
        job = (await self.changed(outcome)).job
        return _answer(job, await self.taken(job, who), status, {})

    async def changed(self, outcome: Accepted | NotChanged) -> Accepted:
        """What was changed, once the view knows it too or a little later: the view tells the place, the usage."""
        if not isinstance(outcome, Accepted):
            raise Refused(problems.not_changed(outcome))
        await self.folded(max(job.seq for job in outcome.jobs))
        return outcome

    async def taken(self, job: Job, who: Principal, *, titles: Mapping[str, str] | None = None) -> ShownJob:
        """A job that was just taken in or changed, whatever has become of the view since. `titles`: where they are
        known."""
        return self._for(who, (await self.reading.taken([job], owner=who.owns(job), titles=titles))[0])

    def _for(self, who: Principal, shown: ShownJob) -> ShownJob:
        """With what operators alone are shown."""
        url = self.policy.tracing.url_of(shown.debug_id) if who.may(OPS) else None
        return shown.model_copy(update={"trace_url": url}) if url else shown

    async def located(self, job: Job, who: Principal, *, titles: Mapping[str, str] | None = None) -> JSONResponse:
        """That job as the body, and where it is found from now on."""
        return _answer(job, await self.taken(job, who, titles=titles), 202, {"Location": f"/v1/jobs/{job.id}"})


async def seen_tags(
    request: Request, _said: Annotated[str | None, Header(alias="If-Match")] = None
) -> frozenset[str] | None:
    """The tags of which what is changed has to have one; null where it may be as it is. The header may come in several
    lines, which the framework does not join."""
    lines = request.headers.getlist("if-match")
    tags = tags_in(", ".join(lines))
    if lines and tags is None:
        raise Refused(problems.bad_condition())
    return tags


SeenTags = Annotated[frozenset[str] | None, Depends(seen_tags)]


def route_group(route_class: type[AdmissionRoute] = AdmissionRoute) -> APIRouter:
    """Routes below /v1 that refuse a parameter which they do not know. Each group has one subject, and is made by a
    function of the edge; `routes` lists them."""
    return APIRouter(prefix="/v1", dependencies=[Depends(known_query)], route_class=route_class)


def _answer(job: Job, shown: ShownJob, status: int, headers: Mapping[str, str]) -> JSONResponse:
    return JSONResponse(shown.model_dump(mode="json"), status, headers={"ETag": etag_of(job), **headers})


def next_link(request: Request, cursor: str) -> dict[str, str]:
    """The header that names the page after this one: the same request, from there on."""
    url = request.url.include_query_params(cursor=cursor)
    return {"Link": f'<{url.path}?{url.query}>; rel="next"'}

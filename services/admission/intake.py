"""From a body to what came of it: whose it is, under which id, and the answer where nothing was taken in.

Owns the ids that follow from an Idempotency-Key: of a job, of each in a batch, of a workflow, of a retry.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from opentelemetry.trace import Link

from headgate_contracts import Job, Tier
from headgate_contracts.asked import KEY, RetryJob, SubmitJob, SubmitWorkflow
from headgate_contracts.envelope import utc
from headgate_contracts.shown import ShownJob
from headgate_contracts.tokens import job_id_for_key, workflow_id_for_key
from libs.forecast.place import shown_standing
from libs.forecast.shown import shown_job
from libs.runtime.auth import Principal
from libs.runtime.faults import Refused
from libs.runtime.spans import step
from libs.runtime.telemetry import job_trace, request_trace
from services.admission import problems
from services.admission.api import Edge
from services.admission.domain import NewJob, new_job
from services.admission.limits import Asker, NotAllowed
from services.admission.outcomes import Accepted, InputGone, NoStart, NotOver, Previewed
from services.admission.workflows import NewPhases, new_workflow

_KEY: Final = re.compile(KEY)
ESCAPED: Final = re.compile(r"\\(.)")


def key_of(header: str | None, *part: object) -> str | None:
    """The key, quoted or not; null where none was sent. `part` names what of the request an id is for."""
    if header is None:
        return None
    found = _KEY.fullmatch(header)
    if found is None:
        raise Refused(problems.bad_key())
    key = header if found[1] is None else ESCAPED.sub(r"\1", found[1])
    return "\n".join((key, *map(str, part)))  # no key holds a newline


@dataclass(frozen=True, slots=True)
class Intake:
    """What the routes that take work in share."""

    edge: Edge

    async def job(self, body: SubmitJob, who: Principal, key: str | None) -> Accepted:
        """The job that was taken in."""
        return await self._submit(self._new_job(body, who, key))

    async def job_preview(self, body: SubmitJob, who: Principal, key: str | None) -> ShownJob:
        [shown] = await self._preview(self._new_job(body, who, key))
        return shown

    async def workflow(self, body: SubmitWorkflow, who: Principal, key: str | None) -> Accepted:
        """The phases that were taken in."""
        return await self._submit(self._new_workflow(body, who, key))

    async def workflow_preview(self, body: SubmitWorkflow, who: Principal, key: str | None) -> tuple[ShownJob, ...]:
        return await self._preview(self._new_workflow(body, who, key))

    async def retry(self, job: Job, who: Principal, key: str | None, wanted: RetryJob) -> Job:
        """The new job, or the first phase of the new workflow. It is its owner's, also where an operator asked for
        it."""
        new_id = self._workflow_id(who, key) if job.submission.workflow else self._job_id(who, key)
        asker = self._asker(who) if who.owns(job) else self._owner(job)
        with step("accept", links=[Link(job_trace(job).root)]) as span:
            outcome = await self.edge.retrying.retry(
                job, new_id=new_id, asker=asker, start=wanted.from_, content=wanted.input
            )
            span.set_attribute("headgate.outcome", type(outcome).__name__)
            span.set_attribute("headgate.job.id", outcome.job.id if isinstance(outcome, Accepted) else job.id)
        match outcome:
            case Accepted():
                return outcome.job
            case NotAllowed():
                raise Refused(problems.invalid(outcome))
            case NotOver() | InputGone() | NoStart():
                raise Refused(problems.not_retried(outcome))
            case refusal:
                raise Refused(problems.not_taken(refusal))

    def _new_job(self, body: SubmitJob, who: Principal, key: str | None) -> NewPhases | NotAllowed:
        new = new_job(body, job_id=self._job_id(who, key), asker=self._asker(who))
        return (new,) if isinstance(new, NewJob) else new

    def _new_workflow(self, body: SubmitWorkflow, who: Principal, key: str | None) -> NewPhases | NotAllowed:
        return new_workflow(body, workflow_id=self._workflow_id(who, key), asker=self._asker(who))

    async def _submit(self, phases: NewPhases | NotAllowed) -> Accepted:
        allowed = _allowed(phases)
        with step("accept", {"headgate.job.id": allowed[0].id}) as span:
            outcome = await self.edge.submitting.submit(*allowed)
            span.set_attribute("headgate.outcome", type(outcome).__name__)
        match outcome:
            case Accepted():
                return outcome
            case NotAllowed():
                raise Refused(problems.invalid(outcome))
            case refusal:
                raise Refused(problems.not_taken(refusal))

    async def _preview(self, phases: NewPhases | NotAllowed) -> tuple[ShownJob, ...]:
        new = _allowed(phases)
        outcome = await self.edge.submitting.preview(*new)
        match outcome:
            case Previewed(jobs):
                titled = zip(jobs, (each.title for each in new), strict=True)
                return tuple([await self._previewed(job, outcome, title) for job, title in titled])
            case Accepted(jobs):
                return tuple(await self.edge.reading.shown(jobs))
            case NotAllowed():
                raise Refused(problems.invalid(outcome))
            case refusal:
                raise Refused(problems.not_taken(refusal))

    async def _previewed(self, job: Job, preview: Previewed, title: str) -> ShownJob:
        outlook = preview.outlook if job is preview.jobs[0] else None
        now_ms = self.edge.clock.now_ms()
        forecast = await self.edge.reading.forecasts.current()
        standing = shown_standing(job, outlook, forecast=forecast, now_ms=now_ms)
        return shown_job(
            job,
            policy=self.edge.policy,
            used_today=preview.used_today,
            now=utc(now_ms),
            debug_id=job_trace(job).debug_id,
            title=title,
            queue=standing.queue,
            waiting_on=standing.waiting_on,
        )

    def _asker(self, who: Principal) -> Asker:
        return self._asks(who.user, who.tier, who.projects)

    def _owner(self, job: Job) -> Asker:
        """Whose job it is, as they were when they asked for it."""
        projects = frozenset([job.project_id] if job.submission.shared else ())
        return self._asks(job.user_id, job.submission.tier, projects)

    def _asks(self, user: str, tier: Tier, projects: frozenset[str]) -> Asker:
        now = utc(self.edge.clock.now_ms())
        asker = Asker(user_id=user, tier=tier, projects=projects, policy=self.edge.policy, now=now)
        return replace(asker, **request_trace())

    def _job_id(self, who: Principal, key: str | None) -> str:
        return self.edge.ids.job_id() if key is None else job_id_for_key(who.user, key)

    def _workflow_id(self, who: Principal, key: str | None) -> str:
        return self.edge.ids.workflow_id() if key is None else workflow_id_for_key(who.user, key)


def _allowed(phases: NewPhases | NotAllowed) -> NewPhases:
    if isinstance(phases, NotAllowed):
        raise Refused(problems.invalid(phases))
    return phases

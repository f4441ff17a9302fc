"""How a question is answered: what a stage wants to know, or whether to go on.

    the open question, by its id ─► is this an answer to it? ─► kept beside the input ─► `answered` names it
                                                                       │ somebody was first
                                                                       └─► deleted: no event names it

An answer is content, so it stands in no event. Each has a name of its own: who loses against another answer has
overwritten nothing. What is kept by somebody who was killed before the event goes with the job's input.
"""

from dataclasses import dataclass

from headgate_contracts import Job, JobEvent
from headgate_contracts.asked import AnswerQuestion
from headgate_contracts.questions import YES, answer_name
from libs.eventlog.ports import Inputs
from libs.policy import Policy
from libs.runtime.schemas import answer_bytes, wrong_answer
from services.admission.changing import Changing, SeenJobs, Steps
from services.admission.events import Actor, answering_event, asks_to_know, cancelling_event, confirming_event
from services.admission.limits import NotAllowed
from services.admission.outcomes import Accepted, NotAsked, TooManyChanges
from services.admission.ports import Ids


@dataclass(frozen=True, slots=True)
class Answering:
    """The use case, with what it needs."""

    changing: Changing
    inputs: Inputs
    policy: Policy
    ids: Ids

    async def answer(
        self, job: Job, body: AnswerQuestion, *, by: str
    ) -> Accepted | NotAsked | NotAllowed | TooManyChanges:
        """Give the job this answer, if that is what it waits for."""
        name = answer_name(job.id, self.ids.event_id())
        kept = False

        async def decide(seen: SeenJobs) -> Steps | NotAsked | NotAllowed:
            nonlocal kept
            question = seen[0].question
            if question is None or question.id != body.question:
                return NotAsked(seen[0])
            if (wrong := wrong_answer(body.answer, question)) is not None:
                return NotAllowed("answer", wrong)
            if asks_to_know(seen[0]) and not kept:
                await self.inputs.put(name, answer_bytes(body.answer))
                kept = True
            event = self._event(seen[0], body, by=by, name=name)
            return NotAsked(seen[0]) if event is None else {seen[0].id: event}

        outcome = await self.changing.settle((job,), decide, spender=by)
        if kept and not isinstance(outcome, Accepted):
            await self.inputs.delete(name)
        return outcome

    def _event(self, job: Job, body: AnswerQuestion, *, by: str, name: str) -> JobEvent | None:
        stamp = self.changing.stamp()
        if asks_to_know(job):
            return answering_event(job, body.question, stamp, by=by, answer=name)
        if body.answer == YES:
            return confirming_event(job, stamp, by=by, policy=self.policy)
        return cancelling_event(job, Actor(by, "answered no"), stamp)

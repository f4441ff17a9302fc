"""How a question is answered, on the twins of log and buckets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate_contracts import Job, Status, advance
from headgate_contracts.asked import AnswerQuestion
from libs.eventlog import Appended
from services.admission.limits import NotAllowed
from services.admission.outcomes import Accepted, NotAsked
from tests.fixtures.admission_api import AdmissionApi, refused, submitted
from tests.fixtures.lives import life_of, step
from tests.fixtures.memory_admission import MemoryAdmission

ASKED = "queued dispatched started scaffold code awaiting_confirmation:ask"
TO_CONTINUE = "queued dispatched started scaffold code deps checks awaiting_confirmation"
QUESTION = {"id": "q1", "kind": "ask", "text": "Which licence?", "key": "licence", "choices": ["MIT", "BSD"]}


async def asks(admission: MemoryAdmission, story: str = ASKED, **asked: Any) -> Job:
    """A job whose last event is a question."""
    job: Job | None = None
    for event in life_of("job-1", story.rpartition(" ")[0]):
        job = await written(admission, job, event)
    assert job is not None
    return await written(admission, job, step(job, story.rpartition(" ")[2], **asked))


async def written(admission: MemoryAdmission, job: Job | None, event: Any) -> Job:
    answer = await admission.log.append(event, after=job)
    assert isinstance(answer, Appended)
    return advance(job, event, seq=answer.records[0].seq)


def body(answer: Any, question: str = "q1") -> AnswerQuestion:
    return AnswerQuestion(question=question, answer=answer)


async def kept(admission: MemoryAdmission) -> list[Any]:
    return [json.loads(await admission.inputs.get(name) or b"") for name in await admission.inputs.names()]


async def test_an_answer_is_kept_beside_the_input_and_the_job_is_back_at_its_old_place(
    admission: MemoryAdmission,
) -> None:
    job = await asks(admission, question=QUESTION)

    outcome = await admission.answering.answer(job, body("MIT"), by="u1")

    assert isinstance(outcome, Accepted)
    assert (outcome.job.status, outcome.job.standing) == (Status.QUEUED, job.standing)
    [answer] = outcome.job.answers
    assert (answer.key, await admission.inputs.get(answer.name)) == ("licence", b'"MIT"')
    assert b"MIT" not in (await admission.log.read(job.id))[-1].event.encode()  # type: ignore[union-attr]


async def test_a_question_is_answered_once_and_the_late_answer_leaves_nothing(admission: MemoryAdmission) -> None:
    job = await asks(admission, question=QUESTION)

    await admission.answering.answer(job, body("MIT"), by="u1")
    late = await admission.answering.answer(job, body("BSD"), by="u1")

    assert isinstance(late, NotAsked)
    assert await kept(admission) == ["MIT"]


async def test_the_answer_to_an_earlier_question_does_not_answer_this_one(admission: MemoryAdmission) -> None:
    job = await asks(admission, question=QUESTION)

    assert isinstance(await admission.answering.answer(job, body("MIT", "q0"), by="u1"), NotAsked)
    assert await kept(admission) == []


async def test_what_is_no_answer_changes_nothing(admission: MemoryAdmission) -> None:
    job = await asks(admission, question=QUESTION)

    outcome = await admission.answering.answer(job, body("GPL"), by="u1")

    assert outcome == NotAllowed("answer", "choose one of: MIT, BSD")
    assert await kept(admission) == []


@pytest.mark.parametrize(("answer", "status"), [("yes", Status.QUEUED), ("no", Status.CANCELLED)])
async def test_whether_to_continue_is_answered_by_yes_or_no(
    admission: MemoryAdmission, answer: str, status: Status
) -> None:
    job = await asks(admission, TO_CONTINUE)

    outcome = await admission.answering.answer(job, body(answer), by="u1")

    assert isinstance(outcome, Accepted)
    assert outcome.job.status is status
    assert await kept(admission) == []


async def test_what_a_stage_asks_is_not_confirmed(admission: MemoryAdmission) -> None:
    job = await asks(admission, question=QUESTION)

    assert isinstance(await admission.changing.confirm(job, by="u1"), NotAsked)


async def test_over_http_a_wrong_answer_is_422_a_late_one_409_and_anothers_job_is_not_there(
    admission: MemoryAdmission,
) -> None:
    api = AdmissionApi(admission)
    async with api.client() as ann, api.client("bob") as bob:
        job = await submitted(ann)
        last = await admission.reading.find(job["id"])
        for word in ("dispatched", "started", "scaffold", "awaiting_confirmation:ask"):
            details = {"question": QUESTION} if ":" in word else {}
            assert last is not None
            last = await written(admission, last, step(last, word, **details))
        path, answer = f"/v1/jobs/{job['id']}/answer", {"question": "q1", "answer": "MIT"}
        shown = (await ann.get(f"/v1/jobs/{job['id']}")).json()
        wrong = await ann.post(path, json=answer | {"answer": "GPL"})
        others = await bob.post(path, json=answer)
        right, late = await ann.post(path, json=answer), await ann.post(path, json=answer)

    assert shown["question"]["text"] == "Which licence?"
    assert refused(wrong, 422, "invalid")["errors"][0]["field"] == "answer"
    refused(others, 404, "not-found")
    assert (right.status_code, right.json()["status"]) == (202, "queued")
    refused(late, 409, "not-asked")

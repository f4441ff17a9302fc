"""What stages are told when they ask: the answer to this question of this job, and only once the log has it."""

from __future__ import annotations

from collections.abc import Iterator

from headgate_contracts import Event
from headgate_contracts.events import JobAnswered, JobAwaitingConfirmation, JobData
from tests.simulation.askers import answer_to
from tests.simulation.evidence import Evidence, Finding


def answers_came_to_their_questions(evidence: Evidence) -> Iterator[Finding]:
    """No answer is delivered to another job, attempt or question; each was taken by an earlier attempt's question."""
    taken = _taken(evidence)
    for heard in evidence.deeds.answers:
        if heard.answer != answer_to(heard.job, heard.key):
            what = f"attempt {heard.attempt} asks {heard.key} and is told {heard.answer!r}"
            yield Finding("answers", heard.job, what)
        elif taken.get((heard.job, heard.key), heard.attempt) >= heard.attempt:
            yield Finding(
                "answers", heard.job, f"attempt {heard.attempt} knows {heard.key}, which was not answered by then"
            )


def _taken(evidence: Evidence) -> dict[tuple[str, str], int]:
    """The attempt by which each question was answered first."""
    keys, taken = dict[str, str](), dict[tuple[str, str], int]()
    for record in evidence.records:
        data = record.event.data if isinstance(record.event, Event) else None
        match data:
            case JobAwaitingConfirmation(question=question) if question is not None and question.key is not None:
                keys[data.job_id] = question.key
            case JobAnswered():
                taken.setdefault((data.job_id, keys[data.job_id]), data.attempt)
            case JobData() | _:
                pass
    return taken

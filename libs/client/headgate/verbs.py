"""What users ask of Headgate: each verb is a script, carried out by either driver."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar, Unpack

from headgate.errors import NotHeadgate, Problem, TryLater, problem_of
from headgate.exchange import KEY, Give, Pause, Request, Script, Stream, asked, path_of, terms
from headgate.following import follow, of_all, of_job
from headgate.happenings import Event
from headgate.orders import Options, Order, Wanted, What, WorkflowOptions, input_of, named, order, workflow
from headgate.repeating import answered, fetched, shaped
from headgate.values import (
    Explanation,
    HistoryEvent,
    ItemAnswer,
    ItemAnswers,
    JobNumbers,
    JobState,
    JobWait,
    JobWaits,
    PipelineState,
    QueueState,
    ResultFile,
    ResultFiles,
    StageStart,
    StageStarts,
    UsageOfDay,
    WorkflowState,
)

T = TypeVar("T")

NEXT: Final = re.compile(r'<([^>]+)>; *rel="next"')
PAGE: Final = 100  # as many as the API gives at once


# ── jobs come in ──────────────────────────────────────────────────────────────


def submit(what: What, *, project: str, key: str | None = None, **options: Unpack[Options]) -> Script[JobState]:
    """A prompt, or the whole input of a pipeline. The key makes a repetition the same job; without one it has its own,
    so the client's repetitions are, and a second call is a second job."""
    body = order(what, project=project, **options).body
    return (yield from _keyed(path_of("jobs"), body, key, JobState))


def dry_run(what: What, *, project: str, **options: Unpack[Options]) -> Script[JobState]:
    """What would come of it. Nothing is submitted."""
    body = order(what, project=project, **options).body
    request = Request(method="POST", path=path_of("jobs"), query={"dry_run": "true"}, body=body)
    return (yield from fetched(request, JobState))


def batch(orders: Iterable[Order], *, key: str | None = None) -> Script[tuple[JobState | Problem, ...]]:
    """What became of each, in their order: the job, or why there is none. Those that come too fast are sent again when
    they may be, under the same key and in their old places; one that is to wait for too long holds up none of them."""
    asked_for = list(orders)
    if not all(isinstance(each, Order) for each in asked_for):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("orders: make each of them by order(…)")
    known = yield from terms()
    body = {"jobs": [dict(each.body) for each in asked_for]}
    kept = known.new_key() if key is None else key
    ends_s = known.now_s() + known.patience.within_s
    for number in range(known.patience.tries):
        items = (yield from _keyed(path_of("jobs", "batch"), body, kept, ItemAnswers)).results
        outcomes = tuple(map(outcome_of, items))
        pause_s = _longest_wait(outcomes, within_s=ends_s - known.now_s())
        if pause_s is None or number + 1 == known.patience.tries:
            break
        yield Pause(pause_s)
    return outcomes  # pyright: ignore[reportPossiblyUnboundVariable] - there is one try at least


def retry(
    job_id: str, *, start: str | None = None, what: What | None = None, key: str | None = None
) -> Script[JobState]:
    """A failed or cancelled one again, with the work that its finished stages left: a job of its own. With `start` any
    that has ended, from that stage, on the workspace that it began with; with `what` with another input."""
    content = None if what is None else input_of(what)
    body = asked(**{"from": start, "input": content})
    return (yield from _keyed(path_of("jobs", job_id, "retry"), body, key, JobState))


def retry_starts(job_id: str) -> Script[tuple[StageStart, ...]]:
    """Its stages, and from which of them it can be run again."""
    return (yield from fetched(Request(path=path_of("jobs", job_id, "retry")), StageStarts)).stages


def submit_workflow(
    phases: Sequence[What | Order], *, project: str, key: str | None = None, **options: Unpack[WorkflowOptions]
) -> Script[WorkflowState]:
    """Phases in order, each queued when the one before it is ready: all of them, or none."""
    return (yield from _keyed(path_of("workflows"), workflow(phases, project, options), key, WorkflowState))


# ── jobs that are in ──────────────────────────────────────────────────────────


def job(job_id: str) -> Script[JobState]:
    """As it stands."""
    return (yield from fetched(Request(path=path_of("jobs", job_id)), JobState))


def jobs(*, limit: int | None = None, **wanted: Unpack[Wanted]) -> Stream[JobState]:
    """One's own, an operator's: everybody's; newest first where no other order is named, page by page as they are
    read."""
    page = str(min(limit or PAGE, PAGE))
    request = Request(path=path_of("jobs"), query=asked(**named(wanted), limit=page))
    yield from pages(request, JobState, limit=limit)


def counts(by: Sequence[str] = ("status",), **wanted: Unpack[Wanted]) -> Script[JobNumbers]:
    """How many jobs there are, by `status`, `project`, `pipeline`, `pool`, `label` or `user`."""
    query = asked(**named(wanted), by=by)
    return (yield from fetched(Request(path=path_of("jobs", "counts"), query=query), JobNumbers))


def history(job_id: str) -> Script[tuple[HistoryEvent, ...]]:
    """All that happened to it, from the log."""
    return (yield from fetched(Request(path=path_of("jobs", job_id, "events")), tuple[HistoryEvent, ...]))


def job_input(job_id: str) -> Script[dict[str, Any]]:
    """What it was made from, as long as that is kept."""
    return (yield from fetched(Request(path=path_of("jobs", job_id, "input")), dict[str, Any]))


def explain(job_id: str) -> Script[Explanation]:
    """Why it waits, who holds what, what would let it run."""
    return (yield from fetched(Request(path=path_of("jobs", job_id, "explain")), Explanation))


def waits(job_id: str) -> Script[tuple[JobWait, ...]]:
    """What held it while it waited, piece by piece, as far as the log tells."""
    return (yield from fetched(Request(path=path_of("jobs", job_id, "waits")), JobWaits)).waits


def files(job_id: str) -> Script[tuple[ResultFile, ...]]:
    """What the result holds, without fetching it: path, size and type of each file."""
    return (yield from fetched(Request(path=path_of("jobs", job_id, "files")), ResultFiles)).files


def file(job_id: str, name: str) -> Script[bytes]:
    """One file of the result, by its path there."""
    return (yield from answered(Request(path=path_of("jobs", job_id, "files", *name.split("/"))))).content


def log(job_id: str) -> Script[str]:
    """What it has said so far, as text, as long as that is kept."""
    answer = yield from answered(Request(path=path_of("jobs", job_id, "log"), headers={"Accept": "text/plain"}))
    return answer.content.decode(errors="replace")


def events(job_id: str) -> Stream[Event]:
    """All that happens to it, from the first event to the last."""
    yield from follow(of_job(job_id))


def all_events() -> Stream[Event]:
    """What happens to all of one's own jobs, from now on. It does not end by itself."""
    yield from follow(of_all)


# ── jobs are changed ──────────────────────────────────────────────────────────


def cancel(job_id: str, *, reason: str = "") -> Script[JobState]:
    """Ask for its end."""
    return (yield from post(path_of("jobs", job_id, "cancel"), {"reason": reason}, JobState))


def cancel_all(
    *, project: str | None = None, workflow: str | None = None, label: str | None = None, reason: str | None = None
) -> Script[tuple[JobState | Problem, ...]]:
    """All unfinished ones of a project, a workflow or a label (`key=value`)."""
    body = asked(project=project, workflow=workflow, label=label, reason=reason)
    answers = yield from post(path_of("jobs", "cancel"), body, ItemAnswers)
    return tuple(map(outcome_of, answers.results))


def confirm(job_id: str) -> Script[JobState]:
    """Grant a job that asks for it another batch of iterations."""
    return (yield from post(path_of("jobs", job_id, "confirm"), {}, JobState))


def answer(job_id: str, answer: Any, *, question: str | None = None) -> Script[JobState]:
    """Tell a job what it asks: one of the choices, what the schema wants, or a text. Without the id of a question it is
    the one that is open now."""
    if question is None:
        asked_now = (yield from job(job_id)).question
        question = "none" if asked_now is None else asked_now.id
    body = {"question": question, "answer": answer}
    return (yield from post(path_of("jobs", job_id, "answer"), body, JobState))


def reprioritize(job_id: str, priority: str, *, reason: str = "") -> Script[JobState]:
    """Another class for a job that has not started."""
    body = {"priority": priority, "reason": reason}
    return (yield from fetched(Request(method="PATCH", path=path_of("jobs", job_id), body=body), JobState))


# ── the rest ──────────────────────────────────────────────────────────────────


def workflow_state(workflow_id: str) -> Script[WorkflowState]:
    """Its phases, and where each stands."""
    return (yield from fetched(Request(path=path_of("workflows", workflow_id)), WorkflowState))


def cancel_workflow(workflow_id: str, *, reason: str = "") -> Script[WorkflowState]:
    """All phases that have not ended."""
    return (yield from post(path_of("workflows", workflow_id, "cancel"), {"reason": reason}, WorkflowState))


def usage() -> Script[UsageOfDay]:
    """What is used of one's day."""
    return (yield from fetched(Request(path=path_of("usage")), UsageOfDay))


def queue() -> Script[QueueState]:
    """Its length and one's own places; for operators every job in order."""
    return (yield from fetched(Request(path=path_of("queue")), QueueState))


def pipelines() -> Script[tuple[PipelineState, ...]]:
    """Which there are, each with its stages and the JSON Schema of its input."""
    return (yield from fetched(Request(path=path_of("pipelines")), tuple[PipelineState, ...]))


def post(path: str, body: object, shape: type[T]) -> Script[T]:
    """Sent once, as it may not be meant twice."""
    return (yield from fetched(Request(method="POST", path=path, body=body), shape))


def pages(request: Request, shape: type[T], *, limit: int | None = None) -> Stream[T]:
    """A list page by page, as long as each names the next one."""
    left = limit
    following: Request | None = request
    while following is not None:
        answer = yield from answered(following)
        for each in shaped(answer.content, tuple[shape, ...])[:left]:
            yield Give(each)
            left = None if left is None else left - 1
        named = NEXT.search(answer.headers.get("link", ""))
        following = Request(path=_here(named[1])) if named and left != 0 else None


def _here(target: str) -> str:
    """The next page is a path of the Headgate that was asked: the token is for no other, and nobody is advised to send
    it there."""
    if not target.startswith("/") or target.startswith("//"):
        raise NotHeadgate
    return target


def outcome_of(item: ItemAnswer) -> JobState | Problem:
    """The job, or why there is none."""
    if item.job is not None:
        return item.job
    problem = item.problem or {}
    return problem_of(item.status, problem, problem.get("retry_after_s"))


def _keyed(path: str, body: Any, key: str | None, shape: type[T]) -> Script[T]:
    known = yield from terms()
    headers = {KEY: known.new_key() if key is None else key}
    answer = yield from answered(Request(method="POST", path=path, body=body, headers=headers))
    return shaped(answer.content, shape)


def _longest_wait(outcomes: Sequence[JobState | Problem], *, within_s: float) -> float | None:
    """Until all that came too fast, and may be sent again within that time, may be; null where there is none."""
    waits = [each.retry_after for each in outcomes if isinstance(each, TryLater) and each.status == 429]
    return max((wait_s for wait_s in waits if wait_s is not None and wait_s <= within_s), default=None)

"""What counts of the time that a job waits: tables of spans, and what the leader has seen."""

from __future__ import annotations

import pytest

from headgate_contracts import Job
from libs.capacity.patience import SPANS_MAX, Patience, Span, covered_ms
from services.scheduler.outages import Absences
from tests.fixtures.lives import job_after

POOL = "default"


@pytest.mark.parametrize(
    ("spans", "covered"),
    [
        ([], 0),
        ([(0, 50)], 0),
        ([(0, 150)], 50),
        ([(120, 130)], 10),
        ([(120, 130), (140, 160)], 30),
        ([(120, 150), (130, 160)], 40),
        ([(130, 160), (120, 150)], 40),
        ([(120, 190), (130, 140)], 70),
        ([(0, 1000)], 100),
        ([(190, 1000), (0, 110)], 20),
        ([(200, 300)], 0),
        ([(150, 140)], 0),
    ],
)
def test_what_lies_in_several_spans_is_counted_once(spans: list[Span], covered: int) -> None:
    assert covered_ms(spans, begin_ms=100, end_ms=200) == covered


def folded(*steps: tuple[Job, bool, int]) -> Patience:
    patience = Patience()
    for job, paused, at_ms in steps:
        patience.fold(job, paused=paused, at_ms=at_ms)
    return patience


QUEUED, STARTING = job_after("queued"), job_after("queued dispatched")
STARTED, SCHEDULED, OVER = (
    job_after("queued dispatched started given_back:lost"),
    job_after("scheduled"),
    job_after("queued cancelled"),
)


@pytest.mark.parametrize(
    ("steps", "spans"),
    [
        ([(QUEUED, False, 10)], []),
        ([(QUEUED, True, 10)], [(10, 100)]),
        ([(QUEUED, True, 10), (QUEUED, True, 20)], [(10, 100)]),
        ([(QUEUED, True, 10), (QUEUED, False, 20)], [(10, 20)]),
        ([(QUEUED, True, 10), (QUEUED, False, 20), (QUEUED, True, 30)], [(10, 20), (30, 100)]),
        ([(QUEUED, True, 10), (STARTING, True, 20)], [(10, 20)]),
        ([(QUEUED, True, 10), (STARTING, True, 20), (QUEUED, False, 30)], [(10, 20)]),
        ([(QUEUED, True, 10), (STARTED, True, 20)], []),
        ([(QUEUED, True, 10), (SCHEDULED, True, 20)], []),
        ([(QUEUED, True, 10), (OVER, False, 20)], []),
    ],
)
def test_pauses_of_a_job_that_never_started_are_known(steps: list[tuple[Job, bool, int]], spans: list[Span]) -> None:
    patience = folded(*steps)

    assert patience.spans("job-1", now_ms=100) == spans
    assert patience.over.keys() | patience.since.keys() <= {"job-1"}


def test_pauses_without_end_are_kept_as_few_that_are_never_shorter() -> None:
    steps = [(QUEUED, number % 2 == 0, number * 10) for number in range(1000)]

    spans = folded(*steps).spans("job-1", now_ms=10_000)

    assert len(spans) <= SPANS_MAX
    assert covered_ms(spans, begin_ms=0, end_ms=10_000) >= 5000


@pytest.mark.parametrize(
    ("heard", "now_ms", "counted"),
    [
        ([], 200, 0),
        ([100], 100, 0),
        ([100], 110, 10),
        ([100], 200, 0),
        ([100, 105, 110, 115, 120], 120, 20),
        ([100, 115, 130], 130, 30),
        ([100, 110, 140, 150], 150, 20),
        ([100, 110, 100, 120], 120, 20),
        ([100, 110], 200, 10),
    ],
)
def test_only_time_in_which_a_worker_was_heard_counts_and_none_from_before_the_lead(
    heard: list[int], now_ms: int, counted: int
) -> None:
    absences = Absences(15)
    for at_ms in heard:
        absences.look({POOL: at_ms})

    missing = covered_ms(absences.spans(POOL, now_ms=now_ms), begin_ms=0, end_ms=now_ms)

    assert now_ms - missing == counted
    assert absences.spans("another", now_ms=now_ms) == [(0, now_ms)]


def test_who_leads_no_longer_knows_nothing() -> None:
    absences = Absences(15)
    for at_ms in (100, 110, 120):
        absences.look({POOL: at_ms})

    absences.forget()

    assert absences.spans(POOL, now_ms=120) == [(0, 120)]

"""The judge of single starts: what it must not overlook, by records that were made up."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import pytest

from headgate_contracts import Job
from libs.eventlog import Record
from libs.eventlog.expectation import LAST_OF_ALL
from tests.bench.rivals import Rival, Sent, alone, judged
from tests.fixtures.lives import STARTED_AT, job_after, step

JOB = job_after("queued")


def rival(*sent: Sent) -> Rival:
    return Rival("a", cast("Any", None), cast("Any", None), Random(1), sent=list(sent))


def record(seq: int, job: Job = JOB) -> Record:
    return Record(seq, STARTED_AT, step(job, "dispatched"))


def test_a_single_start_expects_the_end_of_the_log_and_of_its_job() -> None:
    job = JOB.model_copy(update={"seq": 3})

    message = alone(job, expected=7, salt="a")

    assert message.headers[LAST_OF_ALL] == "7"
    assert message.headers["Nats-Expected-Last-Subject-Sequence"] == "3"


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ({"expected": 7, "stored_at": 8}, None),
        ({"expected": 6, "stored_at": 8}, "let_through"),
        ({"expected": 7, "stored_at": 9}, "lost"),
        ({"expected": 7, "refused": True}, "risen"),
    ],
)
def test_what_stands_elsewhere_is_missing_or_rose_again_is_a_fault(told: dict[str, Any], fault: str | None) -> None:
    stands = record(8)

    verdict = judged([stands], [rival(Sent(cast("str", stands.event_id), **told)), rival()])

    faults = {name for name in ("let_through", "lost", "risen") if getattr(verdict, name)}
    assert faults == ({fault} if fault else set())

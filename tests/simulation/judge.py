"""What must be so, whatever has happened: from the log, from what clients were told, and from what stages really did.

    I1-I5, order   `tests.fixtures.audit`, which shares no code with services, fold or view
    I4 real        no two processes of a job at once, unless the worker of the first reached nobody for long
    I5 real        `judge_slots`
    I6             `judge_streams`
    J8             `judge_webhooks`
    I7             `judge_view`, `judge_index`, `judge_positions`
    I8             drained in time after the last fault; where nothing is wrong no job waits beside a free slot, and
                   nobody in line for groups in which nobody is
    reload         `judge_reloads`
    drain, time    `judge_drains`, `judge_clocks`
    work           `judge_work`
    I9             a 202 is in the log when it is told; what was in the log is not refused; a cancellation holds

Each is a function that gives its findings. To add one is to write it and to name it in `INVARIANTS`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from tests.fixtures.audit import Execution, audit
from tests.simulation.evidence import (
    ENDS,
    Evidence,
    Finding,
    waiting_for_a_day,
    without,
)
from tests.simulation.judge_answers import answers_came_to_their_questions
from tests.simulation.judge_clocks import deadlines_follow_no_wall_clock
from tests.simulation.judge_drains import drains_handed_over
from tests.simulation.judge_idle import nobody_waits_beside_a_free_slot
from tests.simulation.judge_index import index_is_what_the_log_says
from tests.simulation.judge_outages import outages_cost_nobody
from tests.simulation.judge_positions import positions_were_true
from tests.simulation.judge_reloads import reloads_are_heard
from tests.simulation.judge_remains import work_was_kept
from tests.simulation.judge_slots import slots_were_real, what_was_given_up_stays_free
from tests.simulation.judge_streams import streams_are_whole
from tests.simulation.judge_tries import pauses_were_kept, tries_were_counted
from tests.simulation.judge_view import view_is_what_the_log_says
from tests.simulation.judge_waiters import nobody_waits_for_empty_groups
from tests.simulation.judge_webhooks import receivers_are_called
from tests.simulation.judge_work import (
    no_stage_was_done_twice,
    work_was_named_once,
    work_was_there_when_it_was_named,
)


def judge(evidence: Evidence) -> list[Finding]:
    return [finding for invariant in INVARIANTS for finding in invariant(evidence)]


def log_is_legal(evidence: Evidence) -> Iterator[Finding]:
    """I1 to I5 and the order, as the log proves them."""
    later = waiting_for_a_day(evidence.datas, now=evidence.now)
    promised = [job for job in evidence.last if job not in later]
    report = audit(
        evidence.records,
        policy=evidence.policy,
        promised=promised,
        drained=evidence.drained,
        view_was_lost=evidence.view_was_lost,
    )
    for violation in report.violations:
        yield Finding(violation.invariant, violation.about, f"{violation.what} (record {violation.seq})")


def nothing_was_unforeseen(evidence: Evidence) -> Iterator[Finding]:
    """Nobody ran into a fault that no code expects."""
    for what in evidence.unforeseen:
        yield Finding("faults", "a process", what)


def all_ended_in_time(evidence: Evidence) -> Iterator[Finding]:
    """I8."""
    if not evidence.drained:
        left = {job: data.status.value for job, data in evidence.last.items() if data.status.value not in ENDS}
        yield Finding("I8", "the system", f"is not drained {evidence.ended_s:.0f} s after the start: {left}")


def answers_were_true(evidence: Evidence) -> Iterator[Finding]:
    """I9."""
    answers = evidence.answers
    for what in answers.strange:
        yield Finding("I9", "a client", what)
    for job, told_s in answers.promised.items():
        at = evidence.first_at.get(job)
        if at is None or evidence.at_s(at) > told_s:
            yield Finding("I9", job, f"was promised at {told_s:.1f} s and was not in the log")
    for job, asked_s, why in answers.refused:
        at = evidence.first_at.get(job)
        if at is not None and evidence.at_s(at) < asked_s - 0.001:
            yield Finding("I9", job, f"was in the log and refused at {asked_s:.1f} s: {why}")
    for job, told_s in answers.cancelled.items():
        status = evidence.last[job].status.value
        if evidence.drained and status != "cancelled":
            yield Finding("I9", job, f"its cancellation was accepted at {told_s:.1f} s, and it is {status}")


def executions_were_apart(evidence: Evidence) -> Iterator[Finding]:
    """I4, as it was measured. A worker that hears nobody for long may go on with what was given to another."""
    runs: dict[str, list[Execution]] = defaultdict(list)
    for execution in evidence.deeds.executions:
        runs[execution.job].append(execution)
    for job, executions in runs.items():
        for earlier, later in pairwise(sorted(executions, key=lambda run: run.began)):
            both = (later.began, min(earlier.ended, later.ended))
            apart = evidence.apart(f"{job}:{earlier.attempt}")
            if any(True for _ in without(both, apart)):
                yield Finding(
                    "I4", job, f"attempts {earlier.attempt} and {later.attempt} overlap at {later.began:.2f} s"
                )


INVARIANTS: Final[tuple[Callable[[Evidence], Iterator[Finding]], ...]] = (
    log_is_legal,
    nothing_was_unforeseen,
    all_ended_in_time,
    answers_were_true,
    executions_were_apart,
    slots_were_real,
    what_was_given_up_stays_free,
    nobody_waits_beside_a_free_slot,
    view_is_what_the_log_says,
    index_is_what_the_log_says,
    nobody_waits_for_empty_groups,
    outages_cost_nobody,
    work_was_kept,
    streams_are_whole,
    work_was_there_when_it_was_named,
    work_was_named_once,
    no_stage_was_done_twice,
    tries_were_counted,
    answers_came_to_their_questions,
    pauses_were_kept,
    drains_handed_over,
    deadlines_follow_no_wall_clock,
    receivers_are_called,
    positions_were_true,
    reloads_are_heard,
)

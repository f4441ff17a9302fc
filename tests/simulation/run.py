"""One plan, from its first moment to the verdict. Everything in it follows from the plan."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headgate_contracts import Event
from headgate_contracts.envelope import utc
from headgate_contracts.events import JobData
from headgate_contracts.tokens import job_id_for_key, phase_job_id, workflow_id_for_key
from libs.twins.virtual import Stuck, VirtualLoop
from tests.simulation.applications import Application
from tests.simulation.clients import Answers, Client, questions, title_of
from tests.simulation.evidence import ENDS, Evidence, Finding, span_of, waiting_for_a_day
from tests.simulation.faults import Faults
from tests.simulation.indexes import content_of, index_path, is_whole
from tests.simulation.judge import judge
from tests.simulation.judge_view import is_settled
from tests.simulation.moments import last_moments
from tests.simulation.operators import Operator
from tests.simulation.plan import PEACE_S, POLICY, Order, Plan
from tests.simulation.readers import Heard, all_read, browsers_of
from tests.simulation.remembered import remembering
from tests.simulation.retries import again_id, retries
from tests.simulation.slot_users import SlotUser
from tests.simulation.system import System
from tests.simulation.visits import Visit

DRAINED_WITHIN_S: Final = 600.0  # of peace: all that was begun, worked off by all workers
LOOK_EVERY_S: Final = 1.0
LATER: Final = frozenset({"scheduled", "waiting"})  # what may still be so when all has ended: for another day
SETTLED_WITHIN_S: Final = 90  # a reservation lapses after a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of a plan."""

    plan: Plan
    findings: tuple[Finding, ...]
    log_sha256: str
    records: tuple[Any, ...]
    said: tuple[tuple[float, str], ...]
    start_ms: int
    ended_s: float


def simulate(plan: Plan) -> Run:
    """From beginning to end, in this thread."""
    loop, heard = VirtualLoop(), _Errors()
    random.seed(plan.seed)
    root = logging.getLogger()
    level = root.level
    root.addHandler(heard)
    root.setLevel(logging.ERROR)
    try:
        with remembering(), tempfile.TemporaryDirectory(prefix="headgate-simulation-", dir=_memory()) as folder:
            return loop.run_until_complete(_live(plan, loop, Path(folder), heard))
    finally:
        root.removeHandler(heard)
        root.setLevel(level)
        loop.close()


async def _live(plan: Plan, loop: VirtualLoop, folder: Path, heard: _Errors) -> Run:
    system = System(loop, plan, folder=folder)
    answers = Answers()
    clients = [Client(system, order, answers) for order in plan.orders]
    _listen(system, plan, clients)
    system.start_all()
    faults = Faults(system)
    for fault in plan.faults:
        system.network.later(fault.at_s, lambda fault=fault: faults.begin(fault))
    browsers = browsers_of(system, plan.readers, {order.name: jobs_of(order) for order in plan.orders})
    reading = [loop.create_task(browser.live()) for browser in browsers]
    people = [loop.create_task(client.live()) for client in clients]
    people += [loop.create_task(Operator(system, act, number).live()) for number, act in enumerate(plan.acts)]
    people += [loop.create_task(application.live()) for application in _applications(system, plan)]
    people += [loop.create_task(SlotUser(system, lease).live()) for lease in plan.leases]
    streams = [browser.heard for browser in browsers]
    drained = await _until_drained(system, plan, people, streams)
    busy = [str(task.get_coro()) for task in people if not task.done()]
    evidence = Evidence(
        plan=plan,
        policy=POLICY,
        start_ms=system.start_ms,
        records=[kept.record() for kept in system.server._kept],
        answers=answers,
        deeds=system.deeds,
        heard=streams,
        lines=system.lines.kept,
        called=system.hooks.called if plan.readers else None,
        acked=system.calls.acked,
        view=system.store.state,
        view_was_lost=system.view_was_lost,
        begun_s=system.begun_s,
        index=content_of(index_path(system)) if plan.is_indexed else None,
        titles=titles_of(plan),
        overwritten=system.workspaces.overwritten,
        unforeseen=[*heard.said, *loop.broken, *_faults_of([*people, *reading]), *busy],
        ended_s=loop.time(),
        drained=drained,
    )
    await _end(system, [*people, *reading])
    return Run(
        plan=plan,
        findings=tuple(judge(evidence)),
        log_sha256=_digest(system),
        records=tuple(evidence.records),
        said=tuple(system.said),
        start_ms=system.start_ms,
        ended_s=evidence.ended_s,
    )


def _listen(system: System, plan: Plan, clients: list[Client]) -> None:
    by_job = {job: client for order, client in zip(plan.orders, clients, strict=True) for job in jobs_of(order)}
    again = {again_id(order): client for order, client in zip(plan.orders, clients, strict=True)}
    system.listeners += [questions(system, by_job | again), last_moments(system, by_job), retries(system, by_job)]


def titles_of(plan: Plan) -> dict[str, str]:
    """Of every job that there may be."""
    return {job: title_of(order) for order in plan.orders for job in (*jobs_of(order), again_id(order))}


def _applications(system: System, plan: Plan) -> list[Application]:
    by_name: dict[str, list[Visit]] = {}
    for visit in plan.visits:
        by_name.setdefault(visit.who, []).append(visit)
    return [Application(system, name, tuple(visits)) for name, visits in by_name.items()]


def jobs_of(order: Order) -> tuple[str, ...]:
    """The ids that follow from its key."""
    if not order.phases:
        return (job_id_for_key(order.user, order.key),)
    workflow = workflow_id_for_key(order.user, order.key)
    return tuple(phase_job_id(workflow, number) for number in range(1, order.phases + 1))


async def _until_drained(
    system: System, plan: Plan, people: list[asyncio.Task[None]], streams: Sequence[Heard]
) -> bool:
    """Until all has ended. What is held for an event that never came is let go in its time, and what readers have not
    seen yet is sent: those few runs go on until then."""
    ended_s: float | None = None
    ends, peace_s = _Ends(system), _peace_s(plan)
    while system.loop.time() < PEACE_S + DRAINED_WITHIN_S:
        await asyncio.sleep(LOOK_EVERY_S)
        now_s = system.loop.time()
        if now_s <= peace_s or not all(task.done() for task in people) or not ends.reached():
            ended_s = None
            continue
        ended_s = ended_s or now_s
        is_over = (
            is_settled(system.store.state, system.server._kept)
            and all_read(system, streams)
            and system.calls.is_empty
            and is_whole(system)
        )
        if is_over or now_s - ended_s >= SETTLED_WITHIN_S:
            return True
    return False


def _peace_s(plan: Plan) -> float:
    """When nothing more goes wrong. Readers and receivers have troubles of their own until the last moment of all."""
    if plan.readers:
        return PEACE_S
    return min(PEACE_S, max((span_of(fault)[1] for fault in plan.faults), default=0.0))


class _Ends:
    """Whether all jobs have come to their end, as far as the log goes now; read once."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._datas: list[JobData] = []
        self._left: dict[str, str] = {}
        self._read = 0

    def reached(self) -> bool:
        kept = self._system.server._kept
        while self._read < len(kept):
            event = kept[self._read].record().event
            self._read += 1
            if isinstance(event, Event) and isinstance(event.data, JobData):
                self._note(event.data)
        if not set(self._left.values()) <= LATER:
            return False
        return self._left.keys() <= waiting_for_a_day(self._datas, now=utc(self._system.clock.now_ms()))

    def _note(self, data: JobData) -> None:
        self._datas.append(data)
        status = data.status.value
        if status in ENDS:
            self._left.pop(data.job_id, None)
        else:
            self._left[data.job_id] = status


async def _end(system: System, people: list[asyncio.Task[None]]) -> None:
    for machine in system.machines.values():
        if machine.process is not None:
            machine.process.crash()
    for task in people:
        task.cancel()
    for index in system.indexes:
        await index.close()
    for _ in range(20):
        await asyncio.sleep(0)
    await asyncio.gather(*people, return_exceptions=True)


def _memory() -> str | None:
    """Files that nobody keeps, where there is such a place."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a folder of our own is made in it


def _faults_of(people: list[asyncio.Task[None]]) -> list[str]:
    return [repr(fault) for task in people if task.done() and not task.cancelled() and (fault := task.exception())]


def _digest(system: System) -> str:
    digest = hashlib.sha256()
    for kept in system.server._kept:
        digest.update(f"{kept.seq} {kept.at.isoformat()} {kept.message.subject}\n".encode())
        digest.update(kept.message.payload)
    return digest.hexdigest()


class _Errors(logging.Handler):
    """What a service said about something that it had not foreseen."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            fault = record.exc_info[1]
            self.said.append(f"{record.getMessage()}: {type(fault).__name__}: {fault}")


__all__ = ["Run", "Stuck", "simulate"]

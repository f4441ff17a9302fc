"""Admission as a process of a simulation, and the way in which a request comes to one of its replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar, cast

from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.eventlog.errors import LogFull, LogUnavailable, OutcomeUnknown
from libs.runtime.lifecycle import Service
from libs.twins.virtual import Process
from services.admission.acts import Acts
from services.admission.answering import Answering
from services.admission.changing import Changing
from services.admission.erasing import Erasing
from services.admission.forecasts import Forecasts
from services.admission.leasing import Leasing, NamedGroups, WaitingHere
from services.admission.operating import Operating
from services.admission.pipelines import Pipelines
from services.admission.reloading import Reloading
from services.admission.retrying import Retrying
from services.admission.schedulers import NatsSchedulers, subscribe_to_turns
from services.admission.submitting import Submitting
from tests.simulation.edges import Broker
from tests.simulation.indexes import erasing, start_index
from tests.simulation.network import Link, Way
from tests.simulation.plan import ADMISSIONS
from tests.simulation.reloads import following, reloading
from tests.simulation.world import SHARD, Machine, World

AWAY: Final = (ViewLost, ViewUnavailable, LogUnavailable, OutcomeUnknown, LogFull, TimeoutError)
T = TypeVar("T")


class Unavailable(Exception):
    """503: try again with the same key."""


class NoAnswer(Exception):
    """The connection broke, or nobody has answered in time."""


@dataclass(frozen=True, slots=True)
class UseCases:
    """What an admission replica can be asked for."""

    submitting: Submitting
    changing: Changing
    answering: Answering
    retrying: Retrying
    operating: Operating
    leasing: Leasing
    erasing: Erasing | None  # where there is something to erase
    reloading: Reloading | None  # where the policy is another one at some time


async def compose(world: World, service: Service, machine: Machine, process: Process) -> None:
    log, view, inputs = world.log(machine, process), world.view(process), world.bucket(process, world.inputs)
    clock, ids = machine.clock, _Ids(world.ids(machine))
    titles = world.bucket(process, world.titles) if world.is_indexed else world.titles
    policy, follower = await following(world, service, machine, log)
    forecasts = Forecasts(view, policy, clock)
    pipelines = Pipelines(world.pipelines, clock)
    submitting = Submitting(view, cast("Any", log), inputs, titles, pipelines, forecasts, policy, clock, ids)
    changing = Changing(view, cast("Any", log), policy, clock, ids)
    retrying = Retrying(submitting, cast("Any", log), inputs, titles, world.bucket(process, world.workspaces))
    acts = Acts(cast("Any", log), clock, ids)
    operating, leasing = Operating(view, cast("Any", log), clock, ids), _leasing(world, service, machine, process, acts)
    answering = Answering(changing, inputs, policy, ids)
    erased = erasing(world, process, changing, ids) if world.is_indexed else None
    reloads = reloading(policy, follower, acts)
    machine.use_cases = UseCases(submitting, changing, answering, retrying, operating, leasing, erased, reloads)
    if world.is_indexed and machine.name == ADMISSIONS[0]:
        await start_index(world, service, machine, process)


def _leasing(world: World, service: Service, machine: Machine, process: Process, acts: Acts) -> Leasing:
    view, broker = world.view(process), Broker(world.link(process, "commands"), world.subscriptions)
    turns, leaving = WaitingHere(), asyncio.Event()
    if world.has_leases:
        subscribe_to_turns(cast("Any", broker), turns, shard=SHARD)
        service.closing("who waits for slots", partial(_leave, leaving))
    groups, schedulers = NamedGroups(view, acts, machine.clock), NatsSchedulers(cast("Any", broker), shard=SHARD)
    return Leasing(view, schedulers, groups, turns, machine.clock, leaving)


async def _leave(leaving: asyncio.Event) -> None:
    leaving.set()


async def ask(world: World, link: Link, use: Callable[[UseCases], Awaitable[T]], *, within_s: float) -> T:
    """A request over HTTP, to one of the replicas that take any."""
    doors = [machine for name in ADMISSIONS if (machine := world.machines[name]).use_cases]
    doors = [each for each in doors if world.link(cast("Process", each.process), "http").connected]
    if not doors:
        await asyncio.sleep(link.delay_s())
        raise NoAnswer
    machine = world.dice.one_of("door", doors)
    answer: asyncio.Future[T] = world.loop.create_future()
    world.network.later(link.delay_s(), lambda: _enter(world, machine, use, answer=answer, link=link))
    try:
        async with asyncio.timeout(within_s):
            return await answer
    except TimeoutError:
        raise NoAnswer from None


def _enter(
    world: World, machine: Machine, use: Callable[[UseCases], Awaitable[T]], *, answer: asyncio.Future[T], link: Link
) -> None:
    process, use_cases = machine.process, machine.use_cases
    if process is None or use_cases is None:
        return _fail(answer, NoAnswer())
    way = world.link(process, "http").fate()
    if way is Way.LOST:
        return None

    def done(task: asyncio.Task[T]) -> None:
        result: T | None = None
        fault: BaseException | None = NoAnswer()
        if not task.cancelled():
            fault = task.exception()
            result = None if fault else task.result()
        if way in (Way.ARRIVES, Way.TWICE):
            world.network.later(link.delay_s(), lambda: _settle(answer, result, fault))

    async def serve() -> T:
        try:
            return await use(use_cases)
        except AWAY as away:
            raise Unavailable(type(away).__name__) from None

    process.call(lambda: process.start(serve()).add_done_callback(done))
    return None


class _Ids:
    """Those of admission."""

    def __init__(self, new: Callable[[], str]) -> None:
        self.event_id = new
        self.job_id = self.workflow_id = new


def _fail(answer: asyncio.Future[Any], fault: BaseException) -> None:
    if not answer.done():
        answer.set_exception(fault)


def _settle(answer: asyncio.Future[Any], result: Any, fault: BaseException | None) -> None:
    if fault is not None:
        _fail(answer, fault)
    elif not answer.done():
        answer.set_result(result)

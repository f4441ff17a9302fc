"""A whole system in virtual time: the servers, the processes composed as `__main__` does it, and what goes wrong.

Each process is a real `Service` with its real loops; only what leads outside is an edge of the simulation. One that
ends by a fault of its own is started again after a second, as its supervisor would.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel

from headgate_contracts.tokens import ulid
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.lead import MemoryLead
from libs.capacity.memory.view import MemoryStore, MemoryView
from libs.eventlog.buckets import MemoryBucket
from libs.eventlog.errors import LogError, LogFull, LogUnavailable, OutcomeUnknown
from libs.eventlog.memory import MemorySnapshots
from libs.eventlog.settling import SettlingLog
from libs.eventlog.values import Record
from libs.runtime.lifecycle import Health, Loop, Service
from services.admission.changing import Changing
from services.admission.forecasts import Forecasts
from services.admission.operating import Operating
from services.admission.submitting import Submitting
from services.scheduler.__main__ import _let_go as let_go
from services.scheduler.ports import Adapters
from services.scheduler.replica import Replica, assemble
from services.scheduler.snapshots import newest_fold
from services.scheduler.subscribers import NatsCommands, Subscribers
from services.worker.attempt.checkpoints import Shelf
from services.worker.attempt.lines import LinePump
from services.worker.attempt.process import Limits
from services.worker.attempt.tools import Tools
from services.worker.attempts import Attempts
from services.worker.commands import NatsLines, NatsScheduler
from services.worker.heartbeat import Heartbeat, Watchdog
from services.worker.intake import Intake
from services.worker.sandbox.command import Level
from services.worker.signals import Signals
from services.worker.subscribers import subscribe
from tests.simulation.dice import Dice
from tests.simulation.edges import Broker, Hall, LogWire, Port
from tests.simulation.network import Link, Network, Trouble, Way
from tests.simulation.plan import ADMISSIONS, POLICY, SCHEDULERS, SERVICES, SLOTS, Fault
from tests.simulation.pool import Pool, PoolEdge
from tests.simulation.quiet import quiet_telemetry
from tests.simulation.server import Server
from tests.simulation.stages import Deeds, Play, Stages
from tests.simulation.virtual import LoopClock, Process, VirtualLoop

EPOCH: Final = "01JD0000000000000000000000"
SHARD: Final = "main"
MIDNIGHT_MS: Final = 1_800_057_600_000  # 2027-01-16T00:00:00Z
AGAIN_AFTER_S: Final = 1.0
AWAY: Final = (ViewLost, ViewUnavailable, LogUnavailable, OutcomeUnknown, LogFull, TimeoutError)
T = TypeVar("T")


class Unavailable(Exception):
    """503: try again with the same key."""


class NoAnswer(Exception):
    """The connection broke, or nobody has answered in time."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What an admission replica can be asked for."""

    submitting: Submitting
    changing: Changing
    operating: Operating


@dataclass(slots=True)
class Machine:
    """Where a service runs: its clocks outlive its process."""

    name: str
    clock: LoopClock
    process: Process | None = None
    service: Service | None = None
    desk: Desk | None = None
    down: int = 0  # how many faults keep it down


class _Kept(BaseModel):
    """What the stream of lines answers."""

    seq: int = 1


class System:
    """One simulation's."""

    def __init__(self, loop: VirtualLoop, dice: Dice, *, folder: Path, before_midnight_s: float) -> None:
        self.loop = loop
        self.dice = dice
        self.network = Network(loop, dice)
        self.hall = Hall(self.network)
        self.start_ms = MIDNIGHT_MS - round(before_midnight_s * 1000)
        self.clock = LoopClock(loop, start_ms=self.start_ms)
        self.server = Server(self.clock, epoch=EPOCH)
        self.store = MemoryStore()
        self.lead = MemoryLead(self.clock.now_ms)
        self.snapshots = MemorySnapshots()
        self.inputs, self.workspaces, self.results = MemoryBucket(), MemoryBucket(), MemoryBucket()
        self.pool = Pool(self.network)
        self.listeners: list[Callable[[Record], None]] = [self.pool.stored]
        self.server.heard = self._heard
        self.deeds = Deeds()
        self.said: list[tuple[float, str]] = []
        self.fallen: list[str] = []
        self.view_was_lost = False
        self.buckets_full = False
        self._folder = folder
        self._leads: dict[str, MemoryLead] | None = None  # where each replica believes in its own
        self._older: Any = None
        self.machines = {name: self._machine(name) for name in SERVICES}
        lines = Broker(Link(self.network, Process("nats", loop), "lines"), self.hall)
        lines.subscriber("headgate.logs.v1.*")(_keep)

    def _machine(self, name: str) -> Machine:
        ahead_ms, up_ms = self.dice.whole("ahead", -5000, 5000), self.dice.whole("up", 0, 10**9)
        return Machine(name, LoopClock(self.loop, start_ms=self.start_ms, ahead_ms=ahead_ms, up_ms=up_ms))

    def _heard(self, record: Record) -> None:
        for listener in self.listeners:
            self.network.later(0.0, lambda listener=listener: listener(record))

    # ── processes ─────────────────────────────────────────────────────────────

    def start_all(self) -> None:
        for name in SERVICES:
            self.start(self.machines[name])

    def start(self, machine: Machine) -> None:
        """A new process of it."""
        if machine.down or (machine.process and machine.process.alive):
            return
        process = machine.process = Process(machine.name, self.loop)
        compose = {"a": self._admission, "s": self._scheduler, "w": self._worker}[machine.name[0]]
        machine.service = Service(machine.name)
        process.start(self._live(machine, process, compose))

    async def _live(self, machine: Machine, process: Process, compose: Callable[..., Awaitable[None]]) -> None:
        service = machine.service
        assert service is not None
        code = await service.run(lambda service: compose(service, machine, process))  # type: ignore[arg-type,return-value]
        if process.alive:
            self.say(f"{machine.name} ended with {code}")
            self.crash(machine, AGAIN_AFTER_S)

    def crash(self, machine: Machine, for_s: float) -> None:
        process, machine.desk = machine.process, None
        if process is not None and process.alive:
            process.crash()
        machine.down += 1

        def again() -> None:
            machine.down -= 1
            self.start(machine)

        self.network.later(for_s, again)

    def _link(self, process: Process, server: str) -> Link:
        return Link(self.network, process, server)

    def _log(self, machine: Machine, process: Process) -> SettlingLog:
        log = SettlingLog(LogWire(self._link(process, "log"), self.server, self.hall), clock=machine.clock)
        log.epoch = EPOCH  # type: ignore[attr-defined]
        return log

    def _view(self, process: Process) -> Any:
        view = MemoryView(EPOCH, clock=self.clock.now_ms, store=self.store)
        return Port(self._link(process, "view"), view, away=lambda: ViewUnavailable("no answer"))

    def _bucket(self, process: Process, bucket: MemoryBucket) -> Any:
        link = self._link(process, "buckets")
        return Port(link, bucket, away=lambda: LogUnavailable(reason="no answer"), full=lambda: self.buckets_full)

    def _ids(self, machine: Machine) -> Callable[[], str]:
        what = f"id {machine.name}"
        return lambda: ulid(machine.clock.now_ms(), self.dice.entropy(what))

    # ── admission ─────────────────────────────────────────────────────────────

    async def _admission(self, service: Service, machine: Machine, process: Process) -> None:
        log, view, inputs = self._log(machine, process), self._view(process), self._bucket(process, self.inputs)
        clock, ids = machine.clock, _Ids(self._ids(machine))
        submitting = Submitting(view, cast("Any", log), inputs, Forecasts(view, POLICY, clock), POLICY, clock, ids)
        changing = Changing(view, cast("Any", log), POLICY, clock, ids)
        machine.desk = Desk(submitting, changing, Operating(view, cast("Any", log), clock, ids))

    async def ask(self, link: Link, use: Callable[[Desk], Awaitable[T]], *, within_s: float) -> T:
        """A request over HTTP, to one of the replicas that take any."""
        doors = [machine for name in ADMISSIONS if (machine := self.machines[name]).desk]
        doors = [each for each in doors if self._link(cast("Process", each.process), "http").connected]
        if not doors:
            await asyncio.sleep(link.delay_s())
            raise NoAnswer
        machine = self.dice.one_of("door", doors)
        answer: asyncio.Future[T] = self.loop.create_future()
        self.network.later(link.delay_s(), lambda: self._enter(machine, use, answer, link))
        try:
            async with asyncio.timeout(within_s):
                return await answer
        except TimeoutError:
            raise NoAnswer from None

    def _enter(
        self, machine: Machine, use: Callable[[Desk], Awaitable[T]], answer: asyncio.Future[T], link: Link
    ) -> None:
        process, desk = machine.process, machine.desk
        if process is None or desk is None:
            return _fail(answer, NoAnswer())
        way = self._link(process, "http").fate()
        if way is Way.LOST:
            return None

        def done(task: asyncio.Task[T]) -> None:
            result: T | None = None
            fault: BaseException | None = NoAnswer()
            if not task.cancelled():
                fault = task.exception()
                result = None if fault else task.result()
            if way in (Way.ARRIVES, Way.TWICE):
                self.network.later(link.delay_s(), lambda: _settle(answer, result, fault))

        async def serve() -> T:
            try:
                return await use(desk)
            except AWAY as away:
                raise Unavailable(type(away).__name__) from None

        process.call(lambda: process.start(serve()).add_done_callback(done))
        return None

    # ── scheduler ─────────────────────────────────────────────────────────────

    async def _scheduler(self, service: Service, machine: Machine, process: Process) -> None:
        broker = Broker(self._link(process, "commands"), self.hall)
        commands = NatsCommands(cast("Any", broker), shard=SHARD)
        view = self._view(process)
        telemetry = quiet_telemetry()
        adapters = Adapters(
            log=cast("Any", self._log(machine, process)),
            view=view,
            lead=cast("Any", Port(self._link(process, "view"), _Lead(self, machine.name), away=_silent_store)),
            commands=commands,
            snapshots=self._snapshots(process),
            telemetry=telemetry,
            health=Health(),
            clock=machine.clock,
            new_id=self._ids(machine),
        )
        replica = await self._replica(machine, adapters)
        subscribers = Subscribers(
            cast("Any", broker),
            replica,
            view=view,
            shard=SHARD,
            telemetry=telemetry,
            clock=machine.clock,
            stir=lambda: None,
        )

        service.closing("the lead", lambda: let_go(replica))
        await service.start(Loop("lead", replica.leader.run))
        await service.start(Loop("inbox", replica.inbox.run))
        await service.start(Loop("cycle", replica.cycle.run, patience_s=3.0))
        await replica.cycle.folded.wait()
        subscribers.subscribe()
        await service.start(Loop("snapshots", replica.keeper.run))

    def _snapshots(self, process: Process) -> Any:
        return Port(
            self._link(process, "buckets"),
            self.snapshots,
            away=lambda: LogUnavailable(reason="no answer"),
            full=lambda: self.buckets_full,
        )

    async def _replica(self, machine: Machine, adapters: Adapters) -> Replica:
        while True:
            try:
                ledger = await newest_fold(adapters.snapshots, epoch=EPOCH, policy=POLICY)
                break
            except LogError:
                await machine.clock.sleep_ms(500)
        patience_s = POLICY.leases.heartbeat_s
        return assemble(
            ledger, name=machine.name, shard=SHARD, epoch=EPOCH, outage_patience_s=patience_s, adapters=adapters
        )

    # ── worker ────────────────────────────────────────────────────────────────

    async def _worker(self, service: Service, machine: Machine, process: Process) -> None:
        leases, clock = POLICY.leases, machine.clock
        instance = f"{machine.name}-{round(self.loop.time() * 1000)}"
        broker = Broker(self._link(process, "commands"), self.hall)
        scheduler = NatsScheduler(cast("Any", broker), shard=SHARD, within_s=2.0)
        pump = LinePump(NatsLines(cast("Any", broker)), clock)
        stages = Stages(process, lambda name, own: self._play(name, own, clock))
        tools = Tools(
            worker=instance,
            policy=POLICY,
            limits=Limits(
                workspaces=self._folder / instance,
                end_grace_s=1.0,
                runs=POLICY.runs,
                commands=POLICY.sandbox,
                level=Level("plain"),
                providers={},
            ),
            log=cast("Any", self._log(machine, process)),
            inputs=self._bucket(process, self.inputs),
            results=self._bucket(process, self.results),
            shelf=Shelf(self._bucket(process, self.workspaces), clock),
            scheduler=scheduler,
            spawner=cast("Any", stages),
            pump=pump,
            signals=Signals(quiet_telemetry(), pool="default"),
            clock=clock,
            new_id=self._ids(machine),
        )
        soon = asyncio.Event()
        attempts = Attempts(tools, drain_grace_s=4.0, beat_soon=soon.set)
        subscribe(cast("Any", broker), attempts, shard=SHARD)
        heartbeat = Heartbeat(
            attempts,
            scheduler,
            worker=instance,
            pool="default",
            slots=SLOTS,
            every_ms=round(leases.heartbeat_s * 1000),
            clock=clock,
            soon=soon,
        )
        watchdog = Watchdog(attempts, heartbeat, cut_off_ms=round(leases.cut_off_s * 1000), clock=clock)
        service.closing("the shelf", tools.shelf.stop)
        await service.start(Loop("lines", pump.run))
        service.closing("the last heartbeat", heartbeat.beat)
        await service.start(Loop("heartbeat", heartbeat.run))
        await service.start(Loop("watchdog", watchdog.run))
        await service.start(attempts)
        pool = PoolEdge(self.pool, self._link(process, "log"))
        await service.start(Intake(cast("Any", pool), attempts.serve, slots=SLOTS, room=_room))

    def _play(self, name: str, process: Process, clock: LoopClock) -> Play:
        up_ms = clock.monotonic_ms() - int(self.loop.time() * 1000 + 1e-6)
        return Play(name, process, loop=self.loop, dice=self.dice, deeds=self.deeds, up_ms=up_ms)

    # ── what goes wrong ───────────────────────────────────────────────────────

    def say(self, what: str) -> None:
        self.said.append((self.loop.time(), what))

    def let_go_wrong(self, fault: Fault) -> None:
        self.say(str(fault))
        getattr(self, f"_fault_{fault.kind}")(fault)

    def _fault_crash(self, fault: Fault) -> None:
        self.crash(self.machines[fault.who], fault.for_s)

    def _fault_stop(self, fault: Fault) -> None:
        """As a supervisor does: SIGTERM."""
        service = self.machines[fault.who].service
        if service is not None:
            service.stop()

    def _fault_roll(self, fault: Fault) -> None:
        """Every process in turn."""
        for number, name in enumerate(SERVICES):
            self.network.later(2.0 * number, lambda name=name: self._fault_stop(Fault(kind="stop", at_s=0, who=name)))

    def _fault_pause(self, fault: Fault) -> None:
        process = self.machines[fault.who].process
        if process is not None and process.alive:
            process.pause()
            self.network.later(fault.for_s, process.resume)

    def _fault_cut(self, fault: Fault) -> None:
        self._trouble(fault, Trouble(fault.who, fault.server, cut=True))

    def _fault_lossy(self, fault: Fault) -> None:
        self._trouble(fault, Trouble(fault.who, fault.server, lossy=fault.share))

    def _fault_slow(self, fault: Fault) -> None:
        self._trouble(fault, Trouble(fault.who, fault.server, slow_s=fault.share))

    def _trouble(self, fault: Fault, trouble: Trouble) -> None:
        self.network.troubles.append(trouble)
        self.network.later(fault.for_s, lambda: self.network.troubles.remove(trouble))

    def _fault_flush(self, fault: Fault) -> None:
        self.view_was_lost = True
        self.store.lose()
        self.lead.lose()

    def _fault_older(self, fault: Fault) -> None:
        """A store that was restarted with what it had kept a while ago."""
        self.view_was_lost = True
        older = copy.deepcopy(self.store.state)

        def put_back() -> None:
            self.say("the view is as old as that again")
            self.store.state = older

        self.network.later(fault.for_s, put_back)

    def _fault_split(self, fault: Fault) -> None:
        """Each replica is told that it leads."""
        self._leads = {name: MemoryLead(self.clock.now_ms) for name in SCHEDULERS}

        def one_again() -> None:
            self._leads = None

        self.network.later(fault.for_s, one_again)

    def _fault_full(self, fault: Fault) -> None:
        if fault.server == "log":
            self.server._max_bytes = self.server._bytes()
        else:
            self.buckets_full = True

        def room() -> None:
            self.server._max_bytes, self.buckets_full = None, False

        self.network.later(fault.for_s, room)

    def _fault_clock(self, fault: Fault) -> None:
        self.machines[fault.who].clock.ahead_ms += round(fault.share * 1000)

    def lead_of(self, name: str) -> MemoryLead:
        return self._leads[name] if self._leads else self.lead


class _Lead:
    """The lead as one replica finds it."""

    def __init__(self, system: System, name: str) -> None:
        self._system = system
        self._name = name

    async def hold(self, name: str, *, ttl_ms: int) -> Any:
        return await self._system.lead_of(self._name).hold(name, ttl_ms=ttl_ms)

    async def drop(self, name: str) -> None:
        await self._system.lead_of(self._name).drop(name)


class _Ids:
    """Those of admission."""

    def __init__(self, new: Callable[[], str]) -> None:
        self.event_id = new
        self.job_id = self.workflow_id = new


async def _keep(_: object) -> _Kept:
    return _Kept()


async def _room() -> None:
    """There is room on the disk."""


def _silent_store() -> Exception:
    return ViewUnavailable("no answer")


def _fail(answer: asyncio.Future[Any], fault: BaseException) -> None:
    if not answer.done():
        answer.set_exception(fault)


def _settle(answer: asyncio.Future[Any], result: Any, fault: BaseException | None) -> None:
    if fault is not None:
        _fail(answer, fault)
    elif not answer.done():
        answer.set_result(result)

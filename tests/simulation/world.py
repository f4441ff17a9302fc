"""What all processes of a simulation share: the servers, the network, and the machines that services run on.

Owns how a process gets at each server. Refuses to know any service.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from headgate_contracts import Event
from headgate_contracts.commands import LogLine
from headgate_contracts.events import JobData
from headgate_contracts.tokens import ulid
from libs.capacity.errors import ViewUnavailable
from libs.capacity.lead import MemoryLead
from libs.capacity.memory.view import MemoryStore, MemoryView
from libs.eventlog.buckets import MemoryBucket
from libs.eventlog.errors import LogUnavailable
from libs.eventlog.memory import MemorySnapshots
from libs.eventlog.pipelines import AnnouncedPipeline, MemoryPipelines
from libs.eventlog.progress import MemoryProgress
from libs.eventlog.settling import SettlingLog
from libs.eventlog.titles import MemoryTitles
from libs.eventlog.values import Record
from libs.runtime.lifecycle import Service
from libs.twins.virtual import LoopClock, Process, VirtualLoop
from services.admission.indexing import Indexing
from services.notifier.webhooks import EVENTS
from tests.simulation.deeds import Deeds
from tests.simulation.dice import Dice
from tests.simulation.edges import Broker, Heard, LogWire, Port, Subscriptions
from tests.simulation.kept_lines import KeptLines
from tests.simulation.network import Link, Network
from tests.simulation.plan import POLICY, Plan
from tests.simulation.pool import Pool
from tests.simulation.receivers import Hooks
from tests.simulation.server import Server
from tests.simulation.shelves import WatchedShelf

if TYPE_CHECKING:
    from tests.simulation.admissions import UseCases
    from tests.simulation.notifiers import Streams

EPOCH: Final = "01JD0000000000000000000000"
SHARD: Final = "main"
MIDNIGHT_MS: Final = 1_800_057_600_000  # 2027-01-16T00:00:00Z


@dataclass(slots=True)
class Machine:
    """Where a service runs: its clocks outlive its process."""

    name: str
    clock: LoopClock
    process: Process | None = None
    service: Service | None = None
    use_cases: UseCases | None = None
    streams: Streams | None = None
    told_to_stop_s: float | None = None
    down: int = 0  # how many faults keep it down


class _Kept(BaseModel):
    """What the stream of lines answers."""

    seq: int


OWN: Final = tuple(AnnouncedPipeline(name=name, pool="default") for name in ("own", "short", "single"))


class _View(MemoryView):
    """The view, which tells when it is made anew, and of each slot that is held again after it was given up."""

    def __init__(self, world: World) -> None:
        super().__init__(EPOCH, clock=world.clock.now_ms, store=world.store)
        self._world = world

    async def begin(self, epoch: str, **what: Any) -> None:
        self._world.begun_s.append(self._world.loop.time())
        self._world.deeds.given_up.clear()  # it knows nothing of those
        await super().begin(epoch, **what)

    async def acquire(self, *asked: Any, **more: Any) -> Any:
        answer = await super().acquire(*asked, **more)
        self._look_at_held()
        return answer

    async def beat(self, *said: Any, **more: Any) -> Any:
        answer = await super().beat(*said, **more)
        self._look_at_held()
        return answer

    async def give_up(self, lease: str, **more: Any) -> Any:
        given_up = await super().give_up(lease, **more)
        self._world.deeds.given_up[lease] = self._world.loop.time()
        return given_up

    def _look_at_held(self) -> None:
        deeds, leases = self._world.deeds, self._world.store.state.leases  # type: ignore[union-attr]
        for lease in sorted(leases.keys() & deeds.given_up.keys()):
            if leases[lease].owner is not None:
                deeds.held_again.append((lease, deeds.given_up.pop(lease), self._world.loop.time()))


class World:
    """One simulation's."""

    def __init__(self, loop: VirtualLoop, plan: Plan, *, folder: Path) -> None:
        self.loop = loop
        self.slots, self.has_habits = plan.slots, plan.has_habits
        self.dice = dice = Dice(plan.seed)
        self.folder = folder
        self.network = Network(loop, dice)
        self.subscriptions = Subscriptions(self.network)
        self.start_ms = MIDNIGHT_MS - round(plan.before_midnight_s * 1000)
        self.clock = LoopClock(loop, start_ms=self.start_ms)
        self.server, self.store = Server(self.clock, epoch=EPOCH), MemoryStore()
        self.lead = MemoryLead(self.clock.now_ms)
        self.leads: dict[str, MemoryLead] | None = None  # where each replica believes in its own
        self.snapshots = MemorySnapshots()
        self.inputs, self.workspaces, self.results = MemoryBucket(), WatchedShelf(), MemoryBucket()
        self.titles, self.progress, self.pipelines = MemoryTitles(), MemoryProgress(), MemoryPipelines(*OWN)
        self.pool = Pool(self.network)
        self.lines = KeptLines(self.clock)
        self.hooks = Hooks(self.network, dice)
        self.calls = Pool(
            self.network,
            wants=lambda data: data.EVENT in EVENTS,
            acked_within_s=2 * POLICY.webhooks.timeout_s + 5,
            most_tries=POLICY.webhooks.tries,
        )
        self.listeners: list[Callable[[Record], None]] = [self.pool.stored]
        self.has_readers, self.has_leases = bool(plan.readers), bool(plan.leases)
        self.is_indexed, self.is_reloaded = plan.is_indexed, plan.is_reloaded
        self.indexes: list[Indexing] = []  # of each process that had one
        self.listeners += [self.calls.stored] if self.has_readers else []
        self.server.heard = self._heard
        self.deeds = Deeds()
        self.said, self.begun_s = list[tuple[float, str]](), list[float]()  # begun: a view
        self.view_was_lost = self.buckets_full = False
        self.machines = {name: self._machine(name) for name in plan.services}
        lines = Broker(Link(self.network, Process("nats", loop), "lines"), self.subscriptions)
        lines.subscriber("headgate.logs.v1.*", "stream")(self._keep_line)

    def say(self, what: str) -> None:
        self.said.append((self.loop.time(), what))

    def link(self, process: Process, server: str) -> Link:
        return Link(self.network, process, server)

    def log(self, machine: Machine, process: Process) -> SettlingLog:
        wire = LogWire(self.link(process, "log"), self.server, self.subscriptions, reader=self.link(process, "reader"))
        log = SettlingLog(wire, clock=machine.clock)
        log.epoch = EPOCH  # type: ignore[attr-defined]
        return log

    def view(self, process: Process) -> Any:
        return Port(self.link(process, "view"), _View(self), away=lambda: ViewUnavailable("no answer"))

    def bucket(self, process: Process, bucket: object) -> Any:
        link = self.link(process, "buckets")
        return Port(link, bucket, away=lambda: LogUnavailable(reason="no answer"), full=lambda: self.buckets_full)

    def ids(self, machine: Machine) -> Callable[[], str]:
        what = f"id {machine.name}"
        return lambda: ulid(machine.clock.now_ms(), self.dice.entropy(what))

    def lead_of(self, name: str) -> MemoryLead:
        return self.leads[name] if self.leads else self.lead

    def _machine(self, name: str) -> Machine:
        ahead_ms, up_ms = self.dice.whole("ahead", -5000, 5000), self.dice.whole("up", 0, 10**9)
        return Machine(name, LoopClock(self.loop, start_ms=self.start_ms, ahead_ms=ahead_ms, up_ms=up_ms))

    async def _keep_line(self, line: LogLine, message: Heard) -> _Kept:
        return _Kept(seq=self.lines.keep(line, message.headers["Nats-Msg-Id"]))

    def _heard(self, record: Record) -> None:
        data = record.event.data if isinstance(record.event, Event) else None
        name = getattr(data, "checkpoint", None)
        if isinstance(data, JobData) and name and not self.workspaces.holds(name):
            self.deeds.unread.append((record.seq, data.job_id, name))
        self.network.later(0.0, self._tell, record)

    def _tell(self, record: Record) -> None:
        for listener in self.listeners:
            listener(record)

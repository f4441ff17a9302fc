"""The four services over the twins, composed as each `__main__` does it over the servers.

Owns what differs: clients are twins, an attempt has no process of its own, nobody is called (no webhooks), and nothing
is estimated. Use cases, rules, cycle, attempts and streams are the services' own.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from headgate_pipeline import Pipeline
from libs.eventlog.history import History, MemoryScans
from libs.foundation.policing import PolicyFollower
from libs.foundation.public import LATER
from libs.foundation.revoking import RevocationFollower
from libs.runtime.app import create_app
from libs.runtime.auth import Tokens
from libs.runtime.claims import DAY_S, Terms
from libs.runtime.gate import Gate
from libs.runtime.keys import jwks
from libs.runtime.keysets import Keys
from libs.runtime.lifecycle import Health, Loop, Service
from libs.runtime.openapi import DescribedApp
from libs.twins.children import MemorySpawner
from libs.twins.world import EPOCH, SHARD, MemoryOutput, TwinWorld
from services.admission.acts import Acts
from services.admission.composing import AdmissionStores
from services.admission.composing import assemble as assemble_admission
from services.admission.indexing import Indexing
from services.admission.leasing import Leasing, NamedGroups, WaitingHere
from services.admission.pipelines import Pipelines
from services.admission.reloading import Reloading
from services.admission.routes import ROUTES
from services.admission.schedulers import NatsSchedulers, subscribe_to_turns
from services.notifier.api import streams
from services.notifier.composing import NotifierStores, drain_of
from services.notifier.composing import assemble as assemble_notifier
from services.notifier.fanout import Fanout
from services.notifier.sending import Collecting
from services.notifier.subscribers import (
    AskedPositions,
    RedeemedTickets,
    WatchingPublisher,
    spread_lines,
    spread_log,
    subscribe,
)
from services.notifier.watching import WatchTeller
from services.scheduler.ports import Adapters
from services.scheduler.replica import Replica
from services.scheduler.replica import assemble as assemble_scheduler
from services.scheduler.snapshots import newest_fold
from services.scheduler.subscribers import NatsCommands
from services.scheduler.subscribers import subscribe as subscribe_scheduler
from services.worker.announcing import Announcing
from services.worker.attempt.checkpoints import Shelf
from services.worker.attempt.job_log import LinePump
from services.worker.attempt.process import Limits
from services.worker.attempt.tools import Tools
from services.worker.attempts import Attempts
from services.worker.heartbeat import LifeTerms, show_life
from services.worker.intake import Intake
from services.worker.sandbox.command import Level
from services.worker.signals import Signals as WorkerSignals
from services.worker.subscribers import NatsScheduler
from services.worker.subscribers import subscribe as subscribe_worker

ISSUER: Final = "headgate"
POOL: Final = "default"
ASKED_WITHIN_S: Final = 2.0
NEVER: Final = 10**9  # the test's garbage is the test's
GRACE_S: Final = 1.0  # of attempts, where the test is over


@dataclass(frozen=True, slots=True)
class TwinFront:
    """One service that clients ask."""

    app: DescribedApp
    gate: Gate
    tokens: Tokens


def front_of(world: TwinWorld, service: str) -> TwinFront:
    gate, clock = Gate(), world.clock
    terms = Terms(ISSUER, ISSUER, world.policy.tokens.longest_days * DAY_S)

    async def public(_: str) -> bytes:
        return jwks(world.pair)

    tokens = Tokens(Keys(["the twins"], clock=clock, read=public), terms, clock=clock)
    app = create_app(service, version="0", gate=gate, telemetry=world.telemetry, tokens=tokens, faults=LATER)
    return TwinFront(app, gate, tokens)


async def start_scheduler(service: Service, world: TwinWorld) -> Replica:
    broker = world.broker()
    commands = NatsCommands(broker, shard=SHARD)
    adapters = Adapters(
        log=world.log(),
        view=world.view(),
        lead=world.lead,
        commands=commands,
        snapshots=world.snapshots,
        telemetry=world.telemetry,
        health=Health(),
        clock=world.clock,
        new_id=world.ids.event_id,
    )
    ledger = await newest_fold(world.snapshots, adapters.log, epoch=EPOCH, policy=world.policy)
    patience_s = world.policy.leases.heartbeat_s
    replica = assemble_scheduler(
        ledger, name="scheduler", shard=SHARD, epoch=EPOCH, outage_patience_s=patience_s, adapters=adapters
    )
    announcer = subscribe_scheduler(broker, replica, adapters, show=commands.show, shard=SHARD)
    await service.start(Loop("lead", replica.leader.run))
    await service.start(Loop("inbox", replica.inbox.run))
    await service.start(Loop("cycle", replica.cycle.run))
    await replica.cycle.folded.wait()
    await service.start(Loop("positions", announcer.run))
    return replica


async def start_worker(
    service: Service, world: TwinWorld, pipelines: Mapping[str, Pipeline], *, slots: int
) -> Attempts:
    clock, broker, soon = world.clock, world.broker(), asyncio.Event()
    scheduler = NatsScheduler(broker, shard=SHARD, within_s=ASKED_WITHIN_S)
    spawner = MemorySpawner(pipelines)
    tools = _tools(world, scheduler, spawner)
    attempts = Attempts(tools, drain_grace_s=0.0, beat_soon=soon.set)
    subscribe_worker(broker, attempts, shard=SHARD)
    announcing = Announcing(world.pipelines, spawner.pipelines, pool=POOL, clock=clock)
    await announcing.tried()
    service.closing("the shelf", tools.shelf.stop)
    await service.start(Loop("lines", tools.pump.run))
    terms = LifeTerms(tools.worker, POOL, slots, world.policy.leases)
    await show_life(service, attempts, scheduler, terms, clock=clock, soon=soon)
    await service.start(attempts)
    await service.start(Intake(world.dispatches, attempts.serve, slots=slots, room=_room))
    return attempts


def _tools(world: TwinWorld, scheduler: NatsScheduler, spawner: MemorySpawner) -> Tools:
    clock, policy = world.clock, world.policy
    return Tools(
        worker="worker",
        policy=policy,
        limits=Limits(
            workspaces=world.folder / "workspaces",
            end_grace_s=GRACE_S,
            runs=policy.runs,
            commands=policy.sandbox,
            level=Level("plain"),
            providers={},
        ),
        log=world.log(),
        inputs=world.inputs,
        results=world.results,
        shelf=Shelf(world.workspaces, clock),
        scheduler=scheduler,
        spawner=cast("Any", spawner),  # of what a spawner can, what attempts ask of it
        pump=LinePump(MemoryOutput(world.lines), clock),
        progress=world.progress,
        signals=WorkerSignals(world.telemetry, pool=POOL),
        clock=clock,
        new_id=world.ids.event_id,
    )


async def start_admission(service: Service, world: TwinWorld) -> TwinFront:
    front, stores = front_of(world, "admission"), _stores(world)
    broker, log, view, clock = world.broker(), stores.log, stores.view, world.clock
    index = Indexing(world.folder / "jobs.sqlite3", log, world.titles, epoch=EPOCH, clock=clock)
    service.closing("the index", index.close)
    await service.start(Loop("index", index.run))
    pipelines = Pipelines(world.pipelines, clock)
    await service.start(Loop("pipelines", pipelines.follow))
    turns = WaitingHere()
    subscribe_to_turns(broker, turns, shard=SHARD)
    schedulers, acts = NatsSchedulers(broker, shard=SHARD), Acts(log, clock, world.ids)
    groups, follower = NamedGroups(view, acts, clock), PolicyFollower(log, world.policy, clock, Health())
    await service.start(Loop("policy", follower.run))
    edge = assemble_admission(
        stores,
        index=index,
        pipelines=pipelines,
        leasing=Leasing(view, schedulers, groups, turns, clock, front.gate.draining),
        revocations=front.tokens.revocations,
        reloading=Reloading(acts, world.policy, follower, {}, clock),
        policy=world.policy,
        clock=clock,
        ids=world.ids,
        telemetry=world.telemetry,
    )
    for routes in ROUTES:
        front.app.include_router(routes(edge))
    await _follow_revocations(service, world, front)
    await service.start(front.gate)
    return front


def _stores(world: TwinWorld) -> AdmissionStores:
    return AdmissionStores(
        log=world.log(),
        view=world.view(),
        past=History(MemoryScans(world.server)),
        inputs=world.inputs,
        results=world.results,
        workspaces=world.workspaces,
        titles=world.titles,
        progress=world.progress,
        lines=world.lines,
    )


async def start_notifier(service: Service, world: TwinWorld) -> TwinFront:
    front, broker, log, policy = front_of(world, "notifier"), world.broker(), world.log(), world.policy
    fanout = Fanout(beat_s=policy.stream.comment_s)
    subscribe(broker, fanout, shard=SHARD)
    await service.start(Loop("follower", lambda _: spread_log(log, fanout, after=0, epoch=EPOCH)))
    await service.start(Loop("lines", lambda _: spread_lines(world.lines, fanout, after=0)))
    told = WatchingPublisher(broker, shard=SHARD)
    await service.start(Loop("watching", WatchTeller(fanout, told.tell, policy, world.clock).run))
    edge = assemble_notifier(
        NotifierStores(
            log=log,
            scans=MemoryScans(world.server),
            lines=world.lines,
            titles=world.titles,
            progress=world.progress,
        ),
        fanout,
        AskedPositions(broker, shard=SHARD),
        revocations=front.tokens.revocations,
        collecting=Collecting(openings=NEVER, closings=NEVER),
        policy=policy,
        clock=world.clock,
        telemetry=world.telemetry,
    )
    await service.start(drain_of(front.gate, edge))
    front.app.state.tickets = RedeemedTickets(broker, shard=SHARD)
    front.app.include_router(streams(edge))
    await _follow_revocations(service, world, front)
    await service.start(front.gate)
    return front


async def _follow_revocations(service: Service, world: TwinWorld, front: TwinFront) -> None:
    await front.tokens.keys.load()
    longest_s = world.policy.tokens.longest_days * DAY_S
    followed = RevocationFollower(
        world.log(), MemoryScans(world.server), front.tokens.revocations, longest_s=longest_s, clock=world.clock
    )
    await service.start(Loop("tokens taken back", followed.run))


async def _room() -> None:
    """There is room on the disk."""

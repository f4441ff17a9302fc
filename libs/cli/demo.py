"""`headgate demo`: the whole system in a folder of its own, four jobs, and a word about each thing that is seen."""

import asyncio
import io
import os
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from uv import find_uv_bin

from headgate import Headgate, Job
from headgate.unpacking import unpack
from headgate.values import HistoryEvent
from headgate_contracts.vocabulary import Tier
from libs.cli.board import JobLine
from libs.cli.calling import called
from libs.cli.client import in_words
from libs.cli.errors import Failed
from libs.cli.following import watch_all
from libs.cli.interrupts import Interrupts
from libs.cli.jobs import contents
from libs.cli.output import Output
from libs.cli.run_folder import run_folder
from libs.cli.up import run
from libs.local.forks import ForkServer
from libs.local.provisions import USER_SCOPE, signed
from libs.local.settings import UpSettings
from libs.local.state import StateFolder
from libs.local.up_file import UpFile
from libs.local.wheels import wheels_at_hand

SLOTS: Final = 2  # fewer than there are jobs, so that some are seen to wait
STAGES: Final = {"scaffold": 0.6, "code": 2.0, "deps": 0.8, "checks": 0.6}


@dataclass(frozen=True, slots=True)
class Act:
    """One job of the tour."""

    title: str
    tier: Tier
    input: dict[str, Any]
    pipeline: str = "build"


ACTS: Final = (
    Act("bootstrapper", Tier.BOOTSTRAPPER, {"prompt": "a task list with due dates"}),
    Act("rehearsal", Tier.PARTNER, {"stages": STAGES, "failing_cycles": 1}, "rehearsal"),
    Act("cto_scale", Tier.CTO_SCALE, {"prompt": "a rate limiter"}),
    Act("partner", Tier.PARTNER, {"prompt": "a URL shortener with expiry"}),
)


def demo(args: Namespace, out: Output, forks: ForkServer | None) -> int:
    """The tour, from start to stop."""
    with Interrupts() as told, run_folder("headgate-demo-") as folder:
        settings = UpSettings(port=0, state=folder, policy=None, workers=1, slots=SLOTS)
        out.say("Headgate starts: its four services, and the servers NATS and Valkey.", style="bold")
        run(settings, told, then=lambda up: _tour(up, settings, out), out=out, forks=forks, stay=False)
    return 0


async def _tour(up: UpFile, settings: UpSettings, out: Output) -> None:
    out.say(f"It is ready on {up.url}.\n")
    out.say(
        f"Four users submit a job each, and there is room for {SLOTS}: the others wait and are told where they stand. "
        "Three are builds, one for each tier: a package is written, its environment made, its tests run. One only "
        "rehearses, and fails at first.",
        style="bold",
    )
    async with AsyncExitStack() as open_clients:
        open_clients.enter_context(in_words(up.url))
        clients = [Headgate(up.url, _token(settings, act)) for act in ACTS]
        for hg in clients:
            await open_clients.enter_async_context(hg)
        jobs = [await _submitted(hg, act) for hg, act in zip(clients, ACTS, strict=True)]
        watched = [(JobLine(job.id, act.title), job.events()) for act, job in zip(ACTS, jobs, strict=True)]
        ends = await watch_all(watched, out)
        broken = [
            await _how_it_ended(job, line) for job, line in zip(jobs, ends, strict=True) if line.status != "ready"
        ]
        if broken:
            raise Failed(reason=" ".join(broken))
        _show_history(await jobs[-1].history(), out)
        await _show_result(await (await jobs[-1].result()).content(), settings.state, out)
    if not os.environ.get("HEADGATE_PROVIDERS"):
        out.say("\nThe packages were written without a language model: HEADGATE_PROVIDERS names one that shall.")
    out.say(
        f"\nThat was it. `{called()} up` starts a Headgate that stays; `{called()} --help` tells what to do with it."
    )


async def _how_it_ended(job: Job, line: JobLine) -> str:
    """With what only its owner is told."""
    error = (await job.wait()).state.error
    return f"The job of {line.title} ended as {line.words.rstrip('.')}. {error.detail if error else ''}".rstrip()


async def _submitted(hg: Headgate, act: Act) -> Job:
    return await hg.submit(act.input, project="demo", pipeline=act.pipeline, key=f"demo-{act.title}")


def _show_history(history: Sequence[HistoryEvent], out: Output) -> None:
    out.say("\nEverything above was told from a log of events. This is what it holds about the last job:", style="bold")
    out.table(
        ("SEQ", "EVENT", "STATUS THEN", "ITERATION"),
        [
            (
                str(event.seq),
                event.event,
                event.status,
                str(event.as_dict().get("iteration") or event.as_dict().get("iterations") or ""),
            )
            for event in history
        ],
    )


async def _show_result(archive: bytes, state: Path, out: Output) -> None:
    """Look into it, and run its own tests: it is a package like any other."""
    out.say(f"\nIts result was downloaded ({len(archive)} bytes) and holds:", style="bold")
    for name, size in contents(archive).items():
        out.say(f"  {size:>6}  {name}")
    folder = state / "result"
    unpack(io.BytesIO(archive), folder)
    [project] = folder.rglob("pyproject.toml")
    out.say("\nIts own tests, run here:", style="bold")
    out.say(f"  {await _tested(project.parent, state)}")


async def _tested(project: Path, state: Path) -> str:
    """The last line that pytest says, which is installed for this one run, from the wheels that its build had."""
    wheels = wheels_at_hand(os.environ) or StateFolder(state).wheels
    ran = await asyncio.create_subprocess_exec(
        *(find_uv_bin(), "run", "--quiet", "--no-project", "--no-config", "--cache-dir", str(state / "cache")),
        *("--no-python-downloads", "--python", sys.executable, "--offline", "--no-index", "--find-links", str(wheels)),
        *("--with", "pytest", "--", "python", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        cwd=project,
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": "src", "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us, and it is ended with all that it has started
    )
    try:
        said, complained = (text.decode(errors="replace").strip() for text in await ran.communicate())
    except asyncio.CancelledError:
        os.killpg(ran.pid, signal.SIGKILL)
        await ran.wait()
        raise
    last = said.rpartition("\n")[2]
    if ran.returncode:
        raise Failed(reason=f"The tests of the result do not pass: {last or complained[-500:]}.")
    return last


def _token(settings: UpSettings, act: Act) -> str:
    user = act.title.replace("_", "-")
    return signed(StateFolder(settings.state).keys, user=user, tier=act.tier, scope=USER_SCOPE).text

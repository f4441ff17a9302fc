"""`headgate up`: the whole system on this machine, until it is told to stop."""

import asyncio
import os
from argparse import Namespace
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from libs.cli.calling import called
from libs.cli.errors import Interrupted
from libs.cli.interrupts import Interrupts
from libs.cli.output import Output, local_time
from libs.cli.reporting import reported
from libs.local.forks import ForkServer
from libs.local.settings import UpSettings, read_up_settings
from libs.local.state import DEFAULT_STATE
from libs.local.supervisor import Say, Supervisor
from libs.local.up_file import UpFile


def up(args: Namespace, out: Output, forks: ForkServer | None) -> int:
    """Start, say where, stay."""
    names = ("port", "state", "policy", "workers", "slots")
    is_ready = asyncio.Event()
    with reported():
        settings = read_up_settings({name: getattr(args, name) for name in names})

    async def tell(running: UpFile) -> None:
        is_ready.set()
        out.data(running.model_dump(mode="json"))
        until = local_time(running.tokens_expire_at.isoformat())
        out.say(f"\nThe dashboard, as a user:\n{running.url}/#token={running.user_token}")
        out.say(f"\nThe dashboard, as an operator:\n{running.url}/#token={running.operator_token}")
        out.say(f"\nBoth tokens are good until {until}; the next start signs new ones.")
        out.say(f"\nThe API is on {running.url}; all of this is in {settings.state / 'up.json'}.")
        say_first_job(_again(settings), os.environ, out)
        out.say("Ctrl-C stops it and loses nothing.", style="dim")
        out.plain(f"ready {running.url}")

    out.say(f"Headgate starts on {settings.state.absolute()} …")
    try:
        with Interrupts() as told:
            run(settings, told, then=tell, out=out, forks=forks)
    except Interrupted:
        with suppress(OSError):
            out.say("Headgate has stopped. The next start goes on from here.")
        if not is_ready.is_set():
            raise
    return 0


def say_first_job(command: str, environ: Mapping[str, str], out: Output) -> None:
    """A build, which every worker can run."""
    out.say("A first job, from another terminal in this folder:\n", style="bold")
    out.say(f'{command} submit "a URL shortener" --project shop --follow\n')
    if not environ.get("HEADGATE_PROVIDERS"):
        out.say("Builds are written without a language model: HEADGATE_PROVIDERS names one that shall.")


def _again(settings: UpSettings) -> str:
    """How this command was called, so that it can be called again and finds what runs."""
    return called() if settings.state == DEFAULT_STATE else f"HEADGATE_STATE={settings.state} {called()}"


def run(
    settings: UpSettings,
    told: Interrupts,
    *,
    then: Callable[[UpFile], Awaitable[None]],
    out: Output,
    forks: ForkServer | None,
    stay: bool = True,
) -> None:
    """The system until `then` is done, which begins once it is ready; where it stays, until it is told to stop."""

    def say(text: str) -> None:
        with suppress(OSError):  # what runs does not end because nobody reads this
            out.say(text, style="yellow")

    supervisor = Supervisor(settings, say=say, forks=forks)
    with reported():
        asyncio.run(_run(supervisor, told, _life(supervisor, then=then, stay=stay), say=say))


async def _life(supervisor: Supervisor, *, then: Callable[[UpFile], Awaitable[None]], stay: bool) -> None:
    await supervisor.start()
    await then(await supervisor.ready())
    if stay:
        await supervisor.ended()


async def _run(supervisor: Supervisor, told: Interrupts, life: Coroutine[Any, Any, None], *, say: Say) -> None:
    """However it ends, nothing of it is left."""
    try:
        await told.obeyed_by(life)
    finally:
        await _stopped(supervisor, told, say)


async def _stopped(supervisor: Supervisor, told: Interrupts, say: Say) -> None:
    """The first signal is answered, each further one hurries it; none of them ends it half-way."""
    stopping, count = asyncio.ensure_future(supervisor.stop()), 0
    while not stopping.done():
        heard = asyncio.ensure_future(told.more_than(count))
        await asyncio.wait([stopping, heard], return_when=asyncio.FIRST_COMPLETED)
        if heard.done() and count == 0:
            say("\nStopping. Ctrl-C again hurries it.")
        elif heard.done():
            supervisor.hurry()
        count += heard.done()
        heard.cancel()
    stopping.result()

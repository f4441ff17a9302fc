"""`headgate up`: the whole system on this machine, until it is told to stop."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable

from libs.cli.calling import called
from libs.cli.errors import CliError
from libs.cli.output import Output
from libs.cli.reporting import reported
from libs.local.settings import UpSettings, read_up_settings
from libs.local.state import DEFAULT_STATE
from libs.local.supervisor import Supervisor
from libs.local.up_file import UpFile
from libs.runtime.lifecycle import Service

GRACE_S = 40.0  # the slowest service gets 15 s, the servers after it as long


def up(args: Namespace, out: Output) -> int:
    """Start, say where, stay."""
    names = ("port", "state", "policy", "workers", "slots")
    with reported():
        settings = read_up_settings({name: getattr(args, name) for name in names})

    async def tell(running: UpFile) -> None:
        out.data(running.model_dump(mode="json"))
        out.plain(f"user token      {running.user_token}")
        out.plain(f"operator token  {running.operator_token}")
        out.say(f"\nThe dashboard, signed in as a user     {running.url}/#token={running.user_token}")
        out.say(f"The dashboard, signed in as operator   {running.url}/#token={running.operator_token}\n")
        out.say(f"The API is on {running.url}; all of this is in {settings.state / 'up.json'}.")
        out.say(
            f'In another terminal, in this folder: {_again(settings)} submit "a URL shortener" --project shop --follow'
        )
        out.say("Ctrl-C stops it and loses nothing.", style="dim")
        out.plain(f"ready {running.url}")

    out.say(f"Headgate starts on {settings.state.absolute()} …")
    code = run(settings, then=tell, out=out)
    out.say("Headgate has stopped. The next start goes on from here.")
    return code


def _again(settings: UpSettings) -> str:
    """How this command was called, so that it can be called again and finds what runs."""
    return called() if settings.state == DEFAULT_STATE else f"HEADGATE_STATE={settings.state} {called()}"


def run(settings: UpSettings, *, then: Callable[[UpFile], Awaitable[None]], out: Output, stay: bool = True) -> int:
    """The system until it is told to stop, or until `then` is done, which begins once it is ready."""
    service = Service("headgate", grace_s=GRACE_S)
    supervisor = Supervisor(settings, say=lambda text: out.say(text, style="yellow"))
    failures: list[CliError] = []

    async def compose(service: Service) -> None:
        try:
            with reported():
                await service.start(supervisor)
                await then(await supervisor.ready())
        except CliError as failure:
            failures.append(failure)
        if failures or not stay:
            service.stop()

    code = asyncio.run(service.run(compose))
    for failure in failures:
        raise failure
    return code

"""The first attempts, which do nothing: the spawner lives them itself before it forks any, and what they leave is
where each attempt begins.

What Python finds out about code that runs, it writes into that code: where a name is, how an attribute is reached. In
the spawner that is written once; in a process forked from it each page that is written is copied, for every attempt
anew. The same holds for the event loop and whatever else is made when a first stage runs.

Owns what such an attempt is. It leaves no folder, no descriptor and no environment behind.
"""

import asyncio
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from headgate_pipeline import Context, Pipeline, input_as, stage
from services.worker.child import life
from services.worker.child.link import ParentLink
from services.worker.child.messages import Begin, Leave, Pack, RunStage, ToChild
from services.worker.sandbox.command import CommandBounds, Level

TURNS: Final = 12  # code counts as warm when it has run eight times
NAME: Final = "warming"
BOUNDS: Final = CommandBounds(*[1] * 7)  # no command is run
HOMES: Final = ("HOME", "TMPDIR")
READ_BYTES: Final = 64 * 1024


class _Input(BaseModel):
    words: dict[str, str] = {}


@stage("first")
async def _first(ctx: Context) -> None:
    ctx.log("warm")
    await asyncio.sleep(0)


@stage("last")
async def _last(ctx: Context) -> None:
    await asyncio.sleep(0)
    ctx.result.mkdir(exist_ok=True)
    (ctx.result / "nothing").write_bytes(b"\n")


_PIPELINES: Final = {NAME: Pipeline(NAME, (_first, _last), input_as(_Input))}


def warm_link() -> ParentLink:
    """What an attempt goes on with. Where nothing can be written it is as good, and costs more."""
    ours, theirs = socket.socketpair()
    link = ParentLink(theirs)
    with ours, theirs, _back_home(), suppress(OSError), tempfile.TemporaryDirectory() as home:
        for number in range(TURNS):
            folder = Path(home, str(number))
            (folder / "workspace").mkdir(parents=True)
            ours.sendall(b"".join(word.encoded() for word in _orders(folder)))
            life.serve(link, _PIPELINES, tie=theirs.fileno())
            ours.recv(READ_BYTES)
    link.loop.rest()
    return link


@contextmanager
def _back_home() -> Iterator[None]:
    """An attempt has a home of its own, and is at home there."""
    before, environ = Path.cwd(), {name: os.environ.get(name) for name in HOMES}
    try:
        yield
    finally:
        os.chdir(before)
        tempfile.tempdir = None
        for name, value in environ.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _orders(folder: Path) -> Iterator[ToChild]:
    yield Begin(
        job_id="job-0",
        project_id=NAME,
        pipeline=NAME,
        input='{"words": {"one": "two"}}',
        folder=str(folder),
        store=str(folder / "checkpoint.tar.gz"),
        store_bytes=READ_BYTES,
        area=str(folder / "area"),
        level=Level("plain"),
        bounds=BOUNDS,
        command_s=1,
    )
    yield RunStage(stage="first", iteration=1)
    yield RunStage(stage="last", iteration=1)
    yield Pack(target=str(folder / "result.tar.gz"), max_bytes=READ_BYTES)
    yield Leave()  # the attempt
    yield Leave()  # and wait for no other

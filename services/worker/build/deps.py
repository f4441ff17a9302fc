"""The environment of one job: made by uv in the sandbox, from a lock where there is one, from wheels alone.

Owns what uv is called with, and whose fault it is when that fails. The project's own package is not installed: its
tests find it by a path, so no build backend is run. Where the lock is the one that every package starts with, the
wheels that came with the worker are enough and nothing is let out. Otherwise uv resolves what the author asks for, from
the index that the worker names. It reads no configuration of the job's, and builds no source distribution: that would
be running a stranger's code with a network.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from headgate_contracts.vocabulary import Fault
from headgate_pipeline import Context, Ran, StageFailed
from services.worker.equipment import installer, wheels
from services.worker.sandbox.remains import clear

PROJECT: Final = "project"
ENVIRONMENT: Final = "env"
REQUIREMENTS: Final = "requirements.txt"
PYPI: Final = "https://pypi.org/simple"
UV_TIMEOUT_S: Final = 300.0
SYSTEM_CERTS: Final = "1"  # uv trusts what the machine trusts: behind a company's proxy its own list is not enough
CANNOT_BE_MET: Final = 1  # uv's exit code for needs that contradict each other or do not exist; 2 for all else
# No cache: what jobs share one could write and another read, and a job needs each wheel once an iteration.
COMMON: Final = ("--quiet", "--no-progress", "--no-config", "--no-cache", "--no-python-downloads", "--color=never")


@dataclass(frozen=True, slots=True)
class Sources:
    """Where packages come from: a folder of wheels that came with the worker, and an index where one may be asked."""

    wheels: Path | None
    index: str | None
    system_certs: str = SYSTEM_CERTS

    @classmethod
    def of(cls, environ: Mapping[str, str], *, prefix: str = sys.prefix) -> Self:
        """What came with the worker, and `HEADGATE_INDEX`, a URL; empty: none, so that nothing is fetched.
        `UV_SYSTEM_CERTS` is uv's own."""
        folder, index = wheels(environ, prefix=prefix), environ.get("HEADGATE_INDEX", PYPI) or None
        return cls(folder if folder.is_dir() else None, index, environ.get("UV_SYSTEM_CERTS") or SYSTEM_CERTS)

    def options(self, *, online: bool) -> tuple[str, ...]:
        wheels = ("--find-links", str(self.wheels)) if self.wheels else ()
        place = ("--default-index", self.index) if online and self.index else ("--offline", "--no-index")
        return (*wheels, *place)

    @property
    def ports(self) -> tuple[int, ...]:
        parts = urlsplit(self.index or PYPI)
        return (parts.port or (80 if parts.scheme == "http" else 443),)


class NeedsNotMet(Exception):
    """The packages that the author asks for cannot be installed: its `args` hold what uv says."""


async def install(ctx: Context, sources: Sources) -> None:
    """A fresh environment, or `NeedsNotMet`. Whatever else lies beside the project goes: the tests of an earlier
    iteration may have left a `pyproject.toml` there, and uv would take it for the root of a workspace."""
    for left in [path for path in ctx.workspace.iterdir() if path.name != PROJECT]:
        clear(left)
    await _uv(ctx, "venv", "--no-project", "--python", sys.executable, f"../{ENVIRONMENT}")
    if (ctx.workspace / PROJECT / "uv.lock").is_file():
        await _install_as_locked(ctx, sources, online=sources.wheels is None)
    elif sources.index:
        await _uv(ctx, "lock", "--no-build", "--python", sys.executable, *sources.options(online=True), sources=sources)
        await _install_as_locked(ctx, sources, online=True)
    else:
        chosen = ("--requirements", "pyproject.toml", "--group", "dev")
        await _uv(ctx, "pip", "install", *INTO, *sources.options(online=False), *chosen, sources=sources)


INTO: Final = ("--python", f"../{ENVIRONMENT}", "--no-build")


async def _install_as_locked(ctx: Context, sources: Sources, *, online: bool) -> None:
    """Exactly the wheels whose hashes the lock names, from wherever they come: uv checks each hash that it is given."""
    listed = ("--frozen", "--no-emit-project", "--all-groups", "--no-header", "--no-annotate")
    await _uv(ctx, "export", *listed, "--offline", "--output-file", f"../{REQUIREMENTS}")
    options = (*INTO, *sources.options(online=online))
    await _uv(ctx, "pip", "sync", *options, f"../{REQUIREMENTS}", sources=sources, online=online)


async def _uv(ctx: Context, *words: str, sources: Sources | None = None, online: bool | None = None) -> None:
    """One call of uv in the project. With sources it may read the wheels, and ask the index unless told otherwise."""
    network = sources is not None and sources.index is not None and online is not False
    ran = await ctx.run(
        installer(),
        *words,
        *COMMON,
        cwd=PROJECT,
        network=network,
        ports=sources.ports if sources and network else (),
        environ={"UV_SYSTEM_CERTS": sources.system_certs} if sources and network else {},
        reads=(sources.wheels,) if sources and sources.wheels else (),
        timeout_s=UV_TIMEOUT_S,
    )
    if ran.exit_code == 0:
        return
    ctx.log(f"uv {words[0]} failed")
    raise _failure(ran, network=network)


def _failure(ran: Ran, *, network: bool) -> Exception:
    if ran.exit_code == CANNOT_BE_MET:
        return NeedsNotMet(ran.output_tail)
    how = f"uv ended with code {ran.exit_code}." if ran.ended_by == "itself" else f"uv was ended: {ran.ended_by}."
    where = "The package index may be out of reach." if network else "The wheels of this worker may be incomplete."
    return StageFailed("The environment cannot be made.", f"{how} {where}", fault=Fault.SYSTEM)

"""Which level is in force on this machine, found out by really running a command in it.

    bubblewrap    namespaces, and a system of files of its own
    plain         whatever else of users, namespaces, Landlock, filter and cgroup this machine allows
    trusted       nothing but groups, limits and a clean environment: for jobs that are trusted, on any POSIX system

Owns the choice: the best that works, or what was asked for or nothing. Refuses to fall back in silence: a level's line
says what it lacks, and why it is not the better one. No command is trusted unasked.
"""

import asyncio
import dataclasses
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, Literal

from services.worker.sandbox import cgroup as cgroups
from services.worker.sandbox import kernel
from services.worker.sandbox.bubblewrap import ROOT
from services.worker.sandbox.command import CommandBounds, Level, SandboxCommand
from services.worker.sandbox.errors import CommandNotRun, SandboxError, SandboxMissing
from services.worker.sandbox.ownership import read_range
from services.worker.sandbox.reach import made_readable, make_passage
from services.worker.sandbox.remains import clear
from services.worker.sandbox.running import Sandbox

LevelChoice = Literal["auto", "bubblewrap", "plain", "trusted"]

RIGHTS: Final = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7}
USERS: Final = "58000-58255"
NOT_INSTALLED: Final = "bubblewrap is not installed: apt-get install bubblewrap, or what your system has for it"
SAYS: Final = "contained"
TRIAL_S: Final = 20.0
MIB: Final = 1024 * 1024
_TRIAL: Final = CommandBounds(512 * MIB, 64, 256, MIB, MIB, TRIAL_S, MIB)
_PROBE: Final = f"import sys; sys.path.insert(0, {ROOT!r}); from services.worker.sandbox.probe import main; main()"


async def find_level(
    wanted: LevelChoice,
    *,
    uids: str = USERS,
    cgroup: Path | None = None,
    workspaces: Path | None = None,
    needs: tuple[Path, ...] = (),
) -> Level:
    """The level for this worker, in which commands can read what they need. Raises SandboxMissing, which says what to
    do; OutOfReach where these workspaces would have to be elsewhere."""
    if wanted == "trusted":
        return await _that_runs(Level("trusted"), workspaces)
    if not kernel.is_linux():
        raise SandboxMissing(
            wanted=wanted,
            why=f"{sys.platform} cannot; run the worker on Linux, also in a container, or set HEADGATE_SANDBOX=trusted"
            " where every job is trusted with all that this user may.",
        )
    plain = await _plain(wanted, uids=uids, cgroup=cgroup)
    why_not = ""
    if wanted != "plain":
        program = shutil.which("bwrap")
        better = dataclasses.replace(plain, name="bubblewrap", bwrap=program, spaces="none")
        why_not = await _fault(better, workspaces) if program else NOT_INSTALLED
        if not why_not:
            return better
    if wanted == "bubblewrap":
        raise SandboxMissing(
            wanted=wanted, why=f"{why_not}. With HEADGATE_SANDBOX=auto the worker takes what there is."
        )
    return await _that_works(dataclasses.replace(plain, why=why_not), workspaces, needs)


async def _plain(wanted: LevelChoice, *, uids: str, cgroup: Path | None) -> Level:
    """With all that seems to be there."""
    found = await _probed()
    group = await asyncio.to_thread(cgroups.find, cgroup)
    if cgroup is not None and group is None:
        why = f"no group can be made in HEADGATE_SANDBOX_CGROUP={cgroup}: name a folder of cgroup v2 that is delegated."
        raise SandboxMissing(wanted=wanted, why=why)
    try:
        users = _users(uids)
    except ValueError as error:
        raise SandboxMissing(wanted=wanted, why=f"{error}.") from error
    return Level(
        name="plain",
        uids=users,
        spaces="root" if found["root"] else "user" if found["user"] else "none",
        filter=found["filter"],
        landlock=found["landlock"],
        cgroup=group.folder if group else None,
        counts=group is not None and group.counts,
        reads=tuple(dict.fromkeys(map(os.path.realpath, (sys.prefix, sys.base_prefix)))),
    )


async def _that_works(plain: Level, workspaces: Path | None, needs: tuple[Path, ...]) -> Level:
    """Where namespaces can be made and still do not serve, without them."""
    if plain.spaces != "none" and not await _fault(plain, workspaces):
        return plain
    plain = dataclasses.replace(plain, spaces="none")
    if plain.as_another_user and workspaces is not None:
        plain = await asyncio.to_thread(_within_reach, plain, workspaces, needs)
    return await _that_runs(plain, workspaces)


async def _that_runs(level: Level, workspaces: Path | None) -> Level:
    if fault := await _fault(level, workspaces):
        root = " The worker's Python must be one that other users can read; or run it as a user that is not root."
        raise SandboxMissing(wanted=level.name, why=f"{fault}.{root if level.uids else ''}")
    return level


def _within_reach(plain: Level, workspaces: Path, needs: tuple[Path, ...]) -> Level:
    found = made_readable(needs, workspaces)
    return dataclasses.replace(plain, found=found, reads=(*plain.reads, *found.values()))


def _users(uids: str) -> tuple[int, int] | None:
    """For commands of a root that can act on them. Raises ValueError with what is wrong."""
    if os.getuid() != 0:
        return None
    lacking = lacking_rights(Path("/proc/self/status").read_text(encoding="utf-8"))
    if lacking:
        raise ValueError(f"root lacks {', '.join(lacking)} here; give it these, or run the worker as another user")
    try:
        return read_range(uids)
    except ValueError as error:
        raise ValueError(f"HEADGATE_SANDBOX_UIDS: {error}") from error


def lacking_rights(status: str) -> list[str]:
    """Of those that it takes to have commands run as others, to look after them and to clear up behind them."""
    (has,) = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    return [f"CAP_{name}" for name, bit in RIGHTS.items() if not has >> bit & 1]


async def _probed() -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-B", "-c", _PROBE, stdout=asyncio.subprocess.PIPE, env={}, cwd="/"
    )
    said, _ = await process.communicate()
    return json.loads(said)


async def _fault(level: Level, workspaces: Path | None) -> str:
    """What goes wrong with it; empty where nothing does."""
    folder = await asyncio.to_thread(_folder, workspaces)
    sandbox = Sandbox(level, bounds=_TRIAL, workspace=folder / "workspace", area=folder / "area")
    try:
        command = SandboxCommand(argv=(sys.executable, "-I", "-c", f"print({SAYS!r})"), timeout_s=TRIAL_S)
        ran = await sandbox.run(command, on_line=lambda _: None)
    except CommandNotRun as error:
        return error.why
    except (SandboxError, OSError) as error:
        return str(error)
    finally:
        sandbox.close()
        await asyncio.to_thread(clear, folder)
    works = ran.exit_code == 0 and ran.output_tail.strip() == SAYS
    return "" if works else f"a command that was tried ended with {ran.exit_code}: {ran.output_tail.strip()[-500:]}"


def _folder(workspaces: Path | None) -> Path:
    if workspaces is not None:
        workspaces.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="headgate-trial-", dir=workspaces))
    make_passage(folder)
    (folder / "workspace").mkdir(mode=0o700)
    return folder

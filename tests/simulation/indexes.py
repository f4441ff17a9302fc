"""The index of jobs, in few seeds: its file is lost, torn or copied back under load, and a user's content is erased.

Only one replica has one: what it folds is the log, and the other would fold the same.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from libs.eventlog.history import History, MemoryScans
from libs.runtime.lifecycle import Loop, Service
from libs.twins.virtual import Process
from services.admission.changing import Changing
from services.admission.erasing import ContentStores, Erasing
from services.admission.indexing import Indexing
from tests.simulation.dice import Dice
from tests.simulation.plan import ADMISSIONS, PEACE_S, POLICY, USERS, Act, Fault
from tests.simulation.world import EPOCH, Machine, World

SHARE: Final = 0.05  # of the seeds: a transaction for each page of the log is dear
ERASED: Final = 0.6  # of those
FILES: Final = ("", "-wal", "-shm")
JOBS: Final = (
    "SELECT jobs.id, user, project, status, pipeline, pool, workflow, class, last, title"
    " FROM jobs JOIN words ON seq = words.rowid"
)


@dataclass(frozen=True, slots=True)
class IndexContent:
    """What a file holds at the end: how far it is folded, its jobs, and all its bytes."""

    applied: int
    jobs: dict[str, dict[str, Any]]
    content: bytes


def is_indexed(dice: Dice) -> bool:
    return dice.chance("index", SHARE)


def faults_of_file(dice: Dice) -> tuple[Fault, ...]:
    return tuple(_fault(dice) for _ in range(dice.whole("index", 0, 3)))


def erasures(dice: Dice) -> tuple[Act, ...]:
    if not dice.chance("erased", ERASED):
        return ()
    return (Act(kind="erase", at_s=dice.between("erased", 8.0, 40.0), what=dice.one_of("erased", tuple(USERS))),)


def _fault(dice: Dice) -> Fault:
    what = dice.one_of("index fault", ("gone", "torn", "copied"))
    at_s, for_s = dice.between("index fault", 2.0, PEACE_S - 12), dice.between("index fault", 0.3, 10.0)
    return Fault(kind="file", at_s=at_s, for_s=for_s, who=ADMISSIONS[0], server=what)


# ── at its replica ────────────────────────────────────────────────────────────


async def start_index(world: World, service: Service, machine: Machine, process: Process) -> None:
    log, titles = world.log(machine, process), world.bucket(process, world.titles)
    index = Indexing(index_path(world), cast("Any", log), titles, epoch=EPOCH, clock=machine.clock)
    world.indexes.append(index)
    service.closing("the index", index.close)
    await service.start(Loop("index", index.run))


def index_path(world: World) -> Path:
    return world.folder / "jobs.sqlite3"


def is_whole(world: World) -> bool:
    """Whether the last index has come to the end of the log; or there is none."""
    return not world.indexes or world.indexes[-1].progress.applied == world.server.last_seq


def erasing(world: World, process: Process, changing: Changing, ids: Any) -> Erasing:
    def bucket(twin: object) -> Any:
        return world.bucket(process, twin)

    return Erasing(
        History(MemoryScans(world.server)),
        changing.log,
        changing,
        ContentStores(
            inputs=bucket(world.inputs),
            titles=bucket(world.titles),
            progress=bucket(world.progress),
            buckets=(bucket(world.results), bucket(world.workspaces)),
            lines=cast("Any", world.lines),
        ),
        POLICY,
        changing.clock,
        ids,
    )


# ── its file ──────────────────────────────────────────────────────────────────


def damage(path: Path, what: str) -> Path | None:
    """The copy that is to be put back, if one is."""
    if not path.exists():
        return None
    match what:
        case "gone":
            _remove(path)
        case "torn":
            with path.open("r+b") as file:
                file.truncate(path.stat().st_size // 2)
        case _:
            copy = path.with_suffix(".copy")
            for end, part in _parts(path):
                shutil.copyfile(part, f"{copy}{end}")
            return copy
    return None


def put_back(path: Path, copy: Path) -> None:
    _remove(path)
    for end, part in _parts(copy):
        part.replace(f"{path}{end}")


def content_of(path: Path) -> IndexContent | None:
    """As anybody reads it who knows SQLite; null where there is none."""
    if not path.exists():
        return None
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        [(applied,)] = db.execute("SELECT value FROM meta WHERE name='applied'").fetchall()
        cursor = db.execute(JOBS)
        names = [column[0] for column in cursor.description]
        jobs = {row[0]: dict(zip(names, row, strict=True)) for row in cursor}
    return IndexContent(int(applied), jobs, b"".join(part.read_bytes() for _, part in _parts(path)))


def _parts(path: Path) -> list[tuple[str, Path]]:
    """Those of its files that are there."""
    return [(end, part) for end in FILES if (part := Path(f"{path}{end}")).exists()]


def _remove(path: Path) -> None:
    for _, part in _parts(path):
        part.unlink()

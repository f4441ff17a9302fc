"""What every build is made of, on a machine where set-up has brought none of it: fetched once, into the state folder.

    HEADGATE_WHEELS      a folder of the user's, who answers for what is in it
    beside our Python    where `make setup` puts them
    <state>/wheels       else: what the lock of the toolchain names for this machine, each file by its hash

Owns the choice of files and their way into the folder: there with the right hash, or not there. Where they cannot be
fetched, builds still run: the worker asks the index each time.
"""

import asyncio
import hashlib
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import httpx2
from packaging.markers import Marker
from packaging.tags import Tag, sys_tags
from packaging.utils import parse_wheel_filename

from libs.local.errors import WheelsNotFetched

VARIABLE: Final = "HEADGATE_WHEELS"
WITHIN_S: Final = 30.0  # for each answer and each pause in it
PART: Final = ".part"
# Whatever the mask is: commands of jobs may be another user's. Nobody else gets through the state folder.
FOLDER_MODE: Final = 0o755
FILE_MODE: Final = 0o644


@dataclass(frozen=True, slots=True)
class LockedWheel:
    """A file that the lock names."""

    url: str
    sha256: str

    @property
    def name(self) -> str:
        return unquote(urlsplit(self.url).path.rpartition("/")[2])


async def equipment(environ: Mapping[str, str], folder: Path, *, say: Callable[[str], None]) -> dict[str, str]:
    """What workers are told beside what the shell tells them. Fetches into the folder where nothing is at hand."""
    if wheels_at_hand(environ) is not None:
        return {}
    try:
        await keep_wheels(folder, wheels_of_this_machine())
    except WheelsNotFetched as fault:
        say(str(fault))
        return {}
    return {VARIABLE: str(folder)}


def wheels_at_hand(environ: Mapping[str, str], *, prefix: str | None = None) -> Path | None:
    """A folder that is there without our doing; null where there is none."""
    if named := environ.get(VARIABLE):
        return Path(named)
    beside = Path(prefix or sys.prefix) / "wheels"
    return beside if beside.is_dir() else None


def wheels_of_this_machine() -> list[LockedWheel]:
    """By the list that a package starts with. It is the worker's, and read as a file: no service is loaded."""
    lock = files("services").joinpath("worker", "build", "toolchain", "uv.lock")
    return chosen(lock.read_text(encoding="utf-8"), sys_tags())


def chosen(lock: str, tags: Iterable[Tag]) -> list[LockedWheel]:
    """Of each package that is needed here the wheel that fits best."""
    packages: dict[str, Any] = {package["name"]: package for package in tomllib.loads(lock)["package"]}
    ranks = {tag: rank for rank, tag in enumerate(tags)}
    [project] = [name for name, package in packages.items() if "registry" not in package["source"]]
    needed = _needed(project, packages, known=frozenset())
    return [_best(packages[name]["wheels"], ranks) for name in sorted(needed - {project})]


async def keep_wheels(folder: Path, wheels: Iterable[LockedWheel]) -> None:
    """The folder holds these and nothing else; what is there already is not fetched again. Raises WheelsNotFetched."""
    missing = await asyncio.to_thread(_missing, folder, {wheel.name: wheel for wheel in wheels})
    if not missing:
        return
    try:
        async with httpx2.AsyncClient(timeout=WITHIN_S) as client:
            contents = await asyncio.gather(*(_fetched(client, wheel) for wheel in missing))
    except httpx2.HTTPError as error:
        raise WheelsNotFetched(reason=str(error) or type(error).__name__) from error
    for wheel, content in zip(missing, contents, strict=True):
        await asyncio.to_thread(_write, folder / wheel.name, content)


async def _fetched(client: httpx2.AsyncClient, wheel: LockedWheel) -> bytes:
    answer = (await client.get(wheel.url)).raise_for_status()
    if hashlib.sha256(answer.content).hexdigest() != wheel.sha256:
        raise WheelsNotFetched(reason=f"{wheel.url} is not the file that was locked: its hash is another")
    return answer.content


def _missing(folder: Path, wanted: Mapping[str, LockedWheel]) -> list[LockedWheel]:
    """What is not there yet, after everything else is gone: an older list's, and what was written in part."""
    folder.mkdir(exist_ok=True)
    folder.chmod(FOLDER_MODE)
    there = {path.name: path for path in folder.iterdir()}
    for name in there.keys() - wanted.keys():
        there[name].unlink()
    return [wheel for name, wheel in wanted.items() if name not in there]


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f"{path.name}{PART}")
    part.write_bytes(content)
    part.chmod(FILE_MODE)
    part.replace(path)


def _needed(name: str, packages: Mapping[str, Any], *, known: frozenset[str]) -> frozenset[str]:
    """It, and what it and its groups ask for on this machine."""
    package, known = packages[name], known | {name}
    asked = [*package.get("dependencies", []), *chain(*package.get("dev-dependencies", {}).values())]
    for each in asked:
        if each["name"] not in known and ("marker" not in each or Marker(each["marker"]).evaluate()):
            known = _needed(each["name"], packages, known=known)
    return known


def _best(wheels: Iterable[Mapping[str, str]], ranks: Mapping[Tag, int]) -> LockedWheel:
    """A test holds that there is one for every machine that is promised."""
    named = [LockedWheel(each["url"], each["hash"].removeprefix("sha256:")) for each in wheels]
    return min(named, key=lambda wheel: min(ranks.get(tag, len(ranks)) for tag in parse_wheel_filename(wheel.name)[3]))

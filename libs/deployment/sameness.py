"""Whether two builds of an image hold the same, file by file: bytes, owners, modes and links. When a file was written
is left out: that is the builder's to say, and only some can be told (BuildKit by `rewrite-timestamp`)."""

import hashlib
import subprocess
import tarfile
from collections.abc import Mapping
from typing import IO

BuiltFiles = Mapping[str, tuple[object, ...]]


def differences(one: BuiltFiles, other: BuiltFiles) -> list[str]:
    """The paths that only one has, or that are not the same in both."""
    return sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


def contents_of(tar: IO[bytes]) -> BuiltFiles:
    """By path."""
    found = dict[str, tuple[object, ...]]()
    with tarfile.open(fileobj=tar, mode="r|") as files:
        for each in files:
            read = files.extractfile(each) if each.isreg() else None
            inside = hashlib.sha256(read.read()).hexdigest() if read else each.linkname
            found[each.name] = (each.type, each.mode, each.uid, each.gid, inside)
    return found


def exported(image: str) -> BuiltFiles:
    """Of an image that Docker has."""
    container = subprocess.run(  # noqa: S603 - our own words
        ["docker", "create", image],  # noqa: S607 - whichever is there
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.strip()
    try:
        with subprocess.Popen(  # noqa: S603 - our own words
            ["docker", "export", container],  # noqa: S607 - whichever is there
            stdout=subprocess.PIPE,
        ) as export:
            assert export.stdout is not None
            return contents_of(export.stdout)
    finally:
        subprocess.run(["docker", "rm", container], check=True, stdout=subprocess.DEVNULL)  # noqa: S603, S607

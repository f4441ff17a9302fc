"""Where in a file a key stands, so that what is wrong with it is found at once."""

import tomllib
from collections.abc import Iterator
from typing import Any, cast

from libs.policy.errors import key_path

Path = tuple[str, ...]


def line_of(text: str, key: str) -> int | None:
    """The line of the key, or of the innermost table around it that the file has; null where it has none of them."""
    best: tuple[int, int] | None = None
    for number, path in _headings(text):
        shown = key_path(*path)
        if (key == shown or key.startswith(f"{shown}.")) and (best is None or len(path) > best[0]):
            best = len(path), number
    return best and best[1]


def _headings(text: str) -> Iterator[tuple[int, Path]]:
    """Each line that opens a table or names a key, with its whole path."""
    table: Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        if bare.startswith("["):
            path = _path_in(bare)
            if path:
                table = path
                yield number, table
        elif path := _path_in(f"{bare.partition('=')[0]} = 0"):
            yield number, (*table, *path)


def _path_in(line: str) -> Path:
    """The path that this one line names; nothing where it is no TOML by itself."""
    try:
        found: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    path = list[str]()
    while isinstance(found, dict) and found:
        name, found = next(iter(cast("dict[str, Any]", found).items()))
        path.append(name)
    return tuple(path)

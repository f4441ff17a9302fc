"""The view's Lua: files made into scripts, and the rights that these need on a server.

A verb is a file of the folder `lua`, `reserve_v1.lua`; old and new versions stand side by side. In verbs and pieces:

    -- include: head.lua    puts the piece of `lua/shared` here as it is
    -- use: leases          makes `leases` a table of what `lua/shared/leases.lua` defines, and before it what that uses

A used piece runs when it is first touched: making all functions of all pieces costs more than most calls take. The
keys that a script names are checked against `keys.py`. Refuses to know what a verb means, and loads no client: who
starts servers asks for the rights alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from types import MappingProxyType
from typing import Final

from libs.capacity.errors import ViewMisused
from libs.capacity.keys import check_names, every_key

FOLDER: Final = Path(__file__).parent / "lua"
PIECES: Final = FOLDER / "shared"
_PIECE: Final = re.compile(r"^-- (include|use): (\S+)\n", re.MULTILINE)
_KEY: Final = re.compile(r"\bkey\('(\w+)'(,?)")
_CALL: Final = re.compile(r"redis\.call\('(\w+)'")
# What the store says itself, beside the commands that its scripts call.
STORE_COMMANDS: Final = frozenset({"evalsha", "script|load", "hmget", "hget", "scan", "unlink", "getdel", "ping"})


@dataclass(frozen=True, slots=True)
class Script:
    """A verb, whole."""

    name: str
    text: str
    sha: str

    @property
    def commands(self) -> frozenset[str]:
        """What it calls, in the server's words."""
        return frozenset(command.lower() for command in _CALL.findall(self.text))


def load_scripts(folder: Path = FOLDER, *, pieces: Path = PIECES) -> Mapping[str, Script]:
    """Every verb of the folder, by its name with its version."""
    return MappingProxyType({path.stem: _load(path, pieces) for path in sorted(folder.glob("*.lua"))})


def _load(path: Path, pieces: Path) -> Script:
    body = _with_pieces(path.read_text(encoding="utf-8"), pieces, set())
    names = [(name, bool(comma)) for name, comma in _KEY.findall(body)]
    check_names(names)
    heads = [("key.lua", bool(names)), ("piece.lua", " = piece(" in body)]
    text = "".join([*(_read(pieces / head) for head, is_needed in heads if is_needed), body])
    return Script(path.stem, text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def _with_pieces(text: str, pieces: Path, known: set[str]) -> str:
    """The text with each piece in it once. What a used piece uses itself is put in front of it."""

    def piece(line: re.Match[str]) -> str:
        kind, name = line[1], line[2]
        if name in known:
            return ""
        known.add(name)
        if kind == "include":
            return _with_pieces(_read(pieces / name), pieces, known)
        body = _read(pieces / f"{name}.lua")
        needed = "".join(line[0] for line in _PIECE.finditer(body))
        return (
            f"{_with_pieces(needed, pieces, known)}local {name} = piece(function({name})\n{_PIECE.sub('', body)}end)\n"
        )

    return _PIECE.sub(piece, text)


def _read(path: Path) -> str:
    if not path.is_file():
        raise ViewMisused(f"{path} is asked for by a script and not there")
    return path.read_text(encoding="utf-8")


def access_rules(shard: str) -> str:
    """The rules of a Valkey user that may speak to one shard's view: its keys, and the commands that its scripts call.

    Which script a user runs cannot be told apart there, so all services of a shard have the same rights.
    """
    commands = STORE_COMMANDS.union(*(script.commands for script in load_scripts().values()))
    return f"~{every_key(shard)} resetchannels -@all {' '.join(f'+{command}' for command in sorted(commands))}"

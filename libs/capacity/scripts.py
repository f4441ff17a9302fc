"""The view's Lua: files made into scripts, and scripts run on a server.

A verb is a file of the folder `lua`, `reserve_v1.lua`; old and new versions stand side by side. In verbs and pieces:

    -- include: head.lua    puts the piece of `lua/shared` here as it is
    -- use: leases          makes `leases` a table of what `lua/shared/leases.lua` defines, and before it what that uses

A used piece runs when it is first touched: making all functions of all pieces costs more than most calls take. The
keys that a script names are checked against `keys.py`. Refuses to know what a verb means.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from libs.capacity.errors import ViewMisused
from libs.capacity.keys import check_names
from libs.capacity.store_errors import translate, translated

FOLDER: Final = Path(__file__).parent / "lua"
PIECES: Final = FOLDER / "shared"
_PIECE: Final = re.compile(r"^-- (include|use): (\S+)\n", re.MULTILINE)
_KEY: Final = re.compile(r"\bkey\('(\w+)'(,?)")
_CALL: Final = re.compile(r"redis\.call\('(\w+)'")

Arg = str | int
Reply = Any  # nested lists of str, int and null, as the verb's header says


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


class ScriptRunner:
    """Runs verbs on one shard's view. A server that has forgotten a script is given it again."""

    def __init__(self, client: Redis, *, view: str, scripts: Mapping[str, Script] | None = None) -> None:
        self._client = client
        self._view = view
        self._scripts = load_scripts() if scripts is None else scripts

    async def run(self, name: str, *args: Arg) -> Reply:
        script = self._scripts[name]
        with translated():
            try:
                return await self._call(script, args)
            except NoScriptError:
                await self._give(script)
                return await self._call(script, args)

    async def run_all(self, name: str, calls: Sequence[Sequence[Arg]]) -> list[Reply]:
        """One after the other, without waiting for an answer in between."""
        script, replies = self._scripts[name], list[Reply]()
        with translated():
            replies = await self._send(script, calls)
            done = next((at for at, reply in enumerate(replies) if isinstance(reply, NoScriptError)), len(calls))
            if done < len(calls):
                await self._give(script)
                replies[done:] = await self._send(script, calls[done:])
        for error in _errors(replies):
            raise translate(error) from error
        return replies

    async def _call(self, script: Script, args: Sequence[Arg]) -> Reply:
        return await cast(Any, self._client).evalsha(script.sha, 1, self._view, *args)

    async def _send(self, script: Script, calls: Sequence[Sequence[Arg]]) -> list[Reply]:
        pipeline = cast(Any, self._client).pipeline(transaction=False)
        for args in calls:
            pipeline.execute_command("EVALSHA", script.sha, 1, self._view, *args)
        return await pipeline.execute(raise_on_error=False)

    async def _give(self, script: Script) -> None:
        await cast(Any, self._client).script_load(script.text)


def _errors(replies: Sequence[Reply]) -> Iterator[Exception]:
    return (reply for reply in replies if isinstance(reply, Exception))

"""The view's scripts, run on a server. What they are made of is in `lua_files`.

    run ─┐
    run ─┼─ in two turns of the event loop ─► one round trip ─► an answer each
    run ─┘

To send costs more than most scripts do, so what is asked together travels together. Each has its own answer or refusal.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from libs.capacity.lua_files import Script, load_scripts
from libs.capacity.store_errors import translate, translated

Arg = str | int
Reply = Any  # nested lists of str, int and null, as the verb's header says
ScriptCall = tuple[Script, Sequence[Arg]]
TOGETHER: Final = 100  # scripts in one round trip: some milliseconds, in which nobody else has a turn at the server


class ScriptRunner:
    """Runs verbs on one shard's view. A server that has forgotten a script is given it again."""

    def __init__(self, client: Redis, *, view: str, scripts: Mapping[str, Script] | None = None) -> None:
        self._client = client
        self._view = view
        self._scripts = load_scripts() if scripts is None else scripts
        self._gathering: tuple[list[ScriptCall], asyncio.Task[list[Reply]]] | None = None  # what is about to be sent

    async def run(self, name: str, *args: Arg) -> Reply:
        calls, asked = self._gathering or self._gather()
        calls.append((self._scripts[name], args))
        number = len(calls) - 1
        if len(calls) == TOGETHER:
            self._gathering = None
        with translated():
            await asyncio.wait((asked,))  # others ask with it: who is cancelled ends nothing
            reply = asked.result()[number]
            if isinstance(reply, Exception):
                raise reply
            return reply

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

    def _gather(self) -> tuple[list[ScriptCall], asyncio.Task[list[Reply]]]:
        calls = list[ScriptCall]()
        asked = asyncio.create_task(self._ask(calls))
        asked.add_done_callback(_heard)
        self._gathering = calls, asked
        return self._gathering

    async def _ask(self, calls: list[ScriptCall]) -> list[Reply]:
        """All that was gathered in two turns, as askers gather too. What the server has forgotten is asked again."""
        await asyncio.sleep(0)
        if self._gathering is not None and self._gathering[0] is calls:
            self._gathering = None
        replies = await self._sent(calls)
        forgotten = [number for number, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if forgotten:
            again = [calls[number] for number in forgotten]
            for script in {script.sha: script for script, _ in again}.values():
                await self._give(script)
            for number, reply in zip(forgotten, await self._sent(again), strict=True):
                replies[number] = reply
        return replies

    async def _send(self, script: Script, calls: Sequence[Sequence[Arg]]) -> list[Reply]:
        return await self._sent([(script, args) for args in calls])

    async def _sent(self, calls: Sequence[ScriptCall]) -> list[Reply]:
        pipeline = cast(Any, self._client).pipeline(transaction=False)
        for script, args in calls:
            pipeline.execute_command("EVALSHA", script.sha, 1, self._view, *args)
        return await pipeline.execute(raise_on_error=False)

    async def _give(self, script: Script) -> None:
        await cast(Any, self._client).script_load(script.text)


def _heard(asked: asyncio.Task[list[Reply]]) -> None:
    """Each asker that still waits has its fault from here; where all were cancelled, it is nobody's and no error."""
    if not asked.cancelled():
        asked.exception()


def _errors(replies: Sequence[Reply]) -> Iterator[Exception]:
    return (reply for reply in replies if isinstance(reply, Exception))

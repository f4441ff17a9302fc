"""The view's scripts, run on a server. What they are made of is in `lua_files`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from libs.capacity.lua_files import Script, load_scripts
from libs.capacity.store_errors import translate, translated

Arg = str | int
Reply = Any  # nested lists of str, int and null, as the verb's header says


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

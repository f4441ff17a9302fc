"""Throwing the view away on purpose: the leader folds it again from the log.

Owns that one act, for operators. What the lost life held is swept away later, by the cleaner of the new one.
"""

from typing import Any, cast

from redis.asyncio import Redis

from libs.capacity.answers import ViewMark
from libs.capacity.keys import view_key
from libs.capacity.store import RedisView
from libs.capacity.store_errors import translated


async def view_state(client: Redis, *, shard: str) -> ViewMark | None:
    """How far the view is; null while there is none."""
    return await RedisView(client, shard=shard, epoch="").mark()


async def drop_view(client: Redis, *, shard: str) -> str | None:
    """The name of the life that ended; null where there was none."""
    before = await view_state(client, shard=shard)
    with translated():
        await cast(Any, client).delete(view_key(shard))
    return before.generation if before else None

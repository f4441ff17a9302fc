"""The view's store, for the services that ask it: those that do not never load its client."""

from functools import partial

from libs.capacity.errors import ViewUnavailable
from libs.capacity.store import RedisView
from libs.capacity.store_client import open_client
from libs.eventlog import LogUnavailable, Mark, require_seen
from libs.foundation.ground import LOG, VIEW, Ground, S
from libs.runtime.connect import wait_for
from libs.runtime.lifecycle import Service


async def open_view(ground: Ground[S], service: Service, *, answer_s: float = 5) -> RedisView:
    """The view, once its store answers. Whether the view itself is open is asked with each question."""
    settings = ground.settings
    client = open_client(settings.redis_url.get_secret_value(), answer_s=answer_s, authorities=settings.ca_file)
    service.closing(VIEW, client.aclose)
    view = RedisView(client, shard=settings.shard, epoch=ground.log.epoch)
    service.closing("the view", view.close)
    waited = partial(wait_for, health=ground.health, clock=ground.clock)
    seen = await waited(VIEW, view.mark, away=(ViewUnavailable,))
    if seen is not None:  # the view remembers how far the log went: it must not have gone back, or be another one
        await waited(LOG, lambda: require_seen(ground.nc, Mark(seen.epoch, seen.applied)), away=(LogUnavailable,))
    return view

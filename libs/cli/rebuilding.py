"""`headgate rebuild`: throw the view away, and wait until the schedulers have folded it again from the log.

Nothing is lost by it: the log is the truth. Until the view is there again submissions are answered with 503.
"""

import asyncio
import os
import time
from argparse import Namespace
from typing import Final

from libs.capacity.rebuilding import drop_view, view_state
from libs.capacity.store_client import open_client
from libs.cli.errors import Failed
from libs.cli.output import Output
from libs.cli.reporting import reported
from libs.cli.target import running_here
from libs.runtime.tls import authorities_in

REDIS_URL: Final = "HEADGATE_REDIS_URL"
SHARD: Final = "HEADGATE_SHARD"
LOOK_EVERY_S: Final = 0.2


def rebuild(args: Namespace, out: Output) -> int:
    """Drop it, wait, and say how long it took."""
    with reported():
        took_s, applied = asyncio.run(_rebuilt(out, within_s=args.within))
    out.data({"applied": applied, "seconds": round(took_s, 3)})
    out.say(f"The view is there again, folded up to record {applied} of the log, after {took_s:.1f} s.")
    return 0


async def _rebuilt(out: Output, *, within_s: float) -> tuple[float, int]:
    url = os.environ.get(REDIS_URL) or running_here(instead=REDIS_URL).redis_url
    shard = os.environ.get(SHARD, "main")
    client = open_client(url, authorities=authorities_in(os.environ))
    began = time.monotonic()
    try:
        before = await drop_view(client, shard=shard)
        while time.monotonic() - began < within_s:
            now = await view_state(client, shard=shard)
            if now is not None and now.open and now.generation != before:
                return time.monotonic() - began, now.applied
            out.say(f"folded up to record {now.applied} …" if now else "no scheduler has begun yet …", style="dim")
            await asyncio.sleep(LOOK_EVERY_S)
    finally:
        await client.aclose()
    raise Failed(
        reason=f"The view is not there after {within_s:g} s. See that a scheduler runs, and what its log says."
    )

"""How a service comes to the view's server: the client's options. The rights it needs there are in `lua_files`.

Makes a client only when asked: the composition root's business.
"""

from pathlib import Path
from typing import Any, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import ConnectionError as Unconnected


def open_client(url: str, *, connections: int = 50, answer_s: float = 5, authorities: Path | None = None) -> Redis:
    """A client for `RedisView`. Every question may be asked twice, so what was lost with its connection is asked again,
    a few times. A server that says nothing for `answer_s` is gone, and is not asked again: that would take as long.
    With `authorities` it is by TLS, whatever the URL says."""
    pool = cast(Any, BlockingConnectionPool).from_url(
        url if authorities is None else f"rediss://{url.partition('://')[2]}",
        **_secured(authorities),
        max_connections=connections,  # more callers than this wait for one, instead of failing
        timeout=answer_s,  # for a connection of the pool; then the view is unavailable
        socket_timeout=answer_s,  # a script takes a millisecond
        socket_connect_timeout=min(2, answer_s),
        health_check_interval=15,  # s; an idle connection may have been cut by what lies between
        retry=Retry(  # about a second of a restarting server
            ExponentialWithJitterBackoff(base=0.02, cap=0.5), retries=3, supported_errors=(Unconnected,)
        ),
        decode_responses=True,
        protocol=2,  # answers are lists, strings and integers, so no HELLO is needed
    )
    return Redis.from_pool(pool)


def _secured(authorities: Path | None) -> dict[str, Any]:
    if authorities is None:
        return {}
    return {"ssl_ca_certs": str(authorities), "ssl_cert_reqs": "required", "ssl_check_hostname": True}

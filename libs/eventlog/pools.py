"""The consumers of pools: one for each, shared by all workers of it.

Owns their names and settings. They are made by `migrate` alone: workers may pull from the one of their pool and look at
it, so that no worker can make it deliver elsewhere, forget, or filter something else.
"""

from collections.abc import Mapping
from typing import Any, Final

from headgate_contracts import EventName, consumer_filter
from headgate_contracts.tokens import check_token
from libs.eventlog.streams import SECOND_NS

ACK_WITHIN_S: Final = 15.0  # from its delivery to its claim; then it is another's
MAX_WAITING: Final = 4096  # open requests of all who share a consumer; one for each worker
SHARED: Final[Mapping[str, Any]] = {
    # What was there before the consumer is nobody's any more: a dispatch's lease ends, and it is given back.
    "deliver_policy": "new",
    "ack_policy": "explicit",
    "max_waiting": MAX_WAITING,
    "max_ack_pending": -1,
}


def pool_consumer(pool: str) -> str:
    """Its name, which stands in the users' rights too."""
    return f"worker-{check_token('pool', pool)}"


def pool_settings(pool: str) -> dict[str, Any]:
    """In the server's own words."""
    return {
        "durable_name": pool_consumer(pool),
        **SHARED,
        "filter_subject": consumer_filter(event=EventName.DISPATCHED, pool=pool),
        "ack_wait": round(ACK_WITHIN_S * SECOND_NS),
        "max_deliver": -1,
    }

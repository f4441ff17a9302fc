"""Slots that blocks of the test hold: extended as time passes here.

A block extends its slot by the machine's clock, and time here is quicker: ten minutes may pass before it is heard. So
what is held is extended by the same request as that time passes, until the block says that it is over. A lease that was
taken by hand is extended by hand.
"""

import asyncio
import json
from dataclasses import dataclass, field, replace

from starlette.types import ASGIApp

from libs.policy import Policy
from libs.twins.exchange import Exchange, TwinRequest


@dataclass(slots=True)
class HeldSlots:
    """`leases`: those that blocks hold or wait for, from before they ask until they have given them back."""

    policy: Policy
    leases: set[str] = field(default_factory=set[str])
    _extended: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])

    def extend_what_is_taken(self, app: ASGIApp, asked: TwinRequest) -> None:
        """From now on, where this request takes a slot for a block."""
        if not asked.takes_slot:
            return
        body = json.loads(asked.content)
        lease = str(body.get("lease"))
        if lease in self.leases and lease not in self._extended:
            longest_s = self.policy.concurrency.longest_lease_ms / 1000
            every_s = min(longest_s, body.get("ttl_s") or longest_s) / 3
            extension = _extension_of(asked, lease, {name: body[name] for name in ("ttl_s", "limit") if name in body})
            self._extended[lease] = asyncio.create_task(self._extend(app, extension, lease, every_s), name=lease)

    async def _extend(self, app: ASGIApp, extension: TwinRequest, lease: str, every_s: float) -> None:
        """One that still waits in line, or that an operator has freed, is not held: 404, and nothing is changed."""
        while lease in self.leases:
            await asyncio.sleep(every_s)
            if lease in self.leases:
                exchange = Exchange(app, extension)
                await exchange.begun()
                await exchange.hang_up()
        del self._extended[lease]


def _extension_of(asked: TwinRequest, lease: str, body: dict[str, object]) -> TwinRequest:
    content = json.dumps(body).encode()
    headers = [(name, value) for name, value in asked.headers if name.lower() != b"content-length"]
    headers.append((b"content-length", str(len(content)).encode()))
    return replace(asked, method="PATCH", target=asked.target + b"/" + lease.encode(), headers=headers, content=content)

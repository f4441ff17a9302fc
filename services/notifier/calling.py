"""One call to a receiver, to an address that was looked at.

    host ──look up──► addresses ──may all be called?──► connect to one of them, as the host: Host, SNI, certificate

What was looked at is what is connected to: nothing asks for the name a second time, no proxy of the environment and no
redirect leads elsewhere, and no connection is kept for another host that happens to have the same address.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import httpx2

from libs.policy import Webhooks
from services.notifier.addresses import may_be_called
from services.notifier.errors import AddressRefused

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it is made."""

    url: str
    body: bytes
    headers: Mapping[str, str]


async def resolved(host: str, port: int) -> list[str]:
    """All addresses that this machine knows for it, the best first. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def client(timeout_s: float, *, verify: ssl.SSLContext | bool = True) -> httpx2.AsyncClient:
    """For calls alone: to share it with others is to share their connections too."""
    return httpx2.AsyncClient(
        verify=verify,
        timeout=timeout_s,
        follow_redirects=False,
        trust_env=False,
        limits=httpx2.Limits(max_keepalive_connections=0),
    )


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls a receiver over `http`, which is a `client`."""

    http: httpx2.AsyncClient
    rules: Webhooks
    resolve: Resolve = resolved

    async def status_of(self, call: Call) -> int:
        """What it is answered with; nothing of the body is read: it may have no end. Raises OSError, AddressRefused and
        httpx2.HTTPError."""
        url = httpx2.URL(call.url)
        addresses = await self._addresses(url)
        for address in addresses[:-1]:
            try:
                return await self._answer(call, url, at=address)
            except httpx2.ConnectError:
                continue  # as with a machine that has an address of IPv6 and no way there
        return await self._answer(call, url, at=addresses[-1])

    async def _addresses(self, url: httpx2.URL) -> Sequence[str]:
        internal = self.rules.is_internal(str(url))
        addresses = await self.resolve(url.host, url.port or PORTS[url.scheme])
        refused = [address for address in addresses if not may_be_called(address, internal=internal)]
        if refused or not addresses:
            raise AddressRefused(host=url.host, address=", ".join(refused) or "no address")
        return addresses

    async def _answer(self, call: Call, url: httpx2.URL, *, at: str) -> int:
        headers = {**call.headers, "Host": url.netloc.decode("ascii")}
        sent = self.http.stream(
            "POST",
            url.copy_with(host=at),
            content=call.body,
            headers=headers,
            extensions={"sni_hostname": url.host},
        )
        async with sent as answer:
            return answer.status_code

"""Where a webhook may go: an address on the internet, or one of our own network for a host that policy says is there.

    a host that policy lists ──► every address it has now ──► all of them may be called: the first that answers is
                                                         └──► one may not be: none is, as a name that leads to us once
                                                              may be meant to

An address that stands for another one (IPv4-mapped, NAT64) is as good as that; one that is carried by another's tunnel
(6to4, ISATAP) has to lead through the internet. Owns the lists, from the
registries of special addresses of IANA: those of Python's `ipaddress` differ from version to version. Nobody may ever
be led to what configures machines, whatever policy says.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address


def _networks(*texts: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(text) for text in texts)


OUR_OWN: Final = _networks(
    *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "::1/128", "fc00::/7")
)
SPECIAL: Final = _networks(
    *("0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15"),
    *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    *("2001::/23", "2001:db8::/32", "3fff::/20"),
)
UNICAST: Final = ip_network("2000::/3")  # all of IPv6 that is given out
METADATA: Final = _networks("169.254.169.254/32", "100.100.100.200/32", "fd00:ec2::254/128", "168.63.129.16/32")
MAPPED: Final = ip_network("::ffff:0:0/96")
NAT64: Final = ip_network("64:ff9b::/96")
SIX_TO_FOUR: Final = ip_network("2002::/16")
ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)  # the upper half of what stands behind the network's part


def may_be_called(text: str, *, internal: bool) -> bool:
    """`internal`: policy says that the host is on a network of our own."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return getattr(address, "scope_id", None) is None and _is_allowed(address, internal=internal)


def _is_allowed(address: Address, *, internal: bool) -> bool:
    if isinstance(address, IPv6Address) and (address in MAPPED or address in NAT64):
        return _is_allowed(_last(address), internal=internal)
    if any(address in network for network in METADATA) or not all(
        _is_of_the_internet(it) for it in _tunnelled(address)
    ):
        return False
    return _is_of_the_internet(address) or (internal and any(address in network for network in OUR_OWN))


def _is_of_the_internet(address: Address) -> bool:
    special = any(address in network for network in (*OUR_OWN, *SPECIAL))
    return not special and (address.version == 4 or address in UNICAST)


def _tunnelled(address: Address) -> Iterator[IPv4Address]:
    """To whom a packet for it is carried on the way."""
    if isinstance(address, IPv6Address):
        if address in SIX_TO_FOUR:
            yield IPv4Address(int(address) >> 80 & 0xFFFF_FFFF)
        if int(address) >> 32 & 0xFFFF_FFFF in ISATAP:
            yield _last(address)


def _last(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFF_FFFF)

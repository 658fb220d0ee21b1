"""SSRF protection: approved pages are fetched from public network addresses only.

A name is resolved once per connection: the checked addresses are the ones connected to, and each is checked
again when its socket is created, which also covers numeric hosts. So neither a redirect nor DNS rebinding
(OWASP, SSRF Prevention Cheat Sheet) reaches this machine, its network or a cloud's metadata service.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Global unicast IPv6; an address elsewhere is only public if the IPv4 address embedded in it is.
_UNICAST = ipaddress.ip_network("2000::/3")
# Protocol, relay, cloud metadata and documentation ranges that Python calls global.
_REFUSED = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "3fff::/20"))
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ForbiddenAddress(OSError):
    """The host's address is not public."""


def _embedded(address: Address) -> Address:
    """Return the IPv4 address embedded in an IPv6 one, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


def require_public(host: str, *, loopback: bool) -> None:
    """Refuse an address that is not public.

    Args:
        host: numeric address.
        loopback: also accept this machine's own, for test servers.

    Raises:
        ForbiddenAddress: it is private, link-local, a metadata service's, or not an address.
    """
    try:
        address = _embedded(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        raise ForbiddenAddress("the host has no address") from None
    if address.is_loopback and loopback:
        return
    is_host = address.version == 4 or address in _UNICAST
    is_public = is_host and address.is_global and not address.is_multicast
    if not is_public or any(address in network for network in _REFUSED):
        raise ForbiddenAddress("the address is not a public one")


class PublicResolver(AbstractResolver):
    """Resolver of public addresses; a name with any other address is refused."""

    def __init__(self, resolver: AbstractResolver | None = None, *, loopback: bool = False) -> None:
        """Use ``resolver``, by default the system's; ``loopback`` as in ``require_public``."""
        self._resolver = resolver or ThreadedResolver()
        self._loopback = loopback

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a host.

        Raises:
            ForbiddenAddress: one of them is not public.
            OSError: the host has no address.
        """
        found = await self._resolver.resolve(host, port, family)
        for one in found:
            require_public(one["host"], loopback=self._loopback)
        return found

    async def close(self) -> None:
        """Close the underlying resolver."""
        await self._resolver.close()

    def connect(self, address: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket.socket:
        """Create the socket of a connection, after a check of its address.

        Raises:
            ForbiddenAddress: the address is not public.
        """
        family, kind, protocol, _, place = address
        require_public(str(place[0]), loopback=self._loopback)
        return socket.socket(family, kind, protocol)

"""Whether a host or an address is this very machine, which nobody else's network reaches."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback_host(host: str | None) -> bool:
    """True if a host name or address, in lower case and without port or brackets, is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def is_of_this_machine(url: str) -> bool:
    """True if an address leads to this machine."""
    return is_loopback_host(urlsplit(url).hostname)

"""Whether a host is this very machine: what the console and the Teams development switch trust."""

from __future__ import annotations

import ipaddress


def is_loopback_host(host: str | None) -> bool:
    """Whether a host name or address, in lower case and without port or brackets, is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False

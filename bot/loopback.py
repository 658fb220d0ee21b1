"""Loopback checks of hosts and URLs."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback_host(host: str | None) -> bool:
    """True if a host name or address, in lower case and without port or brackets, is loopback."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def is_loopback_url(url: str) -> bool:
    """True if a URL's host is loopback."""
    return is_loopback_host(urlsplit(url).hostname)

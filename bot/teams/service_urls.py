"""Where a Teams reply may go: a service URL outside this list gets no request and no token."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from bot.core.loopback import is_loopback_host

ServiceUrlCheck = Callable[[str], bool]

_HOSTS = ("botframework.com", "smba.trafficmanager.net", "teams.microsoft.com", "teams.microsoft.us")


def is_microsofts(url: str) -> bool:
    """Whether a service URL is one of Microsoft's own connectors, over https."""
    host = _host(url, "https")
    return host is not None and any(host == known or host.endswith(f".{known}") for known in _HOSTS)


def is_local(url: str) -> bool:
    """Whether a service URL stays on this machine, as the Agents Playground's does."""
    host = _host(url, "http")
    return is_loopback_host(host)


def _host(url: str, scheme: str) -> str | None:
    """The host of a plain URL of this scheme: no user, no odd port with https, nothing after the path."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    is_plain = parts.scheme == scheme and not (parts.username or parts.password or parts.query)
    if not is_plain or "\\" in url or (scheme == "https" and port not in (None, 443)):
        return None
    return (parts.hostname or "").lower() or None

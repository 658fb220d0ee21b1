"""Checks of reachability: the local server, public URL, TLS certificate, and clock."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import urlsplit

import aiohttp

from bot.answers.citations.shared_keys import SharedKeyRing
from bot.answers.citations.signed_links import KeyRing, KeySource, Links
from bot.health.findings import Finding, fail, ok, warn
from bot.health.installation import Installation
from bot.platforms.registry import loopback_links_warning
from storage.clock import utc_now
from storage.errors import StorageError, docs_url
from storage.installations.link_keys import LinkKeyStore

REQUEST_SECONDS = 4.0
CERTIFICATE_WARN = timedelta(days=14)
# Chat platforms reject requests when clocks differ by five minutes.
CLOCK_WARN, CLOCK_FAIL = timedelta(seconds=30), timedelta(minutes=5)

TROUBLESHOOTING = docs_url("troubleshooting.md")
MACHINES_PAGE, PROXY_PAGE = docs_url("machines.md"), docs_url("proxy.md")
LINKS_PAGE = f"{TROUBLESHOOTING}#links-do-not-open"


async def check_serve(installation: Installation) -> Finding:
    """Check that the home's ``serve`` runs and is ready."""
    url = installation.server_url
    if url is None:
        text = "`footnote serve` is not running on this home"
        return warn(text, "start it", f"{TROUBLESHOOTING}#serve-is-not-running")
    docs = f"{TROUBLESHOOTING}#something-is-not-ready"
    try:
        async with _session() as session, session.get(f"{url}/readyz") as response:
            said = await response.json()
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return fail(f"{url} does not answer", "see the log of `footnote serve`, and restart it", docs)
    if missing := said.get("not_ready"):
        reasons = said.get("reasons") or {}
        told = "; ".join(f"{name}: {reasons[name]}" if name in reasons else str(name) for name in missing)
        return fail(f"{url} is not ready: {told}", "see the checks below", docs)
    return ok(f"{url} is ready")


async def check_public_url(installation: Installation) -> Finding:
    """Check that links open this installation: only a server with our keys recognises an expired link."""
    url, bot = installation.public_url, installation.settings.bot
    if url is None:
        return ok("the address of `footnote serve`, when it runs")
    if problem := loopback_links_warning(bot, url):
        return fail(problem, "set FOOTNOTE_PUBLIC_URL", LINKS_PAGE)
    try:
        keys = await _keys(installation)
    except (KeyError, OSError, TypeError, ValueError):
        text = f"{bot.link_keys} cannot be read, or is damaged"
        return fail(text, f"mount the file that the other machines have: {MACHINES_PAGE}", LINKS_PAGE)
    if keys is None:
        return warn("there are no link signing keys yet", "start `footnote serve`", LINKS_PAGE)
    return await _open_ended_link(url, keys, is_served=installation.server_url is not None)


async def _keys(installation: Installation) -> KeySource | None:
    """Return the running service's keys, None if there are none yet."""
    if (mounted := installation.settings.bot.link_keys) is not None:
        ring = KeyRing(mounted, is_ours=False)
        ring.keys()
        return ring
    database = await installation.database_for("link signing keys")
    store = LinkKeyStore(database) if database else None
    held = await store.keys() if store else []
    return SharedKeyRing(store, held) if store and held else None


async def _open_ended_link(url: str, keys: KeySource, *, is_served: bool) -> Finding:
    try:
        link = Links(keys, url, timedelta(), utc_now).ended_url()
        async with _session() as session, session.get(link, allow_redirects=False) as response:
            return _leads_here(url, response.status)
    except aiohttp.ClientConnectorCertificateError as error:
        text = f"{url}: {_tls_fault(error.certificate_error)}"
        return fail(text, "see the check tls", f"{TROUBLESHOOTING}#the-certificate-ends-soon")
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        text = f"{url} is not reachable from here: {type(error).__name__}"
        if not is_served:
            return warn(text, "start `footnote serve`", LINKS_PAGE)
        fix = f"point DNS, proxy and firewall to where `footnote serve` listens: {PROXY_PAGE}"
        return fail(text, fix, LINKS_PAGE)


def _leads_here(url: str, status: int) -> Finding:
    """Interpret the HTTP status returned for an expired link of ours."""
    if status == HTTPStatus.GONE:
        return ok(f"{url} leads to this installation")
    if status == HTTPStatus.NOT_FOUND:
        text = f"{url} leads to another installation, or /v/ is not forwarded"
        return fail(
            text, f"point it here, forward /v/, give replicas the same keys: {MACHINES_PAGE}", LINKS_PAGE
        )
    return fail(
        f"{url} answers links with status {status}", f"see what the proxy says: {PROXY_PAGE}", LINKS_PAGE
    )


async def check_certificate(installation: Installation) -> Finding:
    """Check that browsers trust the public URL's certificate, and when it expires."""
    url = urlsplit(installation.public_url or "")
    if url.scheme != "https":
        return ok("none: the public URL is not https")
    docs = f"{TROUBLESHOOTING}#the-certificate-ends-soon"
    try:
        ends = await _certificate_end(url.hostname or "", url.port or 443)
    except ssl.SSLError as error:
        return fail(_tls_fault(error), "give the proxy a certificate that browsers trust", docs)
    except (OSError, TimeoutError) as error:
        return fail(
            f"{url.hostname} is not reachable: {type(error).__name__}", "see the check public-url", LINKS_PAGE
        )
    left = ends - utc_now()
    text = f"the certificate ends on {ends.date()}, in {left.days} days"
    fix = "renew it, and check that automatic renewal works"
    return warn(text, fix, docs) if left < CERTIFICATE_WARN else ok(text)


async def _certificate_end(host: str, port: int) -> datetime:
    async with asyncio.timeout(REQUEST_SECONDS):
        _, writer = await asyncio.open_connection(host, port, ssl=ssl.create_default_context())
    held = writer.get_extra_info("peercert")
    writer.close()
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(held["notAfter"]), UTC)


def _tls_fault(error: Exception) -> str:
    said = getattr(error, "verify_message", "") or (error.args[-1] if error.args else type(error).__name__)
    return f"the certificate is not trusted: {said}"


async def check_clock(installation: Installation, urls: Iterable[str]) -> Finding:
    """Compare our clock with the database server's, else with an HTTP server's."""
    other = await _database_clock(installation)
    for url in urls:
        other = other or await _http_clock(url)
    if other is None:
        return ok("not compared: no other machine answered")
    place, off = other
    text = f"{abs(off.total_seconds()):.0f} s {'behind' if off > timedelta() else 'ahead of'} {place}"
    fix, docs = (
        "synchronise the clock by NTP (`timedatectl set-ntp true`)",
        f"{TROUBLESHOOTING}#the-clock-is-wrong",
    )
    if abs(off) >= CLOCK_FAIL:
        return fail(text, fix, docs)
    return warn(text, fix, docs) if abs(off) >= CLOCK_WARN else ok(f"in step with {place}")


async def _database_clock(installation: Installation) -> tuple[str, timedelta] | None:
    if installation.settings.storage.database_url is None:
        return None
    try:
        clock = (await (await installation.database()).status()).clock
    except StorageError:  # reported by the sql check
        return None
    return ("the database server's", clock - utc_now()) if clock else None


async def _http_clock(url: str) -> tuple[str, timedelta] | None:
    """Return (server, offset from our clock) by a response's Date header, None if there is none."""
    try:
        async with _session() as session:
            asked = utc_now()
            async with session.head(url, allow_redirects=False) as response:
                said = parsedate_to_datetime(response.headers["Date"])
        middle = asked + (utc_now() - asked) / 2
        # Date has whole seconds: on average, half a second is cut off.
        return f"{urlsplit(url).hostname}'s", said - middle + timedelta(seconds=0.5)
    except (aiohttp.ClientError, TimeoutError, KeyError, ValueError, TypeError):
        return None


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS))

"""Page fetcher: fetches approved pages within limits of size and time, and within a site's robots.txt.

Every redirect is checked like an approved address. The result is bytes, which a sandboxed child reads.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.message import Message

from aiohttp import (
    ClientConnectorDNSError,
    ClientError,
    ClientPayloadError,
    ClientResponse,
    ClientSession,
    DummyCookieJar,
    TCPConnector,
)
from yarl import URL

from ingestion.errors import WebPageError
from ingestion.web_pages.addresses import ForbiddenAddress, PublicResolver
from ingestion.web_pages.robots import USER_AGENT, Robots
from storage.readers.html import page_bytes
from storage.readers.pdf import PDF
from storage.web_pages.web_sources import PORTS, normal_url

# Maximum concurrent requests.
CONCURRENCY = 4
MAX_REDIRECTS = 5
MAX_ROBOTS_BYTES = 500 * 1024
CHUNK_BYTES = 64 * 1024

PAGES = ("text/html", "text/plain", PDF.name)
SITEMAPS = ("application/xml", "text/xml", "text/plain")

_REDIRECTS = (301, 302, 303, 307, 308)
_GONE = range(400, 500)

# True if an address is approved; called before every request.
Allows = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """Response of a server."""

    media_type: str
    # As declared by the server.
    charset: str | None
    data: bytes
    etag: str | None
    # Together with the ETag, the validators of a conditional request.
    last_modified: str | None

    @property
    def content(self) -> bytes:
        """The page as it is stored: a PDF as it is, else with what the server declared."""
        is_pdf = self.media_type == PDF.name
        return self.data if is_pdf else page_bytes(self.media_type, self.charset, self.data)

    @property
    def validators(self) -> dict[str, str]:
        """Headers of a conditional request."""
        asked = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in asked.items() if value}


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of one page."""

    # Maximum size as sent, and after decompression.
    bytes: int = 2 * 1024 * 1024
    # From the first request to the last byte, redirects included.
    seconds: float = 10


class PageFetcher:
    """HTTP client for approved pages; sends one request at a time to each host."""

    def __init__(
        self,
        contact: str,
        limits: FetchLimits,
        *,
        loopback: bool = False,
        resolver: PublicResolver | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Store the options; no connection is opened before the first request.

        Args:
            contact: where the owner of a site can complain: an e-mail address or a URL.
            limits: limits of each page.
            loopback: for development: allow test servers on this machine, on any port.
            resolver: resolves host names.
            sleep: waits for the crawl delay of a site.
        """
        self._contact = contact
        self._limits = limits
        self._loopback = loopback
        self._resolver = resolver
        self._sleep = sleep
        self._session: ClientSession | None = None
        self._robots = Robots(self._read_robots)
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        # Host -> time from which it may be requested again.
        self._free_at: dict[str, float] = {}

    async def fetch(
        self,
        url: str,
        allows: Allows,
        *,
        validators: Mapping[str, str] | None = None,
        media_types: Collection[str] = PAGES,
    ) -> FetchedPage | None:
        """Return a page; None if it has not changed.

        Args:
            url: approved address.
            allows: approval check.
            validators: headers of a conditional request.
            media_types: accepted media types.

        Raises:
            WebPageError: it is not approved, not allowed, too large, too slow or missing; the message is for
                an admin.
        """
        if not allows(url):
            raise WebPageError("the address is not approved any more")

        async def ask(hop: str, time: _TimeLimit) -> FetchedPage | _Redirect | None:
            async with self._turn(hop):
                rules = await self._robots.rules_for(hop)
                if rules.rules is None:
                    raise WebPageError(f"{rules.reason} (asked for its robots.txt)")
                if not rules.allow(hop):
                    raise WebPageError("the site's robots.txt does not allow this page to be fetched")
                self._note_delay(hop, rules.delay)
                return await self._get(hop, time, validators or {}, media_types, self._limits.bytes)

        return await self._follow(url, lambda target: allows(target) or _is_same_page(url, target), ask)

    async def aclose(self) -> None:
        """Close all connections; the next request opens new ones."""
        session, self._session = self._session, None
        if session:
            await session.close()

    def _open(self) -> ClientSession:
        if self._session is None:
            resolver = self._resolver or PublicResolver(loopback=self._loopback)
            self._session = ClientSession(
                connector=TCPConnector(resolver=resolver, socket_factory=resolver.connect, limit_per_host=1),
                cookie_jar=DummyCookieJar(),
                headers={"User-Agent": f"{USER_AGENT}/1 (+{self._contact})", "Accept-Encoding": "gzip"},
                auto_decompress=False,
            )
        return self._session

    def _turn(self, url: str) -> _Turn:
        host = URL(url).host or ""
        return _Turn(self._turns[host], lambda: self._free_at.get(host, 0.0), self._sleep)

    def _note_delay(self, url: str, delay: float) -> None:
        self._free_at[URL(url).host or ""] = asyncio.get_running_loop().time() + delay

    async def _read_robots(self, url: str) -> str | None:
        host = URL(url).host

        async def ask(hop: str, time: _TimeLimit) -> FetchedPage | _Redirect | None:
            return await self._get(hop, time, {}, (), MAX_ROBOTS_BYTES)

        try:
            page = await self._follow(url, lambda target: URL(target).host == host, ask)
        except _Missing:
            return None
        return page.data.decode("utf-8", "replace") if page else None

    async def _follow(
        self,
        url: str,
        allows: Allows,
        ask: Callable[[str, _TimeLimit], Awaitable[FetchedPage | _Redirect | None]],
    ) -> FetchedPage | None:
        """Follow redirects, each checked and requested like the first address, to the final response."""
        time = _TimeLimit(self._limits.seconds)
        for _ in range(MAX_REDIRECTS + 1):
            answer = await ask(url, time)
            if not isinstance(answer, _Redirect):
                return answer
            url = _target(url, answer, allows)
        raise WebPageError(f"the server redirects more than {MAX_REDIRECTS} times")

    async def _get(
        self,
        url: str,
        time: _TimeLimit,
        headers: Mapping[str, str],
        media_types: Collection[str],
        most: int,
    ) -> FetchedPage | _Redirect | None:
        """Return the response of one address, without following redirects."""
        self._check_port(url)
        try:
            async with self._slots, time.running():
                asked = self._open().get(URL(url, encoded=True), headers=headers, allow_redirects=False)
                async with asked as response:
                    if response.status in _REDIRECTS:
                        return _Redirect(response.headers.get("Location", ""))
                    return await self._answer(response, media_types, most)
        except TimeoutError:
            raise WebPageError(f"the server took longer than {self._limits.seconds:g} s") from None
        except (ClientError, ValueError) as error:
            raise WebPageError(_why(error)) from error

    def _check_port(self, url: str) -> None:
        parts = URL(url)
        if parts.port != PORTS.get(parts.scheme) and not self._loopback:
            raise WebPageError("only the ports 80 and 443 are asked")

    async def _answer(
        self, response: ClientResponse, media_types: Collection[str], most: int
    ) -> FetchedPage | None:
        if response.status == 304:
            return None
        if response.status in _GONE:
            raise _Missing(f"the server answers {response.status}")
        if response.status != 200:
            raise WebPageError(f"the server answers {response.status}")
        header = Message()
        header["Content-Type"] = response.headers.get("Content-Type", "")
        media_type = header.get_content_type()
        if media_types and ("Content-Type" not in response.headers or media_type not in media_types):
            raise WebPageError(f"the server sends {media_type}, which is not read here")
        return FetchedPage(
            media_type,
            header.get_content_charset(),
            await _body(response, most),
            response.headers.get("ETag"),
            response.headers.get("Last-Modified"),
        )


@dataclass(frozen=True, slots=True)
class _Redirect:
    """A redirect response."""

    # Location header, verbatim.
    location: str


class _TimeLimit:
    """Time budget of one page; waiting for a turn costs nothing."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Charge the time of the block; raise TimeoutError when the budget is used up."""
        now = asyncio.get_running_loop().time
        start = now()
        try:
            async with asyncio.timeout(self._left):
                yield
        finally:
            self._left -= now() - start


class _Missing(WebPageError):
    """The server answered with a 4xx status."""


class _Turn:
    """Slot for one request to a host: after the previous request and the crawl delay."""

    def __init__(
        self, lock: asyncio.Lock, free_at: Callable[[], float], sleep: Callable[[float], Awaitable[object]]
    ) -> None:
        self._lock = lock
        self._free_at = free_at
        self._sleep = sleep

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        try:
            if (rest := self._free_at() - asyncio.get_running_loop().time()) > 0:
                await self._sleep(rest)
        except BaseException:
            self._lock.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


def _target(url: str, redirect: _Redirect, allows: Allows) -> str:
    """Return the target of a redirect.

    Raises:
        WebPageError: the target is not approved, or leads from https to http.
    """
    try:
        target = normal_url(str(URL(url).join(URL(redirect.location))))
    except ValueError:
        raise WebPageError("the server redirects to something that is no address") from None
    if not allows(target):
        raise WebPageError(
            f"the server redirects to {target}, which is not approved: if the page moved, approve it there"
        )
    if url.startswith("https:") and not target.startswith("https:"):
        raise WebPageError("the server redirects from https to http")
    return target


def _is_same_page(one: str, other: str) -> bool:
    """True for two spellings of one address: trailing slash or not, http or https."""
    first, second = (URL(url) for url in (one, other))
    if first.port != second.port and (first.port, second.port) != (80, 443):
        return False
    same_place = (first.host, first.query_string) == (second.host, second.query_string)
    return same_place and first.path.rstrip("/") == second.path.rstrip("/")


async def _body(response: ClientResponse, most: int) -> bytes:
    """Return the decompressed body; reads no further than ``most`` bytes.

    Raises:
        WebPageError: it is longer, or compressed with anything but gzip.
    """
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "", "gzip"):
        raise WebPageError("the server packs the page in a way it was not asked for")
    too_large = WebPageError(f"the page is larger than {most / 1024**2:.3g} MB")
    # Decompressed in pieces, so that a decompression bomb stops at the limit.
    unpack = zlib.decompressobj(wbits=31) if encoding == "gzip" else None
    data = bytearray()
    sent = 0
    async for piece in response.content.iter_chunked(CHUNK_BYTES):
        sent += len(piece)
        try:
            data += unpack.decompress(piece, most + 1 - len(data)) if unpack else piece
        except zlib.error:
            raise WebPageError("the compressed page is corrupt") from None
        if max(sent, len(data)) > most or (unpack and unpack.unconsumed_tail):
            raise too_large
    if unpack and not unpack.eof:
        raise WebPageError("the page was truncated")
    return bytes(data)


def _why(error: Exception) -> str:
    """Return why a request failed, for an admin."""
    cause = error.__cause__ or getattr(error, "os_error", None)
    if isinstance(cause, ForbiddenAddress):
        return "the host's address is not a public one; such addresses are never asked"
    if isinstance(error, ClientPayloadError):
        return "the page was truncated"
    if isinstance(error, ClientConnectorDNSError | UnicodeError):
        return "the host's name has no address"
    return f"the server cannot be reached ({type(error).__name__})"

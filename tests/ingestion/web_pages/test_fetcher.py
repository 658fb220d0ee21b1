"""Fetching approved pages from a server that misbehaves in every way."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import Callable

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from fakes.web_site import WebSite, html
from harness.tables import for_each

from ingestion.errors import WebPageError
from ingestion.web_pages.addresses import ForbiddenAddress, PublicResolver, require_public
from ingestion.web_pages.fetcher import FetchedPage, FetchLimits, PageFetcher

PACKED = {"Content-Encoding": "gzip", "Content-Type": "text/html"}


def everything(_url: str) -> bool:
    """Return True: every URL is approved."""
    return True


async def fetched(fetcher: PageFetcher, url: str, allows: Callable[[str], bool] = everything) -> FetchedPage:
    """Fetch a page that exists."""
    page = await fetcher.fetch(url, allows)
    assert page is not None
    return page


async def refusal(fetcher: PageFetcher, url: str, allows: Callable[[str], bool] = everything) -> str:
    """Return the error of a fetch that must fail."""
    with pytest.raises(WebPageError) as caught:
        await fetcher.fetch(url, allows)
    return str(caught.value)


async def test_a_page_comes_with_its_cache_validators(fetcher: PageFetcher, site: WebSite) -> None:
    """Covers charset, conditional requests, cookies and the user agent."""

    async def page(request: web.Request) -> web.Response:
        if request.headers.get("If-None-Match") == '"1"':
            return web.Response(status=304)
        return web.Response(
            body="<p>Größe</p>".encode("latin-1"),
            headers={"Content-Type": "text/html; charset=ISO-8859-1", "ETag": '"1"', "Set-Cookie": "a=b"},
        )

    site.pages["/"] = page
    found = await fetched(fetcher, site.url("/"))
    assert (found.media_type, found.charset, found.etag) == ("text/html", "iso-8859-1", '"1"')
    again = await fetcher.fetch(site.url("/"), everything, validators={"If-None-Match": '"1"'})
    assert again is None
    assert site.asked[-1].headers["User-Agent"] == "Footnote/1 (+admin@example.org)"
    assert not any("Cookie" in one.headers for one in site.asked)


async def test_only_approved_urls_are_requested(fetcher: PageFetcher, site: WebSite) -> None:
    """Shows that redirect targets are checked, too."""
    site.pages["/a"] = web.Response(status=302, headers={"Location": "/b"})
    site.pages["/b"] = "<p>b</p>"
    assert "not approved: if the page moved, approve" in await refusal(
        fetcher, site.url("/a"), lambda url: url.endswith("/a")
    )
    assert site.paths == ["/a"]
    assert (await fetched(fetcher, site.url("/a"))).data == b"<p>b</p>"
    assert "not approved any more" in await refusal(fetcher, site.url("/a"), lambda _: False)


async def test_robots_txt_applies_to_redirect_targets(fetcher: PageFetcher, site: WebSite) -> None:
    site.pages["/robots.txt"] = web.Response(text="User-agent: *\nDisallow: /private")
    site.pages["/a"] = web.Response(status=302, headers={"Location": "/private"})
    site.pages["/private"] = "<p>b</p>"
    assert "robots.txt does not allow" in await refusal(fetcher, site.url("/a"))
    assert site.paths == ["/a"]


async def test_a_redirect_to_another_spelling_is_followed(fetcher: PageFetcher, site: WebSite) -> None:
    """Covers a trailing slash."""
    site.pages["/a"] = web.Response(status=301, headers={"Location": "/a/"})
    site.pages["/a/"] = "<p>a</p>"
    assert (await fetched(fetcher, site.url("/a"), lambda url: url == site.url("/a"))).data == b"<p>a</p>"


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (web.Response(status=302, headers={"Location": "http://[half"}), "no address"),
        (web.Response(status=302, headers={"Location": "file:///etc/passwd"}), "no address"),
        (web.Response(status=302, headers={"Location": "/"}), "more than 5 times"),
        (web.Response(status=404), "answers 404"),
        (web.Response(status=500), "answers 500"),
        (web.Response(text="{}", content_type="application/json"), "application/json"),
        (html("a" * 20_001), "larger than"),
        (web.Response(body=gzip.compress(bytes(9_000_000)), headers=PACKED), "larger than"),
        (web.Response(body=gzip.compress(b"abc")[:-9], headers=PACKED), "truncated"),
        (web.Response(body=b"abc", headers=PACKED), "corrupt"),
        (web.Response(body=b"abc", headers={**PACKED, "Content-Encoding": "br"}), "not asked for"),
    ],
)  # fmt: skip
async def test_bad_responses_are_refused_with_a_message(
    fetcher: PageFetcher, site: WebSite, response: web.Response, words: str
) -> None:
    """Covers odd redirects, errors, other media types, large pages, and damaged or bomb-like compression."""
    site.pages["/"] = response
    assert words in await refusal(fetcher, site.url("/"))


async def test_a_gzipped_page_is_decompressed(fetcher: PageFetcher, site: WebSite) -> None:
    site.pages["/"] = web.Response(body=gzip.compress(b"<p>a</p>"), headers=PACKED)
    assert (await fetched(fetcher, site.url("/"))).data == b"<p>a</p>"
    assert site.asked[-1].headers["Accept-Encoding"] == "gzip"


async def test_a_slow_server_times_out(site: WebSite) -> None:
    """Shows that the limit covers the whole page, however steadily it trickles."""

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/html"})
        await response.prepare(request)
        while True:
            await response.write(b"a")
            await asyncio.sleep(0.02)

    site.pages["/"] = drip
    fetcher = PageFetcher("me", FetchLimits(seconds=0.2), loopback=True)
    assert "longer than 0.2 s" in await refusal(fetcher, site.url("/"))
    await fetcher.aclose()


async def test_a_truncated_response_is_reported_as_such(fetcher: PageFetcher, site: WebSite) -> None:
    """Shows that less than Content-Length is discarded, and that the message says so."""

    async def torn(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/html", "Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"<p>a</p>")
        assert request.transport is not None
        request.transport.close()
        return response

    site.pages["/"] = torn
    assert "the page was truncated" in await refusal(fetcher, site.url("/"))


async def test_an_invalid_host_name_has_no_address(fetcher: PageFetcher) -> None:
    """Covers a name that resolvers refuse to look up."""
    assert "the host's name has no address" in await refusal(fetcher, "https://a..example/")


async def test_an_unreachable_site_is_reported(fetcher: PageFetcher) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        assert "cannot be reached" in await refusal(fetcher, f"http://127.0.0.1:{nobody.getsockname()[1]}/")


async def test_robots_txt_is_obeyed(fetcher: PageFetcher, site: WebSite) -> None:
    """The longest rule for our user agent counts, and the file is fetched once."""
    site.pages |= {"/open": "<p>a</p>", "/shut/open": "<p>b</p>", "/shut/": "<p>c</p>"}
    site.pages["/robots.txt"] = web.Response(
        text="User-agent: *\nDisallow: /\n\nUser-agent: footnote\nDisallow: /shut/\nAllow: /shut/open$"
    )
    await fetched(fetcher, site.url("/open"))
    await fetched(fetcher, site.url("/shut/open"))
    assert "does not allow" in await refusal(fetcher, site.url("/shut/"))
    assert site.paths == ["/open", "/shut/open"]
    assert [one.path for one in site.asked].count("/robots.txt") == 1


async def test_a_site_without_readable_robots_txt_is_not_fetched(fetcher: PageFetcher, site: WebSite) -> None:
    """Shows that a server error is no permission, and a 404 is."""
    site.pages["/"] = "<p>a</p>"
    site.pages["/robots.txt"] = web.Response(status=503)
    assert "answers 503 (asked for its robots.txt)" in await refusal(fetcher, site.url("/"))
    assert site.paths == []


async def test_requests_to_a_host_are_serial_and_respect_crawl_delay(site: WebSite) -> None:
    rests: list[float] = []

    async def sleep(seconds: float) -> None:
        rests.append(seconds)

    site.pages |= {f"/{number}": "<p>a</p>" for number in range(3)}
    site.pages["/robots.txt"] = web.Response(text="User-agent: *\nCrawl-delay: 30")
    fetcher = PageFetcher("me", FetchLimits(), loopback=True, sleep=sleep)
    await asyncio.gather(*(fetcher.fetch(site.url(f"/{number}"), everything) for number in range(3)))
    assert site.at_once == 1
    assert [round(rest) for rest in rests] == [30, 30]
    await fetcher.aclose()


@for_each(
    "address",
    [
        "10.0.0.1", "172.16.0.1", "192.168.1.1", "127.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
        "224.0.0.1", "255.255.255.255", "192.0.0.192", "::1", "::", "fe80::1%eth0", "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "not an address", "",
        "64:ff9b:1::a9fe:a9fe", "::169.254.169.254", "::ffff:0:10.0.0.1", "fec0::1", "192.88.99.1", "3fff::1",
        "168.63.129.16", "::ffff:168.63.129.16", "2001:0:0:0:0:0:f5ff:fffe",
    ],
)  # fmt: skip
def test_private_addresses_are_refused(address: str) -> None:
    """SSRF: covers every form of private, local and metadata addresses."""
    with pytest.raises(ForbiddenAddress):
        require_public(address, loopback=False)


def test_public_addresses_and_optionally_loopback_are_allowed() -> None:
    """Shows that the switch allows loopback only."""
    for address in ("93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::5db8:d822"):
        require_public(address, loopback=False)
    require_public("127.0.0.1", loopback=True)
    with pytest.raises(ForbiddenAddress):
        require_public("10.0.0.1", loopback=True)


class Scripted(AbstractResolver):
    """A resolver with scripted answers."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the next answer, which may have several addresses."""
        return [
            ResolveResult(hostname=host, host=one, port=port, family=socket.AF_INET, proto=0, flags=0)
            for one in self.answers.pop(0).split()
        ]

    async def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("answer", ["10.0.0.1", "93.184.216.34 127.0.0.1", "169.254.169.254"])
async def test_a_name_that_resolves_to_a_private_address_is_refused(answer: str) -> None:
    """Shows that one private address among others is enough, and that each connection resolves once."""
    names = Scripted(answer)
    fetcher = PageFetcher("me", FetchLimits(), resolver=PublicResolver(names))
    with pytest.raises(WebPageError):
        await fetcher.fetch("http://rebinding.example/", everything)
    assert names.answers == []
    await fetcher.aclose()


async def test_the_socket_address_is_checked_again(site: WebSite) -> None:
    """DNS rebinding: an address that a resolver lets through is refused when its socket is created."""

    class Trusting(PublicResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            return await Scripted("127.0.0.1").resolve(host, port, family)

    fetcher = PageFetcher("me", FetchLimits(), resolver=Trusting())
    with pytest.raises(WebPageError):
        await fetcher.fetch("http://rebinding.example/", everything)
    with pytest.raises(WebPageError):
        await fetcher.fetch("http://127.0.0.1/", everything)
    await fetcher.aclose()
    assert site.asked == []


async def test_other_ports_need_the_loopback_switch(site: WebSite) -> None:
    """Shows that neither another port nor loopback is requested without it."""
    fetcher = PageFetcher("me", FetchLimits())
    for url in (site.url("/"), "https://example.org:8443/"):
        with pytest.raises(WebPageError):
            await fetcher.fetch(url, everything)
    assert site.asked == []
    await fetcher.aclose()

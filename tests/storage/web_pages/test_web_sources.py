"""``web_sources.toml``: syntax, error messages, and which pages and channels a line covers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from storage.config_file import InvalidFile
from storage.models import Channel, ChannelKey, Platform
from storage.web_pages.web_sources import WebSources, WebSourcesFile, normal_url, read_web_sources

TENANCY = b"""
[[domain]]
name = "tenancy"
keywords = ["deposit", "landlord"]
urls = [
    "https://www.Example.org:443/renting/deposits#protect",
    { sitemap = "https://www.example.org/sitemap.xml", under = "/renting/", most = 5 },
]
channels = ["housing"]
"""


def channel(name: str) -> Channel:
    return Channel(1, ChannelKey(Platform.LOCAL, "", name).tenant, Platform.LOCAL, name, 1)


def mistakes(data: bytes) -> list[str]:
    """Return the mistakes in a file."""
    with pytest.raises(InvalidFile) as caught:
        read_web_sources(data)
    return [str(one) for one in caught.value.mistakes]


def test_a_domain_allows_only_its_pages_and_channels() -> None:
    """A page is approved by its URL, or by a sitemap's site and path."""
    (domain,) = read_web_sources(TENANCY).domains
    assert domain.urls == ("https://www.example.org/renting/deposits",)
    assert read_web_sources(TENANCY).domains_for(channel("housing")) == (domain,)
    assert read_web_sources(TENANCY).domains_for(channel("payroll")) == ()
    assert domain.allows("https://www.example.org/renting/repairs")
    assert not domain.allows("https://www.example.org/jobs/")
    assert not domain.allows("http://www.example.org/renting/repairs")
    assert not domain.allows("https://www.example.org.attacker.net/renting/repairs")


def test_a_domain_without_channels_serves_every_channel() -> None:
    sources = read_web_sources(TENANCY.replace(b'channels = ["housing"]', b""))
    assert sources.domains_for(channel("payroll")) == sources.domains


def test_a_redirect_leaks_no_page_to_other_channels() -> None:
    """Shows that a page approved for another domain only is not used for this one's URL."""
    other = (
        b'[[domain]]\nname = "pay"\nkeywords = ["pay"]\nurls = ["https://x.org/pay"]\nchannels = ["pay"]\n'
    )
    sources = read_web_sources(TENANCY + other)
    start = "https://www.example.org/renting/deposits"
    assert sources.answers_for(start, start)
    assert sources.answers_for(start, "https://www.example.org/renting/repairs")
    assert not sources.answers_for(start, "https://x.org/pay")
    assert not sources.answers_for("https://x.org/none", "https://x.org/pay")


def test_every_mistake_is_reported_with_its_line() -> None:
    found = mistakes(
        b'[[domain]]\nname = "a"\nkeywords = ["!"]\nurls = ["ftp://x/"]\n'
        b'[[domain]]\nname = "b"\nkeywords = ["k"]\nurls = [{ sitemap = "https://x.org/s", under = "r" }]\n'
        b'channel = ["a"]\nchannels = ["sl_nonsense"]\n[[domain]]\n'
    )
    assert [one.split(": ")[0] for one in found] == [
        "web_sources.toml:3",
        "web_sources.toml:4",
        "web_sources.toml:8",
        "web_sources.toml:9",
        "web_sources.toml:10",
        *3 * ["web_sources.toml:11"],
    ]
    assert "entry 1: write a whole address" in found[1]
    assert "channel is not a known key" in found[3]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('"https://user:secret@x.org/"', "whole address"),
        ('{ url = "https://x.org/", most = 3 }', "name a page"),
        ("{ under = '/a' }", "name a page"),
        ('{ sitemap = "https://x.org/s.xml", most = 0 }', "greater than or equal to 1"),
        ("3", "valid dictionary"),
    ],
)
def test_a_source_is_a_page_or_a_sitemap(source: str, words: str) -> None:
    """Half a URL, one with a password, and a mixture of both are refused with a message."""
    text = f'[[domain]]\nname = "a"\nkeywords = ["k"]\nurls = [{source}]\n'
    (found,) = mistakes(text.encode())
    assert found.startswith("web_sources.toml:4: urls, entry 1: ")
    assert words in found
    assert "secret" not in found


def test_domain_names_are_unique() -> None:
    """Shows that a name identifies the domain that a question opened."""
    (found,) = mistakes(TENANCY + TENANCY)
    assert "two domains are called 'tenancy'" in found


def test_the_number_of_approved_pages_is_limited() -> None:
    """Sitemaps count with the maximum that they may list."""
    domains = b"".join(
        b'[[domain]]\nname = "%d"\nkeywords = ["k"]\n' % one
        + b'urls = [{ sitemap = "https://x.org/%d.xml", most = 500 }]\n' % one
        for one in range(21)
    )
    (found,) = mistakes(domains)
    assert "10500 pages would be approved, and 10000 may be" in found


def test_the_pages_of_a_domain_are_limited() -> None:
    """Sitemap maximums count with the pages, and the message has the domain's line."""
    sitemap = b'urls = ["https://x.org/a", { sitemap = "https://x.org/s.xml", most = %d }]\n'
    domain = b'[[domain]]\nname = "b"\nkeywords = ["k"]\n' + sitemap
    assert len(read_web_sources(TENANCY + domain % 499).domains) == 2
    (found,) = mistakes(TENANCY + domain % 500)
    assert found.startswith("web_sources.toml:10: 501 pages would be approved for this domain, and 500 may")


async def test_the_last_valid_file_stays_in_force(tmp_path: Path) -> None:
    """Shows that a file being edited removes no approved page, and that deleting it removes all."""
    path = tmp_path / "web_sources.toml"
    file = WebSourcesFile(tmp_path)
    assert await file.current() == WebSources()
    path.write_bytes(TENANCY)
    (domain,) = (await file.current()).domains
    path.write_bytes(TENANCY + b"[[domain]]\n")
    assert (await file.current()).domains == (domain,)
    assert file.mistakes[0].line == 10
    path.unlink()
    assert await file.current() == WebSources()


def test_an_unknown_channel_is_reported() -> None:
    sources = read_web_sources(TENANCY)
    assert [one.line for one in sources.unknown([channel("payroll")])] == [9]
    assert not [*sources.unknown([channel("housing")])]


async def test_a_library_name_covers_its_channels(tmp_path: Path) -> None:
    """A library of folders.toml is named like a channel, follows its file, and is not unknown."""
    (tmp_path / "web_sources.toml").write_bytes(TENANCY.replace(b'["housing"]', b'["homes"]'))
    library = '[library.homes]\nchannels = {}\n[[library.homes.folder]]\nlocation = "/srv"\n'
    (tmp_path / "folders.toml").write_text(library.format('["housing", "legal"]'))
    file = WebSourcesFile(tmp_path)
    sources = await file.current()
    assert [bool(sources.domains_for(channel(name))) for name in ("housing", "legal", "payroll")] == [
        True,
        True,
        False,
    ]
    assert not [*sources.unknown([])]
    (tmp_path / "folders.toml").write_text(library.format('["legal"]'))
    assert not (await file.current()).domains_for(channel("housing"))
    assert (await file.current()).domains_for(
        channel("library/homes")
    )  # the channel that direct chats search
    (tmp_path / "folders.toml").write_text("[library.homes]\nchannels = 5\n")
    assert (await file.current()).domains_for(channel("legal"))
    (mistake,) = map(str, file.mistakes)
    assert mistake.startswith("folders.toml:2: channels: ")


def test_channels_may_prefer_web_pages() -> None:
    """The setting may name a library; an unknown channel is reported with its line."""
    sources = read_web_sources(b'web_first = ["housing", "homes"]\n' + TENANCY)
    assert [sources.is_web_first(channel(name)) for name in ("housing", "legal")] == [True, False]
    assert replace(sources, libraries={"homes": ("legal",)}).is_web_first(channel("legal"))
    assert [one.line for one in sources.unknown([channel("housing")])] == [1]


def test_urls_are_normalized() -> None:
    """Shows that what an admin wrote and a redirect's target can be compared."""
    assert normal_url("HTTP://Example.org") == "http://example.org/"
    assert normal_url("https://bücher.example/straße?q=ä") == normal_url(
        "https://xn--bcher-kva.example/stra%C3%9Fe?q=%C3%A4"
    )

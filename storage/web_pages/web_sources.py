"""``web_sources.toml``: which web pages may be cited, and for which questions.

The file is reloaded on change; one with mistakes changes nothing until it is corrected. Where it names
channels, the name of a library in ``folders.toml`` stands for all channels of that library.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError
from yarl import URL

from storage.chat.channels import is_channel_name, library_channel, named_tenant
from storage.config_file import MAP_NAME, AdminFile, Mistake, default_sentence, read_file
from storage.models import Channel
from storage.text.analyzer import analyze

SOURCES_NAME = "web_sources.toml"
NAMED_BY = "footnote sources check"
MAX_DOMAINS = 200
MAX_KEYWORDS = 200
# Pages per domain, including those that its sitemaps may list: a question compares all of them.
MAX_DOMAIN_PAGES = 500
# Pages of all domains, including those that sitemaps may list.
MAX_PAGES = 10_000
MAX_URL_CHARS = 2000
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Sitemap:
    """A sitemap and the path prefix that is approved."""

    url: str
    # Path prefix of approved pages.
    under: str
    # Maximum number of pages, in the order listed.
    most: int

    def covers(self, url: str) -> bool:
        """True if a page is on the sitemap's own origin, under the approved path."""
        page, own = URL(url), URL(self.url)
        return page.origin() == own.origin() and page.path.startswith(self.under)


@dataclass(frozen=True, slots=True)
class WebDomain:
    """A subject area with the pages that may be cited for it."""

    name: str
    keywords: tuple[str, ...]
    # Individually approved pages.
    urls: tuple[str, ...]
    sitemaps: tuple[Sitemap, ...] = ()
    # Channels and libraries that may open it, as written by an admin; empty: all channels.
    channels: tuple[str, ...] = ()

    def allows(self, url: str) -> bool:
        """True if a page may be fetched and cited: it is listed, or covered by an approved sitemap."""
        return url in self.urls or any(one.covers(url) for one in self.sitemaps)


@dataclass(frozen=True, slots=True)
class WebSources:
    """Parsed content of the file."""

    domains: tuple[WebDomain, ...] = ()
    # Channels and libraries that prefer a page over a document that answers equally well.
    web_first: tuple[str, ...] = ()
    # Every channel or library named in the file, with its line.
    named: tuple[tuple[str, int], ...] = ()
    # Library -> its channels in ``folders.toml``, and the library's own.
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def allows(self, url: str) -> bool:
        """True if a domain allows a page."""
        return any(domain.allows(url) for domain in self.domains)

    def answers_for(self, url: str, target: str) -> bool:
        """True if an address may redirect to ``target``: every domain of the address must allow both.

        So no redirect brings a page to channels that it is not approved for.
        """
        return self.allows(url) and all(one.allows(target) for one in self.domains if one.allows(url))

    def domains_for(self, channel: Channel) -> tuple[WebDomain, ...]:
        """Return the domains that a channel's questions may open."""
        return tuple(one for one in self.domains if not one.channels or self._names(one.channels, channel))

    def is_web_first(self, channel: Channel) -> bool:
        """True if the channel prefers a page over a document that answers equally well."""
        return self._names(self.web_first, channel)

    def _names(self, words: Iterable[str], channel: Channel) -> bool:
        """True if one of these is the channel, or a library that it belongs to."""
        channels = (name for word in words for name in (word, *self.libraries.get(word, ())))
        return any(named_tenant(name) == channel.tenant for name in channels)

    def unknown(self, channels: Iterable[Channel]) -> Iterator[Mistake]:
        """Yield mistakes for names that are neither a library nor one of these channels."""
        tenants = {channel.tenant for channel in channels}
        for name, line in self.named:
            if name not in self.libraries and named_tenant(name) not in tenants:
                sentence = (
                    f"there is no channel or library {name!r} yet; `footnote channels` and {MAP_NAME} "
                    "name them"
                )
                yield Mistake(line, sentence, SOURCES_NAME)


class WebSourcesFile:
    """The web sources in force, from a watched file."""

    def __init__(self, home: Path) -> None:
        """Watch the file in ``home``; a missing file approves nothing."""
        self._file = AdminFile(
            home / SOURCES_NAME, read_web_sources, what="the list of web sources", check_command=NAMED_BY
        )
        self._libraries = AdminFile(
            home / MAP_NAME, _read_libraries, what="the list of libraries", check_command=NAMED_BY
        )
        self._has_looked = False

    @property
    def mistakes(self) -> list[Mistake]:
        """Mistakes of the current files, which are therefore not in force."""
        return [*self._file.mistakes, *self._libraries.mistakes]

    @property
    def is_known(self) -> bool:
        """True if the list was valid once since start-up; until then it is unknown what is approved."""
        return self._file.current is not None

    async def current(self) -> WebSources:
        """Reload the file if it changed and return the sources; with mistakes, its last valid content."""
        await asyncio.to_thread(self._follow)
        return self._in_force

    async def known(self) -> WebSources:
        """Return the sources as of the last reload, reloading only the first time.

        `serve` reloads every few seconds, so that questions that open no domain need not.
        """
        return self._in_force if self._has_looked else await self.current()

    @property
    def _in_force(self) -> WebSources:
        return replace(self._file.current or WebSources(), libraries=self._libraries.current or {})

    def _follow(self) -> None:
        self._file.reload_if_changed()
        self._libraries.reload_if_changed()
        self._has_looked = True


def normal_url(text: str) -> str:
    """Normalise an address: no fragment, lower-case host, no default port.

    Raises:
        ValueError: it is not an http or https address with a host, or contains a password.
    """
    url = URL(text.strip()).with_fragment(None)
    if url.scheme not in PORTS or not url.host or url.user is not None or url.password is not None:
        raise ValueError("an address begins with http:// or https:// and a host, and holds no password")
    return str(url.with_path(url.raw_path or "/", encoded=True, keep_query=True))


def _url(text: str) -> str:
    try:
        if len(text) <= MAX_URL_CHARS and not any(map(str.isspace, text)):
            return normal_url(text)
    except ValueError:
        pass
    raise PydanticCustomError("url", "write a whole address, as in https://www.example.org/renting/deposits")


def _keyword(word: str) -> str:
    if not analyze(word):
        raise PydanticCustomError("keyword", "a keyword holds a letter or a digit")
    return word


def _channel(name: str) -> str:
    if not is_channel_name(name):
        raise PydanticCustomError(
            "channel",
            "channel {name} is malformed: copy it from `footnote channels`, or name a local one",
            {"name": repr(name)},
        )
    return name


def _source(value: Any) -> Any:
    """Convert a bare address to a table."""
    return {"url": value} if isinstance(value, str) else value


def _under(path: str) -> str:
    if not path.startswith("/"):
        raise PydanticCustomError("under", "begins with a slash, as in /renting/")
    return path


Address = Annotated[str, AfterValidator(_url)]
ChannelWord = Annotated[str, AfterValidator(_channel)]


class _Source(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    url: Address | None = None
    sitemap: Address | None = None
    under: Annotated[str, AfterValidator(_under)] = "/"
    most: int = Field(50, ge=1, le=MAX_DOMAIN_PAGES)

    @model_validator(mode="after")
    def _is_one_thing(self) -> _Source:
        is_page = self.url is not None
        if is_page == (self.sitemap is not None) or (is_page and self.model_fields_set - {"url"}):
            raise PydanticCustomError("source", 'name a page, or {{ sitemap = "...", under = "/" }}')
        return self


class _Domain(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    name: str = Field(min_length=1, max_length=100)
    keywords: list[Annotated[str, AfterValidator(_keyword)]] = Field(min_length=1, max_length=MAX_KEYWORDS)
    urls: list[Annotated[_Source, BeforeValidator(_source)]] = Field(
        min_length=1, max_length=MAX_DOMAIN_PAGES
    )
    channels: list[ChannelWord] = []

    @property
    def pages(self) -> int:
        """Maximum number of pages: the named ones, and those that sitemaps may list."""
        return sum(one.most if one.sitemap else 1 for one in self.urls)

    @model_validator(mode="after")
    def _has_few_pages(self) -> _Domain:
        if self.pages > MAX_DOMAIN_PAGES:
            raise PydanticCustomError(
                "pages",
                "{count} pages would be approved for this domain, and {most} may be: list fewer, lower what "
                "sitemaps may list with `most`, or make two domains of it",
                {"count": self.pages, "most": MAX_DOMAIN_PAGES},
            )
        return self


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    web_first: list[ChannelWord] = []
    domain: list[_Domain] = Field([], max_length=MAX_DOMAINS)

    @model_validator(mode="after")
    def _has_unique_names(self) -> _File:
        names = [domain.name for domain in self.domain]
        if twins := [name for name in names if names.count(name) > 1]:
            raise PydanticCustomError("name", "two domains are called {name}", {"name": repr(twins[0])})
        return self

    @model_validator(mode="after")
    def _has_few_pages(self) -> _File:
        pages = sum(domain.pages for domain in self.domain)
        if pages > MAX_PAGES:
            raise PydanticCustomError(
                "pages",
                "{count} pages would be approved, and {most} may be: list fewer, or lower what sitemaps may "
                "list with `most`",
                {"count": pages, "most": MAX_PAGES},
            )
        return self


def read_web_sources(data: bytes) -> WebSources:
    """Parse the file.

    Raises:
        InvalidFile: the file has mistakes; all that could be found are listed.
    """
    said, lines = read_file(SOURCES_NAME, data, _File, _sentence)
    named = [(name, lines.line_of(("web_first",))) for name in said.web_first]
    for number, domain in enumerate(said.domain):
        named += [(name, lines.line_of(("domain", number, "channels"))) for name in domain.channels]
    return WebSources(tuple(map(_domain, said.domain)), tuple(said.web_first), tuple(named))


def _domain(said: _Domain) -> WebDomain:
    return WebDomain(
        said.name,
        tuple(said.keywords),
        tuple(dict.fromkeys(one.url for one in said.urls if one.url)),
        tuple(Sitemap(one.sitemap, one.under, one.most) for one in said.urls if one.sitemap),
        tuple(said.channels),
    )


def _sentence(error: ErrorDetails) -> str:
    """Return the error as a sentence, with the list entry's number where the line is ambiguous."""
    own = {"url", "keyword", "channel", "source", "name", "pages"}
    sentence = error["msg"] if error["type"] in own else default_sentence(error)
    places = [part + 1 for part in error["loc"][2:] if isinstance(part, int)]
    if not places:
        return sentence
    return f"{error['loc'][2]}, entry {places[0]}: {sentence}"


class _Library(BaseModel):
    channels: list[str] = []


class _Libraries(BaseModel):
    """The part of ``folders.toml`` that is needed here; ``ingestion/folder_map`` validates all of it."""

    library: dict[str, _Library] = {}


def _read_libraries(data: bytes) -> Mapping[str, tuple[str, ...]]:
    said, _ = read_file(MAP_NAME, data, _Libraries)
    return {name: (*library.channels, library_channel(name)) for name, library in said.library.items()}

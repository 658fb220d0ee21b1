"""Keeps approved web pages: the text that was last fetched of each, and every text that was cited.

A page that cannot be fetched keeps its last text; one that is no longer approved is forgotten at once, but
for what was quoted of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, CursorResult, delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.chat.notification_events import record_source_changed, record_source_failed
from storage.clock import utc_now
from storage.embeddings.base import Vectors
from storage.sql.database import Database
from storage.sql.tables import WebCitationRow, WebPageRow, WebTextRow
from storage.web_pages.web_sources import WebDomain

# After so long admins are notified of a page that fails.
FAILING_FOR = timedelta(days=7)


class PageState(StrEnum):
    """How a page stands."""

    FRESH = "fresh"
    # It answers with a text that could not be renewed in time.
    STALE = "stale"
    # There is no text of it, for the last fetch failed.
    FAILED = "failed"
    # Nobody has fetched it yet.
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class WebTextChunk:
    """A piece of a page under its headings."""

    text: str
    # cl100k_base tokens of ``text``.
    tokens: int
    heading_path: tuple[str, ...] = ()
    # By which a link reaches its heading; '' where none does.
    anchor: str = ""
    # Where the address is a PDF's: the page it begins on.
    page: int | None = None


@dataclass(frozen=True, slots=True)
class WebText:
    """What was read of a page at one time."""

    title: str
    # When the page says it was changed, as in 2024-03-01; '' where it does not.
    day: str
    chunks: tuple[WebTextChunk, ...]

    @property
    def words(self) -> int:
        return sum(len(chunk.text.split()) for chunk in self.chunks)

    def _values(self) -> list[list[Any]]:
        return [list(astuple(one)) for one in self.chunks]

    @property
    def sha256(self) -> str:
        """Names the text: two pages of one text share it."""
        return hashlib.sha256(json.dumps([self.title, self._values()]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class WebPage:
    """An approved address as it stands."""

    url: str
    state: PageState
    # Of the text that answers.
    sha256: str | None = None
    words: int = 0
    fetched_at: datetime | None = None
    changed_at: datetime | None = None
    error: str | None = None
    failing_since: datetime | None = None
    # Of a sitemap: the pages that it lists.
    listed: tuple[str, ...] | None = None
    validators: Mapping[str, str] = field(default_factory=dict)
    # When it is fetched again.
    due_at: datetime | None = None

    @property
    def is_missing(self) -> bool:
        """True if there is no text of it, and one may be had now."""
        may_be_tried = self.due_at is None or self.due_at <= utc_now()
        return self.state is PageState.NEVER or (self.state is PageState.FAILED and may_be_tried)

    @property
    def has_failed_for_long(self) -> bool:
        """True if it has failed for so long that admins are notified."""
        return self.failing_since is not None and self.failing_since < utc_now() - FAILING_FOR


def chunks_of(values: Iterable[Sequence[Any]]) -> tuple[WebTextChunk, ...]:
    """Return the chunks that were written as [text, tokens, heading path, anchor, page] each."""
    return tuple(
        WebTextChunk(text, tokens, tuple(path), anchor, page) for text, tokens, path, anchor, page in values
    )


class WebPageStore:
    """Pages by address, texts by their hash."""

    def __init__(self, database: Database, cache_days: float = 30, retry_minutes: float = 15) -> None:
        """Renew a page after so many days, and one that failed after so many minutes."""
        self._database = database
        self._cached_for = timedelta(days=cache_days)
        self._retried_after = timedelta(minutes=retry_minutes)

    async def approve(self, urls: Collection[str]) -> None:
        """Let these be the approved addresses: others are forgotten, new ones are due now."""
        wanted = set(urls)
        async with self._database.snapshot() as session:
            known = set(await session.scalars(select(col(WebPageRow.url))))
        if known == wanted:
            return
        now = utc_now()
        async with self._database.transaction(exclusive=False) as session:
            if new := [{"url": url, "due_at": now, "validators": {}} for url in sorted(wanted - known)]:
                await session.execute(insert(WebPageRow).on_conflict_do_nothing(), new)
            if gone := known - wanted:
                await session.execute(delete(WebPageRow).where(col(WebPageRow.url).in_(gone)))

    async def pages(self, urls: Collection[str]) -> list[WebPage]:
        """How these stand, in their order."""
        query = (
            select(WebPageRow, col(WebTextRow.words))
            .outerjoin(WebTextRow, col(WebTextRow.sha256) == WebPageRow.sha256)
            .where(col(WebPageRow.url).in_(urls))
        )
        async with self._database.snapshot() as session:
            found = {row.url: (row, words) for row, words in await session.execute(query)}
        return [self._page(*found[url]) if url in found else WebPage(url, PageState.NEVER) for url in urls]

    def _page(self, row: WebPageRow, words: int | None) -> WebPage:
        is_known = row.sha256 is not None or row.listed is not None
        is_old = row.fetched_at is not None and row.fetched_at + self._cached_for < utc_now()
        if is_known:
            state = PageState.STALE if is_old else PageState.FRESH
        else:
            state = PageState.FAILED if row.error else PageState.NEVER
        return WebPage(
            row.url,
            state,
            row.sha256,
            words or 0,
            row.fetched_at,
            row.changed_at,
            row.error,
            row.failing_since,
            None if row.listed is None else tuple(row.listed),
            row.validators,
            row.due_at,
        )

    async def due(self) -> list[str]:
        """Addresses that are to be fetched now, the longest waiting first."""
        query = (
            select(col(WebPageRow.url))
            .where(self._is_due(utc_now()))
            .order_by(col(WebPageRow.due_at), col(WebPageRow.url))
        )
        async with self._database.snapshot() as session:
            return list(await session.scalars(query))

    def _is_due(self, now: datetime) -> ColumnElement[bool]:
        """True if a page may be fetched; a rest longer than any comes from a wrong clock, and is over."""
        due_at, retried = col(WebPageRow.due_at), self._retried_after
        is_failing = col(WebPageRow.error).is_not(None)
        is_too_long = due_at > now + self._cached_for + retried  # clocks of two machines differ a little
        return or_(due_at <= now, is_too_long, is_failing & (due_at > now + 2 * retried))

    async def claim(self, url: str, *, is_forced: bool = False) -> bool:
        """Take it upon oneself to fetch a page: nobody else does so for as long as a failure would rest.

        ``is_forced``: also one that failed and is not due yet.
        """
        now = utc_now()
        is_due = self._is_due(now)
        if is_forced:
            is_due |= col(WebPageRow.error).is_not(None)
        claimed = update(WebPageRow).where(col(WebPageRow.url) == url, is_due)
        async with self._database.transaction(exclusive=False) as session:
            done = await session.execute(claimed.values(due_at=now + self._retried_after))
            return isinstance(done, CursorResult) and bool(done.rowcount)

    async def keep_text(self, url: str, text: WebText, validators: Mapping[str, str]) -> bool:
        """Let a page answer with what was read of it; returns whether that is another text than before."""
        sha256, now = text.sha256, utc_now()
        async with self._database.transaction(exclusive=False) as session:
            new = {
                "sha256": sha256,
                "title": text.title,
                "day": text.day,
                "words": text.words,
                "chunks": text._values(),
                "created_at": now,
            }
            await session.execute(insert(WebTextRow).values(new).on_conflict_do_nothing())
            row = await session.get(WebPageRow, url)
            if row is None:  # it was taken off the list meanwhile
                return False
            has_changed = row.sha256 != sha256
            if has_changed:
                before = await session.get(WebTextRow, row.sha256) if row.sha256 else None
                row.changed_at = now if before else None
                row.sha256 = sha256
                if before:
                    await _record_lost_quotes(session, row, _text_of(before), text)
            self._renewed(row, now, validators)
            return has_changed

    async def keep_unchanged(self, url: str) -> None:
        """The server says that a page is as it was."""
        async with self._database.transaction(exclusive=False) as session:
            if row := await session.get(WebPageRow, url):
                self._renewed(row, utc_now(), row.validators)

    async def keep_listing(self, url: str, listed: Sequence[str], validators: Mapping[str, str]) -> None:
        """What a sitemap lists."""
        async with self._database.transaction(exclusive=False) as session:
            if row := await session.get(WebPageRow, url):
                row.listed = list(listed)
                self._renewed(row, utc_now(), validators)

    async def keep_failure(self, url: str, error: str, channel_id: int | None = None) -> None:
        """A page could not be fetched or read; its last text goes on answering.

        ``channel_id``: the channel in whose name admins are notified when it has failed for a week.
        """
        now = utc_now()
        async with self._database.transaction(exclusive=False) as session:
            if row := await session.get(WebPageRow, url):
                row.error = error
                row.failing_since = row.failing_since or now
                row.due_at = now + self._retried_after
                if channel_id is not None and row.failing_since < now - FAILING_FOR:
                    await record_source_failed(session, row, channel_id)

    def _renewed(self, row: WebPageRow, now: datetime, validators: Mapping[str, str]) -> None:
        row.fetched_at, row.due_at = now, now + self._cached_for
        row.validators = dict(validators)
        row.error = row.failing_since = None

    async def text(self, sha256: str) -> WebText | None:
        """Return a text that answers, or that was cited."""
        return (await self.texts([sha256])).get(sha256)

    async def texts(self, hashes: Collection[str]) -> dict[str, WebText]:
        """Return the texts of these hashes, as far as they are kept."""
        if not hashes:
            return {}
        columns = (WebTextRow.sha256, WebTextRow.title, WebTextRow.day, WebTextRow.chunks)
        found = select(*map(col, columns)).where(col(WebTextRow.sha256).in_(hashes))
        async with self._database.snapshot() as session:
            rows = await session.execute(found)
            return {sha256: WebText(title, day, chunks_of(chunks)) for sha256, title, day, chunks in rows}

    async def vectors(self, hashes: Collection[str], space: str) -> dict[str, Vectors]:
        """The vectors of these texts' chunks, one after the other, as far as they were made in this space."""
        if not hashes:
            return {}
        found = select(col(WebTextRow.sha256), col(WebTextRow.vectors)).where(
            col(WebTextRow.sha256).in_(hashes), col(WebTextRow.space) == space
        )
        async with self._database.snapshot() as session:
            rows = await session.execute(found)
            return {sha256: np.frombuffer(made, "<f4") for sha256, made in rows if made}

    async def without_vectors(self, space: str) -> list[str]:
        """Return the texts that pages answer with, and that have no vectors in this space."""
        is_other = col(WebTextRow.space).is_(None) | (col(WebTextRow.space) != space)
        query = (
            select(col(WebTextRow.sha256))
            .join(WebPageRow, col(WebPageRow.sha256) == WebTextRow.sha256)
            .where(is_other)
            .distinct()
        )
        async with self._database.snapshot() as session:
            return list(await session.scalars(query))

    async def keep_vectors(self, sha256: str, space: str, vectors: Vectors) -> None:
        """Vectors of a text's chunks, in place of those of another space."""
        async with self._database.transaction(exclusive=False) as session:
            if row := await session.get(WebTextRow, sha256):
                row.space, row.vectors = space, vectors.astype("<f4").tobytes()

    async def lost_quotes(self, channel_id: int | None = None) -> list[tuple[str, str]]:
        """(address, quote) of each quote that was shown and that stands on its page no more.

        ``channel_id``: of those that this channel was shown.
        """
        changed = (
            select(col(WebCitationRow.url), col(WebCitationRow.quote), col(WebPageRow.sha256))
            .join(WebPageRow, col(WebPageRow.url) == WebCitationRow.url)
            .where(col(WebPageRow.sha256) != WebCitationRow.sha256)
            .order_by(col(WebCitationRow.id))
        )
        if channel_id is not None:
            changed = changed.where(col(WebCitationRow.channel_id) == channel_id)
        async with self._database.snapshot() as session:
            rows = list(dict.fromkeys((await session.execute(changed)).all()))
        found = await self.texts({row[2] for row in rows if row[2]})
        texts = {sha256: _plain_chunks(text) for sha256, text in found.items()}
        return [(url, quote) for url, quote, sha256 in rows if not _holds(texts.get(sha256 or "", ()), quote)]

    async def prune(self) -> int:
        """Erase the texts that no page answers with and no citation came from; how many those were."""
        used = select(col(WebPageRow.sha256)).where(col(WebPageRow.sha256).is_not(None))
        cited = select(col(WebCitationRow.sha256))
        unused = col(WebTextRow.sha256).not_in(used) & col(WebTextRow.sha256).not_in(cited)
        async with self._database.snapshot() as session:
            if await session.scalar(select(col(WebTextRow.sha256)).where(unused).limit(1)) is None:
                return 0  # as nearly always: no writer has to wait for that
        async with self._database.transaction() as session:
            done = await session.execute(delete(WebTextRow).where(unused))
            return done.rowcount if isinstance(done, CursorResult) else 0


def _text_of(row: WebTextRow) -> WebText:
    return WebText(row.title, row.day, chunks_of(row.chunks))


async def _record_lost_quotes(
    session: AsyncSession, page: WebPageRow, before: WebText, after: WebText
) -> None:
    """Notify admins, once for each channel, of quotes that were shown and that a page has just lost."""
    shown = (
        select(col(WebCitationRow.channel_id), col(WebCitationRow.quote))
        .where(col(WebCitationRow.url) == page.url)
        .order_by(col(WebCitationRow.id))
    )
    said, says = _plain_chunks(before), _plain_chunks(after)
    quotes = {(channel, quote): None for channel, quote in await session.execute(shown)}
    lost = {channel: quote for channel, quote in quotes if _holds(said, quote) and not _holds(says, quote)}
    for channel_id, quote in lost.items():
        await record_source_changed(session, page, channel_id, quote)


def _plain_chunks(text: WebText | None) -> list[str]:
    """Return the chunks of a text as quotes are written, in which cells of a row stand without bars."""
    return [" ".join(chunk.text.replace("|", " ").split()) for chunk in text.chunks] if text else []


def _holds(chunks: Sequence[str], quote: str) -> bool:
    """True if plain chunks say a quote."""
    return any(quote in chunk for chunk in chunks)


async def approved_pages(domains: Collection[WebDomain], store: WebPageStore) -> list[str]:
    """Return the pages of some domains, each once: those named, then those that their sitemaps list."""
    sitemaps = [one for domain in domains for one in domain.sitemaps]
    listed = await store.pages([one.url for one in sitemaps])
    named = [url for domain in domains for url in domain.urls]
    for sitemap, page in zip(sitemaps, listed, strict=True):
        named += islice(filter(sitemap.covers, page.listed or ()), sitemap.most)
    return list(dict.fromkeys(named))


async def listed_pages(domains: Collection[WebDomain], store: WebPageStore) -> list[WebPage]:
    """Return the sitemaps and the pages of some domains, as they stand."""
    sitemaps = [one.url for domain in domains for one in domain.sitemaps]
    return await store.pages(list(dict.fromkeys((*sitemaps, *(await approved_pages(domains, store))))))


def count_pages(pages: Collection[WebPage], changed_since: datetime) -> dict[str, int]:
    """How many of some pages are in each state, how many fail, also for long, and have changed since then."""
    states = [page.state for page in pages]
    return {
        "pages": len(pages),
        **{state.value: states.count(state) for state in PageState},
        "failing": sum(page.error is not None for page in pages),
        "failing_for_a_week": sum(page.has_failed_for_long for page in pages),
        "changed": sum(page.changed_at is not None and page.changed_at >= changed_since for page in pages),
    }

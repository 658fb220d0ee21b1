"""Store of approved web pages: the last fetched text of each, and every cited text.

A page that cannot be fetched keeps its last text. One that is no longer approved is deleted at once, except
for what was quoted.
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

# Failing time after which admins are notified.
FAILING_FOR = timedelta(days=7)


class PageState(StrEnum):
    """State of a page."""

    FRESH = "fresh"
    # Its text is live but could not be renewed in time.
    STALE = "stale"
    # It has no text, because the last fetch failed.
    FAILED = "failed"
    # Not fetched yet.
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class WebTextChunk:
    """A chunk of a page with its headings."""

    text: str
    # cl100k_base tokens of ``text``.
    tokens: int
    heading_path: tuple[str, ...] = ()
    # URL fragment of its heading; '' if there is none.
    anchor: str = ""
    # For PDFs, the page that it begins on.
    page: int | None = None


@dataclass(frozen=True, slots=True)
class WebText:
    """Text of a page at one time."""

    title: str
    # Modification date that the page states, such as 2024-03-01; '' if none.
    day: str
    chunks: tuple[WebTextChunk, ...]

    @property
    def words(self) -> int:
        return sum(len(chunk.text.split()) for chunk in self.chunks)

    def _values(self) -> list[list[Any]]:
        return [list(astuple(one)) for one in self.chunks]

    @property
    def sha256(self) -> str:
        """Hash that identifies the text; pages with equal text share it."""
        return hashlib.sha256(json.dumps([self.title, self._values()]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class WebPage:
    """State of an approved address."""

    url: str
    state: PageState
    # Hash of the live text.
    sha256: str | None = None
    words: int = 0
    fetched_at: datetime | None = None
    changed_at: datetime | None = None
    error: str | None = None
    failing_since: datetime | None = None
    # Pages listed by a sitemap.
    listed: tuple[str, ...] | None = None
    validators: Mapping[str, str] = field(default_factory=dict)
    # Time of the next fetch.
    due_at: datetime | None = None

    @property
    def is_missing(self) -> bool:
        """True if it has no text and may be fetched now."""
        may_be_tried = self.due_at is None or self.due_at <= utc_now()
        return self.state is PageState.NEVER or (self.state is PageState.FAILED and may_be_tried)

    @property
    def has_failed_for_long(self) -> bool:
        """True if it has failed for so long that admins are notified."""
        return self.failing_since is not None and self.failing_since < utc_now() - FAILING_FOR


def chunks_of(values: Iterable[Sequence[Any]]) -> tuple[WebTextChunk, ...]:
    """Parse chunks, each [text, tokens, heading path, anchor, page]."""
    return tuple(
        WebTextChunk(text, tokens, tuple(path), anchor, page) for text, tokens, path, anchor, page in values
    )


class WebPageStore:
    """Pages by address, texts by hash."""

    def __init__(self, database: Database, cache_days: float = 30, retry_minutes: float = 15) -> None:
        """Renew pages after ``cache_days``, and retry failed ones after ``retry_minutes``."""
        self._database = database
        self._cached_for = timedelta(days=cache_days)
        self._retried_after = timedelta(minutes=retry_minutes)

    async def approve(self, urls: Collection[str]) -> None:
        """Set the approved addresses: others are deleted, new ones are due now."""
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
        """Return the states of these pages, in order."""
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
        """Return the addresses that are due, longest overdue first."""
        query = (
            select(col(WebPageRow.url))
            .where(self._is_due(utc_now()))
            .order_by(col(WebPageRow.due_at), col(WebPageRow.url))
        )
        async with self._database.snapshot() as session:
            return list(await session.scalars(query))

    def _is_due(self, now: datetime) -> ColumnElement[bool]:
        """Return the condition for a due page; a date too far in the future comes from a wrong clock."""
        due_at, retried = col(WebPageRow.due_at), self._retried_after
        is_failing = col(WebPageRow.error).is_not(None)
        is_too_long = due_at > now + self._cached_for + retried  # tolerates clock skew between machines
        return or_(due_at <= now, is_too_long, is_failing & (due_at > now + 2 * retried))

    async def claim(self, url: str, *, is_forced: bool = False) -> bool:
        """Claim a page for fetching: it is not due again before the retry interval ends.

        ``is_forced``: also claim one that failed and is not due yet.
        """
        now = utc_now()
        is_due = self._is_due(now)
        if is_forced:
            is_due |= col(WebPageRow.error).is_not(None)
        claimed = update(WebPageRow).where(col(WebPageRow.url) == url, is_due)
        async with self._database.transaction(exclusive=False) as session:
            done = await session.execute(claimed.values(due_at=now + self._retried_after))
            return isinstance(done, CursorResult) and bool(done.rowcount)

    async def store_text(self, url: str, text: WebText, validators: Mapping[str, str]) -> bool:
        """Store a page's text as its live one; return True if it changed."""
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
            if row is None:  # it was unapproved during the fetch
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

    async def mark_not_modified(self, url: str) -> None:
        """Renew a page that the server reports as not modified."""
        async with self._database.transaction(exclusive=False) as session:
            if row := await session.get(WebPageRow, url):
                self._renewed(row, utc_now(), row.validators)

    async def store_listing(self, url: str, listed: Sequence[str], validators: Mapping[str, str]) -> None:
        """Store the pages listed by a sitemap."""
        async with self._database.transaction(exclusive=False) as session:
            if row := await session.get(WebPageRow, url):
                row.listed = list(listed)
                self._renewed(row, utc_now(), validators)

    async def record_failure(self, url: str, error: str, channel_id: int | None = None) -> None:
        """Record that a page could not be fetched or read; its last text stays live.

        ``channel_id``: channel that the notice to admins refers to after a week of failures.
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
        """Return a live or cited text."""
        return (await self.texts([sha256])).get(sha256)

    async def texts(self, hashes: Collection[str]) -> dict[str, WebText]:
        """Return the stored ones of these texts by hash."""
        if not hashes:
            return {}
        columns = (WebTextRow.sha256, WebTextRow.title, WebTextRow.day, WebTextRow.chunks)
        found = select(*map(col, columns)).where(col(WebTextRow.sha256).in_(hashes))
        async with self._database.snapshot() as session:
            rows = await session.execute(found)
            return {sha256: WebText(title, day, chunks_of(chunks)) for sha256, title, day, chunks in rows}

    async def vectors(self, hashes: Collection[str], space: str) -> dict[str, Vectors]:
        """Return the vectors of these texts in this space, concatenated per text; missing if not computed."""
        if not hashes:
            return {}
        found = select(col(WebTextRow.sha256), col(WebTextRow.vectors)).where(
            col(WebTextRow.sha256).in_(hashes), col(WebTextRow.space) == space
        )
        async with self._database.snapshot() as session:
            rows = await session.execute(found)
            return {sha256: np.frombuffer(made, "<f4") for sha256, made in rows if made}

    async def without_vectors(self, space: str) -> list[str]:
        """Return the hashes of live texts without vectors in this space."""
        is_other = col(WebTextRow.space).is_(None) | (col(WebTextRow.space) != space)
        query = (
            select(col(WebTextRow.sha256))
            .join(WebPageRow, col(WebPageRow.sha256) == WebTextRow.sha256)
            .where(is_other)
            .distinct()
        )
        async with self._database.snapshot() as session:
            return list(await session.scalars(query))

    async def store_vectors(self, sha256: str, space: str, vectors: Vectors) -> None:
        """Store the vectors of a text's chunks, replacing those of another space."""
        async with self._database.transaction(exclusive=False) as session:
            if row := await session.get(WebTextRow, sha256):
                row.space, row.vectors = space, vectors.astype("<f4").tobytes()

    async def lost_quotes(self, channel_id: int | None = None) -> list[tuple[str, str]]:
        """Return (address, quote) of each shown quote that its page no longer contains.

        ``channel_id``: only quotes that were shown in this channel.
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
        """Delete texts that are neither live nor cited; return their number."""
        used = select(col(WebPageRow.sha256)).where(col(WebPageRow.sha256).is_not(None))
        cited = select(col(WebCitationRow.sha256))
        unused = col(WebTextRow.sha256).not_in(used) & col(WebTextRow.sha256).not_in(cited)
        async with self._database.snapshot() as session:
            if await session.scalar(select(col(WebTextRow.sha256)).where(unused).limit(1)) is None:
                return 0  # the usual case, without a write transaction
        async with self._database.transaction() as session:
            done = await session.execute(delete(WebTextRow).where(unused))
            return done.rowcount if isinstance(done, CursorResult) else 0


def _text_of(row: WebTextRow) -> WebText:
    return WebText(row.title, row.day, chunks_of(row.chunks))


async def _record_lost_quotes(
    session: AsyncSession, page: WebPageRow, before: WebText, after: WebText
) -> None:
    """Notify admins, once per channel, of shown quotes that a page no longer contains."""
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
    """Return a text's chunks in the form of quotes, in which the cells of a row have no bars."""
    return [" ".join(chunk.text.replace("|", " ").split()) for chunk in text.chunks] if text else []


def _holds(chunks: Sequence[str], quote: str) -> bool:
    """True if a chunk contains the quote."""
    return any(quote in chunk for chunk in chunks)


async def approved_pages(domains: Collection[WebDomain], store: WebPageStore) -> list[str]:
    """Return the pages of some domains without duplicates: named ones, then those listed by sitemaps."""
    sitemaps = [one for domain in domains for one in domain.sitemaps]
    listed = await store.pages([one.url for one in sitemaps])
    named = [url for domain in domains for url in domain.urls]
    for sitemap, page in zip(sitemaps, listed, strict=True):
        named += islice(filter(sitemap.covers, page.listed or ()), sitemap.most)
    return list(dict.fromkeys(named))


async def listed_pages(domains: Collection[WebDomain], store: WebPageStore) -> list[WebPage]:
    """Return the states of the sitemaps and pages of some domains."""
    sitemaps = [one.url for domain in domains for one in domain.sitemaps]
    return await store.pages(list(dict.fromkeys((*sitemaps, *(await approved_pages(domains, store))))))


def count_pages(pages: Collection[WebPage], changed_since: datetime) -> dict[str, int]:
    """Return counts of pages: per state, failing, failing for long, and changed since then."""
    states = [page.state for page in pages]
    return {
        "pages": len(pages),
        **{state.value: states.count(state) for state in PageState},
        "failing": sum(page.error is not None for page in pages),
        "failing_for_a_week": sum(page.has_failed_for_long for page in pages),
        "changed": sum(page.changed_at is not None and page.changed_at >= changed_since for page in pages),
    }

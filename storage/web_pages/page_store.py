"""Store of approved web pages: when each was fetched and is due again. Its text is a document.

A page that cannot be fetched keeps its last text. The document of one that is no longer approved is deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from uuid import UUID

from sqlalchemy import ColumnElement, CursorResult, delete, exists, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from storage.chat.channels import Channels
from storage.chat.notification_events import record_source_changed, record_source_failed
from storage.clock import utc_now
from storage.files.reading_files import ReadingFiles
from storage.folders.folders import Folder, Folders
from storage.models import Channel
from storage.sql.database import Database
from storage.sql.document_state import document_state, live_reading, live_version
from storage.sql.tables import (
    IS_PRESENT,
    CitationRow,
    DocumentRow,
    PublicationRow,
    VersionRow,
    WebPageRow,
)
from storage.web_pages.web_sources import SOURCES_NAME, WebDomain

# Failing time after which admins are notified.
FAILING_FOR = timedelta(days=7)
# Time after a change in which its new text becomes searchable, and quotes are compared with it.
COMPARED_FOR = timedelta(hours=1)


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
class WebPage:
    """State of an approved address."""

    url: str
    state: PageState
    # Its document, while it is searchable.
    document: UUID | None = None
    # Hash of the last text.
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
    def is_being_read(self) -> bool:
        """True if it was fetched, but is not searchable yet."""
        return self.sha256 is not None and self.document is None

    @property
    def has_failed_for_long(self) -> bool:
        """True if it has failed for so long that admins are notified."""
        return self.failing_since is not None and self.failing_since < utc_now() - FAILING_FOR


@dataclass(frozen=True, slots=True)
class LostQuote:
    """A quote that was shown in a channel, and that its page no longer contains."""

    url: str
    quote: str
    channel_id: int
    # Version that was cited.
    version_id: int


class WebPageStore:
    """Pages by address, and their documents."""

    def __init__(
        self,
        database: Database,
        readings: ReadingFiles,
        cache_days: float = 30,
        retry_minutes: float = 15,
    ) -> None:
        """Renew pages after ``cache_days``, and retry failed ones after ``retry_minutes``."""
        self._database = database
        self._readings = readings
        self._folders = Folders(database)
        self._folder: Folder | None = None
        self._cached_for = timedelta(days=cache_days)
        self._retried_after = timedelta(minutes=retry_minutes)

    async def channel(self) -> Channel:
        """Return the hidden channel of the pages' documents."""
        return await Channels(self._database).ensure_web_pages()

    async def folder(self) -> Folder:
        """Return the folder of the pages' documents."""
        if self._folder is None:
            channel = await self.channel()
            self._folder = await self._folders.ensure(channel.id, SOURCES_NAME, watched=False)
        return self._folder

    async def approve(self, urls: Collection[str]) -> None:
        """Set the approved addresses: others are deleted with their documents, new ones are due now."""
        wanted = set(urls)
        async with self._database.snapshot() as session:
            known = set(await session.scalars(select(col(WebPageRow.url))))
        if known != wanted:
            await self._replace(known, wanted)
        if known or wanted:
            await self._delete_unapproved()

    async def _replace(self, known: set[str], wanted: set[str]) -> None:
        now = utc_now()
        async with self._database.transaction(exclusive=False) as session:
            if new := [{"url": url, "due_at": now, "validators": {}} for url in sorted(wanted - known)]:
                await session.execute(insert(WebPageRow).on_conflict_do_nothing(), new)
            if gone := known - wanted:
                await session.execute(delete(WebPageRow).where(col(WebPageRow.url).in_(gone)))

    async def _delete_unapproved(self) -> None:
        """Delete the documents of pages that are not, or no longer, approved."""
        folder = await self.folder()
        is_approved = exists().where(col(WebPageRow.url) == DocumentRow.file)
        here = select(col(DocumentRow.id), col(DocumentRow.file)).where(
            col(DocumentRow.folder_id) == folder.id, text(f"document.{IS_PRESENT}"), ~is_approved
        )
        async with self._database.snapshot() as session:
            gone = {document: file for document, file in await session.execute(here)}
        if gone:
            await self._folders.delete(folder.id, gone)

    async def pages(self, urls: Collection[str]) -> list[WebPage]:
        """Return the states of these pages, in order."""
        if not urls:
            return []
        folder = await self.folder()
        is_live = exists().where(
            col(VersionRow.document_id) == DocumentRow.id,
            col(PublicationRow.version_id) == VersionRow.id,
            col(PublicationRow.state) == "live",
        )
        documents = select(col(DocumentRow.file), col(DocumentRow.id)).where(
            col(DocumentRow.folder_id) == folder.id,
            col(DocumentRow.file).in_(urls),
            text(f"document.{IS_PRESENT}"),
            is_live,
        )
        async with self._database.snapshot() as session:
            rows = await session.scalars(select(WebPageRow).where(col(WebPageRow.url).in_(urls)))
            found = {row.url: row for row in rows}
            live = {file: document for file, document in await session.execute(documents)}
        return [
            self._page(found[url], live.get(url)) if url in found else WebPage(url, PageState.NEVER)
            for url in urls
        ]

    def _page(self, row: WebPageRow, document: UUID | None) -> WebPage:
        is_known = row.sha256 is not None or row.listed is not None
        is_old = row.fetched_at is not None and row.fetched_at + self._cached_for < utc_now()
        if is_known:
            state = PageState.STALE if is_old else PageState.FRESH
        else:
            state = PageState.FAILED if row.error else PageState.NEVER
        return WebPage(
            row.url,
            state,
            document,
            row.sha256,
            row.words,
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

    async def mark_read(self, url: str, sha256: str, words: int, validators: Mapping[str, str]) -> None:
        """Renew a page that was read; ``sha256`` is that of its text."""
        async with self._database.transaction(exclusive=False) as session:
            if row := await session.get(WebPageRow, url):
                if row.sha256 != sha256:
                    row.changed_at = utc_now() if row.sha256 else None
                row.sha256, row.words = sha256, words
                self._renewed(row, utc_now(), validators)

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

    async def lost_quotes(
        self, channel_id: int | None = None, changed_since: datetime | None = None
    ) -> list[LostQuote]:
        """Return each shown quote that its page no longer contains.

        Args:
            channel_id: only quotes that were shown in this channel.
            changed_since: only pages that changed since then.
        """
        folder = await self.folder()
        query = (
            document_state.add_columns(
                col(DocumentRow.file),
                col(CitationRow.quote),
                col(CitationRow.channel_id),
                col(CitationRow.version_id),
                col(live_reading.id),
            )
            .join(VersionRow, col(VersionRow.document_id) == DocumentRow.id)
            .join(CitationRow, col(CitationRow.version_id) == VersionRow.id)
            .join(WebPageRow, col(WebPageRow.url) == DocumentRow.file)
            .where(col(DocumentRow.folder_id) == folder.id, col(DocumentRow.state) != "deleted")
            .where(col(live_version.number) > VersionRow.number)
            .order_by(col(CitationRow.created_at))
        )
        if channel_id is not None:
            query = query.where(col(CitationRow.channel_id) == channel_id)
        if changed_since is not None:
            query = query.where(col(WebPageRow.changed_at) >= changed_since)
        async with self._database.snapshot() as session:
            rows = (await session.execute(query)).all()
        texts = {reading: await self._texts(reading) for reading in {row[-1] for row in rows}}
        found = [
            LostQuote(*shown)
            for *shown, reading in rows
            if not any(shown[1] in one for one in texts[reading])
        ]
        return list(dict.fromkeys(found))

    async def _texts(self, reading: UUID) -> list[str]:
        """Return a page's chunks in the form of quotes, in which the cells of a row have no bars."""
        chunks = await self._readings.wordless_chunks(reading)
        return [" ".join(chunk.text.replace("|", " ").split()) for chunk in chunks]

    async def record_lost_quotes(self) -> None:
        """Notify admins, once per channel and cited version, of quotes that a page has just lost."""
        if lost := await self.lost_quotes(changed_since=utc_now() - COMPARED_FOR):
            async with self._database.transaction(exclusive=False) as session:
                for one in lost:
                    await record_source_changed(session, one.url, one.channel_id, one.version_id, one.quote)


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

"""Opening of signed links: verifies signature, channel, document and citation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import web

from bot.answers.citations.citations import DocumentNames
from bot.answers.citations.signed_links import LinkClaims, Links, Purpose, is_token
from bot.core.errors import LinkEnded, LinkError, LinkForged
from bot.core.models import Language
from bot.core.ports import LinkPreview
from bot.core.wording import reply_words
from storage.clock import monotonic_seconds
from storage.errors import InfrastructureError, UnknownChannel, raised_at
from storage.lru_cache import LRUCache
from storage.models import CitationRecord, TenantName, VersionSource
from storage.sql.audit import OPEN_LINK, AuditedAction, AuditLog
from storage.stores import Stores
from storage.task_group import cancel_and_wait

# Actor of link openings in the audit log: anyone who has the link.
BEARER = "link"
# Openings queued for the audit log; more are dropped.
QUEUE_SIZE = 200
# Debounce: openings of one citation within this time are one entry.
DEBOUNCE_SECONDS = 60.0
# LRU size: citations whose last entry is remembered.
LRU_SIZE = 10_000
CLOSE_SECONDS = 5.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VerifiedLink:
    """Valid link, and what it opens."""

    claims: LinkClaims
    source: VersionSource
    citation: CitationRecord
    # Tenant of the link's channel.
    tenant: TenantName

    @property
    def holder(self) -> int:
        """Holder for fair turns: all links of one answer share a holder."""
        return self.citation.answer_id or self.citation.id


class LinkAudit:
    """Audit of opened links by citation id, written in the background.

    Entries are written one at a time, at most one a minute per citation: under a flood the audit may miss
    some, but nothing else waits for the database.
    """

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit
        self._waiting: asyncio.Queue[VerifiedLink] = asyncio.Queue(QUEUE_SIZE)
        # Citation id -> monotonic seconds of its last entry.
        self._last_entries: LRUCache[int, float] = LRUCache(LRU_SIZE)

    def enqueue(self, request: web.Request, link: VerifiedLink) -> None:
        """Queue an entry for an opened link; range requests belong to the same opening."""
        if request.method != "GET" or "Range" in request.headers:
            return
        now, citation = monotonic_seconds(), link.claims.citation_id
        noted = self._last_entries.get(citation)
        if noted is not None and now - noted < DEBOUNCE_SECONDS:
            return
        try:
            self._waiting.put_nowait(link)
        except asyncio.QueueFull:
            _log.warning("audit entry of an opened link dropped: queue is full")
        else:
            self._last_entries[citation] = now

    async def cleanup_context(self, _app: web.Application) -> AsyncIterator[None]:
        """Write entries while the application serves, and flush the queue at shutdown."""
        keeping = asyncio.create_task(self._run(), name="link-audit")
        yield
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._waiting.join()
        await cancel_and_wait(keeping)

    async def _run(self) -> None:
        while True:
            link = await self._waiting.get()
            try:
                await self._write(link)
            finally:
                self._waiting.task_done()

    async def _write(self, link: VerifiedLink) -> None:
        citation = link.claims.citation_id
        try:
            await self._audit.record(AuditedAction(BEARER, OPEN_LINK, link.tenant, f"citation {citation}"))
        except InfrastructureError as error:
            self._last_entries.pop(citation, None)
            _log.warning("audit entry of an opened link failed: %s", raised_at(error))


async def verify_link(
    token: str, links: Links, stores: Stores, purpose: Purpose = Purpose.PAGE
) -> VerifiedLink:
    """Verify a token's signature, purpose, channel, document and citation.

    Raises:
        LinkForged: the token was not signed by us.
        LinkEnded: it has expired, was revoked, or its document is gone.
        storage.errors.InfrastructureError: SQL is unreachable, and a known key signed the link.
    """
    await _refresh_keys(token, links, purpose)
    try:
        claims = links.read(token, purpose)
    except LinkEnded as ended:
        raise await _with_place(ended, stores) from None
    source = await stores.catalog.version_source(claims.version_id)
    citation = await stores.citations.get(claims.citation_id)
    try:
        channel = await stores.channels.get(claims.channel_id)
    except UnknownChannel:
        raise LinkEnded("its channel is gone") from None
    if channel.epoch != claims.epoch:
        raise LinkEnded("revoked")
    if source is None or source.is_deleted or source.channel_id != claims.channel_id:
        raise LinkEnded("its document is gone")
    signed = (claims.channel_id, claims.version_id, claims.page)
    if citation is not None and citation.revoked_at is not None:
        raise LinkEnded("revoked")
    if citation is None or (citation.channel_id, citation.version_id, citation.page) != signed:
        raise LinkEnded("its citation is gone")
    return VerifiedLink(claims, source, citation, channel.tenant)


async def _refresh_keys(token: str, links: Links, purpose: Purpose) -> None:
    """Refresh the keys if this is a token; if that fails, the known keys still detect forgeries."""
    if not is_token(token):
        raise LinkForged("not a token")
    try:
        await links.refresh_keys()
    except InfrastructureError:
        links.read(token, purpose)
        raise


async def _with_place(ended: LinkEnded, stores: Stores) -> LinkEnded:
    """Add to the error where its answer is: there a member gets a new link."""
    if ended.channel_id is None:
        return ended
    try:
        channel = await stores.channels.get(ended.channel_id)
    except UnknownChannel:
        return ended
    shown = await stores.citations.shown_in(ended.citation_id) if ended.citation_id is not None else None
    return LinkEnded(str(ended), ended.channel_id, place=(channel, shown))


async def preview_link(url: str, links: Links, stores: Stores) -> LinkPreview | None:
    """Return a preview of what a URL opens, None unless it is a valid link of ours.

    Raises:
        storage.errors.InfrastructureError: SQL is unreachable.
    """
    if not url.startswith(f"{links.public_url}/v/"):
        return None
    try:
        link = await verify_link(links.viewer_path(url).removeprefix("/v/"), links, stores)
    except LinkError:
        return None
    source, page = link.source, link.citation.page
    channel = await stores.channels.get(source.channel_id)
    names = await DocumentNames(stores.catalog).names_of_versions(channel.id, [source.version_id])
    label = reply_words(Language.ENGLISH).source_label(
        page, names.get(source.version_id, source.title), is_ocr=page in source.ocr_pages
    )
    return LinkPreview(channel.tenant, label, link.citation.quote)


async def has_link_ended(url: str, links: Links, stores: Stores) -> bool:
    """True if a URL is one of our links to a page and no longer opens it.

    Raises:
        storage.errors.InfrastructureError: SQL is unreachable.
    """
    if not url.startswith(f"{links.public_url}/v/"):
        return False
    try:
        await verify_link(links.viewer_path(url).removeprefix("/v/"), links, stores)
    except LinkEnded:
        return True
    except LinkError:
        return False
    return False


@dataclass(frozen=True, slots=True)
class AnswerQuote:
    """Quote of the link's answer, and the token that opens it."""

    record: CitationRecord
    source: VersionSource
    token: str
    # True for the quote that the link itself cites.
    is_current: bool

    @property
    def place(self) -> str:
        """Page and document, in words."""
        return f"page {self.record.page} of {self.source.title}"


async def quotes_of(link: VerifiedLink, token: str, links: Links, stores: Stores) -> list[AnswerQuote]:
    """Return all quotes of the link's answer by number, except those whose document is gone.

    Their tokens expire with ``token``. A quote whose answer is unknown is returned alone.
    """
    records = await stores.citations.of_answer(link.citation)
    sources = {link.claims.version_id: link.source}
    for version in {one.version_id for one in records} - sources.keys():
        source = await stores.catalog.version_source(version)
        if source and not source.is_deleted and source.channel_id == link.claims.channel_id:
            sources[version] = source
    return [
        AnswerQuote(
            one,
            sources[one.version_id],
            links.token_for_citation(token, one),
            is_current=one.id == link.claims.citation_id,
        )
        for one in records
        if one.version_id in sources
    ]

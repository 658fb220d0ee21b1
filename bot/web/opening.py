"""Decides at every request whether a link still opens its page: the signature first, then SQL."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.errors import LinkEnded
from bot.core.links import LinkClaims, Links
from bot.web.ports import WebStores
from storage.errors import UnknownChannel
from storage.models import Channel, CitationRecord, VersionSource


@dataclass(frozen=True, slots=True)
class OpenLink:
    """A link that holds right now, and what it opens."""

    claims: LinkClaims
    source: VersionSource
    citation: CitationRecord


async def open_link(token: str, links: Links, stores: WebStores) -> OpenLink:
    """Check a token against its signature, its channel, its document and its citation.

    Raises:
        LinkForged: we never signed this.
        LinkEnded: it has expired, was revoked, or its document is gone.
    """
    claims = links.read(token)
    source = await stores.catalog.source(claims.version_id)
    citation = await stores.citations.get(claims.citation_id)
    if not await _is_in_force(claims, stores):
        raise LinkEnded("revoked")
    if source is None or source.is_deleted or source.channel_id != claims.channel_id:
        raise LinkEnded("its document is gone")
    if citation is None or not _is_what_was_signed(citation, claims):
        raise LinkEnded("its citation is gone")
    return OpenLink(claims, source, citation)


async def _is_in_force(claims: LinkClaims, stores: WebStores) -> bool:
    channel = await _channel(claims.channel_id, stores)
    return channel is not None and channel.epoch == claims.epoch


async def _channel(channel_id: int, stores: WebStores) -> Channel | None:
    try:
        return await stores.channels.get(channel_id)
    except UnknownChannel:
        return None


def _is_what_was_signed(citation: CitationRecord, claims: LinkClaims) -> bool:
    signed = (claims.channel_id, claims.version_id, claims.page)
    return (citation.channel_id, citation.version_id, citation.page) == signed

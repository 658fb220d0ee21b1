"""What the web rooms need from the parts around them; each is satisfied by shape."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import UUID

from bot.core.thread_ports import ThreadMemoryPort
from storage.folder_status import FolderStatus
from storage.models import Channel, CitationRecord, DocumentStatus, Page, Platform, VersionSource
from storage.notice_models import Notice
from storage.progress import Progress


class ChannelsPort(Protocol):
    """Knows the channels."""

    async def get(self, channel_id: int) -> Channel:
        """One channel.

        Raises:
            storage.errors.UnknownChannel: there is none of this id.
        """

    async def all(self, platform: Platform | None = None) -> Sequence[Channel]:
        """The channels, of one platform or of all."""


class CatalogPort(Protocol):
    """Knows the documents."""

    async def recent(self, channel_id: int, limit: int) -> Sequence[DocumentStatus]:
        """What people look for first: files that cannot be read, then the newest."""

    async def source(self, version_id: int) -> VersionSource | None:
        """The version that a link opens, or None when nothing is known of it."""

    async def progress(self, channel_id: int | None) -> Progress:
        """How far a channel, or all of them, has come."""


class FoldersPort(Protocol):
    """Knows the watched places."""

    async def status(self) -> Sequence[FolderStatus]:
        """Every folder, with what is wrong with it."""

    async def approve(self, folder_id: int, shown: Collection[UUID] | None = None) -> int:
        """Let the documents go that an admin was shown as vanished; returns how many."""


class RecentNoticesPort(Protocol):
    """Knows what people were told."""

    async def recent(self, channel_id: int, limit: int) -> Sequence[Notice]:
        """The newest notices of a channel that are still true."""


class CitationsPort(Protocol):
    """Keeps what was shown."""

    async def get(self, citation_id: int) -> CitationRecord | None:
        """One citation, or None when it is gone."""


class PageTexts(Protocol):
    """Keeps what was read."""

    async def page(self, reading_id: UUID, number: int) -> Page:
        """One page of a reading: its text, and where every word of it stands."""


class DrawnPage(Protocol):
    """A page drawn as a picture."""

    @property
    def data(self) -> bytes: ...

    @property
    def media_type(self) -> str: ...


class PageRendererPort(Protocol):
    """Draws pages, in a limited child process."""

    async def render(self, path: Path, page: int, dpi: int) -> DrawnPage:
        """Draw one page.

        Raises:
            storage.errors.DocumentError: this page cannot be drawn.
            storage.errors.InfrastructureError: the child could not be started.
        """


class BlobPaths(Protocol):
    """Knows where contents lie."""

    def path(self, sha256: str) -> Path:
        """The file that holds a content."""


@dataclass(frozen=True, slots=True)
class WebStores:
    """The parts that a link is checked against and its page is shown from."""

    channels: ChannelsPort
    catalog: CatalogPort
    citations: CitationsPort
    readings: PageTexts
    blobs: BlobPaths
    folders: FoldersPort
    notices: RecentNoticesPort
    memory: ThreadMemoryPort

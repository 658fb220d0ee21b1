"""Interface to the file storage of a chat platform."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class FileDownload:
    """A file being downloaded from its platform."""

    # Name given by the uploader; untrusted.
    name: str
    media_type: str
    # Bytes declared by the platform; not reliable.
    size: int
    # The content in order; raises ``DeliveryError`` if the download breaks off.
    chunks: AsyncIterator[bytes]


class FileHost(Protocol):
    """File storage of one chat platform."""

    @property
    def serves_channels(self) -> bool:
        """True if the bot gets files of channels, not only of direct chats."""

    def open(self, address: Mapping[str, Any]) -> AbstractAsyncContextManager[FileDownload]:
        """Download the file of a message by the address that the platform's adapter made.

        Raises:
            bot.core.errors.FileUnavailable: the file was deleted, or we have no access.
            bot.core.errors.DeliveryError: the platform did not answer, or rate-limited us.
        """

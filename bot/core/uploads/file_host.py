"""The border behind which a chat platform keeps what people upload."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class FileDownload:
    """A file that is being fetched from its platform."""

    # As whoever uploaded it calls it: any text.
    name: str
    media_type: str
    # In bytes, as the platform says: no promise.
    size: int
    # Its bytes, in order; raises ``DeliveryError`` where they break off.
    chunks: AsyncIterator[bytes]


class FileHost(Protocol):
    """Where one platform keeps what people upload."""

    def open(self, address: Mapping[str, Any]) -> AbstractAsyncContextManager[FileDownload]:
        """Fetch the file of a message by its address, as the platform's adapter made it.

        Raises:
            bot.core.errors.FileUnavailable: it is gone, or we may not have it.
            bot.core.errors.DeliveryError: the platform did not answer, or asked us to wait.
        """

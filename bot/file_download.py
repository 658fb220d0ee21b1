"""Downloads files that people upload in a chat, from the URL that the platform gave."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import aiohttp
from yarl import URL

from bot.core.errors import DeliveryError, FileUnavailable

CHUNK_BYTES = 1 << 16
_TIMEOUT = aiohttp.ClientTimeout(total=300, sock_connect=10, sock_read=30)


@asynccontextmanager
async def open_download(
    url: str, platform: str, headers: Mapping[str, str] | None = None
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Request a file without following redirects; ``platform`` is named in errors.

    The body is not decompressed: the bytes counted and written are the bytes sent.

    Raises:
        DeliveryError: the host did not answer, or asked to retry later (429, 5xx).
        FileUnavailable: the host refused the file.
    """
    headers = {**(headers or {}), "Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(timeout=_TIMEOUT, auto_decompress=False) as session:
        with _map_connection_errors():
            response = await session.get(URL(url, encoded=True), headers=headers, allow_redirects=False)
        async with response:
            if response.status == 429 or response.status >= 500:
                raise DeliveryError(f"{platform} answered {response.status} to a file's address")
            if response.status != 200:
                raise FileUnavailable(f"{platform} answered {response.status} to its address")
            yield response


async def read_chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the bytes of a file, in order.

    Raises:
        DeliveryError: the connection breaks off.
    """
    while True:
        with _map_connection_errors():
            chunk = await response.content.read(CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


@contextmanager
def _map_connection_errors() -> Iterator[None]:
    try:
        yield
    except UnicodeError as error:  # a retry would not help
        raise FileUnavailable("its address names a host that cannot exist") from error
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise DeliveryError(f"a file could not be fetched: {type(error).__name__}") from error

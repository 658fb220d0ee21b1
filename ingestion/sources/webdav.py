"""WebDAV through webdav4, the client behind fsspec's ``webdav://``.

Names are quoted here, because the client takes ``#``, ``?`` and ``%`` in them for parts of a URL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from urllib.parse import quote, unquote, urlsplit

import httpx
from webdav4.client import (
    Client,
    ForbiddenOperation,
    HTTPError,
    IsAResourceError,
    ResourceLocked,
    ResourceNotFound,
)
from webdav4.multistatus import Response

from ingestion.sources.address import Address
from ingestion.sources.port import Look
from ingestion.sources.settings import ShareAccount, ShareSettings, secret
from ingestion.sources.share import (
    BUSY,
    FORBIDDEN,
    MISSING,
    SILENT,
    UNREACHABLE,
    Busy,
    Entry,
    Forbidden,
    Meanings,
    Missing,
    Parts,
    Stream,
    Trouble,
    trouble_by_type,
    wrong_account,
)

ACCOUNT = "FOOTNOTE_WEBDAV_USER and FOOTNOTE_WEBDAV_PASSWORD, or FOOTNOTE_WEBDAV_TOKEN"
_STATUS = "The WebDAV server answered with status {}: is the address right, and the server well?"
_BY_STATUS: dict[int, Callable[[], Trouble]] = {
    401: partial(wrong_account, ACCOUNT),
    403: partial(Forbidden, FORBIDDEN),
    404: partial(Missing, MISSING),
    416: partial(Busy, BUSY),
    423: partial(Busy, BUSY),
}
_BY_TYPE: Meanings = (
    ((ForbiddenOperation,), partial(Forbidden, FORBIDDEN)),
    ((ResourceNotFound, IsAResourceError), partial(Missing, MISSING)),
    ((ResourceLocked,), partial(Busy, BUSY)),
    ((httpx.TimeoutException,), partial(Trouble, SILENT)),
    ((httpx.TransportError,), partial(Trouble, UNREACHABLE)),
)


def connect(address: Address, settings: ShareSettings) -> WebdavShare:
    """Prepare a client for ``webdavs://server[:port]/path``, or ``webdav://`` without TLS."""
    account = settings.account(address)
    scheme = "https" if address.protocol == "webdavs" else "http"
    client = Client(
        f"{scheme}://{address.server}",
        auth=_login(address, account),
        headers={"Authorization": f"Bearer {secret(account.token)}"} if account.token else {},
        timeout=settings.share_timeout,
        retry=False,  # the next scan is the retry
    )
    return WebdavShare(client, "/".join(address.parts))


class WebdavShare:
    """Implements ``Share`` over WebDAV."""

    def __init__(self, client: Client, root: str) -> None:
        """A folder by its path on the server."""
        self._client = client
        self._root = root

    def list(self, folder: Parts) -> Iterator[Entry]:
        """One folder's files and folders."""
        for found in self._propfind(folder, "1"):
            parts, is_folder = _parts(found, self._root), found.properties.resource_type == "directory"
            if parts == folder and not is_folder:
                raise Missing(MISSING)
            if parts and parts[:-1] == folder:
                yield Entry(parts, None if is_folder else _look(found))

    def look(self, file: Parts) -> Look:
        """One file."""
        for found in self._propfind(file, "0"):
            if found.properties.resource_type != "directory":
                return _look(found)
        raise Missing("There is no such file.")

    @contextmanager
    def open(self, file: Parts, look: Look, start: int) -> Iterator[Stream]:
        """The file's bytes, as they are stored."""
        headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={start}-"} if start else {})}
        with self._client.http.stream("GET", f"/{self._path(file)}", headers=headers) as response:
            if response.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
                raise httpx.HTTPStatusError("", request=response.request, response=response)
            yield _Body(response, start if response.status_code == httpx.codes.OK else 0)

    def trouble(self, error: Exception) -> Trouble:
        """What an error of webdav4 or httpx means."""
        return _trouble(error)

    def close(self) -> None:
        """Close the connections."""
        self._client.http.close()

    def _propfind(self, parts: Parts, depth: str) -> Iterator[Response]:
        found = self._client.propfind(self._path(parts), headers={"Depth": depth}, follow_redirects=True)
        yield from found.responses.values()

    def _path(self, parts: Parts) -> str:
        return quote("/".join(part for part in (self._root, *parts) if part), safe="/")


class _Body:
    """The bytes of one answer, in blocks of the size that is asked for at most."""

    def __init__(self, response: httpx.Response, skip: int) -> None:
        self._blocks = response.iter_raw()
        self._left = b""
        self._skip = skip

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; those before the start are skipped where a server knows no ranges."""
        while not self._left:
            if (block := next(self._blocks, None)) is None:
                return b""
            self._left, self._skip = block[self._skip :], max(0, self._skip - len(block))
        block, self._left = self._left[:size], self._left[size:]
        return block


def _login(address: Address, account: ShareAccount) -> tuple[str, str] | None:
    user = address.user or account.user
    return (user, secret(account.password) or "") if user and not account.token else None


def _parts(found: Response, root: str) -> Parts | None:
    """Where an entry lies below the root; None for what does not, whatever the server says."""
    path = unquote(urlsplit(found.href).path, errors="surrogateescape").strip("/")
    if path == root:
        return ()
    if not path.startswith(f"{root}/" if root else ""):
        return None
    return tuple(path[len(root) :].lstrip("/").split("/"))


def _look(found: Response) -> Look:
    known = found.properties
    modified = int(known.modified.timestamp()) * 10**9 if known.modified else 0
    return Look(known.content_length or 0, modified, 0, 0, known.etag or "")


def _trouble(error: Exception) -> Trouble:
    status = _status(error)
    if (make := _BY_STATUS.get(status or 0)) is not None:
        return make()
    return trouble_by_type(error, _BY_TYPE) if status is None else Trouble(_STATUS.format(status))


def _status(error: Exception) -> int | None:
    return error.response.status_code if isinstance(error, HTTPError | httpx.HTTPStatusError) else None

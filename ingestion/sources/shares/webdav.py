"""WebDAV share through webdav4, the client behind fsspec's ``webdav://``.

Names are quoted here, because the client takes ``#``, ``?`` and ``%`` for URL syntax.
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

from ingestion.sources.base import FileStat, Parts
from ingestion.sources.shares.address import ShareAddress
from ingestion.sources.shares.remote_source import (
    BUSY,
    FORBIDDEN,
    MISSING,
    SILENT,
    UNREACHABLE,
    ErrorTable,
    ShareEntry,
    ShareError,
    ShareFileBusy,
    ShareFileMissing,
    ShareForbidden,
    Stream,
    share_error_by_type,
    wrong_account,
)
from ingestion.sources.shares.settings import ShareSettings, secret

ACCOUNT = "FOOTNOTE_WEBDAV_USER and FOOTNOTE_WEBDAV_PASSWORD, or FOOTNOTE_WEBDAV_TOKEN"
_STATUS = "The WebDAV server answered with status {}: is the address right, and the server well?"
_BY_STATUS: dict[int, Callable[[], ShareError]] = {
    401: partial(wrong_account, ACCOUNT),
    403: partial(ShareForbidden, FORBIDDEN),
    404: partial(ShareFileMissing, MISSING),
    416: partial(ShareFileBusy, BUSY),
    423: partial(ShareFileBusy, BUSY),
}
_BY_TYPE: ErrorTable = (
    ((ForbiddenOperation,), partial(ShareForbidden, FORBIDDEN)),
    ((ResourceNotFound, IsAResourceError), partial(ShareFileMissing, MISSING)),
    ((ResourceLocked,), partial(ShareFileBusy, BUSY)),
    ((httpx.TimeoutException,), partial(ShareError, SILENT)),
    ((httpx.TransportError,), partial(ShareError, UNREACHABLE)),
)


def connect(address: ShareAddress, settings: ShareSettings) -> WebdavShare:
    """Create a client for ``webdavs://server[:port]/path``, or ``webdav://`` without TLS."""
    account = settings.account(address)
    scheme = "https" if address.protocol == "webdavs" else "http"
    user = address.user or account.user
    client = Client(
        f"{scheme}://{address.server}",
        auth=(user, secret(account.password) or "") if user and not account.token else None,
        headers={"Authorization": f"Bearer {secret(account.token)}"} if account.token else {},
        timeout=settings.share_timeout,
        retry=False,  # the next scan is the retry
    )
    return WebdavShare(client, "/".join(address.parts))


class WebdavShare:
    """``Share`` over WebDAV."""

    def __init__(self, client: Client, root: str) -> None:
        """Use the folder at the path ``root`` on the server."""
        self._client = client
        self._root = root

    def list(self, folder: Parts) -> Iterator[ShareEntry]:
        """Yield the files and folders in a folder."""
        for found in self._propfind(folder, "1"):
            parts, is_folder = _parts(found, self._root), found.properties.resource_type == "directory"
            if parts == folder and not is_folder:
                raise ShareFileMissing(MISSING)
            if parts and parts[:-1] == folder:
                yield ShareEntry(parts, None if is_folder else _file_stat(found))

    def stat(self, file: Parts) -> FileStat:
        """Return the stat of a file."""
        for found in self._propfind(file, "0"):
            if found.properties.resource_type != "directory":
                return _file_stat(found)
        raise ShareFileMissing("There is no such file.")

    @contextmanager
    def open(self, file: Parts, file_stat: FileStat, start: int) -> Iterator[Stream]:
        """Yield the file's bytes as stored, without content encoding."""
        headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={start}-"} if start else {})}
        with self._client.http.stream("GET", f"/{self._path(file)}", headers=headers) as response:
            if response.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
                raise httpx.HTTPStatusError("", request=response.request, response=response)
            yield _Body(response, start if response.status_code == httpx.codes.OK else 0)

    def as_share_error(self, error: Exception) -> ShareError:
        """Map an error of webdav4 or httpx."""
        if not isinstance(error, HTTPError | httpx.HTTPStatusError):
            return share_error_by_type(error, _BY_TYPE)
        make = _BY_STATUS.get(status := error.response.status_code)
        return make() if make else ShareError(_STATUS.format(status))

    def close(self) -> None:
        """Close the connections."""
        self._client.http.close()

    def _propfind(self, parts: Parts, depth: str) -> Iterator[Response]:
        found = self._client.propfind(self._path(parts), headers={"Depth": depth}, follow_redirects=True)
        yield from found.responses.values()

    def _path(self, parts: Parts) -> str:
        return quote("/".join(part for part in (self._root, *parts) if part), safe="/")


class _Body:
    """Body of a response, readable in limited blocks."""

    def __init__(self, response: httpx.Response, skip: int) -> None:
        self._blocks = response.iter_raw()
        self._left = b""
        self._skip = skip

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes; skips to the offset itself if the server ignores ranges."""
        while not self._left:
            if (block := next(self._blocks, None)) is None:
                return b""
            self._left, self._skip = block[self._skip :], max(0, self._skip - len(block))
        block, self._left = self._left[:size], self._left[size:]
        return block


def _parts(found: Response, root: str) -> Parts | None:
    """Return the path of an entry below the root; None if it is outside, whatever the server says."""
    path = unquote(urlsplit(found.href).path, errors="surrogateescape").strip("/")
    if path == root:
        return ()
    if not path.startswith(f"{root}/" if root else ""):
        return None
    return tuple(path[len(root) :].lstrip("/").split("/"))


def _file_stat(found: Response) -> FileStat:
    known = found.properties
    modified = int(known.modified.timestamp()) * 10**9 if known.modified else 0
    return FileStat(known.content_length or 0, modified, 0, 0, known.etag or "")

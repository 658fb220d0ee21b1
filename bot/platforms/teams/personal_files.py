"""Files sent in personal chats of Teams: parsing of messages with files, and their download.

Teams passes files to bots in personal chats only, as pre-authenticated SharePoint URLs. They are fetched over
https, without redirects and from SharePoint's hosts only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from yarl import URL

from bot.core.errors import FileUnavailable
from bot.core.plaintext import replace_invalid_chars
from bot.core.ports import IncomingMessage
from bot.file_download import open_download, read_chunks
from bot.loopback import is_loopback_host
from bot.platforms.teams.activities import part, place_of, read_activity
from bot.platforms.teams.address import TeamsAddress
from bot.platforms.teams.connector import ServiceUrlCheck
from bot.uploads.file_host import FileDownload
from bot.uploads.message_files import MessageFile, TakesFiles, split_message
from storage.readers.registry import READERS

Json = Mapping[str, Any]

FILE = "application/vnd.microsoft.teams.file.download.info"
# Host suffixes of file downloads in all of Microsoft's clouds.
SHAREPOINT_HOSTS = (".sharepoint.com", ".sharepoint.us", ".sharepoint-mil.us", ".sharepoint.cn")
MAX_ID_CHARS = 100


def read_messages(activity: Json, home: str | None, takes_files: TakesFiles) -> list[IncomingMessage]:
    """Return the question of an activity and a message for each of its files.

    Files are read in direct chats only, so other tenants cannot add documents. ``home``: as in
    ``read_activity``.
    """
    said = read_activity(activity, home)
    if said is None:
        return []
    place = place_of(activity, home)
    files = _files(activity) if place and place.is_direct else []
    return split_message(said, said, files, is_taken=bool(files) and takes_files(said))


def _files(activity: Json) -> list[MessageFile]:
    attachments = activity.get("attachments")
    found = []
    for number, one in enumerate(attachments if isinstance(attachments, list) else ()):
        if isinstance(one, Mapping) and one.get("contentType") == FILE:
            content = part(one, "content")
            name = replace_invalid_chars(str(one.get("name") or ""))
            kind = READERS.type_of(f".{content.get('fileType')}")
            media_type = kind.name if kind else ""
            id = replace_invalid_chars(str(content.get("uniqueId") or number))[:MAX_ID_CHARS]
            address = {
                "url": replace_invalid_chars(str(content.get("downloadUrl") or "")),
                "media_type": media_type,
            }
            found.append(MessageFile(id, name, READERS.type_of(name, media_type) is not None, address))
    return found


def is_sharepoints(url: str) -> bool:
    """True if a file URL is on a SharePoint host, over https."""
    host = _host(url, "https", {443})
    return host.endswith(SHAREPOINT_HOSTS)


def is_local_file(url: str) -> bool:
    """True if a file URL is on loopback; for tests in development mode."""
    return is_loopback_host(_host(url, "http") or None)


def _host(url: str, scheme: str, ports: set[int] | None = None) -> str:
    """Return a URL's host; '' for another scheme, credentials or a port not in ``ports``."""
    # yarl parses here as it does for the request, so the checked host is the requested one.
    try:
        parts = URL(url, encoded=True)
        is_plain = parts.scheme == scheme and parts.user is None and parts.password is None
        is_plain = is_plain and (ports is None or parts.port in ports)
        return (parts.host or "").lower() if is_plain else ""
    except ValueError:  # includes hosts that IDNA cannot encode
        return ""


class TeamsFiles:
    """``FileHost`` for Teams."""

    # In channels a bot gets no files.
    serves_channels = False

    def __init__(self, is_trusted: ServiceUrlCheck) -> None:
        """Download only from URLs that ``is_trusted`` accepts."""
        self._is_trusted = is_trusted

    @asynccontextmanager
    async def open(self, address: Json) -> AsyncIterator[FileDownload]:
        """Download a file from the short-lived URL in its message; raises as ``FileHost.open``."""
        file = TeamsAddress.from_json(address).upload
        if file is None or not self._is_trusted(file.url):
            raise FileUnavailable("it does not lie on one of SharePoint's hosts")
        async with open_download(file.url, "SharePoint") as response:
            size = response.content_length or 0
            yield FileDownload(file.name, file.media_type, size, read_chunks(response))

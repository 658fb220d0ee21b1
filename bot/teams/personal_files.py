"""Files that people send in personal chats of Teams: which messages bring one, and how its bytes are fetched.

Teams gives a bot files in personal chats only, by an address of SharePoint that needs no token. It is asked
as it is, over https, along no redirect, and on SharePoint's own hosts alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from yarl import URL

from bot.core.errors import FileUnavailable
from bot.core.plaintext import mend
from bot.core.ports import IncomingMessage
from bot.core.uploads.file_host import FileDownload
from bot.core.uploads.file_names import is_named_pdf
from bot.core.uploads.message_files import MessageFile, TakesFiles, split_message
from bot.file_download import open_download, read_chunks
from bot.loopback import is_loopback_host
from bot.teams.activities import part, place_of, read_activity
from bot.teams.connector import ServiceUrlCheck
from storage.chat_models import UPLOAD

Json = Mapping[str, Any]

FILE = "application/vnd.microsoft.teams.file.download.info"
# What the hosts of people's files end in, in all of Microsoft's clouds.
SHAREPOINT_HOSTS = (".sharepoint.com", ".sharepoint.us", ".sharepoint-mil.us", ".sharepoint.cn")
MAX_ID_CHARS = 100


def read_messages(activity: Json, home: str | None, takes_files: TakesFiles) -> list[IncomingMessage]:
    """The question of an activity, and a message for each of its files; ``home`` as of ``read_activity``.

    Outside of direct chats there are no files: strangers of other tenants add no documents.
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
            kind, name = str(content.get("fileType") or ""), mend(str(one.get("name") or ""))
            media_type = "application/pdf" if kind.lower() == "pdf" else ""
            id = mend(str(content.get("uniqueId") or number))[:MAX_ID_CHARS]
            address = {"url": mend(str(content.get("downloadUrl") or "")), "media_type": media_type}
            found.append(MessageFile(id, name, is_named_pdf(name, media_type), address))
    return found


def is_sharepoints(url: str) -> bool:
    """True if a file's address is one of SharePoint's, over https."""
    host = _host(url, "https", {443})
    return host.endswith(SHAREPOINT_HOSTS)


def is_local_file(url: str) -> bool:
    """True if a file's address stays on this machine, for tests with the development switch."""
    return is_loopback_host(_host(url, "http") or None)


def _host(url: str, scheme: str, ports: set[int] | None = None) -> str:
    """The host that would be asked, read as it is read for the request; '' of any other kind of address."""
    try:
        parts = URL(url, encoded=True)
        is_plain = parts.scheme == scheme and parts.user is None and parts.password is None
        is_plain = is_plain and (ports is None or parts.port in ports)
        return (parts.host or "").lower() if is_plain else ""
    except ValueError:  # also of a host that IDNA does not know
        return ""


class TeamsFiles:
    """Satisfies the core's ``FileHost``."""

    def __init__(self, is_trusted: ServiceUrlCheck) -> None:
        """``is_trusted`` knows the addresses that are asked for files."""
        self._is_trusted = is_trusted

    @asynccontextmanager
    async def open(self, address: Json) -> AsyncIterator[FileDownload]:
        """Fetch the file by the address that its message named; that holds for a while only."""
        upload: Json = address[UPLOAD]
        if not self._is_trusted(upload["url"]):
            raise FileUnavailable("it does not lie on one of SharePoint's hosts")
        async with open_download(upload["url"], "SharePoint") as response:
            media_type = str(upload["media_type"])
            size = response.content_length or 0
            yield FileDownload(str(upload["name"]), media_type, size, read_chunks(response))

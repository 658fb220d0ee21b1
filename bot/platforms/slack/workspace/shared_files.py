"""Files shared in Slack: parsing of messages with files, and their download.

The bot token is sent only to Slack's hosts or the host of SLACK_API_URL; redirects are not followed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.core.errors import DeliveryError, FileUnavailable
from bot.core.ports import IncomingMessage
from bot.file_download import open_download, read_chunks
from bot.platforms.slack.address import SlackAddress
from bot.platforms.slack.events import SLACK_ID, read_event, read_message
from bot.platforms.slack.web_api import WebClients, call, delivery_client
from bot.uploads.file_host import FileDownload
from bot.uploads.message_files import MessageFile, TakesFiles, split_message
from storage.readers.registry import READERS

Json = Mapping[str, Any]

SLACK_HOSTS = ("slack.com", "slack-gov.com")


def read_messages(
    envelope: Json, takes_files: TakesFiles, *, follow_ups: bool = True
) -> list[IncomingMessage]:
    """Return the question of an event and a message for each of its files that gets a reply."""
    asked, said = read_event(envelope, follow_ups=follow_ups), read_message(envelope)
    event: Json = envelope.get("event") or {}
    files = [
        MessageFile(str(one["id"]), str(one.get("name") or ""), _may_be_readable(one))
        for one in event.get("files") or ()
        if SLACK_ID.fullmatch(str(one.get("id") or ""))
    ]
    if said is None or not files:
        return [asked] if asked else []
    return split_message(said, asked, files, is_taken=takes_files(said))


def _may_be_readable(file: Json) -> bool:
    """True if Slack's metadata says a readable type, or hides it, as for files of other organisations."""
    name, media_type = str(file.get("name") or ""), str(file.get("mimetype") or "")
    return bool(READERS.type_of(name, media_type)) or file.get("file_access") == "check_file_info"


class SharedFiles:
    """``FileHost`` for Slack."""

    serves_channels = True

    def __init__(self, clients: WebClients, api_url: str) -> None:
        """Download with the bot tokens of ``clients``; trust the host of ``api_url`` like Slack's own."""
        self._clients = clients
        self._api_url = api_url

    @asynccontextmanager
    async def open(self, address: Json) -> AsyncIterator[FileDownload]:
        """Read the file's metadata with files.info and download it; raises as ``FileHost.open``."""
        said = SlackAddress.from_json(address)
        if said.upload is None:
            raise FileUnavailable("the message has no file")
        client = await delivery_client(self._clients, said.installation)
        known = await _info(client, said.upload.id)
        url = str(known.get("url_private_download") or known.get("url_private") or "")
        if not is_slacks(url, self._api_url):
            raise FileUnavailable("file URL is not on a Slack host")
        headers = {"Authorization": f"Bearer {client.token}"}
        async with open_download(url, "Slack", headers) as response:
            if response.content_type == "text/html":  # without access, Slack answers 200 with a login page
                raise FileUnavailable("Slack returned a login page: grant the scope files:read")
            name, media_type = str(known.get("name") or ""), str(known.get("mimetype") or "")
            yield FileDownload(name, media_type, int(known.get("size") or 0), read_chunks(response))


async def _info(client: AsyncWebClient, file: str) -> Json:
    try:
        found: Json = (await call(client.files_info, file=file))["file"]
    except DeliveryError as error:
        cause = error.__cause__
        if isinstance(cause, SlackApiError) and cause.response.status_code == 200:
            raise FileUnavailable(str(error)) from error
        raise
    return found


def is_slacks(url: str, api_url: str) -> bool:
    """True if the bot token may be sent to this URL: https on a Slack host, or the origin of ``api_url``."""
    api = urlsplit(api_url)
    try:
        there = urlsplit(url)
        port = there.port
    except ValueError:
        return False
    if there.username is not None or there.password is not None or not there.hostname:
        return False
    if (there.scheme, there.netloc) == (api.scheme, api.netloc):
        return True
    host = there.hostname
    is_theirs = any(host == home or host.endswith(f".{home}") for home in SLACK_HOSTS)
    return there.scheme == "https" and port in (None, 443) and is_theirs

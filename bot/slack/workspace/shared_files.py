"""Files that people share in Slack: which messages bring one, and how its bytes are fetched.

The bot token goes to Slack's own hosts, or to the one that SLACK_API_URL names, and along no redirect.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.core.errors import DeliveryError, FileUnavailable
from bot.core.ports import IncomingMessage
from bot.core.uploads.file_host import FileDownload
from bot.core.uploads.file_names import is_named_pdf
from bot.core.uploads.message_files import MessageFile, TakesFiles, split_message
from bot.slack.events import SLACK_ID, read_event, read_message
from bot.slack.web_api import WebClients, call, client_of
from storage.chat_models import UPLOAD

Json = Mapping[str, Any]

CHUNK_BYTES = 1 << 16
SLACK_HOSTS = ("slack.com", "slack-gov.com")
_TIMEOUT = aiohttp.ClientTimeout(total=300, sock_connect=10, sock_read=30)


def read_messages(
    envelope: Json, takes_files: TakesFiles, *, follow_ups: bool = True
) -> list[IncomingMessage]:
    """The question of an event, and a message for each of its files that something is to be said of."""
    asked, said = read_event(envelope, follow_ups=follow_ups), read_message(envelope)
    event: Json = envelope.get("event") or {}
    files = [
        MessageFile(str(one["id"]), str(one.get("name") or ""), _may_be_pdf(one))
        for one in event.get("files") or ()
        if SLACK_ID.fullmatch(str(one.get("id") or ""))
    ]
    if said is None or not files:
        return [asked] if asked else []
    return split_message(said, asked, files, is_taken=takes_files(said))


def _may_be_pdf(file: Json) -> bool:
    """Whether it is a PDF as far as Slack says; of a file of another organisation it says nothing."""
    name, media_type = str(file.get("name") or ""), str(file.get("mimetype") or "")
    return is_named_pdf(name, media_type) or file.get("file_access") == "check_file_info"


class SharedFiles:
    """Satisfies the core's ``FileHost``."""

    def __init__(self, clients: WebClients, api_url: str) -> None:
        """``clients`` have the bot tokens; ``api_url`` names a Slack that is not Slack's own."""
        self._clients = clients
        self._api_url = api_url

    @asynccontextmanager
    async def open(self, address: Json) -> AsyncIterator[FileDownload]:
        """Ask Slack for the file as it is now, and fetch it."""
        client = await client_of(self._clients, address["key"].partition(":")[0])
        known = await _info(client, address[UPLOAD]["id"])
        url = str(known.get("url_private_download") or known.get("url_private") or "")
        if not is_slacks(url, self._api_url):
            raise FileUnavailable("it does not lie on one of Slack's hosts")
        # Nothing is unpacked on the way: what is written is what was sent, and counted.
        headers = {"Authorization": f"Bearer {client.token}", "Accept-Encoding": "identity"}
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(
                aiohttp.ClientSession(timeout=_TIMEOUT, auto_decompress=False)
            )
            with _broken_connections():
                response = await stack.enter_async_context(
                    session.get(url, headers=headers, allow_redirects=False)
                )
            _check(response)
            name, media_type = str(known.get("name") or ""), str(known.get("mimetype") or "")
            yield FileDownload(name, media_type, int(known.get("size") or 0), _chunks(response))


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
    """Whether the bot token may be sent there."""
    there, api = urlsplit(url), urlsplit(api_url)
    if there.username is not None or there.password is not None or not there.hostname:
        return False
    if (there.scheme, there.netloc) == (api.scheme, api.netloc):
        return True
    host = there.hostname
    is_theirs = any(host == home or host.endswith(f".{home}") for home in SLACK_HOSTS)
    return there.scheme == "https" and there.port in (None, 443) and is_theirs


def _check(response: aiohttp.ClientResponse) -> None:
    if response.status == 429 or response.status >= 500:
        raise DeliveryError(f"Slack answered {response.status} to a file's address")
    if response.status != 200:
        raise FileUnavailable(f"Slack answered {response.status} to its address")
    if response.content_type == "text/html":  # to whoever may not have it, Slack shows how to log in
        raise FileUnavailable("Slack shows a page in its place: is the scope files:read granted?")


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    while True:
        with _broken_connections():
            chunk = await response.content.read(CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


@contextmanager
def _broken_connections() -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, TimeoutError) as error:
        raise DeliveryError(f"a file could not be fetched: {type(error).__name__}") from error

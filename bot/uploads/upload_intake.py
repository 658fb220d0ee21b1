"""Turns PDFs uploaded in a chat into documents of its channel, where FOOTNOTE_UPLOADS allows it.

Order: download to disk, record in SQL, rename into the channel's folder. After a crash at any step, the next
try continues from there. Ingestion then treats the file like any other in a watched folder.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bot.answers.understanding.channel_folders import folder_name
from bot.answers.understanding.direct_libraries import DirectLibraries
from bot.answers.understanding.question_terms import language_of
from bot.core.errors import DeliveryError, FileNotReady, FileUnavailable
from bot.core.models import Answer, AnswerState, Language
from bot.core.plaintext import escape_markers
from bot.core.ports import IncomingMessage
from bot.core.wording import ReplyWords, reply_words
from bot.uploads.file_checks import MEGABYTE, UploadKnown, UploadRejected, UploadValidator, shown_name
from bot.uploads.file_host import FileDownload, FileHost
from bot.uploads.file_names import free_file_name, safe_file_name
from bot.uploads.upload_folder import PartialFile, UploadFolder, run_on_disk
from storage.chat.channels import Channels
from storage.chat.notification_events import UPLOADS_FOLDER
from storage.chat.uploads import Uploads
from storage.chat_models import (
    CHAT_KEY,
    PERSONAL_KEYS,
    UPLOAD_KEY,
    InboxItem,
    NewUpload,
    Upload,
    UploadQuota,
    UploadRefusal,
)
from storage.clock import utc_now
from storage.documents.catalog import Catalog
from storage.folders.folders import Folders
from storage.models import Channel, Platform, TenantName
from storage.sql.audit import AuditedAction

# Value in FOOTNOTE_UPLOADS for the library of direct chats.
LIBRARY = "library"
# How long a failing download is retried.
MAX_FETCH_TIME = timedelta(minutes=15)
# Longest wait for a file to become searchable before the text sent with it is asked.
MAX_READING_TIME = timedelta(minutes=5)
# Age at which a recorded upload without a file counts as removed; normally the file follows at once.
MISSING_FILE_GRACE = timedelta(minutes=10)

log = logging.getLogger(__name__)


class UploadPolicy:
    """Channels that accept uploads, from FOOTNOTE_UPLOADS."""

    def __init__(self, setting: str) -> None:
        """Parse ``off``, or ``all``, ``library`` and tenant names separated by blanks or commas."""
        self._names = frozenset(re.split(r"[\s,]+", setting.strip()))

    @property
    def is_off(self) -> bool:
        """True if no channel accepts uploads."""
        return self._names <= {"off"}

    @property
    def accepts_library(self) -> bool:
        """True if direct chats accept uploads to their library, which every direct chat searches."""
        return LIBRARY in self._names

    def allows(self, tenant: TenantName) -> bool:
        """True if this channel accepts uploads."""
        return "all" in self._names or tenant in self._names

    def accepts(self, said: IncomingMessage) -> bool:
        """True if a file of this message may become a document."""
        return self.accepts_library if said.is_direct else self.allows(said.key.tenant)


@dataclass(frozen=True, slots=True)
class UploadRules:
    """Limits of uploads."""

    policy: UploadPolicy
    quota: UploadQuota
    max_file_mb: int


class UploadIntake:
    """Accepts uploads from all chat platforms."""

    def __init__(
        self,
        uploads: Uploads,
        channels: Channels,
        libraries: DirectLibraries,
        catalog: Catalog,
        inbox: Path,
        *,
        rules: UploadRules,
        hosts: Mapping[Platform, FileHost],
    ) -> None:
        """Accept what ``rules`` allow into folders of ``inbox``; ``hosts`` may be filled later."""
        self._uploads = uploads
        self._channels = channels
        self._libraries = libraries
        self._catalog = catalog
        self._inbox = inbox
        self._rules = rules
        self._hosts = hosts
        self._checks = UploadValidator(rules.max_file_mb)

    async def take(self, item: InboxItem) -> Answer | None:
        """Fetch and store the file of a message and return the reply; see ``bot.core.ports.IngestUpload``."""
        channel = await self._channel_of(item)
        words = reply_words(upload_language(item))
        try:
            upload = await self._uploads.find(channel.id, item.address["key"])
            if upload is None or not await self._has_file(channel, upload):
                upload = await self._fetch(item, channel, words)
        except UploadRejected as refused:
            return Answer(AnswerState.CHAT, str(refused), language=words.language)
        if item.text:
            if not await self._is_read(upload) and utc_now() - item.received_at < MAX_READING_TIME:
                raise FileNotReady("the file is being read")
            return None
        taken = words.upload_taken(file=escape_markers(upload.name))
        if channel.id != item.channel_id:
            taken = f"{taken} {words.upload_for_all}"
        return Answer(AnswerState.CHAT, taken, language=words.language)

    async def _channel_of(self, item: InboxItem) -> Channel:
        """Return the channel that gets the document: a direct chat's library if it accepts uploads."""
        chat = await self._channels.get(item.channel_id)
        is_for_library = chat.is_direct and self._rules.policy.accepts_library
        if not is_for_library:
            return chat
        return await self._libraries.library_for(chat.platform, chat.installation) or chat

    async def _has_file(self, channel: Channel, upload: Upload) -> bool:
        folder = upload_folder(self._inbox, channel)
        try:
            return upload.name in await run_on_disk(folder.names)
        except OSError:  # disk unavailable: do not download the file again
            return True

    async def _is_read(self, upload: Upload) -> bool:
        file = f"{UPLOADS_FOLDER}/{upload.name}"
        states = {one.file: one.state for one in await self._catalog.active_documents(upload.channel_id)}
        return states.get(file) in ("live", "quarantined")

    async def _fetch(self, item: InboxItem, channel: Channel, words: ReplyWords) -> Upload:
        host = self._hosts.get(item.platform)
        if channel.id == item.channel_id:
            self._check_channel(channel, host, words)
        if host is None:
            raise UploadRejected(words.uploads_off)
        name = shown_name(str(item.address[UPLOAD_KEY].get("name") or ""))
        where = {} if channel.id == item.channel_id else {CHAT_KEY: item.channel_id}
        address = {name: value for name, value in item.address.items() if name not in PERSONAL_KEYS} | where
        asker = str(item.address.get("asker", ""))
        try:
            async with host.open(item.address) as download:
                name = shown_name(download.name)
                key = item.address["key"]
                return await self.add(
                    channel, download, key=key, uploader=asker, words=words, address=address
                )
        except FileUnavailable as error:
            log.warning("channel=%d upload download failed: %s", channel.id, error)
            raise UploadRejected(words.upload_unfetched(file=name)) from error
        except DeliveryError as error:
            if utc_now() - item.received_at < MAX_FETCH_TIME:
                raise
            log.warning("channel=%d upload download abandoned: %s", channel.id, error)
            raise UploadRejected(words.upload_unfetched(file=name)) from error

    async def add(
        self,
        channel: Channel,
        download: FileDownload,
        *,
        key: str,
        uploader: str,
        words: ReplyWords,
        address: Mapping[str, Any] = MappingProxyType({}),
    ) -> Upload:
        """Write a file into a channel's folder of uploads and record it, whatever FOOTNOTE_UPLOADS says.

        Args:
            channel: the channel that gets the document.
            download: the file.
            key: idempotency key.
            uploader: who may remove it, in the format of FOOTNOTE_ADMINS.
            words: language of a refusal.
            address: where to post its receipt; empty: in the channel.

        Raises:
            UploadRejected: not readable, too large, a duplicate, or over quota.
        """
        folder, name = upload_folder(self._inbox, channel), shown_name(download.name, download.media_type)
        self._checks.check_declared(download, words)
        try:
            partial_file = await run_on_disk(folder.create_partial, key)
            try:
                await self._checks.write(download, partial_file, words)
                size = partial_file.size
                new = NewUpload(channel.id, key, uploader, partial_file.sha256, size, dict(address))
                upload = await self._record(channel, new, download, words)
                await self._finish(folder, partial_file, upload)
            except BaseException:
                await run_on_disk(folder.discard, partial_file)
                raise
        except OSError as error:
            log.warning("channel=%d storing an upload failed: %s", channel.id, type(error).__name__)
            raise UploadRejected(words.upload_no_folder(file=name)) from error
        log.info("channel=%d upload=%d bytes=%d stored", channel.id, upload.id, upload.size)
        return upload

    def _check_channel(self, channel: Channel, host: FileHost | None, words: ReplyWords) -> None:
        policy = self._rules.policy
        if channel.is_direct and not policy.is_off and host is not None and host.serves_channels:
            raise UploadRejected(words.upload_direct)
        if channel.is_direct or not policy.allows(channel.tenant):
            raise UploadRejected(words.uploads_off)

    async def _record(
        self, channel: Channel, new: NewUpload, download: FileDownload, words: ReplyWords
    ) -> Upload:
        """Record the upload in SQL against the channel's quota, under a free name.

        Raises:
            UploadRejected: a duplicate, or over quota.
        """
        there = await self._prune_missing(channel)
        safe, quota = safe_file_name(download.name, download.media_type), self._rules.quota
        kept = await self._uploads.keep(new, lambda taken: free_file_name(safe, [*there, *taken]), quota)
        if isinstance(kept, Upload):
            return kept
        reason, known = kept
        shown = shown_name(download.name)
        if reason is UploadRefusal.KNOWN:
            raise UploadKnown(words.upload_known(file=shown, known=escape_markers(known)))
        raise UploadRejected(
            {
                UploadRefusal.TOO_MANY: partial(words.upload_too_many, quota.files, file=shown),
                UploadRefusal.TOO_LARGE: partial(
                    words.upload_no_room, file=shown, limit=quota.size // MEGABYTE
                ),
                UploadRefusal.INSTALLATION_FULL: partial(words.upload_installation_full, file=shown),
            }[reason]()
        )

    async def _finish(self, folder: UploadFolder, partial_file: PartialFile, upload: Upload) -> None:
        """Rename the partial file; on failure delete the record, so that the file can be uploaded again."""
        try:
            await run_on_disk(folder.rename_or_discard, partial_file, upload.name)
        except OSError:
            await self._uploads.forget(upload)
            raise

    async def _prune_missing(self, channel: Channel) -> list[str]:
        """Return the folder's files; delete records of uploads whose file was removed from it."""
        there = await run_on_disk(upload_folder(self._inbox, channel).names)
        for upload in await self._uploads.of_channel(channel.id):
            if upload.name not in there and utc_now() - upload.created_at > MISSING_FILE_GRACE:
                await self._uploads.forget(upload)
        return there


async def remove_upload(
    channel: Channel,
    upload: Upload,
    *,
    inbox: Path,
    uploads: Uploads,
    folders: Folders,
    action: AuditedAction,
) -> None:
    """Remove an upload of a channel, so that it is no longer searched.

    The file is deleted first, then its document, then the upload itself: after a crash in between, repeating
    this completes the removal.

    Raises:
        OSError: the file cannot be deleted, and nothing was changed.
        storage.errors.InfrastructureError: SQL cannot be reached; repeating this does the rest.
    """
    await run_on_disk(upload_folder(inbox, channel).remove, upload.name)
    if (document := await uploads.document(upload)) is not None:
        await folders.delete(document.folder_id, {document.id: document.file})
    await uploads.forget(upload, action)


def upload_folder(inbox: Path, channel: Channel) -> UploadFolder:
    """Return the upload folder of a channel."""
    return UploadFolder(inbox / folder_name(channel))


def upload_language(item: InboxItem) -> Language:
    """Return the language for replies about a file: that of the text sent with it, else English."""
    said = item.address[UPLOAD_KEY].get("language")
    return Language(said) if said else language_of(item.text) or Language.ENGLISH

"""Validation of uploaded files: readable by name and content, within the size limit."""

from __future__ import annotations

from bot.core.plaintext import escape_markers
from bot.core.wording import ReplyWords
from bot.uploads.file_host import FileDownload
from bot.uploads.file_names import safe_file_name
from bot.uploads.upload_folder import PartialFile, run_on_disk
from storage.readers.registry import READERS

MEGABYTE = 1 << 20


class UploadRejected(Exception):
    """An upload was rejected; the message is the reply that says why."""


class UploadTooLarge(UploadRejected):
    """The file is larger than FOOTNOTE_MAX_FILE_MB."""


class UploadKnown(UploadRejected):
    """The channel has a file with the same bytes."""


class UploadValidator:
    """Rejects files that ingestion would not read."""

    def __init__(self, max_file_mb: int) -> None:
        self._max_file_mb = max_file_mb

    def check_declared(self, download: FileDownload, words: ReplyWords) -> None:
        """Check the declared name, media type and size before the download.

        Raises:
            UploadRejected: not declared as a readable type, or too large.
        """
        name = shown_name(download.name, download.media_type)
        if READERS.type_of(download.name, download.media_type) is None:
            raise UploadRejected(words.upload_no_pdf(file=name))
        self._check_size(download.size, name, words)

    async def write(self, download: FileDownload, partial_file: PartialFile, words: ReplyWords) -> None:
        """Stream a download to disk, checking size and content.

        Raises:
            UploadRejected: empty, not of its type, or larger than allowed whatever size was declared.
            bot.core.errors.DeliveryError: the download broke off.
            OSError: the disk is full or failing.
        """
        name, kind = shown_name(download.name), READERS.type_of(download.name, download.media_type)
        async for chunk in download.chunks:
            self._check_size(partial_file.size + len(chunk), name, words)
            await run_on_disk(partial_file.write, chunk)
        if not partial_file.size:
            raise UploadRejected(words.upload_empty(file=name))
        if kind is None or not kind.begins(partial_file.head):
            raise UploadRejected(words.upload_no_pdf(file=name))

    def _check_size(self, size: int, name: str, words: ReplyWords) -> None:
        limit = self._max_file_mb
        if size > limit * MEGABYTE:
            raise UploadTooLarge(words.upload_too_large(file=name, limit=limit))


def shown_name(name: str, media_type: str = READERS.media_types[0].name) -> str:
    """Return a file's name for replies: sanitized, with a suffix of ours for readable types only."""
    shown = escape_markers(safe_file_name(name, media_type))
    return shown if READERS.type_of(name, media_type) else READERS.split_suffix(shown)[0]

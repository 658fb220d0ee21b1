"""What a file must be to become a document, whoever uploads it: a PDF by name and content, not too large."""

from __future__ import annotations

from bot.core.plaintext import inert
from bot.core.uploads.file_host import FileDownload
from bot.core.uploads.file_names import MEDIA_TYPE, SUFFIX, is_named_pdf, safe_file_name
from bot.core.uploads.upload_folder import PartialFile, on_disk
from bot.core.wording import ReplyWords

MEGABYTE = 1 << 20


class UploadRefused(Exception):
    """A file is not taken; the message is the sentence that says why."""


class FileChecks:
    """Refuses what no scan would read."""

    def __init__(self, max_file_mb: int) -> None:
        self._max_file_mb = max_file_mb

    def refuse_declared(self, download: FileDownload, words: ReplyWords) -> None:
        """Refuse by what is said of a file, before any of it is fetched.

        Raises:
            UploadRefused: it calls itself no PDF, or too large a one.
        """
        name = shown_name(download.name, download.media_type)
        if not is_named_pdf(download.name, download.media_type):
            raise UploadRefused(words.upload_no_pdf(file=name))
        self._refuse_size(download.size, name, words)

    async def write(self, download: FileDownload, partial_file: PartialFile, words: ReplyWords) -> None:
        """Write a file down as it comes.

        Raises:
            UploadRefused: it is empty, no PDF, or has more bytes than it was said to have and than may be.
            bot.core.errors.DeliveryError: it broke off.
            OSError: the disk is full or does not work.
        """
        name = shown_name(download.name)
        async for chunk in download.chunks:
            self._refuse_size(partial_file.size + len(chunk), name, words)
            await on_disk(partial_file.write, chunk)
        if not partial_file.size:
            raise UploadRefused(words.upload_empty(file=name))
        if not partial_file.is_pdf:
            raise UploadRefused(words.upload_no_pdf(file=name))

    def _refuse_size(self, size: int, name: str, words: ReplyWords) -> None:
        limit = self._max_file_mb
        if size > limit * MEGABYTE:
            raise UploadRefused(words.upload_too_large(file=name, limit=limit))


def shown_name(name: str, media_type: str = MEDIA_TYPE) -> str:
    """Return a file's name in a reply: a PDF's as it would be called here, any other's as it is."""
    shown = inert(safe_file_name(name))
    return shown if is_named_pdf(name, media_type) else shown.removesuffix(SUFFIX)

"""Uploads from the console into watched folders; an existing file is replaced only after confirmation."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bot.core.models import Language
from bot.core.wording import reply_words
from bot.uploads.file_checks import UploadValidator
from bot.uploads.file_host import FileDownload
from bot.uploads.file_names import free_file_name, is_same_name, safe_file_name
from bot.uploads.upload_folder import PartialFile, UploadFolder, run_on_disk
from bot.uploads.upload_places import UploadPlace
from storage.clock import monotonic_seconds

# Time limit for a decision on a name conflict; then the upload is discarded.
DECISION_TIMEOUT_SECONDS = 3600.0


class UploadDecision(StrEnum):
    """Resolution of a name conflict."""

    REPLACE = "replace"
    KEEP_BOTH = "both"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class FolderUpload:
    """A completely written file."""

    place: UploadPlace
    # Name in the folder; for a pending upload, the requested name.
    file: str
    sha256: str
    # Id of an upload pending on a name conflict; None: the file is in the folder.
    token: str | None = None


@dataclass(frozen=True, slots=True)
class _PendingUpload:
    upload: FolderUpload
    partial_file: PartialFile
    since: float


class FolderUploads:
    """Writes uploads into local folders and holds those with name conflicts until they are decided."""

    def __init__(self, max_file_mb: int) -> None:
        self._checks = UploadValidator(max_file_mb)
        self._pending: dict[str, _PendingUpload] = {}

    async def take(self, place: UploadPlace, download: FileDownload) -> FolderUpload:
        """Write a file into a place without problems, under a sanitized name.

        On any error the partial file is deleted.

        Raises:
            UploadRejected: unsupported, empty or too large.
            OSError: the disk is full or failing.
        """
        for token, one in list(self._pending.items()):
            if monotonic_seconds() - one.since > DECISION_TIMEOUT_SECONDS:
                await self.resolve_conflict(token, UploadDecision.CANCEL)
        words = reply_words(Language.ENGLISH)
        self._checks.check_declared(download, words)
        folder, name = _folder(place), safe_file_name(download.name, download.media_type)
        partial_file = await run_on_disk(folder.create_partial, secrets.token_hex(16))
        try:
            await self._checks.write(download, partial_file, words)
            if not await run_on_disk(_rename_if_free, folder, partial_file, name):
                upload = FolderUpload(place, name, partial_file.sha256, secrets.token_hex(16))
                self._pending[upload.token or ""] = _PendingUpload(upload, partial_file, monotonic_seconds())
                return upload
        except BaseException:
            await asyncio.shield(run_on_disk(folder.discard, partial_file))
            raise
        return FolderUpload(place, name, partial_file.sha256)

    async def resolve_conflict(self, token: str, decision: UploadDecision) -> FolderUpload | None:
        """Resolve the name conflict of a pending upload; None if it was cancelled or has expired.

        Raises:
            OSError: the disk is failing; the upload is discarded.
        """
        held = self._pending.pop(token, None)
        if held is None:
            return None
        place, name = held.upload.place, held.upload.file
        folder, partial_file = _folder(place), held.partial_file
        try:
            if decision is UploadDecision.REPLACE:
                name = await run_on_disk(_replace, folder, partial_file, name)
            elif decision is UploadDecision.KEEP_BOTH:
                name = await run_on_disk(_rename_to_free_name, folder, partial_file, name)
            else:
                await run_on_disk(folder.discard, partial_file)
                return None
        except BaseException:
            await asyncio.shield(run_on_disk(folder.discard, partial_file))
            raise
        return FolderUpload(place, name, held.upload.sha256)

    async def aclose(self) -> None:
        """Discard all pending uploads."""
        for token in list(self._pending):
            await self.resolve_conflict(token, UploadDecision.CANCEL)


def _folder(place: UploadPlace) -> UploadFolder:
    return UploadFolder(Path(place.location), inside=None)


def _rename_if_free(folder: UploadFolder, file: PartialFile, name: str) -> bool:
    """Give a file its name; False if an equal name exists, and the file is only synced."""
    if any(is_same_name(one, name) for one in folder.names()):
        file.sync()
        return False
    return folder.rename(file, name)


def _replace(folder: UploadFolder, file: PartialFile, name: str) -> str:
    """Replace the existing file of this name, keeping its spelling; return that spelling."""
    theirs = next((one for one in folder.names() if is_same_name(one, name)), name)
    folder.rename(file, theirs, replaces=True)
    return theirs


def _rename_to_free_name(folder: UploadFolder, file: PartialFile, name: str) -> str:
    while not folder.rename(file, chosen := free_file_name(name, folder.names())):
        continue  # race: the name was taken between the two calls
    return chosen

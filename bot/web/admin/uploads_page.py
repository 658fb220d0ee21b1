"""Uploads of PDFs in the console, and their progress.

Without JavaScript, one form sends all files and gets a page. The script sends each file separately, shows its
upload progress, and polls until the file is searchable.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import BodyPartReader, MultipartReader, web

from bot.core.plaintext import replace_invalid_chars
from bot.uploads.file_checks import UploadRejected, shown_name
from bot.uploads.file_host import FileDownload
from bot.uploads.folder_uploads import FolderUpload, FolderUploads, UploadDecision
from bot.uploads.upload_places import UploadPlace, UploadPlaces
from bot.web.admin.admin_pages import AdminPages, json_page, wants_json
from bot.web.security import Visitor, require_own_form, require_visitor
from storage.documents.document_overview import DocumentOverview
from storage.sql.audit import AuditedAction, AuditLog

Json = dict[str, Any]
CHUNK_BYTES = 1 << 18
MAX_KEY_BYTES = 64
FULL = {errno.ENOSPC, errno.EDQUOT}

log = logging.getLogger(__name__)


class UploadsPage:
    """Upload routes of the console."""

    def __init__(
        self,
        pages: AdminPages,
        places: UploadPlaces,
        uploads: FolderUploads,
        overview: DocumentOverview,
        audit: AuditLog,
    ) -> None:
        self._pages = pages
        self._places = places
        self._uploads = uploads
        self._overview = overview
        self._audit = audit

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of uploads."""
        return [
            web.post("/console/uploads", self.take, name="admin_uploads"),
            web.post(r"/console/uploads/held/{token:[0-9a-f]{32}}", self.decide, name="admin_upload_held"),
            web.get(r"/console/uploads/{sha256:[0-9a-f]{64}}", self.send_progress, name="admin_upload"),
        ]

    async def take(self, request: web.Request) -> web.Response:
        """Store the files of a form in the folder that the form names before them."""
        visitor = require_own_form(request)
        if request.content_type != "multipart/form-data":
            raise web.HTTPBadRequest
        return self._show(request, await self._take_all(visitor, await request.multipart()))

    async def decide(self, request: web.Request) -> web.Response:
        """Apply the decision about a file whose name is already in use."""
        visitor = require_own_form(request)
        try:
            decision = UploadDecision(str((await request.post()).get("decision")))
        except ValueError:
            raise web.HTTPBadRequest from None
        try:
            upload = await self._uploads.resolve_conflict(request.match_info["token"], decision)
        except OSError as error:
            view = _refused("The file", _why_unwritten(error))
        else:
            view = await self._kept(visitor, upload) if upload else _refused("The file", "It was cancelled.")
        return self._show(request, [view])

    async def send_progress(self, request: web.Request) -> web.Response:
        """Return the progress of the file with this name and hash: its state, rung and reason."""
        require_visitor(request)
        sha256, file = request.match_info["sha256"], replace_invalid_chars(request.query.get("file", ""))
        return json_page(await self._overview.progress_of(sha256, file))

    async def _take_all(self, visitor: Visitor, form: MultipartReader) -> list[Json]:
        """Store each file of a form and return the outcomes."""
        place: UploadPlace | None = None
        views = []
        while (part := await form.next()) is not None:
            if not isinstance(part, BodyPartReader):
                raise web.HTTPBadRequest
            if part.name == "place":
                key = (await part.read_chunk(MAX_KEY_BYTES)).decode(errors="replace")
                place = await self._places.get(key)
            elif part.name == "file" and part.filename:
                if place is None:
                    raise web.HTTPBadRequest
                views.append(await self._take(visitor, place, part))
            await part.release()  # browsers read no response before they have sent all files
        return views

    async def _take(self, visitor: Visitor, place: UploadPlace, part: BodyPartReader) -> Json:
        media_type = part.headers.get("Content-Type", "")
        name = shown_name(part.filename or "", media_type)
        if place.problem:
            return _refused(name, f"{place.location}: {place.problem}")
        try:
            download = FileDownload(part.filename or "", media_type, 0, _chunks(part))
            upload = await self._uploads.take(place, download)
        except UploadRejected as refused:
            return {"name": name, "state": "refused", "text": str(refused)}
        except OSError as error:
            log.warning("upload failed: %s", type(error).__name__)
            return _refused(name, f"{place.location}: {_why_unwritten(error)}")
        if upload.token is None:
            return await self._kept(visitor, upload)
        text = f"{place.location} already has a file called “{upload.file}”."
        return {"name": name, "state": "held", "text": text, "token": upload.token}

    async def _kept(self, visitor: Visitor, upload: FolderUpload) -> Json:
        for channel in upload.place.channels:
            await self._audit.record(AuditedAction(visitor.actor, "upload", channel.tenant, upload.sha256))
        text = f"Added “{upload.file}” to {upload.place.location}. You can ask about it within seconds."
        return {
            "name": upload.file,
            "state": "kept",
            "text": text,
            "file": upload.file,
            "sha256": upload.sha256,
        }

    def _show(self, request: web.Request, views: list[Json]) -> web.Response:
        if wants_json(request):
            return json_page(views)
        return self._pages.show(request, "uploads.html", uploads=views)


async def _chunks(part: BodyPartReader) -> AsyncIterator[bytes]:
    while chunk := await part.read_chunk(CHUNK_BYTES):
        yield bytes(chunk)


def _why_unwritten(error: OSError) -> str:
    if error.errno in FULL:
        return "The disk is full, so I kept nothing of it."
    why = error.strerror or "the disk isn’t responding"
    return f"I can’t write there ({why}), so I kept nothing of it."


def _refused(name: str, why: str) -> Json:
    return {"name": name, "state": "refused", "text": f"I didn’t add it. {why}"}

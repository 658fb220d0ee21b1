"""Folders in the console: their problems, and an admin's approval of deletions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from aiohttp import web

from bot.sign_in_settings import Role
from bot.web import security
from bot.web.security import Visitor, require_own_page, require_visitor
from storage.folders.folder_status import FolderStatus
from storage.models import Platform
from storage.sql.audit import AuditedAction
from storage.stores import Stores

MAX_NAMED = 20


class FolderPanel:
    """Folder routes of the console.

    Folders of chat channels appear only by number: the console shows local channels only.
    """

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the panel."""
        return [
            web.get("/console/folders", self.send, name="console_folders"),
            web.post(r"/console/folders/{id:\d{1,9}}/approve", self.approve, name="console_approve"),
        ]

    async def send(self, request: web.Request) -> web.Response:
        """Return every folder that is watched or has a problem."""
        visitor = require_visitor(request)
        may_approve = visitor.role >= Role.ADMIN
        local = await self._local_channels(visitor)
        folders = [
            _local_view(folder, local[folder.channel], may_approve=may_approve)
            if folder.channel in local
            else _foreign_view(folder)
            for folder in await self._stores.folders.status()
            if folder.watched or folder.problem
        ]
        return web.json_response({"folders": folders}, headers=security.NO_STORE)

    async def approve(self, request: web.Request) -> web.Response:
        """Approve the deletion of exactly those vanished documents that the page showed."""
        visitor = require_own_page(request, Role.ADMIN)
        shown = await _read_shown(request)
        number, local = int(request.match_info["id"]), await self._local_channels(visitor)
        folders = {folder.id: folder for folder in await self._stores.folders.status()}
        if number not in folders or folders[number].channel not in local:
            raise web.HTTPNotFound
        action = AuditedAction(visitor.actor, "approve", folders[number].channel, str(number))
        allowed = await self._stores.folders.approve(number, shown, action)
        return web.json_response({"allowed": allowed}, headers=security.NO_STORE)

    async def _local_channels(self, visitor: Visitor) -> dict[str, int]:
        """Return tenant -> id of the local channels that a visitor may see."""
        channels = await self._stores.channels.all(Platform.LOCAL)
        return {str(one.tenant): one.id for one in channels if visitor.may_see(one)}


async def _read_shown(request: web.Request) -> list[UUID]:
    """Return the documents that the page showed.

    Raises:
        web.HTTPBadRequest: not a list of ids as our script sends it.
    """
    try:
        return [UUID(one) for one in (await request.json())["documents"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise web.HTTPBadRequest from None


def _local_view(folder: FolderStatus, channel_id: int, *, may_approve: bool) -> Mapping[str, Any]:
    asked = folder.pending_deletions if may_approve else ()
    return {
        "id": folder.id,
        "channel": channel_id,
        "name": folder.channel_name,
        "location": folder.location,
        "files": folder.documents,
        "problem": folder.problem,
        "asked": [str(document) for document, _ in asked],
        "vanished": [file for _, file in asked[:MAX_NAMED]],
    }


def _foreign_view(folder: FolderStatus) -> Mapping[str, Any]:
    return {
        "id": folder.id,
        "channel": None,
        "problem": bool(folder.problem),
        "asks": bool(folder.pending_deletions),
    }

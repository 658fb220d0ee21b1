"""Shared parts of the admin pages: access, channels, HTML or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from bot.sign_in_settings import Role
from bot.web import security
from bot.web.security import require_visitor
from bot.web.templates import Templates
from storage.chat.channels import Channels
from storage.models import Channel

# Optional path ending of pages that are also served as JSON.
JSON_ENDING = r"{ending:(?:\.json)?}"
MAX_ID_DIGITS = 9


class AdminPages:
    """Access, channels and rendering of the admin pages.

    Direct chats are excluded: what a person asks the bot in private stays private.
    """

    def __init__(self, channels: Channels, templates: Templates) -> None:
        self._channels = channels
        self._templates = templates

    async def channels(self, request: web.Request) -> Sequence[Channel]:
        """Return the channels that the visitor may see, by name; direct chats are excluded.

        Raises:
            web.HTTPForbidden, web.HTTPUnauthorized: as ``require_visitor``.
        """
        visitor = require_visitor(request)
        return [one for one in await self._channels.all() if not one.is_direct and visitor.may_see(one)]

    async def channel(self, request: web.Request) -> tuple[Channel, Sequence[Channel]]:
        """Return the channel in the request's path, and all that the visitor may see.

        Raises:
            web.HTTPForbidden, web.HTTPUnauthorized: as ``require_visitor``.
            web.HTTPNotFound: no such channel.
        """
        channels = await self.channels(request)
        number = int(request.match_info["channel"])
        for channel in channels:
            if channel.id == number:
                return channel, channels
        raise web.HTTPNotFound

    async def chosen(self, request: web.Request, page: str) -> Sequence[Channel]:
        """Return all channels, of which one is to be chosen for ``page``.

        Raises:
            web.HTTPForbidden, web.HTTPUnauthorized: as ``require_visitor``.
            web.HTTPFound: to the page of the channel chosen in the form, or of the only one.
        """
        channels = await self.channels(request)
        number = chosen_channel(request) or (channels[0].id if len(channels) == 1 else None)
        if number:
            raise web.HTTPFound(f"{page}/{number}")
        return channels

    def show(self, request: web.Request, template: str, **values: object) -> web.Response:
        """Return a rendered page."""
        root = "../" * (request.path.count("/") - 1) or "./"
        visitor = require_visitor(request)
        values |= {"signed_in_as": visitor.name, "may_change": visitor.role >= Role.ADMIN}
        return self._templates.page(template, security.ADMIN_HEADERS, root=root, here=template, **values)


def chosen_channel(request: web.Request) -> int | None:
    """Return the channel id in the query, None if it is missing or malformed."""
    named = request.query.get("channel", "")
    return int(named) if named.isdecimal() and len(named) <= MAX_ID_DIGITS else None


def wants_json(request: web.Request) -> bool:
    """True if a request asks for JSON by its path, query or Accept header."""
    return (
        request.match_info.get("ending") == ".json"
        or request.query.get("format") == "json"
        or request.headers.get("Accept") == "application/json"
    )


def json_page(value: Any) -> web.Response:
    """Return a JSON response in the format that the command line prints."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return web.json_response(text=text, headers=security.NO_STORE)

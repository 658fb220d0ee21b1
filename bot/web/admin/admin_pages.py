"""What all pages of the room share: who may see them, the channels that they show, HTML beside JSON."""

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

# Ends the path of a page that is JSON, too.
JSON_ENDING = r"{ending:(?:\.json)?}"
MAX_ID_DIGITS = 9


class AdminPages:
    """Shows the pages of the room to whoever may use the console.

    They are of every channel, but of no direct chat: what one person asks the bot alone is nobody else's.
    """

    def __init__(self, channels: Channels, templates: Templates) -> None:
        self._channels = channels
        self._templates = templates

    async def channels(self) -> Sequence[Channel]:
        """Return every channel by name."""
        return [one for one in await self._channels.all() if not one.is_direct]

    async def channel(self, request: web.Request) -> tuple[Channel, Sequence[Channel]]:
        """Return the channel that a request is about, and all there are.

        Raises:
            web.HTTPForbidden, web.HTTPUnauthorized: as ``require_visitor``.
            web.HTTPNotFound: there is no such channel.
        """
        require_visitor(request)
        channels = await self.channels()
        number = int(request.match_info["channel"])
        for channel in channels:
            if channel.id == number:
                return channel, channels
        raise web.HTTPNotFound

    def show(self, request: web.Request, template: str, **values: object) -> web.Response:
        """Return a page of the room."""
        root = "../" * (request.path.count("/") - 1) or "./"
        visitor = require_visitor(request)
        values |= {"signed_in_as": visitor.name, "may_change": visitor.role >= Role.ADMIN}
        return self._templates.page(template, security.ADMIN, root=root, here=template, **values)


def chosen_channel(request: web.Request) -> int | None:
    """Return the id of the channel that the query names; None: it names none."""
    named = request.query.get("channel", "")
    return int(named) if named.isdecimal() and len(named) <= MAX_ID_DIGITS else None


def wants_json(request: web.Request) -> bool:
    """True if a request asks for JSON: by its path, its query, or what it accepts."""
    return (
        request.match_info.get("ending") == ".json"
        or request.query.get("format") == "json"
        or request.headers.get("Accept") == "application/json"
    )


def json_page(value: Any) -> web.Response:
    """JSON as the command line prints it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return web.json_response(text=text, headers=security.NO_STORE)

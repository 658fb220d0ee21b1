"""Feedback on answers in the console, and explanations of answers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from aiohttp import web

from bot.chat.conversation.feedback import AnsweredQuestion, AnswerFeedback
from bot.core.models import Language
from bot.web import security
from bot.web.console.console import MAX_ID
from bot.web.security import Visitor, require_own_page
from storage.chat.feedback import FeedbackVerdict
from storage.chat.inbox import Inbox
from storage.errors import UnknownChannel
from storage.models import Channel, Platform
from storage.stores import Stores


class FeedbackPanel:
    """Feedback routes of the console; all users of the machine's secret count as one person."""

    def __init__(self, stores: Stores) -> None:
        self._channels = stores.channels
        self._feedback = AnswerFeedback(Inbox(stores.database), stores.records, stores.feedback)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the panel."""
        return [
            web.post("/console/feedback", self.take, name="console_feedback"),
            web.post("/console/why", self.explain, name="console_why"),
        ]

    async def take(self, request: web.Request) -> web.Response:
        """Store feedback on an answer; return the follow-up choices for a bad one."""
        visitor = require_own_page(request)
        said = await _read(request)
        asked = await self._asked(visitor, said)
        try:
            verdict = FeedbackVerdict(str(said.get("verdict")))
            page = None if said.get("page") is None else int(said["page"])
        except (ValueError, TypeError, OverflowError):
            raise web.HTTPBadRequest from None
        reply = await self._feedback.take(asked, _person(visitor), verdict, page=page)
        answer = {
            "text": reply.text,
            "reasons": [(one.value, label) for one, label in reply.reasons],
            "right_page": reply.right_page,
            "pages": reply.pages,
        }
        return web.json_response(answer, headers=security.NO_STORE)

    async def explain(self, request: web.Request) -> web.Response:
        """Return why an answer came out as it did."""
        visitor = require_own_page(request)
        why = await self._feedback.why(await self._asked(visitor, await _read(request)))
        return web.json_response({"why": why}, headers=security.NO_STORE)

    async def _asked(self, visitor: Visitor, said: dict[str, Any]) -> AnsweredQuestion:
        language = str(said.get("language"))
        return AnsweredQuestion(
            (await self._channel(visitor, said)).id,
            _question(said),
            Language(language) if language in set(Language) else Language.ENGLISH,
        )

    async def _channel(self, visitor: Visitor, said: dict[str, Any]) -> Channel:
        """Return the local channel in the request, if the visitor may see it.

        Raises:
            web.HTTPNotFound: no such local channel.
        """
        try:
            number = int(said["channel"])
            channel = await self._channels.get(number if 0 < number <= MAX_ID else 0)
        except (UnknownChannel, KeyError, ValueError, TypeError, OverflowError):
            raise web.HTTPNotFound from None
        if not channel.is_local or not visitor.may_see(channel):
            raise web.HTTPNotFound
        return channel


def _person(visitor: Visitor) -> tuple[str, str]:
    """Return (installation, user) as in the audit log and ``footnote erase --person``."""
    _, *named = visitor.actor.split(":", 2)
    return (named[0], named[1]) if len(named) == 2 else (Platform.LOCAL, "console")


async def _read(request: web.Request) -> dict[str, Any]:
    try:
        said = await request.json()
    except (ValueError, RecursionError):
        raise web.HTTPBadRequest from None
    if not isinstance(said, dict):
        raise web.HTTPBadRequest
    return said


def _question(said: dict[str, Any]) -> str:
    try:
        return UUID(str(said["question"])).hex
    except (KeyError, ValueError):
        raise web.HTTPBadRequest from None

"""The console's feedback: what a person says of an answer, and why it came out as it did."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from aiohttp import web

from bot.core.conversation.explanation import explain
from bot.core.models import Language
from bot.core.wording import ReplyWords, reply_words
from bot.web import security
from bot.web.security import require_own_page
from storage.chat.feedback import FeedbackVerdict, person_of
from storage.errors import UnknownChannel
from storage.models import Channel, Platform
from storage.stores import Stores

MAX_PAGES = 12
"""Pages that a person may choose the right one of."""
WRONG = (
    FeedbackVerdict.WRONG_PAGE,
    FeedbackVerdict.WRONG_ANSWER,
    FeedbackVerdict.SHOULD_HAVE_FOUND,
    FeedbackVerdict.OUTDATED,
)


class FeedbackPanel:
    """Takes feedback of answers that the console showed. Whoever sits at this machine is one person."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def routes(self) -> list[web.RouteDef]:
        """The routes of the panel."""
        return [
            web.post("/console/feedback", self.take, name="console_feedback"),
            web.post("/console/why", self.explain, name="console_why"),
        ]

    async def take(self, request: web.Request) -> web.Response:
        """Keep what is said of an answer; what may be said next of a bad one comes back."""
        require_own_page(request)
        said = await _read(request)
        channel, question, words = await self._channel(said), _question(said), _words(said)
        try:
            verdict = FeedbackVerdict(str(said.get("verdict")))
            file, page = str(said.get("file") or ""), int(said.get("page") or 0)
        except (ValueError, TypeError, OverflowError):
            raise web.HTTPBadRequest from None
        person = person_of(Platform.LOCAL, "console")
        is_kept = await self._stores.feedback.keep(
            channel.id, question, person, verdict, file=file, page=page
        )
        answer: dict[str, Any] = {"said": words.feedback_thanks if is_kept else words.feedback_expired}
        if is_kept and verdict is FeedbackVerdict.BAD:
            pages = await self._stores.feedback.candidates(channel.id, question)
            answer |= {
                "ask": words.what_was_wrong,
                "reasons": [[one.value, getattr(words, one.value)] for one in WRONG],
                "right_page": words.right_page,
                "pages": [[*one, words.page_of(page=one[1], file=one[0])] for one in pages[:MAX_PAGES]],
            }
        return web.json_response(answer, headers=security.NO_STORE)

    async def explain(self, request: web.Request) -> web.Response:
        """Why an answer came out as it did."""
        require_own_page(request)
        said = await _read(request)
        channel, words = await self._channel(said), _words(said)
        kept = await self._stores.records.get(channel.id, _question(said))
        why = explain(kept.record, words) if kept else words.feedback_expired
        return web.json_response({"why": why}, headers=security.NO_STORE)

    async def _channel(self, said: dict[str, Any]) -> Channel:
        """The local channel that is spoken of.

        Raises:
            web.HTTPNotFound: there is none.
        """
        try:
            channel = await self._stores.channels.get(int(said["channel"]))
        except (UnknownChannel, KeyError, ValueError, TypeError, OverflowError):
            raise web.HTTPNotFound from None
        if channel.platform is not Platform.LOCAL:
            raise web.HTTPNotFound
        return channel


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


def _words(said: dict[str, Any]) -> ReplyWords:
    language = said.get("language")
    return reply_words(Language(language) if language in set(Language) else Language.ENGLISH)

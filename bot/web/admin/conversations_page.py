"""Conversations of a channel: questions with their answers, most asked questions, and gaps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from bot.chat.notifications.question_gaps import find_gaps, most_asked
from bot.core.plaintext import replace_invalid_chars
from bot.web.admin.admin_pages import JSON_ENDING, AdminPages, json_page, wants_json
from storage.chat.traces import MAX_LISTED, QuestionRecords, StoredRecord

# Most asked questions, and gaps, that are shown.
MAX_GROUPS = 12
MAX_WORDS_CHARS = 200


class ConversationsPage:
    """Conversations page; covers the retention period of question records."""

    def __init__(self, pages: AdminPages, records: QuestionRecords) -> None:
        self._pages = pages
        self._records = records

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the page."""
        place = "/console/conversations"
        return [
            web.get(place, self.index, name="admin_conversations"),
            web.get(
                place + r"/{channel:\d{1,9}}" + JSON_ENDING, self.show, name="admin_conversations_channel"
            ),
        ]

    async def index(self, request: web.Request) -> web.Response:
        """Redirect to the channel chosen in the form, or list the channels."""
        channels = await self._pages.chosen(request, "conversations")
        return self._pages.show(request, "conversations.html", channels=channels, channel=None)

    async def show(self, request: web.Request) -> web.Response:
        """Return a channel's questions, filtered by the query's ``q`` and paginated by ``before``."""
        channel, channels = await self._pages.channel(request)
        words, before = (
            replace_invalid_chars(request.query.get("q", "").strip()[:MAX_WORDS_CHARS]),
            _before(request),
        )
        kept = await self._records.search(channel.id, words, before)
        if wants_json(request):
            return json_page([_conversation_turn(one) for one in kept])
        asked = await self._records.asked_since(channel.id, self._records.kept_since)
        return self._pages.show(
            request,
            "conversations.html",
            channel=channel,
            channels=channels,
            words=words,
            is_first=before is None,
            turns=[_conversation_turn(one) for one in kept],
            older=kept[-1].asked_at.isoformat() if len(kept) == MAX_LISTED else None,
            often=most_asked(asked, MAX_GROUPS),
            gaps=find_gaps(asked)[:MAX_GROUPS],
        )


def _before(request: web.Request) -> datetime | None:
    """Return the timestamp in the query's ``before``, None if it is missing.

    Raises:
        web.HTTPBadRequest: it is not an ISO timestamp with a time zone.
    """
    if not (said := request.query.get("before")):
        return None
    try:
        moment = datetime.fromisoformat(said)
        if moment.tzinfo is None:
            raise web.HTTPBadRequest
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise web.HTTPBadRequest from None


def _conversation_turn(kept: StoredRecord) -> dict[str, Any]:
    """Return a question with the answer that was shown, verbatim."""
    record = kept.record
    return {
        "id": kept.key,
        "asked_at": kept.asked_at.isoformat(timespec="seconds"),
        "state": kept.state,
        "question": record["question"],
        "answer": record["answer"],
        "citations": record["citations"],
        "figures": record["figures"],
    }

"""Console page: ask, read the answer, see the marked page beside it. Local channels only."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from aiohttp import web

from bot.answers.citations.signed_links import Links
from bot.answers.citations.source_buttons import cited_pages, picture_words
from bot.chat.conversation.live_updates import live_updates
from bot.chat.conversation.memory import answer_in_thread
from bot.chat.conversation.queue_limits import QuestionRateLimiter
from bot.core.models import Answer, AnswerState, CitedPage, Question
from bot.core.plaintext import replace_invalid_chars, without_markers
from bot.core.ports import AnswerListener, QuestionAnswering
from bot.core.wording import reply_words
from bot.sign_in_settings import Role
from bot.uploads.upload_places import UploadPlace, UploadPlaces
from bot.web import security
from bot.web.middleware import log_failure
from bot.web.security import Visitor, enforce_rate_limit, require_own_page, require_visitor
from bot.web.templates import Templates
from storage.chat_models import Notice
from storage.clock import utc_now
from storage.documents.progress import Progress
from storage.errors import UnknownChannel
from storage.models import Channel, Platform
from storage.sql.audit import AuditedAction
from storage.stores import Stores
from storage.web_pages.page_store import count_pages, listed_pages

MAX_ID = 999_999_999
# Documents listed per group (unreadable, newest); the others are counted.
MAX_LISTED = 60
MAX_RECEIPTS = 12
MAX_SUGGESTIONS = 6
LABEL_CHARS = 140
# Errors raised by requests that our script did not make.
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
LINES = "application/x-ndjson"
# Interval between partial answers of a stream.
LINES_INTERVAL_SECONDS = 0.1


class Console:
    """Console page, and the JSON routes of its script."""

    def __init__(
        self,
        *,
        answering: QuestionAnswering,
        stores: Stores,
        links: Links,
        pages: Templates,
        places: UploadPlaces,
        rates: QuestionRateLimiter,
        question_chars: int,
    ) -> None:
        self._answering = answering
        self._stores = stores
        self._links = links
        self._pages = pages
        self._places = places
        self._rates = rates
        self._question_chars = question_chars

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the console."""
        return [
            web.get("/", self.show, name="console"),
            web.get(r"/console/channels/{id:\d{1,9}}", self.send_channel, name="console_channel"),
            web.get("/console/channels", self.send_channels, name="console_channels"),
            web.post("/console/ask", self.ask, name="console_ask"),
            web.post("/console/forget", self.forget, name="console_forget"),
        ]

    async def show(self, request: web.Request) -> web.Response:
        """Return the page."""
        visitor = require_visitor(request)
        may_change = visitor.role >= Role.ADMIN
        channels = await self._local_channels(visitor)
        return self._pages.page(
            "console.html",
            security.CONSOLE_HEADERS,
            root="./",
            channels=channels,
            first=await self._places.first() if may_change else None,
            signed_in_as=visitor.name,
            may_change=may_change,
            question_chars=self._question_chars,
        )

    async def send_channels(self, request: web.Request) -> web.Response:
        """Return the local channels."""
        channels = await self._local_channels(require_visitor(request))
        rows = [{"id": channel.id, "name": channel.name} for channel in channels]
        return _json({"channels": rows})

    async def send_channel(self, request: web.Request) -> web.Response:
        """Return a channel's documents, reading progress, web pages and suggested questions."""
        visitor = require_visitor(request)
        channel = await self._channel(visitor, int(request.match_info["id"]))
        documents = await self._stores.catalog.recent(channel.id, MAX_LISTED)
        progress = await self._stores.catalog.progress(channel.id)
        may_upload = visitor.role >= Role.ADMIN
        place = await self._places.for_channel(channel.id) if may_upload else None
        return _json(
            {
                "name": channel.name,
                "upload": _place_view(place),
                "documents": [
                    {
                        "id": str(document.document),
                        "version": document.version_id,
                        "file": document.file,
                        "title": document.title,
                        "pages": document.pages,
                        "state": document.state,
                        "rung": document.rung,
                        "reason": document.reason,
                    }
                    for document in documents
                ],
                "progress": _progress_view(progress),
                "web": await self._web_view(channel),
                "suggestions": _suggestions(
                    await self._stores.notices.sample_questions(channel.id, MAX_RECEIPTS)
                ),
            }
        )

    async def _web_view(self, channel: Channel) -> dict[str, int] | None:
        """Return counts of the channel's approved web pages by state, None if it has none.

        Includes the quotes it was shown that have disappeared from their pages.
        """
        domains = (await self._stores.web_sources.current()).domains_for(channel)
        if not domains:
            return None
        since = utc_now() - timedelta(days=self._stores.settings.web_cache_days)
        lost = await self._stores.web_pages.lost_quotes(channel.id)
        pages = await listed_pages(domains, self._stores.web_pages)
        return {**count_pages(pages, since), "lost_quotes": len(lost)}

    async def ask(self, request: web.Request) -> web.StreamResponse:
        """Answer one question: as JSON, or streamed as JSON lines (NDJSON) if the client accepts them."""
        visitor = require_own_page(request)
        channel_id, text, thread = await self._read_question(request)
        channel = await self._channel(visitor, channel_id)
        enforce_rate_limit(self._rates, visitor)
        question = Question(uuid4().hex, text, channel, datetime.now(UTC), asker=visitor.actor)
        if request.headers.get("Accept") == LINES:
            return await _send_lines(request, partial(self._answer, request, question, thread))
        view = await self._answer(request, question, thread)
        return _json(view, status=200 if "text" in view else 500)

    async def forget(self, request: web.Request) -> web.Response:
        """Erase a thread's conversation memory; the records of its questions are retained as usual."""
        visitor = require_own_page(request)
        try:
            asked = await request.json()
            channel_id, thread = int(asked["channel"]), _thread_name(asked["thread"])
        except MALFORMED:
            raise web.HTTPBadRequest from None
        channel = await self._channel(visitor, channel_id)
        action = AuditedAction(visitor.actor, "forget", channel.tenant, thread)
        return _json({"forgotten": await self._stores.memory.erase(channel.id, thread, action)})

    async def _answer(
        self,
        request: web.Request,
        question: Question,
        thread: str | None,
        listener: AnswerListener | None = None,
    ) -> dict[str, Any]:
        """Return the answer as the page shows it, without ``text`` if answering failed."""
        try:
            answer = await answer_in_thread(self._answering, self._stores.memory, question, thread, listener)
            return self._answer_view(question, answer)
        except Exception as error:  # outermost boundary: details go to the log only
            log_failure(request, error)
            return {"state": AnswerState.FAILED}

    async def _read_question(self, request: web.Request) -> tuple[int, str, str | None]:
        """Return the channel id and text of a question, and the thread id that its page generated.

        Raises:
            web.HTTPBadRequest: not a question as our script sends it.
        """
        try:
            asked = await request.json()
            channel_id, text = int(asked["channel"]), str(asked["question"]).strip()
            thread = _thread_name(asked["thread"]) if "thread" in asked else None
            text.encode()
        except MALFORMED:
            raise web.HTTPBadRequest from None
        if not text or len(text) > self._question_chars or not 0 < channel_id <= MAX_ID:
            raise web.HTTPBadRequest
        return channel_id, replace_invalid_chars(text), thread

    async def _local_channels(self, visitor: Visitor) -> Sequence[Channel]:
        return [one for one in await self._stores.channels.all(Platform.LOCAL) if visitor.may_see(one)]

    async def _channel(self, visitor: Visitor, channel_id: int) -> Channel:
        """Return a local channel that the visitor may see; other channels count as missing.

        Raises:
            web.HTTPNotFound: no local channel has this id.
        """
        if not 0 < channel_id <= MAX_ID:
            raise web.HTTPNotFound
        try:
            channel = await self._stores.channels.get(channel_id)
        except UnknownChannel:
            raise web.HTTPNotFound from None
        if not channel.is_local or not visitor.may_see(channel):
            raise web.HTTPNotFound
        return channel

    def _answer_view(self, question: Question, answer: Answer) -> dict[str, Any]:
        near, words = answer.nearest, reply_words(answer.language)
        is_searched = answer.state not in {AnswerState.CHAT, AnswerState.FAILED}
        return {
            "question": question.id,
            "feedback": [words.helpful, words.not_helpful, words.why] if is_searched else [],
            "state": answer.state,
            "language": answer.language,
            "text": answer.text,
            "headings": answer.headings,
            "generated": words.generated if answer.is_generated else "",
            "understood": "\n".join(words.query_notes(answer)),
            "citations": [
                {
                    "number": citation.number,
                    "title": citation.title,
                    "file": citation.file,
                    "page": citation.page or None,
                    "quote": citation.quote,
                    **self._place(citation.url, is_web=bool(citation.host)),
                }
                for citation in answer.citations
            ],
            "sources": [self._source_view(page, answer) for page in cited_pages(answer, LABEL_CHARS)],
            "figures": [
                {
                    "label": words.figure_label("", figure.page, is_table=figure.is_table),
                    "caption": figure.caption,
                    "file": figure.file,
                    "view": self._links.viewer_path(figure.url),
                    "image": self._links.figure_path(figure.image),
                    "alt": picture_words(answer, figure)[1],
                }
                for figure in answer.figures
            ],
            "nearest": near
            and {
                "file": near.file,
                "label": words.source_label(near.page, near.name),
                "note": words.nearest_note,
                "view": self._links.viewer_path(near.url),
            },
            "unread": [f"{unread.file}: {unread.reason}" for unread in answer.unread],
            "milliseconds": answer.milliseconds.total,
        }

    def _source_view(self, page: CitedPage, answer: Answer) -> dict[str, Any]:
        """Return one source button: a cited page with all quotes from it."""
        cited = [citation for citation in answer.citations if citation.number in page.numbers]
        quotes = (citation.quote for citation in cited)
        return {
            "numbers": page.numbers,
            "label": page.label,
            "quotes": [quote for quote in dict.fromkeys(quotes) if quote],
            **self._place(page.url, is_web=any(citation.host for citation in cited)),
        }

    def _place(self, url: str, *, is_web: bool) -> dict[str, str]:
        """Return the target of a control: our viewer, or the web page itself."""
        return {"web": url} if is_web else {"view": self._links.viewer_path(url)}


def _place_view(place: UploadPlace | None) -> dict[str, str | None] | None:
    """Return the folder that a channel's PDFs are uploaded to."""
    if place is None:
        return None
    return {"place": place.key, "folder": place.location, "problem": place.problem}


def _thread_name(id_: Any) -> str:
    return f"console {UUID(id_)}"


def _suggestions(stored: Sequence[tuple[Notice, str]]) -> list[dict[str, str]]:
    """Return suggested questions: headings of new files."""
    return [
        {"question": text, "title": notice.title or notice.file} for notice, text in stored[:MAX_SUGGESTIONS]
    ]


def _progress_view(progress: Progress) -> dict[str, Any]:
    return {
        "files": progress.files,
        "answering": progress.files_answering,
        "pages": progress.pages,
        "waiting": progress.waiting,
        "quarantined": progress.quarantined,
        "rungs": [
            {
                "rung": one.rung,
                "files": one.files_done,
                "failed": one.files_failed,
                "pages": one.pages_done,
                "pages_per_second": one.pages_per_second,
                "seconds_left": one.seconds_left,
            }
            for one in progress.rungs
        ],
    }


async def _send_lines(
    request: web.Request, answer: Callable[[AnswerListener], Awaitable[dict[str, Any]]]
) -> web.StreamResponse:
    """Stream each partial answer as a line of JSON, and the final answer as the last line."""
    response = web.StreamResponse(headers=security.NO_STORE | {"Content-Type": LINES})
    await response.prepare(request)

    async def send(value: object) -> None:
        with suppress(ConnectionError):
            await response.write(f"{json.dumps(value)}\n".encode())

    async with live_updates(
        lambda text: send({"beginning": without_markers(text)}), LINES_INTERVAL_SECONDS
    ) as listener:
        view = await answer(listener)
    await send(view)
    return response


def _json(value: object, status: int = 200) -> web.Response:
    return web.json_response(value, status=status, headers=security.NO_STORE)

"""Search debugger: a question's candidates with their scores and ranks, the judge, the prompts.

Shows the record that ``footnote records`` prints, of a stored question or of one asked here, which is not
stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from aiohttp import web

from bot.answers.trace import STAGES, QuestionRecord
from bot.chat.conversation.queue_limits import QuestionRateLimiter
from bot.core.models import Question
from bot.core.plaintext import replace_invalid_chars
from bot.sign_in_settings import Role
from bot.web.admin.admin_pages import JSON_ENDING, AdminPages, json_page, wants_json
from bot.web.security import enforce_rate_limit, require_own_form
from storage.chat.traces import QuestionRecords

Json = dict[str, Any]
# Answers a question without storing its record.
TraceQuestion = Callable[[Question], Awaitable[QuestionRecord]]

# Column titles of the stages.
STAGE_NAMES = {
    "bm25": "BM25",
    "vector": "Vector",
    "mix": "Fused",
    "relevance": "Relevance",
    "ranked": "With age",
    "reranked": "Reranker",
}
# Stage -> stage whose order it changes.
FOLLOWS = {"relevance": "mix", "ranked": "relevance"}
PART_NAMES = {
    "coverage": "words covered",
    "named": "document named",
    "document": "document on topic",
    "outdated": "older edition",
    "freshness": "freshness",
    "dated_by_arrival": "dated by day added",
}


class SearchDebugger:
    """Search debugger page: shows question records, and runs questions."""

    def __init__(
        self,
        pages: AdminPages,
        records: QuestionRecords,
        trace: TraceQuestion,
        rates: QuestionRateLimiter,
        question_chars: int,
    ) -> None:
        self._pages = pages
        self._records = records
        self._trace = trace
        self._rates = rates
        self._question_chars = question_chars

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the debugger."""
        channel = r"/console/search/{channel:\d{1,9}}"
        return [
            web.get("/console/search", self.index, name="admin_search"),
            web.get(channel, self.list, name="admin_search_channel"),
            web.post(channel, self.run, name="admin_search_run"),
            web.get(channel + r"/{key:[\w-]{1,64}}" + JSON_ENDING, self.show, name="admin_search_record"),
        ]

    async def index(self, request: web.Request) -> web.Response:
        """Redirect to the channel chosen in the form, or list the channels."""
        channels = await self._pages.chosen(request, "search")
        return self._pages.show(request, "search.html", channels=channels, channel=None, kept=(), chars=1)

    async def list(self, request: web.Request) -> web.Response:
        """Return a channel's latest records, and a question form."""
        channel, channels = await self._pages.channel(request)
        kept = await self._records.latest(channel.id)
        return self._pages.show(
            request,
            "search.html",
            channels=channels,
            channel=channel,
            kept=kept,
            chars=self._question_chars,
        )

    async def show(self, request: web.Request) -> web.Response:
        """Return one stored record."""
        channel, _ = await self._pages.channel(request)
        kept = await self._records.get(channel.id, request.match_info["key"])
        if kept is None:
            raise web.HTTPNotFound
        return self._page(request, channel.name, kept.record, is_kept=True)

    async def run(self, request: web.Request) -> web.Response:
        """Answer a question now and show its record, which is not stored."""
        visitor = require_own_form(request, Role.READER)
        channel, _ = await self._pages.channel(request)
        text = replace_invalid_chars(str((await request.post()).get("question", "")).strip())
        if not text or len(text) > self._question_chars:
            raise web.HTTPBadRequest
        enforce_rate_limit(self._rates, visitor)
        # Without an asker, admin commands are not executed.
        record = await self._trace(Question(uuid4().hex, text, channel, datetime.now(UTC)))
        value = await asyncio.to_thread(record.as_json)
        return self._page(request, channel.name, value, is_kept=False)

    def _page(self, request: web.Request, name: str, record: Json, *, is_kept: bool) -> web.Response:
        if wants_json(request):
            return json_page(record)
        return self._pages.show(
            request,
            "record.html",
            name=name,
            record=record,
            is_kept=is_kept,
            searches=[search_view(one) for one in record["searches"]],
            prompts=list(prompt_views(record)),
            stages=STAGE_NAMES,
        )


def search_view(search: Json) -> Json:
    """Return a stored search prepared for display."""
    ordered = sorted(search["candidates"], key=lambda one: (one["rank"] is None, one["rank"] or 0))
    return {
        **search,
        "signals": list(_signals(search["verdict"] or {})),
        "candidates": [_candidate_view(one) for one in ordered],
    }


def _signals(verdict: Json) -> Iterator[tuple[str, float | None, float | None, float | None]]:
    """Yield (signal, value, weight, contribution to the log-odds)."""
    weights = verdict.get("weights", {})
    for name, value in ({"bias": 1.0} | verdict.get("signals", {})).items():
        weight = weights.get(name)
        adds = None if weight is None or value is None else weight * float(value) + 0.0  # turns -0.0 into 0.0
        yield name, None if value is None else float(value), weight, adds


def _candidate_view(one: Json) -> Json:
    places, parts = one["places"], one["parts"]
    scores = {"bm25": one["bm25"], "vector": one["vector"], "ranked": one["score"], **parts}
    before = places.get("ranked")
    return {
        **one,
        "cells": [
            (name, scores.get(name), places.get(name), _moved(places, FOLLOWS.get(name), name))
            for name in STAGES
        ],
        "moved": before - one["rank"] if before and one["rank"] else 0,
        "parts": [(label, parts[name]) for name, label in PART_NAMES.items() if parts.get(name)],
    }


def _moved(places: Json, before: str | None, after: str) -> int:
    """Return by how many ranks a stage moved a candidate up; negative: down."""
    return places[before] - places[after] if before and {before, after} <= places.keys() else 0


def prompt_views(record: Json) -> Iterator[Json]:
    """Yield every prompt sent to a model, in order, with its purpose."""
    auxiliary_calls = [(f"auxiliary call: {one['purpose']}", one) for one in record["auxiliary_calls"]]
    for purpose, one in [
        *auxiliary_calls,
        *((f"draft of the {draft['author']}", draft) for draft in record["drafts"]),
    ]:
        for prompt in one["prompts"]:
            tokens = prompt["tokens"]
            total = tokens["system"] + tokens["user"]
            share = tokens["markers"] / total if total else None
            yield {**prompt, "purpose": purpose, "error": one["error"], "total": total, "share": share}

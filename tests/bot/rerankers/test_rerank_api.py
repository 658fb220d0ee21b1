"""A reranking endpoint over real HTTP: the common request forms, and any other response."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from fakes.core import ask, make_passage
from harness.tables import for_each

from bot.answer_settings import AnswerSettings
from bot.core.errors import RerankerError
from bot.rerankers.rerank_api import ApiReranker
from storage.text.analyzer import analyze
from storage.text.token_counts import count_tokens

QUESTION = ask("When do backups run?")
PASSAGES = [
    make_passage(text, title="", ordinal=number)
    for number, text in enumerate(["The pump is red.", "Backups run at 2 AM.", "Who backups what?"])
]
RIGHT = [0.0, 0.5, 0.25]
Answer = Callable[[dict[str, Any]], web.StreamResponse]


@dataclass
class RerankServer:
    """The endpoint; ``answer`` makes the response to a body, after ``delay`` seconds."""

    answer: Answer
    url: str = ""
    delay: float = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Handle one request."""
        self.bodies.append(await request.json())
        self.keys.append(request.headers.get("Authorization"))
        await asyncio.sleep(self.delay)
        return self.answer(self.bodies[-1])


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[RerankServer]:
    """Run an endpoint."""
    server = RerankServer(answer)
    application = web.Application()
    application.router.add_post("/v2/rerank", server.serve)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v2/rerank"
    try:
        yield server
    finally:
        await runner.cleanup()


def shared(query: str, text: str) -> float:
    """Return the share of the question's terms that a text contains."""
    terms = analyze(query)
    return sum(term in analyze(text) for term in terms) / len(terms)


def documents_form(body: dict[str, Any]) -> web.Response:
    """Respond like Cohere, Jina and vLLM: sorted by score, with indexes."""
    if "documents" not in body:
        return web.json_response({"message": "documents: field required"}, status=422)
    results = [
        {"index": number, "relevance_score": shared(body["query"], text)}
        for number, text in enumerate(body["documents"])
    ]
    results.sort(key=lambda one: -one["relevance_score"])
    return web.json_response({"id": "1", "results": results[: body["top_n"]], "meta": {}})


def texts_form(body: dict[str, Any]) -> web.Response:
    """Respond like Text Embeddings Inference: a list."""
    if "texts" not in body:
        return web.json_response({"error": "missing field `texts`"}, status=422)
    scores = [{"index": n, "score": shared(body["query"], text)} for n, text in enumerate(body["texts"])]
    return web.json_response(sorted(scores, key=lambda one: -one["score"]))


def data_form(body: dict[str, Any]) -> web.Response:
    """Respond like Voyage: the same under another key."""
    scored = [
        {"index": number, "relevance_score": shared(body["query"], text)}
        for number, text in enumerate(body["documents"])
    ]
    return web.json_response({"object": "list", "data": scored})


def connect(url: str, **wanted: Any) -> ApiReranker:
    usual = {"rerank_key": "the-key", "rerank_model": "rerank-1", "rerank_seconds": 5.0}
    return ApiReranker(AnswerSettings(rerank_url=url, **usual | wanted))


@pytest.mark.parametrize("form", [documents_form, texts_form, data_form])
async def test_every_common_form_yields_scores_in_passage_order(form: Answer) -> None:
    """Shows that the form is detected once by trying, and that scores are assigned by index."""
    async with serving(form) as server, aclosing(connect(server.url)) as reranker:
        for _ in range(2):
            assert await reranker.relevance(QUESTION, PASSAGES) == pytest.approx(RIGHT)
        assert len(server.bodies) == (3 if form is texts_form else 2)
        assert set(server.keys) == {"Bearer the-key"}
        assert server.bodies[-1]["model"] == "rerank-1"


async def test_long_passages_are_cut_and_unset_fields_are_not_sent() -> None:
    """Shows that no more than the window is sent, and neither model nor key if not set."""
    async with serving(documents_form) as server:
        bare = connect(server.url, rerank_key=None, rerank_model=None, rerank_window=64)
        async with aclosing(bare) as reranker:
            await reranker.relevance(QUESTION, [*PASSAGES, make_passage("backup tapes " * 500, title="")])
    (body,) = server.bodies
    assert 60 <= count_tokens(body["documents"][3]) <= 64
    assert "model" not in body
    assert server.keys == [None]


def said(value: Any) -> Answer:
    """Return a response with status 200."""
    return lambda _: web.json_response(value)


def refused(status: int) -> Answer:
    """Return a response with another status."""
    return lambda _: web.json_response({"error": "no"}, status=status)


ONE = {"index": 0, "relevance_score": 0.5}
FAULTS: dict[str, Answer] = {
    "a wrong key": refused(401),
    "a wrong address": refused(404),
    "neither form": refused(422),
    "too many requests": refused(429),
    "down": refused(503),
    "a redirect": lambda _: web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}),
    "a page of HTML": lambda _: web.Response(text="<html>", content_type="text/html"),
    "an empty reply": lambda _: web.Response(text=""),
    "half a reply": lambda _: web.Response(text='{"results": [{"ind', content_type="application/json"),
    "wrong bytes": lambda _: web.Response(body=b"\xff\xfe\xff", content_type="application/json"),
    "null": said(None),
    "a text": said("fine"),
    "no results": said({"results": []}),
    "an error object": said({"error": "overloaded"}),
    "too few": said({"results": [ONE]}),
    "one twice": said({"results": [ONE, ONE, ONE]}),
    "another index": said({"results": [{**ONE, "index": number} for number in (1, 2, 3)]}),
    "no index": said([{"score": 1}] * 3),
    "no score": said({"results": [{"index": number} for number in range(3)]}),
    "a text for a score": said([{"index": number, "score": "high"} for number in range(3)]),
    "null for a score": said([{"index": number, "score": None} for number in range(3)]),
    "no objects": said([1, 2, 3]),
}


@for_each("name", FAULTS)
async def test_every_fault_raises_one_error_without_any_content(name: str) -> None:
    """Shows that a faulty response only leaves the order unchanged."""
    async with serving(FAULTS[name]) as server, aclosing(connect(server.url)) as reranker:
        with pytest.raises(RerankerError) as caught:
            await reranker.relevance(QUESTION, PASSAGES)
    assert "endpoint" in str(caught.value)
    assert "backup" not in str(caught.value).lower()
    assert "the-key" not in str(caught.value)


async def test_an_endpoint_recovers_after_a_fault() -> None:
    """Shows that a fault, even one that looks like another form, affects one question only."""
    replies: list[Answer] = [refused(503), refused(400), refused(400)]

    def answer(body: dict[str, Any]) -> web.StreamResponse:
        return (replies.pop(0) if replies else documents_form)(body)

    async with serving(answer) as server:
        async with aclosing(connect(server.url)) as reranker:
            for _ in range(2):
                with pytest.raises(RerankerError):
                    await reranker.relevance(QUESTION, PASSAGES)
            assert await reranker.relevance(QUESTION, PASSAGES) == pytest.approx(RIGHT)


async def test_an_unreachable_or_silent_endpoint_times_out() -> None:
    """Shows that a closed port and a silent server raise an error within the timeout."""

    async with serving(documents_form) as slow:
        slow.delay = 30
        for url in ("http://127.0.0.1:1/rerank", slow.url):
            async with aclosing(connect(url, rerank_seconds=0.5)) as reranker:
                started = time.monotonic()
                with pytest.raises(RerankerError, match="unreachable or timed out"):
                    await reranker.relevance(QUESTION, PASSAGES)
                assert time.monotonic() - started < slow.delay - 5

"""Embeddings from an OpenAI-compatible endpoint: a real server, and a fake one that makes every mistake."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from engines.llm import LanguageModel
from fakes.embedding_server import (
    DIMENSIONS,
    EmbeddingServer,
    Fault,
    change,
    embed_by_terms,
    embedding_server,
    refuse,
    say,
)

from storage.embeddings.base import CACHE_SIZE, QueryEmbedder
from storage.embeddings.openai_embedder import EndpointEmbedder
from storage.errors import EmbedderUnavailable, InfrastructureError, SettingsError
from storage.settings import StorageSettings
from storage.text.token_counts import count_tokens


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    """A running endpoint."""
    async with embedding_server() as running:
        yield running


def connect(url: str, **settings: Any) -> EndpointEmbedder:
    """Return an embedder connected to an endpoint."""
    wanted = {"embed_model": "terms", "embed_base_url": url, "embed_dimensions": DIMENSIONS, **settings}
    return EndpointEmbedder.connect(StorageSettings(**wanted), "the-key")


async def test_vectors_are_normalized_and_in_the_order_of_their_texts(server: EmbeddingServer) -> None:
    """Shows that replies are sorted by index, and that vectors are normalized to unit length."""
    texts = [f"the backup of server {number}" for number in range(7)]
    async with aclosing(connect(server.url)) as embedder:
        vectors = await embedder.aembed(texts)
        assert (await embedder.aembed([])).shape == (0, DIMENSIONS)
    expected = np.array([embed_by_terms(text, DIMENSIONS) for text in texts])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert server.keys == ["Bearer the-key"]


async def test_batches_respect_item_and_token_limits(server: EmbeddingServer) -> None:
    """Shows that no request exceeds the endpoint's limits, and that no text is lost."""
    texts = [f"word {number} " * (1 + number % 9) for number in range(40)]
    async with aclosing(connect(server.url, embed_batch_items=6, embed_batch_tokens=60)) as embedder:
        assert (await embedder.aembed(texts)).shape == (40, DIMENSIONS)
    assert server.texts == texts
    sizes = [(len(one["input"]), sum(map(count_tokens, one["input"]))) for one in server.requests]
    assert all(items <= 6 and tokens <= 60 for items, tokens in sizes)
    assert len(sizes) < 25


async def test_a_text_over_the_window_is_truncated_before_sending(server: EmbeddingServer) -> None:
    """Shows that a very long question is not refused, and that an empty text is not sent as one."""
    async with aclosing(connect(server.url, embed_window=32)) as embedder:
        await embedder.aembed(["día y noche 😀 " * 400, ""])
    longest, empty = server.texts
    assert 28 <= count_tokens(longest) <= 32
    assert ("día y noche 😀 " * 400).startswith(longest)
    assert empty == " "


async def test_dimensions_are_sent_once_the_vectors_are_too_long(
    server: EmbeddingServer,
) -> None:
    """Shows that ``dimensions`` is sent only to a model whose vectors are longer, which is detected."""
    server.dimensions = 2 * DIMENSIONS
    async with aclosing(connect(server.url)) as embedder:
        assert (await embedder.aembed(["backup"])).shape == (1, DIMENSIONS)
        assert (await embedder.aembed(["tapes"])).shape == (1, DIMENSIONS)
    assert [one.get("dimensions") for one in server.requests] == [None, DIMENSIONS, DIMENSIONS]


FAULTS: dict[str, tuple[Fault, str]] = {
    "too many requests": (refuse(429), "rate-limiting"),
    "a server error": (refuse(503), "status 503"),
    "a wrong key": (refuse(401), "FOOTNOTE_EMBED_API_KEY"),
    "an unknown model": (refuse(404), "FOOTNOTE_EMBED_MODEL"),
    "a page of HTML": (say("<html>Welcome</html>", "text/html"), "FOOTNOTE_EMBED_BASE_URL"),
    "truncated JSON": (say('{"data": [{"index": 0, "embedd'), "FOOTNOTE_EMBED_BASE_URL"),
    "JSON of another kind": (say("[1, 2]"), "invalid response"),
    "an empty object": (say("{}"), "invalid response"),
    "too few vectors": (change(lambda right: right["data"].pop()), "invalid response"),
    "too many vectors": (change(lambda right: right["data"].append(right["data"][0])), "invalid response"),
    "one index twice": (change(lambda right: right["data"][0].update(index=0)), "invalid response"),
    "no index": (change(lambda right: right["data"][0].pop("index")), "invalid response"),
    "vectors of two lengths": (change(lambda right: right["data"][0]["embedding"].pop()), "invalid response"),
    "vectors that are too short": (
        change(lambda right: [one["embedding"].pop() for one in right["data"]]),
        "FOOTNOTE_EMBED_DIMENSIONS",
    ),
    "text for numbers": (change(lambda right: right["data"][0].update(embedding="abc")), "invalid response"),
    "not a number": (
        change(lambda right: right["data"][0]["embedding"].__setitem__(3, float("nan"))),
        "a zero or non-finite vector",
    ),
    "endless": (
        change(lambda right: right["data"][0]["embedding"].__setitem__(3, float("inf"))),
        "a zero or non-finite vector",
    ),
    "only zeros": (
        change(lambda right: right["data"][0].update(embedding=[0.0] * DIMENSIONS)),
        "a zero or non-finite vector",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_an_endpoint_fault_is_reported_as_the_engines(server: EmbeddingServer, name: str) -> None:
    """Shows that no endpoint error fails a file, and that the next call works again."""
    fault, sentence = FAULTS[name]
    async with aclosing(connect(server.url)) as embedder:
        server.faults.append(fault)
        with pytest.raises(EmbedderUnavailable, match=sentence) as caught:
            await embedder.aembed(["a secret text", "another one"])
        assert isinstance(caught.value, InfrastructureError)
        assert "secret" not in str(caught.value)
        assert (await embedder.aembed(["backup"])).shape == (1, DIMENSIONS)


@pytest.mark.parametrize(
    ("status", "setting"), [(400, "FOOTNOTE_EMBED_WINDOW"), (413, "FOOTNOTE_EMBED_BATCH")]
)
async def test_an_endpoint_that_refuses_every_text_is_not_bisected(
    server: EmbeddingServer, status: int, setting: str
) -> None:
    """Shows that a wrong setting costs a few requests, not two per text, and is named."""
    async with aclosing(connect(server.url)) as embedder:
        server.faults = [refuse(status)] * 20
        with pytest.raises(EmbedderUnavailable, match=setting):
            await embedder.aembed([f"a secret text {number}" for number in range(4)])
        assert len(server.faults) >= 20 - 3


async def test_a_refused_batch_is_halved_until_it_is_accepted(server: EmbeddingServer) -> None:
    """Shows that a text too long for the endpoint is embedded by its beginning, and the others whole."""
    long = "backup tapes " * 100
    server.takes = lambda texts: len(texts) < 3 and all(len(text) < 400 for text in texts)
    async with aclosing(connect(server.url)) as embedder:
        vectors = await embedder.aembed(["backup", long, "tapes", "holiday"])
        assert vectors.shape == (4, DIMENSIONS)
        assert np.allclose(vectors[[0, 2, 3]], await embedder.aembed(["backup", "tapes", "holiday"]))
    assert [text for text in server.texts if text.startswith("backup tapes") and len(text) > 100]


async def test_retry_after_is_passed_on(server: EmbeddingServer) -> None:
    """Shows that Retry-After is capped, and that an invalid value is ignored."""
    async with aclosing(connect(server.url)) as embedder:
        for header, seconds in [
            ("7", 7.0),
            ("86400", 600.0),
            ("-1", 0.0),
            ("Wed, 21 Oct", 0.0),
            ("nan", 0.0),
        ]:
            server.faults.append(refuse(429, **{"Retry-After": header}))
            with pytest.raises(EmbedderUnavailable) as caught:
                await embedder.aembed(["backup"])
            assert caught.value.retry_after == seconds


async def test_a_missing_or_endless_endpoint_is_unavailable() -> None:
    """Shows that a closed port and a trickling reply both end in EmbedderUnavailable, in time."""

    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.05)

    application = web.Application()
    application.router.add_post("/v1/embeddings", trickle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    slow = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    for url in ("http://127.0.0.1:1/v1", slow):
        async with aclosing(connect(url, embed_seconds=1)) as embedder:
            started = time.monotonic()
            with pytest.raises(EmbedderUnavailable, match="does not answer"):
                await embedder.aembed(["backup"])
            assert time.monotonic() - started < 20
    await runner.cleanup()


async def test_a_question_is_retried_once_without_a_long_wait(server: EmbeddingServer) -> None:
    """Shows that one failure is retried, two are not, and that a long Retry-After is not slept through."""
    async with aclosing(connect(server.url)) as embedder:
        asking = QueryEmbedder(embedder, 30)
        assert asking.space == embedder.space
        server.faults = [refuse(503)]
        assert (await asking.aembed(["backup"])).shape == (1, DIMENSIONS)
        server.faults = [refuse(503), refuse(503)]
        with pytest.raises(EmbedderUnavailable):
            await asking.aembed(["leave"])
        server.faults = [refuse(429, **{"Retry-After": "30"})]
        with pytest.raises(EmbedderUnavailable):
            await asking.aembed(["leave"])


async def test_the_same_question_is_embedded_once(server: EmbeddingServer) -> None:
    """Shows that a repeated question is cached in place, and that the least recent is evicted."""
    async with aclosing(connect(server.url)) as embedder:
        asking = QueryEmbedder(embedder, 30)
        first = await asking.aembed(["backup", "leave", "backup"])
        server.faults = [refuse(503), refuse(503)]
        assert np.array_equal(await asking.aembed(["leave", "backup"]), first[[1, 0]])
        server.faults = []
        await asking.aembed([f"backup {number}" for number in range(CACHE_SIZE)])
        server.faults = [refuse(503), refuse(503)]
        with pytest.raises(EmbedderUnavailable):
            await asking.aembed(["leave"])


async def test_embedding_a_question_has_a_deadline() -> None:
    """Shows that a hanging embedder times out with a message."""

    class Hanging:
        space = "never"

        async def aembed(self, texts: list[str]) -> None:
            await asyncio.Event().wait()

    with pytest.raises(EmbedderUnavailable, match=r"within 0\.2 s"):
        await QueryEmbedder(Hanging(), 0.2).aembed(["backup"])  # type: ignore[arg-type] # all it has is used


def test_the_space_depends_on_model_and_dimensions_not_the_url() -> None:
    """Shows that a model may move to another host, and that another model or length is another space."""
    here = connect("http://127.0.0.1:1/v1")
    there = connect("http://127.0.0.2:2/v1")
    others = [connect("http://h/v1", embed_model="other"), connect("http://h/v1", embed_dimensions=64)]
    assert (here.id, here.space) == (there.id, there.space)
    assert len({here.space, *(other.space for other in others)}) == 3
    assert all(one.space.isidentifier() and one.space.isascii() for one in (here, *others))


def test_incomplete_settings_name_the_missing_one() -> None:
    """Shows that OpenAI's own models need no dimensions, and that an unknown model does."""
    with pytest.raises(SettingsError, match="FOOTNOTE_EMBED_DIMENSIONS"):
        connect("http://h/v1", embed_dimensions=None)
    with pytest.raises(SettingsError, match="FOOTNOTE_EMBED_MODEL"):
        connect("http://h/v1", embed_model=None)
    assert (
        connect("http://h/v1", embed_model="text-embedding-3-small", embed_dimensions=None).dimensions == 1536
    )


@pytest.mark.engine("llm")
async def test_a_real_server_embeds_semantic_similarity(embedding_model: LanguageModel) -> None:
    """Shows that llama.cpp's endpoint works unchanged: order, length, refusal of a text that is too long."""
    settings = StorageSettings(
        embed_model=embedding_model.name, embed_base_url=embedding_model.url, embed_dimensions=576
    )
    async with aclosing(EndpointEmbedder.connect(settings, embedding_model.key)) as embedder:
        texts = ["Backups run every night.", "The backup runs nightly.", "Cats like tuna."]
        vectors = await embedder.aembed([*texts, texts[0]])
        assert vectors.shape == (4, 576)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
        assert vectors[0] @ vectors[3] > 0.999
    async with aclosing(EndpointEmbedder.connect(settings, "wrong")) as embedder:
        with pytest.raises(EmbedderUnavailable, match="FOOTNOTE_EMBED_API_KEY"):
            await embedder.aembed(["backup"])
    wide = settings.model_copy(update={"embed_window": 8192})
    async with aclosing(EndpointEmbedder.connect(wide, embedding_model.key)) as embedder:
        with pytest.raises(EmbedderUnavailable):
            await embedder.aembed(["word " * 4000])

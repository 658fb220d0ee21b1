"""Another embedder after a restart: questions are answered throughout, and a kill loses no work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from engines.llm import LanguageModel
from fakes.embedding_server import DIMENSIONS, EmbeddingServer, embedding_server, refuse
from harness.program import Program
from harness.waiting import until
from samples.paper import pdf
from sqlalchemy import func, select
from sqlmodel import col

from storage.sql.database import Database
from storage.sql.tables import CachedVectorRow, PublicationRow, ReadingRow

QUESTION = "When do backups run?"
DOWN = "Who restores a backup?"
MANUALS = [
    pdf(*(f"Manual {number}.{page}\nServer {number}{page} is restarted by hand." for page in range(6)))
    for number in range(2)
]
SECONDS = 300


@pytest.fixture
async def endpoint() -> AsyncIterator[EmbeddingServer]:
    """An embeddings endpoint that outlives the program."""
    async with embedding_server() as running:
        yield running


def choose(program: Program, url: str, model: str, dimensions: int, key: str = "k") -> None:
    """Configure an embeddings endpoint for the next start."""
    program.environment |= {
        "FOOTNOTE_EMBED_BASE_URL": url,
        "FOOTNOTE_EMBED_MODEL": model,
        "FOOTNOTE_EMBED_DIMENSIONS": str(dimensions),
        "FOOTNOTE_EMBED_API_KEY": key,
        "FOOTNOTE_EMBED_BATCH_ITEMS": "2",
        "FOOTNOTE_RECEIPTS": "off",  # trying sample questions would call the endpoint, too
    }


async def live_spaces(program: Program) -> list[str | None]:
    """Return the vector space of each live publication."""
    query = (
        select(col(ReadingRow.space))
        .join(PublicationRow, col(PublicationRow.reading_id) == ReadingRow.id)
        .where(col(PublicationRow.state) == "live")
    )
    database = await Database.open(f"sqlite:///{program.home / 'footnote.db'}")
    async with aclosing(database), database.snapshot() as session:
        return list(await session.scalars(query))


async def kept_vectors(program: Program) -> int:
    """Count cached vectors of an endpoint: texts that were answered but not cached are sent again."""
    query = select(func.count()).where(col(CachedVectorRow.space).startswith("endpoint_"))
    database = await Database.open(f"sqlite:///{program.home / 'footnote.db'}")
    async with aclosing(database), database.snapshot() as session:
        return await session.scalar(query) or 0


async def ask(program: Program) -> dict[str, Any]:
    """Ask the question by command; the answer must always be right."""
    answer = await asyncio.to_thread(program.ask, QUESTION, "it")
    assert answer["state"] == "passages", answer
    assert "2:00 AM" in answer["text"]
    return answer


async def asking_until(program: Program, is_so: Callable[[], Awaitable[bool]]) -> int:
    """Ask repeatedly until a condition holds; return how often."""
    end, asked = time.monotonic() + SECONDS, 0
    while not await is_so():
        assert time.monotonic() < end, program.log
        await ask(program)
        asked += 1
    return asked


async def begin(program: Program, sop: Path) -> str:
    """Make a home live in the bundled embedder's space; return that space."""
    program.drop("it", sop)
    for number, manual in enumerate(MANUALS):
        program.drop("it", manual, f"manual-{number}.pdf")
    async with program.serving():
        await program.until_live("it", 1 + len(MANUALS), "full")
    (space,) = set(await live_spaces(program))
    assert space is not None
    return space


@pytest.mark.long
async def test_another_embedder_takes_over_without_an_outage(
    any_program: Program, sop: Path, endpoint: EmbeddingServer
) -> None:
    """Shows on both indexes that switching costs no answer, and that a killed run resumes.

    No text is sent twice. A question whose vector cannot be computed fails, and is answered once the endpoint
    is back.
    """
    program = any_program
    old = await begin(program, sop)
    choose(program, endpoint.url, "terms", DIMENSIONS)

    endpoint.allowed = 3

    async def is_half_way() -> bool:
        return endpoint.refused > 0 and await kept_vectors(program) >= len(set(endpoint.texts))

    async def is_over() -> bool:
        spaces = set(await live_spaces(program))
        return old not in spaces

    process = program.start()
    try:
        await program.until_ready(process)
        await until(is_half_way, every=0.05)  # questions would interfere
        assert old in await live_spaces(program)
    finally:
        process.kill()
        process.wait()
    endpoint.allowed = None
    async with program.serving():
        assert await asking_until(program, is_over) >= 1
        (new,) = set(await live_spaces(program))
        assert new is not None
        assert new.startswith("endpoint_")
        answer = await ask(program)
        endpoint.faults = [refuse(503)] * 100
        down = await asyncio.to_thread(program.run, "ask", DOWN, "--channel", "it")
        assert (down.returncode, "503" in down.stdout) == (1, False)
        endpoint.faults.clear()
        await ask(program)
    assert any(passage["vector"] is not None for passage in answer["passages"])
    chunks = [text for text in endpoint.texts if text not in (QUESTION, DOWN)]
    documents = [text for text in chunks if text.startswith(("Manual", "Server"))]
    assert len(documents) == len(set(documents))


@pytest.mark.long
@pytest.mark.engine("llm")
async def test_a_home_on_a_real_embedding_server_answers(
    program: Program, sop: Path, embedding_model: LanguageModel
) -> None:
    """Covers llama.cpp's own server: vectors, the full rung, a question by meaning."""
    choose(program, embedding_model.url, embedding_model.name, 576, embedding_model.key)
    program.environment |= {
        "FOOTNOTE_EMBED_QUESTION_SECONDS": "60",  # a language model on a busy CPU
        "FOOTNOTE_SENTENCE_VECTORS": "false",
    }
    program.drop("it", sop)
    async with program.serving():
        await program.until_live("it", 1, "full")
        answer = await ask(program)
    assert all(passage["vector"] is not None for passage in answer["passages"])
    assert embedding_model.key not in program.log

"""Both engines rank real prose alike and with equal scores, so that thresholds hold for either."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from engines.weaviate import RealWeaviate
from samples.indexes import chunk, new_tenant, prose

from storage.index.base import Hit, SearchFilter
from storage.index.embedded.bm25 import SMALL
from storage.index.embedded.index import EmbeddedIndex
from storage.text.analyzer import analyze

TOP = 10
QUESTIONS = [
    "How does a class define the way its instances are compared?",
    "What happens when an exception is raised in a finally clause?",
    "Which methods emulate container types such as __getitem__?",
    "When is the asynchronous context manager's __aexit__ awaited?",
    "format specification mini-language with 0x and 1,234.5 and 50%",
    "the the of and to in a is",
    "str.format() vs f-strings",
    "PEP 634 structural pattern matching",
]


def asked(pieces: list[str]) -> list[list[str]]:
    """Return queries: real questions, and sentences from the text itself."""
    return [analyze(text) for text in (*QUESTIONS, *(piece[200:290] for piece in pieces[::30]))]


def scores(hits: list[Hit]) -> dict[tuple[str, int], float]:
    return {(str(hit.publication), hit.ordinal): hit.score for hit in hits}


@pytest.mark.engine("weaviate")
async def test_both_engines_give_the_same_hits_and_the_same_scores(
    weaviate: RealWeaviate, embedded: EmbeddedIndex, tmp_path: Path
) -> None:
    """On real prose in several publications: overlap@10 of at least .99, scores within 1e-4."""
    tenant, pieces = new_tenant(), prose(450)
    publications = [uuid4() for _ in range(5)]
    chunks = [
        chunk(publications[place % 5], place, text, title="Language reference")
        for place, text in enumerate(pieces)
    ]
    server = await weaviate.connect()
    for index in (embedded, server):
        await index.ensure_tenant(tenant)
        await index.write(tenant, chunks)
        await index.commit_publication(tenant, publications[0], chunks=len(chunks[::5]), vectors=0)
    shared, total = 0, 0
    for terms in asked(pieces):
        ours = scores(await embedded.search_keywords(tenant, terms, SearchFilter(), TOP))
        theirs = scores(await server.search_keywords(tenant, terms, SearchFilter(), TOP))
        both = ours.keys() & theirs.keys()
        assert {one: ours[one] for one in both} == pytest.approx({one: theirs[one] for one in both}, rel=1e-4)
        shared, total = shared + len(both), total + len(ours)
        known = set(terms)
        assert await embedded.document_frequencies(tenant, known) == await server.document_frequencies(
            tenant, known
        )
    await server.aclose()
    assert len(chunks) > SMALL
    assert shared >= 0.99 * total

"""Chooses the passages an answerer reads and shows them as a model sees them.

What a model sees is made of numbers, titles, pages, metadata, headings and text alone: boxes, ids, paths,
scores and links travel beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.markers import with_page_markers
from bot.core.models import Evidence, Passage
from bot.core.ports import ChunkReaderPort
from storage.metadata_models import self_description
from storage.tokens import count_tokens


async def gather_evidence(
    passages: Sequence[Passage], chunks: ChunkReaderPort, *, most: int, tokens: int
) -> list[Evidence]:
    """The first ``most`` passages that fit into ``tokens`` (cl100k_base), numbered from 1.

    The best passage is always among them.

    Raises:
        storage.errors.InfrastructureError: readings cannot be reached.
    """
    chosen: list[Passage] = []
    for passage in passages[:most]:
        tokens -= count_tokens(passage.text)
        if chosen and tokens < 0:
            break
        chosen.append(passage)
    read = await chunks.chunks_at([(one.publication.reading_id, one.ordinal) for one in chosen])
    return [
        Evidence(number, passage, chunk.page_starts, chunk.words)
        for number, (passage, chunk) in enumerate(zip(chosen, read, strict=True), start=1)
    ]


def format_passages(evidence: Sequence[Evidence], fence: str) -> str:
    """The passages as a model reads them.

    Args:
        evidence: what to show, in this order.
        fence: random text that no document can know; it opens and closes every passage.
    """
    return "\n\n".join(_format_passage(item, fence) for item in evidence)


def _format_passage(item: Evidence, fence: str) -> str:
    passage = item.passage
    facts = [f"title: {_line(passage.publication.title)}", f"page: {_pages(passage)}"]
    if says := self_description(passage.publication.metadata):
        facts.append(f"document: {_line(says)}")
    if passage.heading_path:
        facts.append(f"section: {' > '.join(map(_line, passage.heading_path))}")
    head = "\n".join((f"<passage {item.number} {fence}>", *facts))
    return f"{head}\n{with_page_markers(passage.text, item.page_starts)}\n</passage {fence}>"


def _pages(passage: Passage) -> str:
    first, last = passage.first_page, passage.last_page
    return str(first) if first == last else f"{first}-{last}"


def _line(text: str) -> str:
    """Text of a document on one line, so that it cannot pretend to be a passage's first lines."""
    return " ".join(text.split())

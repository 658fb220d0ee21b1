"""Evidence: selected passages and context expansion within a token budget."""

from __future__ import annotations

from dataclasses import replace

from fakes.core import Shelf, make_evidence, make_passage, make_publication

from bot.answers.retrieval.reranking import MAX_LIST_CHUNKS, ContextExpansion, gather_evidence, read_beside
from bot.core.models import Evidence

SECTION = ("Backups",)


async def grown(texts: list[tuple[str, tuple[str, ...]]], *found: int, tokens: int = 100) -> list[Evidence]:
    """Return the evidence for the chunks ``found`` of a document with these texts and headings."""
    publication = replace(make_publication(), chunks=len(texts))
    passages = [
        replace(make_passage(text, ordinal=at, heading_path=path), publication=publication)
        for at, (text, path) in enumerate(texts)
    ]
    evidence = make_evidence(*(passages[at] for at in found))
    return await ContextExpansion(evidence, Shelf(passages), tokens).expand()


def ordinals(evidence: list[Evidence]) -> list[int]:
    return [item.passage.ordinal for item in evidence]


async def test_a_passage_is_expanded_within_its_section() -> None:
    """Shows the next and the previous chunk, and none of another section."""
    texts = [("zero", ("Intro",)), *((f"text {number}", SECTION) for number in range(5))]
    assert ordinals(await grown(texts, 3)) == [3, 4, 2]
    assert ordinals(await grown(texts, 1)) == [1, 2]


async def test_added_passages_have_their_own_numbers() -> None:
    """Shows that numbers continue after those of the found passages, and that no chunk is read twice."""
    evidence = await grown([(f"text {number}", SECTION) for number in range(4)], 1, 2)
    assert ordinals(evidence) == [1, 2, 0, 3]
    assert [item.number for item in evidence] == [1, 2, 3, 4]


async def test_a_table_is_followed_to_its_end() -> None:
    """Shows that table rows continue over chunks with any heading, until the table ends."""
    rows = [(f"| row {number} | x |", (str(number),)) for number in range(3)]
    texts = [("Before.", ("a",)), *rows, ("After.", ("b",)), ("Later.", ("b",))]
    assert ordinals(await grown(texts, 2)) == [2, 3, 1]
    assert ordinals(await grown(texts, 1)) == [1, 2, 3]


async def test_expansion_keeps_to_the_token_budget() -> None:
    """Shows that the budget is never exceeded, and that 0 disables expansion."""
    texts = [("one", SECTION), ("two", SECTION), ("three", SECTION)]
    assert ordinals(await grown(texts, 1, tokens=1)) == [1, 2]
    assert ordinals(await grown(texts, 1, tokens=0)) == [1]


async def test_evidence_keeps_to_the_budget() -> None:
    """Passages are taken in order while they fit; the best one is always taken."""
    passages = [make_passage("word " * 100, ordinal=number) for number in range(5)]
    shelf = Shelf(passages)
    taken = await gather_evidence(passages, shelf, max_passages=4, tokens=250)
    assert [item.number for item in taken] == [1, 2]
    assert len(await gather_evidence(passages, shelf, max_passages=4, tokens=10)) == 1
    assert len(await gather_evidence(passages, shelf, max_passages=4, tokens=9999)) == 4


async def test_the_chunks_around_a_list_are_read_once() -> None:
    """Shows chunks of its section on both sides, numbered after the evidence, without what it holds."""
    publication = replace(make_publication(), chunks=10)
    passages = [
        replace(make_passage(f"text {at}", ordinal=at, heading_path=path), publication=publication)
        for at, path in enumerate([("Intro",), *8 * [SECTION], ("End",)])
    ]
    evidence = make_evidence(passages[2], passages[3])
    beside = await read_beside(evidence[0], evidence, Shelf(passages))
    assert ordinals(beside) == [1, 4, 5, 2 + MAX_LIST_CHUNKS]
    assert [item.number for item in beside] == [3, 4, 5, 6]
    assert ordinals(await read_beside(make_evidence(passages[9])[0], [], Shelf(passages))) == []

"""Which parts of the evidence are quoted: few, from one page where that is enough, none twice."""

from __future__ import annotations

from fakes.core import make_evidence, make_passage

from bot.core.generation.extractive import QuoteCandidate, select_quotes
from storage.text.sentences import Quotable


def part(
    text: str, score: float, *, file: str = "a.pdf", page: int = 1, start: int = 0, turns: int = 10_000
) -> QuoteCandidate:
    """A scored part of a passage on ``page`` whose next page begins at offset ``turns``."""
    passage = make_passage(text, file=file, page=page)
    [item] = make_evidence(passage, page_starts=((0, page), (turns, page + 1)))
    return QuoteCandidate(item, Quotable(start, start + len(text), text, is_row=False), (), score=score)


def chosen(*ranked: QuoteCandidate, is_spanning: bool = False) -> list[str]:
    return [candidate.unit.text for candidate in select_quotes(ranked, is_spanning=is_spanning)]


def test_a_page_is_quoted_further_and_other_pages_hardly() -> None:
    """Shows that a second quote of the best page may be worse than one from elsewhere."""
    best, near, elsewhere = part("best.", 1.0), part("near.", 0.75), part("elsewhere.", 0.9, page=2)
    assert chosen(best, elsewhere, near) == ["best.", "near."]
    assert chosen(best, part("as good.", 0.99, page=2)) == ["best.", "as good."]


def test_a_page_of_another_document_is_another_page() -> None:
    """Shows that equal page numbers of two documents are two pages."""
    assert chosen(part("best.", 1.0), part("other file.", 0.9, file="b.pdf")) == ["best."]


def test_a_part_behind_a_page_turn_stands_on_the_next_page() -> None:
    """Shows that the page is that of the part, not of its passage."""
    assert chosen(part("best.", 1.0), part("overleaf.", 0.9, start=50, turns=40)) == ["best."]


def test_two_quotes_are_enough() -> None:
    """Shows the most that an answer quotes, and that a second one must fit beside the first."""
    assert len(chosen(*(part(f"part {number}.", 1.0) for number in "abcde"))) == 2
    assert len(chosen(part("a" * 200 + ".", 1.0), part("b" * 200 + ".", 1.0))) == 1


def test_nothing_is_quoted_twice() -> None:
    """Shows that the same words, or a part of them, count as said."""
    assert chosen(part("The fee is 5 EUR.", 1.0), part("the fee is 5 EUR.", 1.0)) == ["The fee is 5 EUR."]


def test_a_question_over_documents_gets_the_best_of_each() -> None:
    """Shows that a comparison quotes one part of each document that comes close, and of four at most."""
    parts = [part(f"{file} {number}.", 1 - number / 100, file=file) for number, file in enumerate("aabbcdef")]
    assert chosen(*parts, is_spanning=True) == ["a 0.", "b 2.", "c 4.", "d 5."]
    assert chosen(part("a.", 1.0), part("far.", 0.8, file="b.pdf"), is_spanning=True) == ["a."]


def test_a_comparison_inside_one_document_is_answered_from_its_pages() -> None:
    """Shows that the best of each is no limit where there is only one."""
    assert chosen(part("a.", 1.0), part("b.", 0.9), is_spanning=True) == ["a.", "b."]


def test_nothing_comes_of_nothing() -> None:
    """Shows that no evidence gives no quotes."""
    assert chosen() == []


def test_a_heading_is_no_quote() -> None:
    """Shows that a heading or a caption is quoted only where nothing says more, whatever its score."""
    heading, caption = part("7. Restore test", 1.0), part("What is backed up, and for how long", 0.95)
    assert chosen(heading, caption, part("Tapes are tested.", 0.9)) == ["Tapes are tested."]
    assert chosen(heading) == ["7. Restore test"]

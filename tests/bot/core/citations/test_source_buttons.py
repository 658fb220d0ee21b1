"""Which buttons stand under an answer: one for each cited page, and all of them reachable."""

from __future__ import annotations

from dataclasses import replace

from bot.core.citations.source_buttons import cited_pages, split_sources
from bot.core.models import Answer, AnswerState, Citation


def cite(number: int, file: str, page: int, title: str = "") -> Citation:
    return Citation(number, title, file, page, "quote", (), f"https://example.test/{number}")


def test_one_source_per_cited_page() -> None:
    """Two quotes of one page share a button; the label has the title, else the file's name."""
    answer = Answer(
        AnswerState.GROUNDED,
        "",
        (cite(1, "hr/a.pdf", 3, "Leave"), cite(2, "b.pdf", 1), cite(3, "hr/a.pdf", 3, "Leave")),
    )
    first, second = cited_pages(answer)
    assert (first.numbers, first.label, first.fallback, first.url) == (
        (1, 3),
        "p. 3 · Leave",
        "Page 3 of a.pdf",
        "https://example.test/1",
    )
    assert second.label == "p. 1 · b.pdf"


def test_equal_titles_show_file_names() -> None:
    """Titles that two files share are replaced by the file names, and equal ones of those by paths."""
    citations = (cite(1, "a.pdf", 1, "Contoso"), cite(2, "b.pdf", 2, "Contoso"), cite(3, "c.pdf", 3, "Other"))
    answer = Answer(AnswerState.GROUNDED, "", citations)
    assert [page.label for page in cited_pages(answer)] == ["p. 1 · a.pdf", "p. 2 · b.pdf", "p. 3 · Other"]
    twins = replace(answer, citations=(cite(1, "x/a.pdf", 1), cite(2, "y/a.pdf", 1)))
    assert [page.label for page in cited_pages(twins)] == ["p. 1 · x/a.pdf", "p. 1 · y/a.pdf"]


def test_further_sources_stay_reachable() -> None:
    """What is over the limit is the rest, not lost."""
    pages = cited_pages(
        Answer(AnswerState.GROUNDED, "", tuple(cite(number, "a.pdf", number) for number in range(1, 8)))
    )
    shown, rest = split_sources(pages, 5)
    assert [page.numbers for page in (*shown, *rest)] == [(number,) for number in range(1, 8)]
    assert len(shown) == 5

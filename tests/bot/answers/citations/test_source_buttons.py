"""Source buttons under an answer: one per cited page, all of them reachable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.tables import for_each
from hypothesis import given
from hypothesis import strategies as st

from bot.answers.citations.source_buttons import (
    LABEL_CHARS,
    cited_pages,
    figure_pages,
    marks_of,
    numbered,
    opened_pages,
    picture_words,
    split_sources,
)
from bot.core.models import (
    Answer,
    AnsweredFrom,
    AnswerFigure,
    AnswerState,
    Citation,
    CitedPage,
    Language,
    NearestPage,
)
from bot.core.wording import reply_words
from storage.models import Box


def cite(number: int, file: str, page: int, title: str = "") -> Citation:
    return Citation(number, title, file, page, "quote", (), f"https://example.test/{number}")


def test_one_source_per_cited_page() -> None:
    """Two quotes on a page share a button, labelled with the title or else the file name."""
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


def test_in_a_direct_chat_each_source_names_its_channel() -> None:
    """The channel follows the page, shortened if long; also for the closest page and figures."""
    answer = Answer(AnswerState.GROUNDED, "", (cite(1, "hr/a.pdf", 3, "Leave"),))
    named = replace(answer, answered_from=AnsweredFrom((), "#it-ops"))
    (page,) = cited_pages(named)
    assert (page.label, page.fallback) == ("p. 3 · #it-ops · Leave", "Page 3 of a.pdf · #it-ops")
    long = replace(
        answer,
        citations=(cite(1, "a.pdf", 3, "Leave " * 30),),
        nearest=NearestPage("a.pdf", 2, "u", "a.pdf"),
        figures=(AnswerFigure("a.pdf", 4, "Days " * 30, Box(0, 0, 1, 1), "u", "i"),),
        answered_from=AnsweredFrom((), "#a-channel-with-a-name-of-many-words"),
    )
    for one in (*cited_pages(long), *opened_pages(replace(long, citations=())), *figure_pages(long)):
        assert "#a-channel-with-…y-words" in one.label
        assert len(numbered(one, one.label)) <= LABEL_CHARS
    title, _ = picture_words(long, long.figures[0])
    assert title.endswith("#a-channel-with-…y-words")


def test_equal_titles_show_file_names() -> None:
    """Titles shared by two files are replaced by file names, and equal file names by paths."""
    citations = (cite(1, "a.pdf", 1, "Contoso"), cite(2, "b.pdf", 2, "Contoso"), cite(3, "c.pdf", 3, "Other"))
    answer = Answer(AnswerState.GROUNDED, "", citations)
    assert [page.label for page in cited_pages(answer)] == ["p. 1 · a.pdf", "p. 2 · b.pdf", "p. 3 · Other"]
    twins = replace(answer, citations=(cite(1, "x/a.pdf", 1), cite(2, "y/a.pdf", 1)))
    assert [page.label for page in cited_pages(twins)] == ["p. 1 · x/a.pdf", "p. 1 · y/a.pdf"]


def test_further_sources_stay_reachable() -> None:
    """Sources over the limit are returned as the rest."""
    pages = cited_pages(
        Answer(AnswerState.GROUNDED, "", tuple(cite(number, "a.pdf", number) for number in range(1, 8)))
    )
    shown, rest = split_sources(pages, 5)
    assert [page.numbers for page in (*shown, *rest)] == [(number,) for number in range(1, 8)]
    assert len(shown) == 5


PATH = ("2 Absence", "2.1 Leave")


def label(number: int = 1, page: int = 4, **others: Any) -> str:
    """Return the button label of a citation."""
    citation = replace(cite(number, "hr/handbook.pdf", page, "Junk"), **{"name": "Handbook v3"} | others)
    (cited,) = cited_pages(Answer(AnswerState.GROUNDED, "", (citation,)))
    return numbered(cited, cited.label)


@for_each(
    ("said", "shown"),
    [
        ({}, "[1] p. 4 · Handbook v3"),
        ({"section": ("2.1 Leave",)}, "[1] p. 4 · Handbook v3 · 2.1 Leave"),
        (
            {"section": PATH, "details": ("SOP-HR-02", "HR", "2024-03-01")},
            "[1] p. 4 · Handbook v3 · 2.1 Leave · SOP-HR-02 · HR · 2024-03-01",
        ),
        ({"section": PATH}, "[1] p. 4 · Handbook v3 · 2 Absence › 2.1 Leave"),
        ({"section": ("Handbook v3",), "is_ocr": True}, "[1] p. 4 (OCR) · Handbook v3"),
        (
            {"name": "Remote work requests for all employees abroad v12.4", "section": PATH},
            "[1] p. 4 · Remote work requests for all employees abroad v12.4 · 2.1 Leave",
        ),
        (
            {
                "name": "A procedure of a hundred words " * 4 + "v7",
                "section": ("Responsibilities of all staff",),
            },
            "[1] p. 4 · A procedure of a hundred…red words v7 · Responsibilities of all…",
        ),
    ],
)
def test_a_label_has_as_many_details_as_fit(said: dict[str, Any], shown: str) -> None:
    """Numbers and page, then name, section, SOP id, department, date; long names lose their middle."""
    assert label(**said) == shown
    assert len(shown) <= LABEL_CHARS


def test_quotes_of_two_sections_share_their_common_heading() -> None:
    """Shows that a button never names a section that only one of its quotes is in."""
    quotes = [
        replace(cite(n, "a.pdf", 4), section=("2 Absence", leaf)) for n, leaf in ((1, "2.1"), (3, "2.2"))
    ]
    (page,) = cited_pages(Answer(AnswerState.GROUNDED, "", tuple(quotes)))
    assert numbered(page, page.label) == "[1][3] p. 4 · a.pdf · 2 Absence"


def test_names_that_differ_only_in_the_middle_stay_distinct() -> None:
    """Covers two file names of 80 characters that must be shortened."""
    names = [
        f"SOP-IT-04-Backup-and-Restore-of-Servers-in-{n}-of-the-Southern-Campus-Rev-02.pdf" for n in "AB"
    ]
    answer = Answer(AnswerState.GROUNDED, "", tuple(cite(n, name, 1) for n, name in enumerate(names, 1)))
    first, second = (page.label for page in cited_pages(answer))
    assert first != second
    assert "-A-" in first
    assert "-B-" in second


TEXTS = st.text(max_size=200)


@given(
    st.lists(st.tuples(TEXTS, st.lists(TEXTS, max_size=4), st.integers(1, 2)), min_size=1, max_size=40),
    st.sampled_from(Language),
    st.sampled_from(["", "housing.example.org"]),
)
def test_numbers_and_page_are_never_cut(
    said: list[tuple[str, list[str], int]], language: Language, host: str
) -> None:
    """For any names, headings and language the label fits, with all its numbers and its page."""
    citations = tuple(
        replace(
            cite(number, f"{name}.pdf", 10_000 * page),
            name=name,
            section=tuple(others),
            details=tuple(others),
            is_ocr=True,
            host=host,
            fetched="2026-03-01",
        )
        for number, (name, others, page) in enumerate(said, start=1)
    )
    pages = cited_pages(Answer(AnswerState.GROUNDED, "", citations, language=language))
    for page in pages:
        shown = numbered(page, page.label)
        number = next(one.page for one in citations if one.number == page.numbers[0])
        head = f"{marks_of(page.numbers)} {reply_words(language).page_label(number, is_ocr=True)}"
        assert shown.startswith(head)
        assert len(shown) <= LABEL_CHARS
    assert sorted(number for page in pages for number in page.numbers) == [*range(1, len(said) + 1)]


def test_many_numbers_of_a_page_are_ranges() -> None:
    """Shows that up to six are listed one by one, and that a receipt's page has none."""
    assert marks_of(range(1, 7)) == "[1][2][3][4][5][6]"
    assert marks_of([1, 2, 3, 4, 7, 9, 10]) == "[1-4,7,9-10]"
    assert numbered(CitedPage((), "p. 1 · A", "", ""), "p. 1 · A") == "p. 1 · A"

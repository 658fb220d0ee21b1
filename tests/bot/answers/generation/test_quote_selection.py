"""Selection of quotes: few, from one page if that suffices, and without duplicates."""

from __future__ import annotations

from dataclasses import replace

from fakes.core import ask, make_evidence, make_passage

from bot.answers.generation.quote_selection import QuoteCandidate, RankedQuotes, select_quotes
from storage.text.sentences import Quotable, quotables


def part(
    text: str, score: float, *, file: str = "a.pdf", page: int = 1, start: int = 0, turns: int = 10_000
) -> QuoteCandidate:
    """Return a scored part of a passage on ``page`` whose next page begins at offset ``turns``."""
    passage = make_passage(text, file=file, page=page)
    [item] = make_evidence(passage, page_starts=((0, page), (turns, page + 1)))
    return QuoteCandidate(item, Quotable(start, start + len(text), text, is_row=False), score=score)


def chosen(*ranked: QuoteCandidate, is_spanning: bool = False) -> list[str]:
    return [candidate.unit.text for candidate in select_quotes(ranked, is_spanning=is_spanning)]


BEST, NEAR, FURTHER = "Mats are best.", "Mats are near.", "Mats are further."


def test_a_page_is_quoted_again_for_a_close_score() -> None:
    """Shows the margin within a page, and that its second quote precedes those of other pages."""
    best, near, elsewhere = part(BEST, 9.0), part(NEAR, 8.2, start=90), part(FURTHER, 8.5, page=2)
    assert chosen(best, elsewhere, near) == [BEST, NEAR, FURTHER]
    assert chosen(best, part(NEAR, 7.5, start=90)) == [BEST]


def test_at_most_three_pages_or_one_clear_best_are_quoted() -> None:
    """Shows the margin between pages, also across documents, best first."""
    pages = [part(f"Mats are on {page}.", 9.0 - page / 10, page=page) for page in range(1, 6)]
    assert chosen(*pages) == [f"Mats are on {page}." for page in (1, 2, 3)]
    assert chosen(part(BEST, 9.0), part(NEAR, 5.9, page=2)) == [BEST]
    assert chosen(part(BEST, 9.0), part(NEAR, 6.1, file="b.pdf")) == [BEST, NEAR]


def test_additional_quotes_are_short() -> None:
    """Shows that a long quote is replaced by a shorter one with a close score, if there is one."""
    long, short = part(f"Mats {'are ' * 70}near.", 8.0, page=2), part(NEAR, 7.5, page=2)
    assert chosen(part(BEST, 9.0), long, short) == [BEST, NEAR]
    assert chosen(part(BEST, 9.0), long, replace(short, score=6.5)) == [BEST, long.unit.text]


def test_a_part_after_a_page_break_is_on_the_next_page() -> None:
    """Shows that the page is that of the part, not of its passage."""
    assert chosen(part(BEST, 9.0), part(NEAR, 7.5, start=50, turns=40)) == [BEST, NEAR]


def test_few_quotes_are_enough() -> None:
    """Shows the maximum of quotes per page, and that later ones must fit next to the first."""
    assert (
        len(chosen(*(part(f"Mats are {number}.", 9.0, start=at) for at, number in enumerate("abcde")))) == 2
    )
    long = [part(f"{letter * 300} is long.", 9.0, start=at) for at, letter in enumerate("ab")]
    assert len(chosen(*long)) == 1


def test_a_quote_needs_a_content_word_of_the_question() -> None:
    """Shows that similarity alone is not enough."""
    assert chosen(replace(part(BEST, 9.0), is_about=False), part(NEAR, 5.0)) == [NEAR]
    assert chosen(replace(part(BEST, 9.0), is_about=False)) == []


def test_a_fragment_is_no_passage() -> None:
    """Shows that neither a single word nor a list's lead without its items is quoted."""
    lead = part("The size limit is one of the following:", 8.0)
    assert chosen(part("(NPRM).", 9.0), part(NEAR, 7.5)) == [NEAR]
    ranked = RankedQuotes([lead, part(NEAR, 7.5)])
    assert [one.unit.text for one in ranked.chosen(ask("What may it be?"))] == [NEAR]


def test_a_question_answers_none() -> None:
    """Shows that a heading of an FAQ is not quoted, nor one in another script or a table of contents."""
    for heading in ("1.7 How does one pronounce it?", "休暇は何日ですか？", "| 1.7 How is it said? | 8 |"):
        assert chosen(part(heading, 9.0), part(NEAR, 8.0)) == [NEAR]


def test_a_heading_is_no_passage() -> None:
    """Shows that neither a numbered heading nor one of sentences is quoted, nor a part, but a step is."""
    for heading in (
        "4.2 Restoring a whole backup from tape",
        "Stop. Think. Act.",
        "My Mac is off. It is old.",
    ):
        passage = make_passage(f"{heading}\n{NEAR}", heading_path=("4. Backups", heading))
        [item] = make_evidence(passage)
        for text in (heading, heading[: heading.find(".") + 1] or heading):
            first = QuoteCandidate(item, Quotable(0, len(text), text, is_row=False), score=9.0)
            assert chosen(first, part(NEAR, 8.0)) == [NEAR]
        assert chosen(part(heading, 9.0)) == [heading]


def test_sentences_in_other_scripts_are_recognized() -> None:
    """Covers sentence marks of other scripts, and words without spaces between them."""
    for text in ("休暇は年二十日です。", "عدد الأيام في السنة عشرون۔", "अवकाश बीस दिन है।"):
        assert chosen(part(text, 9.0), part("Mats", 8.0)) == [text]


def test_a_label_answers_a_bare_name_without_a_sentence() -> None:
    """Covers a page of short lines, also in a script without capitals."""
    for text, name, question in (
        ("عدد الأصوات", "الأصوات", "كم عدد الأصوات؟"),
        ("Zubrowka ledger", "Zubrowka", "What does the Zubrowka ledger cost?"),
    ):
        ranked = RankedQuotes([part(text, 9.0), part("مصر", 8.0)])
        assert [one.unit.text for one in ranked.chosen(ask(name))] == [text]
        assert ranked.chosen(ask(question)) == []
    told = RankedQuotes([part("Zubrowka ledger", 9.0), part(NEAR, 8.0)])
    assert [one.unit.text for one in told.chosen(ask("Zubrowka"))] == [NEAR]


def sentences(text: str, **scores: float) -> list[QuoteCandidate]:
    """Return sentences of a passage, each selected and scored by its first word, best first."""
    [item] = make_evidence(make_passage(text))
    units = [unit for unit in quotables(text) if unit.text.split()[0] in scores]
    parts = [QuoteCandidate(item, unit, score=scores[unit.text.split()[0]]) for unit in units]
    return sorted(parts, key=lambda one: -one.score)


def test_sentences_that_follow_each_other_are_one_quote() -> None:
    """Shows adjacent sentences in text order, after a better one on its own."""
    text = "Lock the door. Call security. Wait for them. Then leave it."
    assert chosen(*sentences(text, Then=9.0, Wait=8.5, Lock=8.1)) == [
        "Wait for them. Then leave it.",
        "Lock the door.",
    ]


def test_steps_are_quoted_in_their_order() -> None:
    """Shows list items in list order, whichever is the best."""
    steps = "1. Lock the door.\n2. Call security.\n3. Wait for them."
    [item] = make_evidence(make_passage(steps))
    first, _, third = (
        QuoteCandidate(item, unit, score=score)
        for unit, score in zip(quotables(steps), (8.0, 5.0, 9.0), strict=True)
    )
    assert chosen(third, first) == ["1. Lock the door.", "3. Wait for them."]


def test_nothing_is_quoted_twice() -> None:
    """Shows that equal or contained text is quoted once."""
    assert chosen(part("The fee is 5 EUR.", 1.0), part("the fee is 5 EUR.", 1.0)) == ["The fee is 5 EUR."]


def test_a_shorter_quote_of_a_further_page_repeats_none() -> None:
    """Shows that what three reports say in the same words is quoted once, however long the rest is."""
    further = [part(f"Pilots {letter * 250} fly.", 8.5, file=letter) for letter in "bc"]
    shorter = [part(BEST, 8.4, file=letter) for letter in "bc"]
    assert chosen(part(BEST, 9.0), *further, *shorter) == [BEST, *(one.unit.text for one in further)]


def test_a_question_over_documents_gets_the_best_of_each() -> None:
    """Shows one part of each document with a close score, seven at most."""
    parts = [
        part(f"In {file} {number}.", 9 - number / 10, file=file) for number, file in enumerate("aabcdefghi")
    ]
    assert chosen(*parts, is_spanning=True) == [
        f"In {file} {number}." for file, number in zip("abcdefg", (0, *range(2, 8)), strict=True)
    ]
    assert chosen(part(BEST, 9.0), part(NEAR, 5.9, file="b.pdf"), is_spanning=True) == [BEST]


def test_a_comparison_within_a_document_quotes_several_pages() -> None:
    """Shows that the limit of one per document does not apply to a single document."""
    assert chosen(part(BEST, 9.0), part(NEAR, 8.0), is_spanning=True) == [BEST, NEAR]


def test_no_evidence_gives_no_quotes() -> None:
    """Shows that no evidence gives no quotes."""
    assert chosen() == []


def test_a_heading_is_no_quote() -> None:
    """Shows that neither a heading nor a caption is quoted, whatever its score."""
    heading, caption = part("7. Restore test", 1.0), part("What is backed up, and for how long", 0.95)
    assert chosen(heading, caption, part("Tapes are tested.", 0.9)) == ["Tapes are tested."]
    assert chosen(heading) == []


def test_a_name_with_its_price_is_a_quote() -> None:
    """Covers lines of menus, price lists and fees, which look like headings."""
    for line in ("Ceviche de Autor 10 $", "Tea 2.50 EUR", "Express handling – 25 EUR", "Copy $0.30"):
        assert chosen(part(line, 1.0), part("Cubes of fish in lime.", 0.9))[0] == line
    assert chosen(part("Budget 2024", 1.0), part("It is small.", 0.9)) == ["It is small."]


def test_a_list_is_a_quote_without_final_punctuation() -> None:
    """Shows that a lead makes sentences of its list items, not headings."""
    covered = "The plan covers:\n• Surfing lessons\n• Riding lessons"
    assert chosen(part(covered, 9.0), part("It is a good plan.", 6.0)) == [covered]


def test_rows_are_separate_and_numbered_headings_no_answer() -> None:
    """Shows that rows are not joined, and that numbered section or table headings are no answer."""
    table = "| Ada | 12 |\n| Bob | 14 |"
    [item] = make_evidence(make_passage(table))
    ada, bob = (
        QuoteCandidate(item, unit, score=score)
        for unit, score in zip(quotables(table), (9.0, 8.5), strict=True)
    )
    assert chosen(ada, bob) == ["Ada | 12", "Bob | 14"]
    heading, number = part("3. Kinds of work", 9.0), part("Table 1.", 8.9, start=50)
    assert chosen(heading, number, part("There are two.", 8.5, start=90)) == ["There are two."]


def test_an_introduction_is_quoted_with_its_command() -> None:
    """Shows that it is quoted with the command, and not alone."""
    text = "To restore it, use the command line:\n\n$ rdiff-backup -r now /home"
    ranked = RankedQuotes(sentences(text, To=9.0))
    assert [one.unit.text for one in ranked.chosen(ask("Can it be restored?"))] == [text]


def test_a_bare_name_is_not_answered_by_a_fragment() -> None:
    """Shows that a label with nothing but the name is not quoted."""
    assert RankedQuotes([part("(NPRM).", 9.0)]).chosen(ask("What is NPRM?")) == []

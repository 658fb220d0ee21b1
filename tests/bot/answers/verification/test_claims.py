"""Verification of claims: only supported sentences stay, and every [n] is a located quote."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.core import make_evidence, make_passage, verify_quotes, verify_sentences
from harness.tables import for_each

from bot.answers.verification.claims import number_quotes, place_of, plain_quote, plain_sentence, verify
from bot.answers.verification.table_rows import names_of_row
from bot.core.models import Claim, Draft, Quote

EVIDENCE = make_evidence(
    make_passage("Backups run daily at 2:00 AM. Reports are kept for two years. See SOP-IT-04 [3]."),
    make_passage("Laptops cost $1,200.00 each. The policy took effect on 2024-01-15.", ordinal=1, page=2),
)


def claim(text: str, *quotes: str, passage: int = 1) -> Claim:
    return Claim(text, tuple(Quote(passage, quote) for quote in quotes))


def test_a_proven_sentence_is_numbered() -> None:
    """A sentence whose quote is located gets that place's number."""
    verified = verify_sentences(Draft((claim("Backups run at 2 AM.", "daily at 2:00 AM"),)), EVIDENCE)
    assert verified.text == "Backups run at 2 AM. [1]"
    assert verified.cited[0].quote == "Backups run daily at 2:00 AM."
    assert verified.faults == ()


def test_numbers_follow_first_use() -> None:
    """The first place used is [1], whichever passage it is in, and a place used again keeps its number."""
    draft = Draft(
        (
            claim("Laptops cost $1,200.", "Laptops cost $1,200.00 each"),
            claim("Backups run daily.", "Backups run daily"),
            claim(
                "Laptops cost $1,200, backups run daily.", "laptops cost $1,200.00 each", "Backups run daily"
            ),
        )
    )
    verified = verify_sentences(draft, EVIDENCE)
    assert verified.text == (
        "Laptops cost $1,200. [1] Backups run daily. [2] Laptops cost $1,200, backups run daily. [1] [2]"
    )
    assert [quote.page for quote in verified.cited] == [2, 1]


def test_a_forged_quote_is_dropped() -> None:
    """A sentence whose quote is in no passage is dropped, with a fault."""
    draft = Draft((claim("Backups run hourly.", "Backups run hourly"), claim("They run daily.", "run daily")))
    verified = verify_sentences(draft, EVIDENCE)
    assert verified.text == "They run daily. [1]"
    assert len(verified.faults) == 1


def test_a_number_that_no_source_states_is_dropped() -> None:
    """A valid quote does not support a number that is not near it in a passage."""
    verified = verify_sentences(Draft((claim("Backups run at 4 AM.", "Backups run daily"),)), EVIDENCE)
    assert verified.cited == ()
    assert "not in the quotes: 4" in verified.faults[0]


def test_citation_numbers_of_the_model_are_ignored() -> None:
    """The model's own [n] are removed; ours are the places of its quotes."""
    verified = verify_sentences(
        Draft((claim("Backups run daily [2][7, 9].", "Backups run daily", passage=2),)), EVIDENCE
    )
    assert verified.text == "Backups run daily. [1]"
    assert verified.cited[0].page == 1


def test_a_bracketed_year_is_no_citation() -> None:
    """[2024] is unchanged."""
    assert plain_sentence("It took effect [2024] [1].") == "It took effect [2024]."


def test_a_documents_own_brackets_are_no_citations() -> None:
    """A quote with [3] is shown with (3), so that every [n] of an answer is a citation."""
    verified = verify_quotes(Draft((claim("x", "See SOP-IT-04 [3]."),), verbatim=True), EVIDENCE)
    assert verified.text == "“See SOP-IT-04 (3).” [1]"


@pytest.mark.parametrize(
    ("row", "shown", "printed"),
    [
        ("| Model: | F172 M | Seats: | |", "“Model: F172 M” [1]", ["Model:", "F172 M", "Seats:"]),
        (
            "| Pump | Weight |\n| --- | --- |\n| Otter-7 | 12 kg |",
            "“Pump: Otter-7 · Weight: 12 kg” [1]",
            ["Pump", "Weight", "Otter-7", "12 kg"],
        ),
        ("A rule --- of dashes", "“A rule --- of dashes” [1]", ["A rule --- of dashes"]),
        ("Run ps aux | grep httpd.", "“Run ps aux | grep httpd.” [1]", ["Run ps aux | grep httpd."]),
    ],
)
def test_table_markup_is_not_shown(row: str, shown: str, printed: list[str]) -> None:
    """Cells are separated by dots in the answer, and the citation contains the printed words."""
    verified = verify_quotes(Draft((claim("x", row),), verbatim=True), make_evidence(make_passage(row)))
    assert verified.text == shown
    assert plain_quote(verified.cited[0]) == " ".join(printed)


TABLE = "| System | Kept for | |\n| --- | --- | --- |\n| Mail | 90 days | |\n| Files | | daily |"
STAFF = "| Name | Room |\n| --- | --- |\n| Ada | 12 |\n| Bob | |"
YEARS = "| State | 1975 | 1988 |\n| --- | --- | --- |\n| Kerala | 5738 | 6633 |"
GROUPS = (
    "| Tool | Per day |\n| --- | --- |\n| Drills ||\n| Cordless | 9 EUR |\n| Saws ||\n| Cordless | 14 EUR |"
)
REPEATS = (
    "| Year | Part | Visits |\n| --- | --- | --- |\n| 2019 | Q1 | 64 |\n| 2020 | Q1 | 31 |\n| ^^ | Q2 | 92 |"
)
PLAIN = "| Oslo ||\n| Rain | 12 mm |\n| ^^ | 3 days |"
STEPS = "To restore:\n1. Stop the job\nof the night.\n2. Copy the tape."


def test_a_row_is_found_by_all_its_labels() -> None:
    """Matches its table's caption, column names, group, and the repeated label."""
    text = "Table 2: Hire\n\n| Tool | Size |\n| --- | --- |\n| Drills ||\n| Hilti | 8 mm |\n| ^^ | 9 mm |"
    names = names_of_row(text, text.index("9 mm"))
    assert names.split() == "Table 2: Hire | Tool | Size | Drills Hilti".split()
    assert names_of_row("No table.", 3).strip() == ""


@for_each(
    ("text", "row", "shown"),
    [
        (STAFF, "Ada | 12", "“Name: Ada · Room: 12” [1]"),
        (STAFF, "| Bob | |", "“Name: Bob” [1]"),
        (STAFF, "Name | Room", "“Name · Room” [1]"),
        (TABLE, "Mail | 90 days", "“System: Mail · Kept for: 90 days” [1]"),
        (TABLE, "Files | | daily", "“System: Files · daily” [1]"),
        (GROUPS, "Cordless | 9 EUR", "“Drills · Tool: Cordless · Per day: 9 EUR” [1]"),
        (GROUPS, "Cordless | 14 EUR", "“Saws · Tool: Cordless · Per day: 14 EUR” [1]"),
        (GROUPS, "Saws", "“Saws” [1]"),
        (REPEATS, "^^ | Q2 | 92", "“Year: 2020 · Part: Q2 · Visits: 92” [1]"),
        (REPEATS, "2019 | Q1 | 64", "“Year: 2019 · Part: Q1 · Visits: 64” [1]"),
        (PLAIN, "^^ | 3 days", "“Oslo · Rain · 3 days” [1]"),
        (YEARS, "Kerala | 5738 | 6633", "“State: Kerala · 1975: 5738 · 1988: 6633” [1]"),
        (
            f"Tabelle 3: Fristen\n\n{TABLE}",
            "Mail | 90 days",
            "“Tabelle 3: Fristen\nSystem: Mail · Kept for: 90 days” [1]",
        ),
        (f"Table of rules.\n\n{TABLE}", "Mail | 90 days", "“System: Mail · Kept for: 90 days” [1]"),
        (STEPS, STEPS, "“To restore:\n1. Stop the job of the night.\n2. Copy the tape.” [1]"),
    ],
)
def test_rows_and_lists_are_formatted_for_reading(text: str, row: str, shown: str) -> None:
    """A row includes its column names if each has one, and each list item is on a line of its own."""
    verified = verify_quotes(Draft((claim("x", row),), verbatim=True), make_evidence(make_passage(text)))
    assert verified.text == shown


def test_rows_of_one_table_have_its_caption_once() -> None:
    """Shows it also for rows that are separate quotes."""
    evidence = make_evidence(make_passage(f"Table 3: Terms\n\n{TABLE}"))
    rows = (claim("x", "Mail | 90 days"), claim("x", "Files | | daily"))
    assert verify_quotes(Draft(rows, verbatim=True), evidence).text == (
        "“Table 3: Terms\nSystem: Mail · Kept for: 90 days” [1]\n“System: Files · daily” [2]"
    )


def test_overlapping_passages_cite_one_place_once() -> None:
    """The same words on a page in two chunks are one source."""
    evidence = make_evidence(
        make_passage("Doors close at six."), make_passage("Doors close at six. Lock up.", ordinal=1)
    )
    said = ("Doors close at six.", "At six doors close.")
    draft = Draft(tuple(claim(text, "Doors close at six", passage=n) for n, text in enumerate(said, start=1)))
    assert verify_sentences(draft, evidence).text == "Doors close at six. At six doors close. [1]"


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("See [the portal](https://evil.test/x).", "See the portal."),
        ("![logo](https://evil.test/x.png) Backups.", "logo Backups."),
        ("Go to <https://evil.test|here>.", "Go to here."),
    ],
)
def test_a_model_cannot_make_a_link_or_an_image(written: str, plain: str) -> None:
    """Only the label of a link is kept."""
    assert plain_sentence(written) == plain


def test_a_url_must_occur_in_the_source() -> None:
    """A model cannot introduce a URL."""
    draft = Draft((claim("Backups run daily at https://evil.test.", "Backups run daily"),))
    verified = verify_sentences(draft, EVIDENCE)
    assert verified.cited == ()


def test_a_quote_found_nowhere_is_dropped() -> None:
    """Shows it for a quote that no model wrote."""
    draft = Draft((claim("x", "Words that nobody ever printed here"),), verbatim=True)
    assert verify_quotes(draft, make_evidence(make_passage("Backups run daily."))).cited == ()


def test_a_quote_has_its_own_headings() -> None:
    """A quote has the headings at its offset; several quotes on a page share their common headings."""
    text = "2.1 Hours\nForty hours a week.\n2.2 Leave\nThirty days a year."
    sections = ((0, ("2 Pay", "2.1 Hours")), (text.index("2.2"), ("2 Pay", "2.2 Leave")))
    (item,) = make_evidence(make_passage(text, heading_path=sections[0][1]))
    draft = Draft((claim("a", "Forty hours a week."), claim("b", "Thirty days a year.")), verbatim=True)
    claims = verify(draft, [replace(item, sections=sections)]).claims
    assert [one.section for one in number_quotes(claims)[1]] == [path for _, path in sections]
    assert [one.section for one in number_quotes(claims, by_page=True)[1]] == [("2 Pay",)]


def test_a_quote_across_a_page_break_is_cited_on_both_pages() -> None:
    """Each page has its own number, words and boxes; the text is a single quote."""
    first, second = (
        "Signed contracts are kept for eleven years after the",
        "end of the year and then destroyed.",
    )
    (item,) = make_evidence(make_passage(f"{first}\n{second}"), page_starts=((0, 7), (len(first) + 1, 8)))
    judged = verify(Draft((claim("a", f"{first} {second}"),), verbatim=True), [item])
    (line,), cited = number_quotes(judged.claims)
    assert line == f"“{first} {second}” [1] [2]"
    assert [(one.page, one.quote) for one in cited] == [(7, first), (8, second)]
    assert all(one.boxes for one in cited)
    assert place_of(judged.claims[0].quotes[0], cited) == 1


def test_an_items_lead_is_highlighted_on_its_own_page() -> None:
    """A lead above an item that continues on the next page shares its own page's number."""
    lead, first, second = "The keeper:", "• opens the archive at eight and closes it at", "six."
    text = f"{lead}\n{first}\n{second}"
    (item,) = make_evidence(make_passage(text), page_starts=((0, 1), (text.index(second), 2)))
    judged = verify(Draft((claim("a", lead, f"{first} {second}"),), verbatim=True), [item])
    _, cited = number_quotes(judged.claims)
    assert [(one.page, one.quote) for one in cited] == [(1, f"{lead} … {first}"), (2, second)]

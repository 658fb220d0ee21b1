"""Sentence splitting: ends of sentences, rows and list items, and which of them may be quoted."""

import pytest

from storage.text.sentences import Quotable, quotables, split_units, with_introduced

LONG = "the committee met once more in the long hall behind the library and spoke"


@pytest.mark.parametrize(
    "short", ["Mr.", "Prof.", "approx.", "dept.", "e.g.", "a.m.", "U.S.", "J.", "Inc.", "etc.", "Fig."]
)
def test_an_abbreviation_ends_no_sentence(short: str) -> None:
    """After a long sentence and at the start of one; a word that only ends like one does end it."""
    assert len(split_units(f"There {LONG} of {short} Smith again.")) == 1
    assert len(split_units(f"{short} Smith {LONG}.")) == 1
    assert len(split_units(f"There {LONG} of balloons. Smith came.")) == 2


def test_a_list_number_ends_no_sentence() -> None:
    """A number at the end of a sentence does."""
    assert len(split_units("12. The valve is closed.")) == 1
    assert len(split_units(f"There {LONG} until 12. The valve is closed.")) == 2


def test_a_list_is_quoted_with_its_lead_in() -> None:
    """A short list is quotable whole, an item with its lead-in, the lead-in never alone."""
    text = "The plan covers:\n\n•  Gym fees\n•  Yoga classes\n\nCall us."
    assert [" ".join(item.text.split()) for item in quotables(text)] == [
        "The plan covers: • Gym fees • Yoga classes",
        "The plan covers: • Gym fees",
        "The plan covers: • Gym fees • Yoga classes",
        "Call us.",
    ]


@pytest.mark.parametrize(
    "frame",
    [
        "Instrument Rating(s):  Toxicology Performed:",
        "Page 2 of 4  NYC08CA055",
        "6.1  Equipment  . . . . . . .  5",
    ],
)
def test_boilerplate_of_pages_and_forms_is_never_quoted(frame: str) -> None:
    """Covers empty form fields, running heads and tables of contents."""
    assert [item.text for item in quotables(f"{frame}\n\nThe crew was safe.")] == ["The crew was safe."]


def test_units_are_sentences_items_and_rows() -> None:
    """Abbreviations, times and soft line breaks do not split; bullets, rows and blocks do."""
    text = (
        "Call Mr. Smith at 2:00 a.m. on Monday. The U.S. office\nopens later.\n\n"
        "Name:  Anna  Room:  12\n• First thing\n• Second thing that\nwraps\n1. Open it. Wait."
    )
    assert [(text[unit.start : unit.end], unit.is_row) for unit in split_units(text)] == [
        ("Call Mr. Smith at 2:00 a.m. on Monday.", False),
        ("The U.S. office\nopens later.", False),
        ("Name:  Anna  Room:  12", True),
        ("• First thing", False),
        ("• Second thing that\nwraps", False),
        ("1. Open it.", False),
        ("Wait.", False),
    ]


COMMAND = "$ sudo rdiff-backup -r today  \\\n/backup/home /home/user"


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        (f"\n\n{COMMAND}\n\nThen wait.", f"\n\n{COMMAND}"),
        ("\n\n1. Open it.\n2. Close it.", ""),
        (f"\n\n{'All of it is lost. ' * 20}", ""),
        ("", ""),
    ],
)
def test_a_sentence_ending_in_a_colon_includes_what_follows(behind: str, expected: str) -> None:
    """Covers a command of two lines; a list and a long paragraph are not included."""
    lead = "To restore a folder, use the command line:"
    quote = with_introduced(lead + behind, Quotable(0, len(lead), lead, is_row=False))
    assert (quote.text, quote.end) == (lead + expected, len(lead + expected))

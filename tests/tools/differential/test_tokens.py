"""Page comparison by token: differences to two other readers by kind, on made-up texts."""

from __future__ import annotations

from tools.differential.tokens import Difference, Kind, compare_page, numbers, tokens, words

PARTED, MISSING, ALONE, RAISED = Kind.SPACING, Kind.MISSING, Kind.ALONE, Kind.RAISED


def differing(ours: str, *others: str) -> list[tuple[Kind, str]]:
    """Return the differing numbers of a page."""
    return [(each.kind, each.token) for each in compare_page(ours, others).numbers]


def test_tokens_are_stripped_of_punctuation_but_keep_their_sign() -> None:
    """All kinds of dashes and widths are treated as one dash."""
    assert tokens("(€12.50), −5 °C; 5‐10 “SOP-IT-04”. ﬁle") == [
        "12.50",
        "-5",
        "C",
        "5-10",
        "SOP-IT-04",
        "file",
    ]


def test_numbers_and_words_are_distinguished() -> None:
    """Hyphenated words count as their parts; a superscript digit or fraction makes a number."""
    text = "Follow-up in Room B2, 2½ hours, x²"
    assert sorted(numbers(text)) == ["2½", "B2", "x²"]
    assert sorted(words(text)) == ["Follow", "Room", "hours", "in", "up"]


def test_two_against_one_differ_and_one_against_one_is_doubtful() -> None:
    """A lost hyphen is a missing number and an extra one; if the others disagree it is doubtful."""
    assert differing("510 ml", "5-10 ml", "5-10 ml") == [(MISSING, "5-10"), (ALONE, "510")]
    assert differing("5-10 ml", "5-10 ml", "510 ml") == [(Kind.DOUBTFUL, "5-10")]


def test_every_occurrence_counts() -> None:
    """A line read twice, or once too few, is found."""
    assert differing("7 7", "7", "7") == [(ALONE, "7")]
    assert differing("7", "7 7", "7 7") == [(MISSING, "7")]


def test_a_raised_digit_kept_apart_is_explained() -> None:
    """Superscripts and carets are explained; other numbers are not."""
    for ours in ("14¹", "14^1"):
        assert differing(ours, "141", "141") == [(RAISED, "141"), (RAISED, ours)]
        assert differing(ours, "14 1", "14 1") == [(RAISED, "1"), (RAISED, "14"), (RAISED, ours)]
        assert differing(ours, "14 1", "141") == [(RAISED, ours)]
    assert differing("10⁻⁵", "10-5", "10-5") == [(RAISED, "10-5"), (RAISED, "10⁻⁵")]
    assert differing("14¹", "142", "142") == [(MISSING, "142"), (ALONE, "14¹")]


def test_differences_in_spacing_are_labelled() -> None:
    """Joined, split, and kept whole across a line break."""
    assert differing("CHAPTER4", "CHAPTER 4", "CHAPTER 4") == [(PARTED, "4"), (PARTED, "CHAPTER4")]
    torn = [(PARTED, "467.9"), (PARTED, "467"), (PARTED, "9")]
    assert differing("467. 9", "467.9", "467.9") == torn
    assert differing("1-800-555", "1-\n800-555", "1-\n800-555")[-1] == (PARTED, "1-800-555")


def test_a_short_number_inside_another_is_no_explanation() -> None:
    """A lost 5 is reported although the page has a 15."""
    assert differing("15 ml", "15 ml or 5", "15 ml or 5") == [(MISSING, "5")]


def test_words_and_order_are_compared_too() -> None:
    """Adjacent pairs that no other reader has are counted: here three of four, from a row read across."""
    found = compare_page("a c b d e", ["a b c d e", "a b c d e"])
    assert (found.words, found.pairs, found.strange_pairs) == ((), 4, 3)
    found = compare_page("tree", ["trees", "trees"])
    assert found.words == (Difference(MISSING, "trees"), Difference(ALONE, "tree"))

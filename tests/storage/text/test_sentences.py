"""A dot that ends an abbreviation ends no sentence, however much stands before it."""

import pytest

from storage.text.sentences import split_units

LONG = "the committee met once more in the long hall behind the library and spoke"


@pytest.mark.parametrize(
    "short", ["Mr.", "Prof.", "approx.", "dept.", "e.g.", "a.m.", "U.S.", "J.", "Inc.", "etc.", "Fig."]
)
def test_an_abbreviation_ends_no_sentence(short: str) -> None:
    """Shows it behind a long sentence and at the begin of one; a word that only ends like it does."""
    assert len(split_units(f"There {LONG} of {short} Smith again.")) == 1
    assert len(split_units(f"{short} Smith {LONG}.")) == 1
    assert len(split_units(f"There {LONG} of balloons. Smith came.")) == 2


def test_a_number_alone_ends_no_sentence_but_one_at_an_end_does() -> None:
    """Shows the numbers of a list, and a sentence that ends in one."""
    assert len(split_units("12. The valve is closed.")) == 1
    assert len(split_units(f"There {LONG} until 12. The valve is closed.")) == 2

"""Sentences about another document, or about one of two alternatives."""

from __future__ import annotations

from fakes.core import ask, make_evidence, make_passage
from harness.tables import for_each

from bot.answers.understanding.subjects import is_of_another_document, is_one_sided
from storage.text.analyzer import analyze

VENICE = make_passage("The runway is 1500 ft long.", file="venice.pdf", title="Venice")
MADILL = make_passage("At Madill the runway was dry.", file="madill.pdf", title="Madill")
OTHERS = ("A runway is long.", "A runway is dry.", "It takes long.")


@for_each(
    ("asked", "is_of_another"),
    [
        ("How long is the runway at Madill?", True),
        ("How long is the runway at Venice?", False),
        ("How long is the runway?", False),
        ("How long is the runway at Venice, and how was the one at Madill?", False),
        ("How long is the runway? Was the one at Madill dry?", False),
    ],
)
def test_a_value_of_one_place_is_not_that_of_another(asked: str, is_of_another: bool) -> None:
    """The document of Venice is cited; a question of two things may be answered from two."""
    question = ask(asked, VENICE.text, MADILL.text, *OTHERS)
    cited = {VENICE.publication.document_id}
    assert is_of_another_document(question, make_evidence(VENICE, MADILL), cited) == is_of_another


@for_each(
    ("asked", "sentence", "source", "is_wrong"),
    [
        (
            "which takes longer, the night ferry or the day boat?",
            "The ferry takes longer.",
            "ferry night",
            True,
        ),
        ("which takes longer, the night ferry or the day boat?", "The ferry is slow.", "ferry night", False),
        ("which takes longer, the ferry or the boat?", "The ferry takes longer.", "ferry boat", False),
        ("which is cheaper, the ferry or the boat?", "The boat is cheaper.", "the cheaper boat", False),
        ("which carries bikes, the ferry or the boat?", "The ferry carries bikes.", "ferry bikes", False),
        ("how long does it take?", "It takes longer.", "ferry", False),
    ],
)
def test_a_comparison_needs_sources_of_both_sides(
    asked: str, sentence: str, source: str, is_wrong: bool
) -> None:
    """Unless a source compares them itself."""
    assert is_one_sided(ask(asked), sentence, set(analyze(source))) == is_wrong

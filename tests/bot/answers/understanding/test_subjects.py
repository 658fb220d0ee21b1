"""Sentences about another document than the question."""

from __future__ import annotations

from fakes.core import ask, make_evidence, make_passage
from harness.tables import for_each

from bot.answers.understanding.subjects import is_of_another_document

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
        ("Which reports mention the runway at Madill?", False),
        ("Compare the runway of Venice with the dry one at Madill.", False),
        ("How long is the runway? Was the one at Madill dry?", False),
    ],
)
def test_a_value_of_one_place_is_not_that_of_another(asked: str, is_of_another: bool) -> None:
    """The document of Venice is cited; a question of two things may be answered from two."""
    question = ask(asked, VENICE.text, MADILL.text, *OTHERS)
    cited = {VENICE.publication.document_id}
    assert is_of_another_document(question, make_evidence(VENICE, MADILL), cited) == is_of_another

"""Codes of a question, and the documents that a question with a code is about."""

from __future__ import annotations

from collections.abc import Sequence

from fakes.core import make_passage
from harness.tables import for_each

from bot.answers.understanding.question_codes import code_words, split_by_codes

ENGINE = make_passage("HP762 left Islas Secas with one engine.", file="a.pdf", title="Loss of contact")
CLOUDS = make_passage("The mountain was covered in clouds.", file="a.pdf", title="Loss of contact", ordinal=1)
FOG = make_passage("Fog hid the mountain that the Cessna 210 hit.", file="b.pdf", title="Collision")
RAIN = make_passage("Rain fell on the mountain.", file="c.pdf", title="Forced landing")


@for_each(
    ("question", "codes"),
    [
        ("Who signs SOP-IT-04 and it-04-b for part MS1602TS/00?", ["SOP-IT-04", "it-04-b", "MS1602TS/00"]),
        ("hp762 or order 4500178233", ["hp762", "4500178233"]),
        ("My 9-year-old works a 12-hour shift, 10am-5pm, since mid-2024", []),
        ("Is 2.5kg or 15-20kg on page 12 of plan.pdf, as of 2024-01-15?", []),
    ],
)
def test_codes_are_no_ages_times_or_weights(question: str, codes: Sequence[str]) -> None:
    """Numbers joined to words or units are quantities, which documents write in other ways."""
    assert code_words(question) == codes


@for_each(
    ("question", "files"),
    [
        ("Was it cloudy when HP762 hit the mountain?", "aa"),
        ("Was it cloudy when HP762 and the Cessna 210 hit the mountain?", "aab"),
        ("Was it cloudy when HP999 hit the mountain?", "aabc"),
        ("Was it cloudy at the mountain?", "aabc"),
    ],
)
def test_documents_without_the_code_are_others(question: str, files: str) -> None:
    """The other pages of a document with the code count, and a document that is named beside it."""
    passages = [ENGINE, CLOUDS, FOG, RAIN]
    about, others = split_by_codes(question, passages)
    assert "".join(one.publication.file[0] for one in about) == files
    assert [*about, *others] == passages

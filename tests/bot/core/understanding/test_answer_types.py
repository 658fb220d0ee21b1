"""What an answer must hold by the kind of thing that is asked for."""

from __future__ import annotations

import pytest

from bot.core.understanding.answer_types import required_answers


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("what's the phone number of the help desk?", "Call 555-0123 for help.", "Call the help desk."),
        ("Fax number of the plan?", "Fax: (206) 555-0199", "Send it by fax."),
        ("What is the email address of HR?", "Write to hr@example.com.", "Write to HR."),
        ("which website has the form", "See www.example.org/forms.", "See the website."),
        ("mailing address for claims", "P.O. Box 12, Seattle", "Mail your claims."),
        ("what is the serial number of the balance", "Serial number: B-4711", "Note the serial number."),
        ("Who is the CEO?", "Contoso is led by Jane Doe.", "The CEO leads the company."),
        ("what percentage is paid by the company", "It pays 80 % of it.", "It pays a part of it."),
        ("how old was the pilot?", "The pilot, age 44, was alone.", "The pilot was alone."),
        ("At what time do backups run?", "Backups run at 2:00 AM.", "Backups run daily."),
        ("What are the opening hours?", "Open from 9 am to 5 pm.", "The hours are posted."),
        ("how many people were on board", "Two people were aboard the plane.", "The plane was lost."),
    ],
)
def test_only_something_of_that_kind_answers(question: str, answer: str, other: str) -> None:
    """Though the other sentence speaks of the very thing."""
    required = required_answers(question)
    assert required
    assert any(pattern.search(answer) for pattern in required)
    assert not any(pattern.search(other) for pattern in required)


@pytest.mark.parametrize(
    "question", ["Who restores a backup?", "What does the plan cover?", "Is the number on my card enough?"]
)
def test_other_questions_require_nothing(question: str) -> None:
    """Any words may answer them."""
    assert required_answers(question) == []

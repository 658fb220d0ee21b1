"""Answer types: the kind of value that an answer must contain."""

from __future__ import annotations

import pytest
from harness.tables import for_each

from bot.answers.understanding.answer_types import RequiredAnswer, wants_steps


@for_each(
    ("question", "answer", "other"),
    [
        ("what's the phone number of the help desk?", "Call 555-0123 for help.", "Call the help desk."),
        ("Fax number of the plan?", "Fax: (206) 555-0199", "Send it by fax."),
        ("What is the email address of HR?", "Write to hr@example.com.", "Write to HR."),
        ("which website has the form", "See www.example.org/forms.", "See the website."),
        ("mailing address for claims", "P.O. Box 12, Seattle", "Mail your claims."),
        ("what is the serial number of the balance", "Serial number: B-4711", "Note the serial number."),
        ("Who is the CEO?", "Contoso is led by Jane Doe.", "The CEO leads the company."),
        ("who's our lab manager?", "Ask Jane Doe.", "Ask the Laboratory Manager."),
        ("Which building is the course in?", "It is held in Hall B.", "It is held twice a year."),
        ("In which month are reviews?", "Reviews are in March.", "Reviews are annual."),
        ("What is the warning about restoring?", "Never restore in place.", "Restore it in place."),
        ("How long can I return it?", "Within fourteen days.", "Within a while."),
        ("what percentage is paid by the company", "It pays 80 % of it.", "It pays a part of it."),
        ("how old was the pilot?", "The pilot, age 44, was alone.", "The pilot was alone."),
        ("At what time do backups run?", "Backups run at 2:00 AM.", "Backups run daily."),
        ("What are the opening hours?", "Open from 9 am to 5 pm.", "The hours are posted."),
        ("How fast is an appeal answered?", "Within 24 hours.", "Quickly."),
        ("how many people were on board", "Two people were aboard the plane.", "The plane was lost."),
    ],
)
def test_only_a_value_of_the_requested_kind_answers(question: str, answer: str, other: str) -> None:
    """Shows it although the other sentence is on the same subject."""
    assert RequiredAnswer(question).is_held_by(other, answer)
    assert not RequiredAnswer(question).is_held_by(other)


@pytest.mark.parametrize(
    "question", ["Who restores a backup?", "What does the plan cover?", "Is the number on my card enough?"]
)
def test_other_questions_require_nothing(question: str) -> None:
    """Any text may answer them."""
    assert RequiredAnswer(question).is_held_by("Anything at all.")


def test_a_number_of_the_question_is_no_answer() -> None:
    """The number of a step or section is no answer either."""
    assert not RequiredAnswer("How old was the pilot of the Cessna 210?").is_held_by(
        "The Cessna 210 was destroyed."
    )
    assert not RequiredAnswer("How many steps are there?").is_held_by("8.2 Wait until it is warm.")


SAFETY = (
    "Hazards are reported to the safety department by phone. Passwords must be complex.\n\n"
    "The pilot, age 85, landed at 60 knots. Filters are changed every 3 months. The fee is $20."
)


@for_each(
    ("question", "lacks"),
    [
        ("phone number of the safety department please", True),
        ("How many characters do passwords have?", True),
        ("How many people work in the safety department?", True),
        ("What email address do I report hazards to?", True),
        ("How old was the pilot?", False),
        ("How fast did the pilot land?", False),
        ("How often are filters changed?", False),
        ("How many months until filters are changed?", False),
        ("How much does it cost, what is the fee?", False),
        ("Are passwords complex?", False),
    ],
)
def test_ages_speeds_spans_counts_and_prices_are_recognized(question: str, *, lacks: bool) -> None:
    """Shows each in its common notations."""
    assert RequiredAnswer(question).is_held_by(SAFETY) is not lacks


@for_each(
    ("question", "wants"),
    [
        ("How do I restore a backup?", True),
        ("and for databases (how do I restore a backup)?", True),
        ("Wie kann ich Urlaub beantragen?", True),
        ("How many days do I get (steps to request leave)?", False),
        ("When do backups run?", False),
        ("What is the purpose of the procedure?", False),
        ("What is the procedure for a restore?", True),
    ],
)
def test_how_to_questions_are_recognized(question: str, *, wants: bool) -> None:
    """Shows which questions get a whole list of steps; a follow-up to one need not."""
    assert wants_steps(question) is wants


@pytest.mark.parametrize(
    ("question", "text", "may_answer"),
    [
        ("What does a laptop cost?", "Table 12. Provided: laptop with disk, yes", False),
        ("What does a laptop cost?", "A laptop costs 900 crowns.", True),
        ("How much does parking cost?", "Parking is free for guests.", True),
        ("When does the car park close?", "The car park closes after the last shift.", True),
    ],
)
def test_a_price_is_answered_by_an_amount(question: str, text: str, *, may_answer: bool) -> None:
    """Currencies and times are worded in too many ways to be listed."""
    assert RequiredAnswer(question).may_be_answered_by(text) is may_answer

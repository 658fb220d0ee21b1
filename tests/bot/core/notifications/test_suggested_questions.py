"""Questions made up from a document's own headings."""

from __future__ import annotations

from fakes.core import WORDS
from harness.tables import for_each

from bot.core.models import Language
from bot.core.notifications.suggested_questions import MAX_QUESTION_CHARS, suggest_questions
from bot.core.wording import reply_words
from storage.models import Chunk

BODY = "This is the text of the section and it is here for the reader with all of the words in it."


def chunk(text: str = BODY, heading: str = "") -> Chunk:
    """A chunk under a heading."""
    return Chunk(0, text, 1, (heading,) if heading else (), (), ((0, 1),))


def test_a_heading_that_asks_is_taken_as_it_is() -> None:
    """Shows that a document's own questions come first."""
    chunks = [chunk(heading="Daily check of the tapes"), chunk(heading="How do I reset my password?")]
    questions = suggest_questions(chunks, "", 6)
    assert questions[0] == "How do I reset my password?"
    assert WORDS.question_on("daily check of the tapes", "") in questions


def test_a_heading_is_asked_about_by_the_documents_title_and_in_its_language() -> None:
    """Shows that a German text is asked in German."""
    german = "Der Antrag und die Frist, die nicht von der Leitung ist, sind mit dem Formular zu stellen."
    assert suggest_questions([chunk(german, "2. Urlaubsanspruch")], "Handbuch", 3) == [
        reply_words(Language.GERMAN).question_on("Urlaubsanspruch", "Handbuch")
    ]


@for_each(
    "heading",
    [
        "Contents",
        "1. Introduction",
        "SOP-IT-04",
        "see https://evil.example/now",
        "<!channel> look here",
        "*bold* [link](x)",
        "@everyone read this",
    ],
)
def test_an_empty_or_dangerous_heading_is_not_asked_about(heading: str) -> None:
    """Shows that nothing a chat could take for a link, a mention or markup gets into a question."""
    assert suggest_questions([chunk(heading=heading)], "", 6) == []


def test_questions_are_few_short_and_distinct() -> None:
    """Shows the bounds, whatever the document holds."""
    chunks = [chunk(heading=f"Oil for machine {chr(97 + n % 20) * (3 + n)}") for n in range(200)]
    questions = suggest_questions(chunks, "", 6)
    assert 0 < len(questions) <= 6
    assert len(set(questions)) == len(questions)
    assert all(len(question) <= MAX_QUESTION_CHARS for question in questions)

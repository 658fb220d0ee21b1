"""Compound questions: two questions in a message are answered in turn, with continuous numbering."""

from __future__ import annotations

from fakes.core import Looker, Scripted, World
from harness.tables import for_each

from bot.answers.compound_questions import join_answers, split_alternatives, split_questions
from bot.core.models import Answer, AnswerFigure, AnswerState, Citation, Claim, Draft, Quote
from storage.models import Box

SPLIT = [
    "When do backups run and who is the keeper of tapes?",
    "When does the car park close? Who makes badges?",
    "I lost my badge. Who makes badges? Where does the shuttle bus stop?",
    "How long was the Venice runway and how strong was the wind?",
    "Wann laufen Backups und wer prüft die Berichte?",
    "¿Cuántos días de vacaciones hay y quién aprueba los viajes?",
    "Quels documents dois-je fournir et qui signe les contrats ?",
    "Can I report this by phone and do I have to give my real name?",
]

WHOLE = [
    "When and where does it take place?",
    "Who is the person who approves and who signs?",
    "What is the difference between a policy and what the handbook says?",
    "What is the procedure and how to start?",
    "Who invented the symbol and what year?",
    "Who wrote the report? I need the name.",
    "Who approves a restore and how often is it tested?",
    "How many days of annual leave? And sick leave?",
    "Which government investigates the crash and which for the Reims F172?",
    "Which acid and how much of it goes into each vessel?",
    "What is a tape? Who keeps old tapes? Where are the tapes kept? When are tapes erased?",
    "What is the limit? " + "Really, what is the limit of it? " * 30,
]


@for_each("text", SPLIT)
def test_a_message_is_split_at_a_second_standalone_question(text: str) -> None:
    """Covers sentences and clauses in several languages; only a conjunction is dropped between them."""
    first, second = split_questions(text)
    assert text.startswith(first)
    assert text.endswith(second)
    assert text[len(first) : -len(second)].strip(" ,") in {"", "and", "und", "y", "et"}


@for_each("text", WHOLE)
def test_one_question_stays_whole(text: str) -> None:
    """Covers relative clauses, comparisons, dependent questions, and too many questions."""
    assert split_questions(text) == [text]


def test_the_replies_are_joined_in_order() -> None:
    """Shows headings, continuous numbers, and notes common to all parts."""
    first = Answer(
        AnswerState.GROUNDED,
        "At 2 [1], twice [2].",
        citations=(_citation(1), _citation(2)),
        is_generated=True,
        headings=("Runs, p. 1",),
    )
    figure = AnswerFigure("a.pdf", 1, "Plan", Box(0, 0, 1, 1), "u", "i", number=1)
    second = Answer(
        AnswerState.GROUNDED, "Ada [1].", (_citation(1),), figures=(figure,), headings=("Keepers, p. 2",)
    )
    joined = join_answers(["when do they run", "who keeps them?"], [first, second])
    assert joined.text == "When do they run?\nAt 2 [1], twice [2].\n\nWho keeps them?\nAda [3]."
    assert [one.number for one in joined.citations] == [1, 2, 3]
    assert joined.headings == ("Runs, p. 1", "Keepers, p. 2")
    assert (joined.state, joined.figures[0].number, joined.is_generated) == (AnswerState.GROUNDED, 3, True)


def test_a_note_common_to_all_replies_is_shown_once() -> None:
    """Shows that a common note follows the last reply, and that no reply becomes empty."""
    notes = "\n\nI’m still reading Policy.pdf."
    parts = [Answer(AnswerState.PASSAGES, f"{text}{notes}") for text in ("One.", "Two.")]
    joined = join_answers(["a", "b"], parts)
    assert joined.text == f"A?\nOne.\n\nB?\nTwo.{notes}"
    same = [Answer(AnswerState.NOT_FOUND, "No."), Answer(AnswerState.NOT_FOUND, "No.")]
    assert join_answers(["a", "b"], same).text == "A?\nNo.\n\nB?\nNo."


STATES = [
    ("grounded", "not_found", "partial"),
    ("passages", "not_found", "passages"),
    ("grounded", "passages", "partial"),
    ("grounded", "chat", "grounded"),
    ("not_found", "failed", "not_found"),
    ("failed", "failed", "failed"),
    ("chat", "chat", "chat"),
]


@for_each(("one", "other", "state"), STATES)
def test_the_state_shows_if_all_parts_were_answered(one: str, other: str, state: str) -> None:
    """Shows that any part without an answer makes the state partial, whichever it is."""
    parts = [Answer(AnswerState(one), "One."), Answer(AnswerState(other), "Other.")]
    for answers in (parts, parts[::-1]):
        assert join_answers(["a", "b"], answers).state == state


@for_each(
    ("asked", "parts"),
    [
        (
            "which student pilot had more flight time, Venice or Madill?",
            [
                "which student pilot had more flight time, Venice?",
                "which student pilot had more flight time, Madill?",
            ],
        ),
        (
            "how long may I wait, standard vs health plus?",
            ["how long may I wait, standard?", "how long may I wait, health plus?"],
        ),
        ("Is it on Monday, or not?", []),
        ("Where is the form, and who signs it?", []),
        ("May I work on Monday or Tuesday?", []),
        ("In an emergency, what is the number of the nurse?", []),
    ],
)
def test_alternatives_are_searched_one_by_one(asked: str, parts: list[str]) -> None:
    assert split_alternatives(asked) == parts


async def test_both_questions_are_searched(world: World) -> None:
    """Shows passages for both, and "not found" next to a found answer."""
    both = await world.answering().answer(
        world.question("When do backups run? When are travel costs refunded?")
    )
    assert both.state is AnswerState.PASSAGES
    assert both.text.index("2:00 AM") < both.text.index("30 days")
    assert [one.number for one in both.citations] == list(range(1, len(both.citations) + 1))
    asked = "When do backups run and who is the Mongolian ambassador?"
    half = await world.answering().answer(world.question(asked))
    assert half.state is AnswerState.PASSAGES
    assert "2:00 AM" in half.text
    assert "Who is the Mongolian ambassador?" in half.text


async def test_a_model_answers_the_message_as_a_whole(world: World) -> None:
    """Shows that it is asked once, with what each question finds, and streams one reply."""
    claims = (
        Claim("Backups run at 2 AM every day.", (Quote(1, "Backups run daily at 2:00 AM"),)),
        Claim("Travel costs are refunded within 30 days.", (Quote(2, "within 30 days"),)),
    )
    model, looker = Scripted(Draft(claims)), Looker()
    asked = "When do backups run? When are travel costs refunded?"
    answer = await world.answering(model).answer(world.question(asked), looker)
    assert [one.text for one in model.asked] == [asked]
    assert answer.state is AnswerState.GROUNDED
    assert len({one.file for one in answer.citations}) == 2
    assert looker.seen


def _citation(number: int) -> Citation:
    return Citation(number, "A", "a.pdf", 1, "quote", (), "https://example.test")

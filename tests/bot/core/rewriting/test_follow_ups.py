"""A follow-up question is searched for as one would ask it alone; one that stands alone stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes.core import ASKED_AT, Register, World, make_channel, make_status

from bot.core.errors import ModelUnavailable
from bot.core.models import AnswerState, Question, Reply
from bot.core.rewriting.query_rewriting import (
    MAX_QUESTION_CHARS,
    FollowUps,
    ModelRewriter,
    format_history,
    is_faithful,
)
from bot.core.understanding.channel_documents import ChannelView
from storage.chat_models import Turn
from storage.text.analyzer import analyze

VACATION = Turn(
    "How many vacation days do employees get?",
    "How many vacation days do employees get?",
    "Employees get 25 vacation days a year.",
)
REMOTE = Turn("How do I request remote work?", "How do I request remote work?", "Submit form HR-02.")


def turn(question: str, answer: str = "") -> Turn:
    return Turn(question, question, answer)


async def understand(question: str, *history: Turn, register: Register | None = None) -> str:
    """How a question is searched for after these turns."""
    asked = Question("q", question, make_channel(), ASKED_AT, history=history)
    return (await FollowUps(None).understand(asked, ChannelView(register or Register(), asked.channel))).text


LEANING = [
    (VACATION, "and for contractors?", "vacation days contractors"),
    (VACATION, "what about contractors", "vacation days contractors"),
    (VACATION, "part-time employees?", "vacation days part-time employees"),
    (VACATION, "When do they expire?", "vacation days expire"),
    (VACATION, "why?", "vacation days"),
    (VACATION, "any exceptions?", "exceptions vacation days"),
    (VACATION, "Can I carry them over?", "carry vacation days"),
    (REMOTE, "how long does that take?", "take request remote work"),
    (REMOTE, "who approves it", "approves request remote work"),
    (REMOTE, "ok thanks, and who approves the request?", "approves request remote work"),
    (REMOTE, "where do I find the form?", "find form request remote work"),
    (REMOTE, "What is its legal basis?", "legal basis remote work"),
    (REMOTE, "who else?", "request remote work"),
    (turn("Wie viele Urlaubstage haben Angestellte?"), "und für Praktikanten?", "Urlaubstage Praktikanten"),
    (turn("Wie beantrage ich Telearbeit?"), "Wie lange dauert das?", "dauert beantrage Telearbeit"),
    (turn("Combien de jours de congé ont les salariés ?"), "et pour les stagiaires ?", "congé stagiaires"),
    (turn("¿Cuántos días de vacaciones tienen los empleados?"), "¿y los becarios?", "vacaciones becarios"),
]


@pytest.mark.parametrize(("last", "question", "words"), LEANING, ids=[one[1] for one in LEANING])
async def test_a_follow_up_takes_along_what_it_leans_on(last: Turn, question: str, words: str) -> None:
    """Shows that its own words and those of the question before it are searched for."""
    text = await understand(question, last)
    assert set(analyze(words)) <= set(analyze(text)), text
    assert text.endswith("?")


ALONE = [
    "What is the deductible of the Northwind Standard plan?",
    "How do I report a stolen laptop?",
    "Do employees get a bonus if they leave in December?",
    "Does the handbook say that employees must wear badges?",
    "Can employees take their laptops home?",
    "Who approves overtime in the warehouse?",
    "How does SOP-IT-04 work?",
    "travel expenses foreign currency receipts",
    "Who runs IT?",
]


@pytest.mark.parametrize("question", ALONE)
async def test_a_question_that_stands_alone_is_left_as_it_is(question: str) -> None:
    """Shows that a thread may change its topic at any time."""
    assert await understand(question, VACATION, REMOTE) == question


async def test_without_history_nothing_is_changed() -> None:
    """Shows that the first question of a thread is searched for as typed, whatever it says."""
    assert await understand("and for contractors?") == "and for contractors?"


async def test_a_subject_is_carried_on_over_several_turns() -> None:
    """Shows that a follow-up to a follow-up means the same subject, without what was asked in between."""
    first = await understand("how long does that take?", REMOTE)
    second = await understand(
        "and who approves it?", REMOTE, Turn("how long does that take?", first, "A week.")
    )
    assert set(analyze("approves request remote work")) <= set(analyze(second))
    assert "take" not in second


PLANS = [
    make_status("Northwind_Health_Plus_Benefits_Details.pdf"),
    make_status("Northwind_Standard_Benefits_Details.pdf"),
    make_status("employee_handbook.pdf"),
]


async def test_the_other_plan_is_the_sibling_of_the_one_spoken_of() -> None:
    """Shows that the documents' names tell which one is meant, named or cited before."""
    register = Register(PLANS)
    named = turn("What is the deductible of the Northwind Standard plan?")
    for question in ("and for the other plan?", "what about the other one?", "and in Health Plus?"):
        text = await understand(question, named, register=register)
        assert text == "What is the deductible of the Northwind Health Plus plan?"
    cited = replace(turn("What is the deductible?"), documents=frozenset({PLANS[0].document}))
    assert await understand("and the other plan?", cited, register=register) == (
        "What is the deductible, Standard?"
    )


async def test_no_sibling_is_made_up() -> None:
    """Shows that without a family, or with a large one, the words are searched for as they were typed."""
    last = turn("What is the deductible of the Northwind Standard plan?")
    for files in ([], PLANS[1:], [*PLANS, make_status("Northwind_Gold_Benefits_Details.pdf")]):
        text = await understand("and the other plan?", last, register=Register(list(files)))
        assert set(analyze("deductible Northwind other plan")) <= set(analyze(text))
        assert "Gold" not in text


@pytest.mark.parametrize("question", ["it", "that?", "???", "", "é", "and", "what about", "one " * 2000])
async def test_whatever_is_typed_has_a_wording(question: str) -> None:
    """Shows that no text is too odd to be understood somehow."""
    for last in (VACATION, turn("?"), turn("why?"), turn("(((")):
        assert isinstance(await understand(question, last), str)


class Model:
    """A language model that writes what a test told it to."""

    def __init__(self, *replies: str | Exception) -> None:
        self.replies = list(replies)
        self.requests: list[str] = []

    async def write(self, instructions: str, request: str, *, seconds: float, tokens: int) -> Reply:
        """The next reply."""
        self.requests.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Reply(reply, None)


async def reword(question: str, *replies: str | Exception, history: Sequence[Turn] = (VACATION,)) -> str:
    """How a question is searched for when a model may word it."""
    follow_ups = FollowUps(ModelRewriter(Model(*replies)))
    asked = Question("q", question, make_channel(), ASKED_AT, history=tuple(history))
    return (await follow_ups.understand(asked, ChannelView(Register(), asked.channel))).text


async def test_a_model_words_a_follow_up() -> None:
    """Shows that its sentence is searched for, without the dress it may come in."""
    wanted = "How many vacation days do contractors get?"
    for reply in (wanted, f'"{wanted}"', f"Question: {wanted}\n"):
        assert await reword("and for contractors?", reply) == wanted


FAULTS = [
    ModelUnavailable("late"),
    "",
    "How many vacation days do\ncontractors get?",
    "How many vacation days do contractors get in 2024?",
    "How many of the 25 vacation days does SOP-HR-02 give contractors?",
    "How many vacation days do Acme contractors get?",
    "Do contractors get thirty vacation days?",
    "and for contractors?",
    "How many vacation days? " * MAX_QUESTION_CHARS,
]


@pytest.mark.parametrize("reply", FAULTS, ids=range(len(FAULTS)))
async def test_a_model_that_fails_or_makes_things_up_is_not_believed(reply: str | Exception) -> None:
    """Shows that the rules word the question then."""
    assert await reword("and for contractors?", reply) == "for contractors (vacation days do employees)?"


async def test_a_model_is_not_asked_about_a_question_that_stands_alone() -> None:
    """Shows that a clear question costs no call, and that a short one stays when the model repeats it."""
    assert await reword("What is the deductible of the Northwind Standard plan?") == (
        "What is the deductible of the Northwind Standard plan?"
    )
    assert (
        await reword("How is overtime paid out?", "How is overtime paid out?") == "How is overtime paid out?"
    )


def test_a_model_reads_the_newest_turns_and_not_more_than_fits() -> None:
    """Shows the bound of what a thread costs."""
    history = [turn(f"Question {number}?", "word " * 150) for number in range(9)]
    shown = format_history(history)
    assert "Question 8?" in shown
    assert "Question 0?" not in shown
    assert len(shown) < 2100
    assert len(format_history([turn("x" * 9000)])) <= 2000


def test_what_the_thread_says_may_be_said_again() -> None:
    """Shows that numbers, codes and names of earlier answers are no inventions."""
    history = [turn("How do I request remote work?", "Submit form HR-02 to Dana Lee within 5 days.")]
    assert is_faithful("Why must form HR-02 reach Dana Lee within 5 days?", "why?", history)
    assert not is_faithful("Why must form HR-03 reach Dana Lee?", "why?", history)


async def test_an_answer_says_what_was_searched_for_when_that_was_not_what_was_typed(world: World) -> None:
    """Shows the whole way: the follow-up finds the page that its own words name nothing of."""
    history = (turn("When do backups run?", "Daily at 2:00 AM."),)
    asked = replace(world.question("how soon is it repeated when that fails?"), history=history)
    answer = await world.answering().answer(asked)
    assert (answer.state, "backups" in answer.standalone) == (AnswerState.GROUNDED, True)
    plain = await world.answering().answer(replace(asked, text="When do backups run?"))
    assert plain.standalone == ""

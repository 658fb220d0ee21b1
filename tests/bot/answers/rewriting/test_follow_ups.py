"""Follow-up questions: searched as typed and as a standalone question; the judge chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from fakes.core import ASKED_AT, HashEmbedder, Register, World, make_channel, make_status
from harness.tables import for_each

from bot.answers.rewriting.query_rewriting import (
    MAX_QUESTION_CHARS,
    FollowUpRewriter,
    ModelRewriter,
    format_history,
    is_faithful,
)
from bot.answers.understanding.channel_documents import ChannelView
from bot.core.errors import ModelUnavailable
from bot.core.models import AnswerState, Language, Question, Reply
from storage.chat.notifications import Notices
from storage.chat_models import Notice, Turn
from storage.embeddings.base import QueryEmbedder
from storage.errors import EmbedderUnavailable, IndexUnavailable
from storage.text.analyzer import analyze

VACATION = Turn(
    "How many vacation days do employees get?",
    "How many vacation days do employees get?",
    "Employees get 25 vacation days a year.",
)
REMOTE = Turn("How do I request remote work?", "How do I request remote work?", "Submit form HR-02.")


def turn(question: str, answer: str = "") -> Turn:
    return Turn(question, question, answer)


async def reworded(
    question: str,
    *history: Turn,
    register: Register | None = None,
    embedder: HashEmbedder | None = None,
    rewriter: ModelRewriter | None = None,
    language: Language = Language.ENGLISH,
) -> str:
    """Return the standalone question after these turns, or the question if it stands alone."""
    asked = Question("q", question, make_channel(), ASKED_AT, history=history, language=language)
    follow_ups = FollowUpRewriter(cast(QueryEmbedder, embedder or HashEmbedder()), rewriter)
    readings = await follow_ups.queries(asked, ChannelView(register or Register(), asked.channel))
    return readings[-1].text


LEANING = [
    (VACATION, "and for contractors?", "vacation days contractors"),
    (VACATION, "what about contractors", "vacation days contractors"),
    (VACATION, "part-time employees?", "vacation days part-time employees"),
    (VACATION, "When do they expire?", "vacation days expire"),
    (VACATION, "how much is it?", "vacation days"),
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


@for_each(("last", "question", "words"), LEANING)
async def test_a_follow_up_includes_its_context(last: Turn, question: str, words: str) -> None:
    """Shows that its own words and those of the previous question are searched."""
    text = await reworded(question, last)
    assert set(analyze(words)) <= set(analyze(text)), text
    assert text.endswith("?")


ALONE = [
    "What is the deductible of the Northwind Standard plan?",
    "How do I report a stolen laptop?",
    "Do employees get a yearly bonus if they leave in December?",
    "Does the handbook say that employees must wear badges?",
    "Can remote employees take their laptops home?",
    "Who approves overtime in the warehouse?",
    "How many sick days do I get?",
    "Which breaks can't I take?",
    "How does SOP-IT-04 work?",
    "travel expenses foreign currency receipts",
    "Who runs IT?",
]


@for_each("question", ALONE)
async def test_a_standalone_question_is_unchanged(question: str) -> None:
    """Shows that a thread may change its topic at any time."""
    assert await reworded(question, VACATION, REMOTE) == question


async def test_without_history_the_question_is_unchanged() -> None:
    """Shows that the first question of a thread is searched as typed, whatever it says."""
    assert await reworded("and for contractors?") == "and for contractors?"


async def test_a_subject_is_kept_over_several_turns() -> None:
    """Shows that a follow-up to a follow-up keeps the subject, without the question in between."""
    first = await reworded("how long does that take?", REMOTE)
    second = await reworded(
        "and who approves it?", REMOTE, Turn("how long does that take?", first, "A week.")
    )
    assert set(analyze("approves request remote work")) <= set(analyze(second))
    assert "take" not in second


class Late(HashEmbedder):
    """An embedder that is unavailable."""

    async def aembed(self, texts: Sequence[str]) -> np.ndarray:
        raise EmbedderUnavailable("late")


EXCHANGED = [
    ("and for part-time employees?", "How many vacation days do part-time employees get?"),
    ("And what about sick days?", "How many sick days do employees get?"),
    ("external employees?", "How many vacation days do external employees get?"),
    ("and who approves sick days?", "who approves sick days (vacation days do employees)?"),
]


@pytest.mark.parametrize(("question", "text"), EXCHANGED)
async def test_a_new_noun_replaces_the_old_one(question: str, text: str) -> None:
    """Shows that it replaces the most similar noun, unless more is asked."""
    assert await reworded(question, VACATION) == text


async def test_an_incomplete_question_is_only_searched_with_context() -> None:
    """Shows that a bare noun after an opener, or a bare pronoun, is not searched alone."""
    asked_twice = (
        ("And what about sick days?", 1),
        ("who approves it?", 1),
        ("sick days?", 2),
        ("And when?", 2),
    )
    for question, count in asked_twice:
        asked = Question("q", question, make_channel(), ASKED_AT, history=(VACATION,))
        follow_ups = FollowUpRewriter(cast(QueryEmbedder, HashEmbedder()))
        assert len(await follow_ups.queries(asked, ChannelView(Register(), asked.channel))) == count


class Suggested:
    """Suggested questions that a document has answered."""

    async def sample_questions(self, channel_id: int, limit: int) -> list[tuple[Notice, str]]:
        return [(Notice(1, "live", ASKED_AT, channel_id, "it", None), "Who may ask?")]


async def test_a_suggested_question_is_never_reworded() -> None:
    """Shows that suggested questions are searched unchanged in any thread."""
    follow_ups = FollowUpRewriter(cast(QueryEmbedder, HashEmbedder()), notices=cast(Notices, Suggested()))
    for question, count in (("Who may ask?", 1), ("Who may?", 2)):
        asked = Question("q", question, make_channel(), ASKED_AT, history=(VACATION,))
        assert len(await follow_ups.queries(asked, ChannelView(Register(), asked.channel))) == count


SHARED = [
    ("Who approves annual leave?", "and sick leave?", Language.ENGLISH, "Who approves sick leave?"),
    ("Is annual leave carried over?", "sick leave?", Language.ENGLISH, "Is sick leave carried over?"),
    (
        "Combien de jours de congé annuel ?",
        "et de congé maladie ?",
        Language.FRENCH,
        "Combien de jours de congé maladie?",
    ),
    (
        "Wie viele Urlaubstage haben neue Angestellte?",
        "und neue Praktikanten?",
        Language.GERMAN,
        "Wie viele Urlaubstage haben neue Praktikanten?",
    ),
]


@for_each(("last", "question", "language", "text"), SHARED)
async def test_a_noun_replaces_one_that_shares_a_word_with_it(
    last: str, question: str, language: Language, text: str
) -> None:
    """Shows that the rest of the question stays, in any language and without an embedder."""
    assert await reworded(question, turn(last), language=language, embedder=Late()) == text


async def test_nouns_of_other_languages_are_not_compared_by_meaning() -> None:
    """Shows that the subject is appended if the embedder cannot compare."""
    last = turn("Wie viele Urlaubstage haben Angestellte?")
    text = await reworded("und Praktikanten?", last, language=Language.GERMAN)
    assert text == "Praktikanten (Urlaubstage haben Angestellte)?"


async def test_the_latest_noun_of_a_thread_counts() -> None:
    """Shows that subjects do not accumulate."""
    paris = turn("What is the travel allowance in the Paris office?")
    munich = await reworded("and the Munich office?", paris)
    london = await reworded("and in the London office?", paris, replace(paris, standalone=munich))
    assert london == "What is the travel allowance in the London office?"


async def test_without_an_embedder_the_subject_is_appended() -> None:
    """Shows that no noun is replaced by guessing."""
    text = await reworded("and for part-time employees?", VACATION, embedder=Late())
    assert text == "for part-time employees (vacation days do employees)?"


PLANS = [
    make_status("Northwind_Health_Plus_Benefits_Details.pdf"),
    make_status("Northwind_Standard_Benefits_Details.pdf"),
    make_status("employee_handbook.pdf"),
]


async def test_the_other_plan_is_the_sibling_of_the_current_one() -> None:
    """Shows that document names identify it, whether named or cited before."""
    register = Register(PLANS)
    named = turn("What is the deductible of the Northwind Standard plan?")
    for question in ("and for the other plan?", "what about the other one?", "and in Health Plus?"):
        text = await reworded(question, named, register=register)
        assert text == "What is the deductible of the Northwind Health Plus plan?"
    cited = replace(turn("What is the deductible?"), documents=frozenset({PLANS[0].document}))
    assert await reworded("and the other plan?", cited, register=register) == (
        "What is the deductible, Standard?"
    )


async def test_no_sibling_is_invented() -> None:
    """Shows that without siblings, or with several, the words are searched as typed."""
    last = turn("What is the deductible of the Northwind Standard plan?")
    for files in ([], PLANS[1:], [*PLANS, make_status("Northwind_Gold_Benefits_Details.pdf")]):
        text = await reworded("and the other plan?", last, register=Register(list(files)))
        assert set(analyze("deductible Northwind other plan")) <= set(analyze(text))
        assert "Gold" not in text


@for_each("question", ["it", "that?", "???", "", "é", "and", "what about", "one " * 2000])
async def test_any_text_has_a_standalone_form(question: str) -> None:
    """Shows that any text has a standalone form."""
    for last in (VACATION, turn("?"), turn("why?"), turn("(((")):
        assert isinstance(await reworded(question, last), str)


class Model:
    """A language model with scripted replies."""

    def __init__(self, *replies: str | Exception) -> None:
        self.replies = list(replies)
        self.requests: list[str] = []

    async def write(self, instructions: str, request: str, *, seconds: float, tokens: int) -> Reply:
        """Return the next reply."""
        self.requests.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Reply(reply, None)


async def reword(question: str, *replies: str | Exception, history: Sequence[Turn] = (VACATION,)) -> str:
    """Return the standalone question written by a model."""
    return await reworded(question, *history, rewriter=ModelRewriter(Model(*replies)))


async def test_a_model_rewrites_a_follow_up() -> None:
    """Shows that quotes and labels around its sentence are removed."""
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


@for_each("reply", FAULTS)
async def test_a_failing_or_inventing_model_is_ignored(reply: str | Exception) -> None:
    """Shows that the rules are used instead."""
    assert await reword("and for contractors?", reply) == "for contractors (vacation days do employees)?"


async def test_a_standalone_question_needs_no_model() -> None:
    """Shows that a clear question costs no call, and that a short one stays if the model repeats it."""
    assert await reword("What is the deductible of the Northwind Standard plan?") == (
        "What is the deductible of the Northwind Standard plan?"
    )
    assert (
        await reword("How is overtime paid out?", "How is overtime paid out?") == "How is overtime paid out?"
    )


def test_a_model_reads_the_newest_turns_and_not_more_than_fits() -> None:
    """Shows the limit on the cost of a thread."""
    history = [turn(f"Question {number}?", "word " * 150) for number in range(9)]
    shown = format_history(history)
    assert "Question 8?" in shown
    assert "Question 0?" not in shown
    assert len(shown) < 2100
    assert len(format_history([turn("x" * 9000)])) <= 2000


def test_facts_of_the_thread_may_be_repeated() -> None:
    """Shows that numbers, codes and names of earlier answers count as given."""
    history = [turn("How do I request remote work?", "Submit form HR-02 to Dana Lee within 5 days.")]
    assert is_faithful("Why must form HR-02 reach Dana Lee within 5 days?", "why?", history)
    assert not is_faithful("Why must form HR-03 reach Dana Lee?", "why?", history)


async def test_an_answer_shows_its_standalone_question(world: World) -> None:
    """Shows the whole pipeline: the follow-up finds a page that shares no word with it."""
    history = (turn("When do backups run?", "Daily at 2:00 AM."),)
    asked = replace(world.question("how soon is it repeated when that fails?"), history=history)
    answer = await world.answering().answer(asked)
    assert (answer.state, "backups" in answer.standalone) == (AnswerState.PASSAGES, True)
    plain = await world.answering().answer(replace(asked, text="When do backups run?"))
    assert plain.standalone == ""


THREAD = (turn("When are travel costs refunded?", "Within 30 days."),)
INDEPENDENT = (
    "Do they check the backup report every morning?",
    "failed backups?",
    "And is a failed backup repeated within 4 hours?",
)


@pytest.mark.parametrize("question", INDEPENDENT)
async def test_a_question_answered_as_typed_ignores_its_thread(world: World, question: str) -> None:
    """Shows that the judge takes the standalone question only if it is answered better."""
    asked = replace(world.question(question), history=THREAD)
    assert await reworded(question, *THREAD) != question
    answer = await world.answering().answer(asked)
    plain = await world.answering().answer(replace(asked, history=()))
    assert (answer.state, answer.standalone) == (AnswerState.PASSAGES, "")
    assert (answer.text, [one.page for one in answer.citations]) == (
        plain.text,
        [one.page for one in plain.citations],
    )


class OffTopic:
    """A model that turns every question into one about travel."""

    async def rewrite(self, question: str, history: Sequence[Turn]) -> str:
        return "Is there a receipt?"


async def test_a_rewording_by_a_model_is_judged_like_any_other(world: World) -> None:
    """Shows that a model that loses the question does no harm."""
    asked = replace(world.question(INDEPENDENT[0]), history=THREAD)
    answer = await world.answering(rewriter=cast(ModelRewriter, OffTopic())).answer(asked)
    assert "checks the report every morning" in answer.text
    assert answer.standalone == ""


@pytest.mark.parametrize("said", ["why?", "ok", "Ok, thanks!", "bye", "great", "tell me more"])
async def test_small_talk_gets_no_context(world: World, said: str) -> None:
    """Shows that it gets a chat reply and no search."""
    world.shelf.error = IndexUnavailable("down")
    answer = await world.answering().answer(replace(world.question(said), history=THREAD))
    assert (answer.state, answer.standalone, answer.citations) == (AnswerState.CHAT, "", ())

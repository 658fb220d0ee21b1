"""Question translation: with a model, questions are also searched in the documents' language."""

from __future__ import annotations

from dataclasses import replace

from fakes.core import ASKED_AT, Register, Scripted, World, make_channel, make_status
from harness.tables import for_each

from bot.answers.rewriting.question_translation import QuestionTranslator
from bot.answers.understanding.channel_documents import ChannelView
from bot.core.errors import ModelUnavailable
from bot.core.models import AnswerState, Claim, Draft, Language, Question, Quote, Reply
from storage.models import MetadataField

GERMAN = Question("q", "Wann laufen die Backups?", make_channel(), ASKED_AT, language=Language.GERMAN)
ENGLISH = "When do the backups run?"


class Translator(Scripted):
    """A model with scripted translations and drafts."""

    def __init__(self, reply: str | Exception, *turns: Draft) -> None:
        super().__init__(*turns)
        self.reply = reply
        self.requests: list[str] = []

    async def write(self, instructions: str, request: str, *, seconds: float, tokens: int) -> Reply:
        """Return the reply."""
        self.requests.append(request)
        if isinstance(self.reply, Exception):
            raise self.reply
        return Reply(self.reply, None)


def english() -> Register:
    """Return a channel of one English document."""
    field = MetadataField("language", "en", 1, ())
    return Register([replace(make_status("a.pdf"), metadata={"language": field})])


async def translated(model: Translator, question: Question = GERMAN, register: Register | None = None) -> str:
    """Return the translated query, or '' for none."""
    view = ChannelView(register or english(), question.channel)
    reading = await QuestionTranslator(model).reading(question, view)
    return reading.text if reading else ""


async def test_a_question_is_translated_once() -> None:
    """Shows the prompt, and that the same question costs no second call."""
    model = Translator(f" {ENGLISH}\n")
    translator, view = QuestionTranslator(model), ChannelView(english(), GERMAN.channel)
    readings = [await translator.reading(GERMAN, view) for _ in range(2)]
    assert [one and one.text for one in readings] == [ENGLISH, ENGLISH]
    assert model.requests == ["Language: English\nQuestion: Wann laufen die Backups?"]


async def test_a_question_in_the_documents_language_costs_no_call() -> None:
    """Covers a question in their language, and documents without a common language."""
    model = Translator(ENGLISH)
    assert await translated(model, replace(GERMAN, language=Language.ENGLISH)) == ""
    assert await translated(model, register=Register([make_status("a.pdf")])) == ""
    assert model.requests == []


@for_each("reply", [ModelUnavailable("late"), "", "When do the 3 backups run?", "backups " * 90])
async def test_a_failed_or_unfaithful_translation_is_not_searched(reply: str | Exception) -> None:
    """Shows that the question is then searched only as typed."""
    assert await translated(Translator(reply)) == ""


async def test_a_german_question_is_answered_from_english_documents(world: World) -> None:
    """Shows the whole pipeline: the translation finds the page, and the model gets the typed question."""
    world.register.statuses = list(english().statuses)
    said = Draft((Claim("Backups run at 2 AM every day.", (Quote(1, "Backups run daily at 2:00 AM"),)),))
    model = Translator(ENGLISH, said)
    answering = world.answering(model, translator=QuestionTranslator(model))
    answer = await answering.answer(world.question(GERMAN.text))
    assert (answer.state, answer.standalone) == (AnswerState.GROUNDED, ENGLISH)
    assert (model.asked[0].typed, model.asked[0].text) == (GERMAN.text, ENGLISH)

"""Language detection of questions, and the language of replies."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.core import ASKED_AT, Register, World, make_channel, make_passage, make_status
from harness.tables import for_each

from bot.answers.understanding.channel_documents import ChannelView
from bot.answers.understanding.question_terms import FUNCTION_TERMS, language_of, spoken_language
from bot.core.errors import ModelUnavailable
from bot.core.models import AnswerState, Language, Question
from bot.core.wording import reply_words
from storage.chat_models import Turn
from storage.errors import DatabaseUnavailable
from storage.models import DocumentStatus, MetadataField
from storage.text.analyzer import analyze

LABELLED = Path(__file__).parents[4] / "tools" / "evaluation" / "questions"
SHORT = tomllib.loads((Path(__file__).parent / "short_questions.toml").read_text(encoding="utf-8"))


def labelled_questions() -> list[str]:
    """Return all evaluation questions except the misspelt ones: a typo may look like another language."""
    lines = [line for file in LABELLED.glob("*.jsonl") for line in file.read_text("utf-8").splitlines()]
    return [question["question"] for question in map(json.loads, lines) if "spelt" not in question]


def pieces(question: str) -> Iterator[str]:
    """Yield all sequences of two to six words of a question."""
    words = question.split()
    for count in range(2, 7):
        yield from (" ".join(words[at : at + count]) for at in range(len(words) - count + 1))


@for_each(("text", "language"), [(text, language) for language, texts in SHORT.items() for text in texts])
def test_a_short_question_shows_its_language_or_none(text: str, language: str) -> None:
    """Shows detection from a few words, without capitals, accents or a whole sentence."""
    assert (language_of(text) or "unsure") == language


def test_no_english_question_is_detected_as_another_language() -> None:
    """Shows it for all labelled questions, and all sequences of two to six words in them."""
    questions = labelled_questions()
    told = [language_of(question) for question in questions]
    assert len(questions) > 400
    assert set(told) <= {Language.ENGLISH, None}
    assert told.count(None) <= 6
    others = {piece for question in questions for piece in pieces(question)}
    assert {language_of(piece) for piece in others} <= {Language.ENGLISH, None}


def test_a_passage_shows_its_language_and_a_list_of_names_none() -> None:
    """Shows detection of longer texts, and none for a text in an unknown language."""
    german = "Die Sicherung läuft täglich um 2:00 Uhr. Die IT prüft den Bericht an jedem Morgen."
    assert language_of(german) is Language.GERMAN
    assert language_of("Kovács, Novák, Nowak; Budapest, Praha, Warszawa 2024") is None
    assert language_of("Kopia zapasowa jest wykonywana codziennie o godzinie drugiej w nocy") is None


def test_foreign_function_words_have_no_weight() -> None:
    """Shows that "wie viele ... habe" matches nothing, while English words of the same spelling do."""
    assert (
        set(analyze("wieviel viele habe welches combien quelle cuantos quanti onde hoeveel"))
        <= FUNCTION_TERMS
    )
    assert not {"eu", "ai", "ca", "cell", "plus", "solo", "fare", "car", "ore"} & FUNCTION_TERMS


def question(text: str, *asked_before: str) -> Question:
    """Return a question in a thread."""
    history = tuple(Turn(earlier, earlier, "") for earlier in asked_before)
    return Question("q", text, make_channel(), ASKED_AT, history=history)


def document(language: str) -> DocumentStatus:
    """Return a document in a language; '' for an unknown one."""
    metadata = {"language": MetadataField("language", language, 1, ())} if language else {}
    return replace(make_status(f"{language}.pdf"), metadata=metadata)


@for_each(
    ("asked", "documents", "language"),
    [
        (question("wie lange?"), ["en", "en"], Language.GERMAN),
        (question("SOP-IT-04", "how long?", "und für externe?"), ["fr"], Language.GERMAN),
        (question("SOP-IT-04"), ["fr", "fr", "en"], Language.FRENCH),
        (question("SOP-IT-04"), ["fr", "en", ""], Language.ENGLISH),
        (question("SOP-IT-04"), ["hu", "hu"], Language.ENGLISH),
        (question("SOP-IT-04"), [], Language.ENGLISH),
    ],
)
async def test_question_thread_and_documents_decide_the_language(
    asked: Question, documents: list[str], language: Language
) -> None:
    """Shows the order, with English as the fallback."""
    view = ChannelView(Register(list(map(document, documents))), make_channel())
    assert (spoken_language(asked) or await view.language() or Language.ENGLISH) is language


async def test_a_database_outage_fails_no_question() -> None:
    """Shows that language detection never fails a question."""

    class Down(Register):
        async def active_documents(self, channel_id: int) -> list[DocumentStatus]:
            raise DatabaseUnavailable("down")

    assert await ChannelView(Down(), make_channel()).language() is None


@pytest.mark.parametrize("language", list(Language))
async def test_a_reply_speaks_the_questions_language(world: World, language: Language) -> None:
    """Shows the not-found reply; a quote stays English."""
    words = reply_words(language)
    world.register.statuses = [document(language), document(language)]
    asked = world.question("backups daily 2:00")
    found = await world.answering().answer(asked)
    assert found.language is language
    assert found.text.splitlines()[1].startswith("“Backups run daily")
    refused = await world.answering().answer(replace(asked, text="unicorn"))
    assert refused.text.startswith(f"{words.not_found_in(2)}\n")


@for_each(
    ("said", "reply"),
    [
        ("Danke!", reply_words(Language.GERMAN).thanks),
        ("vielen dank", reply_words(Language.GERMAN).thanks),
        ("merci beaucoup", reply_words(Language.FRENCH).thanks),
        ("Qu’est-ce que SOP", None),
        ("¡Hola!", reply_words(Language.SPANISH).greeting),
        ("¿Qué puedes hacer?", reply_words(Language.SPANISH).help),
        ("ciao a tutti", reply_words(Language.ITALIAN).greeting),
        ("Obrigada", reply_words(Language.PORTUGUESE).thanks),
        ("dank je wel", reply_words(Language.DUTCH).thanks),
        ("Hallo", reply_words(Language.GERMAN).greeting),
        ("Guten Morgen", reply_words(Language.GERMAN).greeting),
        ("À l’aide !", reply_words(Language.FRENCH).help),
        ("hilfe", reply_words(Language.GERMAN).help),
    ],
)
async def test_small_talk_is_answered_in_its_language(world: World, said: str, reply: str | None) -> None:
    """Shows that greetings, thanks and help are recognized in each language, and nothing else is."""
    answer = await world.answering().answer(world.question(said))
    assert (answer.state is AnswerState.CHAT) == (reply is not None)
    assert reply is None or answer.text == reply


async def test_a_word_of_two_languages_is_answered_in_the_threads(world: World) -> None:
    """Shows that "hallo" is Dutch in a Dutch thread."""
    asked = replace(world.question("hallo"), history=question("", "hoe lang duurt het").history)
    assert (await world.answering().answer(asked)).text == reply_words(Language.DUTCH).greeting


async def test_failures_are_reported_in_the_questions_language(world: World) -> None:
    """Covers a failed model, a question that is too long, and an index outage."""

    class DownModel:
        async def draft(self, *_: object, **__: object) -> None:
            raise ModelUnavailable("down")

    german = reply_words(Language.GERMAN)
    world.register.statuses = [document("de")]
    asked = world.question("backups daily 2:00")
    answer = await world.answering(DownModel()).answer(asked)  # type: ignore[arg-type]
    assert answer.text.startswith(german.model_failed)
    too_long = await world.answering().answer(replace(asked, text="wann " * 1000))
    assert too_long.text == german.question_too_long(limit=4000)
    world.shelf.error = DatabaseUnavailable("down")
    failed = await world.answering().answer(asked)
    assert (failed.state, failed.text) == (AnswerState.FAILED, german.engine_failed)


@pytest.mark.parametrize(
    ("asked", "printed"),
    [
        ("Groesse des Raumes?", "Die Größe des Raumes beträgt 40 Meter."),
        ("größe des raumes", "Die Groesse des Raumes betraegt 40 Meter."),
        ("Grosse des Raumes", "Die Größe des Raumes beträgt 40 Meter."),
        ("capacite du cafe", "La capacité du café est de 40 personnes."),
        ("la durée de l'essai", "Durée d’essai : deux mois."),
        ("numero de dias de vacacion", "Número de días de vacación: 23."),
    ],
)
async def test_accents_umlauts_and_elisions_are_ignored(world: World, asked: str, printed: str) -> None:
    """Shows that a question finds its words with or without accents, in the question and the document."""
    world.shelf.passages.append(make_passage(printed, file="other.pdf", title="", ordinal=7))
    answer = await world.answering().answer(world.question(asked))
    assert [citation.quote for citation in answer.citations] == [printed]

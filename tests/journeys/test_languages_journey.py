"""The whole program asked in other languages than its documents': found by meaning, told in the asker's."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.tiny_embedder import write_embedder
from harness.program import Program
from samples.paper import pdf

from bot.core.models import Language
from bot.core.wording import reply_words

SENTENCE = "Everybody receives twenty days of vacation."
MEANINGS = [
    "vacation vacations urlaub urlaubstage vacances congés vacaciones ferie férias verlof vakantiedagen",
    "days tage jours días giorni dias dagen",
    "receives bekomme habe ai tengo ho tenho heb krijg",
    "everybody ich je yo io eu ik",
    "bread sauerteigbrot pain pan pane pão brood",
    "bake backe cuire hornear cuocere assar bak",
]


@pytest.fixture(scope="module")
def program_of_many_languages(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A home with a multilingual embedder of its own, and one English page; every question is asked of it."""
    folder = tmp_path_factory.mktemp("languages")
    program = Program(folder / "home", {"FOOTNOTE_EMBEDDER": str(write_embedder(folder / "model", MEANINGS))})
    (folder / "leave.pdf").write_bytes(pdf(SENTENCE))
    ended = program.run("ingest", str(folder / "leave.pdf"), "--channel", "hr", "--wait", "full")
    assert ended.returncode == 0, ended.stderr
    return program


@pytest.mark.parametrize(
    ("language", "question", "elsewhere"),
    [
        (Language.GERMAN, "Wie viele Urlaubstage habe ich ?", "Wie backe ich Sauerteigbrot ?"),
        (Language.FRENCH, "Combien de jours de congés ai je ?", "Comment puis je cuire le pain ?"),
        (Language.SPANISH, "¿ Cuántos días de vacaciones tengo ?", "¿ Cómo puedo hornear pan ?"),
        (Language.DUTCH, "hoeveel vakantiedagen heb ik", "hoe bak ik brood"),
    ],
)
def test_a_question_finds_a_page_of_another_language_by_meaning_alone(
    program_of_many_languages: Program, language: Language, question: str, elsewhere: str
) -> None:
    """Shows that no shared word is needed, that the quote stays as printed, and that all is not claimed."""
    words = reply_words(language)
    answer = program_of_many_languages.ask(question, "hr")
    assert answer["text"] == f"{words.quotes_lead}\n“{SENTENCE}” [1]"
    assert [passage["bm25"] for passage in answer["passages"]] == [None]
    refused = program_of_many_languages.ask(elsewhere, "hr")
    assert refused["state"] in {"closest", "not_found"}
    assert not refused["text"].startswith(words.quotes_lead)


def test_the_bundled_embedder_knows_english_and_says_in_german_what_it_does_not_find(
    program: Program, tmp_path: Path
) -> None:
    """Shows that without a multilingual embedder the refusal is told in the question's language."""
    (tmp_path / "leave.pdf").write_bytes(pdf(SENTENCE))
    assert program.run("ingest", str(tmp_path / "leave.pdf"), "--channel", "hr").returncode == 0
    ended = program.run("ask", "Wie viele Urlaubstage habe ich?", "--channel", "hr")
    assert reply_words(Language.GERMAN).not_found in ended.stdout

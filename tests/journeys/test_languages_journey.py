"""Questions in other languages than the documents: found by meaning, answered in the asker's language."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.tiny_embedder import write_embedder
from harness.program import Program
from samples.paper import pdf

from bot.core.models import Language
from bot.core.wording import reply_words

SENTENCE = "Everybody receives twenty days of vacation."
PAGE = f"""{SENTENCE}
It is agreed with the manager in good time and entered in the calendar of the team.
What is left at the end of the year is lost unless the manager has agreed to something else.
"""  # language detection needs twenty words
MEANINGS = [
    "vacation vacations urlaub urlaubstage vacances congés vacaciones ferie férias verlof vakantiedagen",
    "days tage jours días giorni dias dagen",
    "receives bekomme habe ai tengo ho tenho heb krijg",
    "everybody ich je yo io eu ik",
    "bread sauerteigbrot pain pan pane pão brood",
    "bake backe cuire hornear cuocere assar bak",
]


# An answerable and an unanswerable question per language.
ASKED = {
    Language.GERMAN: ("Wie viele Urlaubstage habe ich ?", "Wie backe ich Sauerteigbrot ?"),
    Language.FRENCH: ("Combien de jours de congés ai je ?", "Comment puis je cuire le pain ?"),
    Language.SPANISH: ("¿ Cuántos días de vacaciones tengo ?", "¿ Cómo puedo hornear pan ?"),
    Language.DUTCH: ("hoeveel vakantiedagen heb ik", "hoe bak ik brood"),
}


@pytest.mark.long
def test_a_question_finds_a_page_in_another_language(program: Program, tmp_path: Path) -> None:
    """Shows that no common word is needed, that the quote stays as printed, and that other questions fail."""
    program.environment["FOOTNOTE_EMBEDDER"] = str(write_embedder(tmp_path / "model", MEANINGS))
    (tmp_path / "leave.pdf").write_bytes(pdf(PAGE))
    ended = program.run("ingest", str(tmp_path / "leave.pdf"), "--channel", "hr", "--wait", "full")
    assert ended.returncode == 0, ended.stderr
    file = tmp_path / "questions.jsonl"
    questions = [question for pair in ASKED.values() for question in pair]
    file.write_text("".join(json.dumps({"question": one, "channel": "hr"}) + "\n" for one in questions))
    lines = program.run("ask", "--questions", str(file), "--json").stdout.splitlines()
    answers = {one["question"]: one for one in map(json.loads, lines)}
    assert list(answers) == questions
    for language, (question, elsewhere) in ASKED.items():
        answer, refused = answers[question], answers[elsewhere]
        assert f"“{SENTENCE}” [1]" in answer["text"]
        assert [passage["bm25"] for passage in answer["passages"]] == [None]
        assert (language, refused["state"]) == (language, "not_found")


def test_a_not_found_reply_is_in_the_question_language(
    with_page: Callable[[str, str, str], Program],
) -> None:
    """Covers the bundled, English embedder, which does not find a German question's page."""
    ended = with_page("hr", "english.pdf", SENTENCE).run(
        "ask", "Wie viele Urlaubstage habe ich?", "--channel", "hr"
    )
    assert reply_words(Language.GERMAN).not_found_in(1) in ended.stdout

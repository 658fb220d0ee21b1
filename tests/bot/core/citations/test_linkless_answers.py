"""What a chat shows whose people cannot open our links."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.core import WORDS

from bot.core.citations.source_buttons import without_links
from bot.core.models import Answer, AnswerFigure, AnswerState, Citation, Language, NearestPage
from bot.core.wording import reply_words
from bot.slack import blocks
from bot.teams import cards
from storage.models import Box

OURS = "http://127.0.0.1:8765/v/abc"
PDF = Citation(1, "Backups", "backups.pdf", 4, "Daily.", (), OURS, name="Backups")
WEB = Citation(2, "News", "https://w.example/a", 0, "New.", (), "https://w.example/a", host="w.example")
FIGURE = AnswerFigure("backups.pdf", 5, "Figure 1. By day", Box(0, 0, 1, 1), OURS)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(AnswerState.GROUNDED, "Daily [1].", (PDF,)), "[1] p. 4 · Backups"),
        (Answer(AnswerState.GROUNDED, "Daily [1]. New [2].", (PDF, WEB)), "[1] p. 4 · Backups"),
        (Answer(AnswerState.GROUNDED, "See:", (), figures=(FIGURE,)), "Figure 1. By day"),
        (Answer(AnswerState.NOT_FOUND, "No.", nearest=NearestPage("x/backups.pdf", 7, OURS)), "backups.pdf"),
    ],
)
def test_sources_are_listed_and_no_dead_link_is_shown(answer: Answer, said: str) -> None:
    """Shows the words, the sentence that says what to set, and the sources; a web page's link stays."""
    shown = without_links(replace(answer, language=Language.GERMAN))
    assert shown.text.startswith(f"{answer.text}\n\n{reply_words(Language.GERMAN).no_links}\n")
    assert without_links(answer).text.endswith(said)
    for rendered in (blocks.render(shown, 5), cards.render(shown, 5)):
        assert OURS not in repr(rendered)
        assert ("https://w.example/a" in repr(rendered)) == (WEB in answer.citations)


def test_what_opens_no_page_of_ours_is_left_as_it_is() -> None:
    """Shows it of an answer with nothing to open, and of one from the web alone."""
    for answer in (
        Answer(AnswerState.CHAT, WORDS.thanks),
        Answer(AnswerState.GROUNDED, "New [2].", (WEB,)),
    ):
        assert without_links(answer) == answer

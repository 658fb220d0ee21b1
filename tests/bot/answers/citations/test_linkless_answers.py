"""Answers in chats whose members cannot open our links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from fakes.core import WORDS

from bot.answers.citations.source_buttons import LinklessAnnouncer, LinklessNotes, without_links
from bot.core.models import Answer, AnswerFigure, AnswerState, Citation, CitedPage, Language, NearestPage
from bot.core.ports import Announcement, AnnouncementEntry
from bot.core.wording import reply_words
from bot.platforms.slack import blocks
from bot.platforms.teams import cards
from storage.models import Box, Channel, ChannelKey, Platform, TenantName

OURS = "http://127.0.0.1:8765/v/abc"
PDF = Citation(1, "Backups", "backups.pdf", 4, "Daily.", (), OURS, name="Backups")
WEB = Citation(2, "News", "https://w.example/a", 0, "New.", (), "https://w.example/a", host="w.example")
FIGURE = AnswerFigure(
    "backups.pdf", 5, "Figure 1. By day", Box(0, 0, 1, 1), OURS, "http://127.0.0.1:8765/f/abc"
)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(AnswerState.GROUNDED, "Daily [1].", (PDF,)), "[1] p. 4 · Backups"),
        (Answer(AnswerState.GROUNDED, "Daily [1]. New [2].", (PDF, WEB)), "[1] p. 4 · Backups"),
        (Answer(AnswerState.GROUNDED, "See:", (), figures=(FIGURE,)), "Figure 1. By day"),
        (
            Answer(
                AnswerState.NOT_FOUND, "No.", nearest=NearestPage("x/backups.pdf", 7, OURS, "backups.pdf")
            ),
            "backups.pdf",
        ),
    ],
)
def test_sources_are_listed_and_no_dead_link_is_shown(answer: Answer, said: str) -> None:
    """Shows the text, the note that names the setting, and the sources; links to web pages stay."""
    shown = without_links(replace(answer, language=Language.GERMAN))
    assert shown.text.startswith(f"{answer.text}\n\n{reply_words(Language.GERMAN).no_links}\n")
    assert without_links(answer).text.endswith(said)
    for rendered in (blocks.render(shown, 5), cards.render(shown)):
        assert OURS not in repr(rendered)
        assert ("https://w.example/a" in repr(rendered)) == (WEB in answer.citations)


def test_an_answer_without_our_links_is_unchanged() -> None:
    """Covers an answer without links, and one with web pages only."""
    for answer in (
        Answer(AnswerState.CHAT, WORDS.thanks),
        Answer(AnswerState.GROUNDED, "New [2].", (WEB,)),
    ):
        assert without_links(answer) == answer


@dataclass
class Board:
    """Records announcements."""

    announced: list[Announcement] = field(default_factory=list)

    def announcement_address(self, channel: Channel, address: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the address unchanged."""
        return address

    async def announce(self, place: dict[str, Any], announcement: Announcement) -> None:
        """Record the announcement."""
        self.announced.append(announcement)

    async def has_announced(self, place: dict[str, Any], announcement: str, since: datetime) -> bool:
        """True if an announcement with this id was recorded."""
        return any(one.id == announcement for one in self.announced)


async def test_a_receipt_has_a_note_instead_of_buttons() -> None:
    """Shows that files and questions stay, and that a receipt without buttons has no note about links."""
    board = Board()
    announcer = LinklessAnnouncer(board)
    channel = Channel(1, ChannelKey(Platform("teams"), "t", "19:ops").tenant, Platform("teams"), "ops", 1)
    place = announcer.announcement_address(channel, {"conversation": "19:ops"})
    assert place == {"conversation": "19:ops"}
    entries = (AnnouncementEntry("backups.pdf: 4 pages"),)
    receipt = Announcement(
        "b1", "1 PDF is new.", entries, ("and 2 more",), (CitedPage((), "p. 1", "", OURS),)
    )
    welcome = Announcement("b2", "Hello.", ())
    for one in (receipt, welcome):
        await announcer.announce(place, one)
    shown, plain = board.announced
    assert shown == replace(receipt, sources=(), more=("and 2 more", WORDS.no_links))
    assert plain == welcome
    for rendered in (blocks.render_announcement(shown), cards.render_announcement(shown)):
        assert OURS not in repr(rendered)
        assert WORDS.no_links in repr(rendered)
    assert await announcer.has_announced(place, "b1", datetime.now(UTC))


class Notes:
    """A single pending note."""

    async def due(self, note: Mapping[str, int]) -> TenantName | None:
        """Return the tenant if the note is for subscription 1."""
        return TenantName("sl_T1_C1") if note["subscription"] == 1 else None

    async def write(self, note: Mapping[str, int]) -> Answer:
        """Return a note about a page."""
        return Answer(AnswerState.CHAT, "It’s on page 4 now [1].", (PDF,))


async def test_a_note_on_a_page_names_it_in_its_text() -> None:
    """Shows that a note to a thread has no dead button either."""
    notes = LinklessNotes(Notes())
    assert [await notes.due({"subscription": one}) for one in (1, 2)] == ["sl_T1_C1", None]
    said = (await notes.write({"subscription": 1})).text
    assert said == f"It’s on page 4 now [1].\n\n{WORDS.no_links}\n[1] p. 4 · Backups"

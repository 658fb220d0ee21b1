"""Chat commands answered from SQL without a search: no sources, in the language of the message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest
from fakes.core import ASKED_AT, WORDS, World, make_channel, make_status

from bot.answers.understanding.channel_documents import ChannelView
from bot.chat.commands.chat_commands import ChatCommands
from bot.chat.commands.chat_intents import ChatCommand, ChatIntent
from bot.core.models import Answer, AnswerState, Language
from bot.core.wording import reply_words
from storage.chat.notifications import Notices
from storage.chat_models import Notice, Turn
from storage.errors import DatabaseUnavailable, IndexUnavailable
from storage.models import DocumentStatus, MetadataField

TRIED = ("When do backups run?", "Who signs?", "Wann laufen die Backups?", "What does form IT-17 hold?")
GERMAN = reply_words(Language.GERMAN)


@dataclass
class Tried:
    """Suggested questions of a channel's documents."""

    questions: Sequence[str] = TRIED
    error: Exception | None = None
    channels: list[int] = field(default_factory=list)

    async def sample_questions(self, channel_id: int, limit: int) -> list[tuple[Notice, str]]:
        self.channels.append(channel_id)
        if self.error:
            raise self.error
        notice = Notice(1, "live", ASKED_AT, channel_id, "it", None)
        return [(notice, text) for text in self.questions]


def commands(tried: Tried | None = None, **more: Any) -> ChatCommands:
    """Return the commands with these suggested questions."""
    return ChatCommands(cast(Notices, tried) if tried else None, **more)


def document(
    file: str, title: str = "", *, days: float | None = None, number: int = 1, **metadata: str
) -> DocumentStatus:
    """Return a live document that arrived ``days`` before the question."""
    fields = {name: MetadataField(name, value, 1, ()) for name, value in metadata.items()}
    arrived: datetime | None = ASKED_AT - timedelta(days=days) if days is not None else None
    return replace(
        make_status(file), title=title, metadata=fields, number=number, arrived_at=arrived, pages=number + 1
    )


async def say(world: World, text: str, **more: Any) -> Answer:
    """Return the answer to a message while the index is down, so that a search would fail."""
    world.shelf.error = IndexUnavailable("down")
    return await world.answering(**more).answer(world.question(text))


def check_bare(answer: Answer) -> None:
    """Require an answer without citations, passages or search results."""
    assert answer.state is AnswerState.CHAT
    assert (answer.citations, answer.figures, answer.passages, answer.nearest, answer.unread) == (
        (), (), (), None, (),
    )  # fmt: skip
    assert "[" not in answer.text
    assert answer.standalone == ""


async def test_documents_are_listed_with_their_metadata(world: World) -> None:
    """Shows title or file name, pages, id, version, department and date; unread files come last."""
    world.register.statuses = [
        document("z.pdf"),
        document(
            "sop.pdf", "Backup [1]",
            sop_id="SOP-IT-04", version="2.1", department="IT", effective="2024-01-15",
        ),
        make_status("new.pdf", "reading"),
        make_status("scan.pdf", "quarantined", "it holds no text"),
    ]  # fmt: skip
    answer = await say(world, "Which documents do you know?")
    check_bare(answer)
    assert answer.text.splitlines() == [
        "I know 2 documents in this channel:",
        "• Backup (1) (sop.pdf) · 2 pages · SOP-IT-04 · version 2.1 · IT · effective 2024-01-15",
        "• z.pdf · 2 pages",
        "I’m still reading new.pdf.",
        "I couldn’t read:",
        "• scan.pdf: it holds no text",
    ]


async def test_a_long_list_names_fifteen_and_counts_the_others(world: World) -> None:
    """Shows 27 documents, each with its file."""
    world.register.statuses = [document(f"{number:02}.pdf", "Contoso") for number in range(27)]
    lines = (await say(world, "list documents")).text.splitlines()
    assert len(lines) == 17
    assert lines[1] == "• Contoso (00.pdf) · 2 pages"
    assert lines[-1] == "… and 12 more"


async def test_files_of_one_name_are_distinguished_by_their_folders(world: World) -> None:
    """Shows the path if the file name is ambiguous, with and without a title."""
    world.register.statuses = [document("2023/plan.pdf", "Fire plan"), document("2024/plan.pdf")]
    lines = (await say(world, "list documents")).text.splitlines()
    assert lines[1:] == ["• 2024/plan.pdf · 2 pages", "• Fire plan (2023/plan.pdf) · 2 pages"]


async def test_only_documents_in_the_questions_scope_are_listed(world: World) -> None:
    """Shows the scope of ``--where``, an empty scope and an empty channel."""
    travel = world.register.statuses[1]
    asked = replace(world.question("list documents"), documents=frozenset({travel.document}))
    answer = await world.answering().answer(asked)
    assert answer.text.splitlines() == ["I know 1 document in this channel:", "• travel.pdf · 2 pages"]
    nothing = await world.answering().answer(replace(asked, documents=frozenset()))
    assert nothing.text == WORDS.no_such_document
    world.register.statuses = []
    assert (await say(world, "list documents")).text == WORDS.empty_channel(folder="it")


async def test_news_are_the_documents_of_the_last_two_weeks(world: World) -> None:
    """Shows a new document and a new version, newest first, each with its date."""
    world.register.statuses = [
        document("old.pdf", days=15),
        document("new.pdf", days=3),
        document("next.pdf", days=1, number=2),
    ]
    answer = await say(world, "What is new?")
    check_bare(answer)
    assert answer.text.splitlines() == [
        "New or changed in the last 14 days:",
        "• next.pdf · 3 pages · new version 2026-01-04",
        "• new.pdf · 2 pages · added 2026-01-02",
    ]


async def test_without_news_the_three_newest_are_named(world: World) -> None:
    """Shows that the answer is never empty."""
    world.register.statuses = [document(f"{days}.pdf", days=days) for days in (20, 40, 30, 50)]
    answer = await say(world, "Any news?")
    assert answer.text.splitlines() == [
        WORDS.no_news(days=14),
        "• 20.pdf · 2 pages · added 2025-12-16",
        "• 30.pdf · 2 pages · added 2025-12-06",
        "• 40.pdf · 2 pages · added 2025-11-26",
    ]


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("Is SOP-IT-04 in here?", ["sop-it-04.pdf"]),
        ("do you have the leave policy document?", ["leave.pdf"]),
        ("is travel.pdf available?", ["travel.pdf"]),
        ("Is the leave policy in this channel?", ["leave.pdf"]),
        ("Have you got the policies?", ["leave.pdf", "travel.pdf"]),
    ],
)
async def test_a_document_is_found_by_title_file_and_id(world: World, text: str, files: list[str]) -> None:
    """Shows the documents of that name and no other one."""
    world.register.statuses = [
        document("sop-it-04.pdf", "Backup and Recovery", sop_id="SOP-IT-04"),
        document("leave.pdf", "Leave Policy"),
        document("travel.pdf", "Travel Policy"),
    ]
    titles = {
        "sop-it-04.pdf": "Backup and Recovery",
        "leave.pdf": "Leave Policy",
        "travel.pdf": "Travel Policy",
    }
    answer = await say(world, text)
    check_bare(answer)
    lead, *listed = answer.text.splitlines()
    assert lead == WORDS.document_here(len(files))
    assert [line.split(" · ")[0] for line in listed] == [f"• {titles[file]} ({file})" for file in files]


async def test_a_missing_document_is_reported(world: World) -> None:
    """Shows the refusal, a document still being read, and that the name is escaped."""
    world.register.statuses.append(make_status("drill.pdf", "reading"))
    answer = await say(world, "Is the parachute manual in here?")
    check_bare(answer)
    assert answer.text == WORDS.no_document_named(name="parachute manual")
    assert (await say(world, "Is drill.pdf in here?")).text == "I’m still reading drill.pdf."


@pytest.mark.parametrize("text", ["Do you have a dress code policy?", "Is the canteen here?"])
async def test_a_name_of_no_document_is_searched_as_a_question(world: World, text: str) -> None:
    """Shows that an ordinary question is not taken for a document lookup."""
    assert (await say(world, text)).state is AnswerState.FAILED


async def test_help_offers_questions_that_the_documents_answered(world: World) -> None:
    """Shows three questions of this channel, those in the asker's language first."""
    tried = Tried()
    answer = await say(world, "what can you do?", commands=commands(tried))
    check_bare(answer)
    assert answer.text.splitlines() == [
        WORDS.help,
        WORDS.try_asking,
        "• When do backups run?",
        "• Who signs?",
        "• What does form IT-17 hold?",
    ]
    assert tried.channels == [make_channel().id]
    german = await say(world, "Was kannst du?", commands=commands(tried))
    assert german.text.splitlines()[:3] == [GERMAN.help, GERMAN.try_asking, "• Wann laufen die Backups?"]


@pytest.mark.parametrize("tried", [Tried(()), Tried(error=DatabaseUnavailable("down")), None])
async def test_help_needs_no_examples(world: World, tried: Tried | None) -> None:
    """Shows that no title or question of other documents replaces them."""
    assert (await say(world, "help", commands=commands(tried))).text == WORDS.help


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("ok", WORDS.acknowledged),
        ("👍", WORDS.acknowledged),
        ("great, thanks!", WORDS.thanks),
        ("thanks, bye", WORDS.goodbye),
        ("Alles klar", GERMAN.acknowledged),
        ("Tschüss!", GERMAN.goodbye),
    ],
)
async def test_a_closing_is_no_follow_up(world: World, text: str, reply: str) -> None:
    """Shows it in a thread with a previous answer."""
    world.shelf.error = IndexUnavailable("down")
    turn = Turn("When do backups run?", "When do backups run?", "Daily at 2:00 AM.")
    answer = await world.answering().answer(replace(world.question(text), history=(turn,)))
    check_bare(answer)
    assert answer.text == reply


async def test_the_bot_describes_itself(world: World) -> None:
    """Shows one paragraph: quotes or a model, the channel, and the retention of questions."""
    plain = await say(world, "Who are you?")
    check_bare(plain)
    assert plain.text == f"{WORDS.about} {WORDS.about_quotes} {WORDS.about_channel}"
    kept = commands(has_model=True, kept_days=30)
    private = await say(world, "Is this private?", commands=kept)
    assert private.text == f"{WORDS.about} {WORDS.about_model} {WORDS.about_channel} {WORDS.kept_for(30)}"
    assert "\n" not in private.text


async def test_a_database_outage_is_reported(world: World) -> None:
    """Shows that a list that cannot be read is not reported as empty."""

    class Down(ChannelView):
        async def documents(self) -> Sequence[DocumentStatus]:
            raise DatabaseUnavailable("down")

    question = world.question("list documents")
    listing = ChatCommand(ChatIntent.DOCUMENT_LIST, Language.ENGLISH)
    down = Down(cast(Any, world.register), question.channel)
    with pytest.raises(DatabaseUnavailable):
        await commands().reply(listing, question, down)


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("documents since 2024", ["new.pdf", "sop.pdf"]),
        ("documents until 2023", ["old.pdf"]),
        ("documents of 2024", ["sop.pdf"]),
        ("list documents from 2024", ["sop.pdf"]),
        ("documents from 2024 on", ["new.pdf", "sop.pdf"]),
        ("which documents could not be read?", ["scan.pdf"]),
        ("pending documents", ["slow.pdf"]),
        ("documents of 1999", []),
    ],
)
async def test_documents_are_listed_by_state_and_date(world: World, text: str, files: list[str]) -> None:
    """Shows the date of a document, or else its arrival, and the reason if it is not live."""
    world.register.statuses = [
        document("old.pdf", effective="2021-05-01"),
        document("sop.pdf", effective="2024-01-15"),
        document("new.pdf", days=1),
        make_status("slow.pdf", "reading"),
        make_status("scan.pdf", "quarantined", "it holds no text"),
    ]
    answer = await say(world, text)
    check_bare(answer)
    assert sorted(re.findall(r"[\w.]+\.pdf", answer.text)) == files
    assert ("it holds no text" in answer.text) == ("scan.pdf" in files)


async def test_an_empty_list_of_unread_documents_is_reported(world: World) -> None:
    """Shows replies to "which could not be read?" and "which are being read?" if there are none."""
    world.register.statuses = [document("old.pdf", effective="2021-05-01"), document("new.pdf", days=1)]
    assert (await say(world, "which documents could not be read?")).text == WORDS.all_read(2)
    assert (await say(world, "pending documents")).text == WORDS.none_being_read
    assert (await say(world, "documents of 1999")).text == WORDS.no_such_documents

"""Document outlines: the sentence of purpose and the headings, each cited with its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes.core import WORDS, Register, Shelf, World, make_passage, make_publication, make_status

from bot.answers.document_outline import MAX_HEADINGS
from bot.core.models import Answer, AnswerState, Language
from bot.core.wording import reply_words
from bot.platforms.slack import blocks
from bot.platforms.teams import cards
from storage.chat_models import Turn

SECTIONS = [
    ("Travel Policy\n\nPrinted in Bern.", ()),
    ("Contents\n\nPurpose 2\n\nThis page names all that follows in here.", ("Contents",)),
    ("1. General\n\n1.1 Words\n\nA trip is a journey on business.", ("1. General", "1.1 Words")),
    ("2. Purpose\n\nFor whom\n\nThis policy says who pays for a trip. It is short.", ("2. Purpose",)),
    ("3. Booking\n\nBook early [4].", ("3. Booking",)),
    ("4. Refunds\n\nRefunds take 30 days.", ("4. Refunds",)),
]


def bring(world: World, file: str, sections: Sequence[tuple[str, tuple[str, ...]]], title: str = "") -> None:
    """Add a document to the channel: one chunk per section, each on its own page."""
    publication = replace(make_publication(file, title or file), chunks=len(sections))
    world.register.publications.append(publication)
    world.register.statuses.append(replace(make_status(file), title=title, document=publication.document_id))
    world.shelf.passages += [
        make_passage(text, file=file, title=title, ordinal=number, page=number + 1, heading_path=path)
        for number, (text, path) in enumerate(sections)
    ]


@pytest.fixture
def world() -> World:
    """Return a channel with one document."""
    world = World(Shelf(), Register())
    bring(world, "travel.pdf", SECTIONS, "Travel Policy")
    return world


async def ask(world: World, text: str, *history: Turn) -> Answer:
    return await world.answering().answer(replace(world.question(text), history=history))


async def test_an_outline_has_purpose_and_top_headings(world: World) -> None:
    """Shows both quoted from their pages, without title, table of contents and lower headings."""
    answer = await ask(world, "What is the travel policy about?")
    assert answer.state is AnswerState.PASSAGES
    assert answer.text.splitlines() == [
        "What “Travel Policy” is about, in its own words:",
        "“This policy says who pays for a trip.” [1]",
        "Its sections:",
        "• p. 3 · 1. General [2]",
        "• p. 4 · 2. Purpose [3]",
        "• p. 5 · 3. Booking [4]",
        "• p. 6 · 4. Refunds [5]",
    ]
    assert [(one.number, one.page) for one in answer.citations] == [(1, 4), (2, 3), (3, 4), (4, 5), (5, 6)]
    assert answer.citations[1].quote == "1. General"
    assert all(one.boxes for one in answer.citations)


@pytest.mark.parametrize(
    "text", ["Summarise the travel policy", "tl;dr", "What is this document about?", "overview of travel.pdf"]
)
async def test_the_only_document_need_not_be_named(world: World, text: str) -> None:
    """Shows that a channel's only document is meant without a name."""
    assert (await ask(world, text)).text.startswith("What “Travel Policy” is about")


async def test_an_ambiguous_document_name_is_asked_about(world: World) -> None:
    """Shows it for a name that fits two documents, and for no name; a bare topic is searched for."""
    bring(world, "travel-rome.pdf", SECTIONS[:3], "Travel Policy Rome")
    for text in ("summary please", "Summarise the travel manual"):
        answer = await ask(world, text)
        assert answer.state is AnswerState.CHAT
        assert answer.text.startswith(WORDS.which_document)
        assert "• Travel Policy (travel.pdf) ·" in answer.text
        assert "• Travel Policy Rome (travel-rome.pdf) ·" in answer.text
    rome = await ask(world, "What is the travel policy rome about?")
    assert rome.text.startswith("What “Travel Policy Rome”")
    assert not (await ask(world, "Summarise travel")).text.startswith(WORDS.which_document)


async def test_a_pronoun_refers_to_the_threads_document(world: World) -> None:
    """Shows that "it" is the document that the last answer cited."""
    bring(world, "rome.pdf", SECTIONS[:3], "Rome")
    cited = frozenset({world.register.publications[1].document_id})
    answer = await ask(world, "What is it about?", Turn("Who pays?", "Who pays?", "Rome pays.", cited))
    assert answer.text.startswith("What “Rome” is about")


async def test_a_topic_that_is_no_document_is_searched_for(world: World) -> None:
    """Shows that a topic is answered from the text."""
    answer = await ask(world, "What are refunds about?")
    assert not answer.text.startswith(("What “", WORDS.which_document))
    assert (await ask(world, "Summarise the lunch menu")).text.splitlines()[0] != WORDS.which_document


async def test_the_top_level_with_several_headings_is_listed(world: World) -> None:
    """Shows that a single top heading is no outline, and that headings over the limit are counted."""
    many = [(f"All\n\nPart {letter}\n\nWords.", ("All", f"Part {letter}")) for letter in "abcdefghijklmn"]
    bring(world, "parts.pdf", many, "Parts")
    text = (await ask(world, "Summarise parts.pdf")).text
    assert text.splitlines()[1:3] == [WORDS.outline_sections, "• p. 1 · All [1]"]
    assert text.count("•") == MAX_HEADINGS
    assert text.endswith(WORDS.more_documents(count=15 - MAX_HEADINGS))


async def test_a_document_of_images_only_has_no_outline(world: World) -> None:
    """Shows that a document without sentences and headings is searched as a question."""
    bring(world, "map.pdf", [("A1 B2", ())], "Map")
    assert (await ask(world, "Summarise map.pdf")).state is not AnswerState.CHAT


async def test_every_platform_shows_the_outline_with_its_pages(world: World) -> None:
    """Shows lines and page buttons in Slack and Teams, in the asker's language."""
    answer = await ask(world, "What is travel.pdf about?")
    assert answer.language is Language.ENGLISH
    assert reply_words(Language.ENGLISH).outline_sections in answer.text
    slack = blocks.render(answer, 5)
    assert "• p. 3 · 1. General <https://example.test/v/1-2|[2]>" in str(slack.blocks)
    assert [one["text"]["text"] for block in slack.blocks for one in block.get("elements", ())] == [
        "[1][3] p. 4 · Travel Policy · 2. Purpose",
        "[2] p. 3 · Travel Policy · 1. General › 1.1 Words",
        "[4] p. 5 · Travel Policy · 3. Booking",
        "[5] p. 6 · Travel Policy · 4. Refunds",
    ]
    teams = cards.render(answer)
    assert "p. 3 · 1. General [2]" in teams.text
    assert len(teams.citations) == 5

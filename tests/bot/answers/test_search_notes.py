"""Notes below a search result: documents still being read, and once a hint on configuring a model."""

from __future__ import annotations

from dataclasses import replace

from fakes.core import WORDS, World, make_channel, make_passage

from bot.answers.search_notes import SearchNotes
from bot.core.models import AnalyzedQuestion, Retrieval
from storage.models import Rung

ASKED = AnalyzedQuestion("When?", (), {}, None)


class Recorded:
    """Reports if a channel's question is the first on record."""

    def __init__(self, *, is_first: bool) -> None:
        self.first = is_first
        self.asked: list[int] = []

    async def is_first(self, channel_id: int) -> bool:
        self.asked.append(channel_id)
        return self.first


def found(rung: Rung) -> Retrieval:
    passage = make_passage("Backups run daily.", file="it/policy.pdf")
    return Retrieval(ASKED, (replace(passage, publication=replace(passage.publication, rung=rung)),))


async def test_a_quickly_read_document_is_named(world: World) -> None:
    """A fully read document is not listed."""
    asked = world.question("When do backups run?")
    assert await SearchNotes().write(asked, found(Rung.QUICK)) == [WORDS.partly_read(1, files="policy.pdf")]
    assert await SearchNotes().write(asked, found(Rung.FULL)) == []
    assert await SearchNotes(last_rung=Rung.QUICK).write(asked, found(Rung.QUICK)) == []


async def test_a_channels_first_search_explains_how_to_set_a_model(world: World) -> None:
    """The hint is shown once, and not if a question is on record."""
    asked, never = world.question("When?"), Recorded(is_first=True)
    notes = SearchNotes(never)  # type: ignore[arg-type]
    assert await notes.write(asked, Retrieval(ASKED, ())) == []  # an empty channel searches nothing
    assert await notes.write(asked, found(Rung.FULL)) == [WORDS.first_search]
    assert await notes.write(asked, found(Rung.FULL)) == []
    assert never.asked == [make_channel().id]
    before = SearchNotes(Recorded(is_first=False))  # type: ignore[arg-type]
    assert await before.write(asked, found(Rung.FULL)) == []


async def test_an_answer_ends_with_its_notes(world: World) -> None:
    """The notes follow an empty line, for passages and for "not found"."""
    for text, end in (("When do backups run?", f"\n\n{WORDS.first_search}"), ("unicorn", WORDS.first_search)):
        notes = SearchNotes(Recorded(is_first=True))  # type: ignore[arg-type]
        answer = await world.answering(notes=notes).answer(world.question(text))
        assert answer.text.endswith(end)

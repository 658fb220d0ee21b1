"""A channel's vocabulary is that of its live documents only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from uuid import UUID

import pytest
from fakes.document_shelf import Shelf

from storage.documents.catalog import Catalog
from storage.documents.vocabulary import Vocabularies
from storage.files.reading_files import ReadingFiles
from storage.models import Chunk

# Every reading has this title; the file name counts, too.
NAMES = {"the", "title"}


@pytest.fixture
def files(tmp_path: Path) -> ReadingFiles:
    return ReadingFiles(tmp_path)


@pytest.fixture
def vocabularies(catalog: Catalog, files: ReadingFiles) -> Vocabularies:
    """The vocabularies of the same database's channels."""
    return Vocabularies(catalog, files)


async def write(files: ReadingFiles, reading_id: UUID, *texts: str, heading: str = "") -> None:
    path = (heading,) if heading else ()
    chunks = [Chunk(number, text, 4, path, (), ((0, 1),)) for number, text in enumerate(texts)]
    await files.write(reading_id, [], chunks, None)


async def test_words_come_from_texts_headings_title_and_file_name(
    files: ReadingFiles, vocabularies: Vocabularies, shelf: Shelf
) -> None:
    """Lower case, with accents and endings, without digits, compounds split."""
    _, publication = await shelf.live("sops/Tape-04.pdf")
    await write(files, publication.reading_id, "Backups run. Größe: 12 kg", "backups", heading="Day-to-day")
    assert await vocabularies.words(shelf.channel_id) == {
        "backups": 2, "run": 1, "größe": 1, "kg": 1, "day": 4, "to": 2, "the": 1, "title": 1, "tape": 1,
    }  # fmt: skip


async def test_only_live_documents_of_the_channel_add_words(
    files: ReadingFiles,
    vocabularies: Vocabularies,
    shelf: Shelf,
    shelf_of: Callable[[str], Awaitable[Shelf]],
) -> None:
    """Pending, retired and deleted documents and other channels add none."""
    other = await shelf_of("hr")
    _, foreign = await other.live("b.pdf")
    await write(files, foreign.reading_id, "salaries")
    document, first = await shelf.live("a.pdf")
    await write(files, first.reading_id, "retired")
    version = await shelf.version(document, 2)
    second = await shelf.publication(version, await shelf.reading(version), "pending")
    await write(files, second.reading_id, "newest")
    assert set(await vocabularies.words(shelf.channel_id)) == {"retired", "a"} | NAMES
    await shelf.set(first, state="retired")
    await shelf.set(second, state="live")
    assert set(await vocabularies.words(shelf.channel_id)) == {"newest", "a"} | NAMES
    await shelf.set(document, state="deleted")
    assert await vocabularies.words(shelf.channel_id) == {}
    assert set(await vocabularies.words(other.channel_id)) == {"salaries", "b"} | NAMES


async def test_a_reading_is_counted_once(
    files: ReadingFiles, vocabularies: Vocabularies, shelf: Shelf
) -> None:
    """Shows that counts are cached across readings, even when the counted files are gone."""
    _, first = await shelf.live("a.pdf")
    await write(files, first.reading_id, "tape")
    await vocabularies.words(shelf.channel_id)
    await files.remove(first.reading_id)
    _, second = await shelf.live("b.pdf")
    await write(files, second.reading_id, "disk", "disk")
    words = await vocabularies.words(shelf.channel_id)
    assert (words["tape"], words["disk"]) == (1, 2)


async def test_a_lost_reading_lacks_its_words_until_it_is_rebuilt(
    files: ReadingFiles, vocabularies: Vocabularies, shelf: Shelf
) -> None:
    """Shows that the words of other documents stay available."""
    _, first = await shelf.live("a.pdf")
    _, second = await shelf.live("b.pdf")
    await write(files, second.reading_id, "disk")
    assert set(await vocabularies.words(shelf.channel_id)) == {"disk", "a", "b"} | NAMES
    await write(files, first.reading_id, "tape")
    assert set(await vocabularies.words(shelf.channel_id)) == {"disk", "tape", "a", "b"} | NAMES


class HangingFiles(ReadingFiles):
    """Reading files on a disk whose first read hangs."""

    hangs = True

    async def word_counts(self, reading_id: UUID) -> Mapping[str, int]:
        """Return a reading's counts on the second call."""
        if self.hangs:
            self.hangs = False
            await asyncio.Event().wait()
        return await super().word_counts(reading_id)


async def test_counting_past_the_deadline_is_left_to_the_next_question(
    tmp_path: Path, catalog: Catalog, shelf: Shelf
) -> None:
    """Shows that no question waits until a whole channel is counted."""
    files = HangingFiles(tmp_path)
    vocabularies = Vocabularies(catalog, files)
    _, publication = await shelf.live("a.pdf")
    await write(files, publication.reading_id, "tape")
    assert set(await vocabularies.words(shelf.channel_id)) == {"a"} | NAMES
    assert set(await vocabularies.words(shelf.channel_id)) == {"tape", "a"} | NAMES

"""The words of a channel's live documents as they are written, towards which spelling is corrected.

They come from the files of its live readings, because an index holds stems and Weaviate lists none. A reading
never changes, so its words are counted once and kept in memory.
"""

from __future__ import annotations

import asyncio
import logging
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from storage.documents.catalog import Catalog
from storage.errors import BlobsUnavailable
from storage.files.reading_files import ReadingFiles
from storage.recent_items import RecentItems
from storage.text.analyzer import words_of

# Readings whose words are held in memory, some 20 KB each; of a channel that has more, so many count.
MAX_READINGS = 2000
# Channels whose words are held summed up: those of the questions just asked.
MAX_CHANNELS = 8
# For counting the words of readings that are new here; the next question goes on with the others.
MAX_SECONDS = 2.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _WordCounts:
    """Words with their counts, in a quarter of the memory that a dict of them takes."""

    # Separated by blanks.
    words: str
    counts: array[int]

    @classmethod
    def of(cls, counted: Mapping[str, int]) -> Self:
        return cls(" ".join(counted), array("I", counted.values()))

    def __len__(self) -> int:
        return len(self.counts)

    def items(self) -> Iterable[tuple[str, int]]:
        return zip(self.words.split(" "), self.counts, strict=True) if self.counts else ()


@dataclass(frozen=True, slots=True)
class _ChannelWords:
    """The words of a channel while exactly these readings were live."""

    live: Sequence[tuple[UUID, str]]
    counts: Mapping[str, int]


class Vocabularies:
    """The words of each channel, of its live documents only."""

    def __init__(self, catalog: Catalog, files: ReadingFiles) -> None:
        self._catalog = catalog
        self._files = files
        self._readings: RecentItems[UUID, _WordCounts] = RecentItems(MAX_READINGS)
        self._channels: RecentItems[int, _ChannelWords] = RecentItems(MAX_CHANNELS)

    async def words(self, channel_id: int) -> Mapping[str, int]:
        """Return each word of the channel's live documents, in lower case -> how often it occurs in them.

        Titles, file names and headings count, too. Where time or a file fails, the words of some documents
        are missing.

        Raises:
            DatabaseUnavailable: nobody can say which documents are live.
        """
        live = (await self._catalog.live_names(channel_id))[:MAX_READINGS]
        known = self._channels.get(channel_id)
        if known is None or known.live != live:
            counted = await self._counted([reading_id for reading_id, _ in live])
            known = _ChannelWords(live, await asyncio.to_thread(_sum, counted, [name for _, name in live]))
            if len(counted) < len(live):
                return known.counts
        self._channels[channel_id] = known
        return known.counts

    async def _counted(self, readings: Sequence[UUID]) -> list[_WordCounts]:
        """Return the words of each reading, as far as they can be counted in time."""
        counted = []
        try:
            async with asyncio.timeout(MAX_SECONDS):
                for reading_id in readings:
                    try:
                        counted.append(await self._of_reading(reading_id))
                    except BlobsUnavailable:
                        _log.warning("reading=%s has no words to correct spelling by", reading_id)
        except TimeoutError:
            _log.info("the words of %d of %d readings are counted", len(counted), len(readings))
        return counted

    async def _of_reading(self, reading_id: UUID) -> _WordCounts:
        known = self._readings.get(reading_id)
        if known is None:
            known = _WordCounts.of(await self._files.word_counts(reading_id))
        self._readings[reading_id] = known
        return known


def _sum(counted: Iterable[_WordCounts], names: Iterable[str]) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for words in counted:
        for word, count in words.items():
            total[word] += count
    total.update(word for name in names for word in words_of(name))
    return total

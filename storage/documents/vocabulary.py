"""Vocabulary of a channel's live documents, for spelling correction.

Words come from the files of live readings, because an index holds stems and Weaviate cannot list them. A
reading is immutable, so its words are counted once and cached.
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
from storage.lru_cache import LRUCache
from storage.text.analyzer import alphabetic_words

# Readings in the LRU cache, some 20 KB each; also the most that count per channel.
MAX_READINGS = 2000
# Channels whose summed vocabulary is in the LRU cache.
MAX_CHANNELS = 8
# Time limit for counting new readings; the next question continues with the rest.
MAX_SECONDS = 2.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _WordCounts:
    """Words with their counts, in a quarter of a dict's memory."""

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
    """Vocabulary of a channel for exactly these live readings."""

    live: Sequence[tuple[UUID, str]]
    counts: Mapping[str, int]


class Vocabularies:
    """Vocabularies per channel, of live documents only."""

    def __init__(self, catalog: Catalog, files: ReadingFiles) -> None:
        self._catalog = catalog
        self._files = files
        self._readings: LRUCache[UUID, _WordCounts] = LRUCache(MAX_READINGS)
        self._channels: LRUCache[int, _ChannelWords] = LRUCache(MAX_CHANNELS)

    async def words(self, channel_id: int) -> Mapping[str, int]:
        """Return lower-case word -> occurrences in the channel's live documents.

        Includes titles, file names and headings. Documents are missing if a file is unreadable or time is up.

        Raises:
            DatabaseUnavailable: the database does not answer.
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
        """Return the word counts of the readings that can be counted in time."""
        counted = []
        try:
            async with asyncio.timeout(MAX_SECONDS):
                for reading_id in readings:
                    try:
                        counted.append(await self._of_reading(reading_id))
                    except BlobsUnavailable:
                        _log.warning("vocabulary of reading=%s is unavailable", reading_id)
        except TimeoutError:
            _log.info(
                "vocabulary: counted %d of %d readings before the time limit", len(counted), len(readings)
            )
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
    total.update(word for name in names for word in alphabetic_words(name))
    return total

"""Context of a figure: its chunk, and the sentences there that are about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ingestion.chunking.segments import sentences
from ingestion.layout.layout_fixes import is_middle_in
from storage.models import Box, Chunk, WordBox
from storage.text.word_boxes import WordMap

CONTEXT_WORDS = 60

# Distance of text on another page, in page heights.
OTHER_PAGE_DISTANCE = 1.0

_PARAGRAPH = re.compile(r"[^\n]+(?:\n[^\n]+)*")
# Matches a sentence's reference to the figure with this number.
_NAME = r"\b(?:fig\w*|chart|exhibit|graph|abb\w*)\.?\s?{}(?![\w-]|\.\d)"


class _Sentence(NamedTuple):
    """A sentence of a chunk; sorts by distance."""

    # Vertical distance from the figure, in page heights.
    distance: float
    start: int
    text: str


class FigureContext:
    """Finds the chunk and the context of figures."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        # Cached for the latest page only: figures come page by page, and all words of a long document fill
        # memory.
        self._latest: tuple[int, list[tuple[Chunk, WordBox]]] = (0, [])

    def chunk_of(self, page: int, figure: Box, caption: Box | None) -> Chunk | None:
        """Return the chunk with most of a figure's caption, else most of its words, else the nearest words.

        None if the page has no text.
        """
        words = self._on(page)
        for box in filter(None, (caption, figure)):
            held = [chunk.ordinal for chunk, word in words if is_middle_in(word.box, box)]
            if held:
                return self._chunks[Counter(held).most_common(1)[0][0]]
        nearest = min(words, key=lambda one: _distance(one[1].box, figure), default=None)
        return nearest[0] if nearest else None

    def _on(self, page: int) -> list[tuple[Chunk, WordBox]]:
        if page != self._latest[0]:
            words = [
                (chunk, word)
                for chunk in self._chunks
                if chunk.first_page <= page <= chunk.last_page
                for word in chunk.words
                if word.page == page
            ]
            self._latest = (page, words)
        return self._latest[1]

    def context(self, chunk: Chunk | None, page: int, own: Sequence[Box], number: str | None) -> str:
        """Return up to ``CONTEXT_WORDS`` words: the sentences that name the figure, else the nearest ones.

        Args:
            own: boxes of the figure and its caption, whose words do not count as context.
            number: the figure's number, like "3" for "Figure 3".
        """
        around = sorted(_sentences(chunk, page, own)) if chunk else []
        name = re.compile(_NAME.format(re.escape(number or "")), re.IGNORECASE)
        naming = [one for one in around if name.search(one.text)] if number else []
        return _joined(naming or around)


def _joined(sentences: Sequence[_Sentence]) -> str:
    """Return the first sentences that fit, in reading order."""
    left, chosen = CONTEXT_WORDS, []
    for sentence in sentences:
        words = sentence.text.split()[:left]
        chosen.append((sentence.start, " ".join(words)))
        left -= len(words)
    return " ".join(text for _, text in sorted(chosen) if text)


def _sentences(chunk: Chunk, page: int, own: Sequence[Box]) -> Iterator[_Sentence]:
    """Yield the sentences of a chunk outside the figure, without table rows."""
    words = WordMap.pack(chunk.words)
    for paragraph in _PARAGRAPH.finditer(chunk.text):
        for start, end in sentences(chunk.text, *paragraph.span()):
            first = next(iter(words.clip(start, end)), None)
            text = " ".join(chunk.text[start:end].split())
            if first is None or text.startswith("|"):
                continue
            if first.page != page:
                yield _Sentence(OTHER_PAGE_DISTANCE, start, text)
            elif not any(is_middle_in(first.box, box) for box in own):
                yield _Sentence(_distance(first.box, own[0]), start, text)


def _distance(word: Box, figure: Box) -> float:
    """Return the vertical distance in page heights; 0 if they overlap vertically."""
    return max(word.y0 - figure.y1, figure.y0 - word.y1, 0.0)

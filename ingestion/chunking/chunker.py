"""Cuts a read PDF into chunks: by headings first, then by tokens, never across a page without need.

Sizes hold in two units at once: ``limit`` cl100k tokens, the unit of every budget, and ``window``
word pieces, because the embedder sees no more. Texts keep their exact offset -> box map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil, inf

from ingestion.chunking.segments import PageSpan, sentences
from ingestion.chunking.structure import ChunkUnit, Structure, units_of
from ingestion.layout.reading_order import Block
from storage.models import Chunk, Page, Sections
from storage.pdf.models import ReadPdf
from storage.text.token_counts import count_tokens
from storage.text.word_boxes import WordMap

# A chunk under this part of the limit takes in the next subsection, too.
SMALL = 4

# White space between two units adds no more.
TOKENS_OF_A_GAP = 2

# A run of more parts than this, far more than a page of print, is halved before parts are cut off it.
LONG = 16


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document's title, '' when it names itself nowhere, and its chunks in order."""

    title: str
    chunks: tuple[Chunk, ...]


def chunk_document(
    pdf: ReadPdf,
    *,
    limit: int,
    pieces: Callable[[str], int],
    window: int,
    blocks: Sequence[Sequence[Block]] = (),
) -> ChunkedDocument:
    """Cut a document into chunks; a page without text gives none.

    Args:
        pdf: the document as read.
        limit: most cl100k tokens of a chunk.
        pieces: counts the embedder's word pieces of a text, the special ones included.
        window: most word pieces of a chunk.
        blocks: the blocks of each page, when its layout is known.
    """
    structure = Structure(pdf, blocks)
    title = structure.title()
    chunker = _Chunker(pdf.pages, _Measure(limit, pieces, window))
    units = chunker.measured(units_of(pdf, structure, title))
    parts = (part for run in _runs(units) for part in chunker.split(run))
    return ChunkedDocument(title, tuple(chunker.chunk(ordinal, part) for ordinal, part in enumerate(parts)))


def _runs(units: Iterable[ChunkUnit]) -> Iterator[list[ChunkUnit]]:
    """Units that may share a chunk: one page, one top-level section, and one subsection unless small.

    Headings without a text of their own go with what follows them, and so does a small preamble.
    """
    run: list[ChunkUnit] = []
    for unit in units:
        if run and _parts(run, unit):
            yield run
            run = []
        run.append(unit)
    if run:
        yield run


def _parts(run: list[ChunkUnit], unit: ChunkUnit) -> bool:
    last = run[-1]
    if last.binds:
        return False
    if unit.spans[0].page != last.spans[-1].page or len(last.spans) > 1:
        return True
    if all(one.is_heading for one in run):
        return False
    is_small = all(size < 1 / SMALL for size in accumulate(one.size for one in run))
    is_preamble = not last.path and is_small
    if unit.path[:1] != last.path[:1] and not is_preamble:
        return True
    return unit.is_heading and not last.is_heading and not is_small


@dataclass(frozen=True, slots=True)
class _Measure:
    """How much of the largest allowed chunk a text fills."""

    limit: int
    pieces: Callable[[str], int]
    window: int
    # Tokens of the text measured last: what fits is counted once more as a chunk.
    last: dict[str, int] = field(default_factory=dict)

    def of(self, text: str, most_tokens: float = inf) -> float:
        """``most_tokens``: it has no more; they are counted only when they could be the scarcer unit."""
        pieces = self.pieces(text) / self.window
        return pieces if most_tokens / self.limit <= pieces else max(self.tokens(text) / self.limit, pieces)

    def tokens(self, text: str) -> int:
        if text not in self.last:
            self.last.clear()
            self.last[text] = count_tokens(text)
        return self.last[text]


@dataclass(slots=True)
class _Chunker:
    """Packs units into chunks over the pages they stand on."""

    pages: Sequence[Page]
    measure: _Measure
    # Page -> its words.
    maps: dict[int, WordMap] = field(default_factory=dict)

    def measured(self, units: Iterable[ChunkUnit]) -> Iterator[ChunkUnit]:
        """Units with their sizes; one that is larger than a chunk comes in parts."""
        for unit in units:
            text = self._text(unit.spans)[0]
            unit.size, unit.tokens = self.measure.of(text), self.measure.tokens(text)
            if unit.headers and self._size([unit]) > 1:
                unit.headers = ()
            if unit.size <= 1:
                yield unit
            else:
                yield from self._cut(unit)

    def _cut(self, unit: ChunkUnit) -> Iterator[ChunkUnit]:
        """Halve a unit between two sentences, else two words, or an endless word, until its parts fit."""
        if unit.size <= 1:
            yield unit
            return
        words = [
            PageSpan(span.page, word.start, word.end) for span in unit.spans for word in self._words(span)
        ]
        if len(words) == 1:
            cut = (words[0].start + words[0].end) // 2
            words = [words[0]._replace(end=cut), words[0]._replace(start=cut)]
        middle = self._seam(unit.spans, words)
        for half in (words[:middle], words[middle:]):
            spans = _merged(half)
            text = self._text(spans)[0]
            size, tokens = self.measure.of(text), self.measure.tokens(text)
            yield from self._cut(ChunkUnit(spans, unit.path, unit.is_heading, size=size, tokens=tokens))

    def _seam(self, spans: Iterable[PageSpan], words: Sequence[PageSpan]) -> int:
        """Number of the word before which to halve: a sentence's first, as near to the middle as can be."""
        begins = {
            (span.page, start)
            for span in spans
            for start, _ in sentences(self.pages[span.page].text, span.start, span.end)
        }
        middle = len(words) // 2
        seams = (at for at, word in enumerate(words) if at and word[:2] in begins)
        return min(seams, key=lambda at: abs(at - middle), default=middle)

    def split(self, run: list[ChunkUnit]) -> Iterator[list[ChunkUnit]]:
        """Yield a run in as few and as equal parts as fit."""
        waiting = [run]
        while waiting:
            units = waiting.pop()
            total = 0.0 if len(units) == 1 else self._size(units)
            if total <= 1:
                yield units
                continue
            middle = _middle(units, ceil(total))
            waiting += (units[middle:], units[:middle])

    def _size(self, units: list[ChunkUnit]) -> float:
        most_tokens = inf if units[0].headers else sum(unit.tokens + TOKENS_OF_A_GAP for unit in units)
        return self.measure.of(self._text(_spans(units))[0], most_tokens)

    def chunk(self, ordinal: int, units: list[ChunkUnit]) -> Chunk:
        """Return the chunk of these units."""
        spans = _spans(units)
        text, offsets = self._text(spans)
        words: list[WordMap] = []
        page_starts: list[tuple[int, int]] = []
        for span, offset in zip(spans, offsets, strict=True):
            number, shift = self.pages[span.page].number, offset - span.start
            if not page_starts or page_starts[-1][1] != number:
                page_starts.append((offset, number))
            words.append(self._words(span, shift))
        bodies = [unit.path for unit in units if unit.path and not unit.is_heading]
        path = bodies[0] if bodies else units[-1].path
        tokens, sections = self.measure.tokens(text), _sections(units, offsets)
        return Chunk(ordinal, text, tokens, path, WordMap.joined(words), tuple(page_starts), sections)

    def _text(self, spans: Sequence[PageSpan]) -> tuple[str, list[int]]:
        """Return the spans' text, and where each begins in it; the page's own white space stands between."""
        parts: list[str] = []
        offsets: list[int] = []
        length, last = 0, None
        for span in spans:
            text = self.pages[span.page].text
            gap = text[last.end : span.start] if last and last.page == span.page else "\n"
            gap = "" if last is None else gap if not gap.strip() else "\n"
            offsets.append(length + len(gap))
            parts += (gap, text[span.start : span.end])
            length, last = offsets[-1] + span.end - span.start, span
        return "".join(parts), offsets

    def _words(self, span: PageSpan, shift: int = 0) -> WordMap:
        """Return the words of a span; of an endless word that was cut, the part that lies in it."""
        if span.page not in self.maps:
            self.maps[span.page] = WordMap.of(self.pages[span.page].words)
        return self.maps[span.page].within(span.start, span.end, shift)


def _middle(run: list[ChunkUnit], parts: int) -> int:
    """Where the first of ``parts`` equal parts ends, or the first half of many.

    A heading stays with what follows it, and so does what is bound; of nothing else, the last one does.
    """
    share = sum(unit.size for unit in run) / parts * (parts // 2 if parts > LONG else 1)
    filled, end = run[0].size, 1
    while end < len(run) - 1 and filled + run[end].size / 2 < share:
        filled += run[end].size
        end += 1
    bodies = (index for index in range(end, 0, -1) if not (run[index - 1].is_heading or run[index - 1].binds))
    return next(bodies, max(1, end - 1))


def _spans(units: Sequence[ChunkUnit]) -> list[PageSpan]:
    """What the units say; a table or list that is cut begins with its headers again."""
    return [*units[0].headers, *(span for unit in units for span in unit.spans)]


def _sections(units: Sequence[ChunkUnit], offsets: Sequence[int]) -> Sections:
    """(offset, headings) wherever units stand under other headings; ``offsets``: of their ``_spans``."""
    sections: list[tuple[int, tuple[str, ...]]] = []
    span = len(units[0].headers)
    for unit in units:
        if not sections:
            sections.append((0, unit.path))
        elif sections[-1][1] != unit.path:
            sections.append((offsets[span], unit.path))
        span += len(unit.spans)
    return tuple(sections)


def _merged(words: Iterable[PageSpan]) -> list[PageSpan]:
    """Words of one page put together to one span."""
    spans: list[PageSpan] = []
    for word in words:
        if spans and spans[-1].page == word.page:
            spans[-1] = spans[-1]._replace(end=word.end)
        else:
            spans.append(word)
    return spans

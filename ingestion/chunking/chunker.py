"""Chunker: splits a read PDF by headings first, then by tokens, across pages only where it must.

Sizes are limited in two units at once: ``limit`` cl100k tokens, the unit of every budget, and ``window``
word pieces, the embedder's input limit. Texts keep an exact map of offsets to bounding boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from math import ceil, inf
from operator import attrgetter

from ingestion.chunking.segments import PageSpan, sentences
from ingestion.chunking.structure import ChunkUnit, Structure, units_of
from ingestion.layout.reading_order import Block
from storage.models import Chunk, Page, Sections
from storage.pdf.models import PdfText
from storage.text.token_counts import count_tokens
from storage.text.word_boxes import WordMap

# A chunk that fills less than 1/SMALL of the limit absorbs the next subsection, too.
SMALL = 4

# Upper bound for the white space between two units.
GAP_TOKENS = 2

# Above this, far more than a printed page, a run is halved before parts are split off it.
MAX_PARTS = 16


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document's title, '' if it has none, and its chunks in order."""

    title: str
    chunks: tuple[Chunk, ...]


def chunk_document(
    pdf: PdfText,
    *,
    limit: int,
    pieces: Callable[[str], int],
    window: int,
    blocks: Sequence[Sequence[Block]] = (),
) -> ChunkedDocument:
    """Split a document into chunks; a page without text yields none.

    Args:
        limit: maximum cl100k tokens per chunk.
        pieces: counts a text's word pieces for the embedder, special tokens included.
        window: maximum word pieces per chunk.
        blocks: layout blocks by page, if the layout is known.
    """
    structure = Structure(pdf, blocks)
    title = structure.title()
    chunker = _Chunker(pdf.pages, _Measure(limit, pieces, window))
    units = chunker.measured(units_of(pdf, structure, title))
    parts = (part for run in _runs(units) for part in chunker.split(run))
    return ChunkedDocument(title, tuple(chunker.chunk(ordinal, part) for ordinal, part in enumerate(parts)))


def _runs(units: Iterable[ChunkUnit]) -> Iterator[list[ChunkUnit]]:
    """Yield groups of units that may share a chunk: same page, section, and subsection unless small.

    Headings without body text stay with what follows, and so does a small preamble.
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
    if last.keep_with_next:
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
    """Measures which fraction of a full chunk a text fills."""

    limit: int
    pieces: Callable[[str], int]
    window: int
    # Token count of the last text: a unit that fits is measured again as a chunk.
    last: dict[str, int] = field(default_factory=dict)

    def fraction(self, text: str, most_tokens: float = inf) -> float:
        """Return that fraction.

        ``most_tokens``: upper bound; tokens are counted only if they could be the scarcer unit.
        """
        pieces = self.pieces(text) / self.window
        return pieces if most_tokens / self.limit <= pieces else max(self.tokens(text) / self.limit, pieces)

    def tokens(self, text: str) -> int:
        if text not in self.last:
            self.last.clear()
            self.last[text] = count_tokens(text)
        return self.last[text]


@dataclass(slots=True)
class _Chunker:
    """Packs units into chunks across pages."""

    pages: Sequence[Page]
    measure: _Measure
    # Page index -> its words.
    maps: dict[int, WordMap] = field(default_factory=dict)

    def measured(self, units: Iterable[ChunkUnit]) -> Iterator[ChunkUnit]:
        """Yield units with their sizes, split where they are larger than a chunk."""
        for unit in units:
            text = self._text(unit.spans)[0]
            unit.size, unit.tokens = self.measure.fraction(text), self.measure.tokens(text)
            if unit.headers and self._size([unit]) > 1:
                unit.headers = ()
            if unit.size <= 1:
                yield unit
            else:
                yield from self._cut(unit)

    def _cut(self, unit: ChunkUnit) -> Iterator[ChunkUnit]:
        """Halve a unit at a sentence, else at a word, else inside a word, until its parts fit."""
        if unit.size <= 1:
            yield unit
            return
        words = [
            PageSpan(span.page, *offsets) for span in unit.spans for offsets in self._words(span).offsets()
        ]
        if len(words) == 1:
            cut = (words[0].start + words[0].end) // 2
            words = [words[0]._replace(end=cut), words[0]._replace(start=cut)]
        middle = self._split_index(unit.spans, words)
        for half in (words[:middle], words[middle:]):
            spans = _merged(half)
            text = self._text(spans)[0]
            size, tokens = self.measure.fraction(text), self.measure.tokens(text)
            yield from self._cut(replace(unit, spans=spans, headers=(), size=size, tokens=tokens))

    def _split_index(self, spans: Iterable[PageSpan], words: Sequence[PageSpan]) -> int:
        """Return the index of the word to split before: the sentence start nearest to the middle."""
        begins = {
            (span.page, start)
            for span in spans
            for start, _ in sentences(self.pages[span.page].text, span.start, span.end)
        }
        middle = len(words) // 2
        starts = (at for at, word in enumerate(words) if at and word[:2] in begins)
        return min(starts, key=lambda at: abs(at - middle), default=middle)

    def split(self, run: list[ChunkUnit]) -> Iterator[list[ChunkUnit]]:
        """Yield the parts of a run, as few and as equal as fit."""
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
        most_tokens = inf if units[0].headers else sum(unit.tokens + GAP_TOKENS for unit in units)
        return self.measure.fraction(self._text(_spans(units))[0], most_tokens)

    def chunk(self, ordinal: int, units: list[ChunkUnit]) -> Chunk:
        """Build the chunk of these units."""
        spans = _spans(units)
        text, offsets = self._text(spans)
        page_starts: list[tuple[int, int]] = []
        for span, offset in zip(spans, offsets, strict=True):
            number = self.pages[span.page].number
            if not page_starts or page_starts[-1][1] != number:
                page_starts.append((offset, number))
        words = [self._words(span, shift) for span, shift in _shifted(spans, offsets)]
        bodies = [unit.path for unit in units if unit.path and not unit.is_heading]
        path = bodies[0] if bodies else units[-1].path
        tokens, sections = self.measure.tokens(text), _sections(units, offsets)
        return Chunk(ordinal, text, tokens, path, WordMap.concat(words), tuple(page_starts), sections)

    def _text(self, spans: Sequence[PageSpan]) -> tuple[str, list[int]]:
        """Return the joined text of spans and the offset of each; the page's white space stays in between."""
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
        """Return the words in a span; a word that the span cuts is clipped."""
        if span.page not in self.maps:
            self.maps[span.page] = WordMap.pack(self.pages[span.page].words)
        return self.maps[span.page].clip(span.start, span.end, shift)


def _middle(run: list[ChunkUnit], parts: int) -> int:
    """Return the index at which the first of ``parts`` equal parts ends, or the first half of many.

    A part does not end with a heading or a bound unit, unless it contains nothing else.
    """
    share = sum(unit.size for unit in run) / parts * (parts // 2 if parts > MAX_PARTS else 1)
    filled, end = run[0].size, 1
    while end < len(run) - 1 and filled + run[end].size / 2 < share:
        filled += run[end].size
        end += 1
    bodies = [index for index in range(end, 0, -1) if not run[index - 1].is_heading]
    free = (index for index in bodies if not run[index - 1].keep_with_next)
    return next(free, bodies[0] if bodies else max(1, end - 1))


def _spans(units: Sequence[ChunkUnit]) -> list[PageSpan]:
    """Return the spans of units; a table or list that was split repeats its headers first."""
    return [*units[0].headers, *(span for unit in units for span in unit.spans)]


def _sections(units: Sequence[ChunkUnit], offsets: Sequence[int]) -> Sections:
    """Return (offset, heading path) wherever the path changes; ``offsets`` are those of ``_spans(units)``."""
    sections: list[tuple[int, tuple[str, ...]]] = []
    span = len(units[0].headers)
    for unit in units:
        if not sections:
            sections.append((0, unit.path))
        elif sections[-1][1] != unit.path:
            sections.append((offsets[span], unit.path))
        span += len(unit.spans)
    return tuple(sections)


def _shifted(spans: Iterable[PageSpan], offsets: Iterable[int]) -> list[tuple[PageSpan, int]]:
    """Return each span with the shift from its page to the chunk; spans with only space between are one."""
    found: list[tuple[PageSpan, int]] = []
    for span, offset in zip(spans, offsets, strict=True):
        last, shift = found[-1] if found else (span, 0)
        if last.page == span.page and last.end < span.start and shift == offset - span.start:
            found[-1] = last._replace(end=span.end), shift
        else:
            found.append((span, offset - span.start))
    return found


def _merged(words: Iterable[PageSpan]) -> list[PageSpan]:
    """Merge words into one span per page."""
    by_page = (list(own) for _, own in groupby(words, key=attrgetter("page")))
    return [own[0]._replace(end=own[-1].end) for own in by_page]

"""Figure detection: kinds, captions, labels and context of a document's figures.

The layout gives boxes; a figure may come in several, and its caption as ordinary text. The kind follows from
the words of caption and labels and from the shapes it is drawn with. In doubt the kind is unknown: a wrong
kind is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

from ingestion.extraction.figure_context import FigureContext
from ingestion.layout.layout_fixes import is_middle_in
from ingestion.layout.reading_order import ArrangedPdf, Block
from storage.models import Box, Chunk, Figure, FigureKind, Page, WordBox
from storage.pdf.models import BlockKind, Line, OcrPage, Region, Shapes

# Fewer rectangles or sectors are no evidence of a chart.
MIN_BARS, MIN_SLICES = 3, 3

# Numbers among the labels of a chart: an axis has that many, a drawing only two or three dimensions.
SEVERAL_NUMBERS = 4

_WORDS = {
    FigureKind.BAR: re.compile(r"\b(?:bar|column) (?:chart|graph|plot)s?\b|\bhistograms?\b", re.IGNORECASE),
    FigureKind.LINE: re.compile(r"\bline (?:chart|graph|plot)s?\b", re.IGNORECASE),
    FigureKind.PIE: re.compile(r"\b(?:pie|dou?g?h?nut) (?:chart|graph)s?\b", re.IGNORECASE),
}
_OTHER = re.compile(
    r"\b(?:flow[ -]?charts?|flow diagrams?|organi[sz]ation(?:al)? charts?|org charts?|gantt|photo(?:graph)?s?"
    r"|maps?|screenshots?|scatter ?plots?|schematics?|block diagrams?|floor ?plans?)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d.,]*%?(?!\w)")

# Boxes no further apart are one figure, unless each has its own caption.
NEAR_POINTS = 12.0

# Maximum distance between caption and figure, and the minimum overlap as a fraction of the narrower one's
# width; a numbered caption may begin at the margin, wherever the figure is.
CAPTION_POINTS, CAPTION_OVERLAP = 40.0, 0.5

MAX_CAPTION_CHARS, MAX_TEXT_CHARS = 300, 2000

# Regions per page: a page with more is a pattern, and would take longer than it is worth.
MAX_PER_PAGE = 100

# A figure with fewer words of text may contain more in its pixels.
MAX_LABEL_WORDS = 4

# Start of a numbered caption.
LABEL = re.compile(
    r"(?:figure|fig|chart|exhibit|graph|diagram|abbildung|abb|schaubild|figura|gráfico|graphique)\.?\s*"
    r"(?P<number>[a-z]?\d+(?:[.-]\d+)*[a-z]?)(?!\w)",
    re.IGNORECASE,
)
# Start of a block that names a figure; "Figure 7 shows" is a sentence.
NAMED = re.compile(rf"{LABEL.pattern}\s*(?:[.:)|–—-]|\n|$)", re.IGNORECASE)

_TABLE = re.compile(r"(?:table|tabelle|tableau|tabla)\s+\w*\d", re.IGNORECASE)


def kind_of(caption: str, text: str, shapes: Shapes) -> FigureKind:
    """Return the kind that the words name, else the one that the shapes show; UNKNOWN if ambiguous.

    Args:
        shapes: vector shapes that it is drawn with.
    """
    named = [kind for kind, words in _WORDS.items() if words.search(f"{caption}\n{text}")]
    named += [FigureKind.OTHER] if _OTHER.search(caption) else []
    if named:
        return named[0] if len(named) == 1 else FigureKind.UNKNOWN
    drawn = {
        FigureKind.BAR: shapes.bars >= MIN_BARS,
        FigureKind.LINE: shapes.lines > 0,
        FigureKind.PIE: shapes.slices >= MIN_SLICES,
    }
    seen = [kind for kind, is_drawn in drawn.items() if is_drawn]
    return seen[0] if len(seen) == 1 else FigureKind.UNKNOWN


def holds_data(kind: FigureKind, text: str) -> bool:
    """True if a figure of this kind, with these labels, shows numeric data."""
    is_chart = kind in {FigureKind.BAR, FigureKind.LINE, FigureKind.PIE}
    return is_chart or len(_NUMBER.findall(text)) >= SEVERAL_NUMBERS


@dataclass(frozen=True, slots=True)
class Caption:
    """Caption of a figure."""

    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class FigureOutline:
    """A figure before it is assigned to a chunk."""

    page: Page
    box: Box
    shapes: Shapes
    caption: Caption | None

    def words(self) -> list[WordBox]:
        """Return the words inside the figure in reading order, without its caption."""
        skipped = self.caption.box if self.caption else None
        inside = (word for word in self.page.words if is_middle_in(word.box, self.box))
        return [word for word in inside if not (skipped and is_middle_in(word.box, skipped))]


def outlines(arranged: ArrangedPdf) -> Iterator[FigureOutline]:
    """Yield the figures of a document, page by page."""
    pages = zip(arranged.pdf.pages, arranged.pdf.lines, arranged.blocks, strict=True)
    for page, lines, blocks in pages:
        regions = arranged.figures.get(page.number, ())[:MAX_PER_PAGE]
        if regions:
            yield from _merged(_captioned(page, regions, _captions(page, lines, blocks)))


def crops_for_ocr(arranged: ArrangedPdf) -> list[tuple[int, Box]]:
    """Return (page, box) of figures that may have text in their pixels, except on pages read by OCR."""
    known = set(arranged.pdf.ocr_pages)
    return [
        (one.page.number, one.box)
        for one in outlines(arranged)
        if one.page.number not in known and len(one.words()) < MAX_LABEL_WORDS
    ]


def find_figures(
    arranged: ArrangedPdf, chunks: Sequence[Chunk], crops: Sequence[OcrPage] = ()
) -> tuple[Figure, ...]:
    """Return a document's figures with their chunks; figures without any text are left out.

    Args:
        crops: OCR results of single figures.
    """
    context = FigureContext(chunks)
    read = {(crop.number, crop.clip): crop.text for crop in crops}
    found = (_figure(one, context, read) for one in outlines(arranged))
    return tuple(figure for figure in found if figure.embedding_text)


def _figure(
    outline: FigureOutline, context: FigureContext, read: Mapping[tuple[int, Box | None], str]
) -> Figure:
    page, caption = outline.page, outline.caption
    within = read.get((page.number, outline.box), "") or _printed(page, outline.words())
    text = " ".join(within.split())[:MAX_TEXT_CHARS]
    own = (_shortened(line) for line in within.splitlines() if NAMED.match(line.strip()))
    name = caption.text if caption else next(own, "")
    label = LABEL.match(name)
    chunk = context.chunk_of(page.number, outline.box, caption.box if caption else None)
    return Figure(
        page=page.number,
        box=outline.box,
        kind=(kind := kind_of(name, text, outline.shapes)),
        holds_data=holds_data(kind, text),
        chunk=chunk.ordinal if chunk else None,
        heading_path=chunk.heading_path if chunk else (),
        caption=name,
        context=context.context(
            chunk, page.number, [outline.box, *([caption.box] if caption else [])], label and label["number"]
        ),
        text=text,
    )


def _printed(page: Page, words: Sequence[WordBox]) -> str:
    """Return words as text, line by line; the halves of a hyphenated word stay together."""
    parts: list[str] = []
    for before, word in zip([None, *words], words, strict=False):
        if before and before.end != word.start:
            parts.append(" " if before.line == word.line else "\n")
        parts.append(page.text[word.start : word.end])
    return "".join(parts)


def _captions(page: Page, lines: Sequence[Line], blocks: Sequence[Block]) -> list[Caption]:
    found = []
    for block in blocks:
        text = page.text[block.start : block.end].strip()
        is_named = NAMED.match(text) is not None
        if is_named or (block.kind is BlockKind.CAPTION and not _TABLE.match(text)):
            box = reduce(union, (line.box for line in lines[block.first_line : block.end_line]))
            found.append(Caption(_shortened(text), box))
    return found


def _shortened(text: str) -> str:
    """Return the text on one line, truncated at a word."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_CAPTION_CHARS else line[:MAX_CAPTION_CHARS].rsplit(" ", 1)[0]


def _captioned(page: Page, regions: Sequence[Region], captions: Sequence[Caption]) -> list[FigureOutline]:
    """Assign each caption to the nearest figure without one."""
    gaps = sorted(
        (gap, number, which)
        for (number, region), (which, caption) in product(enumerate(regions), enumerate(captions))
        if (gap := _caption_gap(page, region.box, caption)) is not None
    )
    given: dict[int, int] = {}
    for _, number, which in gaps:
        if number not in given and which not in given.values():
            given[number] = which
    return [
        FigureOutline(page, region.box, region.shapes, captions[given[number]] if number in given else None)
        for number, region in enumerate(regions)
    ]


def _caption_gap(page: Page, figure: Box, caption: Caption) -> float | None:
    """Return the vertical gap in points; None if the two do not belong together."""
    box = caption.box
    shared = min(figure.x1, box.x1) - max(figure.x0, box.x0)
    least = 0 if LABEL.match(caption.text) else CAPTION_OVERLAP * min(figure.x1 - figure.x0, box.x1 - box.x0)
    gap = max(box.y0 - figure.y1, figure.y0 - box.y1, 0.0) * page.height
    return gap if shared > least and gap <= CAPTION_POINTS else None


def _merged(parts: Sequence[FigureOutline]) -> list[FigureOutline]:
    """Merge parts that touch or nearly touch, unless each has its own caption."""
    kept: list[FigureOutline] = []
    for part in parts:
        whole = part
        while near := next((one for one in kept if _is_one(one, whole)), None):
            kept.remove(near)
            shapes = Shapes(*(max(pair) for pair in zip(near.shapes, whole.shapes, strict=True)))
            whole = FigureOutline(
                part.page, union(near.box, whole.box), shapes, near.caption or whole.caption
            )
        kept.append(whole)
    return kept


def _is_one(one: FigureOutline, other: FigureOutline) -> bool:
    if one.caption and other.caption:
        return False
    page, (a, b) = one.page, (one.box, other.box)
    across = max(a.x0 - b.x1, b.x0 - a.x1) * page.width
    down = max(a.y0 - b.y1, b.y0 - a.y1) * page.height
    return max(across, down) <= NEAR_POINTS


def union(one: Box, other: Box) -> Box:
    """Return the smallest box around both."""
    return Box(min(one.x0, other.x0), min(one.y0, other.y0), max(one.x1, other.x1), max(one.y1, other.y1))

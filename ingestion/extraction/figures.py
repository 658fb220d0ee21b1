"""Finds a document's figures, with their kinds, captions, the words in them and the sentences about them.

The layout gives boxes; a figure may come in several, and its caption as ordinary text. The kind follows from
the words of caption and labels and from what the figure is drawn with. Only what is certain is said of a
figure: a wrong kind is worse than none.
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
from storage.models import Box, Chunk, Figure, FigureKind, Page, PlacedWord
from storage.pdf.models import BlockKind, Line, OcrPage, Region, Shapes

# Fewer rectangles or sectors may be anything.
MIN_BARS, MIN_SLICES = 3, 3

# Numbers among the labels of what shows data: an axis has as many, a drawing two or three sizes.
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

# Boxes that are no further apart are one figure, unless each has a caption of its own.
NEAR_POINTS = 12.0

# How far above or below a caption stands at most, and the least share of the narrower of the two that is
# shared; one that says its number may begin at the margin, whatever the figure does.
CAPTION_POINTS, CAPTION_OVERLAP = 40.0, 0.5

# Characters.
MAX_CAPTION_CHARS, MAX_TEXT_CHARS = 300, 2000

# Boxes: a page of more is a pattern, and takes longer than it is worth.
MAX_PER_PAGE = 100

# A figure with fewer words of its own may hold more in its pixels.
MAX_LABEL_WORDS = 4

# How a caption begins that numbers its figure.
LABEL = re.compile(
    r"(?:figure|fig|chart|exhibit|graph|diagram|abbildung|abb|schaubild|figura|gráfico|graphique)\.?\s*"
    r"(?P<number>[a-z]?\d+(?:[.-]\d+)*[a-z]?)(?!\w)",
    re.IGNORECASE,
)
# How a block begins that names a figure; "Figure 7 shows" is a sentence.
NAMED = re.compile(rf"{LABEL.pattern}\s*(?:[.:)|–—-]|\n|$)", re.IGNORECASE)

_TABLE = re.compile(r"(?:table|tabelle|tableau|tabla)\s+\w*\d", re.IGNORECASE)


def kind_of(caption: str, text: str, shapes: Shapes) -> FigureKind:
    """Return the one kind that words name, else the one that the shapes are enough for; two are none.

    Args:
        caption: the document's words for the figure.
        text: what is printed in it.
        shapes: what it is drawn with.
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
    """True if a figure of this kind, with these labels, shows numbers."""
    is_chart = kind in {FigureKind.BAR, FigureKind.LINE, FigureKind.PIE}
    return is_chart or len(_NUMBER.findall(text)) >= SEVERAL_NUMBERS


@dataclass(frozen=True, slots=True)
class Caption:
    """A block that names a figure."""

    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class FigureOutline:
    """A figure before anybody knows its chunk."""

    page: Page
    box: Box
    shapes: Shapes
    caption: Caption | None

    def words(self) -> list[PlacedWord]:
        """What is printed in it, in reading order, its caption left out."""
        skipped = self.caption.box if self.caption else None
        inside = (word for word in self.page.words if is_middle_in(word.box, self.box))
        return [word for word in inside if not (skipped and is_middle_in(word.box, skipped))]


def outlines(arranged: ArrangedPdf) -> Iterator[FigureOutline]:
    """Yield every figure of a document, page after page."""
    pages = zip(arranged.pdf.pages, arranged.pdf.lines, arranged.blocks, strict=True)
    for page, lines, blocks in pages:
        regions = arranged.figures.get(page.number, ())[:MAX_PER_PAGE]
        if regions:
            yield from _merged(_captioned(page, regions, _captions(page, lines, blocks)))


def crops_for_ocr(arranged: ArrangedPdf) -> list[tuple[int, Box]]:
    """(page, box) of the figures whose words may be part of their pixels; pages that OCR read are known."""
    known = set(arranged.pdf.ocr_pages)
    return [
        (one.page.number, one.box)
        for one in outlines(arranged)
        if one.page.number not in known and len(one.words()) < MAX_LABEL_WORDS
    ]


def find_figures(
    arranged: ArrangedPdf, chunks: Sequence[Chunk], crops: Sequence[OcrPage] = ()
) -> tuple[Figure, ...]:
    """Return a document's figures, each with its chunk; one that no word describes is left out.

    Args:
        arranged: the document with the boxes of its figures.
        chunks: those that it was cut into.
        crops: what OCR read in some of the figures.
    """
    context = FigureContext(chunks)
    read = {(crop.number, crop.clip): crop.text for crop in crops}
    found = (_figure(one, context, read) for one in outlines(arranged))
    return tuple(figure for figure in found if figure.said)


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


def _printed(page: Page, words: Sequence[PlacedWord]) -> str:
    """Words as text, line after line; the halves of one word stay together."""
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
    """On one line, and cut between two words when a whole paragraph follows."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_CAPTION_CHARS else line[:MAX_CAPTION_CHARS].rsplit(" ", 1)[0]


def _captioned(page: Page, regions: Sequence[Region], captions: Sequence[Caption]) -> list[FigureOutline]:
    """Return each caption goes to the nearest figure that has none yet."""
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
    """Points between the two, one above the other; None when they do not belong together."""
    box = caption.box
    shared = min(figure.x1, box.x1) - max(figure.x0, box.x0)
    least = 0 if LABEL.match(caption.text) else CAPTION_OVERLAP * min(figure.x1 - figure.x0, box.x1 - box.x0)
    gap = max(box.y0 - figure.y1, figure.y0 - box.y1, 0.0) * page.height
    return gap if shared > least and gap <= CAPTION_POINTS else None


def _merged(parts: Sequence[FigureOutline]) -> list[FigureOutline]:
    """Parts that touch, or nearly do, put together; two captions keep two figures apart."""
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

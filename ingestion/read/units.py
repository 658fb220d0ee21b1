"""Makes of a document's pieces the units of its chunks: under their headings, and whole over a page's end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ingestion.read.outline import Rank
from ingestion.read.sentences import PageSpan, Segment, is_open
from ingestion.read.structure import Structure
from storage.models import Page
from storage.pdf.models import ReadPdf


@dataclass(slots=True)
class ChunkUnit:
    """What is packed whole: a sentence, a step, a row, a heading; in two spans when a page cuts it."""

    spans: list[PageSpan]
    path: tuple[str, ...]
    is_heading: bool
    is_open: bool = False
    binds: bool = False
    """It stays with the unit after it."""
    is_aside: bool = False
    header: PageSpan | None = None
    """Of a table row: the row that names its columns, repeated where a chunk begins with this one."""
    size: float = 0.0
    """Share of the largest allowed chunk that it fills, by the scarcer of the two units."""
    tokens: int = 0


def units_of(pdf: ReadPdf, structure: Structure, title: str) -> list[ChunkUnit]:
    """What a document is packed from, in reading order; a sentence that a page's end cuts is one."""
    return _joined(_headed(pdf, structure, title), pdf.pages)


def _headed(pdf: ReadPdf, structure: Structure, title: str) -> Iterator[ChunkUnit]:
    """Every piece of the document under the headings it stands under; the title is none of them."""
    open_headings: list[tuple[Rank, str]] = []
    for number, page in enumerate(pdf.pages):
        for piece in structure.pieces(number):
            text = " ".join(page.text[piece.start : piece.end].split())
            if piece.rank and text != title:
                open_headings = [one for one in open_headings if one[0] < piece.rank]
                open_headings.append((piece.rank, text))
            path = tuple(heading for _, heading in open_headings)
            yield _unit(piece, number, path, text)


def _unit(piece: Segment, page: int, path: tuple[str, ...], text: str) -> ChunkUnit:
    is_heading = piece.rank is not None
    return ChunkUnit(
        [PageSpan(page, piece.start, piece.end)],
        path,
        is_heading,
        is_open=not is_heading and not piece.is_row and not piece.is_aside and is_open(text),
        binds=piece.binds,
        is_aside=piece.is_aside,
        header=piece.header,
    )


def _joined(units: Iterable[ChunkUnit], pages: Sequence[Page]) -> list[ChunkUnit]:
    """Put together again the sentences that a page's end cuts, whatever stands at the foot of the page."""
    found: list[ChunkUnit] = []
    last: ChunkUnit | None = None
    for unit in units:
        if last and _continues(last, unit, pages):
            last.spans += unit.spans
            last.is_open = unit.is_open
            continue
        found.append(unit)
        if not unit.is_aside:
            last = unit
    return found


def _continues(last: ChunkUnit, unit: ChunkUnit, pages: Sequence[Page]) -> bool:
    page, start, _ = unit.spans[0]
    is_next_page = page == last.spans[-1].page + 1
    is_body = not unit.is_heading and not unit.is_aside and unit.header is None
    return last.is_open and is_next_page and is_body and pages[page].text[start].islower()

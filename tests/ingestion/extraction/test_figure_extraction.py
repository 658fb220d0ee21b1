"""Figures with captions, text and chunks: of generated pages, of any layout, and of a drawn report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fakes.term_embedder import TermEmbedder
from harness.ingestion_home import Home
from harness.tables import for_each
from hypothesis import given
from hypothesis import strategies as st
from samples.illustrated import illustrated_pdf
from samples.printed import BODY, Row, read_pdf

from ingestion.chunking.chunker import chunk_document
from ingestion.extraction.figures import crops_for_ocr, find_figures, holds_data, kind_of
from ingestion.layout.reading_order import arrange
from storage.models import Box, Chunk, Figure, FigureKind, Rung
from storage.pdf.models import NO_SHAPES, BlockKind, Layout, OcrPage, PdfText, Region, Shapes
from storage.sql.tables import ReadingRow
from storage.text.token_counts import count_tokens
from storage.text.word_boxes import WordMap

PROSE = ["The boilers were replaced.", "Figure 1 shows the result.", "The board was pleased."]


def body(*texts: str) -> list[Row]:
    return [(text, BODY, False) for text in texts]


def band(pdf: PdfText, first: int, last: int) -> Box:
    """Return the bounding box of some lines of the first page."""
    lines = pdf.lines[0]
    return Box(0.08, lines[first].box.y0 - 0.002, 0.92, lines[last].box.y1 + 0.002)


def figures_of(
    pdf: PdfText, *regions: Region, crops: Sequence[OcrPage] = ()
) -> tuple[tuple[Figure, ...], Sequence[Chunk]]:
    """Return the figures of a PDF with these regions on its first page, and its chunks."""
    arranged = arrange(pdf, Layout({1: regions}))
    chunks = chunk_document(
        arranged.pdf, limit=400, pieces=count_tokens, window=512, blocks=arranged.blocks
    ).chunks
    return find_figures(arranged, chunks, crops), chunks


def test_a_figure_has_caption_text_and_the_referring_sentence() -> None:
    """The layout may see the caption as ordinary text; a sentence about the figure is no caption."""
    page = [*PROSE, "2019", "2020", "2021", "2022", "Figure 1. Emissions by year", *PROSE * 3]
    pdf = read_pdf([body(*page)])
    box = band(pdf, 3, 6)
    regions = [
        Region(BlockKind.TEXT, band(pdf, 0, 2)),
        Region(BlockKind.FIGURE, box),
        Region(BlockKind.TEXT, band(pdf, 7, 7)),
    ]
    ((figure,), (chunk,)) = figures_of(pdf, *regions)
    assert figure == Figure(
        page=1,
        box=box,
        kind=FigureKind.UNKNOWN,
        holds_data=True,
        chunk=0,
        heading_path=(),
        caption="Figure 1. Emissions by year",
        context="Figure 1 shows the result. " + " ".join(["Figure 1 shows the result."] * 3),
        text="2019 2020 2021 2022",
    )
    assert figure.caption in chunk.text


def test_adjacent_parts_are_one_figure_unless_each_has_a_caption() -> None:
    """An organisation chart in three boxes is one figure, two captioned charts next to each other are two."""
    pdf = read_pdf([body(*PROSE * 10)])
    halves = [Box(0.1, 0.4, 0.5, 0.6), Box(0.505, 0.4, 0.9, 0.6)]
    regions = [Region(BlockKind.FIGURE, box) for box in halves]
    (figure,), _ = figures_of(pdf, *regions)
    assert figure.box == Box(0.1, 0.4, 0.9, 0.6)
    named = read_pdf([body(*["Ink."] * 20, "Figure 1: Old", "Figure 2: New", *["Ink."] * 20)])
    captions = [Region(BlockKind.CAPTION, line.box) for line in named.lines[0][20:22]]
    above, below = named.lines[0][20].box, named.lines[0][21].box
    figures, _ = figures_of(
        named,
        Region(BlockKind.FIGURE, Box(0.1, above.y0 - 0.18, 0.9, above.y0 - 0.002)),
        *captions,
        Region(BlockKind.FIGURE, Box(0.1, below.y1 + 0.002, 0.9, below.y1 + 0.18)),
    )
    assert [one.caption for one in figures] == ["Figure 1: Old", "Figure 2: New"]


def test_a_table_caption_is_no_figure_caption() -> None:
    """However close the figure is."""
    pdf = read_pdf([body(*["Ink."] * 20, "Table 3. Prices", *["Ink."] * 20)])
    line = pdf.lines[0][20].box
    box = Box(0.1, line.y1 + 0.002, 0.9, line.y1 + 0.15)
    (figure,), _ = figures_of(pdf, Region(BlockKind.CAPTION, line), Region(BlockKind.FIGURE, box))
    assert figure.caption == ""


def test_ocr_text_of_a_figure_stays_with_the_figure() -> None:
    """The few printed words are included, and a line of OCR text may be the caption."""
    pdf = read_pdf([body(*PROSE), []])
    region = Region(BlockKind.FIGURE, Box(0.1, 0.5, 0.9, 0.6))
    assert crops_for_ocr(arrange(pdf, Layout({1: (region,)}))) == [(1, region.box)]
    crop = OcrPage(1, "Fig 4: Zebra stripes\nOslo 40", WordMap(), (), 0.9, region.box)
    (figure,), chunks = figures_of(pdf, region, crops=[crop])
    assert (figure.caption, figure.text) == ("Fig 4: Zebra stripes", "Fig 4: Zebra stripes Oslo 40")
    assert not any("Zebra" in chunk.text for chunk in chunks)


def test_a_figure_without_any_text_is_left_out() -> None:
    """Covers a page that is a single image."""
    figures, _ = figures_of(read_pdf([[]]), Region(BlockKind.FIGURE, Box(0.1, 0.1, 0.9, 0.9)))
    assert figures == ()


@for_each(
    ("caption", "text", "shapes", "kind"),
    [
        ("Figure 1. Costs", "", Shapes(bars=8), FigureKind.BAR),
        ("Figure 1. Costs", "", Shapes(lines=2), FigureKind.LINE),
        ("Figure 1. Costs", "", Shapes(slices=5), FigureKind.PIE),
        ("Figure 1. Costs", "", Shapes(bars=8, lines=1), FigureKind.UNKNOWN),
        ("Figure 1. Costs", "", Shapes(bars=2), FigureKind.UNKNOWN),
        ("A pie chart of costs", "", NO_SHAPES, FigureKind.PIE),
        ("Costs", "Column chart of costs", NO_SHAPES, FigureKind.BAR),
        ("Flow chart of the appeal", "", Shapes(bars=5), FigureKind.OTHER),
        ("Map of a bar chart", "", NO_SHAPES, FigureKind.UNKNOWN),
        ("The barn", "a pie", NO_SHAPES, FigureKind.UNKNOWN),
    ],
)
def test_a_figure_kind_needs_unambiguous_evidence(
    caption: str, text: str, shapes: Shapes, kind: FigureKind
) -> None:
    """Words take precedence over shapes; two kinds named yield none."""
    assert kind_of(caption, text, shapes) is kind


def test_several_numbers_among_the_labels_are_data() -> None:
    """Applies to any kind; charts of a known kind always hold data."""
    assert holds_data(FigureKind.UNKNOWN, "0 20 40.5 60%")
    assert not holds_data(FigureKind.UNKNOWN, "Step 1, Step 2, A4")
    assert holds_data(FigureKind.LINE, "")


SIDES = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted)
BOXES = st.tuples(SIDES, SIDES).map(lambda sides: Box(sides[0][0], sides[1][0], sides[0][1], sides[1][1]))
REGIONS = st.builds(
    Region,
    st.sampled_from([BlockKind.FIGURE, BlockKind.CAPTION, BlockKind.TEXT]),
    BOXES,
    st.just(()),
    st.builds(Shapes, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
)
LINES = st.lists(st.sampled_from(["Figure 1. Ink", "Fig. 2", "Ink and water.", "2019 2020", ""]), max_size=12)


@given(st.lists(LINES, min_size=1, max_size=2), st.lists(REGIONS, max_size=6))
def test_every_figure_belongs_to_a_chunk_of_its_page(pages: list[list[str]], regions: list[Region]) -> None:
    """For any layout: the chunk is on the page, the box within it, and the figure has text."""
    figures, chunks = figures_of(read_pdf([body(*page) for page in pages]), *regions)
    for figure in figures:
        assert figure.embedding_text
        assert 0 <= figure.box.x0 <= figure.box.x1 <= 1
        assert len(figure.context.split()) <= 60
        if figure.chunk is not None:
            assert chunks[figure.chunk].first_page <= figure.page <= chunks[figure.chunk].last_page
        else:
            assert not any(one.first_page <= figure.page <= one.last_page for one in chunks)


async def test_the_figures_of_a_drawn_report_are_published(home: Home, tmp_path: Path) -> None:
    """Covers kinds, OCR text, chunks and places; the logo on every page is no figure."""
    home.embedder = TermEmbedder("terms")
    home.drop("green/report.pdf", illustrated_pdf(tmp_path).read_bytes())
    await home.serve(layout=True)
    live = await home.until_found("green", "boilers", "report.pdf", Rung.FULL)
    figures, chunks = await home.files.figures(live.reading_id), await home.files.chunks(live.reading_id)
    assert [(one.page, one.kind, one.holds_data) for one in figures] == [
        (1, FigureKind.BAR, True),
        (2, FigureKind.LINE, True),
        (3, FigureKind.UNKNOWN, True),
        (4, FigureKind.UNKNOWN, False),
    ]
    assert "Oslo 40 tons" in figures[2].text
    assert not any("Oslo" in chunk.text for chunk in chunks)
    assert figures[0].context == "Figure 1 shows how the emissions fell."
    assert [chunks[one.chunk].first_page for one in figures if one.chunk is not None] == [1, 2, 3, 4]
    (row,) = [row for row in await home.rows(ReadingRow) if row.rung == "full"]
    assert (row.figures, live.figures) == (4, 4)
    tenant = (await home.channel("green")).tenant
    assert (await home.index.publications(tenant))[live.id] == len(chunks) + 4
    assert await home.files.is_whole(
        live.reading_id, pages=4, chunks=len(chunks), figures=4, has_vectors=True
    )

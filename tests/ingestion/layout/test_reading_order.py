"""Reading order: layout regions joined with words; no word is lost, tables become Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from samples.printed import BODY, HEADING, Row, make_page, read_pdf

from ingestion.chunking.chunker import ChunkedDocument, chunk_document
from ingestion.layout.reading_order import ArrangedPdf, arrange
from storage.models import Box, Page, WordBox
from storage.pdf.models import BlockKind, Layout, Line, PdfText, Region
from storage.text.sentences import split_units
from storage.text.token_counts import count_tokens
from storage.text.word_boxes import WordMap

WHOLE = Box(0, 0, 1, 1)


def body(text: str) -> Row:
    return text, BODY, False


def words_of(page: Page) -> Counter[tuple[str, Box]]:
    words = WordMap.pack(page.words)
    return Counter((page.text[word.start : word.end], word.box) for word in words)


def band(page: int, lines: Sequence[Line], first: int, last: int) -> Box:
    return Box(0.05, lines[first].box.y0 - 0.001, 0.95, lines[last].box.y1 + 0.001)


def laid(pdf: PdfText, *parts: tuple[BlockKind, int, int]) -> ArrangedPdf:
    """Return a PDF of one page with regions over these ranges of its lines, in this order."""
    regions = tuple(Region(kind, band(1, pdf.lines[0], first, last)) for kind, first, last in parts)
    return arrange(pdf, Layout({1: regions}))


def cut(arranged: ArrangedPdf, limit: int = 400) -> ChunkedDocument:
    return chunk_document(arranged.pdf, limit=limit, pieces=count_tokens, window=512, blocks=arranged.blocks)


def table_page(rows: Sequence[Sequence[str]], top: float = 0.1, number: int = 1) -> tuple[Page, Region]:
    """Return a page with a table, its grid as a layout would detect it; the first row is bold."""
    text, words, lines, cells = "", [], [], []
    width = 0.8 / len(rows[0])
    for at, row in enumerate(rows):
        y = top + 0.02 * at
        boxes = [Box(0.1 + width * c, y, 0.1 + width * (c + 1), y + 0.02) for c in range(len(row))]
        cells.append(tuple(boxes))
        for cell, box in zip(row, boxes, strict=True):
            left = box.x0 + 0.005
            for word in cell.split():
                text += "  " if text and not text.endswith("\n") else ""
                place = Box(left, y + 0.004, left + 0.007 * len(word), y + 0.016)
                words.append(WordBox(len(text), len(text) + len(word), number, len(lines), place))
                text, left = text + word, place.x1 + 0.004
            lines.append(Line(0, len(text), BODY, at == 0, box))
        text += "\n"
    page = Page(number, "", 595, 842, text.strip(), tuple(words))
    return page, Region(BlockKind.TABLE, Box(0.1, top, 0.9, top + 0.02 * len(rows)), tuple(cells))


def of_tables(*pages: tuple[Page, Region], bold: Sequence[int] = (1,)) -> ArrangedPdf:
    """Return a PDF of such pages; the first rows of the pages in ``bold`` are bold."""
    lines = [
        tuple(
            Line(0, 1, BODY, page.number in bold and line < len(region.cells[0]), WHOLE)
            for line in range(page.words[-1].line + 1)
        )
        for page, region in pages
    ]
    pdf = PdfText("T", tuple(page for page, _ in pages), tuple(lines), 0, False)
    return arrange(pdf, Layout({page.number: (region,) for page, region in pages}))


SIDES = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted)
BOXES = st.tuples(SIDES, SIDES).map(lambda sides: Box(sides[0][0], sides[1][0], sides[0][1], sides[1][1]))
GRIDS = st.lists(st.lists(BOXES | st.none(), min_size=1, max_size=4).map(tuple), max_size=4).map(tuple)
REGIONS = st.builds(Region, st.sampled_from(BlockKind), BOXES, GRIDS)
ROWS = st.lists(
    st.tuples(st.text("ab1:.-| ", max_size=40), st.sampled_from([BODY, HEADING]), st.booleans()), max_size=10
)


@given(st.lists(ROWS, min_size=1, max_size=3), st.lists(REGIONS, max_size=6))
@example([[body("1")]], [Region(BlockKind.TABLE, WHOLE, ((None,),))])
def test_no_layout_loses_or_moves_a_word(rows: list[list[Row]], regions: list[Region]) -> None:
    """Same words, same places and valid offsets for any layout."""
    pdf = read_pdf(rows)
    arranged = arrange(pdf, Layout({1: tuple(regions), 2: ()}))
    for before, after, lines in zip(pdf.pages, arranged.pdf.pages, arranged.pdf.lines, strict=True):
        assert words_of(before) == words_of(after)
        for word in after.words:
            assert lines[word.line].start <= word.start < word.end <= lines[word.line].end
    for chunk in cut(arranged).chunks:
        for start, page in chunk.page_starts:
            assert {word.page for word in chunk.words if word.start >= start} >= {page}
        assert chunk.tokens == count_tokens(chunk.text) <= 400


def test_columns_are_read_in_the_order_of_the_layout() -> None:
    """Text that is last in the file and first on the page is read first."""
    pdf = read_pdf([[body("Second it says."), body("First it says.")]])
    arranged = laid(pdf, (BlockKind.TEXT, 1, 1), (BlockKind.TEXT, 0, 0))
    assert arranged.pdf.pages[0].text == "First it says.\n\nSecond it says."


def test_items_without_markers_stay_with_their_lead_in() -> None:
    """Items known by position only form one list, as in the quick reading; marked ones are blocks."""
    items = ["Refunded for meals:", "Up to $25 for breakfast", "Up to $35 for lunch", "7.2 Drinks are not."]
    parts = [(BlockKind.ITEM, row, row) for row in range(len(items))]
    text = laid(read_pdf([[body(item) for item in items]]), *parts).pdf.pages[0].text
    assert text == "\n".join(items[:3]) + "\n\n" + items[3]
    assert [text[unit.start : unit.end] for unit in split_units(text) if unit.lead] == ["\n".join(items[1:3])]


def test_a_split_markdown_table_repeats_its_header() -> None:
    """Every chunk of a long table has the column names, placed where they are printed."""
    rows = [["Model", "Weight"], *([f"Engine-{number}", f"{number} kg"] for number in range(60))]
    document = cut(of_tables(table_page(rows, top=0)), 100)
    assert len(document.chunks) > 3
    for chunk in document.chunks:
        assert chunk.text.startswith("| Model | Weight |\n| --- | --- |\n| Engine-")
        assert chunk.tokens <= 100
    found = "\n".join(chunk.text for chunk in document.chunks)
    assert all(f"| Engine-{number} | {number} kg |" in found for number in range(60))


def test_a_table_continues_on_the_next_page_with_its_header() -> None:
    """Rows of the second page come under the header of the first; each word keeps its own page."""
    first = table_page([["Model", "Weight"], ["Engine-1", "7 kg"]], top=0.9)
    second = table_page([["Engine-2", "9 kg"], ["Engine-3", "4 kg"]], top=0, number=2)
    arranged = of_tables(first, second)
    assert arranged.tables == 2  # one per page
    chunks = cut(arranged).chunks
    assert chunks[1].text.startswith("| Model | Weight |\n| --- | --- |\n| Engine-2 | 9 kg |")
    pages = {chunks[1].text[word.start : word.end]: word.page for word in chunks[1].words}
    assert (pages["Model"], pages["Engine-2"]) == (1, 2)


BERTHS = [["Berth", "Length", "Fee"], ["North quay", "", ""], ["A1", "8 m", "640"], ["A2", "9 m", "815"]]
BERTHS += [["South quay", "", ""], ["A1", "7 m", "590"], ["A3", "12 m", "990"]]
LOCKS = [
    ["Lock", "Season", "Hours"],
    ["Lek", "Summer", "6-22"],
    ["", "Winter", "8-18"],
    ["Park", "Summer", "5-23"],
]
LOCKS += [["", "Winter", "9-17"]]
BILL = [["Item", "Count", "Sum"], ["Rope", "2", "40"], ["Tar", "1", "9"], ["", "Total", "49"]]


def test_a_group_name_is_repeated_with_its_rows() -> None:
    """Every chunk that begins inside a group begins with its name, a cell across all columns."""
    arranged = of_tables(table_page(BERTHS))
    assert "| North quay |||\n| A1 | 8 m | 640 |" in arranged.pdf.pages[0].text
    head = "| Berth | Length | Fee |\n| --- | --- | --- |\n"
    texts = [chunk.text for chunk in cut(arranged, 40).chunks]
    assert texts[0].startswith(f"{head}| North quay |||\n| A1")
    assert len(texts) > 1
    assert all(text.startswith((f"{head}| North quay |||\n", f"{head}| South quay |||\n")) for text in texts)


def test_a_label_is_repeated_in_the_blank_cells_below_it() -> None:
    """Needs two labels; the blank cell before a total stays blank."""
    rows = of_tables(table_page(LOCKS)).pdf.pages[0].text.splitlines()
    assert rows[2:4] == ["| Lek | Summer | 6-22 |", "| ^^ | Winter | 8-18 |"]
    assert rows[5] == "| ^^ | Winter | 9-17 |"
    assert of_tables(table_page(BILL)).pdf.pages[0].text.endswith("| | Total | 49 |")
    assert (
        cut(of_tables(table_page(LOCKS)), 34)
        .chunks[-1]
        .text.endswith("| Park | Summer | 5-23 |\n| ^^ | Winter | 9-17 |")
    )


def test_a_row_with_an_empty_cell_is_no_group_name() -> None:
    """In two columns, or below ungrouped rows, a single cell is a row without a value."""
    staff = [["Name", "Room"], ["Ada", "12"], ["Bob", ""], ["Cyd", "14"]]
    parts = [["Part", "Size", "Sum"], ["Rope", "9", "40"], ["Tar", "", ""], ["Oil", "3", "8"]]
    assert "| Bob | |" in of_tables(table_page(staff)).pdf.pages[0].text
    assert "| Tar | | |" in of_tables(table_page(parts)).pdf.pages[0].text


def test_adjacent_tables_stay_separate() -> None:
    """Another bold row of column names starts a new table."""
    near = [["Line", "First"], ["N1", "23:10"], ["N2", "23:25"], ["Station", "Phone"], ["Kai", "0177"]]
    page, region = table_page(near)
    lines = tuple(Line(0, 1, BODY, row in (0, 3), WHOLE) for row in range(5) for _ in range(2))
    pdf = PdfText("T", (page,), (lines,), 0, False)
    arranged = arrange(pdf, Layout({1: (region,)}))
    assert [block.has_header for block in arranged.blocks[0]] == [True, True]
    assert arranged.pdf.pages[0].text.endswith("\n\n| Station | Phone |\n| --- | --- |\n| Kai | 0177 |")


def test_a_new_header_on_the_next_page_starts_a_new_table() -> None:
    first = table_page([["Model", "Weight"], ["Engine-1", "7 kg"]], top=0.9)
    second = table_page([["Depot", "Trams"], ["Harbour", "40"]], top=0, number=2)
    chunks = cut(of_tables(first, second, bold=(1, 2))).chunks
    assert chunks[1].text == "| Depot | Trams |\n| --- | --- |\n| Harbour | 40 |"


def test_a_form_has_no_header() -> None:
    """The first row is a row like the others."""
    form = of_tables(table_page([["Age:", "32", "Seat:", "Left"], ["Class:", "3", "Exam:", "2006"]]), bold=())
    assert form.pdf.pages[0].text == "| Age: | 32 | Seat: | Left |\n| Class: | 3 | Exam: | 2006 |"


def test_two_columns_detected_as_one_are_split() -> None:
    """Split at the white gap between them."""
    page, region = table_page([["Oslo", "mild", "7"], ["Bergen", "wet", "9"], ["Narvik", "cold", "1"]])
    merged = [(Box(row[0].x0, row[0].y0, row[1].x1, row[1].y1), row[2]) for row in region.cells if row[0]]
    arranged = of_tables((page, Region(region.kind, region.box, tuple(merged))), bold=())
    assert arranged.pdf.pages[0].text.endswith("| Bergen | wet | 9 |\n| Narvik | cold | 1 |")


WRAPPED = [
    ["Organism", "Habitat", "Remedy"],
    ["Fleas &", "Underbrush,", "Tick check in re-"],
    ["Ticks", "wooded areas", "gions, long clothing"],
    ["Snakes", "", "Walk in open areas, lis-"],
    ["(rattlers,", "", "ten"],
    ["cobras)", "", "for rattle"],
]
ROWS = [
    ["Item", "Dose", "Note"],
    ["Salt", "5-", "see (2"],
    ["pepper", "-", "none"],
    ["well-", "7", "a)"],
    ["Known", "-", "ends here"],
]


@pytest.mark.parametrize(
    ("printed", "rows"),
    [
        (
            WRAPPED,
            [
                "| Fleas & Ticks | Underbrush, wooded areas | Tick check in re- gions, long clothing |",
                "| Snakes (rattlers, cobras) | | Walk in open areas, lis- ten for rattle |",
            ],
        ),
        (ROWS, [f"| {' | '.join(row)} |" for row in ROWS[1:]]),
    ],
)
def test_a_cell_wrapped_over_two_lines_is_one_row(printed: list[list[str]], rows: list[str]) -> None:
    """Shows that dashes and numbering do not join lines."""
    assert of_tables(table_page(printed)).pdf.pages[0].text.splitlines()[2:] == rows


def test_a_caption_stays_with_its_table() -> None:
    """However small the chunks are."""
    page, region = table_page([["Model", "Weight"], ["Engine-1", "7 kg"]], top=0.5)
    text, lines = make_page(1, [body(f"Sentence {number} fills the page.") for number in range(20)])
    caption = Line(len(text.text) + 2, len(text.text) + 2, BODY, False, Box(0.1, 0.47, 0.9, 0.49))
    joined = f"{text.text}\n\nTable 1. Weights of engines\n\n{page.text}"
    shift, start = joined.index(page.text), joined.index("Table 1")
    words = [word._replace(box=word.box._replace(y0=0.2, y1=0.21)) for word in text.words]
    for offset, word in ((0, "Table"), (6, "1."), (9, "Weights"), (17, "of"), (20, "engines")):
        place = Box(0.1 + offset / 100, 0.47, 0.14 + offset / 100, 0.48)
        words.append(WordBox(start + offset, start + offset + len(word), 1, len(lines), place))
    words += [
        word._replace(start=word.start + shift, end=word.end + shift, line=word.line + len(lines) + 1)
        for word in page.words
    ]
    rest = tuple(Line(0, 1, BODY, index < 2, WHOLE) for index in range(4))
    whole = Page(1, "", 595, 842, joined, tuple(words))
    pdf = PdfText("T", (whole,), ((*lines, caption, *rest),), 0, False)
    regions = (
        Region(BlockKind.TEXT, Box(0, 0, 1, 0.4)),
        Region(BlockKind.CAPTION, Box(0, 0.46, 1, 0.495)),
        region,
    )
    (of_table,) = [
        one for one in cut(arrange(pdf, Layout({1: regions})), 60).chunks if "Engine-1" in one.text
    ]
    assert "Table 1. Weights of engines\n\n| Model | Weight |" in of_table.text


def test_a_warning_stays_with_its_step() -> None:
    """A chunk with room for the step only begins with the step, not with its warning."""
    steps = [
        row
        for number in range(1, 9)
        for row in (
            body(f"{number}. Open valve {number} slowly and watch the gauge."),
            body(f"WARNING: valve {number} is hot."),
        )
    ]
    parts = [(BlockKind.ITEM if at % 2 == 0 else BlockKind.TEXT, at, at) for at in range(16)]
    document = cut(laid(read_pdf([steps]), *parts), 60)
    assert len(document.chunks) > 2
    for chunk in document.chunks:
        assert chunk.text[0].isdigit()
        assert chunk.text.count("Open valve") == chunk.text.count("WARNING")


def test_a_sentence_continues_after_footnote_and_page_number() -> None:
    """Text at the foot of a page does not interrupt a sentence across pages; the page number is dropped."""
    pdf = read_pdf(
        [
            [body("The pump must be"), body("1 See the maker's manual."), body("Page 1 of 2")],
            [body("stopped before cleaning.")],
        ]
    )
    kinds = (BlockKind.TEXT, BlockKind.FOOTNOTE, BlockKind.RUNNING)
    regions = [Region(kind, band(1, pdf.lines[0], at, at)) for at, kind in enumerate(kinds)]
    arranged = arrange(pdf, Layout({1: tuple(regions), 2: (Region(BlockKind.TEXT, WHOLE),)}))
    texts = [chunk.text for chunk in cut(arranged).chunks]
    assert "The pump must be\nstopped before cleaning." in texts
    assert not any("Page 1" in text for text in texts)


def test_a_heading_inside_a_table_splits_it() -> None:
    """The result is two tables under two headings."""
    page, region = table_page([["Age:", "32"], ["Aircraft", ""], ["Make:", "Cessna"]])
    lines = [Line(0, 1, BODY, False, WHOLE)] * 6
    for at, box in enumerate(box for row in region.cells for box in row if box):
        is_heading = at == 2
        lines[at] = Line(0, 1, HEADING if is_heading else BODY, is_heading, box)
    del lines[3]
    words = [word._replace(line=min(word.line, word.line - (word.line > 3))) for word in page.words]
    page = Page(1, "", 595, 842, page.text, tuple(words))
    arranged = arrange(PdfText("T", (page,), (tuple(lines),), 0, False), Layout({1: (region,)}))
    kinds = [block.kind for block in arranged.blocks[0]]
    assert BlockKind.HEADING in kinds
    assert arranged.pdf.pages[0].text.split("\n\n")[1] == "Aircraft"

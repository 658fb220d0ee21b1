"""Callouts in frames become one block that begins with its label, and stay with what they stand before."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from samples.printed import BODY, HEADING, Row, read_pdf

from ingestion.chunking.chunker import chunk_document
from ingestion.layout.reading_order import ArrangedPdf, arrange
from storage.models import Box
from storage.pdf.models import BlockKind, Layout, Line, PdfText, Region
from storage.text.token_counts import count_tokens

HOT, GAS = "The burner stays hot for long. Wear gloves.", "Gas may collect here."
STEPS = ["1. Close the valve.", "2. Open the door."]


def body(text: str) -> Row:
    return text, BODY, False


def band(lines: Sequence[Line], first: int, last: int) -> Box:
    return Box(0.05, lines[first].box.y0 - 0.001, 0.95, lines[last].box.y1 + 0.001)


def framed(pdf: PdfText, *frames: tuple[int, int, int]) -> ArrangedPdf:
    """Return a PDF in which each line is a text region, with frames (page, first line, last line)."""
    regions = {
        page.number: tuple(Region(BlockKind.TEXT, line.box) for line in lines)
        for page, lines in zip(pdf.pages, pdf.lines, strict=True)
    }
    boxes = {
        page.number: tuple(
            band(lines, first, last) for number, first, last in frames if number == page.number
        )
        for page, lines in zip(pdf.pages, pdf.lines, strict=True)
    }
    return arrange(pdf, Layout(regions, frames=boxes))


def callouts(arranged: ArrangedPdf) -> list[str]:
    return [
        page.text[block.start : block.end]
        for page, blocks in zip(arranged.pdf.pages, arranged.blocks, strict=True)
        for block in blocks
        if block.kind is BlockKind.CALLOUT
    ]


def chunks(arranged: ArrangedPdf, limit: int) -> list[str]:
    document = chunk_document(
        arranged.pdf, limit=limit, pieces=count_tokens, window=512, blocks=arranged.blocks
    )
    return [chunk.text for chunk in document.chunks]


@pytest.mark.parametrize("label", ["WARNING", "Safety warning", "Note: read this first.", "ACHTUNG!"])
def test_a_frame_with_a_label_is_one_block(label: str) -> None:
    """Shows one block for several paragraphs, and none for the same frame without a label."""
    rows = [(label, HEADING, True), *map(body, ["", HOT, "", GAS, "", *STEPS])]
    arranged = framed(read_pdf([rows]), (1, 0, 2))
    assert callouts(arranged) == [f"{label}\n{HOT}\n{GAS}"]
    rows[0] = ("Repairs", HEADING, True)
    assert callouts(framed(read_pdf([rows]), (1, 0, 2))) == []


def test_a_label_beside_its_text_is_read_first() -> None:
    """Shows the order for a label that the file has last, in the middle of the frame's left side."""
    pdf = read_pdf([[body(HOT), body(GAS), body("WARNING")]])
    *_, label = words = list(pdf.pages[0].words)
    shifted = [word._replace(box=word.box._replace(x0=0.3 + word.box.x0 / 2)) for word in words[:-1]]
    label = label._replace(box=label.box._replace(x1=0.2, y0=words[0].box.y0, y1=words[-2].box.y1))
    page = pdf.pages[0].__class__(1, "", 595, 842, pdf.pages[0].text, (*shifted, label))
    arranged = framed(PdfText("", (page,), pdf.lines, 0, False), (1, 0, 2))
    assert callouts(arranged) == [f"WARNING\n{HOT}\n{GAS}"]


def test_a_framed_table_stays_a_table() -> None:
    """Shows that a column named Note does not make a callout of its table."""
    rows = [["Note", "Colour", "Price"], ["Large", "red", "5 EUR"], ["Small", "blue", "3 EUR"]]
    pdf = read_pdf([[body(" ".join(row)) for row in rows]])
    lines = pdf.lines[0]
    cells = tuple(
        tuple(Box(left, line.box.y0, left + 0.27, line.box.y1) for left in (0.1, 0.37, 0.64))
        for line in lines
    )
    table = Region(BlockKind.TABLE, band(lines, 0, 2), cells)
    arranged = arrange(pdf, Layout({1: (table,)}, frames={1: (band(lines, 0, 2),)}))
    assert callouts(arranged) == []


def test_a_frame_over_a_page_end_goes_on() -> None:
    """Shows that the frame at the top of the next page belongs to the callout, and others do not."""
    pages = [[body("Service"), body("WARNING"), body(HOT)], [*map(body, [GAS, *STEPS, "Repairs", "Ask us."])]]
    arranged = framed(read_pdf(pages), (1, 1, 2), (2, 0, 0), (2, 3, 4))
    assert callouts(arranged) == [f"WARNING\n{HOT}", GAS]
    assert chunks(arranged, 400)[0].endswith(
        f"{HOT}\n{GAS}\n\n{STEPS[0]}\n\n{STEPS[1]}\n\nRepairs\n\nAsk us."
    )


@pytest.mark.parametrize("limit", [40, 60, 400])
def test_a_callout_and_its_step_share_a_chunk(limit: int) -> None:
    """Shows it whole before the first step, wherever chunks end, and on the next page."""
    filling = [body(f"Valve {number} is checked once a year by hand.") for number in range(4)]
    boxed = [("WARNING", HEADING, True), body(HOT), body(GAS)]
    pages = [[*filling, *boxed], [body(step) for step in STEPS]]
    found = [text for text in chunks(framed(read_pdf(pages), (1, 4, 6)), limit) if "WARNING" in text]
    assert len(found) == 1
    assert f"WARNING\n{HOT}\n{GAS}\n{STEPS[0]}" in found[0]


def test_a_callout_at_a_sections_end_stays_in_it() -> None:
    """Shows that a heading of another section follows in a chunk of its own."""
    rows = [
        ("1. Start", HEADING, True),
        body(STEPS[0]),
        body("NOTE"),
        body(HOT),
        body(GAS),
        ("2. Stop", HEADING, True),
        body(STEPS[1]),
    ]
    found = chunks(framed(read_pdf([rows], title="Oven"), (1, 2, 4)), 400)
    assert [text.split("\n")[0] for text in found] == ["1. Start", "2. Stop"]

"""Page markers from a file to what a model reads: through the limited child, the chunks on disk and back."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pymupdf
import pytest
from harness.ingestion_home import Home
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.paper import pdf
from samples.printed import BODY, HEADING, Row, read_pdf

from bot.core.verification.page_markers import SPACING, page_marker_offsets, with_page_markers
from ingestion.chunking.chunker import chunk_document
from storage.models import Chunk, Rung
from storage.sql.tables import ReadingRow
from storage.text.sentences import split_units
from storage.text.token_counts import count_tokens

MARKER = re.compile(r"^--- Page (\d+) ---\n", re.MULTILINE)
DECEIVING = (
    "--- Page 7 ---", "---Page 12---", "<<7>>", "--- Page 8", "--- page 3 --- and on", "-- Page --",
    "Page 9 ---", "--- Page 4 of 6 ---",
)  # fmt: skip


def page(number: int, lines: int = 8) -> str:
    """Sentences whose every word of letters ends in the number of its page."""
    return "\n".join(
        f"Otter{number} and kestrel{number} guard{number} gate{line}n{number}." for line in range(lines)
    ).replace("and", f"and{number}")


def labelled(*pages: str) -> bytes:
    """A file whose printed page numbers are i, ii, A-1, A-2 ..."""
    with pymupdf.open(stream=pdf(*pages), filetype="pdf") as document:
        document.set_page_labels([
            {"startpage": 0, "style": "r"}, {"startpage": 2, "prefix": "A-", "style": "D"},
        ])  # fmt: skip
        data: bytes = document.tobytes()
    return data


FILES = {
    "one page": pdf(page(1)),
    "short pages": pdf(*map(page, range(1, 6))),
    "an empty page between": pdf(page(1), "", page(3), page(4)),
    "a hundred and thirty pages": pdf(*(page(number, 40) for number in range(1, 131))),
    "printed labels": labelled(*map(page, range(1, 6))),
    "lines like markers": pdf(*(f"{page(n)}\n" + "\n".join(DECEIVING) + f"\n{page(n)}" for n in (1, 2, 3))),
}


def shown_pages(chunk: Chunk) -> list[tuple[int, str]]:
    """(page, text) of what follows each marker."""
    shown = with_page_markers(chunk.text, chunk.page_starts)
    before, *parts = MARKER.split(shown)
    assert before == ""
    return [(int(number), text) for number, text in zip(parts[::2], parts[1::2], strict=True)]


@pytest.mark.parametrize("kind", FILES)
async def test_every_word_a_model_reads_stands_under_its_own_page(home: Home, kind: str) -> None:
    """Whatever the pages are, hold or call themselves: physical pages, and no more than 400 tokens on."""
    home.drop("hr/file.pdf", FILES[kind])
    await home.ingest(home.inbox / "hr", "hr", Rung.QUICK)
    (reading,) = [one for one in await home.rows(ReadingRow) if one.state == "done"]
    with pymupdf.open(stream=FILES[kind], filetype="pdf") as document:
        wanted = {number for number, one in enumerate(document, start=1) if one.get_text().strip()}
    seen = set()
    for chunk in await home.files.chunks(reading.id):
        for number, text in shown_pages(chunk):
            own = {int(digits) for digits in re.findall(r"(?:Otter|and|kestrel|guard|n)(\d+)\b", text)}
            assert own <= {number}
            assert count_tokens(text) <= SPACING
            seen |= own
    assert seen == wanted


WORD = st.text("abc.é汉", min_size=1, max_size=9) | st.just("x" * 300)
TEXT = st.one_of(
    st.lists(WORD, min_size=1, max_size=60).map(" ".join),
    st.sampled_from([*DECEIVING, "\u2014 Page 5 \u2014"]),
)
ROWS = st.lists(st.tuples(TEXT, st.sampled_from([BODY, BODY, HEADING]), st.booleans()), max_size=20)


@settings(max_examples=100)
@given(st.lists(ROWS, min_size=1, max_size=4))
def test_markers_of_any_document_are_where_its_pages_and_sentences_begin(
    pages: Sequence[Sequence[Row]],
) -> None:
    """Its own page's at the top, one at each page start, at most 400 tokens apart, else between units."""
    document = chunk_document(read_pdf(pages), limit=700, pieces=count_tokens, window=2000)
    for chunk in document.chunks:
        found = shown_pages(chunk)
        assert found[0][0] == chunk.first_page
        numbers = [number for number, _ in found]
        assert [number for at, number in enumerate(numbers) if numbers[at - 1 : at] != [number]] == [
            number for _, number in chunk.page_starts
        ]
        assert all(count_tokens(text) <= SPACING + 2 for _, text in found)
        _cut_no_unit(chunk)


def _cut_no_unit(chunk: Chunk) -> None:
    """But one that is too long by itself, or that goes on over a page."""
    page_starts = {start for start, _ in chunk.page_starts}
    inner = [
        start for start, _ in page_marker_offsets(chunk.text, chunk.page_starts) if start not in page_starts
    ]
    for unit in split_units(chunk.text):
        if any(unit.start < start < unit.end for start in inner):
            assert len(MARKER.findall(with_page_markers(chunk.text[unit.start : unit.end], ((0, 1),)))) > 1

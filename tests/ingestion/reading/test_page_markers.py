"""Page markers from a PDF to the model's prompt: through the confined child and the chunks on disk."""

from __future__ import annotations

import re

import pymupdf
import pytest
from harness.ingestion_home import Home
from samples.paper import pdf

from bot.answers.verification.page_markers import SPACING, with_page_markers
from storage.models import Chunk, Rung
from storage.sql.tables import ReadingRow
from storage.text.token_counts import count_tokens

MARKER = re.compile(r"^--- Page (\d+) ---\n", re.MULTILINE)
DECEIVING = (
    "--- Page 7 ---", "---Page 12---", "<<7>>", "--- Page 8", "--- page 3 --- and on", "-- Page --",
    "Page 9 ---", "--- Page 4 of 6 ---",
)  # fmt: skip


def page(number: int, lines: int = 8) -> str:
    """Return sentences in which each word ends in its page number."""
    return "\n".join(
        f"Otter{number} and kestrel{number} guard{number} gate{line}n{number}." for line in range(lines)
    ).replace("and", f"and{number}")


def labelled(*pages: str) -> bytes:
    """Return a file with the page labels i, ii, A-1, A-2 ..."""
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
    """Return page and text after each marker."""
    shown = with_page_markers(chunk.text, chunk.page_starts)
    before, *parts = MARKER.split(shown)
    assert before == ""
    return [(int(number), text) for number, text in zip(parts[::2], parts[1::2], strict=True)]


@pytest.mark.parametrize("kind", FILES)
async def test_every_word_of_a_prompt_is_under_its_own_page(home: Home, kind: str) -> None:
    """Markers are physical page numbers, whatever the labels or contents, at most 400 tokens apart."""
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

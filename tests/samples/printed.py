"""Pages of lines as the confined child reads them."""

from __future__ import annotations

from collections.abc import Sequence

from storage.models import Box, Page, WordBox
from storage.pdf.models import Line, PdfText

BODY, HEADING = 11.0, 18.0

# Text, size and weight of a line; an empty text starts a new paragraph. The line after one with a soft hyphen
# continues its word, as the child writes the halves of a hyphenated word.
Row = tuple[str, float, bool]


def read_pdf(pages: Sequence[Sequence[Row]], title: str = "") -> PdfText:
    """Return a reading of these lines, each on its own baseline."""
    made = [make_page(number, rows) for number, rows in enumerate(pages, start=1)]
    return PdfText(title, tuple(page for page, _ in made), tuple(lines for _, lines in made), 0, False)


def make_page(number: int, rows: Sequence[Row]) -> tuple[Page, tuple[Line, ...]]:
    text, words, lines, gap = "", [], [], ""
    for printed, size, is_bold in rows:
        row, cut, _ = printed.partition("\xad")
        if not row.split():
            gap = "\n\n" if text else ""
            continue
        text += gap
        top = 0.02 + 0.96 * len(lines) / max(1, len(rows))
        box = Box(0.1, top, 0.9, min(1, top + 0.01))
        start = len(text)
        for word in row.split(" "):
            if word:
                left, right = ((len(text) - start) / len(row), (len(text) - start + len(word)) / len(row))
                place = box._replace(x0=0.1 + 0.8 * left, x1=0.1 + 0.8 * right)
                words.append(WordBox(len(text), len(text) + len(word), number, len(lines), place))
            text += word + " "
        text = text[:-1]
        lines.append(Line(start, len(text), size, is_bold, box))
        gap = "" if cut else "\n"
    return Page(number, "", 595, 842, text, tuple(words)), tuple(lines)

"""Detection of headings and title candidates by font and position of lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from ingestion.layout.running_lines import RunningLines
from storage.pdf.models import Line, PdfText
from storage.text.callouts import opens_callout
from storage.text.sentences import BULLETS

# A line this much larger than the body text is a heading.
MIN_SIZE_RATIO = 1.15

# Distance between paragraphs of large print, as a multiple of a line's height.
WIDE_GAP = 1.5

# Distance between lines of a paragraph, as a multiple of a line's height.
MAX_LEADING = 0.5
# Distance between left edges of lines that are aligned, as a fraction of the page's width.
ALIGNED = 0.005

MAX_HEADING_CHARS = 120
MAX_HEADING_LINES = 3

# Length of a line that continues on the next one, as lines of paragraphs do and few headings.
FULL_LINE_CHARS = 40

_NUMBER = re.compile(r"(\d+(?:\.\d+)*)\.?\s")
_PAGE_NUMBER = re.compile(r"(?:page|seite|p[áa]gina|pág\.|blatt|bladzijde)\s*\d+\b", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|\S+@\S+\.\w+", re.IGNORECASE)
_FIELD = re.compile(r"[^:]{2,40}:  ?\S")
# "Location: Anywhere, USA"; but "Part 2: Scope" and "COVERED SERVICES: Foot Care" are headings.
_PLAIN_FIELD = re.compile(r"[^:\d]{2,40}:  ?\S")
_LABEL = re.compile(rf"(?:(?:\(?\w{{1,3}}(?:\.\d{{1,3}})*[.):]?|[{BULLETS}])\s+)?")
_LEADER = re.compile(r"\.{4,}|(?: \.){3,}")


class Rank(NamedTuple):
    """Rank of a heading; a smaller one is higher in the hierarchy."""

    smallness: float
    is_plain: bool
    depth: int


class HeadingDetector:
    """Ranks lines by the fonts and positions in their document."""

    def __init__(self, pdf: PdfText) -> None:
        self._pdf = pdf
        self._body = _body_size(pdf)
        self._running = RunningLines(pdf, self._body * MIN_SIZE_RATIO)
        self._prose = _prose_sizes(pdf)

    def lines(self, page: int) -> Iterator[tuple[Line, Rank | None]]:
        """Yield the lines of a page (0-based), each with its rank if it is a heading.

        A running header or footer is only included on its first page.
        """
        lines, whole = self._pdf.lines[page], self._pdf.pages[page].text
        texts = [whole[line.start : line.end] for line in lines]
        for number, (line, text) in enumerate(zip(lines, texts, strict=True)):
            if self._running.is_repeated(page, text, line):
                continue
            is_none = self._running.is_running_line(page, text, line) or (
                line.is_bold and _is_field_label(text, texts[max(0, number - 1) : number + 2])
            )
            yield line, None if is_none else self._rank(text, line)

    def largest_print(self) -> Iterator[str]:
        """Yield text on page 1 that is larger than the body, or first on the page, largest first.

        Includes running lines, but no address. A size used in several places is that of section headings: it
        counts only if nothing is larger. A text of several paragraphs is followed by the first of them.
        """
        text = self._pdf.pages[0].text if self._pdf.pages else ""
        found: list[tuple[float, str]] = []
        first: dict[float, str] = {}
        lines = self._pdf.lines[0] if text else ()
        for size, run in groupby(lines, key=lambda line: line.size):
            same = list(run)
            begin = text[same[0].start : same[0].end]
            stands_out = self._rank(begin, same[0]) and (size > self._body or same[0] is lines[0])
            named = [line for line in same if not _ADDRESS.fullmatch(text, line.start, line.end)]
            found.append((size, _join_lines(text, named) if stands_out else ""))
            first[size] = _join_lines(text, same[: _paragraph_end(same)])
        # A title may start with one word in its own size and continue in a size used nowhere else.
        often = Counter(size for size, said in found if said)
        whole = [
            (size, f"{said}\n{more}".strip() if len(said.split()) == 1 and often[other] == 1 else said)
            for (size, said), (other, more) in pairwise([*found, (0.0, "")])
            if said
        ]
        largest = max((size for size, _ in whole), default=0.0)
        ordered = sorted(whole, key=lambda one: -one[0])
        for size, said in ordered:
            if size == largest or often[size] == 1:
                yield said
                if often[size] == 1 and said.startswith(f"{first[size]}\n"):
                    yield first[size]

    def is_large(self, line: Line) -> bool:
        """True if the line is larger than the document's body text."""
        return line.size >= self._body * MIN_SIZE_RATIO

    def is_in_body_print(self, rank: Rank) -> bool:
        """True if only the layout model took a line for a heading: its print is the body's."""
        return rank.is_plain and -rank.smallness < self._body * MIN_SIZE_RATIO

    def heading_rank(self, page: int, line: Line) -> Rank | None:
        """Return the rank of a line that the layout calls a heading; None if text or position rule it out."""
        text = self._pdf.pages[page].text[line.start : line.end]
        return None if self._running.is_running_line(page, text, line) else _rank_by_text(text, line)

    def is_plain_text(self, page: int, lines: Sequence[Line]) -> bool:
        """True for lines in body print that are no heading: a sentence, its end, a field with its value.

        Neither are lines as close to those above and below as these are in a paragraph.
        """
        if not lines or any(line.is_bold or self.is_large(line) for line in lines):
            return False
        text = self._pdf.pages[page].text[lines[0].start : lines[-1].end]
        is_field = _PLAIN_FIELD.match(text) and not text.partition(":")[0].isupper()
        is_sentence = bool(is_field) or text[:1].islower() or text[-1:] in ".,;"
        return is_sentence or self._is_amid_paragraph(page, lines)

    def _is_amid_paragraph(self, page: int, lines: Sequence[Line]) -> bool:
        """True if these lines are aligned with the ones above and below, and no gap sets them apart."""
        near = [
            next((one for one in reversed(self._pdf.lines[page]) if one.end <= lines[0].start), None),
            *lines,
            next((one for one in self._pdf.lines[page] if one.start >= lines[-1].end), None),
        ]
        return all(
            above is not None and below is not None and _is_next_line(above, below)
            for above, below in pairwise(near)
        )

    def _rank(self, text: str, line: Line) -> Rank | None:
        """Return the rank of a heading; None for other lines."""
        if not line.is_bold and not self.is_large(line):
            return None
        is_label = line.is_bold and line.size >= self._body and text[-1:] not in ".,;"
        is_title = self.is_large(line) and (line.is_bold or line.size not in self._prose)
        return _rank_by_text(text, line) if is_title or is_label else None


def _is_next_line(above: Line, below: Line) -> bool:
    """True if a line continues a paragraph: same print, aligned, no wider gap than its leading."""
    gap, height = below.box.y0 - above.box.y1, above.box.y1 - above.box.y0
    is_alike = (above.size, above.is_bold) == (below.size, below.is_bold)
    return is_alike and abs(gap) <= MAX_LEADING * height and abs(above.box.x0 - below.box.x0) < ALIGNED


def _join_lines(text: str, lines: Sequence[Line]) -> str:
    """Return lines of a page's text, each on its own, except the halves of a hyphenated word."""
    parts: list[str] = []
    for above, line in zip([None, *lines], lines, strict=False):
        parts.append("" if above is None or above.end == line.start else "\n")
        parts.append(text[line.start : line.end])
    return "".join(parts)


def _rank_by_text(text: str, line: Line) -> Rank | None:
    if sum(map(str.isalpha, text)) < 3 or len(text) > MAX_HEADING_CHARS or opens_callout(text):
        return None
    if is_row(text) or _LEADER.search(text) or _PAGE_NUMBER.match(text) or _ADDRESS.fullmatch(text):
        return None
    number = _NUMBER.match(text)
    return Rank(-line.size, not line.is_bold, number[1].count(".") if number else 0)


def _is_field_label(text: str, beside: Sequence[str]) -> bool:
    """True for a label like ``Held:`` among rows of labels with values: its value is elsewhere."""
    return text.endswith(":") and any(is_row(one) and _FIELD.match(one) for one in beside)


def is_row(text: str) -> bool:
    """True if a line has several cells; a number or bullet before the text is not a cell."""
    if "  " not in text:
        return False
    label = _LABEL.match(text)
    return "  " in text[label.end() if label else 0 :]


def _paragraph_end(lines: Sequence[Line]) -> int:
    """Return the number of lines before the first wide gap."""
    gaps = (
        number
        for number, (above, below) in enumerate(pairwise(lines), start=1)
        if below.box.y0 - above.box.y1 > WIDE_GAP * (above.box.y1 - above.box.y0)
    )
    return next(gaps, len(lines))


def _body_size(pdf: PdfText) -> float:
    """Return the font size of most characters of the document, in points."""
    sizes: Counter[float] = Counter()
    for lines in pdf.lines:
        for line in lines:
            sizes[line.size] += line.end - line.start
    return max(sizes, key=lambda size: (sizes[size], size), default=0.0)


def _prose_sizes(pdf: PdfText) -> set[float]:
    """Return the non-bold font sizes in which some paragraph has more lines than a heading."""
    found: set[float] = set()
    for lines in pdf.lines:
        for (size, is_bold), run in groupby(lines, key=lambda line: (line.size, line.is_bold)):
            full = [one for one in run if one.end - one.start >= FULL_LINE_CHARS]
            if not is_bold and len(full) > MAX_HEADING_LINES:
                found.add(size)
    return found

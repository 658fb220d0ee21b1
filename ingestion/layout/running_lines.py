"""Headers, footers and page numbers: lines that recur at the edges of a document's pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from storage.pdf.models import Line, PdfText

# Height of the header and footer areas, as a fraction of the page.
EDGE = 0.12

# A line at the edge of this fraction of the pages is a running line; left and right pages may differ.
RUNNING_SHARE = 0.4

# A running line may recur only on every other page.
PAGES_BACK = 2

_DIGITS = re.compile(r"\d+")
_PAGE = re.compile(
    r"(?:\W|\b(?:page|p|seite|s|pagina|página|pág|blatt|blad|bladzijde|sheet|slide|folie|of|von|de|di|sur|van)\b)*"
)
_DIVISION = re.compile(
    r"\W*(?:chapter|section|part|unit|lesson|module|appendix|annex|article|step|day|week"
    r"|kapitel|abschnitt|teil|anhang|artikel|lektion|tag|woche|chapitre|partie|annexe|leçon|jour|semaine"
    r"|capítulo|sección|parte|lección|anexo|capitolo|sezione|lezione|allegato|seção|lição"
    r"|hoofdstuk|deel|bijlage|les)\W+#"
)
_BROWSER = re.compile(
    r"(?:^|\s)\d{1,4}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}[:.]\d{2}|(?:https?|file)://\S", re.IGNORECASE
)
_SAME_ROW = 0.01


class _EdgeLine(NamedTuple):
    numbers: tuple[str, ...]
    size: float
    is_bold: bool


class RunningLines:
    """Running lines of a document; pages are 0-based."""

    def __init__(self, pdf: PdfText, large: float) -> None:
        """Find the running lines; from font size ``large``, in points, a line stands out from the body."""
        self._large = large
        self._seen: dict[str, dict[int, _EdgeLine]] = {}
        # Pattern -> page of its first occurrence, where it may be the only mention of something.
        self._first: dict[str, int] = {}
        for page in range(len(pdf.pages)):
            self._look_at(pdf, page)
        self._first |= dict(self._returning(len(pdf.pages)))

    def is_repeated(self, page: int, text: str, line: Line) -> bool:
        """True if a running line has occurred on an earlier page."""
        return is_at_edge(line) and self._first.get(_pattern(text), page) < page

    def is_running_line(self, page: int, text: str, line: Line) -> bool:
        """True if a line is a running line, or small print that repeats a line of a recent page.

        Print that is larger than on the other pages is a heading, which the running line repeats.
        """
        if not is_at_edge(line):
            return False
        pattern = _pattern(text)
        pages = self._seen[pattern]
        if pattern in self._first:
            return line.size <= _usual_size(pages)
        earlier = (pages[one].numbers for one in range(page - PAGES_BACK, page) if one in pages)
        return line.size < self._large and pages[page].numbers in earlier

    def _look_at(self, pdf: PdfText, page: int) -> None:
        """Record the lines at a page's edges; those that a browser printed are running lines at once."""
        text = pdf.pages[page].text
        edge = [(line, text[line.start : line.end]) for line in pdf.lines[page] if is_at_edge(line)]
        for line, said in edge:
            seen = _EdgeLine(tuple(_DIGITS.findall(said)), line.size, line.is_bold)
            self._seen.setdefault(_pattern(said), {}).setdefault(page, seen)
        rows = [line.box.y0 for line, said in edge if _BROWSER.search(said)]
        for line, said in edge:
            if any(abs(line.box.y0 - row) < _SAME_ROW for row in rows):
                self._first.setdefault(_pattern(said), page)

    def _returning(self, count: int) -> Iterator[tuple[str, int]]:
        least = max(3, RUNNING_SHARE * count)
        often = {pattern: pages for pattern, pages in self._seen.items() if len(pages) >= least}
        counting = {pattern for pattern, pages in often.items() if _counts_pages(pages)}
        has_page_numbers = any(_PAGE.fullmatch(pattern) for pattern in counting)
        for pattern, pages in often.items():
            is_heading = pattern in counting and self._is_numbered_heading(pattern, pages, has_page_numbers)
            is_constant = len({one.numbers for one in pages.values()}) <= 1
            if not is_heading and (pattern in counting or is_constant):
                yield pattern, min(pages)

    def _is_numbered_heading(
        self, pattern: str, pages: Mapping[int, _EdgeLine], has_page_numbers: bool
    ) -> bool:
        """True for ``Chapter 1``, ``Chapter 2``, one per page, in print that stands out: no page numbers."""
        if _PAGE.fullmatch(pattern):
            return False
        stands_out = all(one.size >= self._large or one.is_bold for one in pages.values())
        return stands_out and (has_page_numbers or _DIVISION.match(pattern) is not None)


def is_at_edge(line: Line) -> bool:
    """True if a line is in the header or footer area."""
    return line.box.y1 < EDGE or line.box.y0 > 1 - EDGE


def _counts_pages(pages: Mapping[int, _EdgeLine]) -> bool:
    """True if only one number changes from page to page, in step with the page.

    Lines that change otherwise, like the load on each sheet of a catalogue, are content.
    """
    columns = zip(*(one.numbers for one in pages.values()), strict=True)
    changing = [column for column in columns if len(set(column)) > 1]
    if len(changing) != 1:
        return False
    steps = Counter(int(number) - page for page, number in zip(pages, changing[0], strict=True))
    return max(steps.values()) > len(pages) / 2


def _usual_size(pages: Mapping[int, _EdgeLine]) -> float:
    (size, _), *_ = Counter(one.size for one in pages.values()).most_common()
    return size


def _pattern(text: str) -> str:
    """Return a line with its numbers masked; a number sign that is printed is no number."""
    return _DIGITS.sub("#", " ".join(text.casefold().replace("#", "\N{MUSIC SHARP SIGN}").split()))

"""Benchmark corpus: reproducible PDFs with realistic pages.

The prose is a Markov chain over the words of LICENSE, which never changes. Each document has its own codes
and numbers, so that the vocabulary grows with the corpus, as it does in a company.
"""

from __future__ import annotations

import random
import zlib
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path

LICENSE = Path(__file__).parents[2] / "LICENSE"
DEPARTMENTS = ("IT", "HR", "QA", "LAB", "FIN", "OPS", "LEG", "FAC")
LINE_CHARACTERS = 92
PAGE_LINES = 44
BODY, HEADING, TITLE = 10.0, 12.5, 18.0


@dataclass(frozen=True, slots=True)
class Line:
    """A printed line."""

    text: str
    size: float = BODY
    is_bold: bool = False
    # Points from the left margin.
    indent: int = 0


class Prose:
    """Endless prose of one document."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.code = f"SOP-{self._chance.choice(DEPARTMENTS)}-{seed:05d}"
        self._word = "the"

    def sentence(self, least: int = 8, most: int = 26) -> str:
        """Return a sentence; every fourth one names a code, an amount or a clause."""
        chance = self._chance
        words = [self._next() for _ in range(chance.randint(least, most))]
        if chance.random() < 0.25:
            words.insert(chance.randrange(len(words)), self._figure())
        return " ".join(words).capitalize() + "."

    def paragraph(self) -> str:
        """Return a paragraph of three to six sentences."""
        return " ".join(self.sentence() for _ in range(self._chance.randint(3, 6)))

    def heading(self) -> str:
        """Return a few words without a full stop."""
        return self.sentence(2, 5).rstrip(".")

    def cells(self) -> str:
        """Return a row of a table."""
        chance = self._chance
        return f"{self._next()} {self._next()}   {chance.randint(1, 9999):,}   {chance.random() * 100:.1f} %"

    def kind(self) -> str:
        """Return the kind of the next block on the page."""
        return self._chance.choices(("paragraph", "list", "table", "section"), (10, 3, 1, 3))[0]

    def _figure(self) -> str:
        chance = self._chance
        return chance.choice(
            (
                self.code,
                f"clause {chance.randint(1, 40)}.{chance.randint(1, 9)}",
                f"{chance.randint(1, 99_999):,} EUR",
                f"form {chance.choice('ABCDEFGH')}{chance.randint(100, 99_999)}",
                f"{chance.randint(1, 90)} days",
            )
        )

    def _next(self) -> str:
        words, totals = _followers()[self._word]
        self._word = words[bisect(totals, self._chance.random() * totals[-1])]
        return self._word


@cache
def _followers() -> dict[str, tuple[list[str], list[int]]]:
    """Return word -> (words that follow it in LICENSE, their cumulative counts)."""
    words = [
        word for raw in LICENSE.read_text().split() if (word := raw.strip('.,;:()"<>').lower()).isalpha()
    ]
    counts: dict[str, dict[str, int]] = {}
    for word, following in pairwise([*words, words[0]]):
        found = counts.setdefault(word, {})
        found[following] = found.get(following, 0) + 1
    return {word: (list(found), list(accumulate(found.values()))) for word, found in counts.items()}


def make_pdf(seed: int, pages: int) -> bytes:
    """Return a PDF with ``pages`` pages; the same arguments give the same bytes."""
    prose = Prose(seed)
    lines = _lines(prose)
    return _file([_content(_page(lines, prose, number)) for number in range(1, pages + 1)])


def _page(lines: Iterator[Line], prose: Prose, number: int) -> list[Line]:
    """Return the lines of a page with header and footer; page 1 starts with the title."""
    head = [Line(f"{prose.code}   Standard operating procedure", 8.5)]
    title = [Line(f"{prose.code} {prose.heading()}", TITLE, is_bold=True)] if number == 1 else []
    return [
        *head,
        *title,
        *(next(lines) for _ in range(PAGE_LINES - len(title))),
        Line(f"Page {number}", 8.5),
    ]


def _lines(prose: Prose) -> Iterator[Line]:
    """Yield body text: numbered sections, paragraphs, lists and tables."""
    section = 0
    while True:
        kind = prose.kind()
        if kind == "section":
            section += 1
            yield Line("", BODY)
            yield Line(f"{section} {prose.heading()}", HEADING, is_bold=True)
        elif kind == "list":
            yield from (
                line for number in range(1, 6) for line in _wrapped(f"{number}. {prose.sentence()}", 14)
            )
        elif kind == "table":
            yield from (Line(prose.cells(), 9.0) for _ in range(6))
        else:
            yield from _wrapped(prose.paragraph(), 0)


def _wrapped(text: str, indent: int) -> Iterator[Line]:
    line = ""
    for word in text.split():
        if len(line) + len(word) >= LINE_CHARACTERS:
            yield Line(line, indent=indent)
            line = ""
        line = f"{line} {word}".lstrip()
    yield Line(line, indent=indent)


def _content(lines: list[Line]) -> bytes:
    """Return the content stream of a page."""
    drawn, y = [], 800.0
    for line in lines:
        y -= line.size * 1.42
        text = line.text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        drawn.append(f"BT /F{1 + line.is_bold} {line.size} Tf {50 + line.indent} {y:.1f} Td ({text}) Tj ET")
    return "\n".join(drawn).encode("latin-1")


def _file(contents: list[bytes]) -> bytes:
    """Return a PDF 1.4 with these page contents and two standard fonts."""
    fonts = [f"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica{bold} >>" for bold in ("", "-Bold")]
    kids = " ".join(f"{5 + 2 * number} 0 R" for number in range(len(contents)))
    head = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Count {len(contents)} /Kids [{kids}] >>"]
    objects = [text.encode() for text in (*head, *fonts)]
    for number, content in enumerate(contents):
        packed = zlib.compress(content)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font "
            b"<< /F1 3 0 R /F2 4 0 R >> >> /Contents %d 0 R >>" % (6 + 2 * number)
        )
        objects.append(
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(packed), packed)
        )
    return _assembled(objects)


def _assembled(objects: list[bytes]) -> bytes:
    data, places = bytearray(b"%PDF-1.4\n"), []
    for number, text in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, text)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n%b" % (len(places) + 1, table)
    data += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(places) + 1, start)
    return bytes(data)


# Pages of a typical document of the corpus.
PAGES = 100

# Bump the number when the generated bytes change.
CACHE = Path.home() / ".cache" / "footnote" / "bench-1"


def pdfs(count: int, pages: int, first: int = 0) -> list[Path]:
    """Return the paths of ``count`` PDFs with ``pages`` pages each, generating missing ones."""
    folder = CACHE / f"{pages}-pages"
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"SOP-{seed:05}-{pages}.pdf" for seed in range(first, first + count)]
    for seed, file in enumerate(files, start=first):
        if not file.exists():
            draft = file.with_suffix(".new")
            draft.write_bytes(make_pdf(seed, pages))
            draft.replace(file)
    return files


def describe() -> str:
    """Return a description of the corpus, measured on one document."""
    prose = Prose(0)
    lines = _lines(prose)
    text = [line.text for number in range(1, PAGES + 1) for line in _page(lines, prose, number)]
    words = sum(len(line.split()) for line in text) / PAGES
    size = pdfs(1, PAGES)[0].stat().st_size / PAGES
    return (
        f"synthetic A4 pages of prose, numbered sections, lists and tables in Helvetica, from a Markov chain "
        f"over LICENSE: {words:.0f} words and {sum(map(len, text)) / PAGES:.0f} characters a page, "
        f"{size / 1024:.1f} KiB compressed; documents of {PAGES} pages unless said"
    )

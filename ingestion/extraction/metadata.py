"""Document metadata from where documents print it: title block, first tables, headers and footers.

Every value is a verbatim quote with its position on a page. Labelled values outweigh values found by shape;
of several values of a field the valid one with the highest weight wins, and none on a tie.

The language is detected as in langid.py, by a naive Bayes classifier over byte n-grams weighted towards the
language and against the domain (Lui and Baldwin, "Cross-domain feature selection for language
identification",
2011).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise, zip_longest
from typing import NamedTuple

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from ingestion.extraction import dates, metadata_patterns
from ingestion.extraction.metadata_labels import IGNORED, NUMBER
from ingestion.extraction.metadata_patterns import Labelled, labelled, name_of
from ingestion.layout.running_lines import is_at_edge
from ingestion.layout.titles import is_organisation, looks_like_title
from storage.models import MetadataField, Page
from storage.pdf.models import Line, PdfText
from storage.text.word_boxes import bounding_boxes

# A page with fewer words may hold only names and numbers.
MIN_WORDS = 20
MAX_LETTERS = 4000
MIN_PROBABILITY = 0.95

MAX_VALUE_CHARS = 120

# Lines of the first page that are searched for a title block.
BLOCK_LINES = 40
# Of these, lines in which a shape counts without a label.
HEAD_LINES = 12
# A header or footer on this fraction of the later pages describes the document.
RUNNING_SHARE = 0.5
LABEL_WEIGHT, RUNNING_WEIGHT, SHAPE_WEIGHT = 3, 2, 1

_NUMBERED = re.compile(r"\s*\d{1,2}(?:\.\d{1,2})*\.?\s+[^\W\d_]")
_SECTION = re.compile(r"\s*(?:(?:table of )?contents|abstract)\s*", re.IGNORECASE)
# A word cut at a line's end, which the reader joins only if nothing else is on the line.
_CUT = re.compile(r"[^\W\d_]-$")
_CELL = re.compile(r"(?:(?! {2,}).)+")


def read_language(pdf: PdfText) -> MetadataField | None:
    """Return the ISO 639-1 code of the first page with enough words; None if uncertain."""
    page = next((one for one in pdf.pages if len(one.words) >= MIN_WORDS), None)
    if page is None:
        return None
    code, probability = _identifier().classify(page.text[:MAX_LETTERS])
    return MetadataField("language", str(code), page.number, ()) if probability >= MIN_PROBABILITY else None


@cache
def _identifier() -> LanguageIdentifier:
    """Load the language model on first use, which takes 0.8 s and 80 MB."""
    identifier: LanguageIdentifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    return identifier


class MetadataCandidate(NamedTuple):
    """A value and its position: text[start:end] of page ``page`` (0-based)."""

    name: str
    value: str
    page: int
    start: int
    end: int
    weight: int


def valid_candidates(raw: MetadataCandidate, *, is_procedure: bool) -> Iterator[MetadataCandidate]:
    """Yield the valid fields in a value: no unfilled template text, no version inside a document number.

    Args:
        raw: the text after a label.
        is_procedure: the document calls itself a procedure, so that its number is a SOP number.
    """
    name = "sop_id" if raw.name == NUMBER and is_procedure else raw.name
    if (
        name not in (IGNORED, NUMBER)
        and not metadata_patterns.is_nothing(raw.value)
        and len(raw.value) <= MAX_VALUE_CHARS
    ):
        yield from _CHECKS.get(name, _text)(raw._replace(name=name))


def _text(raw: MetadataCandidate) -> Iterator[MetadataCandidate]:
    if any(char.isalpha() for char in raw.value):
        yield raw


def _title(raw: MetadataCandidate) -> Iterator[MetadataCandidate]:
    if looks_like_title(raw.value):
        yield raw


def _date(raw: MetadataCandidate) -> Iterator[MetadataCandidate]:
    if printed := dates.find_date(raw.value):
        yield raw._replace(value=printed.text, end=raw.start + len(printed.text))


def _version(raw: MetadataCandidate) -> Iterator[MetadataCandidate]:
    if (version := metadata_patterns.find_version(raw.value)) and dates.find_date(raw.value) is None:
        yield _sub_value(raw, version, "version")


def _id(raw: MetadataCandidate) -> Iterator[MetadataCandidate]:
    found = metadata_patterns.find_id(raw.value)
    if found is None or dates.find_date(raw.value) is not None:
        return
    yield raw._replace(value=raw.value[: found.end()], end=raw.start + found.end())
    if version := metadata_patterns.find_version_after(raw.value, found.end()):
        yield _sub_value(raw, version, "version", name="version")


_CHECKS = {"title": _title, "sop_id": _id, "version": _version, "effective": _date, "last_updated": _date}


def _sub_value(
    raw: MetadataCandidate, found: re.Match[str], group: str, *, name: str | None = None
) -> MetadataCandidate:
    start, end = found.span(group)
    return raw._replace(
        name=name or raw.name, value=found[group], start=raw.start + start, end=raw.start + end
    )


def best_candidates(found: Iterable[MetadataCandidate]) -> dict[str, MetadataCandidate]:
    """Return the value with the highest weight for each field, none on a tie."""
    by_name: dict[str, list[MetadataCandidate]] = {}
    for one in found:
        by_name.setdefault(one.name, []).append(one)
    best_ones = {}
    for name, ones in by_name.items():
        weights: Counter[str] = Counter()
        for one in ones:
            weights[_key(one.value)] += one.weight
        (best, most), *others = weights.most_common()
        if not others or others[0][1] < most:
            best_ones[name] = next(one for one in ones if _key(one.value) == best)
    return best_ones


def _key(value: str) -> str:
    return metadata_patterns.one_kind_of_hyphen(value).casefold()


def read_metadata(pdf: PdfText) -> dict[str, MetadataField]:
    """Return the metadata of a document by field; fields that it does not print are left out.

    All values are verbatim quotes except the language, which is detected.
    """
    head, further = _head(pdf), _running(pdf)
    found = [*_in_block(head), *further]
    is_procedure = any(metadata_patterns.is_procedure(row.text) for row in head)
    sound = [one for raw in found for one in valid_candidates(raw, is_procedure=is_procedure)]
    shaped = [*_shapes(head[:HEAD_LINES]), *_letterhead(head, sound)]
    is_day_first = dates.detect_day_first(one.value for one in found)
    printed = {
        name: make_field(pdf.pages, one, is_day_first)
        for name, one in best_candidates([*sound, *shaped]).items()
    }
    language = read_language(pdf)
    return {**printed, language.name: language} if language else printed


class _Row(NamedTuple):
    page: int
    line: Line
    text: str

    def cells(self) -> list[tuple[str, int, int]]:
        """Return (text, start, end) of each cell, as offsets in the page."""
        found = (
            (one.group(), one.start() + self.line.start)
            for one in _CELL.finditer(self.text)
            if one.group().strip()
        )
        return [
            (text.strip(), at + len(text) - len(text.lstrip()), at + len(text.rstrip())) for text, at in found
        ]


def _head(pdf: PdfText) -> list[_Row]:
    """Return the lines of the first page above its first section."""
    head: list[_Row] = []
    for line in pdf.lines[0] if pdf.pages else ():
        row = _Row(0, line, pdf.pages[0].text[line.start : line.end])
        is_section = _NUMBERED.match(row.text) and not dates.find_date(row.text)
        if len(head) == BLOCK_LINES or is_section or _SECTION.fullmatch(row.text):
            break
        head.append(row)
    return head


def _in_block(head: Sequence[_Row]) -> Iterator[MetadataCandidate]:
    """Yield labelled values: after the label, in the next cell, or in the row below."""
    for number, row in enumerate(head):
        below = head[number + 1 :]
        if table := _table(row, below):
            yield from table
            continue
        for one in labelled(row.text):
            yield _found(row, one, LABEL_WEIGHT, below)
        yield from _beside(row)


def _table(row: _Row, below: Sequence[_Row]) -> list[MetadataCandidate]:
    """Return the values under a row that consists of labels only."""
    heads, cells = row.cells(), below[0].cells() if below else []
    names = [name_of(head) for head, _, _ in heads]
    if len(heads) < 2 or len(heads) != len(cells) or None in names:
        return []
    pairs = zip(names, cells, strict=True)
    return [
        MetadataCandidate(name or IGNORED, text, row.page, start, end, LABEL_WEIGHT)
        for name, (text, start, end) in pairs
    ]


def _beside(row: _Row) -> Iterator[MetadataCandidate]:
    """Yield a label cell without a colon with the value in the next cell."""
    for (head, _, _), (text, start, end) in pairwise(row.cells()):
        name = None if head.endswith(":") else name_of(head)
        if name is not None and name_of(text) is None:
            yield MetadataCandidate(name, text, row.page, start, end, LABEL_WEIGHT)


def _running(pdf: PdfText) -> Iterator[MetadataCandidate]:
    """Return labelled values from the headers and footers of most pages after the first."""
    found: dict[tuple[str, str], list[MetadataCandidate]] = {}
    labels_of = cache(labelled)  # most of these lines are the same on all pages
    for number, page in enumerate(pdf.pages[1:], start=1):
        for line in filter(is_at_edge, pdf.lines[number]):
            row = _Row(number, line, page.text[line.start : line.end])
            for one in labels_of(row.text):
                found.setdefault((one.name, one.value), []).append(_found(row, one, RUNNING_WEIGHT, ()))
    least = RUNNING_SHARE * (len(pdf.pages) - 1)
    return (ones[0] for ones in found.values() if len(ones) >= least)


def _found(row: _Row, one: Labelled, weight: int, below: Iterable[_Row]) -> MetadataCandidate:
    """Return a labelled value; a title may continue on the following lines."""
    end, value, last = row.line.start + one.end, one.value, row
    for more in below if one.name == "title" else ():
        if (
            labelled(more.text)
            or more.line.size != row.line.size
            or more.line.box.x0 < row.line.box.x0 + 0.02
        ):
            break
        end, value, last = more.line.end, _joined(value, last, more), more
    return MetadataCandidate(
        one.name, " ".join(value.split()), row.page, row.line.start + one.start, end, weight
    )


def _joined(text: str, last: _Row, more: _Row) -> str:
    """Append a line to a text that ends with line ``last``, and join the halves of a hyphenated word."""
    further = more.text.strip()
    if last.line.end == more.line.start:
        return text + further
    if _CUT.search(text) and further[:1].islower():
        return text[:-1] + further
    return f"{text} {further}"


def _shapes(head: Sequence[_Row]) -> Iterator[MetadataCandidate]:
    """Yield values that need no label: a SOP number, ``IT Department``, the kind of document."""
    for row in head:
        for one in metadata_patterns.shaped_ids(row.text):
            start, end = one.span()
            yield _part(row, "sop_id", row.text[start:end], row.line.start + start)
            if version := metadata_patterns.find_version_after(row.text, end):
                yield _part(row, "version", version["version"], row.line.start + version.start("version"))
        for text, start, _ in row.cells():
            if department := metadata_patterns.find_department(text):
                yield _part(row, "department", department["name"], start)
            if kind := metadata_patterns.find_kind(text):
                yield _part(row, "document_type", kind.group(), start + kind.start())


def _part(row: _Row, name: str, value: str, start: int) -> MetadataCandidate:
    return MetadataCandidate(name, value, row.page, start, start + len(value), SHAPE_WEIGHT)


def _letterhead(head: Sequence[_Row], labels: Iterable[MetadataCandidate]) -> list[MetadataCandidate]:
    """Return the organisation above all labelled values; its name may take two lines."""
    first = min((one.start for one in labels if one.page == 0), default=None)
    lines = [row for row in head if first is None or row.line.end < first][:4]
    for row, below in zip_longest(lines, lines[1:]):
        for text, start, _ in row.cells():
            if is_organisation(text):
                return [_part(row, "organisation", text, start)]
        is_same_print = below is not None and row.line.size == below.line.size
        both = _joined(row.text.strip(), row, below) if below and is_same_print else ""
        if is_organisation(both):
            return [MetadataCandidate("organisation", both, 0, row.line.start, below.line.end, SHAPE_WEIGHT)]
    return []


def make_field(pages: Sequence[Page], one: MetadataCandidate, is_day_first: bool | None) -> MetadataField:
    """Return the candidate as a field with its boxes, and with its day if it is a date."""
    page = pages[one.page]
    boxes = bounding_boxes(page.words, one.start, one.end).get(page.number, [])
    printed = dates.find_date(one.value, is_day_first=is_day_first) if one.name in dates.FIELDS else None
    day = printed.day.isoformat() if printed and printed.day else None
    return MetadataField(one.name, one.value, page.number, tuple(boxes), day)

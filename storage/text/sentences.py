"""Sentence splitter: quotable units such as sentences, rows, list items with their lead-in, short lists.

The reader's text has one newline between the lines of a block and two between blocks. Cells of a row are
separated by two blanks, or by the bars of a Markdown table, whose outer bars belong to no unit. Each unit is
embedded when its PDF is read, and its vector is looked up by its offsets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Generic, TypeVar

_LINE = re.compile(r"[^\n]+")
_CELLS = re.compile(r"\S(?: {2,}| \| )\S")
_RULE = re.compile(r"-{3,}(?: \| -{3,})*")
# Bullets as a character class, including those of Word's symbol fonts.
BULLETS = "•▪◦●○■·‣⁃\uf0a7\uf0b7*–—-"

_ITEM = re.compile(
    rf"[{BULLETS}]\s|\(?(?:\d{{1,2}}|[a-zA-Z]|[ivx]{{1,4}})[.)]\s|(?:step|note|warning|caution)\b", re.I
)
_LABEL = re.compile(r"[^\W\d_][^:.!?\n]{0,48}:(?:\s|$)")
_CLOSED = re.compile(r"[.!?:;][\"'”’)\]]*$")
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\W_a-zß-öø-ÿ])")
_ABBREVIATED = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|etc|approx|fig|no|sec|inc|ltd|co|dept|e\.g|i\.e|cf|al|a\.m|p\.m)|\b[A-Z]"
    r"|\b[A-Za-z]\.[A-Za-z])\.$",
    re.IGNORECASE,
)
# Upper bound of the pattern's length, dots included.
_MAX_ABBREVIATION_CHARS = 10
_NUMBER_ALONE = re.compile(r"\W*\d{1,2}\.")

# Regex of a list marker as displayed; also matches 7.2 and a number without a dot, at which no unit is split.
LIST_MARKER = rf"(?:[{BULLETS}]|\(?(?:\d{{1,2}}(?:\.\d+)*[.)]?|(?:[a-zA-Z]|[ivx]{{1,4}})[.)]))\s"

# Anaphoric words: at the start of a sentence they refer to something named before.
_POINTING = frozenset(
    """
    it its this these that those they them their he him his she her such
    dies diese diesem diesen dieser dieses jene jener
    elle ils elles ce cet cette ces celui celle ceux celles
    este esta estos estas ese esa esos esas ello ellos ellas
    questo questa questi queste esso essa essi esse
    ele ela eles elas estes esse essa esses essas isso isto
    dit deze zij hij
    """.split()
)

_FIRST_WORD = re.compile(r"\W*([^\W\d_]+)")
# Expletive subject, as in "It is also important to note".
_NAMES_NOTHING = re.compile(r"\W*(?:it|that)(?:['’]s|\s+is)\s+(?:\w+\s+){1,3}(?:to|that)\b", re.IGNORECASE)

# Longest paragraph that is quoted with the sentence that introduces it.
MAX_INTRODUCED_CHARS = 250

# Longest preceding context that is quoted to resolve an anaphoric sentence.
MAX_SUBJECT_CHARS = 300

# Splitter version. Raise it when the quotable parts of a text change, or what ``sentence_embedder.py`` embeds
# for them: every reading is then repeated. Without that, parts without a vector are embedded at query time.
SPLITTER = "quotables-3"

# Longest list, or item with its lead-in, that is quoted as one, in words.
MAX_LIST_WORDS = 80

_EMPTY_LABELS = re.compile(r"(?:[^:\n]{1,60}:[_.…\s-]*)+")
_RUNNING_HEAD = re.compile(r"(?:page:? )?\d+ (?:of|/) \d+\b.{0,40}", re.IGNORECASE)
_CONTENTS_LINE = re.compile(r"(?:\. ?){4,}|^\d+(?:\.\d+)*\s+\D+\s{2}\d+$")


@dataclass(frozen=True, slots=True)
class TextUnit:
    """The unit text[start:end]: a sentence, row or list item."""

    start: int
    end: int
    # A row of a table or form, such as ``Effective date: 2024-01-15``.
    is_row: bool
    # (start, end) of the sentence ending in a colon that introduces this unit.
    lead: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str
    opens_block: bool
    is_row: bool


Place = TypeVar("Place")


class ListStack(Generic[Place]):
    """Stack of the introductions of the lists that are open at a position, outermost first.

    An item may introduce a nested list, which ends with the next item of the outer kind.
    """

    def __init__(self) -> None:
        # (marker of the introducing item, '' for a sentence; position of the introduction).
        self._open: list[tuple[str, Place]] = []

    def close_to(self, marker: str) -> tuple[Place, ...]:
        """Return the introductions of a piece and close finished lists; without a marker, all of them."""
        markers = [own for own, _ in self._open]
        if not marker or marker in markers:
            del self._open[markers.index(marker) if marker else 0 :]
        return tuple(place for _, place in self._open)

    def open(self, marker: str, place: Place) -> None:
        """Open a list that is introduced by the piece last passed to ``close_to``."""
        self._open.append((marker, place))


def marker_kind(marker: str) -> str:
    """Return the kind of a list marker: "1.1" for 7.2, "a)" for c)."""
    return re.sub(r"\d+", "1", re.sub(r"[a-z]", "a", marker.strip().lower()))


def split_units(text: str) -> list[TextUnit]:
    """Return all units of a text in order; together they cover every word.

    A unit that ends in a colon introduces the next line, and all items of a list there.
    """
    found: list[TextUnit] = []
    leads: ListStack[tuple[int, int]] = ListStack()
    last: tuple[int, int] | None = None
    for lines in _segments(text):
        item = _ITEM.match(lines[0].text)
        marker = marker_kind(item[0]) if item else ""
        follows = last is not None and not item and not lines[0].is_row
        lead = last if follows else next(reversed(leads.close_to(marker)), None)
        found += _split_segment(text, lines, lead)
        last = None
        if lines[-1].text.endswith(":") and not _CELLS.search(lines[-1].text):
            last = (found[-1].start, found[-1].end)
            leads.open(marker, last)
    return found


def sentence_starts(text: str) -> list[int]:
    """Return the offsets at which units begin."""
    return [unit.start for unit in split_units(text)]


def _segments(text: str) -> Iterator[list[_Line]]:
    """Yield runs of lines within which a sentence may continue from line to line."""
    segment: list[_Line] = []
    for line in _lines(text):
        if segment and _breaks(segment[-1], line):
            yield segment
            segment = []
        segment.append(line)
    if segment:
        yield segment


def _lines(text: str) -> Iterator[_Line]:
    before = 0
    for match in _LINE.finditer(text):
        stripped = match[0].strip().strip(" |")
        if stripped and not _RULE.fullmatch(stripped):
            start = match.start() + match[0].index(stripped[0])
            is_row = _CELLS.search(stripped) is not None or _LABEL.match(stripped) is not None
            opens_block = text.count("\n", before, start) > 1
            yield _Line(start, start + len(stripped), stripped, opens_block, is_row)
            before = start + len(stripped)


def _breaks(above: _Line, below: _Line) -> bool:
    """True if no sentence continues from one line to the next."""
    goes_on = below.text[0].islower() and not _CLOSED.search(above.text)
    if below.opens_block or _ITEM.match(below.text):
        return not goes_on or _ITEM.match(below.text) is not None
    if above.is_row or below.is_row:
        return not goes_on
    is_short = len(above.text) < 0.6 * len(below.text) and not goes_on
    return above.text.endswith(":") or is_short


def _split_segment(text: str, lines: list[_Line], lead: tuple[int, int] | None) -> Iterator[TextUnit]:
    start, end = lines[0].start, lines[-1].end
    is_row = len(lines) == 1 and lines[0].is_row
    for match in _SENTENCE_END.finditer(text, start, end):
        closed = match.start() + len(match[0].rstrip())
        if not _is_abbreviated(text, start, closed):
            yield TextUnit(start, closed, is_row, lead)
            start = match.end()
    yield TextUnit(start, end, is_row, lead)


def _is_abbreviated(text: str, start: int, end: int) -> bool:
    """True if the dot that ends text[start:end] belongs to an abbreviation or a number."""
    is_number = _NUMBER_ALONE.fullmatch(text, start, end) is not None
    return is_number or _ABBREVIATED.search(text, max(start, end - _MAX_ABBREVIATION_CHARS), end) is not None


@dataclass(frozen=True, slots=True)
class Quotable:
    """A quotable passage text[start:end] that is understandable on its own."""

    start: int
    end: int
    text: str
    is_row: bool
    # (start, end) of its introduction, if that is too far away to be quoted as one passage.
    lead: tuple[int, int] | None = None


def quotables(text: str) -> Iterator[Quotable]:
    """Yield all quotables in order, except empty fields, bare lead-ins and table-of-contents lines."""
    found = split_units(text)
    leads = {unit.lead for unit in found}
    for lead, units in groupby(found, key=lambda unit: unit.lead):
        items = list(units)
        if lead and (whole := _fitting(text, lead[0], items)):
            yield whole
        for unit in items:
            if (unit.start, unit.end) not in leads and _says_something(text[unit.start : unit.end]):
                yield _introduced(text, unit)


def _says_something(text: str) -> bool:
    is_frame = _EMPTY_LABELS.fullmatch(text) or _RUNNING_HEAD.fullmatch(text)
    return any(map(str.isalpha, text)) and not is_frame and not _CONTENTS_LINE.search(text)


def _fitting(text: str, start: int, items: list[TextUnit]) -> Quotable | None:
    """Return the list from its lead-in to the last item that fits ``MAX_LIST_WORDS``."""
    ends = [item.end for item in items if _is_short(text[start : item.end])]
    return Quotable(start, ends[-1], text[start : ends[-1]], is_row=False) if ends else None


def _introduced(text: str, unit: TextUnit) -> Quotable:
    """Return a unit together with its lead-in if both are short enough, else alone."""
    if unit.lead and _is_short(text[unit.lead[0] : unit.end]):
        return Quotable(unit.lead[0], unit.end, text[unit.lead[0] : unit.end], is_row=False)
    return Quotable(unit.start, unit.end, text[unit.start : unit.end], unit.is_row, unit.lead)


def with_subject(text: str, quote: Quotable) -> Quotable:
    """Return a quotable, extended backwards to the sentence that names its subject.

    A sentence that opens with an anaphoric word, as "These cost $500", is extended by the ones before
    it; rows and list items are not.
    """
    start = quote.start
    if quote.is_row or not is_anaphoric(quote.text):
        return quote
    before = [unit for unit in split_units(text) if unit.end <= start]
    while before and is_anaphoric(text[start : quote.end]):
        sentence = before.pop()
        if sentence.is_row or sentence.lead or quote.start - sentence.start > MAX_SUBJECT_CHARS:
            break
        start = sentence.start
    return replace(quote, start=start, text=text[start : quote.end])


def with_introduced(text: str, quote: Quotable) -> Quotable:
    """Return a quotable that ends in a colon, extended by the paragraph that it introduces.

    Lists are handled elsewhere; a long paragraph is not added.
    """
    start = quote.end + len(text[quote.end :]) - len(text[quote.end :].lstrip())
    block = text[start:].split("\n\n", 1)[0].rstrip()
    is_whole = quote.text.endswith(":") and 0 < len(block) <= MAX_INTRODUCED_CHARS
    if not is_whole or _ITEM.match(block):
        return quote
    return replace(quote, end=start + len(block), text=text[quote.start : start + len(block)])


def is_anaphoric(sentence: str) -> bool:
    """True if the sentence opens with an anaphoric word."""
    word = _FIRST_WORD.match(sentence)
    return word is not None and word[1].lower() in _POINTING and not _NAMES_NOTHING.match(sentence)


def _is_short(text: str) -> bool:
    return len(text.split()) <= MAX_LIST_WORDS

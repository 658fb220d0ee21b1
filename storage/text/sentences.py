"""Splits a passage into what may be quoted: sentences, rows, list items with their lead-in, short lists.

The reader's text has one newline between the lines of a block and two between blocks. The cells of a row are
parted by two blanks, or by the bars of a Markdown table, whose outer ones belong to no unit. Each unit gets a
vector when its PDF is read, and is looked up by its place in the text.
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
# What a list item may begin with, for a character class: also as Word writes it in its symbol fonts.
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
# No match of it is longer; the dots count.
_MAX_ABBREVIATION_CHARS = 10
_NUMBER_ALONE = re.compile(r"\W*\d{1,2}\.")

# A pattern of what an item of a list begins with as it is shown: also 7.2 and a number without a dot, where
# no unit is split.
LIST_MARKER = rf"(?:[{BULLETS}]|\(?(?:\d{{1,2}}(?:\.\d+)*[.)]?|(?:[a-zA-Z]|[ivx]{{1,4}})[.)]))\s"

# Words that stand for something named before, where they open a sentence.
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
# As "It is also important to note".
_NAMES_NOTHING = re.compile(r"\W*(?:it|that)(?:['’]s|\s+is)\s+(?:\w+\s+){1,3}(?:to|that)\b", re.IGNORECASE)

# Longest paragraph, as a command, that its introduction brings along.
MAX_INTRODUCED_CHARS = 250

# Most that is quoted before a sentence for what it points back to.
MAX_SUBJECT_CHARS = 300

# Raise it when other parts of a text may be quoted: every reading is then made again. Until it is, what has
# no vector gets one when a question comes upon it.
SPLITTER = "quotables-2"

# Words of a list, or of an item with its lead-in, that are still quoted together.
MAX_LIST_WORDS = 80

_EMPTY_LABELS = re.compile(r"(?:[^:\n]{1,60}:[_.…\s-]*)+")
_RUNNING_HEAD = re.compile(r"(?:page:? )?\d+ (?:of|/) \d+\b.{0,40}", re.IGNORECASE)
_CONTENTS_LINE = re.compile(r"(?:\. ?){4,}|^\d+(?:\.\d+)*\s+\D+\s{2}\d+$")


# Words that head a box of a page, and no section.
BOX_WORDS = frozenset(
    """
    warning caution note notice important danger attention tip
    warnung vorsicht achtung gefahr hinweis wichtig
    avertissement remarque avis
    advertencia precaución atención peligro nota aviso importante
    avvertenza attenzione pericolo avviso
    atenção perigo cuidado advertência observação
    waarschuwing gevaar opmerking belangrijk voorzichtig
    """.split()
)
_BOX_END = re.compile(r"[:!]| [-–—] ")
_BOX_SIGNS = " :!.⚠️▲△*"


def is_box(line: str) -> bool:
    """True if a line only names the kind of its box, as ``WARNING!``."""
    return line.strip(_BOX_SIGNS).casefold() in BOX_WORDS


def opens_box(line: str) -> bool:
    """True if a line does that, or does before a colon or a dash."""
    return is_box(_BOX_END.split(line.strip(_BOX_SIGNS), maxsplit=1)[0])


@dataclass(frozen=True, slots=True)
class TextUnit:
    """text[start:end] says one thing."""

    start: int
    end: int
    # A row of a table or form, such as ``Effective date: 2024-01-15``.
    is_row: bool
    # (start, end) of the sentence with a colon that introduces this one.
    lead: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str
    opens_block: bool
    is_row: bool


Place = TypeVar("Place")


class ListLeads(Generic[Place]):
    """What introduces the lists that are open at a place of a text, the outermost first.

    An item may introduce a list itself; it ends with the next item of its own kind.
    """

    def __init__(self) -> None:
        # (marker of the item that it is, '' of a sentence; where it stands).
        self._open: list[tuple[str, Place]] = []

    def of(self, marker: str) -> tuple[Place, ...]:
        """Where the introductions of a piece stand: none for one without a marker, which ends all lists."""
        markers = [own for own, _ in self._open]
        if not marker or marker in markers:
            del self._open[markers.index(marker) if marker else 0 :]
        return tuple(place for _, place in self._open)

    def open(self, marker: str, place: Place) -> None:
        """The piece that was asked for last introduces a list."""
        self._open.append((marker, place))


def marker_kind(marker: str) -> str:
    """What the markers of a list have in common: "1.1" of 7.2, "a)" of c)."""
    return re.sub(r"\d+", "1", re.sub(r"[a-z]", "a", marker.strip().lower()))


def split_units(text: str) -> list[TextUnit]:
    """Return all units of a text in order; together they hold every word of it.

    What ends in a colon introduces the line below it, and all items of a list there.
    """
    found: list[TextUnit] = []
    leads: ListLeads[tuple[int, int]] = ListLeads()
    last: tuple[int, int] | None = None
    for lines in _segments(text):
        item = _ITEM.match(lines[0].text)
        marker = marker_kind(item[0]) if item else ""
        follows = last is not None and not item and not lines[0].is_row
        lead = last if follows else next(reversed(leads.of(marker)), None)
        found += _split_segment(text, lines, lead)
        last = None
        if lines[-1].text.endswith(":") and not _CELLS.search(lines[-1].text):
            last = (found[-1].start, found[-1].end)
            leads.open(marker, last)
    return found


def sentence_starts(text: str) -> list[int]:
    """Where units begin."""
    return [unit.start for unit in split_units(text)]


def _segments(text: str) -> Iterator[list[_Line]]:
    """Runs of lines in which one sentence may go on from line to line."""
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
    """True if no sentence runs from one line into the next."""
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
    """True if the dot that ends text[start:end] ends no sentence."""
    is_number = _NUMBER_ALONE.fullmatch(text, start, end) is not None
    return is_number or _ABBREVIATED.search(text, max(start, end - _MAX_ABBREVIATION_CHARS), end) is not None


@dataclass(frozen=True, slots=True)
class Quotable:
    """text[start:end] can stand by itself as an answer."""

    start: int
    end: int
    text: str
    is_row: bool
    # (start, end) of what introduces it, where that is too far away to be quoted in one with it.
    lead: tuple[int, int] | None = None


def quotables(text: str) -> Iterator[Quotable]:
    """Everything quotable in order; empty fields, bare lead-ins and lines of a table of contents are not."""
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
    """Return the list from its lead-in to the last item that still fits."""
    ends = [item.end for item in items if _is_short(text[start : item.end])]
    return Quotable(start, ends[-1], text[start : ends[-1]], is_row=False) if ends else None


def _introduced(text: str, unit: TextUnit) -> Quotable:
    """Return an item that follows its lead-in at a short distance is quoted in one with it."""
    if unit.lead and _is_short(text[unit.lead[0] : unit.end]):
        return Quotable(unit.lead[0], unit.end, text[unit.lead[0] : unit.end], is_row=False)
    return Quotable(unit.start, unit.end, text[unit.start : unit.end], unit.is_row, unit.lead)


def with_subject(text: str, quote: Quotable) -> Quotable:
    """Return a quotable part of a text from where what it speaks of is named.

    What opens with a word that points back, as "These cost $500", takes the sentences before it along; a row
    and an item of a list do not.
    """
    start = quote.start
    if quote.is_row or not points_back(quote.text):
        return quote
    before = [unit for unit in split_units(text) if unit.end <= start]
    while before and points_back(text[start : quote.end]):
        sentence = before.pop()
        if sentence.is_row or sentence.lead or quote.start - sentence.start > MAX_SUBJECT_CHARS:
            break
        start = sentence.start
    return replace(quote, start=start, text=text[start : quote.end])


def with_introduced(text: str, quote: Quotable) -> Quotable:
    """Return a quotable part of a text that ends in a colon, with the paragraph that it introduces.

    A list is none, which has a way of its own, nor is a long paragraph.
    """
    start = quote.end + len(text[quote.end :]) - len(text[quote.end :].lstrip())
    block = text[start:].split("\n\n", 1)[0].rstrip()
    is_whole = quote.text.endswith(":") and 0 < len(block) <= MAX_INTRODUCED_CHARS
    if not is_whole or _ITEM.match(block):
        return quote
    return replace(quote, end=start + len(block), text=text[quote.start : start + len(block)])


def points_back(sentence: str) -> bool:
    """True if a sentence opens with a word that stands for something named before."""
    word = _FIRST_WORD.match(sentence)
    return word is not None and word[1].lower() in _POINTING and not _NAMES_NOTHING.match(sentence)


def _is_short(text: str) -> bool:
    return len(text.split()) <= MAX_LIST_WORDS

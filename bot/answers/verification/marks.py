"""Parts of the passages that may be marked for a model's sentence: sentences, items, rows, whole lists.

Each includes its context: the lead-in, the table header, the sentence that it points back to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bot.answers.verification.claims import place
from bot.answers.verification.contradiction import find_lead
from bot.answers.verification.table_rows import find_header
from bot.core.models import Evidence, LocatedQuote, QuotedPart
from storage.models import metadata_line
from storage.text.analyzer import analyze
from storage.text.sentences import MAX_LIST_WORDS, Quotable, quotables, split_units, with_subject

_SECTION_NUMBER = re.compile(r"^\W*(?:[a-z]+\s)?\d+(?:\.\d+)*[.):]?\s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Part:
    """A sentence, item, list or row of a passage, with its lead-in or table header."""

    start: int
    end: int
    # (start, end) of its lead-in, or of its table's header row.
    above: tuple[int, int] | None
    # Text of ``above`` and of the part.
    text: str
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Mark:
    """A part of the evidence that may be marked."""

    item: Evidence
    part: _Part
    is_hinted: bool

    @property
    def section(self) -> tuple[str, ...]:
        """Headings above it."""
        return self.item.section_at(self.part.end - 1)

    @property
    def context(self) -> frozenset[str]:
        """Terms of its document's title and of its headings."""
        return _terms_of((self.item.passage.publication.title, *self.section))

    def sources(self) -> list[str]:
        """Return all texts that may support the facts of a sentence; section numbers are removed."""
        source = self.item.passage.publication
        headings = [_SECTION_NUMBER.sub("", heading) for heading in self.section]
        return [self.part.text, source.title, source.file_name, metadata_line(source.metadata), *headings]

    def source(self) -> QuotedPart:
        """Return the part as the sentence judge reads it."""
        publication = self.item.passage.publication
        names = (publication.title, publication.file_name, *self.section[-2:])
        return QuotedPart(names, self.part.text)

    def located(self) -> Iterator[LocatedQuote]:
        """Yield the marked spans: one with its lead-in or header if these are near, else two."""
        start, end, above = self.part.start, self.part.end, self.part.above
        if above and len(self.item.passage.text[above[0] : end].split()) <= MAX_LIST_WORDS:
            start, above = above[0], None
        yield place(self.item, start, end)
        if above:
            yield place(self.item, *above)


def quoted_marks(evidence: Sequence[Evidence], located: Sequence[LocatedQuote]) -> list[Mark]:
    """Return the sentences, items and rows that contain the quotes: one mark per quote, without duplicates.

    A quote of several sentences is one mark, with the lead-in or header of the first.
    """
    marks: dict[tuple[int, int, int], Mark] = {}
    for quote in located:
        item = next(one for one in evidence if one.passage is quote.passage)
        text = item.passage.text
        parts = [one for one in _units_of(text) if one.start < quote.end and quote.start < one.end]
        if parts:
            part = _part(text, parts[0].start, max(one.end for one in parts), parts[0].above)
            mark = Mark(item, part, is_hinted=True)
            marks.setdefault((item.number, part.start, part.end), mark)
    return list(marks.values())


def find_marks(evidence: Sequence[Evidence], located: Sequence[LocatedQuote]) -> list[Mark]:
    """Return everything in the evidence that may be marked; ``located``: what a model quoted from it."""
    found = []
    for item in evidence:
        passage = item.passage
        spans = [(one.start, one.end) for one in located if one.passage is passage]
        for part in _parts_of(passage.text):
            is_hinted = any(part.start < end and start < part.end for start, end in spans)
            found.append(Mark(item, part, is_hinted))
    return found


@lru_cache(maxsize=256)
def _terms_of(texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(analyze(" ".join(texts)))


@lru_cache(maxsize=256)
def _parts_of(text: str) -> tuple[_Part, ...]:
    """Return all markable parts of a passage: sentences with what they point back to, whole lists last."""
    found = list(_units_of(text))
    units = split_units(text)
    for one in (with_subject(text, each) for each in quotables(text)):
        if sum(one.start <= unit.start < one.end for unit in units) > 2:
            found.append(_part(text, one.start, one.end, None))
    return tuple(found)


@lru_cache(maxsize=256)
def _units_of(text: str) -> tuple[_Part, ...]:
    """Return the sentences, items and rows of a passage, with what they point back to."""
    found = []
    for unit in split_units(text):
        above = find_lead(text, unit) or (find_header(text, unit.start) if unit.is_row else None)
        bare = Quotable(unit.start, unit.end, text[unit.start : unit.end], unit.is_row)
        start = unit.start if above else with_subject(text, bare).start
        found.append(_part(text, start, unit.end, above))
    return tuple(found)


def _part(text: str, start: int, end: int, above: tuple[int, int] | None) -> _Part:
    whole = f"{text[slice(*above)]} {text[start:end]}" if above else text[start:end]
    return _Part(start, end, above, whole, frozenset(analyze(whole)))

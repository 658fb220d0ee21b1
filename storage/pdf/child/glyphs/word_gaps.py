"""Restoration of words printed with gaps between their letters or around their ligatures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import groupby, pairwise
from statistics import median
from typing import Any

from storage.pdf.child.page_text import Row

Word = list[Any]

LIGATURES = frozenset(("ff", "fi", "fl", "ffi", "ffl", "\ufb00", "\ufb01", "\ufb02", "\ufb03", "\ufb04"))
# Minimum run of single letters that is letter-spaced text; fewer are labels, grades or initials.
LETTERS_APART = 5
# Minimum run of stacked characters that is vertical text; fewer are table cells.
STACKED = 4
CLOSE = 0.4  # maximum distance between two of them, in font sizes
# Minimum ratio of a gap between words to the usual one between letters.
WORD_GAP = 1.6
# Maximum ratio of a gap between letters to their font size; letters further apart are columns.
MAX_GAP = 1.25
# Ratio to the line's usual gap below which a gap at a ligature is not one between words.
NARROW = 0.8

_ENDINGS = ("ff", "\ufb00")  # the others do not end words
_VOWELS = frozenset("aeiouyàáâãäåæèéêëìíîïòóôõöøœùúûüаеёиоуыэюяαεηιουω")
_IDEOGRAPHIC = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff01-\uff60]{2}")
# After these words a ligature begins a new word; nothing else tells where all gaps are equal.
_WHOLE = frozenset(
    "a an and are as at be by for from has have if in is it its no not of on one or so that the their "
    "these this to two was we were will with you your all any but can do each he her his may must new "
    "per she under when which au aux ce cette dans des du en est et il la le les mais ne ou par pas "
    "plus pour que qui sur un une als am an auf aus bei das dem den der die ein eine einem einen "
    "einer im ist mit nach nicht oder sich sie sind und vom von zu zum zur com da do dos em na os "
    "para por se uma del el las lo los una y y/o".split()
)


def join_spaced_words(rows: Sequence[Row]) -> None:
    """Join the words of a page's rows whose letters or ligatures are printed apart."""
    torn: list[Row] = []
    for row in rows:
        texts = [word[0] for word in row.words]
        if len(texts) >= LETTERS_APART and sum(map(len, texts)) < 2 * len(texts):
            _merge(row, list(_spaced_letters(row)))
        elif not LIGATURES.isdisjoint(texts):
            torn.append(row)
    if torn:
        whole = _WHOLE | _words_of(rows)
        for row in torn:
            _merge(row, list(_torn_words(row.words, whole)))


def merge_vertical_text(rows: Sequence[Row]) -> list[Row]:
    """Return the rows, with vertical Chinese or Japanese as one row per column instead of per character."""
    found: list[Row] = []
    for is_stacked, run in groupby(_stacks(rows), key=lambda stack: len(stack) >= STACKED):
        if not is_stacked:
            found += (row for stack in run for row in stack)
            continue
        columns = list(run)
        for column in columns:
            whole = Row(columns[0][0].block, is_bold=all(row.is_bold for row in column), is_level=False)
            whole.words = [word for row in column for word in row.words]
            whole.sizes = {column[0].size: len(column)}
            _merge(whole, [(0, len(whole.words))])
            found.append(whole)
    return found


def _stacks(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield stacks of one-character rows that are close below each other; every other row alone."""
    stack: list[Row] = []
    for row in rows:
        if stack and not _is_under(stack[-1], row):
            yield stack
            stack = []
        stack.append(row)
    if stack:
        yield stack


def _is_under(row: Row, below: Row) -> bool:
    if len(row.words) > 1 or len(below.words) > 1:
        return False
    (text, x0, _, x1, y1), (under, left, top, right, _) = row.words[0], below.words[0]
    if len(text) > 1 or len(under) > 1 or not _IDEOGRAPHIC.match(text + under):
        return False
    return bool(abs(x0 + x1 - left - right) < row.size and abs(top - y1) < CLOSE * row.size)


def _words_of(rows: Sequence[Row]) -> set[str]:
    """Return the words of a page that are not followed by a ligature, in lower case."""
    found: set[str] = set()
    for row in rows:
        texts = [word[0] for word in row.words]
        pairs = zip(texts, [*texts[1:], ""], strict=True)
        found.update(
            text.lower() for text, after in pairs if after not in LIGATURES and text not in LIGATURES
        )
    return found


def _merge(row: Row, spans: Sequence[tuple[int, int]]) -> None:
    """Merge each span (first, end) of a row's words into one word."""
    for first, end in reversed(spans):
        part = row.words[first:end]
        lefts, tops, rights, bottoms = zip(*(word[1:] for word in part), strict=True)
        text = "".join(word[0] for word in part)
        row.words[first:end] = [[text, min(lefts), min(tops), max(rights), max(bottoms)]]
        lost = end - first - 1
        row.gaps = {gap - lost if gap >= end else gap for gap in row.gaps if not first < gap < end}


def _spaced_letters(row: Row) -> Iterator[tuple[int, int]]:
    """Yield the spans of letter-spaced words."""
    for first, end in _letter_runs(row.words):
        letters = row.words[first:end]
        gaps = [after[1] - before[3] for before, after in pairwise(letters)]
        usual = median(sorted(gaps)[: len(gaps) * 3 // 4 + 1])
        if not _are_words(letters) or not 0 <= usual < MAX_GAP * row.size:
            continue
        begin = first
        for number, gap in enumerate(gaps, start=first + 1):
            if gap > max(WORD_GAP * usual, usual + 0.1 * row.size):
                yield begin, number
                begin = number
        yield begin, end


def _letter_runs(words: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Yield runs of one-character words, including punctuation at letters."""
    first = 0
    for number, word in enumerate([*words, ["end"]]):
        if len(word[0].strip(".,:;!?()")) > 1:
            if number - first >= LETTERS_APART:
                yield first, number
            first = number + 1


def _are_words(letters: Sequence[Word]) -> bool:
    """True if the letters spell words, as opposed to an alphabet, a row of choices or of numbers."""
    text = "".join(word[0] for word in letters).lower()
    only = [char for char in text if char.isalpha()]
    vowels = sum(char in _VOWELS for char in only)
    is_spelled = 0 < vowels < len(only) and len(set(only)) > 2
    return is_spelled and only != sorted(only) and 2 * len(only) > len(text)


def _torn_words(words: Sequence[Word], whole: Set[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of words split at ligatures: the part before, the ligature, and the part after it."""
    gaps = [after[1] - before[3] for before, after in pairwise(words)]
    narrow = NARROW * median(gaps) if gaps else 0.0
    found: list[tuple[int, int]] = []
    for number, (text, *_) in enumerate(words):
        end = found[-1][1] if found else 0
        if text not in LIGATURES or number < end:
            continue
        first, before = number, words[number - 1][0] if number else ""
        is_close = number > 0 and gaps[number - 1] < narrow
        if number == end > 0:
            first = found.pop()[0] if is_close else number
        elif before[-1:].isalpha() and (is_close or before.lower() not in whole):
            first -= 1
        after = words[number + 1][0] if number + 1 < len(words) else ""
        goes_on = after[:1].islower() and (text not in _ENDINGS or after not in whole)
        found.append((first, number + 1 + goes_on))
    yield from found

"""Does a sentence deny what its quotes assert, or assert what they deny? Told by words, clause by clause.

Only what is plain counts: one side denies and the other does not, both speak of the same things in the same
limits ("unless", "before", "prohibited"), and nothing in the quoted passages agrees with the sentence.
Whatever is less plain is taken for a paraphrase.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from bot.core.clauses import Clause, prepare, read_languages, split_clauses
from bot.core.models import LocatedQuote
from bot.core.negation_words import CONDITIONS, NEGATIONS, NegationWords
from storage.analyzer import stem
from storage.units import TextUnit, split_units

DENIES = "it denies something that the quoted words do not deny."
ASSERTS = "it leaves out a negation of the quoted words."

ENOUGH = 2 / 3
"""Share of a clause's words that another one holds before they are compared."""

_CLOSED = re.compile(r"[.!?][\"'”’)]*$")
_PREFIXES = ("un", "in", "im", "il", "ir", "non", "dis", "des", "on", "miss")


def find_contradiction(sentence: str, quotes: Sequence[LocatedQuote]) -> str | None:
    """``DENIES`` or ``ASSERTS`` when a sentence turns its quotes round; None when it does not, or may not."""
    said = prepare(sentence)
    read = read_languages(prepare(" ".join(quote.passage.text for quote in quotes)))
    language = next((name for name in read_languages(said) if name in read), None)
    if language is None:
        return None
    clauses = split_clauses(said, NEGATIONS[language])
    if _is_contrapositive(clauses):
        return None
    return next(filter(None, map(_ClauseComparison(language, quotes).fault, clauses)), None)


def _is_contrapositive(clauses: Sequence[Clause]) -> bool:
    """Whether it says that what lacks something is not so: what has it may be so."""
    return sum(len(one.denials) for one in clauses) > 1 and any(one.limits & CONDITIONS for one in clauses)


class _ClauseComparison:
    """Holds the clauses of a sentence against what it quotes."""

    def __init__(self, language: str, quotes: Sequence[LocatedQuote]) -> None:
        self._words = NEGATIONS[language]
        self._same = _same_stem if language == "en" else _same_beginning
        self._units = [_Unit(quote, unit) for quote in quotes for unit in split_units(quote.passage.text)]
        self._cited = [unit for unit in self._units if unit.is_quoted]
        self._quoted = [clause for unit in self._cited for clause in split_clauses(unit.text, self._words)]

    def fault(self, said: Clause) -> str | None:
        """What is wrong with one clause of the sentence."""
        turned = [one for one in self._quoted if self._is_turned(said, one)]
        if not turned or self._is_agreed(said, max(self._cover(said, one) for one in turned)):
            return None
        if not said.denials:
            return ASSERTS
        return None if any(unit.stands_below_denial(self._words) for unit in self._cited) else DENIES

    def _is_agreed(self, said: Clause, cover: float) -> bool:
        """Whether another place of the passages says so, in as many of its words."""
        clauses = (clause for unit in self._units for clause in split_clauses(unit.text, self._words))
        return any(self._agree(said, one) and self._cover(said, one) >= cover for one in clauses)

    def _is_turned(self, said: Clause, quoted: Clause) -> bool:
        if self._agree(said, quoted) or self._is_unclear(said, quoted) or self._cover(said, quoted) < ENOUGH:
            return False
        missing = [word for word in said.words if not self._holds(quoted.words, word)]
        if any(self._holds(other.words, word) for word in missing for other in self._quoted):
            return False  # the quote says something else of what is missing
        return self._denies_words_of(said, quoted) if said.denials else self._is_denied(said, quoted)

    def _agree(self, said: Clause, quoted: Clause) -> bool:
        return bool(said.denials) == bool(quoted.denials)

    def _is_unclear(self, said: Clause, quoted: Clause) -> bool:
        """Whether something besides a denial may tell the meanings apart, or turn them round."""
        one, other = (said, quoted) if said.denials else (quoted, said)
        is_spared = one.owes and other.is_allowed
        return one.is_double or is_spared or said.limits != quoted.limits or _have_opposites(said, quoted)

    def _denies_words_of(self, said: Clause, quoted: Clause) -> bool:
        """All that the sentence denies stands in the quoted clause."""
        return all(self._holds(quoted.words, word) for word in said.denied)

    def _is_denied(self, said: Clause, quoted: Clause) -> bool:
        """The sentence says the very words that the quoted clause denies."""
        return any(self._is_said(said, quoted, at) for at in quoted.denials)

    def _is_said(self, said: Clause, quoted: Clause, at: int) -> bool:
        """Whether the sentence says what is denied behind the first ``at`` words, or ends there."""
        after = quoted.words[at : at + 2] or quoted.words[-1:]
        if sum(self._same(after[0], word) for word in quoted.words) > 1:
            return False
        around = (*quoted.words[max(at - 1, 0) : at], after[0])
        is_whole = len(around) > 1 and self._cover(said, quoted) == 1
        return self._hold(said.words, after) or (is_whole and self._hold(said.words, around))

    def _cover(self, said: Clause, quoted: Clause) -> float:
        """Share (0-1) of the sentence's words that the quoted clause holds."""
        held = sum(self._holds(quoted.words, word) for word in said.words)
        return held / len(said.words) if said.words else 0.0

    def _hold(self, words: Sequence[str], wanted: Iterable[str]) -> bool:
        return all(self._holds(words, word) for word in wanted)

    def _holds(self, words: Iterable[str], wanted: str) -> bool:
        return any(self._same(word, wanted) for word in words)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence, item or row of a passage that something is quoted from."""

    quote: LocatedQuote
    place: TextUnit

    @property
    def is_quoted(self) -> bool:
        return self.place.start < self.quote.end and self.quote.start < self.place.end

    @property
    def text(self) -> str:
        """With what introduces it; a row of two cells is one statement, a longer one is none as a whole."""
        whole, place = self.quote.passage.text, self.place
        cells = re.split(r" \| | {2,}", whole[place.start : place.end])
        said = (" " if len(cells) == 2 else " | ").join(cells)
        lead = whole[place.lead[0] : place.lead[1]] if place.lead else ""
        return prepare(f"{lead} {said}".replace("\n", " "))

    def stands_below_denial(self, words: NegationWords) -> bool:
        """Whether a heading, or the text before what is no whole sentence, may deny it."""
        passage = self.quote.passage
        above = " ".join(passage.heading_path)
        if not _CLOSED.search(passage.text[: self.place.end]):
            above += " " + passage.text[: self.place.start]
        found = re.findall(r"[^\W_]+", prepare(above))
        return not (words.denies | words.limits).isdisjoint(found)


def _same_stem(one: str, other: str) -> bool:
    return stem(one) == stem(other)


def _same_beginning(one: str, other: str) -> bool:
    """Whether two words differ in their last letters only, as far as an inflection goes."""
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return one == other or shared >= max(5, min(len(one), len(other)) - 2)


def _have_opposites(one: Clause, other: Clause) -> bool:
    """Whether a word here is the opposite of one there: "paid" and "unpaid"."""
    pairs = [(one.tokens, set(map(stem, other.tokens))), (other.tokens, set(map(stem, one.tokens)))]
    return any(
        stem(word) in there
        for here, there in pairs
        for prefixed in here
        for prefix in _PREFIXES
        if prefixed.startswith(prefix) and len(word := prefixed.removeprefix(prefix)) > 3
    )

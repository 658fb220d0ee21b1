"""Detects sentences that deny what their quotes assert, or assert what they deny, clause by clause.

Rule-based: each clause is reduced to the words that it names, what it denies and what limits it. Only clear
cases count: one side denies and the other does not, both are about the same things under the same limits
("unless", "before", "prohibited"), and nothing in the quoted passages agrees with the sentence. Anything less
clear is taken for a paraphrase.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from bot.answers.verification.negation_lexicon import (
    CONDITIONS,
    EXCLUSIONS,
    NEGATIONS,
    PARTLY,
    NegationWords,
)
from bot.core.models import LocatedQuote
from storage.text.analyzer import fold, stem
from storage.text.sentences import LIST_MARKER, TextUnit, is_anaphoric, split_units

_TOKEN = re.compile(r"[^\W_]+|[;!?()|]|\.(?=\s|$)|,|\s[-–—]\s")
_BREAKS = frozenset(";!.()|-–—")
_ANSWER = re.compile(
    r"^\W*(?:(?P<no>no|nein|non|nao|nee)|(?P<yes>yes|ja|oui|si|sim))\s*(?:[,.:;!–—-]+\s*|$)", re.I
)
# Phrases that look like a negation but are none.
_NOT_AT_ALL = re.compile(
    r"""\bno[.s]*\s*(?=\d|of\b) | \bn[r°o]\.?\s*(?=\d) | \bn/a\b | \b(?:whether\ )?or\ not\b | \bno\ doubt\b
      | \b(?:not\ only|nicht\ nur|non\ seulement|no\ solo|non\ solo|nao\ (?:so|apenas)|niet\ alleen)\b
      | \bnot\ limited\ to\b | \bnothing\ but\b | \bif\ not\b | \bnot\ to\ mention\b | \bif\ any\b
      | \bany\ ?more\b""",
    re.VERBOSE,
)
_NO_LONGER = re.compile(r"\bno longer\b(?! than)")
_PARTIAL = re.compile(
    r"\bnot (?:all|every\w*|always|each|both|necessarily|entirely|fully)\b"
    r"|\bnicht (?:alle\w*|jede\w*|immer)\b|\bpas (?:tou\w+|toujours)\b|\bno (?:tod\w+|siempre)\b"
    r"|\bnon (?:tutt\w+|sempre)\b|\bnao (?:tod\w+|sempre)\b|\bniet (?:alle\w*|altijd)\b"
)
_JOINTS = frozenset(", and or und oder et ou y o ed en of e".split())
# Together with "nor" they are a single negation.
_PAIRED = frozenset({"neither", "weder"})
_MUSTS = frozenset("must shall doit doivent debe deben deve devono devem moet moeten muss mussen".split())

DENIES = "contradiction: negated, but not in the quotes."
ASSERTS = "contradiction: omits a negation in the quotes."

# Minimum share of a clause's words in another clause for the two to be compared.
ENOUGH = 2 / 3

_DENIALS = EXCLUSIONS.union(*(words.denies for words in NEGATIONS.values()))
_LIMITS = frozenset[str]().union(*(words.limits for words in NEGATIONS.values()))
_OPPOSITE = re.compile(r"(?:un|non|dis|il|im|ir)\w{3}")
_VERBS = frozenset[str]().union(*(words.verbs for words in NEGATIONS.values()))
_LAST_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?\s*$")

_ITEM = re.compile(LIST_MARKER)
_CLOSED = re.compile(r"[.!?][\"'”’)]*$")
_PREFIXES = ("un", "in", "im", "il", "ir", "non", "dis", "des", "on", "miss")


@dataclass(frozen=True, slots=True)
class Clause:
    """A parsed clause."""

    # Content words.
    words: tuple[str, ...]
    # Number of ``words`` before each negation.
    denials: tuple[int, ...]
    # Its negations cancel out.
    is_double: bool
    tokens: frozenset[str]
    limits: frozenset[str]
    owes: bool
    # It states a possibility, not an obligation.
    is_allowed: bool

    @property
    def denied(self) -> tuple[str, ...]:
        """Scope of the first negation: the words after it, else all."""
        return self.words[self.denials[0] :] or self.words


def prepare(text: str) -> str:
    """Fold and lowercase a text, and normalise negations: "can't" is one, "No. 5" and "not only" are none."""
    low = _ANSWER.sub("", fold(text).lower())
    for clipped, full in (("can't", "can not"), ("won't", "will not"), ("n't", " not")):
        low = low.replace(clipped, full)
    return _PARTIAL.sub(PARTLY, _NO_LONGER.sub("not", _NOT_AT_ALL.sub(" ", low)))


def split_answer(sentence: str) -> tuple[str, str]:
    """Split a leading yes or no, in any language, from a sentence: (``yes``, ``no`` or '', the rest)."""
    folded = fold(sentence)
    answer = _ANSWER.match(folded)
    return (answer.lastgroup or "", folded[answer.end() :]) if answer else ("", folded)


def denies(text: str) -> bool:
    """True if a text denies or excludes something; "not limited to" and "non-exempt" do not."""
    return not _DENIALS.isdisjoint(re.findall(r"[^\W_]+", re.sub(r"\bnon-", "", prepare(text))))


def may_deny(text: str) -> bool:
    """True if a text contains what a sentence may rephrase as a denial: a limit, condition or opposite."""
    tokens = re.findall(r"[^\W_]+", prepare(text))
    return not (_DENIALS | _LIMITS).isdisjoint(tokens) or any(map(_OPPOSITE.match, tokens))


def read_languages(text: str) -> list[str]:
    """Return the languages whose function words are most frequent in a text; none if it has none."""
    words = re.findall(r"[^\W_]+", text)
    counts = {name: sum(word in known.signs for word in words) for name, known in NEGATIONS.items()}
    best = max(counts.values())
    return [name for name, count in counts.items() if count == best and best]


def split_clauses(text: str, words: NegationWords) -> list[Clause]:
    """Split a text into clauses; questions are dropped, because they assert nothing."""
    parts: list[list[str]] = [[]]
    for sign in map(str.strip, _TOKEN.findall(text)):
        if sign in _BREAKS or sign in words.turns:
            parts.append([])
        elif sign == "?":
            parts[-1] = []
        else:
            parts[-1].append(sign)
    return [_clause(clause, words) for part in parts for clause in _split_at_verbs(part, words)]


def _split_at_verbs(part: Sequence[str], words: NegationWords) -> Iterator[list[str]]:
    """Yield clauses, split at commas with a verb on both sides: "may not park, but must sign in"."""
    clause: list[str] = []
    for segment in _segments(part):
        if words.verbs.isdisjoint(clause) or words.verbs.isdisjoint(segment):
            clause += segment
        else:
            yield clause
            clause = segment
    yield clause


def _segments(part: Sequence[str]) -> Iterator[list[str]]:
    segment: list[str] = []
    for token in part:
        if token in _JOINTS:
            yield segment
            segment = []
        else:
            segment.append(token)
    yield segment


def _clause(tokens: Sequence[str], words: NegationWords) -> Clause:
    named: list[str] = []
    denials: list[int] = []
    for token in tokens:
        if token in words.denies:
            denials.append(len(named))
        elif token not in words.unnamed and (len(token) > 1 or token.isdigit()):
            named.append(token)
    held = frozenset(tokens)
    return Clause(
        words=tuple(named),
        denials=tuple(denials),
        is_double=words.is_strict and len(denials) > 1 and held.isdisjoint(_PAIRED),
        tokens=held,
        limits=held & words.limits,
        owes=not held.isdisjoint(words.owes),
        is_allowed=held.isdisjoint(words.owes | _MUSTS),
    )


def find_contradiction(sentence: str, quotes: Sequence[LocatedQuote]) -> str | None:
    """Return ``DENIES`` or ``ASSERTS`` if a sentence contradicts its quotes; None if not, or if unclear."""
    said = prepare(sentence)
    read = read_languages(prepare(" ".join(quote.passage.text for quote in quotes)))
    if not denies(sentence) and any(map(is_excluded, quotes)):
        return ASSERTS
    language = next((name for name in read_languages(said) if name in read), None)
    if language is None:
        return None
    clauses = split_clauses(said, NEGATIONS[language])
    is_conditional = any(one.limits & CONDITIONS for one in clauses)
    if is_conditional and sum(len(one.denials) for one in clauses) > 1:
        return None  # "not valid if not signed" may restate "valid if signed"
    return next(filter(None, map(_ClauseComparison(language, quotes).fault, clauses)), None)


def find_lead(text: str, unit: TextUnit) -> tuple[int, int] | None:
    """Return (start, end) of a unit's lead-in, and of the sentence before it if it only points back."""
    if unit.lead is None:
        return None
    start, end = unit.lead
    if is_anaphoric(text[start:end]):
        before = _LAST_SENTENCE.search(text, 0, start)
        start = before.start() + len(before[0]) - len(before[0].lstrip()) if before else start
    return start, end


def is_excluded(quote: LocatedQuote) -> bool:
    """True if its lead-in, or its heading if it is no sentence, excludes the last part of a quote."""
    text = quote.passage.text
    cited = [unit for unit in split_units(text) if unit.start < quote.end and quote.start < unit.end]
    part = text[cited[-1].start : cited[-1].end] if cited else ""
    if not part or denies(part):
        return False
    lead = find_lead(text, cited[-1])
    has_verb = not _VERBS.isdisjoint(re.findall(r"[^\W_]+", prepare(part)))
    is_closed = _CLOSED.search(part) is not None
    if lead and not (is_closed and has_verb and not _ITEM.match(part)):
        return denies(text[slice(*lead)])
    return not (lead or is_closed or has_verb) and denies(" ".join(quote.section[-1:]))


class _ClauseComparison:
    """Compares the clauses of a sentence with its quotes."""

    def __init__(self, language: str, quotes: Sequence[LocatedQuote]) -> None:
        self._words = NEGATIONS[language]
        self._same = _same_stem if language == "en" else have_same_beginning
        self._units = [_Unit(quote, unit) for quote in quotes for unit in split_units(quote.passage.text)]
        self._cited = [unit for unit in self._units if unit.is_quoted]
        self._quoted = [clause for unit in self._cited for clause in split_clauses(unit.text, self._words)]

    def fault(self, said: Clause) -> str | None:
        """Return the fault of a clause of the sentence; None if it has none."""
        turned = [one for one in self._quoted if self._is_turned(said, one)]
        if not turned:
            return None
        cover = max(self._cover(said, one) for one in turned)
        clauses = (clause for unit in self._units for clause in split_clauses(unit.text, self._words))
        if any(self._agree(said, one) and self._cover(said, one) >= cover for one in clauses):
            return None  # another clause of the passages agrees and covers it as well
        if not said.denials:
            return ASSERTS
        return None if any(unit.stands_below_denial(self._words) for unit in self._cited) else DENIES

    def _is_turned(self, said: Clause, quoted: Clause) -> bool:
        if self._agree(said, quoted) or self._is_unclear(said, quoted) or self._cover(said, quoted) < ENOUGH:
            return False
        missing = [word for word in said.words if not self._holds(quoted.words, word)]
        if any(self._holds(other.words, word) for word in missing for other in self._quoted):
            return False  # the quotes say something else about the missing words
        if said.denials:
            return all(self._holds(quoted.words, word) for word in said.denied)
        return any(self._is_said(said, quoted, at) for at in quoted.denials)

    def _agree(self, said: Clause, quoted: Clause) -> bool:
        return bool(said.denials) == bool(quoted.denials)

    def _is_unclear(self, said: Clause, quoted: Clause) -> bool:
        """True if something other than a negation may distinguish or invert the meanings."""
        one, other = (said, quoted) if said.denials else (quoted, said)
        is_spared = one.owes and other.is_allowed
        return one.is_double or is_spared or said.limits != quoted.limits or _have_opposites(said, quoted)

    def _is_said(self, said: Clause, quoted: Clause, at: int) -> bool:
        """True if the sentence asserts what the negation after the first ``at`` words denies."""
        after = quoted.words[at : at + 2] or quoted.words[-1:]
        if sum(self._same(after[0], word) for word in quoted.words) > 1:
            return False
        around = (*quoted.words[max(at - 1, 0) : at], after[0])
        is_whole = len(around) > 1 and self._cover(said, quoted) == 1
        return self._hold(said.words, after) or (is_whole and self._hold(said.words, around))

    def _cover(self, said: Clause, quoted: Clause) -> float:
        """Return the share (0-1) of the sentence's words that the quoted clause contains."""
        held = sum(self._holds(quoted.words, word) for word in said.words)
        return held / len(said.words) if said.words else 0.0

    def _hold(self, words: Sequence[str], wanted: Iterable[str]) -> bool:
        return all(self._holds(words, word) for word in wanted)

    def _holds(self, words: Iterable[str], wanted: str) -> bool:
        return any(self._same(word, wanted) for word in words)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence, item or row of a passage that is quoted."""

    quote: LocatedQuote
    place: TextUnit

    @property
    def is_quoted(self) -> bool:
        return self.place.start < self.quote.end and self.quote.start < self.place.end

    @property
    def text(self) -> str:
        """Text with its lead-in; a row of two cells is one statement, a longer row one per cell."""
        whole, place = self.quote.passage.text, self.place
        cells = re.split(r" \| | {2,}", whole[place.start : place.end])
        said = (" " if len(cells) == 2 else " | ").join(cells)
        lead = whole[place.lead[0] : place.lead[1]] if place.lead else ""
        return prepare(f"{lead} {said}".replace("\n", " "))

    def stands_below_denial(self, words: NegationWords) -> bool:
        """True if a heading, or the text before an incomplete sentence, may deny the unit."""
        passage = self.quote.passage
        above = " ".join(self.quote.section)
        if not _CLOSED.search(passage.text[: self.place.end]):
            above += " " + passage.text[: self.place.start]
        found = re.findall(r"[^\W_]+", prepare(above))
        return not (words.denies | words.limits).isdisjoint(found)


def _same_stem(one: str, other: str) -> bool:
    return stem(one) == stem(other)


def have_same_beginning(one: str, other: str) -> bool:
    """True if two words differ only in their last letters, as inflected forms do."""
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return one == other or shared >= max(5, min(len(one), len(other)) - 2)


def _have_opposites(one: Clause, other: Clause) -> bool:
    """True if a word of one clause is the opposite of one in the other: "paid" and "unpaid"."""
    pairs = [(one.tokens, set(map(stem, other.tokens))), (other.tokens, set(map(stem, one.tokens)))]
    return any(
        stem(word) in there
        for here, there in pairs
        for prefixed in here
        for prefix in _PREFIXES
        if prefixed.startswith(prefix) and len(word := prefixed.removeprefix(prefix)) > 3
    )

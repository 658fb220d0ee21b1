"""Takes sentences apart into statements: the words that each names, what it denies, what limits it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.core.negation_words import NEGATIONS, PARTLY, NegationWords
from storage.analyzer import fold

_TOKEN = re.compile(r"[^\W_]+|[;!?()|]|\.(?=\s|$)|,|\s[-–—]\s")
_BREAKS = frozenset(";!.()|-–—")
_ANSWER = re.compile(r"^\W*(?:no|yes|nein|ja|non|oui|si|nao|sim|nee)\s*[,.:;!–—-]\s*")
_NOT_AT_ALL = re.compile(
    r"""\bno[.s]*\s*(?=\d|of\b) | \bn[r°o]\.?\s*(?=\d) | \bn/a\b | \b(?:whether\ )?or\ not\b | \bno\ doubt\b
      | \b(?:not\ only|nicht\ nur|non\ seulement|no\ solo|non\ solo|nao\ (?:so|apenas)|niet\ alleen)\b
      | \bnothing\ but\b | \bif\ not\b | \bnot\ to\ mention\b | \bif\ any\b | \bany\ ?more\b""",
    re.VERBOSE,
)
"""Words that look like a denial and deny nothing."""
_NO_LONGER = re.compile(r"\bno longer\b(?! than)")
_PARTIAL = re.compile(
    r"\bnot (?:all|every\w*|always|each|both|necessarily|entirely|fully)\b"
    r"|\bnicht (?:alle\w*|jede\w*|immer)\b|\bpas (?:tou\w+|toujours)\b|\bno (?:tod\w+|siempre)\b"
    r"|\bnon (?:tutt\w+|sempre)\b|\bnao (?:tod\w+|sempre)\b|\bniet (?:alle\w*|altijd)\b"
)
_JOINTS = frozenset(", and or und oder et ou y o ed en of e".split())
_PAIRED = frozenset({"neither", "weder"})
"""With "nor" they deny once."""
_MUSTS = frozenset("must shall doit doivent debe deben deve devono devem moet moeten muss mussen".split())


@dataclass(frozen=True, slots=True)
class Clause:
    """One statement, taken apart."""

    words: tuple[str, ...]
    """Those that name something."""
    denials: tuple[int, ...]
    """For each denial, how many of ``words`` stand before it."""
    is_double: bool
    """Its denials cancel each other."""
    tokens: frozenset[str]
    limits: frozenset[str]
    owes: bool
    is_allowed: bool
    """It says that something may be, and not that it must."""

    @property
    def denied(self) -> tuple[str, ...]:
        """What the first denial is about: the words behind it, else all."""
        return self.words[self.denials[0] :] or self.words


def prepare(text: str) -> str:
    """Folded and in lower case; "can't" denies, "No. 5" and "not only" do not."""
    low = _ANSWER.sub("", fold(text).lower())
    for clipped, full in (("can't", "can not"), ("won't", "will not"), ("n't", " not")):
        low = low.replace(clipped, full)
    return _PARTIAL.sub(PARTLY, _NO_LONGER.sub("not", _NOT_AT_ALL.sub(" ", low)))


def read_languages(text: str) -> list[str]:
    """Those whose small words a text holds most; none when it holds none."""
    words = re.findall(r"[^\W_]+", text)
    counts = {name: sum(word in known.signs for word in words) for name, known in NEGATIONS.items()}
    best = max(counts.values())
    return [name for name, count in counts.items() if count == best and best]


def split_clauses(text: str, words: NegationWords) -> list[Clause]:
    """The statements of a text; questions state nothing."""
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
    """Commas part clauses where both sides have a verb of their own: "may not park, but must sign in"."""
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
        elif not _is_light(token, words):
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


def _is_light(token: str, words: NegationWords) -> bool:
    return token in words.unnamed or (len(token) == 1 and not token.isdigit())

"""Comparison of several readers' texts of a page: tokens with digits, words, order."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from itertools import pairwise

DASH = re.compile(r"[\-\u2010-\u2015\u2212\u2043\ufe58\ufe63\uff0d\xad]")
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_RAISED = re.compile(r"[\xaa\xb2\xb3\xb9\xba\xbc-\xbe\u2070-\u209f\u2120\u2122\u2150-\u215f\u2189^]")
_PARTS = re.compile(f"{_RAISED.pattern}+|[^{_RAISED.pattern[1:-2]}^]+")
# NFKC would flatten these, and attach lone accents to another letter.
_STAYS = re.compile(f"{_RAISED.pattern}|[\xa8\xaf\xb4\xb8\u02d8-\u02dd]")
_EDGES = re.compile(r"^(?:(?!-\d)[^\w])+|[^\w]+$")
_DIGIT = re.compile(r"\d")
_LETTERS = re.compile(r"[^\W\d_]+")


class Kind(StrEnum):
    """Kind of difference between our token and the others'."""

    MISSING = "missing"
    ALONE = "ours alone"
    RAISED = "raised"  # raised and lowered digits are kept apart on purpose
    SPACING = "spacing"  # the same characters, split differently
    DOUBTFUL = "doubtful"  # in ours and in one other reading


@dataclass(frozen=True, slots=True)
class Difference:
    """A token on which readers disagree."""

    kind: Kind
    token: str


@dataclass(frozen=True, slots=True)
class PageComparison:
    """Differences on a page, and totals."""

    numbers: tuple[Difference, ...]
    words: tuple[Difference, ...]
    count: int  # our tokens with digits
    pairs: int  # our pairs of neighbouring tokens
    strange_pairs: int  # pairs that no other reader has


def printed(text: str) -> str:
    """Return a text normalised to its look: one kind of dash, one form per letter; raised characters stay."""
    text = unicodedata.normalize("NFC", _UNSEEN.sub("", DASH.sub("-", text)))
    return "".join(char if _STAYS.match(char) else unicodedata.normalize("NFKC", char) for char in text)


def flat(text: str) -> str:
    """Return a text with raised characters lowered: ``10^5`` and ``10⁵`` become ``105``."""
    level = DASH.sub("-", unicodedata.normalize("NFKC", text))
    return level.replace("^", "").replace("\u2044", "/")


def tokens(text: str) -> list[str]:
    """Return the tokens between spaces, without punctuation and currency at the edges; signs are kept."""
    return [token for part in printed(text).split() if (token := _EDGES.sub("", part))]


def numbers(text: str) -> Counter[str]:
    """Return the tokens with a digit."""
    return Counter(token for token in tokens(text) if _DIGIT.search(flat(token)))


def words(text: str) -> Counter[str]:
    """Return the runs of letters in tokens without a digit."""
    plain = [token for token in tokens(text) if not _DIGIT.search(flat(token))]
    return Counter(word for token in plain for word in _LETTERS.findall(token))


def compare_page(ours: str, others: Sequence[str]) -> PageComparison:
    """Compare our text of a page with those of at least one other reader."""
    own, found = numbers(ours), list(map(numbers, others))
    doubtful = (own & reduce(Counter.__or__, found)) - reduce(Counter.__and__, found)
    pairs, *known = (list(pairwise(map(flat, tokens(text)))) for text in (ours, *others))
    neighbours = set().union(*known)
    return PageComparison(
        (
            *_differences(numbers, ours, others),
            *(Difference(Kind.DOUBTFUL, token) for token in sorted(doubtful.elements())),
        ),
        tuple(_differences(words, ours, others)),
        own.total(),
        len(pairs),
        sum(pair not in neighbours for pair in pairs),
    )


def _differences(
    count: Callable[[str], Counter[str]], ours: str, others: Sequence[str]
) -> Iterator[Difference]:
    """Yield what all others have more often than we do, and what we have more often than any other."""
    own, theirs = count(ours), list(map(count, others))
    missing = reduce(Counter.__and__, theirs) - own
    alone = own - reduce(Counter.__or__, theirs)
    own_text, their_text = (flat("".join(printed(text).split())) for text in (ours, "\n".join(others)))
    levelled = {part for token in alone if flat(token) in their_text for part in _levelled(token)}
    for kind, left, opposite, here, there in (
        (Kind.MISSING, missing, alone, their_text, own_text),
        (Kind.ALONE, alone, missing, own_text, their_text),
    ):
        for token in sorted(left.elements()):
            is_parted = _is_parted(flat(token), here, there, opposite)
            yield Difference(
                Kind.RAISED if flat(token) in levelled else Kind.SPACING if is_parted else kind, token
            )


def _levelled(token: str) -> list[str]:
    """Return how others may read raised characters: ``14¹`` as ``141``, or as ``14`` and ``1``."""
    return [flat(token), *map(flat, _PARTS.findall(token))] if _RAISED.search(token) else []


def _is_parted(token: str, here: str, there: str, opposite: Iterable[str]) -> bool:
    """True if ``there`` has the token with other spacing: whole, or as part of one of ``opposite``."""
    if "-" in token.strip("-") and token in there:
        return True
    return any(
        (token in one and one in here) or (one in token and token in there) for one in map(flat, opposite)
    )

"""Collapses near-identical passages, as of two copies of a page, and lets documents take turns.

Similarity is the Jaccard index of word 5-shingles (Broder, "On the resemblance and containment of documents",
1997); passages whose numbers differ never count as similar, however equal their words.

A question that spans documents gets passages of each; one about a single document is not diluted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, zip_longest
from uuid import UUID

from bot.core.models import Passage

MIN_SCORE = 0.4
"""Share of the best score that a document's best passage reaches before it takes part, unless it is named."""

MAX_PER_DOCUMENT = 8
"""Documents that take part."""

_SPANS = re.compile(
    r"""\bcompar(?:e[sd]?|ing|ison)\b | \bdiffer(?:s|ent|ence|ences|ently)?\b | \b(?:vs|versus)\b | \bboth\b
      | \bwhich\ (?:of|ones?|\w+s)\b | \b(?:each|every|all)\ (?:of\ )?(?:the\ |our\ )?\w+s?\b
      | \bacross\b | \brespectively\b | \b(?:any|either|neither)\ of\b | \bin\ common\b | \bsame\b
      | \bhow\ many\ of\b | \b(?:more|less|higher|lower|longer|shorter|better|cheaper)\b.*\b(?:than|or)\b
      | \bunterschie\w+ | \bunterscheid\w+ | \bvergl\w+ | \bdiff[ée]ren\w+ | \bcompara\w+ | \bdiferen\w+""",
    re.IGNORECASE | re.VERBOSE,
)

SIMILARITY = 0.9
_SHINGLE = 5
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
_NO_DIGITS = bytes(set(range(256)) - set(b"0123456789"))


def spans_documents(question: str) -> bool:
    """Whether the words ask for several documents: comparisons, "which of", "each of"."""
    return _SPANS.search(question) is not None


def diversify(passages: Sequence[Passage], named: Collection[UUID] = ()) -> list[Passage]:
    """The passages so that the documents take turns, each with its best first.

    Args:
        passages: best first.
        named: the documents that the question names; two of them leave the others for the end.
    """
    queues: dict[UUID, list[Passage]] = {}
    for passage in passages:
        queues.setdefault(passage.publication.document_id, []).append(passage)
    chosen = [id_ for id_ in queues if id_ in named]
    if len(chosen) < 2:
        least = MIN_SCORE * passages[0].score if passages else 0.0
        chosen = [id_ for id_, queue in queues.items() if queue[0].score >= least][:MAX_PER_DOCUMENT]
    turns = chain.from_iterable(zip_longest(*(queues[id_] for id_ in chosen)))
    others = (passage for passage in passages if passage.publication.document_id not in chosen)
    return [*filter(None, turns), *others]


class _TextFingerprint:
    """What one passage is compared by."""

    def __init__(self, passage: Passage) -> None:
        self._text = passage.text.casefold()
        self.digits = passage.text.encode(errors="ignore").translate(None, _NO_DIGITS)
        """Equal in texts of the same numbers; comparing them costs a tenth."""

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        return tuple(_NUMBER.findall(self._text))

    @cached_property
    def words(self) -> list[str]:
        return _WORD.findall(self._text)

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        last = max(len(self.words) - _SHINGLE, 0)
        return frozenset(tuple(self.words[at : at + _SHINGLE]) for at in range(last + 1))

    def is_like(self, other: _TextFingerprint) -> bool:
        """Whether another text says the same of the same numbers."""
        if self.numbers != other.numbers:
            return False
        if self.words == other.words:
            return True
        shorter, longer = sorted((len(self.words), len(other.words)))
        if shorter < SIMILARITY * longer:
            return False
        shared = len(self.shingles & other.shingles)
        return shared >= SIMILARITY * (len(self.shingles) + len(other.shingles) - shared)


def without_near_duplicates(passages: Iterable[Passage]) -> list[Passage]:
    """The passages without those nearly identical to an earlier one."""
    return [passage for passage, earlier in with_duplicates(passages) if earlier is None]


def with_duplicates(passages: Iterable[Passage]) -> Iterator[tuple[Passage, Passage | None]]:
    """Each passage with the earlier one that it nearly repeats; None where it repeats none that was kept."""
    by_digits: dict[bytes, list[tuple[_TextFingerprint, Passage]]] = {}
    for passage in passages:
        print_ = _TextFingerprint(passage)
        kept = by_digits.setdefault(print_.digits, [])
        like = next((earlier for other, earlier in kept if print_.is_like(other)), None)
        if like is None:
            kept.append((print_, passage))
        yield passage, like

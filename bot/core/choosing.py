"""Chooses which of the scored parts of the evidence are quoted, by where they stand.

A good answer stays on its page: a further quote from the page of an earlier one may be a good deal worse than
the best, one from another page hardly. A question that spans documents gets the best of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from bot.core.models import Evidence
from bot.core.quotes import page_at, reduce_text
from storage.quotables import Quotable

MAX_QUOTES = 4
"""Most quotes of an answer about one document."""

MAX_DOCUMENTS = 4
"""Most documents that a question which spans them gets a quote of."""

SAME_PAGE, OTHER_PAGE, OTHER_DOCUMENT = 0.7, 0.985, 0.85
"""Share of the best score that a further quote reaches at least."""

FRAGMENT_WORDS = 5
"""What has fewer words and no end is a scrap."""


@dataclass(frozen=True, slots=True)
class QuoteCandidate:
    """One quotable part of the evidence, scored."""

    item: Evidence
    unit: Quotable
    terms: tuple[str, ...]
    """The analyzer's."""
    coverage: float = 0.0
    """Share (0-1) of what is asked that its words hold."""
    score: float = 0.0

    @property
    def is_fragment(self) -> bool:
        """A heading or other scrap of text, which is no sentence and no row."""
        is_closed = self.unit.text.rstrip("\"'”’)]").endswith((".", "!", "?", ";"))
        return not is_closed and not self.unit.is_row and len(self.unit.text.split()) < FRAGMENT_WORDS

    @property
    def document(self) -> UUID:
        """The document it stands in."""
        return self.item.passage.publication.document_id

    @property
    def page(self) -> tuple[UUID, int]:
        """The page it begins on, of its document."""
        return self.document, page_at(self.item, self.unit.start)


def select_quotes(ranked: Sequence[QuoteCandidate], *, is_spanning: bool) -> list[QuoteCandidate]:
    """What is quoted of these, best first.

    Args:
        ranked: best first.
        is_spanning: the question asks for several documents.
    """
    if not is_spanning:
        return _on_pages(ranked)
    documents = _best_of_each(ranked)
    return documents if len(documents) > 1 else _on_pages(ranked)


def _on_pages(ranked: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    chosen: list[QuoteCandidate] = []
    for candidate in ranked:
        if len(chosen) == MAX_QUOTES:
            break
        is_near = candidate.page in {earlier.page for earlier in chosen}
        least = (SAME_PAGE if is_near else OTHER_PAGE) * ranked[0].score
        is_worth_it = candidate.score >= least and not (chosen and candidate.is_fragment)
        if is_worth_it and not _is_repeated(candidate, chosen):
            chosen.append(candidate)
    return chosen


def _best_of_each(ranked: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    chosen: dict[UUID, QuoteCandidate] = {}
    for candidate in ranked:
        is_close = candidate.score >= OTHER_DOCUMENT * ranked[0].score
        if is_close and candidate.document not in chosen and not _is_repeated(candidate, chosen.values()):
            chosen[candidate.document] = candidate
    return list(chosen.values())[:MAX_DOCUMENTS]


def _is_repeated(candidate: QuoteCandidate, earlier: Iterable[QuoteCandidate]) -> bool:
    return any(_says_the_same(candidate, other) for other in earlier)


def _says_the_same(one: QuoteCandidate, other: QuoteCandidate) -> bool:
    mine, theirs = reduce_text(one.unit.text).text, reduce_text(other.unit.text).text
    return mine in theirs or theirs in mine

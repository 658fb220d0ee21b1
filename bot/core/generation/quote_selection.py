"""Chooses what is quoted of the evidence: one to three places, each with its best sentence, row or item."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from itertools import takewhile
from uuid import UUID

from bot.core.generation.step_lists import asked_list
from bot.core.models import AnalyzedQuestion, Claim, Draft, Evidence, Quote
from bot.core.retrieval.ranking import day_of
from bot.core.understanding.answer_types import spans_documents, wants_table, wants_whole_list
from bot.core.understanding.question_terms import lookup_terms
from bot.core.verification.claims import page_at, reduce_text
from bot.core.verification.number_lexicon import UNITS
from bot.core.verification.table_rows import find_table
from storage.text.analyzer import analyze
from storage.text.sentences import LIST_MARKER, Quotable, with_introduced, with_subject

# Most places that are shown, quotes of each, and characters that those beside the best may bring them to.
MAX_PASSAGES, MAX_QUOTES, MAX_QUOTED_CHARS = 3, 2, 420

# A quote of a further place gives way to a shorter one of its page where it has more characters.
MAX_FURTHER_CHARS = 250

# Most rows that are quoted of a table, its header beside them.
MAX_TABLE_ROWS = 12

# Of so many of the likeliest parts, the first in or beside a table tells which table is asked for.
PARTS_BESIDE_TABLE = 6

# Most documents that a question which spans them gets a quote of.
MAX_DOCUMENTS = 7

# How far below the best, in log-odds, a further quote may be; the last for a contradicting one. With 3.0 for
# another page half of the replies show one place; .86 hold a right page (.88 with three places each).
SAME_PAGE, OTHER_PAGE, OTHER_DOCUMENT, OTHER_VALUE = 1.0, 3.0, 2.0, 4.0

# Share of their words that sentences of two documents have in common when both say it of something else.
TWIN_SHARE = 0.5

# What has fewer words and no end is a scrap; what has fewer than the second number even with one: "(NPRM).".
FRAGMENT_WORDS, MIN_WORDS = 5, 3

# Texts whose terms are kept in memory: up to ten megabytes, and the passages of the questions just asked.
TEXTS_KEPT = 256

_HEADER_RULE = re.compile(r"[ |]*\n[ |]*-{3,}")  # below the row that names a table's columns
# Words; each sign of a script that sets none apart (Thai, Khmer, Chinese, Japanese) counts as one.
_NAMED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+")
_ENDS = tuple(".!?;:。؟؛।۔")
_ITEM = re.compile(LIST_MARKER)
# A line whose number stands apart, as "4.  Required Materials": no row, though it looks like two cells.
_NUMBERED_LINE = re.compile(rf"{LIST_MARKER}\s+(?:(?! {{2}}| \| ).)+", re.DOTALL)
_CAPTION_NUMBER = re.compile(r"(?:table|figure|fig|chart)\.?\s\d+\.", re.IGNORECASE)
_VALUE = re.compile(r"[^\W\d_].*\s(?P<before>[^\w\s])?\s?\d[\d.,]*\s?(?P<unit>[^\s\d.,]+)?$")
_LIST = re.compile(rf":\s+{LIST_MARKER}|:[ \t]*\n")  # behind what introduces a list


@dataclass(frozen=True, slots=True)
class QuoteCandidate:
    """Quotable part of the evidence with its score."""

    item: Evidence
    unit: Quotable
    # Share (0-1) of what is asked that its words hold.
    coverage: float = 0.0
    # It, its headings or its document's title say a content word of the question, or one for it.
    #
    # Of a document in another language than the question, which cannot say its words, always.
    is_about: bool = True
    # In log-odds, among the candidates of one question.
    score: float = 0.0
    # With the question, as ``CosineScale`` reads it; None: its vector was not made.
    cosine: float | None = None
    # A row of labelled fields, none of whose labels the question says: ``Location: Venice, FL``.
    is_unasked: bool = False

    @property
    def section(self) -> tuple[str, ...]:
        """The headings above it."""
        return self.item.section_at(self.unit.end - 1)

    @property
    def is_label(self) -> bool:
        """A heading, a caption, a table's header, a field nobody asked for: no answer by itself."""
        words = " ".join(self.unit.text.split())
        is_header = _HEADER_RULE.match(self.item.passage.text, self.unit.end) is not None
        if self.is_unasked or is_header or _CAPTION_NUMBER.fullmatch(words):
            return True
        if _gives_value(words):
            return False
        marker = _ITEM.match(words)
        is_item = marker is not None and (
            self.unit.lead is not None or len(words[marker.end() :].split()) >= FRAGMENT_WORDS
        )
        is_row = self.unit.is_row and not _NUMBERED_LINE.fullmatch(self.unit.text)
        if not (is_row or marker or words.endswith(":")) and len(_NAMED.findall(words)) < MIN_WORDS:
            return True
        is_closed = words.rstrip("\"'”’)]」』").endswith(_ENDS)
        is_list = _LIST.search(self.unit.text) is not None
        return not (is_row or is_item or is_closed or is_list)

    @property
    def document(self) -> UUID:
        """The document that holds it."""
        return self.item.passage.publication.document_id

    @property
    def page(self) -> tuple[UUID, int]:
        """The page it begins on, of its document."""
        return self.document, page_at(self.item, self.unit.start)


def _gives_value(words: str) -> bool:
    """True for a name with its price or measure, as in a menu: ``Express handling - 25 EUR``."""
    found = _VALUE.search(words)
    units = (found["before"], found["unit"]) if found else ()
    return any((unit or "").casefold() in UNITS for unit in units)


@dataclass(frozen=True, slots=True)
class RankedQuotes:
    """Quotable parts of the evidence, best first, and the tokens embedded to rank them."""

    candidates: Sequence[QuoteCandidate]
    # Tokens of what was embedded for it.
    embedded: int = 0

    @property
    def is_of_several_pages(self) -> bool:
        """True if more than one page comes so near the best that it may contradict it."""
        said = without_labels(self.candidates)
        return len({one.page for one in said if one.score >= said[0].score - OTHER_VALUE}) > 1

    def chosen(self, question: AnalyzedQuestion) -> list[QuoteCandidate]:
        """Return the quotes that answer the question; none when there is nothing to quote."""
        is_list = wants_whole_list(question.text)  # an introduction brings its list along there alone
        whole = map(_with_introduced, self.candidates)
        ranked = [one for one in whole if is_list or not one.unit.text.endswith(":")]
        chosen = select_quotes(ranked, is_spanning=spans_documents(question.text))
        chosen = chosen or _naming(ranked, lookup_terms(question.text))[:1]
        if chosen and wants_table(question.text) and (table := self._table()):
            chosen = [table]
        return chosen

    def draft(self, question: AnalyzedQuestion, chosen: Sequence[QuoteCandidate]) -> Draft:
        """Draft these quotes; for who asks how, or what there is, the whole list of the best among them."""
        evidence = {one.item.number: one.item for one in self.candidates}.values()
        ranked = sorted(chosen, key=lambda one: -one.score)
        is_list = wants_whole_list(question.text)
        asking = takewhile(lambda one: is_list and one.score >= ranked[0].score - SAME_PAGE, ranked)
        lists = (asked_list(question.text, one.item, one.unit, evidence) for one in asking)
        whole = next(filter(None, lists), None)
        return Draft(tuple(whole.claims(question.language)), verbatim=True) if whole else draft_of(chosen)

    def _table(self) -> QuoteCandidate | None:
        """Return the whole table that the likeliest parts of the evidence belong to, or stand beside."""
        for one in self.candidates[:PARTS_BESIDE_TABLE]:
            text = one.item.passage.text
            if span := find_table(text, one.unit.start, MAX_TABLE_ROWS):
                return replace(one, unit=Quotable(*span, text[slice(*span)], is_row=True))
        return None


def _naming(ranked: Sequence[QuoteCandidate], terms: frozenset[str]) -> list[QuoteCandidate]:
    """Filter the candidates that say all of these terms, if any: a bare name is answered by its label."""
    return [
        one
        for one in ranked
        if terms and terms <= terms_of((one.unit.text,)) and not one.is_unasked
        if len(_NAMED.findall(one.unit.text)) > len(terms)  # "(NPRM)." says nothing of it
    ]


def draft_of(chosen: Iterable[QuoteCandidate]) -> Draft:
    """Draft these quotes in their order, each as a claim."""
    claims = (Claim(one.unit.text, tuple(_quotes(one))) for one in chosen)
    return Draft(tuple(claims), verbatim=True)


def _quotes(one: QuoteCandidate) -> Iterator[Quote]:
    """Yield its lead, if that is elsewhere, and itself."""
    if one.unit.lead:
        start, end = one.unit.lead
        yield Quote(one.item.number, one.item.passage.text[start:end], start)
    yield Quote(one.item.number, one.unit.text, one.unit.start)


def select_quotes(ranked: Sequence[QuoteCandidate], *, is_spanning: bool) -> list[QuoteCandidate]:
    """Select what is quoted, the best passage first; sentences with nothing between them are one quote.

    Args:
        ranked: best first.
        is_spanning: the question asks for several documents.
    """
    documents = _best_of_each(ranked) if is_spanning else []
    return documents if len(documents) > 1 else _newest_first(_joined(_on_pages(ranked)))


def _newest_first(chosen: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """Return the same, where of documents that say the same the newest comes first."""
    ordered: list[QuoteCandidate] = []
    for one in chosen:
        day = day_of(one.item.passage.publication) or date.min
        older = (
            at
            for at, earlier in enumerate(ordered)
            if is_twin(one, [earlier]) and day > (day_of(earlier.item.passage.publication) or date.min)
        )
        ordered.insert(next(older, len(ordered)), one)
    return ordered


def _on_pages(ranked: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """The best quote of each page that comes near the best of all, and what comes near it on its page."""
    said = (one for one in ranked if one.is_about and not one.is_label)
    best = next(said, None)
    if best is None:
        return []
    farthest = best.score - OTHER_PAGE - SAME_PAGE
    shown = [best, *takewhile(lambda one: one.score >= farthest, said)]
    pages: dict[tuple[UUID, int], QuoteCandidate] = {}
    for one in takewhile(lambda one: one.score >= best.score - OTHER_PAGE, shown):
        if one.page not in pages and len(pages) < MAX_PASSAGES and not _is_repeated(one, pages.values()):
            pages[one.page] = _shorter(one, shown) if pages else one
    chosen = list(pages.values())
    for one in shown:
        is_near = one.page in pages and one.score >= pages[one.page].score - SAME_PAGE
        if one.page != chosen[0].page and len(one.unit.text) > MAX_FURTHER_CHARS:
            continue
        if is_near and one not in chosen and not _is_repeated(one, chosen):
            quotes = _joined([*chosen, one])
            is_room = sum(each.page == one.page for each in quotes) <= MAX_QUOTES
            if is_room and sum(len(each.unit.text) for each in quotes) <= MAX_QUOTED_CHARS:
                chosen.append(one)
    return [one for one in chosen if not any(_is_beyond(other, one) for other in chosen)]


def _shorter(best: QuoteCandidate, shown: Sequence[QuoteCandidate]) -> QuoteCandidate:
    """The best short quote of a further page that comes near its best one; that one where none does."""
    near = (one for one in shown if one.page == best.page and one.score >= best.score - SAME_PAGE)
    return next((one for one in near if len(one.unit.text) <= MAX_FURTHER_CHARS), best)


def _is_beyond(item: QuoteCandidate, part: QuoteCandidate) -> bool:
    """True if an item stands behind the part of its list that is quoted as a whole, and says more."""
    lead = item.unit.lead
    is_its_list = lead is not None and item.item is part.item and lead[0] == part.unit.start
    return is_its_list and item.coverage > part.coverage


def _joined(chosen: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """The same, where sentences with nothing between them are one, and items of a list as they follow."""
    joined: list[QuoteCandidate] = []
    for one in sorted(map(_with_subject, chosen), key=lambda one: (one.item.number, one.unit.start)):
        before = joined[-1] if joined and joined[-1].item is one.item else None
        text = one.item.passage.text
        is_row = one.unit.is_row or (before is not None and before.unit.is_row)
        if before and not is_row and not text[before.unit.end : one.unit.start].strip():
            start, end = before.unit.start, max(before.unit.end, one.unit.end)
            unit = replace(before.unit, end=end, text=text[start:end])
            joined[-1] = replace(before, unit=unit, score=max(before.score, one.score))
        else:
            joined.append(one)
    best = {one.page: max(each.score for each in joined if each.page == one.page) for one in joined}
    return sorted(joined, key=lambda one: (-best[one.page], 0.0 if _is_item(one) else -one.score))


def _with_subject(one: QuoteCandidate) -> QuoteCandidate:
    return replace(one, unit=with_subject(one.item.passage.text, one.unit))


def _with_introduced(one: QuoteCandidate) -> QuoteCandidate:
    if not one.unit.text.endswith(":"):
        return one
    return replace(one, unit=with_introduced(one.item.passage.text, one.unit))


def is_twin(candidate: QuoteCandidate, chosen: Sequence[QuoteCandidate]) -> bool:
    """True if another document says the same of something else, as of another office: both are shown."""
    if candidate.document in {one.document for one in chosen}:
        return False
    mine, best = (terms_of((one.unit.text,)) for one in (candidate, chosen[0]))
    return len(mine & best) >= TWIN_SHARE * len(mine | best)


def _is_item(one: QuoteCandidate) -> bool:
    return _ITEM.match(one.unit.text) is not None


def without_labels(ranked: Sequence[QuoteCandidate]) -> Sequence[QuoteCandidate]:
    """Filter out labels; keep the first one if there is nothing else."""
    return [one for one in ranked if not one.is_label] or ranked[:1]


def _best_of_each(ranked: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    chosen: dict[UUID, QuoteCandidate] = {}
    for candidate in without_labels(ranked):
        is_close = candidate.score >= ranked[0].score - OTHER_PAGE and candidate.is_about
        if is_close and candidate.document not in chosen and not _is_repeated(candidate, chosen.values()):
            chosen[candidate.document] = candidate
    return list(chosen.values())[:MAX_DOCUMENTS]


def _is_repeated(candidate: QuoteCandidate, earlier: Iterable[QuoteCandidate]) -> bool:
    mine = reduce_text(candidate.unit.text).text
    others = [reduce_text(other.unit.text).text for other in earlier]
    return any(mine in theirs or theirs in mine for theirs in others)


@lru_cache(maxsize=TEXTS_KEPT)
def terms_of(texts: tuple[str, ...]) -> frozenset[str]:
    """Return the analyzer's terms of some texts."""
    return frozenset(analyze(" ".join(texts)))

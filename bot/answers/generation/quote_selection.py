"""Selects the quotes to show: one to three places, each with its best sentence, row or item."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from itertools import takewhile
from uuid import UUID

from bot.answers.generation.step_lists import StepList, asked_list
from bot.answers.retrieval.ranking import document_date
from bot.answers.understanding.answer_types import (
    RequiredAnswer,
    spans_documents,
    wants_table,
    wants_whole_list,
)
from bot.answers.understanding.question_terms import lookup_terms
from bot.answers.verification.claims import page_at, reduce_text
from bot.answers.verification.number_lexicon import UNITS
from bot.answers.verification.table_rows import find_table, names_of_row
from bot.core.models import AnalyzedQuestion, Claim, Draft, Evidence, Quote
from storage.text.analyzer import analyze
from storage.text.sentences import LIST_MARKER, Quotable, with_introduced, with_subject

# Maximum places shown, quotes per place, and characters that quotes next to the best may add up to.
MAX_PASSAGES, MAX_QUOTES, MAX_QUOTED_CHARS = 3, 2, 420

# A longer quote of a further place is replaced by a shorter one of its page.
MAX_FURTHER_CHARS = 250

# Maximum rows quoted from a table, header excluded.
MAX_TABLE_ROWS = 12

# Number of top candidates of which the first in or next to a table determines the requested table.
MAX_TABLE_CANDIDATES = 6

# Maximum documents quoted for a question that spans several.
MAX_DOCUMENTS = 7

# Minimum share of common words in sentences of two documents that say the same of different things.
TWIN_SHARE = 0.5

# A text with fewer words and no end is a fragment; with fewer than the second number even with one:
# "(NPRM).".
FRAGMENT_WORDS, MIN_WORDS = 5, 3

# Cache size: up to ten megabytes, enough for the passages of the most recent questions.
TERMS_CACHE_SIZE = 256
# The same for their sentences, rows and items.
LABELS_CACHE_SIZE = 32 * TERMS_CACHE_SIZE

_HEADER_RULE = re.compile(r"[ |]*\n[ |]*-{3,}")  # rule below a table's header row
# Words; in scripts without spaces (Thai, Khmer, Chinese, Japanese) each character counts as one.
_NAMED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+")
_ENDS = tuple(".!?;:。؟؛।۔")
_ASKS = ("?", "؟", "？")  # a question, such as a heading of an FAQ, answers none
_PAGE_NUMBER = re.compile(r"[\s|.]+\d{1,4}[\s|]*$")  # after a question in a table of contents
_ITEM = re.compile(LIST_MARKER)
# A numbered line such as "4.  Required Materials": not a row, though it looks like two cells.
_NUMBERED_LINE = re.compile(rf"{LIST_MARKER}\s+(?:(?! {{2}}| \| ).)+", re.DOTALL)
_CAPTION_NUMBER = re.compile(r"(?:table|figure|fig|chart)\.?\s\d+\.", re.IGNORECASE)
_VALUE = re.compile(r"\s(?P<before>[^\w\s])?\s?\d[\d.,]*\s?(?P<unit>[^\s\d.,]+)?$")
_LETTER = re.compile(r"[^\W\d_]")
_LIST = re.compile(rf":\s+{LIST_MARKER}|:[ \t]*\n")  # end of a list's lead-in


@dataclass(frozen=True, slots=True)
class ScoreMargins:
    """Maximum distances of a further quote from the best one, in log-odds."""

    same_page: float = 1.0
    # With 3.0 half of the replies show one place; .86 contain a right page (.88 with three places each).
    other_page: float = 3.0
    other_document: float = 2.0
    # Of a quote that contradicts the best one.
    other_value: float = 4.0


MARGINS = ScoreMargins()


@dataclass(frozen=True, slots=True)
class QuoteCandidate:
    """Quotable part of the evidence with its score."""

    item: Evidence
    unit: Quotable
    # Share (0-1) of the question's weight that its words cover.
    coverage: float = 0.0
    # The part, its headings or its document's title contain a content word of the question or a synonym.
    #
    # Always true if the document is in another language than the question.
    is_about: bool = True
    # Log-odds among the candidates of one question.
    score: float = 0.0
    # Similarity to the question, on the scale of ``CosineCalibration``; None: it has no vector.
    cosine: float | None = None
    # A row of labelled fields, none of which the question mentions: ``Location: Venice, FL``.
    is_unasked: bool = False

    @property
    def section(self) -> tuple[str, ...]:
        """Headings above it."""
        return self.item.section_at(self.unit.end - 1)

    @property
    def is_label(self) -> bool:
        """True for a heading, caption, table header or unrequested field, which is no answer by itself."""
        return self.is_unasked or _is_label(self.unit, self.item.passage.text, self.section)

    @property
    def document(self) -> UUID:
        """Id of the document that contains it."""
        return self.item.passage.publication.document_id

    @property
    def page(self) -> tuple[UUID, int]:
        """(document, page) on which it begins."""
        return self.document, page_at(self.item, self.unit.start)


@lru_cache(maxsize=LABELS_CACHE_SIZE)
def _is_label(unit: Quotable, text: str, section: tuple[str, ...]) -> bool:
    """True if a part of ``text`` is no answer; cached, because passages recur, also within a question."""
    words = " ".join(unit.text.split())
    is_header = _HEADER_RULE.match(text, unit.end) is not None
    # A heading of several sentences is quotable in parts.
    is_heading = any(" ".join(heading.split()).startswith(words) for heading in section)
    if is_header or is_heading:
        return True
    if _CAPTION_NUMBER.fullmatch(words) or _PAGE_NUMBER.sub("", words).endswith(_ASKS):
        return True
    if _gives_value(words):
        return False
    marker = _ITEM.match(words)
    is_item = marker is not None and (
        unit.lead is not None or len(words[marker.end() :].split()) >= FRAGMENT_WORDS
    )
    is_row = unit.is_row and not _NUMBERED_LINE.fullmatch(unit.text)
    if not (is_row or marker or words.endswith(":")) and len(_NAMED.findall(words)) < MIN_WORDS:
        return True
    is_closed = words.rstrip("\"'”’)]」』").endswith(_ENDS)
    is_list = _LIST.search(unit.text) is not None
    return not (is_row or is_item or is_closed or is_list)


def _gives_value(words: str) -> bool:
    """True for a name with its price or measure, as in a menu: ``Express handling - 25 EUR``."""
    found = _VALUE.search(words)
    is_named = found and _LETTER.search(words, 0, found.start())
    units = (found["before"], found["unit"]) if found and is_named else ()
    return any((unit or "").casefold() in UNITS for unit in units)


@dataclass(frozen=True, slots=True)
class RankedQuotes:
    """Quotable parts of the evidence, best first, and the tokens embedded to rank them."""

    candidates: Sequence[QuoteCandidate]
    embedded: int = 0
    # Passages next to the best one, to which its list may extend; nothing else of them is quoted.
    beside: Sequence[Evidence] = ()

    @property
    def best(self) -> Evidence | None:
        """Passage of the best candidate that is no label; None without candidates."""
        return next((one.item for one in without_labels(self.candidates)), None)

    @property
    def is_of_several_pages(self) -> bool:
        """True if several pages score close enough to the best to contradict it."""
        said = without_labels(self.candidates)
        return len({one.page for one in said if one.score >= said[0].score - MARGINS.other_value}) > 1

    def chosen(self, question: AnalyzedQuestion) -> list[QuoteCandidate]:
        """Return the quotes that answer the question; none if it asks for a price that they lack."""
        is_list = wants_whole_list(question.text)  # a lead-in is quoted only with its list
        whole = map(_with_introduced, self.candidates)
        ranked = [one for one in whole if is_list or not one.unit.text.endswith(":")]
        chosen = select_quotes(ranked, is_spanning=spans_documents(question.text))
        chosen = chosen or _naming(ranked, lookup_terms(question.text))[:1]
        if chosen and wants_table(question.text) and (table := self._table()):
            chosen = [table]
        return chosen if RequiredAnswer(question.text).may_be_answered_by(*map(_said_with, chosen)) else []

    def draft(self, question: AnalyzedQuestion, chosen: Sequence[QuoteCandidate]) -> Draft:
        """Draft these quotes; if steps or a list are asked for, the whole list instead."""
        whole = self._whole_list(question, chosen) if chosen and wants_whole_list(question.text) else None
        return Draft(tuple(whole.claims(question.language)), verbatim=True) if whole else draft_of(chosen)

    def _whole_list(self, question: AnalyzedQuestion, chosen: Sequence[QuoteCandidate]) -> StepList | None:
        """Return the list of the best sentence in one, quoted or on the best page; None if there is none.

        The best sentence about a procedure is often beside its steps.
        """
        best = max(chosen, key=lambda one: one.score)
        beside = (one for one in self.candidates if one.page == best.page)
        ranked = sorted((*chosen, *beside), key=lambda one: -one.score)
        near = takewhile(lambda one: one.score >= best.score - MARGINS.same_page, ranked)
        read = {one.item.number: one.item for one in self.candidates}.values()
        evidence = (*read, *self.beside)
        lists = (asked_list(question.text, one.item, one.unit, evidence) for one in near)
        return next(filter(None, lists), None)

    def _table(self) -> QuoteCandidate | None:
        """Return the whole table that the top candidates are in or next to; None if there is none."""
        for one in self.candidates[:MAX_TABLE_CANDIDATES]:
            text = one.item.passage.text
            if span := find_table(text, one.unit.start, MAX_TABLE_ROWS):
                return replace(one, unit=Quotable(*span, text[slice(*span)], is_row=True))
        return None


def _said_with(one: QuoteCandidate) -> str:
    """Return a quote with its lead-in, and with the names of its row."""
    text, lead = one.item.passage.text, one.unit.lead
    names = names_of_row(text, one.unit.start) if one.unit.is_row else ""
    return f"{text[slice(*lead)] if lead else ''} {names} {one.unit.text}"


def _naming(ranked: Sequence[QuoteCandidate], terms: frozenset[str]) -> list[QuoteCandidate]:
    """Return the candidates that contain all of these terms, if any: a bare name is answered by its label."""
    return [
        one
        for one in ranked
        if terms and terms <= terms_of((one.unit.text,)) and not one.is_unasked
        if len(_NAMED.findall(one.unit.text)) > len(terms)  # "(NPRM)." explains nothing
    ]


def draft_of(chosen: Iterable[QuoteCandidate]) -> Draft:
    """Draft these quotes in their order, each as a claim."""
    claims = (Claim(one.unit.text, tuple(_quotes(one))) for one in chosen)
    return Draft(tuple(claims), verbatim=True)


def _quotes(one: QuoteCandidate) -> Iterator[Quote]:
    """Yield the lead-in, if it is elsewhere, and the quote itself."""
    if one.unit.lead:
        start, end = one.unit.lead
        yield Quote(one.item.number, one.item.passage.text[start:end], start)
    yield Quote(one.item.number, one.unit.text, one.unit.start)


def select_quotes(ranked: Sequence[QuoteCandidate], *, is_spanning: bool) -> list[QuoteCandidate]:
    """Select the quotes to show, the best passage first; adjacent sentences become one quote.

    Args:
        ranked: best first.
        is_spanning: the question spans several documents.
    """
    documents = _best_of_each(ranked) if is_spanning else []
    return documents if len(documents) > 1 else _newest_first(_joined(_on_pages(ranked)))


def _newest_first(chosen: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """Reorder the quotes: among documents that say the same, the newest comes first."""
    ordered: list[QuoteCandidate] = []
    for one in chosen:
        day = document_date(one.item.passage.publication) or date.min
        older = (
            at
            for at, earlier in enumerate(ordered)
            if is_twin(one, [earlier]) and day > (document_date(earlier.item.passage.publication) or date.min)
        )
        ordered.insert(next(older, len(ordered)), one)
    return ordered


def _on_pages(ranked: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """Return each page's best quote that is close to the best of all, and close ones on these pages."""
    said = (one for one in ranked if one.is_about and not one.is_label)
    best = next(said, None)
    if best is None:
        return []
    farthest = best.score - MARGINS.other_page - MARGINS.same_page
    shown = [best, *takewhile(lambda one: one.score >= farthest, said)]
    pages: dict[tuple[UUID, int], QuoteCandidate] = {}
    for one in takewhile(lambda one: one.score >= best.score - MARGINS.other_page, shown):
        if one.page not in pages and len(pages) < MAX_PASSAGES and not _is_repeated(one, pages.values()):
            pages[one.page] = _shorter(one, shown, pages.values()) if pages else one
    chosen = list(pages.values())
    for one in shown:
        is_near = one.page in pages and one.score >= pages[one.page].score - MARGINS.same_page
        if one.page != chosen[0].page and len(one.unit.text) > MAX_FURTHER_CHARS:
            continue
        if is_near and one not in chosen and not _is_repeated(one, chosen):
            quotes = _joined([*chosen, one])
            is_room = sum(each.page == one.page for each in quotes) <= MAX_QUOTES
            if is_room and sum(len(each.unit.text) for each in quotes) <= MAX_QUOTED_CHARS:
                chosen.append(one)
    return [one for one in chosen if not any(_is_beyond(other, one) for other in chosen)]


def _shorter(
    best: QuoteCandidate, shown: Sequence[QuoteCandidate], earlier: Collection[QuoteCandidate]
) -> QuoteCandidate:
    """Return the best short and new quote of a further page if it is close to its best one; else that one."""
    near = (one for one in shown if one.page == best.page and one.score >= best.score - MARGINS.same_page)
    short = (one for one in near if len(one.unit.text) <= MAX_FURTHER_CHARS)
    return next((one for one in short if not _is_repeated(one, earlier)), best)


def _is_beyond(item: QuoteCandidate, part: QuoteCandidate) -> bool:
    """True if an item comes after the quoted part of its list, and covers more of the question."""
    lead = item.unit.lead
    is_its_list = lead is not None and item.item is part.item and lead[0] == part.unit.start
    return is_its_list and item.coverage > part.coverage


def _joined(chosen: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """Merge adjacent sentences; sort by page, items of a list in their order."""
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
    """True if another document says the same of something else, such as another office: both are shown."""
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
        is_close = candidate.score >= ranked[0].score - MARGINS.other_page and candidate.is_about
        if is_close and candidate.document not in chosen and not _is_repeated(candidate, chosen.values()):
            chosen[candidate.document] = candidate
    return list(chosen.values())[:MAX_DOCUMENTS]


def _is_repeated(candidate: QuoteCandidate, earlier: Iterable[QuoteCandidate]) -> bool:
    mine = reduce_text(candidate.unit.text).text
    others = [reduce_text(other.unit.text).text for other in earlier]
    return any(mine in theirs or theirs in mine for theirs in others)


@lru_cache(maxsize=TERMS_CACHE_SIZE)
def terms_of(texts: tuple[str, ...]) -> frozenset[str]:
    """Return the analyzer's terms of some texts."""
    return frozenset(analyze(" ".join(texts)))

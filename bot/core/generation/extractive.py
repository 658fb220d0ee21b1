"""Answers with the documents' own sentences: the answerer that needs no model and cannot invent.

Each sentence, list item and table row of the evidence is scored by a linear model, trained by softmax over
the candidates of a question (listwise, as ListNet: Cao et al., "Learning to Rank: From Pairwise Approach to
Listwise Approach", 2007) on the tuning half of ``tools/evaluation``, where the right ones are those that hold
a fact of the answer. A page counts by all that stands on it.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from uuid import UUID

import numpy as np

from bot.core.generation.step_lists import asked_list
from bot.core.models import AnalyzedQuestion, Claim, Draft, Evidence, Quote
from bot.core.retrieval.reranking import SentenceVectors
from bot.core.understanding.answer_types import RequiredAnswer, spans_documents, wants_table, wants_whole_list
from bot.core.understanding.question_terms import QuestionTerms
from bot.core.verification.claims import page_at, reduce_text
from bot.core.verification.table_rows import find_table
from storage.embeddings.base import QueryEmbedder
from storage.embeddings.cosine_scale import CosineScale
from storage.queues.reading_repair import SentenceVectorStore
from storage.text.analyzer import analyze
from storage.text.sentences import LIST_MARKER, Quotable, quotables, with_subject

# Most places that are shown, quotes of each, and characters that those beside the best may bring them to.
MAX_PASSAGES, MAX_QUOTES, MAX_QUOTED_CHARS = 3, 2, 420

MAX_TABLE_ROWS = 12
"""Most rows that are quoted of a table, its header beside them."""

PARTS_BESIDE_TABLE = 6
"""Of so many of the likeliest parts, the first in or beside a table tells which table is asked for."""

MAX_DOCUMENTS = 4
"""Most documents that a question which spans them gets a quote of."""

# How far below the best, in log-odds, a further quote may be; the last for a contradicting one. With 3.0 for
# another page half of the replies show one place; .86 hold a right page (.88 with three places each).
SAME_PAGE, OTHER_PAGE, OTHER_DOCUMENT, OTHER_VALUE = 1.0, 3.0, 2.0, 4.0

TWIN_SHARE = 0.5
"""Share of their words that sentences of two documents have in common when both say it of something else."""

# What has fewer words and no end is a scrap; what has fewer than the second number even with one: "(NPRM).".
FRAGMENT_WORDS, MIN_WORDS = 5, 3

COSINE, COVERAGE, HEADINGS = 2.9, 1.35, 2.4
"""Weights, in log-odds, of the nearness of meaning; of the share of the question that a part says; and of the
share that its headings and its document's title say."""

PASSAGE, RANK = 2.2, 1.35
"""Weights of its passage's score beside the best, and of 1 / its rank."""

KIND, LABEL, NUMBER, LENGTH = 1.75, 1.5, 0.5, 0.29
"""Weights of holding the kind of answer asked for; of the share of a field's label that the question says; of
holding any number; and of the logarithm of its words."""

CONTRADICTED = 6.0
"""Taken off a part that names years, and none of the question's; set by hand, as few questions name one."""

PASSAGES_KEPT = 256
"""Taken apart in memory: up to ten megabytes, and the passages of the questions just asked."""

_LABEL = re.compile(r"\s*([^\W\d_][^:]{0,48}):(?:\s|$)")
_HEADER_RULE = re.compile(r"[ |]*\n[ |]*-{3,}")
"""Behind the row that names a table's columns."""
_NAMED = re.compile(r"\w+")
_CELL_END = re.compile(r"\||\s{2,}")
_ITEM = re.compile(LIST_MARKER)
_NUMBERED_LINE = re.compile(rf"{LIST_MARKER}\s+(?:(?! {{2}}| \| ).)+", re.DOTALL)
"""A line whose number stands apart, as ``4.  Required Materials``: no row, though it looks like two cells."""
_CAPTION_NUMBER = re.compile(r"(?:table|figure|fig|chart)\.?\s\d+\.", re.IGNORECASE)
_LIST = re.compile(rf":\s+{LIST_MARKER}|:[ \t]*\n")
"""Behind what introduces a list."""


@dataclass(frozen=True, slots=True)
class QuoteCandidate:
    """One quotable part of the evidence, scored."""

    item: Evidence
    unit: Quotable
    coverage: float = 0.0
    """Share (0-1) of what is asked that its words hold."""
    is_about: bool = True
    """It, its headings or its document's title say a content word of the question, or one for it."""
    score: float = 0.0
    """In log-odds, among the candidates of one question."""
    cosine: float | None = None
    """With the question, as ``CosineScale`` reads it; None: its vector was not made."""
    is_unasked: bool = False
    """A row of labelled fields, none of whose labels the question says: ``Location:  Venice, FL``."""

    @property
    def is_label(self) -> bool:
        """A heading, a caption, a table's header, a field nobody asked for: no answer by itself."""
        words = " ".join(self.unit.text.split())
        is_header = _HEADER_RULE.match(self.item.passage.text, self.unit.end) is not None
        if self.is_unasked or is_header or _CAPTION_NUMBER.fullmatch(words):
            return True
        marker = _ITEM.match(words)
        is_item = marker is not None and (
            self.unit.lead is not None or len(words[marker.end() :].split()) >= FRAGMENT_WORDS
        )
        is_row = self.unit.is_row and not _NUMBERED_LINE.fullmatch(self.unit.text)
        if not (is_row or marker or words.endswith(":")) and len(_NAMED.findall(words)) < MIN_WORDS:
            return True
        is_closed = words.rstrip("\"'”’)]").endswith((".", "!", "?", ";", ":"))
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


@dataclass(frozen=True, slots=True)
class RankedQuotes:
    """What may be quoted of the evidence, best first, and what comparing it cost."""

    candidates: Sequence[QuoteCandidate]
    embedded: int = 0
    """Tokens of what was embedded for it."""

    @property
    def is_of_several_pages(self) -> bool:
        """Whether more than one page comes so near the best that it may contradict it."""
        said = without_labels(self.candidates)
        return len({one.page for one in said if one.score >= said[0].score - OTHER_VALUE}) > 1

    def chosen(self, question: AnalyzedQuestion) -> list[QuoteCandidate]:
        """The quotes that answer the question; none when there is nothing to quote."""
        is_list = wants_whole_list(question.text)  # an introduction brings its list along there alone
        ranked = [one for one in self.candidates if is_list or not one.unit.text.endswith(":")]
        chosen = select_quotes(ranked, is_spanning=spans_documents(question.text))
        if chosen and wants_table(question.text) and (table := self._table()):
            chosen = [table]
        return chosen

    def draft(self, question: AnalyzedQuestion, chosen: Sequence[QuoteCandidate]) -> Draft:
        """These as a draft; for who asks how, or what there is, the whole list of the best among them."""
        evidence = {one.item.number: one.item for one in self.candidates}.values()
        ranked = sorted(chosen, key=lambda one: -one.score)
        asking = ranked if wants_whole_list(question.text) else ()
        lists = (asked_list(question.text, one.item, one.unit, evidence) for one in asking)
        whole = next(filter(None, lists), None)
        return Draft(tuple(whole.claims(question.language)), verbatim=True) if whole else draft_of(chosen)

    def _table(self) -> QuoteCandidate | None:
        """The whole table that the likeliest parts of the evidence belong to, or stand beside."""
        for one in self.candidates[:PARTS_BESIDE_TABLE]:
            text = one.item.passage.text
            if span := find_table(text, one.unit.start, MAX_TABLE_ROWS):
                return replace(one, unit=Quotable(*span, text[slice(*span)], is_row=True))
        return None


def draft_of(chosen: Iterable[QuoteCandidate]) -> Draft:
    """These quotes in their order, each a claim of its own."""
    claims = (Claim(one.unit.text, tuple(_quotes(one))) for one in chosen)
    return Draft(tuple(claims), verbatim=True)


def _quotes(one: QuoteCandidate) -> Iterator[Quote]:
    """What introduces it, where that stands elsewhere, and itself."""
    if one.unit.lead:
        start, end = one.unit.lead
        yield Quote(one.item.number, one.item.passage.text[start:end], start)
    yield Quote(one.item.number, one.unit.text, one.unit.start)


def select_quotes(ranked: Sequence[QuoteCandidate], *, is_spanning: bool) -> list[QuoteCandidate]:
    """What is quoted of these, the best passage first; sentences with nothing between them are one quote.

    Args:
        ranked: best first.
        is_spanning: the question asks for several documents.
    """
    documents = _best_of_each(ranked) if is_spanning else []
    return documents if len(documents) > 1 else _joined(_on_pages(ranked))


def _on_pages(ranked: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """The best quote of each page that comes near the best of all, and what comes near it on its page."""
    shown = [one for one in ranked if one.is_about and not one.is_label]
    pages: dict[tuple[UUID, int], QuoteCandidate] = {}
    for one in takewhile(lambda one: one.score >= shown[0].score - OTHER_PAGE, shown):
        if one.page not in pages and len(pages) < MAX_PASSAGES and not _is_repeated(one, pages.values()):
            pages[one.page] = one
    chosen = list(pages.values())
    for one in shown:
        is_near = one.page in pages and one.score >= pages[one.page].score - SAME_PAGE
        if is_near and one not in chosen and not _is_repeated(one, chosen):
            quotes = _joined([*chosen, one])
            is_room = sum(each.page == one.page for each in quotes) <= MAX_QUOTES
            if is_room and sum(len(each.unit.text) for each in quotes) <= MAX_QUOTED_CHARS:
                chosen.append(one)
    return [one for one in chosen if not any(_is_beyond(other, one) for other in chosen)]


def _is_beyond(item: QuoteCandidate, part: QuoteCandidate) -> bool:
    """Whether an item stands behind the part of its list that is quoted as a whole, and says more."""
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


def is_twin(candidate: QuoteCandidate, chosen: Sequence[QuoteCandidate]) -> bool:
    """Whether another document says the same of something else, as of another office: both are shown."""
    if candidate.document in {one.document for one in chosen}:
        return False
    mine, best = (_terms_of((one.unit.text,)) for one in (candidate, chosen[0]))
    return len(mine & best) >= TWIN_SHARE * len(mine | best)


def _is_item(one: QuoteCandidate) -> bool:
    return _ITEM.match(one.unit.text) is not None


def without_labels(ranked: Sequence[QuoteCandidate]) -> Sequence[QuoteCandidate]:
    """What says something by itself; the first label where nothing does."""
    return [one for one in ranked if not one.is_label] or ranked[:1]


def _best_of_each(ranked: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    chosen: dict[UUID, QuoteCandidate] = {}
    for candidate in without_labels(ranked):
        is_close = candidate.score >= ranked[0].score - OTHER_DOCUMENT
        if is_close and candidate.document not in chosen and not _is_repeated(candidate, chosen.values()):
            chosen[candidate.document] = candidate
    return list(chosen.values())[:MAX_DOCUMENTS]


def _is_repeated(candidate: QuoteCandidate, earlier: Iterable[QuoteCandidate]) -> bool:
    mine = reduce_text(candidate.unit.text).text
    others = [reduce_text(other.unit.text).text for other in earlier]
    return any(mine in theirs or theirs in mine for theirs in others)


class ExtractiveAnswerer:
    """Quotes the best units of the evidence."""

    def __init__(
        self,
        embedder: QueryEmbedder,
        kept: SentenceVectorStore | None = None,
        scale: CosineScale | None = None,
        *,
        most_made: int = 12,
    ) -> None:
        """Nothing is embedded yet.

        Args:
            embedder: that of the channel's passages.
            kept: vectors of sentences that need not be made any more.
            scale: how its cosines are read; None: as the bundled one's.
            most_made: how many of the others are made for a question, the likeliest by their words first.
        """
        self._sentence_vectors = SentenceVectors(embedder, kept)
        self._scale = scale or CosineScale()
        self._most_made = most_made

    async def rank(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> RankedQuotes:
        """Everything of the evidence that may be quoted, best first.

        Raises:
            storage.errors.InfrastructureError: readings cannot be reached, or the embedder is late.
        """
        likely = _WordScores(question, evidence).ranked()
        return RankedQuotes(*await self._by_meaning(question, likely))

    async def _by_meaning(
        self, question: AnalyzedQuestion, candidates: Sequence[QuoteCandidate]
    ) -> tuple[Sequence[QuoteCandidate], int]:
        """(the candidates, best first, tokens embedded for that)."""
        if question.vector is None or not candidates:
            return _by_page(candidates, [None] * len(candidates)), 0
        await self._scale.calibrate()
        asked = np.asarray(question.vector, dtype=np.float32)
        units = [(one.item.passage, one.unit) for one in candidates]
        vectors, embedded = await self._sentence_vectors.of(units, most_made=self._most_made)
        cosines = [None if vector is None else self._scale.of(float(vector @ asked)) for vector in vectors]
        return _by_page(candidates, cosines), embedded


def _by_page(candidates: Sequence[QuoteCandidate], cosines: Sequence[float | None]) -> list[QuoteCandidate]:
    """Best first by words and cosine; each counts for more the more its page holds, as a sum of odds."""
    scores = [
        one.score + COSINE * max(cosine or 0.0, 0.0) for one, cosine in zip(candidates, cosines, strict=True)
    ]
    pages = [one.page for one in candidates]
    best, odds = max(scores, default=0.0), defaultdict[tuple[UUID, int], float](float)
    for page, score in zip(pages, scores, strict=True):
        odds[page] += math.exp(score - best)
    found = [
        replace(one, score=score + math.log(odds[page]), cosine=cosine)
        for one, page, score, cosine in zip(candidates, pages, scores, cosines, strict=True)
    ]
    return sorted(found, key=lambda one: -one.score)


class _WordScores:
    """Scores of everything quotable, without an embedding."""

    def __init__(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> None:
        self._evidence = evidence
        self._asked = QuestionTerms(question)
        self._wordings = [self._asked, *map(QuestionTerms, question.wordings)]
        self._required = RequiredAnswer(question.text)
        self._best = max((item.passage.score for item in evidence), default=0.0) or 1.0

    def ranked(self) -> list[QuoteCandidate]:
        """Best first."""
        candidates = [one for item in self._evidence for one in self._of_passage(item)]
        return sorted(candidates, key=lambda candidate: -candidate.score)

    def _of_passage(self, item: Evidence) -> Iterator[QuoteCandidate]:
        passage = item.passage
        above = _terms_of((passage.publication.title, *passage.heading_path))
        shared = (
            HEADINGS * self._asked.aspect_coverage(above)
            + PASSAGE * passage.score / self._best
            + RANK / item.number
        )
        for unit, said in _with_terms(passage.text):
            coverage = self._asked.aspect_coverage(said)
            labels = _labels_said(self._asked, unit.text) if unit.is_row else None
            score = (
                shared
                + COVERAGE * coverage
                + KIND * (bool(self._required) and self._required.is_held_by(unit.text))
                + LABEL * (labels or 0.0)
                + NUMBER * any(map(str.isdigit, unit.text))
                + LENGTH * math.log1p(len(unit.text.split()))
                - CONTRADICTED * self._asked.contradicts(unit.text)
            )
            is_about = any(one.coverage(above | said) for one in self._wordings)
            yield QuoteCandidate(item, unit, coverage, is_about, score, is_unasked=labels == 0)


@lru_cache(maxsize=PASSAGES_KEPT)
def _terms_of(texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(analyze(" ".join(texts)))


@lru_cache(maxsize=PASSAGES_KEPT)
def _with_terms(text: str) -> tuple[tuple[Quotable, frozenset[str]], ...]:
    """What may be quoted from a passage, with its terms and those of what introduces it.

    Memoised, because passages come again.
    """
    units = quotables(text)
    leads = ((unit, text[slice(*unit.lead)] if unit.lead else "") for unit in units)
    return tuple((unit, frozenset(analyze(f"{lead} {unit.text}"))) for unit, lead in leads)


def _labels_said(asked: QuestionTerms, row: str) -> float | None:
    """The highest share (0-1) of a label's words that the question says; None: the row has no labels."""
    labels = [_terms_of((label[1],)) for label in map(_LABEL.match, _CELL_END.split(row)) if label]
    return max((len(words & asked.weights.keys()) / len(words) for words in labels if words), default=None)

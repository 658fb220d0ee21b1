"""Ranks search hits: by words and meaning, by the documents that a question is about, by edition and age.

The weights were measured on the tuning half of ``tools/evaluation``.

"Did the Panama pilot file a flight plan?" is about the report that mentions Panama, though its passage on
flight plans does not: words in any found passage of a document count for all of its passages.

Among passages of nearly equal relevance the newer document comes first:

    score = (1 - w) * relevance + w * 2 ** (-age / half-life)

A document's age counts from its effective date, else from its last update, else from its arrival; a future
date counts as today. Of several editions of a procedure in a channel, the newest one in force keeps its
score, the others are demoted.

Near-duplicate passages, such as copies of a page, count once. Similarity is the Jaccard index of word
5-shingles (Broder, "On the resemblance and containment of documents", 1997); passages with different numbers
are never similar. A question that spans documents gets passages of each; one about a single document is not
diluted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import chain, permutations, zip_longest
from uuid import UUID

from bot.answer_settings import AnswerSettings
from bot.answers.understanding.answer_types import spans_documents
from bot.answers.understanding.channel_documents import DATE_FIELDS, document_day, named_documents
from bot.answers.understanding.document_filters import version_parts
from bot.answers.understanding.question_terms import QuestionTerms, identified_documents
from bot.core.models import AnalyzedQuestion, Passage, Rejected
from storage.index.base import Hit
from storage.index.live_index import SearchHits
from storage.models import LivePublication
from storage.text.analyzer import TermSet, fold

# Minimum share of the best score for a document's best passage to take part in diversification, unless the
# question names the document.
MIN_DIVERSIFIED_SHARE = 0.4

# Maximum number of documents that take part.
MAX_DIVERSIFIED_DOCUMENTS = 8

# Minimum spread of scores before they are scaled to 1 and 0. Of seven documents on one subject in slightly
# different words, two of them new, one of the new ones is in the top three in 165 of 168 cases (151 without).
MIN_BM25_SPREAD, MIN_COSINE_SPREAD = 6.0, 0.25

MIN_DUPLICATE_JACCARD = 0.9
_SHINGLE = 5
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
_NO_DIGITS = bytes(set(range(256)) - set(b"0123456789"))

# Top hits by words: if they include a document without vectors, all are compared by words alone.
WORDS_COMPARED = 8

_Key = tuple[UUID, int]


def rank_order(passage: Passage, score: float | None = None) -> tuple[float, str, int]:
    """Return a sort key: best first, ties in a fixed order, so that equal questions get equal answers.

    ``score``: the one to sort by; None: the passage's.
    """
    return (-(passage.score if score is None else score), passage.publication.file, passage.ordinal)


def min_max_scaled(scores: Sequence[float], min_spread: float = 0.0) -> list[float]:
    """Scale scores from 1 (best) down to 0 (worst), if these differ by at least ``min_spread``."""
    high = max(scores, default=0.0)
    spread = max(high - min(scores, default=0.0), min_spread)
    return [1 - (high - score) / spread if spread else 1.0 for score in scores]


def is_by_words(found: SearchHits) -> bool:
    """True if a document without vectors is among the top hits by words."""
    return any(hit.publication in found.words_only for hit in found.words[:WORDS_COMPARED])


def fuse(found: SearchHits, words_weight: float) -> list[Passage]:
    """Return every hit once, scored 0-1 by a weighted sum of its min-max normalised legs, best first.

    Tiny differences stay small. If one leg found nothing (only words are live yet, or no word occurs), the
    other one counts alone. If ``is_by_words``, words count alone for all: scores of two kinds are not
    comparable. Source: Bruch et al., "An Analysis of Fusion Functions for Hybrid Retrieval" (2023).
    """
    words, vectors = _by_key(found.words), _by_key(found.vectors)
    share = words_weight if words and vectors and not is_by_words(found) else float(bool(words))
    keys = {**vectors, **words}
    # A chunk without any question word scores 0; if the leg was truncated, the score of its last hit.
    word_scores = _scaled(keys, words, MIN_BM25_SPREAD, unfound=0.0 if len(words) < len(vectors) else None)
    vector_scores = _scaled(keys, vectors, MIN_COSINE_SPREAD)
    passages = []
    for key, hit in keys.items():
        passages.append(
            Passage(
                publication=found.publications[hit.publication],
                ordinal=hit.ordinal,
                text=hit.text,
                first_page=hit.first_page,
                last_page=hit.last_page,
                heading_path=hit.heading_path,
                score=share * word_scores[key] + (1 - share) * vector_scores[key],
                bm25=words[key].score if key in words else None,
                vector=vectors[key].score if key in vectors else None,
                terms=TermSet.of(hit.terms),
            )
        )
    return sorted(passages, key=rank_order)


def _by_key(hits: Sequence[Hit]) -> dict[_Key, Hit]:
    return {(hit.publication, hit.ordinal): hit for hit in hits}


def _scaled(
    keys: Iterable[_Key], leg: Mapping[_Key, Hit], min_spread: float, unfound: float | None = None
) -> dict[_Key, float]:
    """Return the score (0-1) of every hit in one leg.

    ``unfound``: raw score of hits that the leg did not find; None: that of its last hit.
    """
    scores = [hit.score for hit in leg.values()]
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    others = low if unfound is None else max(unfound, high - max(high - low, min_spread))
    *scaled, rest = min_max_scaled([*scores, others], min_spread) if scores else [0.0]
    return dict.fromkeys(keys, rest) | dict(zip(leg, scaled, strict=True))


def truncate_keeping_exact(
    passages: Sequence[Passage], limit: int, is_exact: Callable[[Passage], bool]
) -> list[Passage]:
    """Return the first ``limit`` passages; exact hits further down replace the last inexact ones."""
    kept = list(passages[:limit])
    late = [passage for passage in passages[limit:] if is_exact(passage)]
    inexact = [passage for passage in reversed(kept) if not is_exact(passage)]
    given_up = inexact[: len(late)]
    return [passage for passage in kept if passage not in given_up] + late[: len(given_up)]


def superseded_editions(publications: Iterable[LivePublication], today: date) -> frozenset[UUID]:
    """Return the publications that a newer edition among them supersedes.

    Editions have the same SOP id and organisation. Dates decide, the effective date before that of the last
    update; if an edition has none, version numbers do, part by part. An edition that is not yet effective
    yields to the one in force; editions that cannot be compared are left alone.
    """
    editions: dict[tuple[str, str], list[LivePublication]] = {}
    for one in publications:
        if sop_id := _said(one, "sop_id"):
            editions.setdefault((_key(sop_id), _key(_said(one, "organisation"))), []).append(one)
    groups = (group for group in editions.values() if len(group) > 1)
    pairs = (pair for group in groups for pair in permutations(group, 2))
    return frozenset(one.id for one, other in pairs if _is_newer(other, one, today))


def _is_newer(other: LivePublication, one: LivePublication, today: date) -> bool:
    """True if ``other`` supersedes ``one``."""
    if other.document_id == one.document_id:
        return False
    is_coming, is_other_coming = _is_coming(one, today), _is_coming(other, today)
    if is_coming != is_other_coming:
        return is_coming
    days = document_date(one), document_date(other)
    if days[0] and days[1]:
        return days[1] > days[0]
    versions = _version(one), _version(other)
    return bool(versions[0] and versions[1] and versions[1] > versions[0])


def _is_coming(one: LivePublication, today: date) -> bool:
    effective = one.metadata.get("effective")
    return effective is not None and effective.day is not None and effective.day > today.isoformat()


def document_date(one: LivePublication) -> date | None:
    """Return the effective date, else that of the last update; None if neither is clearly stated."""
    fields = (one.metadata.get(name) for name in DATE_FIELDS)
    return next((date.fromisoformat(field.day) for field in fields if field and field.day), None)


def _version(one: LivePublication) -> list[int]:
    return version_parts(_said(one, "version"))


def _said(one: LivePublication, name: str) -> str:
    field = one.metadata.get(name)
    return field.value if field else ""


def _key(text: str) -> str:
    return fold(text).casefold().strip()


def document_shares(terms: Collection[str], passages: Iterable[Passage]) -> dict[UUID, float]:
    """Return, by publication id, the share (0-1) of the question's weight that its passages cover together.

    Terms in few of the found publications weigh more: those that all contain single out none.
    """
    held: dict[UUID, set[str]] = {}
    for passage in passages:
        known = held.setdefault(passage.publication.id, set())
        known.update(term for term in terms if term in passage.terms)
    holders = {term: sum(term in known for known in held.values()) for term in terms}
    weights = {term: max(math.log((len(held) + 1) / (count + 0.5)), 0.0) for term, count in holders.items()}
    total = math.fsum(weights.values())  # fsum: the order of sets varies, and ties must stay ties
    return {
        id_: math.fsum(weights[term] for term in known) / total if total else 0.0
        for id_, known in held.items()
    }


@dataclass(frozen=True, slots=True)
class Ranked:
    """Ranked passages, and the near-duplicates removed from them."""

    passages: list[Passage]
    copies: tuple[Rejected, ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks by the weights of the settings."""

    settings: AnswerSettings

    def rank(
        self,
        question: AnalyzedQuestion,
        rare: Sequence[str],
        passages: Sequence[Passage],
        publications: Collection[LivePublication],
        today: date,
    ) -> Ranked:
        """Return every passage once, best first; of near-duplicates only the best copy.

        Args:
            rare: its codes, numbers and names that few chunks contain.
        """
        named = named_documents(question.terms, publications)
        identified = identified_documents(rare, passages)
        shares = {id_: max(share, identified.get(id_, 0.0)) for id_, share in named.items()}
        scored = self._score(question, passages, shares, superseded_editions(publications, today), today)
        deduplicated = list(mark_near_duplicates(scored))
        ranked = [passage for passage, earlier in deduplicated if earlier is None]
        if spans_documents(question.text):
            ranked = diversify(ranked, {one.document_id for one in publications if shares[one.id]})
        return Ranked(ranked, tuple(Rejected(*one) for one in deduplicated if one[1]))

    def _score(
        self,
        question: AnalyzedQuestion,
        passages: Sequence[Passage],
        named: Mapping[UUID, float],
        old: Collection[UUID],
        today: date,
    ) -> list[Passage]:
        """Return the passages with their relevance (0-1) blended with age, best first."""
        asked, weights = QuestionTerms(question), self.settings
        about = document_shares(asked.weights, passages)
        most = 1 + weights.coverage_weight + weights.named_weight + weights.document_weight
        publications = {one.publication.id: one.publication for one in passages}
        days = {id_: document_day(one.metadata, one.arrived_at) for id_, one in publications.items()}
        freshness = {
            # A future date counts as today.
            id_: 2 ** (-max((today - day.day).days, 0) / weights.recency_half_life_days)
            for id_, day in days.items()
            if day
        }
        parts = {
            id_: (
                *(("named", named[id_]), ("document", about[id_]), ("outdated", float(id_ in old))),
                *(
                    (("freshness", freshness[id_]), ("dated_by_arrival", float(day.is_arrival)))
                    if day
                    else ()
                ),
            )
            for id_, day in days.items()
        }
        added = {
            id_: weights.named_weight * named[id_] + weights.document_weight * share
            for id_, share in about.items()
        }

        def weigh(passage: Passage) -> Passage:
            id_, coverage = passage.publication.id, asked.aspect_coverage(passage.terms)
            # Coverage counts words however common, names and codes only a little.
            mixed = passage.score + weights.coverage_weight * coverage
            # An outdated edition still comes first if it is clearly better, or named in the question.
            kept = mixed * (weights.outdated_share if id_ in old else 1.0)
            score = relevance = (kept + added[id_]) / most
            if id_ in freshness:
                score = (1 - weights.recency_weight) * relevance + weights.recency_weight * freshness[id_]
            mix = ("mix", passage.score), ("coverage", coverage)
            return replace(passage, score=score, parts=(*mix, *parts[id_], ("relevance", relevance)))

        return sorted(map(weigh, passages), key=rank_order)


def diversify(passages: Sequence[Passage], named: Collection[UUID] = ()) -> list[Passage]:
    """Interleave the passages of different documents, each document's best first.

    Args:
        passages: best first.
        named: documents that the question names; if there are two or more, all others come last.
    """
    queues: dict[UUID, list[Passage]] = {}
    for passage in passages:
        queues.setdefault(passage.publication.document_id, []).append(passage)
    chosen = [id_ for id_ in queues if id_ in named]
    if len(chosen) < 2:
        least = MIN_DIVERSIFIED_SHARE * passages[0].score if passages else 0.0
        chosen = [id_ for id_, queue in queues.items() if queue[0].score >= least][:MAX_DIVERSIFIED_DOCUMENTS]
    turns = chain.from_iterable(zip_longest(*(queues[id_] for id_ in chosen)))
    others = (passage for passage in passages if passage.publication.document_id not in chosen)
    return [*filter(None, turns), *others]


class _TextFingerprint:
    """Features of a passage for near-duplicate detection."""

    def __init__(self, passage: Passage) -> None:
        self._text = passage.text.casefold()
        # Equal for texts with the same numbers; comparing digits costs a tenth of comparing numbers.
        self.digits = passage.text.encode(errors="ignore").translate(None, _NO_DIGITS)

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

    def is_near_duplicate(self, other: _TextFingerprint) -> bool:
        """True if the texts have the same numbers and nearly the same words."""
        if self.numbers != other.numbers:
            return False
        if self.words == other.words:
            return True
        shorter, longer = sorted((len(self.words), len(other.words)))
        if shorter < MIN_DUPLICATE_JACCARD * longer:
            return False
        shared = len(self.shingles & other.shingles)
        return shared >= MIN_DUPLICATE_JACCARD * (len(self.shingles) + len(other.shingles) - shared)


def mark_near_duplicates(passages: Iterable[Passage]) -> Iterator[tuple[Passage, Passage | None]]:
    """Yield each passage with the earlier, kept one that it nearly repeats; None if there is none."""
    by_digits: dict[bytes, list[tuple[_TextFingerprint, Passage]]] = {}
    for passage in passages:
        print_ = _TextFingerprint(passage)
        kept = by_digits.setdefault(print_.digits, [])
        like = next((earlier for other, earlier in kept if print_.is_near_duplicate(other)), None)
        if like is None:
            kept.append((print_, passage))
        yield passage, like

"""Orders what a search found: by words and meaning, by the documents that the question names or
is about, by edition and age. The weights were measured on the tuning half of ``tools/evaluation``.

"Did the Panama pilot file a flight plan?" is about the report that says Panama, though the passage on flight
plans does not: what a document holds anywhere among its found passages counts for all of them.

Among passages of nearly equal relevance the newer document comes first: score = (1 - w) * relevance
+ w * 2 ** (-age / half-life). A document's age counts from its effective day, else from its last update, else
from its arrival; a coming day counts as today. Of several editions of one procedure in a channel, the newest
one in force keeps its score, the others lose.

Near-identical passages, as of two copies of a page, count once. Similarity is the Jaccard index of word
5-shingles (Broder, "On the resemblance and containment of documents", 1997); passages whose numbers differ
never count as similar, however equal their words. A question that spans documents gets passages of each; one
about a single document is not diluted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from itertools import chain, permutations, zip_longest
from uuid import UUID

from bot.core.models import AnalyzedQuestion, Passage, Rejected
from bot.core.understanding.answer_types import spans_documents
from bot.core.understanding.channel_documents import DATE_FIELDS, document_day, named_documents
from bot.core.understanding.document_filters import version_parts
from bot.core.understanding.question_terms import QuestionTerms, identified_documents
from storage.index.base import Hit
from storage.index.live_index import SearchHits
from storage.models import LivePublication
from storage.text.analyzer import HeldTerms, fold

# Share of the best score that a document's best passage reaches before it takes part, unless it is named.
MIN_SCORE = 0.4

# Documents that take part.
MAX_PER_DOCUMENT = 8

# What the best and the worst of some scores differ by at least before they are scaled to 1 and 0. Of seven
# documents on one subject in slightly different words, two of them new, one of the new ones is among the
# first three in 165 of 168 cases (151 without).
MIN_BM25_SPREAD, MIN_COSINE_SPREAD = 6.0, 0.25

SIMILARITY = 0.9
_SHINGLE = 5
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
_NO_DIGITS = bytes(set(range(256)) - set(b"0123456789"))

# Best hits by words among which a document that has no vectors yet has all compared by words alone.
WORDS_COMPARED = 8

_Key = tuple[UUID, int]


def rank_order(passage: Passage) -> tuple[float, str, int]:
    """Best first; equals in one fixed order, so that the same question gives the same answer."""
    return (-passage.score, passage.publication.file, passage.ordinal)


def min_max_scaled(scores: Sequence[float], min_spread: float = 0.0) -> list[float]:
    """The scores from 1, the best, down to 0, the worst, where these differ by ``min_spread`` or more."""
    high = max(scores, default=0.0)
    spread = max(high - min(scores, default=0.0), min_spread)
    return [1 - (high - score) / spread if spread else 1.0 for score in scores]


def is_by_words(found: SearchHits) -> bool:
    """True if a document without vectors is among the best by words."""
    return any(hit.publication in found.words_only for hit in found.words[:WORDS_COMPARED])


def fuse(found: SearchHits, words_weight: float) -> list[Passage]:
    """Every hit once, scored 0-1 by its min-max normalised legs, best first; tiny differences stay small.

    When one leg found nothing at all (only words are live yet, or no word occurs) the other counts
    alone. Words count alone for all where ``is_by_words``: scores of two kinds compare nothing.
    Source: Bruch et al., "An Analysis of Fusion Functions for Hybrid Retrieval" (2023).
    """
    words, vectors = _by_key(found.words), _by_key(found.vectors)
    share = words_weight if words and vectors and not is_by_words(found) else float(bool(words))
    keys = {**vectors, **words}
    # A chunk without any word of the question scores 0; where a leg was cut off, less than its last hit.
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
                terms=HeldTerms.of(hit.terms),
            )
        )
    return sorted(passages, key=rank_order)


def _by_key(hits: Sequence[Hit]) -> dict[_Key, Hit]:
    return {(hit.publication, hit.ordinal): hit for hit in hits}


def _scaled(
    keys: Iterable[_Key], leg: Mapping[_Key, Hit], min_spread: float, unfound: float | None = None
) -> dict[_Key, float]:
    """Return the score of every hit in one leg, 0-1.

    ``unfound``: raw score of what the leg did not find; None: that of its last hit.
    """
    scores = [hit.score for hit in leg.values()]
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    others = low if unfound is None else max(unfound, high - max(high - low, min_spread))
    *scaled, rest = min_max_scaled([*scores, others], min_spread) if scores else [0.0]
    return dict.fromkeys(keys, rest) | dict(zip(leg, scaled, strict=True))


def cut(passages: Sequence[Passage], limit: int, is_exact: Callable[[Passage], bool]) -> list[Passage]:
    """The first ``limit`` passages, where an exact hit further down takes the place of the last inexact."""
    kept = list(passages[:limit])
    late = [passage for passage in passages[limit:] if is_exact(passage)]
    inexact = [passage for passage in reversed(kept) if not is_exact(passage)]
    given_up = inexact[: len(late)]
    return [passage for passage in kept if passage not in given_up] + late[: len(given_up)]


def outdated(publications: Iterable[LivePublication], today: date) -> frozenset[UUID]:
    """Return the publications whose procedure another one of these documents describes as it is now.

    Editions are known by their SOP id and organisation. Days decide, the effective one before that of the
    last update; where an edition has none, version numbers do, part by part. What is effective only in
    the future gives way to what is in force; what cannot be compared is left alone.
    """
    editions: dict[tuple[str, str], list[LivePublication]] = {}
    for one in publications:
        if sop_id := _said(one, "sop_id"):
            editions.setdefault((_key(sop_id), _key(_said(one, "organisation"))), []).append(one)
    groups = (group for group in editions.values() if len(group) > 1)
    pairs = (pair for group in groups for pair in permutations(group, 2))
    return frozenset(one.id for one, other in pairs if _is_newer(other, one, today))


def _is_newer(other: LivePublication, one: LivePublication, today: date) -> bool:
    """True if ``other`` replaces ``one``."""
    if other.document_id == one.document_id:
        return False
    is_coming, is_other_coming = _is_coming(one, today), _is_coming(other, today)
    if is_coming != is_other_coming:
        return is_coming
    days = day_of(one), day_of(other)
    if days[0] and days[1]:
        return days[1] > days[0]
    versions = _version(one), _version(other)
    return bool(versions[0] and versions[1] and versions[1] > versions[0])


def _is_coming(one: LivePublication, today: date) -> bool:
    effective = one.metadata.get("effective")
    return effective is not None and effective.day is not None and effective.day > today.isoformat()


def day_of(one: LivePublication) -> date | None:
    """The day it is effective from, else that of its last update; None when it clearly says neither."""
    fields = (one.metadata.get(name) for name in DATE_FIELDS)
    return next((date.fromisoformat(field.day) for field in fields if field and field.day), None)


def _version(one: LivePublication) -> list[int]:
    return version_parts(_said(one, "version"))


def _said(one: LivePublication, name: str) -> str:
    field = one.metadata.get(name)
    return field.value if field else ""


def _key(text: str) -> str:
    return fold(text).casefold().strip()


@dataclass(frozen=True, slots=True)
class Recency:
    """How much age counts."""

    # Share (0-1) of a score that is decided by age.
    weight: float = 0.1
    # Days after which it counts half.
    half_life_days: float = 730

    def freshness(self, day: date, today: date) -> float:
        """2 ** (-age / half-life): 1 for a document of today or of a coming day."""
        return 2 ** (-max((today - day).days, 0) / self.half_life_days)

    def aged(self, relevance: float, freshness: float | None) -> float:
        """Return a relevance (0-1) with its share of age; unchanged where the day is unknown."""
        return relevance if freshness is None else (1 - self.weight) * relevance + self.weight * freshness


def document_shares(terms: Collection[str], passages: Iterable[Passage]) -> dict[UUID, float]:
    """Publication -> share (0-1) of the question's weight that its passages hold together.

    A term weighs by how few of the found publications hold it, so that what all of them say singles out none.
    """
    held: dict[UUID, set[str]] = {}
    for passage in passages:
        known = held.setdefault(passage.publication.id, set())
        known.update(term for term in terms if term in passage.terms)
    holders = {term: sum(term in known for known in held.values()) for term in terms}
    weights = {term: max(math.log((len(held) + 1) / (count + 0.5)), 0.0) for term, count in holders.items()}
    total = math.fsum(weights.values())  # fsum: sets of terms have no order, and equals are to stay equal
    return {
        id_: math.fsum(weights[term] for term in known) / total if total else 0.0
        for id_, known in held.items()
    }


@dataclass(frozen=True, slots=True)
class Ranked:
    """Passages in their order."""

    passages: list[Passage]
    copies: tuple[Rejected, ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The weights of a ranking."""

    # Share (0-1) of BM25 in the mix of words and meaning; the rest is the cosine.
    words_weight: float = 0.45
    # What holding the question's words adds, however often, names and codes a little; beside a mix of at most
    # 1.
    coverage_weight: float = 0.5
    # What being of the document that the question names or singles out adds.
    named_weight: float = 0.25
    # What being of a document that holds the question's rarer words anywhere adds.
    document_weight: float = 0.5
    # What the relevance of a passage counts when another edition of its procedure is newer: one that is
    # clearly better, or whose document the question names, still comes first.
    outdated_share: float = 0.8
    recency: Recency = field(default_factory=Recency)

    def order(
        self,
        question: AnalyzedQuestion,
        rare: Sequence[str],
        passages: Sequence[Passage],
        publications: Collection[LivePublication],
        today: date,
    ) -> Ranked:
        """Return every passage once, best first; near-identical ones as their best copy alone.

        Args:
            question: as analyzed in its channel.
            rare: its codes, numbers and names that few chunks hold.
            passages: hits of both legs, fused.
            publications: theirs.
            today: what ages count to.
        """
        named = named_documents(question.terms, publications)
        identified = identified_documents(rare, passages)
        shares = {id_: max(share, identified.get(id_, 0.0)) for id_, share in named.items()}
        weighed = self._weighed(question, passages, shares, outdated(publications, today), today)
        deduplicated = list(with_duplicates(weighed))
        ranked = [passage for passage, earlier in deduplicated if earlier is None]
        if spans_documents(question.text):
            ranked = diversify(ranked, {one.document_id for one in publications if shares[one.id]})
        return Ranked(ranked, tuple(Rejected(*one) for one in deduplicated if one[1]))

    def _weighed(
        self,
        question: AnalyzedQuestion,
        passages: Sequence[Passage],
        named: Mapping[UUID, float],
        old: Collection[UUID],
        today: date,
    ) -> list[Passage]:
        """Return the passages with a relevance of 0-1 and their share of age, best first."""
        asked = QuestionTerms(question)
        about = document_shares(asked.weights, passages)
        most = 1 + self.coverage_weight + self.named_weight + self.document_weight
        days = {one.id: document_day(one.metadata, one.arrived_at) for one in _publications(passages)}
        freshness = {id_: self.recency.freshness(day.day, today) for id_, day in days.items() if day}
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
            id_: self.named_weight * named[id_] + self.document_weight * share for id_, share in about.items()
        }

        def weigh(passage: Passage) -> Passage:
            id_, coverage = passage.publication.id, asked.aspect_coverage(passage.terms)
            mixed = passage.score + self.coverage_weight * coverage
            kept = mixed * (self.outdated_share if id_ in old else 1.0)
            relevance = (kept + added[id_]) / most
            score = self.recency.aged(relevance, freshness.get(id_))
            mix = ("mix", passage.score), ("coverage", coverage)
            return replace(passage, score=score, parts=(*mix, *parts[id_], ("relevance", relevance)))

        return sorted(map(weigh, passages), key=rank_order)


def _publications(passages: Iterable[Passage]) -> Iterable[LivePublication]:
    """Those that the passages are of, each once."""
    return {passage.publication.id: passage.publication for passage in passages}.values()


def diversify(passages: Sequence[Passage], named: Collection[UUID] = ()) -> list[Passage]:
    """Return the passages so that the documents take turns, each with its best first.

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
        # Equal in texts of the same numbers; comparing them costs a tenth.
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

    def is_like(self, other: _TextFingerprint) -> bool:
        """True if another text says the same of the same numbers."""
        if self.numbers != other.numbers:
            return False
        if self.words == other.words:
            return True
        shorter, longer = sorted((len(self.words), len(other.words)))
        if shorter < SIMILARITY * longer:
            return False
        shared = len(self.shingles & other.shingles)
        return shared >= SIMILARITY * (len(self.shingles) + len(other.shingles) - shared)


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


# With the weights that settings have by default.
USUAL = Ranking()

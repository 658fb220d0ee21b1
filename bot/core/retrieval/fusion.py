"""Mixes the two legs of a search into one score, and cuts without losing an exact hit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bot.core.models import Passage
from storage.index.base import Hit
from storage.index.live_index import SearchHits
from storage.text.analyzer import HeldTerms

_Key = tuple[str, int]


def fuse(found: SearchHits, words_weight: float) -> list[Passage]:
    """Every hit once, scored 0-1 by its min-max normalised legs, best first.

    When one leg found nothing at all (only words are live yet, or no word occurs) the other counts
    alone; words count alone for the publications that have no vectors to be found by.
    Source: Bruch et al., "An Analysis of Fusion Functions for Hybrid Retrieval" (2023).
    """
    words, vectors = _by_key(found.words), _by_key(found.vectors)
    share = words_weight if words and vectors else float(bool(words))
    word_scores, vector_scores = _normalised(words), _normalised(vectors)
    passages = [
        _passage(
            hit,
            found,
            score=_weigh(
                word_scores.get(key, 0.0),
                vector_scores.get(key, 0.0),
                1.0 if hit.publication in found.words_only else share,
            ),
            bm25=words[key].score if key in words else None,
            vector=vectors[key].score if key in vectors else None,
        )
        for key, hit in {**vectors, **words}.items()
    ]
    return sorted(passages, key=rank_order)


def _weigh(words: float, vectors: float, share: float) -> float:
    return share * words + (1 - share) * vectors


def rank_order(passage: Passage) -> tuple[float, str, int]:
    """Best first; equals in one fixed order, so that the same question gives the same answer."""
    return (-passage.score, passage.publication.file, passage.ordinal)


def cut(passages: Sequence[Passage], limit: int, is_exact: Callable[[Passage], bool]) -> list[Passage]:
    """The first ``limit`` passages, where an exact hit further down takes the place of the last inexact."""
    kept = list(passages[:limit])
    late = [passage for passage in passages[limit:] if is_exact(passage)]
    inexact = [passage for passage in reversed(kept) if not is_exact(passage)]
    given_up = inexact[: len(late)]
    return [passage for passage in kept if passage not in given_up] + late[: len(given_up)]


def _by_key(hits: Sequence[Hit]) -> dict[_Key, Hit]:
    return {(str(hit.publication), hit.ordinal): hit for hit in hits}


def _normalised(hits: Mapping[_Key, Hit]) -> dict[_Key, float]:
    scores = [hit.score for hit in hits.values()]
    low, high = (min(scores), max(scores)) if scores else (0.0, 0.0)
    return {key: (hit.score - low) / (high - low) if high > low else 1.0 for key, hit in hits.items()}


def _passage(
    hit: Hit, found: SearchHits, *, score: float, bm25: float | None, vector: float | None
) -> Passage:
    return Passage(
        publication=found.publications[hit.publication],
        ordinal=hit.ordinal,
        text=hit.text,
        first_page=hit.first_page,
        last_page=hit.last_page,
        heading_path=hit.heading_path,
        score=score,
        bm25=bm25,
        vector=vector,
        terms=HeldTerms.of(hit.terms),
    )

"""BM25 for one tenant's file: FTS5 selects candidates, Weaviate's formula scores them.

FTS5's own ``bm25()`` saturates and weights rare words differently. With the same formula both engines return
the same scores (to 1e-7) and can share thresholds.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from storage.index.base import SearchFilter
from storage.index.embedded.tenant_file import CorruptFile, only_row
from storage.index.embedded.tenant_rows import PASSES, filter_values

K1 = 1.2
B = 0.75
# Minimum number of FTS5 candidates: with 200 the ranking equals Weaviate's (overlap@10 .998).
CANDIDATES = 200
# Up to this many chunks, every query term selects candidates; above, terms in over half the chunks only
# score.
SMALL = 500

_PROPOSED = f"""
    SELECT rowid FROM words
    WHERE words MATCH :query AND {PASSES.format(id="words.rowid")}
    ORDER BY rank LIMIT :limit
"""  # noqa: S608 - made of constants
_LENGTHS = "SELECT id, terms, length FROM chunk WHERE id IN (SELECT value FROM json_each(?))"


def best(
    connection: sqlite3.Connection,
    terms: Sequence[str],
    counted: tuple[int, Mapping[str, int]],
    filters: SearchFilter,
    limit: int,
) -> list[tuple[int, float]]:
    """Return (chunk id, BM25) of the best chunks, best first.

    ``counted``: (chunks of the tenant, chunks per term).
    """
    chunks, frequencies = counted
    ids = _propose(connection, _proposing(terms, chunks, frequencies), filters, max(CANDIDATES, 2 * limit))
    weights = term_weights(terms, chunks, frequencies)
    counted_chunks, length = only_row(connection, "SELECT chunks, terms FROM state")
    average = length / counted_chunks if counted_chunks else 1.0
    rows = connection.execute(_LENGTHS, (json.dumps(ids),)).fetchall()
    if len(rows) != len(ids):
        raise CorruptFile("a row is missing")
    scored = [
        (chunk, score(weights.values(), term_counts(spaced(words), weights), length, average))
        for chunk, words, length in rows
    ]
    return sorted(scored, key=lambda found: (-found[1], found[0]))[:limit]


def _proposing(terms: Iterable[str], chunks: int, frequencies: Mapping[str, int]) -> set[str]:
    """Return the terms that select candidates: a very common one would select half the tenant."""
    known = {term for term in terms if frequencies[term]}
    rare = {term for term in known if frequencies[term] <= chunks / 2}
    return known if chunks <= SMALL else rare or known


def _propose(
    connection: sqlite3.Connection, terms: Iterable[str], filters: SearchFilter, limit: int
) -> list[int]:
    quoted = ['"' + term.replace('"', '""') + '"' for term in terms]
    if not quoted:
        return []
    values = {"query": " OR ".join(quoted), "limit": limit, **filter_values(filters)}
    return [row[0] for row in connection.execute(_PROPOSED, values)]


def term_weights(terms: Iterable[str], chunks: int, frequencies: Mapping[str, int]) -> dict[str, float]:
    """Return term -> ln(1 + (N - n + .5) / (n + .5)), once per occurrence in the query."""
    return {
        term: repeated * math.log(1 + (chunks - frequencies[term] + 0.5) / (frequencies[term] + 0.5))
        for term, repeated in Counter(terms).items()
    }


def spaced(terms: str) -> str:
    """Return a chunk's terms with two blanks between them: adjacent matches must not share one."""
    return f" {terms.replace(' ', '  ')} "


def term_counts(text: str, terms: Iterable[str]) -> list[int]:
    """Return how often each term occurs in a ``spaced`` text."""
    return [text.count(f" {term} ") for term in terms]


def score(weights: Iterable[float], counts: Iterable[int], length: int, average: float) -> float:
    """Return the sum of weight * tf / (tf + k1 * (1 - b + b * length / average))."""
    slope = K1 * (1 - B + B * length / average)
    return sum(weight * tf / (tf + slope) for weight, tf in zip(weights, counts, strict=True) if tf)

"""Queries and writes on one tenant's file, within the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from storage.index.base import Hit, IndexedChunk, SearchFilter, Vector
from storage.index.embedded.tenant_file import CorruptFile, check_integrity, checksum, only_row
from storage.index.embedded.vector_matrix import TenantFileState

REMOVE_BATCH_SIZE = 2000

# SQL condition of the filters; the unary plus keeps SQLite from probing an index once per id.
PASSES = """
    +{id} NOT IN (
        SELECT id FROM chunk WHERE publication IN (SELECT value FROM json_each(:hidden))
    ) AND (:groups = '[]' OR +{id} IN (
        SELECT facet.chunk
        FROM json_each(:groups) AS wanted_group, json_each(wanted_group.value) AS wanted
        JOIN facet ON facet.facet = wanted.value
        GROUP BY facet.chunk
        HAVING COUNT(DISTINCT wanted_group.key) = json_array_length(:groups)
    ))
"""

_ALLOWED = "SELECT id FROM chunk WHERE " + PASSES.format(id="chunk.id")  # noqa: S608 - made of constants
_WRITTEN = """
    publication, ordinal, terms, length, text, first_page, last_page, heading_path, space, vector, checksum
"""
_INSERT = f"INSERT INTO chunk ({_WRITTEN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above


def filter_values(filters: SearchFilter) -> dict[str, str]:
    """Return the filters as parameters of ``PASSES``."""
    return {
        "hidden": json.dumps([str(publication) for publication in filters.hidden]),
        "groups": json.dumps([sorted(group) for group in filters.groups]),
    }


def write(connection: sqlite3.Connection, chunks: Sequence[IndexedChunk]) -> None:
    """Store chunks, replacing existing ones."""
    known = "SELECT id FROM chunk WHERE publication = ? AND ordinal = ?"
    for chunk in chunks:
        place, length = (str(chunk.publication), chunk.ordinal), len(chunk.terms.split())
        _remove(connection, connection.execute(known, place).fetchall())
        vector = None if chunk.vector is None else unit(chunk.vector).tobytes()
        shown = (chunk.text, chunk.first_page, chunk.last_page, json.dumps(chunk.heading_path))
        columns = (*place, chunk.terms, length, *shown, chunk.space)
        row = connection.execute(_INSERT, (*columns, vector, checksum(columns, vector))).lastrowid
        connection.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (row, chunk.terms))
        facets = [(facet, row) for facet in set(chunk.facets)]
        connection.executemany("INSERT INTO facet VALUES (?, ?)", facets)
        counted = "UPDATE state SET last_id = ?, chunks = chunks + 1, terms = terms + ?"
        connection.execute(counted, (row, length))


def remove_some(connection: sqlite3.Connection, publication: UUID) -> bool:
    """Remove one batch of a publication's chunks; False if none was left."""
    some = "SELECT id FROM chunk WHERE publication = ? LIMIT ?"
    ids = connection.execute(some, (str(publication), REMOVE_BATCH_SIZE)).fetchall()
    _remove(connection, ids)
    return bool(ids)


def _remove(connection: sqlite3.Connection, ids: Sequence[tuple[int]]) -> None:
    """Remove chunks by id."""
    if not ids:
        return
    # An external-content FTS5 table stores no text: deleting an entry takes the indexed terms.
    connection.executemany(
        "INSERT INTO words (words, rowid, terms) SELECT 'delete', id, terms FROM chunk WHERE id = ?", ids
    )
    connection.executemany(
        "UPDATE state SET chunks = chunks - 1, terms = terms - (SELECT length FROM chunk WHERE id = ?)", ids
    )
    connection.executemany("DELETE FROM chunk WHERE id = ?", ids)
    connection.execute("UPDATE state SET removals = removals + 1")


def count(connection: sqlite3.Connection, publication: UUID, space: str | None) -> tuple[int, int]:
    """Return (chunks, chunks with a vector in ``space``) of a publication."""
    counted = "SELECT COUNT(*), COUNT(vector) FILTER (WHERE space = ?) FROM chunk WHERE publication = ?"
    chunks, vectors = connection.execute(counted, (space, str(publication))).fetchone()
    return chunks, vectors


def publications(connection: sqlite3.Connection) -> dict[UUID, int]:
    """Return the tenant's publications with their number of chunks."""
    rows = connection.execute("SELECT publication, COUNT(*) FROM chunk GROUP BY publication")
    return {UUID(publication): chunks for publication, chunks in rows}


def verify_chunks(connection: sqlite3.Connection) -> None:
    """Verify all pages and the checksums of all chunks.

    Raises:
        sqlite3.DatabaseError: something is not what was written (``is_corruption``).
    """
    check_integrity(connection)
    for row in connection.execute(f"SELECT {_WRITTEN} FROM chunk"):  # noqa: S608 - as above
        _require_sound(row)


def verify_full_text_index(connection: sqlite3.Connection) -> None:
    """Verify the full-text index in a write transaction; errors as ``verify_chunks``."""
    connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")


def merge_words(connection: sqlite3.Connection) -> None:
    """Merge all segments of the full-text index: only then are removed terms gone from it."""
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")


def document_frequencies(
    connection: sqlite3.Connection, terms: Collection[str]
) -> tuple[int, dict[str, int]]:
    """Return (number of chunks in the tenant, chunks per term)."""
    counted = "SELECT term, doc FROM vocabulary WHERE term IN (SELECT value FROM json_each(?))"
    known = dict(connection.execute(counted, (json.dumps(list(terms)),)).fetchall())
    (chunks,) = only_row(connection, "SELECT chunks FROM state")
    return chunks, {term: known.get(term, 0) for term in terms}


def read_state(connection: sqlite3.Connection) -> TenantFileState:
    """Return the version of the file's vectors."""
    return TenantFileState(*only_row(connection, "SELECT file, removals, last_id FROM state"))


def allowed_ids(connection: sqlite3.Connection, filters: SearchFilter) -> NDArray[np.int64] | None:
    """Return the ids of the chunks that pass the filters; None if all do."""
    if not filters.hidden and not filters.groups:
        return None
    rows = connection.execute(_ALLOWED, filter_values(filters)).fetchall()
    return np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))


def hits(connection: sqlite3.Connection, scored: Sequence[tuple[int, float]]) -> list[Hit]:
    """Return the hits for (chunk id, score) pairs, in this order, after checksum verification."""
    query = f"SELECT {_WRITTEN} FROM chunk WHERE id = ?"  # noqa: S608 - as above
    return [_hit(_require_sound(only_row(connection, query, row)), score) for row, score in scored]


def _require_sound(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the row if its checksum is right."""
    *columns, vector, kept = row
    if kept != checksum(columns, vector):
        raise CorruptFile("checksum mismatch in a chunk")
    return row


def _hit(row: tuple[Any, ...], score: float) -> Hit:
    publication, ordinal, terms, _, text, first_page, last_page, headings, *_ = row
    path = tuple(json.loads(headings))
    return Hit(UUID(publication), ordinal, text, first_page, last_page, path, score, terms)


def unit(vector: Vector) -> NDArray[np.float32]:
    """Return the vector L2-normalised, so that a dot product is the cosine."""
    values = np.asarray(vector, dtype=np.float32)
    length = float(np.linalg.norm(values))
    return values / np.float32(length) if length else values

"""Document identity: matches arriving files to documents by name, content and inode.

A name keeps its document unless that document's bytes moved elsewhere in the same scan. So two files may swap
names, and a renamed file's old name may be reused at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.clock import utc_now
from storage.folders.folders import Folder
from storage.queues.publication_queue import republish
from storage.sql.document_state import newest_number
from storage.sql.tables import IS_PRESENT, DocumentRow, VersionRow


class FileFingerprint(NamedTuple):
    """Identity of a file's bytes: hash and inode (0 if unknown)."""

    sha256: str
    inode: int

    @classmethod
    def from_stat(cls, sha256: str, stat: Mapping[str, Any]) -> FileFingerprint:
        """Create the fingerprint from a file's hash and its stat in a scan."""
        return cls(sha256, stat.get("inode", 0))


@dataclass(frozen=True, slots=True)
class MoveCandidate:
    """A known document that may have arrived under another name."""

    id: UUID
    file: str
    # Its file is, or was, in the folder of the arrivals.
    is_here: bool
    # Its newest content; None if none was ever stored.
    fingerprint: FileFingerprint | None
    is_deleted: bool
    # Its file is certainly gone.
    has_left: bool
    # Its file's stat changed, or an incomplete scan missed it: its inode elsewhere proves a move.
    may_have_left: bool


def match_renames(
    arrivals: Mapping[str, FileFingerprint], candidates: Collection[MoveCandidate]
) -> dict[str, UUID]:
    """Match arrivals to documents under a new name.

    Args:
        arrivals: file -> fingerprint of everything that arrives together.
        candidates: the channel's documents with one of these contents or names.

    Returns:
        File -> document. Every other arrival belongs to the document of its name, or is new.
    """
    owners = {one.file: one for one in candidates if one.is_here and not one.is_deleted}
    moves: dict[str, MoveCandidate] = {}
    moved: set[UUID] = set()
    # Match greedily, best pairs first; then drop impossible moves until none is left: each may block others.
    for file, candidate in sorted(_pairs(arrivals, candidates, owners), key=_rank(arrivals, owners)):
        if file not in moves and candidate.id not in moved:
            moves[file] = candidate
            moved.add(candidate.id)
    while impossible := [file for file in moves if not _is_possible(file, moves, moved, arrivals, owners)]:
        for file in impossible:
            moved.remove(moves.pop(file).id)
    return {file: candidate.id for file, candidate in moves.items()}


def _pairs(
    arrivals: Mapping[str, FileFingerprint],
    candidates: Collection[MoveCandidate],
    owners: Mapping[str, MoveCandidate],
) -> list[tuple[str, MoveCandidate]]:
    """Return all pairs of arrivals and documents with equal content, except unchanged files."""
    stay = {
        file
        for file, one in owners.items()
        if file in arrivals and one.fingerprint and one.fingerprint.sha256 == arrivals[file].sha256
    }
    resting = {owners[file].id for file in stay}
    named: dict[str, list[str]] = {}
    for file, arrived in arrivals.items():
        if file not in stay:
            named.setdefault(arrived.sha256, []).append(file)
    return [
        (file, one)
        for one in candidates
        if one.fingerprint is not None and one.id not in resting
        for file in named.get(one.fingerprint.sha256, ())
    ]


def _rank(
    arrivals: Mapping[str, FileFingerprint], owners: Mapping[str, MoveCandidate]
) -> Callable[[tuple[str, MoveCandidate]], tuple[object, ...]]:
    """Return a sort key: same inode, then free name, then not deleted, then same base name."""

    def rank(pair: tuple[str, MoveCandidate]) -> tuple[object, ...]:
        file, one = pair
        return (
            not _same_inode(one, arrivals[file]),
            file in owners,
            one.is_deleted,
            PurePosixPath(file).name != PurePosixPath(one.file).name,
            file,
            str(one.id),
        )

    return rank


def _is_possible(
    file: str,
    moves: Mapping[str, MoveCandidate],
    moved: Collection[UUID],
    arrivals: Mapping[str, FileFingerprint],
    owners: Mapping[str, MoveCandidate],
) -> bool:
    """True if the document can have left its old name and the new one is free."""
    one, owner = moves[file], owners.get(file)
    has_left = (
        one.is_deleted
        or one.has_left
        or (one.may_have_left and (_same_inode(one, arrivals[file]) or (one.is_here and one.file in moves)))
    )
    is_free = owner is None or owner.fingerprint is None or owner.id in moved
    return has_left and is_free


def _same_inode(one: MoveCandidate, arrived: FileFingerprint) -> bool:
    return one.fingerprint is not None and one.fingerprint.inode == arrived.inode != 0


@dataclass(frozen=True, slots=True)
class Arrival:
    """A file whose bytes can be stored as a blob."""

    file: str
    stat: dict[str, Any]
    sha256: str
    size: int
    # Moves the bytes into the blob store; called inside the transaction, so that no purge of the same content
    # can come in between.
    keep_blob: Callable[[], object]


@dataclass(frozen=True, slots=True)
class ScanContext:
    """State of the rest of the channel, from the scan that found the arrivals."""

    # Current stat of a file of the folder; None if the scan did not see it.
    stat_of: Callable[[str], Mapping[str, Any] | None]
    # True if unseen files do not exist.
    is_complete: bool
    # Documents of the channel's other folders whose files are certainly gone.
    gone_elsewhere: frozenset[UUID] = frozenset()


async def match_documents(
    session: AsyncSession, folder: Folder, arrivals: Sequence[Arrival], scan_context: ScanContext | None
) -> dict[str, DocumentRow]:
    """Return file -> document of the arrivals, after freeing the names for them."""
    files = [one.file for one in arrivals]
    here = {row.file: row for row in await session.scalars(documents_at(folder, files))}
    if scan_context is None:
        return here
    moves = await _moves(session, folder, arrivals, scan_context, here)
    for document in moves.values():
        here = {file: row for file, row in here.items() if row.id != document.id}
    await _free_names(session, moves, [here[file] for file in moves if file in here])
    return here | moves


async def _moves(
    session: AsyncSession,
    folder: Folder,
    arrivals: Sequence[Arrival],
    scan_context: ScanContext,
    here: Mapping[str, DocumentRow],
) -> dict[str, DocumentRow]:
    """Return new file -> document for renamed and returned documents."""
    same = (await session.execute(_with_content(folder, {one.sha256 for one in arrivals}))).all()
    known: dict[UUID, DocumentRow] = {row.id: row for row, _ in same}
    contents: dict[UUID, str] = {row.id: sha256 for row, sha256 in same}
    others = {row.id: row for row in here.values() if row.id not in known}
    versions = select(col(VersionRow.document_id), col(VersionRow.sha256)).where(
        col(VersionRow.document_id).in_(others), col(VersionRow.number) == newest_number(VersionRow)
    )
    contents |= {document: sha256 for document, sha256 in (await session.execute(versions)).all()}
    known |= others
    prints = {one.file: FileFingerprint.from_stat(one.sha256, one.stat) for one in arrivals}
    candidates = [_candidate(row, contents.get(row.id), folder, scan_context) for row in known.values()]
    return {file: known[document] for file, document in match_renames(prints, candidates).items()}


def _candidate(
    row: DocumentRow, sha256: str | None, folder: Folder, scan_context: ScanContext
) -> MoveCandidate:
    is_here, stat = row.folder_id == folder.id, row.stat or {}
    now = scan_context.stat_of(row.file) if is_here else None
    return MoveCandidate(
        id=row.id,
        file=row.file,
        is_here=is_here,
        fingerprint=FileFingerprint.from_stat(sha256, stat) if sha256 else None,
        is_deleted=row.state == "deleted",
        has_left=now is None and scan_context.is_complete
        if is_here
        else row.id in scan_context.gone_elsewhere,
        may_have_left=is_here and (now is None or _is_replaced(stat, now)),
    )


def _is_replaced(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """True if another file has taken the name: a file that was only modified keeps its inode."""
    has_changed = any(now.get(key) != value for key, value in before.items())
    return has_changed and (now.get("inode", 0) == 0 or now.get("inode") != before.get("inode"))


async def _free_names(
    session: AsyncSession, moves: Mapping[str, DocumentRow], displaced: Iterable[DocumentRow]
) -> None:
    """Free the old names first, because documents may swap names.

    Displaced documents never had storable bytes, so nothing is lost.
    """
    for row in displaced:
        row.state, row.deleted_at = "deleted", utc_now()
    for file, row in moves.items():
        if row.file != file and row.state != "deleted":
            await republish(session, row.id)
            # A unique temporary name; the caller sets the final one.
            row.file = str(row.id)
    await session.flush()


def documents_at(folder: Folder, files: Collection[str]) -> Select[DocumentRow]:
    """Return the documents that have these names now."""
    query = select(DocumentRow).where(col(DocumentRow.folder_id) == folder.id, text(f"document.{IS_PRESENT}"))
    return query.where(col(DocumentRow.file).in_(files))


def _with_content(folder: Folder, contents: Collection[str]) -> Select[DocumentRow, str]:
    """Return the channel's unpurged documents whose newest version has one of these contents."""
    return (
        select(DocumentRow, col(VersionRow.sha256))
        .join(VersionRow, col(VersionRow.document_id) == DocumentRow.id)
        .where(col(DocumentRow.channel_id) == folder.channel_id, col(VersionRow.sha256).in_(contents))
        .where(col(VersionRow.number) == newest_number())
        .where(is_not_purged())
    )


def is_not_purged() -> ColumnElement[bool]:
    """True if the document was not purged and can be restored."""
    return col(DocumentRow.purged_at).is_(None)

"""Finds the documents that arriving files belong to, by name, content and inode, and frees their names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, ScalarSelect, Select, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.clock import utc_now
from storage.folders import Folder
from storage.moves import FileFingerprint, MoveCandidate, match_renames
from storage.publication_work import republish
from storage.tables import IS_PRESENT, DocumentRow, VersionRow


@dataclass(frozen=True, slots=True)
class Arrival:
    """A file whose bytes can be made a blob."""

    file: str
    look: dict[str, Any]
    sha256: str
    size: int
    keep_blob: Callable[[], object]
    """Moves the bytes into the blob store; called inside the transaction, so that a purge of the same
    content cannot come between."""


@dataclass(frozen=True, slots=True)
class ScanContext:
    """What the look that found the arrivals knows of everything else in the channel."""

    stat_of: Callable[[str], Mapping[str, Any] | None]
    """How a file of the folder looks now; None when it was not seen."""
    is_complete: bool
    """What was not seen is not there."""
    gone_elsewhere: frozenset[UUID] = frozenset()
    """Documents of the channel's other folders whose files are surely not there any more."""


async def owners_of(
    session: AsyncSession, folder: Folder, arrivals: Sequence[Arrival], scan_context: ScanContext | None
) -> dict[str, DocumentRow]:
    """The documents that the arrivals belong to, by file; the names are free for them."""
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
    """The documents that arrive under another name, or come back, by their new file."""
    same = (await session.execute(_with_content(folder, {one.sha256 for one in arrivals}))).all()
    known: dict[UUID, DocumentRow] = {row.id: row for row, _ in same}
    contents: dict[UUID, str] = {row.id: sha256 for row, sha256 in same}
    others = {row.id: row for row in here.values() if row.id not in known}
    versions = select(col(VersionRow.document_id), col(VersionRow.sha256)).where(
        col(VersionRow.document_id).in_(others), col(VersionRow.number) == newest_number(VersionRow)
    )
    contents |= {document: sha256 for document, sha256 in (await session.execute(versions)).all()}
    known |= others
    prints = {one.file: FileFingerprint(one.sha256, one.look.get("inode", 0)) for one in arrivals}
    candidates = [_candidate(row, contents.get(row.id), folder, scan_context) for row in known.values()]
    return {file: known[document] for file, document in match_renames(prints, candidates).items()}


def _candidate(
    row: DocumentRow, sha256: str | None, folder: Folder, scan_context: ScanContext
) -> MoveCandidate:
    is_here, look = row.folder_id == folder.id, row.look or {}
    now = scan_context.stat_of(row.file) if is_here else None
    return MoveCandidate(
        id=row.id,
        file=row.file,
        is_here=is_here,
        fingerprint=FileFingerprint(sha256, look.get("inode", 0)) if sha256 else None,
        is_deleted=row.state == "deleted",
        has_left=now is None and scan_context.is_complete
        if is_here
        else row.id in scan_context.gone_elsewhere,
        may_have_left=is_here and (now is None or _is_another(look, now)),
    )


def _is_another(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether another file has taken the name: what was only written to keeps its inode."""
    has_changed = any(now.get(key) != value for key, value in before.items())
    return has_changed and (now.get("inode", 0) == 0 or now.get("inode") != before.get("inode"))


async def _free_names(
    session: AsyncSession, moves: Mapping[str, DocumentRow], displaced: Iterable[DocumentRow]
) -> None:
    """Take the old names away first, because two documents may exchange theirs.

    What is displaced never had any bytes that could be stored: nothing of it is lost.
    """
    for row in displaced:
        row.state, row.deleted_at = "deleted", utc_now()
    for file, row in moves.items():
        if row.file != file and row.state != "deleted":
            await republish(session, row.id)
            row.file = str(row.id)
    await session.flush()


def documents_at(folder: Folder, files: Collection[str]) -> Select[DocumentRow]:
    """The documents that have these names now."""
    query = select(DocumentRow).where(col(DocumentRow.folder_id) == folder.id, text(f"document.{IS_PRESENT}"))
    return query.where(col(DocumentRow.file).in_(files))


def _with_content(folder: Folder, contents: Collection[str]) -> Select[DocumentRow, str]:
    """The channel's documents whose newest version is one of these contents, and was not purged."""
    return (
        select(DocumentRow, col(VersionRow.sha256))
        .join(VersionRow, col(VersionRow.document_id) == DocumentRow.id)
        .where(col(DocumentRow.channel_id) == folder.channel_id, col(VersionRow.sha256).in_(contents))
        .where(col(VersionRow.number) == newest_number())
        .where(is_kept())
    )


def newest_number(of: type[DocumentRow] | type[VersionRow] = DocumentRow) -> ScalarSelect[int | None]:
    """The number of a document's newest version."""
    other = aliased(VersionRow)
    document = col(DocumentRow.id) if of is DocumentRow else col(VersionRow.document_id)
    return (
        select(func.max(other.number))
        .where(col(other.document_id) == document)
        .correlate(of)
        .scalar_subquery()
    )


def is_kept() -> ColumnElement[bool]:
    """Whether all that the document had is still there to come back."""
    return col(DocumentRow.purged_at).is_(None)

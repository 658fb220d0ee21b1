"""Tells which arriving files are known documents under a new name, from contents and inodes alone.

A name keeps its document unless that document's own bytes moved elsewhere in the same look: so two
files may swap their names, and a file may be renamed and its old name be used again at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple
from uuid import UUID


class FileFingerprint(NamedTuple):
    """What tells a file's bytes from others: their hash, and where the disk keeps them (0: unknown)."""

    sha256: str
    inode: int


@dataclass(frozen=True, slots=True)
class MoveCandidate:
    """A known document that may have arrived under another name."""

    id: UUID
    file: str
    is_here: bool
    """Its file lies, or lay, in the folder where the files arrive."""
    fingerprint: FileFingerprint | None
    """Its newest content; None when none was ever stored."""
    is_deleted: bool
    has_left: bool
    """Its file is surely not there any more."""
    may_have_left: bool
    """Its file looks different now, or was not seen in an incomplete look: its inode elsewhere is proof."""


def match_renames(
    arrivals: Mapping[str, FileFingerprint], candidates: Collection[MoveCandidate]
) -> dict[str, UUID]:
    """Which arrivals are which documents under a new name.

    Args:
        arrivals: file -> print of everything that arrives together.
        candidates: the channel's documents that have one of these contents, or one of these names.

    Returns:
        File -> document. Every other arrival belongs to the document of its name, or is new.
    """
    owners = {one.file: one for one in candidates if one.is_here and not one.is_deleted}
    moves: dict[str, MoveCandidate] = {}
    moved: set[UUID] = set()
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
    """Every arrival with every document that has its content, except those that just stay."""
    stay = {file for file, one in owners.items() if file in arrivals and _same_bytes(one, arrivals[file])}
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
    """The same inode first, then a free name, then who is not deleted, then the same file name."""

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
    """Whether the document can have left its old name, and whether the new one is free for it."""
    one, owner = moves[file], owners.get(file)
    has_left = (
        one.is_deleted
        or one.has_left
        or (one.may_have_left and (_same_inode(one, arrivals[file]) or (one.is_here and one.file in moves)))
    )
    is_free = owner is None or owner.fingerprint is None or owner.id in moved
    return has_left and is_free


def _same_bytes(one: MoveCandidate, arrived: FileFingerprint) -> bool:
    return one.fingerprint is not None and one.fingerprint.sha256 == arrived.sha256


def _same_inode(one: MoveCandidate, arrived: FileFingerprint) -> bool:
    return one.fingerprint is not None and one.fingerprint.inode == arrived.inode != 0

"""File identity: documents are matched by content, inode and name."""

from __future__ import annotations

from uuid import uuid4

import pytest

from storage.documents.identity import FileFingerprint, MoveCandidate, match_renames


def document(
    file: str, sha256: str, inode: int = 0, *, deleted: bool = False, left: bool = False, may: bool = True
) -> MoveCandidate:
    """Return a document of the folder."""
    return MoveCandidate(uuid4(), file, True, FileFingerprint(sha256, inode), deleted, left, may)


def test_a_swap_is_detected_without_inodes() -> None:
    """Shows that renames are matched on stores without inodes, too."""
    a, b = document("a", "A"), document("b", "B")
    moves = match_renames({"a": FileFingerprint("B", 0), "b": FileFingerprint("A", 0)}, [a, b])
    assert moves == {"a": b.id, "b": a.id}


def test_a_ring_of_three_is_detected_without_inodes() -> None:
    """Shows that any permutation is detected."""
    ring = [document(name, name.upper()) for name in "abc"]
    moves = match_renames(
        {"a": FileFingerprint("C", 0), "b": FileFingerprint("A", 0), "c": FileFingerprint("B", 0)}, ring
    )
    assert moves == {"a": ring[2].id, "b": ring[0].id, "c": ring[1].id}


def test_without_inodes_the_name_decides() -> None:
    """A rename that was replaced and a copy that was edited look the same: the name decides."""
    assert (
        match_renames({"a": FileFingerprint("NEW", 0), "b": FileFingerprint("A", 0)}, [document("a", "A")])
        == {}
    )


def test_a_replacing_file_becomes_a_new_version() -> None:
    """Shows that a document that was not moved keeps its name."""
    a, b = document("a", "A"), document("b", "B", left=True)
    assert match_renames({"a": FileFingerprint("B", 0)}, [a, b]) == {}


def test_a_hard_link_is_no_move() -> None:
    """A document whose file still exists is not moved, whatever else has its inode."""
    a = document("a", "A", 7, may=False)
    assert match_renames({"b": FileFingerprint("A", 7)}, [a]) == {}


@pytest.mark.parametrize("missing", [True, False])
def test_a_document_follows_the_copy_with_its_inode(missing: bool) -> None:
    """Shows which copy a document follows when its bytes appear twice."""
    a = document("a", "A", 7, left=missing)
    assert match_renames({"b": FileFingerprint("A", 8), "c": FileFingerprint("A", 7)}, [a]) == {"c": a.id}


def test_a_live_document_wins_over_a_deleted_one() -> None:
    """Shows that a deleted document is not revived while a live one matches."""
    gone, living = document("a", "A", deleted=True), document("b", "A", left=True)
    assert match_renames({"a": FileFingerprint("A", 0)}, [gone, living]) == {"a": living.id}

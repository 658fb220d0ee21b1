"""Crash points: named places in ingestion and answering at which tests kill the process.

In production a point does nothing: only tests install observers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

Point = Literal[
    "before-copy",  # a settled file is about to be copied from its folder
    "after-copy",  # its bytes are in the blob store's temporary folder
    "after-adopt",  # they are a blob that SQL does not know yet
    "after-store",  # SQL has the document and its version
    "after-claim",  # a job is leased and has not started
    "after-parse",  # the sandboxed child has parsed the PDF; nothing is stored yet
    "after-reading-file",  # the reading's files are written; SQL does not know them yet
    "after-layout",  # a full reading has pages and chunks, no vectors
    "after-vectors",  # one batch of chunks or sentences has vectors
    "before-write",  # the index holds nothing of the publication
    "after-batch",  # the index holds one batch of it
    "before-seal",  # the index holds all of it, not yet verified by count
    "after-seal",  # verified; the old publication is still live
    "after-flip",  # the new publication is live
    "before-removal",  # a retired publication is about to be removed from the index
    "after-removal",  # removed from the index; SQL does not record it yet
    "before-delete",  # a file is confirmed gone; its document is still live
    "after-delete",  # the document is no longer live
    "amid-purge",  # readings of deleted documents are gone from SQL; some of their blobs are deleted
    "after-purge",  # its contents are gone from SQL; the readings' files still exist
    "amid-reconcile",  # some of the differences are repaired
]
AnswerPoint = Literal[
    "before-placeholder",  # the outbox says that a placeholder is being posted; none is posted
    "amid-placeholder",  # the placeholder is posted; the outbox does not have its id yet
    "after-placeholder",  # the outbox has its id
    "after-answer",  # the outbox has the answer; the chat does not
    "before-card",  # the text is posted; the outbox says that its card is being posted
    "amid-card",  # the card is posted; the outbox does not have its id yet
    "after-card",  # the outbox has its id
    "before-delivered",  # everything is posted; the outbox does not record it yet
]
# Crash points of ingestion.
POINTS: tuple[str, ...] = get_args(Point)
# Crash points of an answer in a chat; cards exist in Teams only.
ANSWER_POINTS: tuple[str, ...] = get_args(AnswerPoint)

_observers: list[Callable[[str], None]] = []


def install(observer: Callable[[str], None]) -> None:
    """Call ``observer`` with the name of every point this process passes from now on."""
    _observers.append(observer)


def reach(point: Point | AnswerPoint) -> None:
    """Call the observers with a point; a no-op in production."""
    for observer in _observers:
        observer(point)

"""Named places on the journeys of PDFs and answers at which tests end the process, as by pulling the plug.

The program itself only passes them: without an observer, which tests alone install, a point does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

Point = Literal[
    "before-copy",  # a settled file is about to be copied out of its folder
    "after-copy",  # its bytes lie in the blob store's temporary place
    "after-adopt",  # they are a blob, which SQL does not know yet
    "after-store",  # SQL knows document and version
    "after-claim",  # a step is leased and has not begun
    "after-parse",  # the limited child has read the PDF; nothing is kept of it yet
    "after-reading-file",  # the reading's files are there; SQL still waits for them
    "after-layout",  # a full reading's pages and chunks are there, its vectors are not
    "after-vectors",  # a batch of chunks, or of their sentences, got its vectors
    "before-write",  # nothing of a publication is in the index
    "after-batch",  # a batch of it is
    "before-seal",  # all of it is, uncounted
    "after-seal",  # it is counted; the old publication still answers
    "after-flip",  # the new one answers
    "before-removal",  # a retired publication is about to leave the index
    "after-removal",  # the index has forgotten it; SQL has not written that down
    "before-delete",  # a file is surely gone; its document still answers
    "after-delete",  # it does not any more
    "amid-purge",  # SQL has forgotten deleted documents' readings; some of their blobs are gone, others not
    "after-purge",  # its contents are gone from SQL; the readings' files are still there
    "amid-reconcile",  # some of the differences are mended
]
AnswerPoint = Literal[
    "before-placeholder",  # the outbox says that a placeholder is being posted; none is
    "amid-placeholder",  # the platform has it; the outbox does not name it yet
    "after-placeholder",  # the outbox names it
    "after-answer",  # the outbox has the answer; the chat does not
    "before-card",  # the chat has its text; the outbox says that its card is being posted
    "amid-card",  # the platform has it; the outbox does not name it yet
    "after-card",  # the outbox names it
    "before-delivered",  # the chat has all of it; the outbox does not say so
]
# Those of a PDF.
POINTS: tuple[str, ...] = get_args(Point)
# Those of an answer in a chat; cards are Teams' alone.
ANSWER_POINTS: tuple[str, ...] = get_args(AnswerPoint)

_observers: list[Callable[[str], None]] = []


def install(observer: Callable[[str], None]) -> None:
    """Call ``observer`` with the name of every point that this process passes from now on."""
    _observers.append(observer)


def reach(point: Point | AnswerPoint) -> None:
    """Pass a point."""
    for observer in _observers:
        observer(point)

"""What an admin should know of a document although it answers: what of it could not be read, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

MAX_RANGES = 6


def remarks_of(details: Mapping[str, Any]) -> Iterator[str]:
    """Phrases about a reading, from the details that were kept with it."""
    unread, waiting = details.get("unread_pages") or [], details.get("pages_for_ocr") or []
    silent = [page for page in details.get("pages_without_text") or [] if page not in {*unread, *waiting}]
    if waiting:
        yield f"{_pages(waiting)} {'is' if len(waiting) == 1 else 'are'} being read by OCR"
    if by_ocr := details.get("ocr_pages"):
        was = "was" if len(by_ocr) == 1 else "were"
        yield f"{_pages(by_ocr)} {was} read by OCR: compare numbers with the page"
    if unread:
        yield f"{_pages(unread)} could not be read"
    if silent:
        holds, are = ("holds", "it is") if len(silent) == 1 else ("hold", "they are")
        yield f"{_pages(silent)} {holds} no text: if {are} scanned, run OCR over the file and drop it again"
    if count := details.get("undescribed_figures"):
        yield f"{count} of its figures have no description, for the vision endpoint did not answer"
    if details.get("is_repaired"):
        yield "the file is damaged and was read as far as it could be repaired"


def _pages(numbers: Sequence[int]) -> str:
    """``page 3`` or ``pages 1-4, 7, 9``, with no more ranges than a person reads."""
    ranges = list(_ranges(sorted(numbers)))
    shown = ", ".join(ranges[:MAX_RANGES])
    more = f" and {len(ranges) - MAX_RANGES} more places" if len(ranges) > MAX_RANGES else ""
    return f"page{'s' if len(numbers) > 1 else ''} {shown}{more}"


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    start = numbers[0]
    for last, following in pairwise([*numbers, numbers[-1] + 2]):
        if following > last + 1:
            yield str(start) if start == last else f"{start}-{last}"
            start = following

"""Callouts: warnings, cautions and notes in drawn frames, each one block that begins with its label."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ingestion.layout.layout_fixes import is_middle_in
from storage.models import Box, Page, WordBox
from storage.pdf.models import BlockKind, Region
from storage.text.callouts import names_callout

# A larger frame holds a section of the document.
MAX_WORDS = 250
# Maximum words of a label that does not begin with its signal word, as in "Electrical safety warning".
MAX_LABEL_WORDS = 5
# Words of a label and a text.
MIN_WORDS = 4
# From this many rows with several filled cells, a frame is the border of a table.
MIN_TABLE_ROWS = 2


def merge_callouts(
    page: Page, regions: Sequence[Region], frames: Sequence[Box], *, continues: bool
) -> list[Region]:
    """Return the regions with one region for each frame that holds a callout, in place of those inside it.

    Args:
        frames: drawn around text on this page.
        continues: the page before ends with a callout, so the frame at the top of this one goes on with it.
    """
    found = list(regions)
    callouts: list[Box] = []
    for frame in sorted(frames, key=lambda box: (box.x0 - box.x1) * (box.y1 - box.y0)):
        words = [word for word in page.words if is_middle_in(word.box, frame)]
        if any(is_middle_in(frame, outer) for outer in callouts):
            continue
        is_next = continues and bool(words) and _is_first(page, frame, found)
        if not is_next and not _is_callout(words, page.text, [one for one in found if _is_in(one, frame)]):
            continue
        callouts.append(frame)
        inside = [number for number, one in enumerate(found) if _is_in(one, frame)]
        below = (number for number, one in enumerate(found) if one.box.y0 > frame.y0)
        place = inside[0] if inside else next(below, len(found))
        found.insert(place, Region(BlockKind.CALLOUT, frame))
        found = [one for number, one in enumerate(found) if number == place or not _is_in(one, frame)]
    return found


def split_label(words: Sequence[WordBox], text: str) -> tuple[list[WordBox], list[WordBox]]:
    """Return the words of a callout's label, and the others; the label is beside or above them."""
    left = min(words, key=lambda word: word.box.x0)
    others = [word for word in words if word is not left]
    if names_callout(text[left.start : left.end]) and all(word.box.x0 >= left.box.x1 for word in others):
        return [left], others
    lines = [list(line) for _, line in groupby(words, key=lambda word: word.line)]
    top = min(lines, key=lambda line: line[0].box.y0)
    said = [text[word.start : word.end] for word in top]
    is_label = names_callout(said[0]) or (len(said) <= MAX_LABEL_WORDS and any(map(names_callout, said)))
    label = top if is_label else []
    return label, [word for word in words if word not in label]


def _is_in(region: Region, frame: Box) -> bool:
    return region.kind is not BlockKind.CALLOUT and is_middle_in(region.box, frame)


def _is_callout(words: Sequence[WordBox], text: str, inside: Sequence[Region]) -> bool:
    """True if the words begin with a label and are no table, or the label is all that is on the left."""
    if not MIN_WORDS <= len(words) <= MAX_WORDS:
        return False
    label, others = split_label(words, text)
    is_beside = bool(label) and all(word.box.x0 >= label[-1].box.x1 for word in others)
    return bool(label) and (is_beside or not any(_is_table(region, words) for region in inside))


def _is_table(region: Region, words: Sequence[WordBox]) -> bool:
    filled = [
        sum(cell is not None and any(is_middle_in(word.box, cell) for word in words) for cell in row)
        for row in region.cells
    ]
    return sum(count > 1 for count in filled) >= MIN_TABLE_ROWS


def _is_first(page: Page, frame: Box, regions: Sequence[Region]) -> bool:
    """True if only running lines are above a frame."""
    running = [one.box for one in regions if one.kind is BlockKind.RUNNING]
    above = (word.box for word in page.words if word.box.y1 <= frame.y0)
    return all(any(is_middle_in(box, line) for line in running) for box in above)

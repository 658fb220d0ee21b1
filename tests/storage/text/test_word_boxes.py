"""Word maps: binary search finds the same words as a linear scan."""

from __future__ import annotations

from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.models import Box, WordBox
from storage.text.word_boxes import WordMap, bounding_boxes, main_page

BOX = Box(0.1, 0.2, 0.3, 0.4)


@st.composite
def word_maps(draw: st.DrawFn) -> WordMap:
    """Generate ordered words, some adjacent and some apart, across lines and pages."""
    edges = sorted(draw(st.sets(st.integers(0, 60), min_size=2, max_size=24)))
    spans = [span for span in pairwise(edges) if draw(st.booleans())]
    return WordMap.pack(
        WordBox(start, end, 1 + start // 25, start // 8, BOX._replace(x0=start / 100, x1=end / 100))
        for start, end in spans
    )


@given(word_maps(), st.integers(-1, 62), st.integers(-1, 62))
def test_the_words_of_a_span_are_those_that_it_overlaps(words: WordMap, start: int, end: int) -> None:
    """Covers pages, lines and edges, and empty and reversed spans."""
    touched = [word for word in words if word.start < end and word.end > start]
    lines = groupby(touched, key=lambda word: (word.page, word.line))
    sides = [
        (page, [word.box for word in line]) for (page, _), line in ((key, list(own)) for key, own in lines)
    ]
    found = bounding_boxes(words, start, end)
    assert [(page, box.x0, box.x1) for page in found for box in found[page]] == [
        (page, min(box.x0 for box in boxes), max(box.x1 for box in boxes)) for page, boxes in sides
    ]
    if touched:
        assert main_page(words, start, end) in {word.page for word in touched}


@given(word_maps(), st.slices(30))
def test_slicing_a_word_map_slices_its_words(words: WordMap, part: slice) -> None:
    """Covers ranges, steps and negative indices."""
    assert list(words[part]) == list(words)[part]


WORDS = WordMap.pack(
    (
        WordBox(0, 5, 1, 0, Box(0.1, 0.8, 0.2, 0.82)),
        WordBox(6, 10, 1, 0, Box(0.21, 0.79, 0.3, 0.82)),
        WordBox(11, 17, 1, 1, Box(0.1, 0.84, 0.25, 0.86)),
        WordBox(18, 27, 2, 0, Box(0.1, 0.1, 0.4, 0.12)),
    )
)


def test_a_range_covers_one_box_a_line_on_each_page() -> None:
    """Words of a line share a box, lines and pages do not; a partly covered word counts."""
    assert bounding_boxes(WORDS, 3, 20) == {
        1: [Box(0.1, 0.79, 0.3, 0.82), Box(0.1, 0.84, 0.25, 0.86)],
        2: [Box(0.1, 0.1, 0.4, 0.12)],
    }
    assert bounding_boxes(WORDS, 5, 6) == {}


def test_the_main_page_holds_most_of_the_range() -> None:
    """Decided by characters; of two equal pages the earlier wins; without words there is no page."""
    assert main_page(WORDS, 0, 27) == 1
    assert main_page(WORDS, 13, 27) == 2
    assert main_page(WORDS, 14, 21) == 1
    with pytest.raises(ValueError, match="no word"):
        main_page(WORDS, 5, 6)

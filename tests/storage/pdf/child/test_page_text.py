"""Page text from characters, for any page that hypothesis generates."""

from __future__ import annotations

from copy import deepcopy
from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from storage.pdf.child.glyphs.rows import read_page
from storage.pdf.child.page_text import PageText, PageTransform
from storage.text.word_boxes import SCALE

Rect = tuple[float, float, float, float]

CHARACTERS = st.characters(codec=None) | st.sampled_from(
    "ab-\xad\u2011 \ufb01\u00a0\u0301\uf0b7\ud800\x00\u202e"
)


class WhitePaper:
    """A page without ink."""

    rules: tuple[Rect, ...] = ()
    fields = bars = covering_bars = rules
    is_scan = False

    def is_white(self, box: Rect) -> bool:
        return True

    def is_plain(self, box: Rect) -> bool:
        return True

    def is_dash(self, box: Rect) -> bool | None:
        return None


class Printed:
    """A page as MuPDF reads it, by characters; by words only if ``has_words``."""

    def __init__(self, raw: dict[str, Any], *, has_words: bool) -> None:
        self._raw, self._has_words = raw, has_words

    def extractRAWDICT(self) -> dict[str, Any]:
        return deepcopy(self._raw)

    def extractDICT(self) -> dict[str, Any]:
        shown = deepcopy(self._raw)
        for span in (span for block in shown["blocks"] for line in block["lines"] for span in line["spans"]):
            chars = span.pop("chars")
            span["text"] = "".join(char["c"] for char in chars)
        return shown

    def extractWORDS(self) -> list[tuple[Any, ...]]:
        words: list[tuple[Any, ...]] = []
        for block in self._raw["blocks"] if self._has_words else ():
            for line in block["lines"]:
                chars = [char for span in line["spans"] for char in span["chars"]]
                for is_gap, run in groupby(chars, key=lambda char: char["c"].isspace()):
                    boxes = [] if is_gap else list(run)
                    if boxes:
                        sides = list(zip(*(char["bbox"] for char in boxes), strict=True))
                        text = "".join(char["c"] for char in boxes)
                        words.append((*map(min, sides[:2]), *map(max, sides[2:]), text, 0, 0, 0))
        return words


@st.composite
def spans(draw: st.DrawFn) -> dict[str, Any]:
    """Generate a span as MuPDF returns it, with a box per character, some without width."""
    text = draw(st.text(CHARACTERS, max_size=12))
    left, top = draw(st.floats(-50, 700)), draw(st.floats(-50, 900))
    chars = []
    for char in text:
        width = draw(st.sampled_from([0, 4, 7]))
        chars.append({"c": char, "bbox": (left, top, left + width, top + 10)})
        left += width
    return {
        "chars": chars,
        "size": draw(st.sampled_from([0.5, 10, 12.04])),
        "alpha": draw(st.sampled_from([0, 255])),
        "color": draw(st.sampled_from([0, 0xFFFFFF])),
        "flags": draw(st.sampled_from([0, 16])),
        "font": "Times",
        "bbox": (left, top, left + 9, top + 10),
        "origin": (left, top + 8),
    }


LINES = st.builds(
    lambda parts, way: {"spans": parts, "dir": way},
    st.lists(spans(), max_size=3),
    st.sampled_from([(1, 0), (0, 1), (-1, 0)]),
)
PAGES = st.builds(
    lambda blocks: {"blocks": [{"lines": lines} for lines in blocks]},
    st.lists(st.lists(LINES, max_size=3), max_size=3),
)


def read(raw: dict[str, Any], *, has_words: bool = True) -> PageText:
    to_page = PageTransform(SCALE / 600, 0, 0, SCALE / 800, 0, 0)
    return read_page(Printed(raw, has_words=has_words), 1, to_page, WhitePaper(), set())


@given(PAGES)
def test_every_word_is_at_its_offsets(raw: dict[str, Any]) -> None:
    """Words are in order, without white space, cover the whole text and have boxes on the page."""
    page = read(raw)
    position = 0
    for start, end, _, line, box in page.words:
        assert not page.text[position:start].strip()
        assert page.text[start:end]
        assert not any(char.isspace() for char in page.text[start:end])
        assert page.lines[line * 8] <= start < end <= page.lines[line * 8 + 1]
        assert all(0 <= side <= 1 for side in box)
        assert box[0] <= box[2]
        assert box[1] <= box[3]
        position = end
    assert position == len(page.text)


@given(PAGES)
def test_text_has_no_characters_that_break_storage_or_display(raw: dict[str, Any]) -> None:
    """No NUL, lone surrogate or direction override: every text can be encoded."""
    text = read(raw).text
    text.encode()
    assert not set(text) & {"\x00", "\u202e", "\u200b", "\ufb01"}


@given(PAGES)
def test_hidden_text_is_always_omitted(raw: dict[str, Any]) -> None:
    """Tiny, transparent and white-on-white text yields no words."""
    for block in raw["blocks"]:
        for line in block["lines"]:
            for span in line["spans"]:
                span["alpha"] = 0
    assert read(raw).text == ""


@given(PAGES)
def test_words_and_characters_give_the_same_page(raw: dict[str, Any]) -> None:
    """Reading by words gives the same text, boxes and lines as reading by characters."""
    by_words, by_characters = read(raw), read(raw, has_words=False)
    assert by_words.text == by_characters.text
    assert by_words.lines == by_characters.lines
    assert by_words.words == by_characters.words

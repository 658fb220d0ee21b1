"""OCR selection: which pages need OCR, and merging of its results."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace

from storage.pdf.models import OcrPage, PdfText

# Unmapped characters that a readable page may have: bullets, arrows and signs of symbol fonts.
MIN_GLYPHS = 30

# Fraction of unmapped characters from which a page's text is unusable.
MAX_UNMAPPED_SHARE = 0.25

# With fewer Latin letters, the check of letter pairs says nothing.
MIN_LETTERS = 200

# Minimum fraction of common letter pairs: 0.36 and more in texts of a dozen languages, 0.17 in a list of
# abbreviated parts, 0.10 and less in text whose letters are all shifted along the alphabet.
MIN_COMMON_SHARE = 0.15

# OCR must find this many times the words of a page with text, or the page keeps its own.
MIN_GAIN = 2

_PAIRS = frozenset(
    "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de "
    "hi ri ro ic ne ea ra ce li ch ll be ma si om ur ei ie un ge ue la el os ad do da qu au ai us em".split()
)
_LATIN = re.compile(r"[a-z]{3,}")


def pages_for_ocr(pdf: PdfText) -> tuple[int, ...]:
    """Return the pages that have ink but no text, or unusable text, in order."""
    unmapped = pdf.unmapped or (0,) * len(pdf.pages)
    return tuple(
        page.number
        for page, unnamed in zip(pdf.pages, unmapped, strict=True)
        if page.number in pdf.ink_pages or is_garbled(page.text, unnamed)
    )


def is_garbled(text: str, unmapped: int) -> bool:
    """True if the text differs from the print: its fonts do not map glyphs to characters.

    Args:
        text: text layer of the page.
        unmapped: number of characters without a mapping, which ``text`` may lack.
    """
    named = sum(not (char.isspace() or unicodedata.category(char) == "Co") for char in text)
    if unmapped >= MIN_GLYPHS and unmapped > MAX_UNMAPPED_SHARE * (named + unmapped):
        return True
    bare = (char for char in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(char))
    words = _LATIN.findall("".join(bare))
    if sum(map(len, words)) < MIN_LETTERS:
        return False
    pairs = [word[at : at + 2] for word in words for at in range(len(word) - 1)]
    return sum(pair in _PAIRS for pair in pairs) < MIN_COMMON_SHARE * len(pairs)


def with_ocr(pdf: PdfText, read: Iterable[OcrPage]) -> PdfText:
    """Return the PDF with OCR text, whose pages are listed in ``ocr_pages``.

    A page keeps its own text if OCR found no word, or hardly more than the page has.
    """
    unmapped = dict(zip((page.number for page in pdf.pages), pdf.unmapped, strict=False))
    own = {page.number: page for page in pdf.pages}
    better: dict[int, OcrPage] = {}
    for page in read:
        before = own[page.number]
        is_better = len(page.words) > MIN_GAIN * len(before.words)
        is_better = is_better or is_garbled(before.text, unmapped.get(page.number, 0))
        if is_better and any(map(str.isalnum, page.text)):
            better[page.number] = page
    return replace(
        pdf,
        pages=tuple(
            replace(page, text=new.text, words=new.words) if (new := better.get(page.number)) else page
            for page in pdf.pages
        ),
        lines=tuple(
            better[page.number].lines if page.number in better else lines
            for page, lines in zip(pdf.pages, pdf.lines, strict=True)
        ),
        ocr_pages=tuple(sorted({*pdf.ocr_pages, *better})),
    )

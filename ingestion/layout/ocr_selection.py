"""Says which pages have to be read from their picture, and puts what OCR read in their place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace

from storage.pdf.models import OcrPage, ReadPdf

# Characters without a name that a page may have: bullets, arrows and signs of symbol fonts.
MIN_GLYPHS = 30

# Share of a page's characters without a name from which on its text is unusable.
MAX_UNMAPPED_SHARE = 0.25

# Fewer Latin letters say nothing about the language they are in.
MIN_LETTERS = 200

# Share of pairs of letters that are common: 0.36 and more in texts of a dozen languages, 0.17 in a list of
# abbreviated parts, 0.10 and less where all letters are shifted along the alphabet.
MIN_COMMON_SHARE = 0.15

# OCR has to find so many times the words of a page that has a few of its own, or they stay.
MIN_GAIN = 2

_PAIRS = frozenset(
    "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de "
    "hi ri ro ic ne ea ra ce li ch ll be ma si om ur ei ie un ge ue la el os ad do da qu au ai us em".split()
)
_LATIN = re.compile(r"[a-z]{3,}")


def pages_for_ocr(pdf: ReadPdf) -> tuple[int, ...]:
    """Pages whose text is missing though something is printed there, or unusable, in order."""
    unmapped = pdf.unmapped or (0,) * len(pdf.pages)
    return tuple(
        page.number
        for page, unnamed in zip(pdf.pages, unmapped, strict=True)
        if page.number in pdf.ink_pages or is_garbled(page.text, unnamed)
    )


def is_garbled(text: str, unmapped: int) -> bool:
    """Return the text of a page is not what is printed there: its fonts do not say what their glyphs are.

    Args:
        text: what was read.
        unmapped: characters without a name, which ``text`` may lack.
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


def with_ocr(pdf: ReadPdf, read: Iterable[OcrPage]) -> ReadPdf:
    """Return the PDF with the text that OCR read, and its pages named in ``ocr_pages``.

    A page stays as it was when OCR found no word, or hardly more than its own sound text has.
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

"""Counts the word pieces of a text as the bundled encoder cuts it, without loading the encoder itself.

A WordPiece tokenizer never looks beyond a word (Schuster and Nakajima, "Japanese and Korean voice
search", 2012), so each word is cut once and remembered: a chunker measures the same words over and over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tokenizers import Tokenizer

SPECIAL = 2
"""The pieces that stand around every text."""

MAX_CACHED_CHARS = 40
MAX_CACHED_WORDS = 100_000
_WORD = re.compile(r"[\S\x0b\x0c\x1c-\x1f\x85]+")  # these are no spaces to the tokenizer: it drops them


@dataclass(frozen=True, slots=True)
class PieceCounter:
    """Counts with the tokenizer in a file."""

    file: Path

    def __call__(self, text: str) -> int:
        """Word pieces of ``text``, the special ones included."""
        return SPECIAL + sum(map(_counts(self.file).__getitem__, _WORD.findall(text)))


def open_tokenizer(data: bytes) -> Tokenizer:
    """A tokenizer that neither pads nor cuts, which as shipped it does at 128 pieces."""
    tokenizer = Tokenizer.from_buffer(data)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


class _Counts(dict[str, int]):
    """Word -> its pieces, cut when first asked for; filled anew when it has grown too large."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __missing__(self, word: str) -> int:
        count = len(self._tokenizer.encode(word, add_special_tokens=False).ids)
        if len(word) <= MAX_CACHED_CHARS:
            if len(self) >= MAX_CACHED_WORDS:
                self.clear()
            self[word] = count
        return count


@cache
def _counts(file: Path) -> _Counts:
    return _Counts(open_tokenizer(file.read_bytes()))

"""Counts the word pieces of a text as the bundled encoder cuts it, without loading the encoder itself.

A WordPiece tokenizer never looks beyond a word (Schuster and Nakajima, "Japanese and Korean voice
search", 2012), so each word is cut once and remembered: a chunker measures the same words over and over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from tokenizers import Tokenizer

SPECIAL = 2
"""The pieces that stand around every text."""

LONGEST_REMEMBERED = 40
_WORD = re.compile(r"[\S\x0b\x0c\x1c-\x1f\x85]+")  # these are no spaces to the tokenizer: it drops them


@dataclass(frozen=True, slots=True)
class PieceCounter:
    """Counts with the tokenizer in a file; small enough to be sent to another process."""

    file: Path

    def __call__(self, text: str) -> int:
        """Word pieces of ``text``, the special ones included."""
        return SPECIAL + sum(self._of_word(word) for word in _WORD.findall(text))

    def _of_word(self, word: str) -> int:
        return (_remembered if len(word) <= LONGEST_REMEMBERED else _cut)(self.file, word)


def open_tokenizer(data: bytes) -> Tokenizer:
    """A tokenizer that neither pads nor cuts, which as shipped it does at 128 pieces."""
    tokenizer = Tokenizer.from_buffer(data)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


@cache
def _tokenizer(file: Path) -> Tokenizer:
    return open_tokenizer(file.read_bytes())


def _cut(file: Path, word: str) -> int:
    return len(_tokenizer(file).encode(word, add_special_tokens=False).ids)


_remembered = lru_cache(maxsize=100_000)(_cut)

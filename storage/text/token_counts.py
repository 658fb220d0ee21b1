"""Token counts: cl100k_base, the unit of all budgets, and word pieces of the bundled encoder.

Both split a text at white space before anything else (WordPiece: Schuster and Nakajima, "Japanese and Korean
voice search", 2012), so counts are cached per word. The vocabularies are bundled in ``storage/data``; nothing
is downloaded at run time.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import tiktoken
from tokenizers import Tokenizer

from storage.errors import IncompleteInstallation, docs_url

MODEL, TOKENIZER, VOCABULARY = "model.onnx", "tokenizer.json", "cl100k_base.tiktoken"

_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)

# [CLS] and [SEP].
SPECIAL = 2

MAX_CACHED_CHARS = 40
MAX_CACHED_WORDS = 100_000
# White space and print; Python counts four control characters as white space that neither vocabulary does.
_SPACE, _PRINT = r"[^\S\x1c-\x1f]", r"[\S\x1c-\x1f]"
# A word with white space before and line breaks after it: ``_PATTERN`` never matches across its ends.
_WORD = re.compile(rf"{_SPACE}*{_PRINT}+(?:[\r\n]{_SPACE}*(?:(?<=[\r\n])|{_PRINT}+|\Z))*|{_SPACE}+")


DATA_FOLDER = Path(__file__).parents[1] / "data"


def bundled(name: str) -> Path:
    """Return the path of a bundled file.

    Raises:
        IncompleteInstallation: it is missing.
    """
    path = DATA_FOLDER / name
    if not path.is_file():
        raise IncompleteInstallation(
            f"the installation lacks {path}: install footnote-bot again ({docs_url('install.md')})"
        )
    return path


def require_bundled_files() -> None:
    """Raise IncompleteInstallation at start-up if a bundled file is missing."""
    for name in (MODEL, TOKENIZER, VOCABULARY):
        bundled(name)


def count_tokens(text: str) -> int:
    """Return the cl100k_base tokens of ``text``; marks such as ``<|endoftext|>`` count as plain text.

    Raises:
        IncompleteInstallation: the bundled vocabulary is missing.
    """
    return sum(map(_token_counts().__getitem__, _words(text)))


def truncate_tokens(text: str, limit: int) -> str:
    """Return the first ``limit`` tokens of ``text``; a character cut in two is dropped."""
    encoding = _encoding()
    tokens = encoding.encode_ordinary(text)
    return text if len(tokens) <= limit else encoding.decode(tokens[:limit], errors="ignore")


@cache
def _encoding() -> tiktoken.Encoding:
    """Load cl100k_base from the bundled file: tiktoken would download it at first use."""
    words = bundled(VOCABULARY).read_bytes().split()  # alternating tokens and ranks
    ranks = dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    return tiktoken.Encoding("cl100k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})


@dataclass(frozen=True, slots=True)
class PieceCounter:
    """Word-piece counter for a tokenizer file."""

    file: Path

    def __call__(self, text: str) -> int:
        """Return the word pieces of ``text``, including the special ones."""
        return SPECIAL + sum(map(_piece_counts(self.file).__getitem__, _words(text)))


def is_frequent_word(word: str) -> bool:
    """True if a word, or its singular, is one piece of the bundled encoder's vocabulary.

    That holds for about the 20,000 most frequent English words and names, correctly spelled: rare words are
    split into pieces.

    Raises:
        IncompleteInstallation: the bundled vocabulary is missing.
    """
    count = PieceCounter(bundled(TOKENIZER))
    return any(count(form) == SPECIAL + 1 for form in (word, word.removesuffix("s")))


@cache
def frequent_words() -> tuple[str, ...]:
    """Return the alphabetic entries of the bundled encoder's vocabulary, in lower case."""
    tokenizer = open_tokenizer(bundled(TOKENIZER).read_bytes())
    return tuple(word for word in tokenizer.get_vocab() if word.isalpha())


def open_tokenizer(data: bytes) -> Tokenizer:
    """Return a tokenizer without padding and truncation, which the shipped file sets at 128 pieces."""
    tokenizer = Tokenizer.from_buffer(data)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


class _Counts(dict[str, int]):
    """Word -> number of its tokens, computed on first use; cleared when full."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count

    def __missing__(self, word: str) -> int:
        count = self._count(word)
        if len(word) <= MAX_CACHED_CHARS:
            if len(self) >= MAX_CACHED_WORDS:
                self.clear()
            self[word] = count
        return count


@cache
def _token_counts() -> _Counts:
    encoding = _encoding()
    return _Counts(lambda word: len(encoding.encode_ordinary(word)))


@cache
def _piece_counts(file: Path) -> _Counts:
    tokenizer = open_tokenizer(file.read_bytes())
    return _Counts(lambda word: len(tokenizer.encode(word, add_special_tokens=False).ids))


@lru_cache(maxsize=2)
def _words(text: str) -> list[str]:
    """Return the words of ``text``, which are counted in both units, one after the other."""
    # The tokenizer of word pieces drops these instead of ending a word.
    if "\x0b" in text or "\x0c" in text or "\x85" in text:
        return [text]
    return _WORD.findall(text)

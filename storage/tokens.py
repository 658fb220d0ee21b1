"""Counts tokens with cl100k_base, the one unit of chunks, budgets and markers; never downloads."""

from __future__ import annotations

import functools
from binascii import a2b_base64

import tiktoken

from storage.bundled import VOCABULARY, bundled

_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def count_tokens(text: str) -> int:
    """Tokens of ``text``; marks such as ``<|endoftext|>`` count as the plain text they are.

    Raises:
        EngineStartError: the bundled vocabulary is missing.
    """
    return len(_encoding().encode_ordinary(text))


def cut_tokens(text: str, limit: int) -> str:
    """The beginning of ``text`` that is at most ``limit`` tokens; a character cut in two is left out."""
    encoding = _encoding()
    tokens = encoding.encode_ordinary(text)
    return text if len(tokens) <= limit else encoding.decode(tokens[:limit], errors="ignore")


@functools.cache
def _encoding() -> tiktoken.Encoding:
    """cl100k_base from the bundled file: tiktoken itself would fetch it at its first use."""
    words = bundled(VOCABULARY).read_bytes().split()  # a token and its rank, by turns
    ranks = dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    return tiktoken.Encoding("cl100k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})

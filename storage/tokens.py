"""Counts tokens with cl100k_base, the one unit of chunks, budgets and markers; never downloads."""

from __future__ import annotations

import base64
import functools

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
    lines = bundled(VOCABULARY).read_bytes().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
    return tiktoken.Encoding("cl100k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})

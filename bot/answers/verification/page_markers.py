"""Page markers in a prompt, which show an answerer where in the document it reads.

A marker opens every passage; others follow at each page start and at most 400 tokens after the last one,
between sentences. They are never stored, embedded or counted in a chunk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from storage.text.sentences import sentence_starts
from storage.text.token_counts import count_tokens

# Maximum cl100k_base tokens between two markers.
SPACING = 400
# Estimate from which tokens are counted exactly: joined pieces may tokenise differently.
TOLERANCE = 320

_MARKER = re.compile(r"^--- Page \d+ ---\n", re.MULTILINE)
_WORD = re.compile(r"\s*\S{1,100}\s*")
_DASH = r"[-\u2010-\u2015\u2212]"
_LOOKALIKE = re.compile(rf"(?<!{_DASH}){_DASH}++(?=\s*+page\s*+\d)", re.IGNORECASE)
_ESCAPED = re.compile(rf"\\(?={_DASH})")


def with_page_markers(text: str, page_starts: Sequence[tuple[int, int]]) -> str:
    """Return the text with its page markers.

    A line of the document that looks like a marker, or like part of one, is escaped, so that it cannot change
    a page number.
    """
    found = list(page_marker_offsets(text, page_starts))
    ends = [offset for offset, _ in found[1:]] + [len(text)]
    parts = (
        f"--- Page {page} ---\n{_escaped(text[offset:end].strip())}"
        for (offset, page), end in zip(found, ends, strict=True)
    )
    return "\n".join(parts)


def count_marker_tokens(prompt: str) -> int:
    """Return the tokens that the page markers of a prompt cost; lookalikes in documents do not count."""
    return sum(count_tokens(marker[0]) for marker in _MARKER.finditer(prompt))


def page_marker_offsets(text: str, page_starts: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the (offset, page) of every marker, in order."""
    ends = [offset for offset, _ in page_starts[1:]] + [len(text)]
    for (start, page), end in zip(page_starts, ends, strict=True):
        yield start, page
        yield from ((start + offset, page) for offset in _too_far(text[start:end]))


def _escaped(text: str) -> str:
    return _LOOKALIKE.sub(lambda dashes: "".join(f"\\{dash}" for dash in dashes[0]), text)


def unescaped(quote: str) -> str:
    """Remove the escapes from a quote that a model copied."""
    return _ESCAPED.sub("", quote)


def _too_far(text: str) -> Iterator[int]:
    """Yield the offsets at which the text since the last marker would exceed the spacing."""
    if _tokens(text) <= SPACING:
        return
    begin = since = 0
    for start, end in _pieces(text):
        tokens = _tokens(text[start:end])
        since += tokens
        if start > begin and since > TOLERANCE and _tokens(text[begin:end]) > SPACING:
            yield start
            begin, since = start, tokens


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield sentences; one longer than the spacing as single words."""
    starts = [0, *(start for start in sentence_starts(text) if start), len(text)]
    for start, end in pairwise(starts):
        if _tokens(text[start:end]) <= SPACING:
            yield start, end
        else:
            yield from (
                (start + word.start(), start + word.end()) for word in _WORD.finditer(text[start:end])
            )


def _tokens(text: str) -> int:
    """Return the number of tokens as a model reads the text, with escapes."""
    return count_tokens(_escaped(text))

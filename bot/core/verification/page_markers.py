"""Page markers: they show an answerer where in the document it reads, and are made at reading time.

A marker opens every passage, and comes at each page start and at most 400 tokens after the last one,
between sentences. Nothing of this is stored, embedded or counted in a chunk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from storage.text.sentences import sentence_starts
from storage.text.token_counts import count_tokens

# Most cl100k_base tokens between two markers.
SPACING = 400
# From so many on they are counted exactly: pieces put together may have other tokens than each by itself.
TOLERANCE = 320

_MARKER = re.compile(r"^--- Page \d+ ---\n", re.MULTILINE)
_WORD = re.compile(r"\s*\S{1,100}\s*")
_DASH = r"[-\u2010-\u2015\u2212]"
_LOOKALIKE = re.compile(rf"(?<!{_DASH}){_DASH}++(?=\s*+page\s*+\d)", re.IGNORECASE)
_ESCAPED = re.compile(rf"\\(?={_DASH})")


def with_page_markers(text: str, page_starts: Sequence[tuple[int, int]]) -> str:
    """Return the text with its page markers.

    A line of the document that looks like a marker is escaped, whole or not, so that it can never move a
    page number.
    """
    found = list(page_marker_offsets(text, page_starts))
    ends = [offset for offset, _ in found[1:]] + [len(text)]
    parts = (
        f"--- Page {page} ---\n{_escaped(text[offset:end].strip())}"
        for (offset, page), end in zip(found, ends, strict=True)
    )
    return "\n".join(parts)


def count_marker_tokens(prompt: str) -> int:
    """Tokens that the page markers of a prompt cost; lines of documents that look like them are none."""
    return sum(count_tokens(marker[0]) for marker in _MARKER.finditer(prompt))


def page_marker_offsets(text: str, page_starts: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """(offset, page) of every marker, in order."""
    ends = [offset for offset, _ in page_starts[1:]] + [len(text)]
    for (start, page), end in zip(page_starts, ends, strict=True):
        yield start, page
        yield from ((start + offset, page) for offset in _too_far(text[start:end]))


def _escaped(text: str) -> str:
    return _LOOKALIKE.sub(lambda dashes: "".join(f"\\{dash}" for dash in dashes[0]), text)


def unescaped(quote: str) -> str:
    """What a model copied, as the document has it."""
    return _ESCAPED.sub("", quote)


def _too_far(text: str) -> Iterator[int]:
    """Offsets at which the text since the last marker would otherwise exceed the spacing."""
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
    """Sentences; one that is longer than the spacing gives its words instead."""
    starts = [0, *(start for start in sentence_starts(text) if start), len(text)]
    for start, end in pairwise(starts):
        if _tokens(text[start:end]) <= SPACING:
            yield start, end
        else:
            yield from (
                (start + word.start(), start + word.end()) for word in _WORD.finditer(text[start:end])
            )


def _tokens(text: str) -> int:
    """As a model reads it."""
    return count_tokens(_escaped(text))

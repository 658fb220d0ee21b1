"""Reading order: whether a reader's text has neighbouring snippets in the right order."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from tools.bench.reading.findings import Findings, squeezed
from tools.bench.reading.labels import Pages
from tools.bench.reading.tally import Tally


def count_order(labels: Mapping[str, Pages], seen: Mapping[str, Findings]) -> Tally:
    """Count ``right`` of ``asked`` pairs of neighbouring snippets; a missing or torn snippet is wrong."""
    tally = Tally()
    for name, pages in labels.items():
        for page, snippets in pages.items():
            text = squeezed(seen[name].text.get(int(page), ""))
            places = [text.find(squeezed(snippet)) for snippet in snippets]
            for (first, then), (start, end) in zip(pairwise(snippets), pairwise(places), strict=True):
                tally.counts["asked"] += 1
                if 0 <= start < end:
                    tally.counts["right"] += 1
                else:
                    tally.wrong.append(f"{name} p. {page}: {first!r} {_why(start, end)} {then!r}")
    return tally


def _why(start: int, end: int) -> str:
    return "comes after" if start >= 0 and end >= 0 else "or the next is missing or torn:"

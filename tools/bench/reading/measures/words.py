"""Words: how many printed words of a page a reader's text contains; lost text is never cited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tools.bench.reading.findings import Findings, normalised
from tools.bench.reading.measures.sentences import Words
from tools.bench.reading.tally import Tally

# A page with a smaller fraction of its words is reported.
FEW = 0.97


def count_words(printed: Words, seen: Mapping[str, Findings]) -> Tally:
    """Count ``kept`` of ``asked`` words, with repetitions."""
    tally = Tally()
    for name, pages in printed.items():
        for page, words in pages.items():
            asked = Counter(normalised(" ".join(word.text for word in words)).split())
            kept = asked & Counter(normalised(seen[name].text.get(page, "")).split())
            tally.counts["asked"] += asked.total()
            tally.counts["kept"] += kept.total()
            if kept.total() < FEW * asked.total():
                lost = " ".join((asked - kept).elements())
                share = f"{kept.total()} of {asked.total()} words"
                tally.wrong.append(f"{name} p. {page}: {share}, lost {lost[:90]!r}")
    return tally

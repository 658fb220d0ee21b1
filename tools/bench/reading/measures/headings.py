"""Headings: labelled ones that were found, and found ones that are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tools.bench.reading.findings import Findings, normalised
from tools.bench.reading.labels import Pages
from tools.bench.reading.tally import Tally

# A title set in several lines may be found as up to this many headings.
LONGEST_RUN = 4


def count_headings(labels: Mapping[str, Mapping[str, Pages]], seen: Mapping[str, Findings]) -> Tally:
    """Count ``found`` of ``asked``, of them ``plain found`` of ``plain asked``, and ``invented``."""
    tally = Tally()
    for name, kinds in labels.items():
        for page in kinds["headings"]:
            said = [normalised(text) for number, text in seen[name].headings if number == int(page)]
            left = [text for text in said if text]
            where = f"{name} p. {page}"
            _count(tally, where, kinds["headings"][page], left, kind="")
            _count(tally, where, kinds.get("plain", {}).get(page, []), left, kind="plain ")
            for text in kinds.get("doubtful", {}).get(page, []):
                _take(normalised(text), left)
            tally.counts["invented"] += len(left)
            tally.wrong += [f"{where}: invented {text!r}" for text in left]
    return tally


def _count(tally: Tally, where: str, asked: Sequence[str], left: list[str], *, kind: str) -> None:
    for text in asked:
        tally.counts["asked"] += 1
        tally.counts[f"{kind}asked"] += bool(kind)
        if _take(normalised(text), left):
            tally.counts["found"] += 1
            tally.counts[f"{kind}found"] += bool(kind)
        else:
            tally.wrong.append(f"{where}: missed {kind}{text!r}")


def _take(text: str, left: list[str]) -> bool:
    """Remove a found heading, or a run of them, that equals the text; return False if there is none."""
    for length in range(1, LONGEST_RUN + 1):
        for start in range(len(left) - length + 1):
            if " ".join(left[start : start + length]) == text:
                del left[start : start + length]
                return True
    return False


def scores(tally: Tally) -> tuple[float, float, float]:
    """Return precision, recall and F1."""
    found, asked, invented = (tally.counts[key] for key in ("found", "asked", "invented"))
    precision = found / (found + invented) if found else 0.0
    recall = found / asked if asked else 0.0
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0.0

"""Runs labelled sentences of a model through verification, and counts the outcomes.

  python -m tools.evaluation.sentences FOLDER [--verdicts FILE]

FOLDER contains ``true.jsonl`` and ``false.jsonl``: a sentence per line, with question, quotes and passages.
The judge answers by the labels, which is the upper bound, or by FILE: ``{"id": "yes" | "partly" | "no"}``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from bot.answers.generation.sentence_verifier import SentenceVerifier
from bot.core.models import (
    AnalyzedQuestion,
    Claim,
    Draft,
    Evidence,
    Judgement,
    Passage,
    Quote,
    QuotedSentence,
)
from storage.models import LivePublication, Rung
from storage.text.analyzer import analyze

Row = dict[str, Any]

_MARKER = re.compile(r"^--- Page (\d+) ---\n", re.MULTILINE)


@dataclass
class ScriptedJudge:
    """A judge with a fixed answer that records whether it was called."""

    is_supported: bool
    was_asked: bool = False

    async def judge(self, question: AnalyzedQuestion, sentences: Sequence[QuotedSentence]) -> Judgement:
        """Return the fixed answer for each sentence."""
        self.was_asked = True
        return Judgement([self.is_supported] * len(sentences))


def read_rows(folder: Path) -> Iterator[Row]:
    """Yield the labelled sentences, the true ones first."""
    for name in ("true", "false"):
        for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def kind_of(row: Row) -> str:
    """Return the kind of a sentence: ``true``, or what makes it false."""
    return str(row["kind"]) if row["label"] == "false" else "true"


async def outcome_of(row: Row, *, is_supported: bool) -> str:
    """Verify one sentence; return the outcome and who decided."""
    judge = ScriptedJudge(is_supported)
    terms = tuple(analyze(row["question"]))
    question = AnalyzedQuestion(row["question"], terms, dict.fromkeys(terms, 1.0), None)
    claim = Claim(row["sentence"], tuple(Quote(one["passage"], one["quote"]) for one in row["quotes"]))
    evidence = [_evidence(one) for one in row["passages"]]
    verified = await SentenceVerifier(question, evidence, judge).verify(Draft((claim,)))
    return f"{'refused' if verified.faults or not verified.claims else 'shown'} by " + (
        "judge" if judge.was_asked else "program"
    )


def _evidence(one: Row) -> Evidence:
    """Return a passage as the model got it, without page markers."""
    text, starts = "", list[tuple[int, int]]()
    found = list(_MARKER.finditer(one["text"]))
    for marker, following in zip_longest(found, found[1:]):
        starts.append((len(text), int(marker[1])))
        text += one["text"][marker.end() : following.start() if following else None]
    starts[0] = (0, starts[0][1])
    name = f"{one['title']} {one['number']}"
    publication = LivePublication(
        id=uuid5(NAMESPACE_URL, name),
        channel_id=1,
        document_id=uuid5(NAMESPACE_URL, one["title"]),
        version_id=one["number"],
        reading_id=uuid5(NAMESPACE_URL, "reading" + name),
        sha256="0" * 64,
        rung=Rung.FULL,
        file=one.get("file", one["title"]),
        title=one["title"],
        pages=starts[-1][1],
        chunks=1,
    )
    headings = tuple(filter(None, one.get("section", "").split(" > ")))
    passage = Passage(
        publication, one["number"], text, starts[0][1], starts[-1][1], headings, 1.0, None, None,
        frozenset(analyze(" ".join((one["title"], *headings, text)))),
    )  # fmt: skip
    return Evidence(one["number"], passage, tuple(starts))


async def measure(rows: Sequence[Row], verdicts: Mapping[str, str] | None) -> dict[str, Counter[str]]:
    """Count the outcomes by kind; print refused true sentences and shown false ones."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        is_true = row["label"] == "true"
        is_supported = is_true if verdicts is None else verdicts.get(row["id"]) == "yes"
        outcome = await outcome_of(row, is_supported=is_supported)
        counts[kind_of(row)][outcome] += 1
        if outcome.startswith("shown") != is_true:
            print(f"{row['id']} {kind_of(row)}, {outcome}: {row['sentence']}")
    return counts


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="sentences", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verdicts", type=Path)
    options = parser.parse_args()
    verdicts = json.loads(options.verdicts.read_text(encoding="utf-8")) if options.verdicts else None
    counts = asyncio.run(measure(list(read_rows(options.folder)), verdicts))
    for kind, outcomes in counts.items():
        print(f"{kind:22} {', '.join(f'{outcome} {count}' for outcome, count in outcomes.most_common())}")


if __name__ == "__main__":
    main()

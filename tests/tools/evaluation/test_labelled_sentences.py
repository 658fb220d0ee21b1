"""Labelled sentences, counted by outcome."""

from __future__ import annotations

import json
from pathlib import Path

from tools.evaluation.sentences import measure, read_rows

PASSAGE = {
    "number": 1,
    "title": "Ferry",
    "page": "3",
    "section": "Fares",
    "text": "--- Page 3 ---\nBicycles cost $4.50 each.\n\nDogs travel free.",
}


def row(label: str, sentence: str, **more: str) -> str:
    quotes = [{"passage": 1, "quote": "Bicycles cost $4.50 each"}]
    common = {"question": "What does a bike cost?", "quotes": quotes, "passages": [PASSAGE]}
    return json.dumps({"id": sentence, "label": label, "sentence": sentence, **common, **more})


async def test_each_outcome_is_counted_under_its_kind(tmp_path: Path) -> None:
    """Counts by labels first, then by a judge's verdicts."""
    (tmp_path / "true.jsonl").write_text(row("true", "A bike is $4.50.") + "\n" + row("true", "It is extra."))
    (tmp_path / "false.jsonl").write_text(row("false", "A bike is $5.", kind="changed_number"))
    rows = list(read_rows(tmp_path))
    assert await measure(rows, None) == {
        "true": {"shown by judge": 2},
        "changed_number": {"refused by program": 1},
    }
    assert (await measure(rows, {"It is extra.": "yes"}))["true"] == {
        "shown by judge": 1,
        "refused by judge": 1,
    }

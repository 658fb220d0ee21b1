"""Recency ranking through the whole program: five old and two new documents on one subject."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.program import Program
from samples.paper import pdf

WORDINGS = (
    "Laptops are replaced every 3 years.",
    "A laptop is replaced every 4 years.\nLost laptops are reported to the porter by telephone.",
    "Staff laptops are replaced every 5 years.",
    "Laptops get replaced after 6 years.",
    "All laptops are replaced once in 7 years.",
    "We replace laptops every 8 years.",
    "Every 9 years the laptops are replaced.",
)
OFFICES = ("Oslo", "Lisbon", "Bonn", "Lyon", "Turin", "Porto", "Delft")
OLD = 5


@pytest.mark.long
@pytest.mark.parametrize("new_day", ["Effective date: 2026-05-01", ""], ids=["dated", "undated"])
def test_a_new_document_ranks_high_and_a_better_old_one_first(
    program: Program, tmp_path: Path, new_day: str
) -> None:
    """Undated documents count by arrival; a question may ask for new ones only."""
    folder = tmp_path / "rules"
    folder.mkdir()
    for number, (office, wording) in enumerate(zip(OFFICES, WORDINGS, strict=True)):
        day = f"Effective date: 201{number}-03-01" if number < OLD else new_day
        name = f"{'old' if number < OLD else 'new'}-{office.lower()}.pdf"
        (folder / name).write_bytes(pdf(f"Rules of {office}\n{day}\n\n{wording}"))
    ended = program.run("ingest", str(folder), "--channel", "rules", "--wait", "full")
    assert ended.returncode == 0, ended.stderr
    often = "How often are laptops replaced?"
    questions = (often, "How are lost laptops reported?", f"{often} Only documents since 2015.")
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps({"question": one, "channel": "rules"}) + "\n" for one in questions))
    asked = program.run("ask", "--questions", str(file), "--json")
    usual, lost, narrowed = map(json.loads, asked.stdout.splitlines())
    found = usual["passages"]
    assert len(found) == len(WORDINGS)
    assert any(one["file"].startswith("new") for one in found[:3]), [one["file"] for one in found]
    assert lost["passages"][0]["file"] == "old-lisbon.pdf"
    assert {one["file"][:3] for one in narrowed["passages"]} == {"new"}
    assert narrowed["filter"] == {
        "conditions": ["documents, from 2015-01-01 on"],
        "kept": 2,
        "by_arrival": 0 if new_day else 2,
    }

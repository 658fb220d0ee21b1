"""``footnote gaps`` and ``quality`` on a home whose documents lack some answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from harness.program import Program

from storage.clock import utc_now


def test_unanswered_questions_are_listed_with_unknown_words(
    with_page: Callable[[str, str, str], Program],
) -> None:
    """Similar questions are grouped, as text and as JSON; answered ones are left out."""
    program = with_page("it", "a.pdf", "Backups run daily at 2:00 AM.")
    assert "No gaps found" in program.run("gaps").stderr
    assert program.ask("When do backups run?", "it")["state"] == "passages"
    for question in ("Who repairs the espresso machine?", "who repairs the espresso machine"):
        assert program.ask(question, "it")["state"] == "not_found"
    (line,) = map(json.loads, program.run("gaps", "--channel", "it", "--json").stdout.splitlines())
    assert (line["channel"], line["count"], len(line["ids"])) == ("it", 2, 2)
    assert "espresso" in line["unknown"]
    told = program.run("gaps").stdout
    assert "   2  it  who repairs the espresso machine" in told
    assert "in no document: " in told
    kept = program.run("quality", "--weeks", "1", "--json", "--keep-baseline").stdout
    assert (json.loads(kept)["questions"], json.loads(kept)["baseline"]) == (3, None)
    (line,) = map(json.loads, program.run("quality", "--channel", "it", "--json").stdout.splitlines())
    assert line["baseline"] == line["figures"]
    assert line["figures"]["answered"] == pytest.approx(1 / 3)
    assert re.search(r"^  Answered +0\.3333 +0\.3333 ", program.run("quality").stdout, re.MULTILINE)
    month = f"{utc_now():%Y-%m}"
    table = program.run("quality", "--month", month).stdout.splitlines()
    assert table[0].startswith("month,channel,people,questions,answered,")
    assert table[1].startswith(f"{month},it,0,3,1,2,0,")
    assert "write it like" in program.run("quality", "--month", "soon").stderr
    assert program.run("gaps", "--days", "0").returncode == 2
    assert program.run("gaps", "--channel", "nowhere").returncode == 2

"""Questions a newcomer asks the two samples show the passage that answers them, at each rung."""

from __future__ import annotations

import pytest
from harness.program import SAMPLES, Program

# (question, what the reply shows).
ASKED = (
    ("Give me the steps to restore a file", "WARNING Never restore over a running production database."),
    ("Give me the steps to restore a file", "5. The backup operator moves the data to its place"),
    ("How do I request remote work?", "1. Fill in form HR-02-A with the kind, the days wanted"),
    ("What is the warning about restoring?", "Never restore over a running production database."),
    ("What changed in the latest version?", "Restore times added; databases kept for 35 days instead of 30."),
    ("Who approves a restore and how often is it tested?", "The system owner approves every restore."),
    ("Who approves a restore and how often is it tested?", "Once in every quarter the backup operator"),
)


@pytest.mark.parametrize("rung", ["quick", "full"])
def test_a_newcomers_questions_find_their_passages(with_samples: Program, rung: str) -> None:
    """Shows whole steps with the warning before them, a row of the history, and both halves of a question."""
    read = with_samples.run("ingest", str(SAMPLES), "--channel", "it", "--wait", rung)
    assert read.returncode == 0, read.stderr
    shown = {asked: with_samples.ask(asked, "it")["text"] for asked in dict(ASKED)}
    assert [asked for asked, said in ASKED if said not in " ".join(shown[asked].split())] == []
    assert "Open the backup console" not in shown["Give me the steps to restore a file"], "another procedure"

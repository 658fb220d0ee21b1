"""Export of feedback as cases for the evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bot.cli.records import evaluation_case
from storage.chat.feedback import Feedback, FeedbackVerdict
from storage.clock import utc_now
from tools.evaluation.golden import Kind, read_questions

CITED = [
    {"file": "a.pdf", "page": 3, "quote": "Backups run at 2."},
    {"file": "x", "page": None, "quote": "W"},
]


def said(
    verdict: FeedbackVerdict, state: str, *, page: int = 0, cited: list[dict[str, Any]] = CITED
) -> Feedback:
    record = {"searched": "When do backups run?", "state": state, "citations": cited}
    return Feedback(7, 1, verdict, "b.pdf" if page else "", page, "", utc_now(), record)


def test_cases_are_read_by_the_evaluation(tmp_path: Path) -> None:
    """Shows a good answer with its citations, a page named by a person, and a correct "not found"."""
    cases = [
        evaluation_case(said(FeedbackVerdict.GOOD, "grounded"), "hr"),
        evaluation_case(said(FeedbackVerdict.SHOULD_HAVE_FOUND, "not_found", page=2), "hr"),
        evaluation_case(said(FeedbackVerdict.GOOD, "not_found", cited=[]), "hr"),
    ]
    file = tmp_path / "cases.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in cases))
    good, named, absent = read_questions([file])
    assert (good.collection, good.text, good.needs) == (
        "hr",
        "When do backups run?",
        (frozenset({("a.pdf", 3)}),),
    )
    assert good.evidence == ((("a.pdf", 3), "Backups run at 2."),)
    assert (named.kind, named.needs) == (Kind.SINGLE, (frozenset({("b.pdf", 2)}),))
    assert (absent.kind, absent.is_answerable) == (Kind.ABSENT_HERE, False)


def test_feedback_without_a_right_page_gives_no_case() -> None:
    """Shows that a right page is never invented."""
    assert evaluation_case(said(FeedbackVerdict.WRONG_ANSWER, "grounded"), "hr") is None
    assert evaluation_case(said(FeedbackVerdict.BAD, "passages"), "hr") is None
    assert evaluation_case(said(FeedbackVerdict.GOOD, "chat", cited=[]), "hr") is None

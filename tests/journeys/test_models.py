"""The whole program with a language model behind it: a real one, and one that is down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from core_fakes import WORDS
from engines._ports import free_port
from engines.llm import LanguageModel
from paper import pdf
from program import Program

SENTENCE = "The quota of the depot is 12 crates a day."


@pytest.fixture
def ingested(program: Program, tmp_path: Path) -> Program:
    """One page with one fact."""
    (tmp_path / "quota.pdf").write_bytes(pdf(SENTENCE))
    assert program.run("ingest", str(tmp_path / "quota.pdf"), "--channel", "depot").returncode == 0
    return program


def citations_of(answer: dict[str, Any]) -> set[str]:
    """What an answer quotes."""
    return {citation["quote"] for citation in answer["citations"]}


@pytest.mark.engine("llm")
def test_a_real_model_is_believed_only_as_far_as_its_quotes_are_found(
    ingested: Program, language_model: LanguageModel
) -> None:
    """The model is tiny and may write anything: what is shown stands on the page, word for word."""
    ingested.environment = {
        "OPENAI_BASE_URL": language_model.url,
        "OPENAI_API_KEY": language_model.key,
        "OPENAI_MODEL": language_model.name,
        "FOOTNOTE_MODEL_TOKENS": "120",
    }
    ended = ingested.run("ask", "What is the quota of the depot?", "--channel", "depot", "--json")
    assert "model failed" not in ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["state"] in {"grounded", "partial", "not_found"}
    assert all(quote in SENTENCE for quote in citations_of(answer))


def test_a_model_that_is_down_is_replaced_by_quotes_and_the_answer_says_so(ingested: Program) -> None:
    """A sentence about it, then the quote with its source."""
    ingested.environment = {"OPENAI_BASE_URL": f"http://127.0.0.1:{free_port()}/v1"}
    answer = ingested.ask("What is the quota of the depot?", "depot")
    assert answer["text"].startswith(WORDS.model_failed)
    assert citations_of(answer) == {SENTENCE}


def test_a_question_leaves_a_record_that_can_be_looked_at(ingested: Program) -> None:
    """By id from the list: what was found, the exact prompt that the model did not answer, what was cited."""
    ingested.environment = {"OPENAI_BASE_URL": f"http://127.0.0.1:{free_port()}/v1"}
    ingested.ask("What is the quota of the depot?", "depot")
    listed = json.loads(ingested.run("records", "--channel", "depot", "--json").stdout)
    assert (listed["question"], listed["state"]) == ("What is the quota of the depot?", "grounded")
    told = ingested.run("records", listed["id"], "--channel", "depot", "--json")
    record = json.loads(told.stdout)
    assert record["looks"][0]["candidates"][0]["fate"] == "read"
    model, quotes = record["drafts"]
    assert model["error"] == "ModelUnavailable"
    assert SENTENCE in model["prompts"][0]["user"]
    assert (quotes["author"], record["citations"][0]["quote"]) == ("quotes", SENTENCE)
    assert SENTENCE in ingested.run("records", listed["id"], "--channel", "depot").stdout
    missing = ingested.run("records", "nothing", "--channel", "depot")
    assert (missing.returncode, missing.stdout) == (2, "")


def test_who_wants_no_records_has_none(ingested: Program) -> None:
    """The setting keeps words of questions and documents out of the database."""
    ingested.environment = {"FOOTNOTE_RECORD_DAYS": "0"}
    ingested.ask("What is the quota of the depot?", "depot")
    listed = ingested.run("records", "--channel", "depot")
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "No question of this channel" in listed.stderr

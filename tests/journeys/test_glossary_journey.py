"""The whole program with a glossary and with rerankers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from engines.support.ports import free_port
from fakes.tiny_cross_encoder import write_cross_encoder
from harness.program import Program
from samples.paper import pdf

SENTENCE = "Parental leave is 16 weeks for each parent."


@pytest.fixture
def ingested(with_page: Callable[[str, str, str], Program]) -> Program:
    """A home that has read a page with one fact."""
    return with_page("hr", "leave.pdf", SENTENCE)


def test_a_glossary_applies_to_the_next_question(ingested: Program) -> None:
    """A term is not found, then added and found; mistakes and unknown channels are reported."""
    glossary = ingested.home / "glossary.toml"
    assert ingested.ask("Babymoon?", "hr")["state"] == "not_found"
    glossary.write_text('[channels.hr]\nbabymoon = ["parental leave"]\n')
    answer = ingested.ask("Babymoon?", "hr")
    assert (answer["state"], answer["citations"][0]["quote"]) == ("passages", SENTENCE)
    listed = ingested.run("channels", "--json")
    assert (json.loads(listed.stdout)["glossary"], listed.stderr) == (1, "")
    glossary.write_text('[channels.hr]\nbabymoon = "parental leave"\n[channels.hq]\na = ["b"]\n')
    listed = ingested.run("channels")
    assert listed.returncode == 0
    assert "glossary.toml:2: 'babymoon': write its words as a list" in listed.stderr
    glossary.write_text('[channels.hq]\nbabymoon = ["parental leave"]\n')
    assert "glossary.toml:1: there is no channel 'hq' yet" in ingested.run("channels").stderr


def test_a_custom_cross_encoder_reranks(ingested: Program, tmp_path: Path) -> None:
    """Shows that a folder with a model is sufficient."""
    (tmp_path / "pool.pdf").write_bytes(pdf("The pool is open 16 weeks a year."))
    assert ingested.run("ingest", str(tmp_path / "pool.pdf"), "--channel", "hr").returncode == 0
    folder = write_cross_encoder(tmp_path / "model", ["pool"])
    ingested.environment = {
        "FOOTNOTE_RERANKER": "folder",
        "FOOTNOTE_RERANK_FOLDER": str(folder),
        "FOOTNOTE_RERANK_WEIGHT": "1",
    }
    answer = ingested.ask("How many weeks is parental leave, not the pool?", "hr")
    assert [(one["file"], one["score"]) for one in answer["passages"]] == [("pool.pdf", 1), ("leave.pdf", 0)]


@pytest.mark.long
def test_a_failing_reranker_endpoint_only_logs(ingested: Program) -> None:
    """Shows that the answer is the same, and that the log names the skipped step."""
    ingested.environment = {
        "FOOTNOTE_RERANKER": "endpoint",
        "FOOTNOTE_RERANK_URL": f"http://127.0.0.1:{free_port()}/rerank",
        "FOOTNOTE_REWORD": "always",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{free_port()}/v1",
    }
    asked = ingested.run("ask", "How many weeks is parental leave?", "--channel", "hr", "--json")
    assert json.loads(asked.stdout)["citations"][0]["quote"] == SENTENCE
    assert "query expansion failed" in asked.stderr


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"FOOTNOTE_RERANKER": "folder"}, "FOOTNOTE_RERANK_FOLDER"),
        ({"FOOTNOTE_RERANKER": "folder", "FOOTNOTE_RERANK_FOLDER": "/nowhere"}, "cannot be read"),
        ({"FOOTNOTE_RERANKER": "endpoint"}, "FOOTNOTE_RERANK_URL"),
        ({"FOOTNOTE_RERANKER": "model"}, "OPENAI_BASE_URL"),
        ({"FOOTNOTE_REWORD": "missed"}, "OPENAI_BASE_URL"),
        ({"FOOTNOTE_RERANKER": "best"}, "FOOTNOTE_RERANKER"),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else "",
)
def test_incomplete_settings_are_refused(ingested: Program, settings: dict[str, str], sentence: str) -> None:
    """Shows that there is no silent fallback."""
    ingested.environment = settings
    ended = ingested.run("ask", "How many weeks is parental leave?", "--channel", "hr")
    assert ended.returncode != 0
    assert sentence in ended.stderr

"""The whole program with a language model: a real one, and one that is down."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from engines.llm import LanguageModel
from engines.support.ports import free_port
from fakes.model_server import STREAM_HEAD, byte_server, completion, event, response
from harness.program import Program
from harness.terminal import on_terminal

from bot.llm.sentence_judge import CONTROL_QUESTION, CONTROLS

SENTENCE = "The quota of the depot is 12 crates a day."
CLAIM = {"text": "12 crates a day.", "quotes": [{"passage": 1, "quote": "12 crates a day"}]}
REPLY = json.dumps({"sufficient": True, "claims": [CLAIM]})
SENTENCES = (
    "12 crates a day.",
    "Its daily allowance is a dozen crates.",
    "The depot has a higher quota in summer.",
)
# A model on a CPU shared with other tests writes a word a second.
PATIENT = {"FOOTNOTE_MODEL_SECONDS": "300", "FOOTNOTE_ANSWER_SECONDS": "300"}


@pytest.fixture
def ingested(with_page: Callable[[str, str, str], Program]) -> Program:
    """A home that has read a page with one fact."""
    return with_page("depot", "quota.pdf", SENTENCE)


def citations_of(answer: dict[str, Any]) -> set[str]:
    return {citation["quote"] for citation in answer["citations"]}


@pytest.mark.long
@pytest.mark.engine("llm")
def test_only_verified_quotes_of_a_real_model_are_shown(
    ingested: Program, language_model: LanguageModel
) -> None:
    """The model is tiny and may write anything: everything shown is verbatim on the page."""
    ingested.environment = {
        "OPENAI_BASE_URL": language_model.url,
        "OPENAI_API_KEY": language_model.key,
        "OPENAI_MODEL": language_model.name,
        "FOOTNOTE_MODEL_TOKENS": "120",
        **PATIENT,
    }
    ended = ingested.run("ask", "What is the quota of the depot?", "--channel", "depot", "--json")
    assert "ModelUnavailable" not in ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["state"] in {"grounded", "partial", "passages", "not_found"}
    assert all(quote in SENTENCE for quote in citations_of(answer))


@pytest.mark.long
async def test_a_second_model_answers_when_the_first_is_down(ingested: Program) -> None:
    """The second model has its own base URL; users see no difference."""
    requests: list[bytes] = []

    async def second(request: bytes, writer: asyncio.StreamWriter) -> None:
        requests.append(request)
        writer.write(response(completion(REPLY)))
        await writer.drain()

    async with byte_server(second) as url:
        ingested.environment = {
            "OPENAI_BASE_URL": f"http://127.0.0.1:{free_port()}/v1",
            "FOOTNOTE_SECOND_MODEL": "spare",
            "FOOTNOTE_SECOND_MODEL_URL": url,
        }
        answer = await asyncio.to_thread(ingested.ask, "What is the quota of the depot?", "depot")
    assert (answer["state"], answer["text"]) == ("grounded", "12 crates a day. [1]")
    assert [json.loads(request)["model"] for request in requests] == ["spare"]


@pytest.mark.parametrize(
    "settings",
    [
        {"OPENAI_API_KEY": "k", "FOOTNOTE_SECOND_MODEL_URL": "http://127.0.0.1:1/v1"},
        {"FOOTNOTE_SECOND_MODEL": "spare"},
    ],
)
def test_incomplete_settings_of_a_second_model_are_refused(
    ingested: Program, settings: dict[str, str]
) -> None:
    """Without a name, or without a first model, the command names the setting."""
    ingested.environment = settings
    ended = ingested.run("ask", "What is the quota of the depot?", "--channel", "depot")
    assert ended.returncode != 0
    assert "FOOTNOTE_SECOND_MODEL" in ended.stderr


async def test_an_answer_is_streamed_to_a_terminal(ingested: Program) -> None:
    """Quotes are shown while the model writes; its own words follow once a second call confirms them.

    That call gets each sentence with its source; nothing is shown twice.
    """
    seen, judged = asyncio.Event(), list[str]()

    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        if "Judge each sentence" in (said := request.decode()):
            if is_test := CONTROL_QUESTION in said:
                verdicts = ["yes" if is_true else "no" for _, is_true in CONTROLS]
            else:
                verdicts = ["yes", "yes", "no"]
            judged.extend([] if is_test else [said])
            writer.write(response(completion(json.dumps({"verdicts": verdicts, "missing": ""}))))
            return
        first, *others = (
            json.dumps({"text": text, "quotes": [{"passage": 1, "quote": SENTENCE}]}) for text in SENTENCES
        )
        writer.write(STREAM_HEAD + event('{"sufficient": true, "claims": [' + first))
        await writer.drain()
        await seen.wait()
        writer.write(event(f", {', '.join(others)}]}}") + event(finish="stop"))
        await writer.drain()

    async with byte_server(handle) as url:
        ingested.environment = {"OPENAI_BASE_URL": url}
        asked = ("ask", "What is the quota of the depot?", "--channel", "depot")
        with on_terminal(ingested, *asked) as terminal:
            await asyncio.to_thread(terminal.until, re.escape(SENTENCES[0]))
            assert "daily" not in terminal.shown
            seen.set()
            assert await asyncio.to_thread(terminal.end) == 0
    quote, borne_out, refused = SENTENCES
    assert terminal.shown.replace("\r", "").startswith(f"{quote} {borne_out} [1]\n\n[1] p. 1")
    assert refused not in terminal.shown
    (call,) = judged
    assert all(text in call for text in (*SENTENCES, SENTENCE))


def test_a_question_leaves_a_trace(ingested: Program) -> None:
    """Found by id from the list: candidates, the exact prompt that the model did not answer, citations."""
    ingested.environment = {"OPENAI_BASE_URL": f"http://127.0.0.1:{free_port()}/v1"}
    ingested.ask("What is the quota of the depot?", "depot")
    listed = json.loads(ingested.run("records", "--channel", "depot", "--json").stdout)
    assert (listed["question"], listed["state"]) == ("What is the quota of the depot?", "passages")
    told = ingested.run("records", listed["id"], "--channel", "depot", "--json")
    record = json.loads(told.stdout)
    assert record["searches"][0]["candidates"][0]["outcome"] == "read"
    model, quotes = record["drafts"]
    assert model["error"] == "ModelUnavailable"
    assert SENTENCE in model["prompts"][0]["user"]
    assert (quotes["author"], record["citations"][0]["quote"]) == ("quotes", SENTENCE)
    assert SENTENCE in ingested.run("records", listed["id"], "--channel", "depot").stdout
    missing = ingested.run("records", "nothing", "--channel", "depot")
    assert (missing.returncode, missing.stdout) == (2, "")


def test_traces_can_be_switched_off(ingested: Program) -> None:
    """The setting keeps texts of questions and documents out of the database."""
    ingested.environment = {"FOOTNOTE_RECORD_DAYS": "0"}
    ingested.ask("What is the quota of the depot?", "depot")
    listed = ingested.run("records", "--channel", "depot")
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "No question records in this channel" in listed.stderr

"""Question traces: each question leaves one record of how it was answered."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest
from fakes.core import BACKUPS, TRAVEL, BrokenOff, Looker, Scripted, Vocabulary, World, make_passage

from bot.answers.trace import AMBIGUOUS, MAX_PROMPT_CHARS, NOWHERE
from bot.answers.trace_writer import MAX_QUEUED, TraceWriter, writing_traces
from bot.cli.records import render_record
from bot.core.errors import ModelUnavailable
from bot.core.models import Answer, AnswerState, Claim, Draft, Prompt, Quote, Usage, auxiliary_call
from storage.chat_models import Turn
from storage.errors import DatabaseUnavailable, IndexUnavailable

DAILY = Claim("Backups run at 2 AM every day.", (Quote(1, "Backups run daily at 2:00 AM"),))
FORGED = Claim("Backups run hourly.", (Quote(1, "Backups run every hour"),))
QUESTION = "When do backups run?"
Json = dict[str, Any]


@dataclass
class Drawer:
    """Stores records in memory, or fails."""

    kept: list[Json] = field(default_factory=list)
    error: Exception | None = None

    async def keep(
        self, key: str, channel_id: int, asked_at: datetime, state: str, record: dict[str, Any]
    ) -> None:
        if self.error:
            raise self.error
        assert (key, channel_id, asked_at.isoformat(), state) == (
            record["question_id"], record["channel_id"], record["asked_at"], record["state"],
        )  # fmt: skip
        self.kept.append(json.loads(json.dumps(record, allow_nan=False)))


async def asked(world: World, text: str, *models: Scripted, **more: Any) -> tuple[Answer, Json]:
    """Return an answer and its one record."""
    drawer = Drawer()
    async with writing_traces(drawer) as records:
        answering = world.answering(*models, records=records, **more)
        answer = await answering.answer(world.question(text))
    (record,) = drawer.kept
    return answer, record


async def test_a_grounded_answers_record_is_complete(world: World) -> None:
    """Candidates with scores and outcomes, the prompt, the verdict, citations, tokens and time."""
    prompt = Prompt("Rules", "Passages and question", with_schema=True)
    draft = Draft((DAILY,), usage=Usage(70, 9), prompts=(prompt,))
    answer, record = await asked(world, QUESTION, Scripted(draft))
    assert (record["state"], record["question"], record["answer"]) == ("grounded", QUESTION, answer.text)
    (look,) = record["searches"]
    assert (look["is_wide"], look["documents"], look["not_live"]) == (False, None, 0)
    assert look["verdict"]["outcome"] == "passages"
    assert set(look["verdict"]["signals"]) == {"sentence", "passage", "rank", "lacks", "empty"}
    assert set(look["verdict"]["weights"]) - set(look["verdict"]["signals"]) == {"bias"}
    assert look["verdict"]["passages_from"] <= look["verdict"]["probability"]
    first, second = look["candidates"]
    assert (first["file"], first["page"], first["rank"]) == ("sop-it-04.pdf", 1, 1)
    assert first["outcome"] == "read"
    assert first["score"] == answer.passages[0].score
    assert (first["bm25"], first["vector"]) == (answer.passages[0].bm25, answer.passages[0].vector)
    assert set(first["parts"]) == {"mix", "coverage", "named", "document", "outdated", "relevance"}
    assert (first["places"]["mix"], first["places"]["ranked"], second["places"]["ranked"]) == (1, 1, 2)
    assert " ".join(BACKUPS.split()) == first["preview"]
    origin = answer.passages[0].publication
    assert (first["version"], first["reading"]) == (origin.version_id, origin.reading_id.hex)
    assert second["rank"] == 2
    assert [one["file"] for one in record["top_sources"]] == [first["file"], second["file"]]
    (written,) = record["drafts"]
    tokens = {"system": 1, "user": 4, "markers": 0}
    assert written["prompts"] == [asdict(prompt) | {"tokens": tokens}]
    (claim,) = written["claims"]
    assert (claim["text"], claim["fault"]) == (DAILY.text, None)
    assert claim["quotes"] == [
        {"passage": 1, "text": DAILY.quotes[0].text, "is_located": True, "reason": "sop-it-04.pdf p. 1"}
    ]
    (citation,) = record["citations"]
    assert (citation["number"], citation["file"], citation["page"]) == (1, "sop-it-04.pdf", 1)
    assert answer.citations[0].url not in json.dumps(record)
    assert (record["tokens"]["prompt"], record["tokens"]["completion"]) == (70, 9)
    assert record["tokens"]["embedding"] > 4
    assert set(record["milliseconds"]) == {"retrieve", "answer", "total", "first"}


async def test_a_question_is_logged_in_one_line_without_its_text(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Stages in order, tokens as counted by the endpoint, and no text of question or document."""
    caplog.set_level(logging.INFO)
    draft = Draft((DAILY,), usage=Usage(70, 9))
    await world.answering(Scripted(draft)).answer(world.question(QUESTION))
    (line,) = [one.getMessage() for one in caplog.records if one.getMessage().startswith("question=")]
    keys = [word.partition("=")[0] for word in line.split()]
    stages = ["understand_ms", "retrieve_ms", "judge_ms", "write_ms", "cite_ms", "total_ms"]
    assert keys[-8:] == ["prompt_tokens", "completion_tokens", *stages]
    assert "state=grounded" in line
    assert " prompt_tokens=70 completion_tokens=9 " in line
    assert "ackup" not in line


async def test_dropped_sentences_and_quotes_have_a_reason(world: World) -> None:
    """The record has the draft with its faults and tokens."""
    draft = Draft((DAILY, FORGED), usage=Usage(10, 5))
    answer, record = await asked(world, QUESTION, Scripted(draft))
    assert answer.state is AnswerState.PARTIAL
    assert record["state"] == "partial"
    assert [len(one["claims"]) for one in record["drafts"]] == [2]
    forged = record["drafts"][0]["claims"][1]
    assert forged["fault"]
    assert not forged["quotes"][0]["is_located"]
    assert forged["quotes"][0]["reason"] == NOWHERE
    assert (record["tokens"]["prompt"], record["tokens"]["completion"]) == (10, 5)


async def test_an_ambiguous_quote_is_distinguished_from_a_forged_one(world: World) -> None:
    """Neither is located, for different reasons."""
    claim = Claim("The backup is noted.", (Quote(1, "backup"), Quote(1, "nowhere to be seen")))
    world.shelf.passages[0] = make_passage("A backup is noted. A backup runs daily.", page=1)
    _, record = await asked(world, "When is a backup noted?", Scripted(Draft((claim,))))
    quotes = record["drafts"][0]["claims"][0]["quotes"]
    assert [(one["is_located"], one["reason"]) for one in quotes] == [(False, AMBIGUOUS), (False, NOWHERE)]


async def test_a_not_found_record_has_both_searches_and_verdicts(world: World) -> None:
    """No answer is written, although the candidates were read."""
    _, record = await asked(world, "What is the capital of Mongolia?")
    assert (record["state"], record["drafts"], record["citations"]) == ("not_found", [], [])
    assert [(look["is_wide"], look["verdict"]["outcome"]) for look in record["searches"]] == [
        (False, "not_found"),
        (True, "not_found"),
    ]
    fates = {one["outcome"] for look in record["searches"] for one in look["candidates"]}
    assert fates == {"read"}


async def test_corrected_and_unknown_words_are_recorded(world: World) -> None:
    """Typed, corrected and unknown words, as JSON and as text."""
    vocabulary = Vocabulary({1: {"backups": 3}})
    _, record = await asked(world, "When do bakcups run overtime?", vocabulary=vocabulary)
    look = record["searches"][0]
    assert (look["corrections"], look["unknown"]) == ([["bakcups", "backups"]], ["overtime"])
    page = "\n".join(render_record(record))
    assert "  corrections: ['bakcups', 'backups']\n  unknown: overtime\n" in page


async def test_a_failure_leaves_a_partial_record(world: World) -> None:
    """An index outage leaves a record, too; a failed model is named with its prompts."""
    error = ModelUnavailable("secret")
    error.prompts = (Prompt("Rules", "Question", with_schema=False),)
    _, record = await asked(world, QUESTION, Scripted(error))
    assert [(one["author"], one["error"]) for one in record["drafts"]] == [
        ("model", "ModelUnavailable"),
        ("quotes", None),
    ]
    assert record["drafts"][0]["prompts"][0]["user"] == "Question"
    assert record["tokens"]["prompt"] is None
    assert record["tokens"]["embedding"] > 4
    world.shelf.error = IndexUnavailable("secret")
    _, record = await asked(world, QUESTION)
    assert (record["state"], record["searches"]) == ("failed", [])
    assert "secret" not in json.dumps(record)


async def test_a_truncated_draft_is_recorded_as_written(world: World) -> None:
    """The record contains the text shown before the error, with its verdict."""
    drawer = Drawer()
    async with writing_traces(drawer) as records:
        answering = world.answering(Scripted(BrokenOff(DAILY)), records=records)
        await answering.answer(world.question(QUESTION), Looker())
    written = drawer.kept[0]["drafts"][0]
    assert written["error"] == "BrokenOff"
    assert [(one["text"], one["fault"]) for one in written["claims"]] == [(DAILY.text, None)]


async def test_a_greeting_and_an_endless_question_leave_short_records(world: World) -> None:
    """A greeting has no search; of a question of a million characters only the beginning is stored."""
    _, record = await asked(world, "hello")
    assert (record["state"], record["searches"], record["drafts"]) == ("chat", [], [])
    _, record = await asked(world, "why? " * 200_000)
    assert record["state"] == "chat"
    assert len(json.dumps(record)) < 30_000


async def test_rejected_candidates_have_a_reason(world: World) -> None:
    """Duplicates name their original; others are over the limit, over the budget or below the threshold."""
    copy = make_passage(BACKUPS, file="copy.pdf", page=7)
    many = [make_passage(f"{TRAVEL} Case {n}.", file=f"{n}.pdf", page=2) for n in range(30)]
    world.shelf.passages += [copy, *many]
    _, record = await asked(world, QUESTION, passages_read=2)
    fates = [one["outcome"] for one in record["searches"][0]["candidates"]]
    assert fates[:3] == ["read", "read", "not in the top 2"]
    assert "repeats copy.pdf p. 7" in fates
    assert fates.count("rank too low") == 32 - 24
    _, record = await asked(world, QUESTION, evidence_tokens=1)
    fates = [one["outcome"] for one in record["searches"][0]["candidates"]]
    assert fates[:2] == ["read", "over the token budget"]


class HelpedRewriter:
    """Rewrites each follow-up by a traced call."""

    async def rewrite(self, question: str, history: Sequence[Turn]) -> str:
        with auxiliary_call("rewrite") as call:
            call.prompts.append(Prompt("Rules", "r" * MAX_PROMPT_CHARS, with_schema=False))
            call.usage = Usage(30, 4)
            return QUESTION


async def test_auxiliary_calls_are_recorded_with_their_usage(world: World) -> None:
    """The record has the rewriting call next to the draft, with a bounded prompt."""
    draft = Draft((DAILY,), usage=Usage(70, 9), prompts=(Prompt("R", "P", with_schema=True),))
    turn = Turn("What is backed up?", "What is backed up?", "All servers.")
    drawer = Drawer()
    async with writing_traces(drawer) as records:
        answering = world.answering(Scripted(draft), records=records, rewriter=HelpedRewriter())
        await answering.answer(replace(world.question("and when?"), history=(turn,)))
    (record,) = drawer.kept
    (call,) = record["auxiliary_calls"]
    assert (call["purpose"], call["error"], record["searched"]) == ("rewrite", None, QUESTION)
    assert {one["question"] for one in record["searches"]} == {"and when?", QUESTION}
    assert sum(len(one["system"] + one["user"]) for one in call["prompts"]) == MAX_PROMPT_CHARS - 2
    assert record["is_cut"]
    assert record["drafts"][0]["prompts"][0]["user"] == "P"
    assert (record["tokens"]["prompt"], record["tokens"]["completion"]) == (100, 13)
    assert {"  purpose: rewrite", f"  question: {QUESTION}"} <= set(render_record(record))


async def test_prompts_are_bounded(world: World) -> None:
    """A record is limited in size, and says if prompts are missing."""
    prompts = (Prompt("r" * 300_000, "q", with_schema=True), Prompt("r" * 300_000, "q\0", with_schema=True))
    _, record = await asked(world, QUESTION, Scripted(Draft((DAILY,), prompts=prompts)))
    kept = record["drafts"][0]["prompts"]
    assert sum(len(one["system"]) + len(one["user"]) for one in kept) == MAX_PROMPT_CHARS
    assert record["is_cut"]
    _, record = await asked(world, QUESTION, Scripted(Draft((DAILY,), prompts=(Prompt("r", "q\0", True),))))
    assert record["drafts"][0]["prompts"][0]["user"] == "q\N{REPLACEMENT CHARACTER}"
    assert not record["is_cut"]


async def test_a_full_disk_costs_no_answer(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """A record that cannot be stored is logged by its id; the next one is tried again."""
    drawer = Drawer(error=DatabaseUnavailable("disk full: When do"))
    async with writing_traces(drawer) as records:
        answering = world.answering(records=records)
        with caplog.at_level(logging.WARNING):
            answer = await answering.answer(world.question(QUESTION))
            await records.drain()
        drawer.error = None
        await answering.answer(world.question(QUESTION))
    assert answer.state is AnswerState.PASSAGES
    assert "trace not stored: question=q0: DatabaseUnavailable" in caplog.text
    assert "When do" not in caplog.text
    assert [one["question_id"] for one in drawer.kept] == ["q1"]


async def test_a_database_that_hangs_delays_no_answer(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Answers do not wait for records, and the queue is bounded."""
    answering = world.answering(records=TraceWriter(Drawer()))
    for _ in range(MAX_QUEUED + 1):
        await answering.answer(world.question("hello"))
    assert caplog.text.count("queue full") == 1

"""The model's request is identical, byte by byte, with and without boxes in the passages.

Tested through the whole core, from the question to the request on the wire.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from uuid import UUID

from fakes.core import (
    ASKED_AT,
    BACKUPS,
    TRAVEL,
    Found,
    HashEmbedder,
    Register,
    Shelf,
    make_channel,
    make_passage,
    make_publication,
    make_status,
)
from fakes.model_server import Handler, byte_server, completion, response, stream
from harness.tables import for_each

from bot.answer_settings import AnswerSettings
from bot.answers.citations.citations import CitationService
from bot.answers.generation.answer_writer import AnswerWriter
from bot.answers.generation.extractive import ExtractiveAnswerer
from bot.answers.generation.judge import Judge
from bot.answers.pipeline import Answering
from bot.answers.retrieval.hybrid_retriever import HybridRetriever, QueryExpansionRetriever
from bot.answers.rewriting.query_rewriting import FollowUpRewriter, ModelRewriter
from bot.core.models import Answer, Passage, Question
from bot.llm.generator import ModelGenerator
from storage.chat_models import GlossaryEntry, Turn
from storage.index.base import PendingVector, document_facet
from storage.models import Box, Channel, Chunk, DocumentStatus

SOP = make_passage(BACKUPS, page=1)
LONG = make_passage(
    "Tapes go to the vault.\n" + BACKUPS, ordinal=1, page=2, last_page=3, heading_path=("Duty",)
)
PAIR = tuple(
    replace(make_passage(text, ordinal=at), publication=replace(make_publication(), chunks=2))
    for at, text in enumerate((BACKUPS, "Tapes go to the vault."))
)
POLICY = make_passage(TRAVEL, file="travel.pdf", title="Travel Policy", page=3)
EVERYTHING = (SOP, LONG, POLICY)


@dataclass
class BoxedShelf(Shelf):
    """A shelf that applies document filters, and whose boxes are present, moved or absent."""

    boxes: str = "present"

    async def search(
        self, channel: Channel, terms: Sequence[str], vector: PendingVector | None,
        groups: tuple[frozenset[str], ...] = (), *, limit: int,
    ) -> Found:  # fmt: skip
        held = [
            one for one in self.passages if all(document_facet(_document(one)) in group for group in groups)
        ]
        return await Shelf(held).search(channel, terms, vector, limit=limit)

    async def chunks_at(self, places: Sequence[tuple[UUID, int]]) -> list[Chunk]:
        return [self._boxed(chunk) for chunk in await super().chunks_at(places)]

    def _boxed(self, chunk: Chunk) -> Chunk:
        if self.boxes == "absent":
            return replace(chunk, words=())
        if self.boxes == "elsewhere":
            return replace(
                chunk, words=tuple(word._replace(box=Box(0.5, 0.5, 0.9, 0.9)) for word in chunk.words)
            )
        return chunk


def _document(passage: Passage) -> UUID:
    return passage.publication.document_id


@dataclass
class Book:
    """An in-memory glossary."""

    async def entries(self, channel: Channel) -> Collection[GlossaryEntry]:
        return [GlossaryEntry("backups", ("safety copies",))]


def reply(*quotes: str) -> str:
    claims = [{"text": f"{quote}.", "quotes": [{"passage": 1, "quote": quote}]} for quote in quotes]
    return json.dumps({"sufficient": True, "claims": claims})


DAILY, RECEIPT = "Backups run daily at 2:00 AM", "Keep every receipt"

# For each path: the channel's passages, the question, the model's replies, the number of requests.
PATHS: dict[str, tuple[Sequence[Passage], str, Sequence[str], int]] = {
    "one document": ((SOP,), "When do backups run?", [reply(DAILY)], 1),
    "several documents": (
        EVERYTHING,
        "Compare when backups run and when travel costs are refunded.",
        [reply(DAILY, RECEIPT)],
        1,
    ),
    "a spoken filter": (EVERYTHING, "When do backups run in sop-it-04.pdf?", [reply(DAILY)], 1),
    "over a page's end": ((LONG,), "When do backups run?", [reply(DAILY)], 1),
    "with what stands beside it": (PAIR, "When do backups run?", [reply(DAILY)], 1),
    "looked for wider": (EVERYTHING, "backups, safety copies?", [reply(DAILY)], 1),
    "marked lines": (
        EVERYTHING,
        "When do backups run?",
        ["no JSON", f"CLAIM: {DAILY}.\nQUOTE 1: {DAILY}"],
        2,
    ),
    "a follow-up": (EVERYTHING, "and when do they run?", ["When do backups run?", reply(DAILY)], 2),
}


def recording(requests: list[bytes], replies: Sequence[str]) -> Handler:
    """Return an endpoint with these replies that records requests, the random delimiter as FENCE."""
    left = list(replies)

    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        for fence in set(re.findall(rb"</passage ([0-9a-f]+)>", request)):
            request = request.replace(fence, b"FENCE")
        requests.append(request)
        is_streamed = json.loads(request).get("stream", False)
        reply = left.pop(0)
        writer.write(stream(reply) if is_streamed else response(completion(reply)))
        await writer.drain()

    return handle


async def ask(path: str, boxes: str) -> tuple[Answer, list[bytes]]:
    """Return the answer and all requests that the model got for it."""
    passages, text, replies, _ = PATHS[path]
    history = (Turn("Are there backups?", "Are there backups?", "Yes."),) if path == "a follow-up" else ()
    shelf = BoxedShelf(list(passages), boxes=boxes)
    register = Register([_status(file) for file in sorted({one.publication.file for one in EVERYTHING})])
    requests: list[bytes] = []
    async with byte_server(recording(requests, replies)) as url:
        async with aclosing(ModelGenerator.connect("k", url, AnswerSettings(), model="m")) as model:
            answering = Answering(
                AnswerSettings(passages_read=1, expansion_tokens=100)
                if passages is PAIR
                else AnswerSettings(),
                retriever=QueryExpansionRetriever(
                    HybridRetriever(shelf, HashEmbedder(), AnswerSettings()), Book()
                ),
                writing=AnswerWriter(ExtractiveAnswerer(HashEmbedder()), [model]),
                follow_ups=FollowUpRewriter(HashEmbedder(), ModelRewriter(model)),
                judge=Judge(answer_probability=0),
                readings=shelf,
                catalog=register,
                citations=CitationService(register, register, register),
            )
            answer = await answering.answer(Question("q", text, make_channel(), ASKED_AT, history=history))
        return answer, requests


def _status(file: str) -> DocumentStatus:
    publication = next(one.publication for one in EVERYTHING if one.publication.file == file)
    return replace(make_status(file), document=publication.document_id)


@for_each("path", PATHS)
async def test_the_model_never_sees_a_box(path: str) -> None:
    """Every request is the same with, with moved and without boxes; only highlights differ."""
    answer, requests = await ask(path, "present")
    moved, with_others = await ask(path, "elsewhere")
    bare, without = await ask(path, "absent")
    assert len(requests) == PATHS[path][3]
    assert b"<passage 1 FENCE>" in requests[-1]
    assert requests == with_others == without
    assert answer.text == moved.text == bare.text
    marks = [one.citations[0].boxes for one in (answer, moved, bare)]
    assert len(set(marks)) == 3
    assert marks[2] == ()


async def test_each_path_sends_the_intended_request() -> None:
    """The paths read different passages: filtered, from several documents, expanded, searched twice."""
    seen = {path: (await ask(path, "present"))[1] for path in PATHS}
    travel = b"Travel costs are refunded"
    assert travel in seen["several documents"][0]
    assert travel not in seen["a spoken filter"][0]
    assert b"--- Page 3 ---" in seen["over a page's end"][0]
    assert b"Tapes go to the vault" in seen["with what stands beside it"][0]
    assert b"safety copies?" in seen["looked for wider"][0]
    assert b"response_format" not in seen["marked lines"][1]
    assert b"Are there backups?" in seen["a follow-up"][0]

"""Answers a question: retrieve, gate, write, cite; and a sentence for whatever goes wrong.

The one use case that every door calls. It never raises for an engine or a model that fails: those
end in an answer that says so.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from bot.core import wording
from bot.core.citation_desk import CitationDesk
from bot.core.evidence import gather_evidence
from bot.core.figure_questions import wants_figure
from bot.core.follow_ups import FollowUps
from bot.core.gate import EvidenceGate
from bot.core.illustrating import Illustrator
from bot.core.models import (
    Answer,
    AnswerState,
    Evidence,
    Milliseconds,
    Question,
    Retrieval,
)
from bot.core.ports import ChannelDocuments, ChunkReader, FigureReader, Retriever
from bot.core.refusing import Refusals
from bot.core.scoping import Scopes
from bot.core.smalltalk import reply_to
from bot.core.thread_ports import Rewriter
from bot.core.writing import Writing
from bot.core.writing_ports import Onlooker
from storage.errors import InfrastructureError

log = logging.getLogger(__name__)


class Answering:
    """Answers questions of all channels with the collaborators it was given."""

    def __init__(
        self,
        *,
        retriever: Retriever,
        writing: Writing,
        rewriter: Rewriter | None = None,
        gate: EvidenceGate,
        chunks: ChunkReader,
        figures: FigureReader,
        documents: ChannelDocuments,
        desk: CitationDesk,
        passages_read: int = 8,
        evidence_tokens: int = 6000,
        question_chars: int = 4000,
    ) -> None:
        self._retriever = retriever
        self._writing = writing
        self._gate = gate
        self._chunks = chunks
        self._desk = desk
        self._scopes = Scopes(documents)
        self._follow_ups = FollowUps(documents, rewriter)
        self._refusals = Refusals(documents, desk)
        self._illustrator = Illustrator(figures, chunks, desk)
        self._passages_read = passages_read
        self._evidence_tokens = evidence_tokens
        self._question_chars = question_chars

    async def answer(self, question: Question, onlooker: Onlooker | None = None) -> Answer:
        """The answer to one question of one channel; never raises for a failing engine or model.

        ``onlooker`` is shown what a model writes, as far as it is proven.
        """
        started = time.perf_counter()
        try:
            answer = await self._reply(question, onlooker)
        except InfrastructureError as error:
            log.warning("question %s failed: %s", question.id, type(error).__name__)
            answer = Answer(AnswerState.FAILED, wording.ENGINE_FAILED)
        total = _milliseconds(started)
        answer = replace(answer, milliseconds=replace(answer.milliseconds, total=total))
        _log(question, answer)
        return answer

    async def _reply(self, question: Question, onlooker: Onlooker | None) -> Answer:
        if (said := reply_to(question.text)) is not None:
            return Answer(AnswerState.CHAT, said)
        if len(question.text) > self._question_chars:
            return Answer(AnswerState.CHAT, wording.question_too_long(self._question_chars))
        understood = await self._follow_ups.understand(question)
        started = time.perf_counter()
        asked = await self._scopes.narrow(understood)
        retrieval = await self._retriever.retrieve(asked)
        retrieved = time.perf_counter()
        answer = await self._answer_from(asked, retrieval, onlooker)
        spent = Milliseconds(round(1000 * (retrieved - started)), _milliseconds(retrieved))
        standalone = "" if understood.text == question.text else understood.text
        passages = answer.passages or retrieval.passages
        return replace(answer, passages=passages, milliseconds=spent, standalone=standalone)

    async def _answer_from(
        self, question: Question, retrieval: Retrieval, onlooker: Onlooker | None
    ) -> Answer:
        if (figure := await self._illustrator.answer(question.channel, retrieval)) is not None:
            return figure
        if wants_figure(retrieval.question.text):
            return await self._refuse(question, retrieval)
        evidence = await self._gather(retrieval)
        if not self._gate.opens(retrieval.question, evidence):
            wider = await self._look_wider(question)
            if wider is None:
                return await self._refuse(question, retrieval)
            retrieval, evidence = wider
        written = await self._writing.write(retrieval.question, evidence, onlooker)
        if not written.cited:
            return await self._refuse(question, retrieval)
        return Answer(
            state=AnswerState.PARTIAL if written.is_partial else AnswerState.GROUNDED,
            text=written.text,
            citations=await self._desk.cite(question.channel, written.cited),
            figures=await self._illustrator.beside(question.channel, retrieval, written.cited),
            passages=retrieval.passages,
        )

    async def _gather(self, retrieval: Retrieval) -> list[Evidence]:
        return await gather_evidence(
            retrieval.passages, self._chunks, most=self._passages_read, tokens=self._evidence_tokens
        )

    async def _look_wider(self, question: Question) -> tuple[Retrieval, list[Evidence]] | None:
        """What a second, wider search brings; None when that is not enough either."""
        retrieval = await self._retriever.retrieve(replace(question, is_wide=True))
        evidence = await self._gather(retrieval)
        return (retrieval, evidence) if self._gate.opens(retrieval.question, evidence) else None

    async def _refuse(self, question: Question, retrieval: Retrieval) -> Answer:
        """No words answer it: the figure that it speaks of, if there is one, else that nothing does."""
        figure = await self._illustrator.answer(question.channel, retrieval, is_last_resort=True)
        return figure or await self._refusals.refuse(question.channel, retrieval.passages, question.documents)


def _milliseconds(since: float) -> int:
    return round(1000 * (time.perf_counter() - since))


def _log(question: Question, answer: Answer) -> None:
    """One line per question: ids and counts, never a word of question or document."""
    log.info(
        "question=%s channel=%d state=%s candidates=%d citations=%d figures=%d retrieve_ms=%d "
        "answer_ms=%d total_ms=%d",
        question.id,
        question.channel.id,
        answer.state,
        len(answer.passages),
        len(answer.citations),
        len(answer.figures),
        answer.milliseconds.retrieve,
        answer.milliseconds.answer,
        answer.milliseconds.total,
    )

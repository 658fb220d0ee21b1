"""Answers a question: retrieve, gate, write, cite; and a sentence for whatever goes wrong.

The one use case that every door calls. It never raises for an engine or a model that fails: those
end in an answer that says so.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from bot.core.citation_desk import CitationDesk
from bot.core.evidence import gather_evidence
from bot.core.exchange import collected_calls
from bot.core.expanding import Expansion
from bot.core.figure_questions import wants_figure
from bot.core.follow_ups import FollowUps
from bot.core.gate import EvidenceGate
from bot.core.illustrating import Illustrator
from bot.core.languages import Language
from bot.core.models import (
    Answer,
    AnswerState,
    Milliseconds,
    Question,
    Retrieval,
)
from bot.core.noting import Look, Notes
from bot.core.ports import ChannelDocuments, ChunkReader, FigureReader, Retriever
from bot.core.recording import Recorder
from bot.core.refusing import Refusals
from bot.core.reply_language import ReplyLanguages
from bot.core.reply_words import reply_words
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
        expansion_tokens: int = 0,
        question_chars: int = 4000,
        records: Recorder | None = None,
    ) -> None:
        self._retriever = retriever
        self._writing = writing
        self._gate = gate
        self._chunks = chunks
        self._desk = desk
        self._scopes = Scopes(documents)
        self._follow_ups = FollowUps(documents, rewriter)
        self._refusals = Refusals(documents, desk)
        self._languages = ReplyLanguages(documents)
        self._illustrator = Illustrator(figures, chunks, desk)
        self._passages_read = passages_read
        self._evidence_tokens = evidence_tokens
        self._expansion_tokens = expansion_tokens
        self._question_chars = question_chars
        self._records = records

    async def answer(self, question: Question, onlooker: Onlooker | None = None) -> Answer:
        """The answer to one question of one channel; never raises for a failing engine or model.

        ``onlooker`` is shown what a model writes, as far as it is proven.
        """
        started = time.perf_counter()
        question = replace(question, language=await self._languages.choose(question))
        notes = Notes(self._passages_read)
        with collected_calls() as notes.calls:
            try:
                answer = await self._reply(question, notes, onlooker)
            except InfrastructureError as error:
                log.warning("question %s failed: %s", question.id, type(error).__name__)
                answer = _failed(question.language)
        total = _milliseconds(started)
        answer = replace(answer, milliseconds=replace(answer.milliseconds, total=total))
        _log(question, answer)
        if self._records and not question.is_trial:
            self._records.take(notes.record(question, answer))
        return answer

    async def _reply(self, question: Question, notes: Notes, onlooker: Onlooker | None) -> Answer:
        if (chat := reply_to(question)) is not None:
            return chat
        words = reply_words(question.language)
        if len(question.text) > self._question_chars:
            too_long = words.question_too_long(limit=self._question_chars)
            return Answer(AnswerState.CHAT, too_long, language=words.language)
        understood = await self._follow_ups.understand(question)
        started = time.perf_counter()
        asked = await self._scopes.narrow(understood)
        look = notes.look(asked, await self._retriever.retrieve(asked))
        retrieved = time.perf_counter()
        answer = await self._answer_from(look, notes, onlooker)
        spent = Milliseconds(round(1000 * (retrieved - started)), _milliseconds(retrieved))
        standalone = "" if understood.text == question.text else understood.text
        passages = answer.passages or look.retrieval.passages
        return replace(
            answer, passages=passages, milliseconds=spent, standalone=standalone, language=words.language
        )

    async def _answer_from(self, look: Look, notes: Notes, onlooker: Onlooker | None) -> Answer:
        question, retrieval = look.question, look.retrieval
        if (figure := await self._illustrator.answer(question.channel, retrieval)) is not None:
            return figure
        if wants_figure(retrieval.question.text):
            return await self._refuse(question, retrieval)
        if not await self._is_enough(look):
            wide = replace(question, is_wide=True)
            look = notes.look(wide, await self._retriever.retrieve(wide))
            if not await self._is_enough(look):
                return await self._refuse(question, retrieval)
        written = await self._writing.write(look.retrieval.question, look.evidence, onlooker)
        notes.attempts = written.attempts
        if not written.cited:
            return await self._refuse(question, look.retrieval)
        return Answer(
            state=AnswerState.PARTIAL if written.is_partial else AnswerState.GROUNDED,
            text=written.text,
            citations=await self._desk.cite(question.channel, written.cited),
            figures=await self._illustrator.beside(question.channel, look.retrieval, written.cited),
            passages=look.retrieval.passages,
        )

    async def _is_enough(self, look: Look) -> bool:
        """Whether an answer may be written from what was found; reads it, and what stands around it."""
        found = await gather_evidence(
            look.retrieval.passages, self._chunks, most=self._passages_read, tokens=self._evidence_tokens
        )
        look.read = len(found)
        look.evidence = await Expansion(found, self._chunks, self._expansion_tokens).grow()
        look.is_enough = self._gate.opens(look.retrieval.question, look.evidence)
        return look.is_enough

    async def _refuse(self, question: Question, retrieval: Retrieval) -> Answer:
        """No words answer it: the figure that it speaks of, if there is one, else that nothing does."""
        figure = await self._illustrator.answer(question.channel, retrieval, is_last_resort=True)
        return figure or await self._refusals.refuse(question, retrieval.passages)


def _failed(language: Language) -> Answer:
    return Answer(AnswerState.FAILED, reply_words(language).engine_failed, language=language)


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

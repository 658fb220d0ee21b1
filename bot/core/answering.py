"""Answers a question: retrieve, gate, write, cite; and a sentence for whatever goes wrong.

The one use case that every door calls. It never raises for an engine or a model that fails: those
end in an answer that says so.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from bot.core.citations.citations import CitationService
from bot.core.generation.abstention import Abstention, EvidenceGate
from bot.core.generation.answer_writer import AnswerWriter
from bot.core.generation.figures import FigureSelector
from bot.core.model_calls import collected_calls
from bot.core.models import Answer, AnswerState, Language, Milliseconds, Question, Retrieval
from bot.core.ports import AnswerListener, Retriever
from bot.core.retrieval.evidence import Expansion, gather_evidence
from bot.core.rewriting.query_rewriting import FollowUps, ModelRewriter
from bot.core.trace import SearchTrace, Trace
from bot.core.trace_writer import TraceWriter
from bot.core.understanding.figure_requests import wants_figure
from bot.core.understanding.language import ReplyLanguages
from bot.core.understanding.metadata_filters import MetadataFilters
from bot.core.understanding.smalltalk import reply_to
from bot.core.wording import reply_words
from storage.documents.catalog import Catalog
from storage.errors import InfrastructureError
from storage.queues.reading_repair import RepairingReadings

log = logging.getLogger(__name__)


class Answering:
    """Answers questions of all channels with the collaborators it was given."""

    def __init__(
        self,
        *,
        retriever: Retriever,
        writing: AnswerWriter,
        rewriter: ModelRewriter | None = None,
        gate: EvidenceGate,
        chunks: RepairingReadings,
        figures: RepairingReadings,
        documents: Catalog,
        citations: CitationService,
        passages_read: int = 8,
        evidence_tokens: int = 6000,
        expansion_tokens: int = 0,
        question_chars: int = 4000,
        records: TraceWriter | None = None,
    ) -> None:
        self._retriever = retriever
        self._writer = writing
        self._gate = gate
        self._chunks = chunks
        self._citations = citations
        self._metadata_filters = MetadataFilters(documents)
        self._follow_ups = FollowUps(documents, rewriter)
        self._abstention = Abstention(documents, citations)
        self._languages = ReplyLanguages(documents)
        self._figure_selector = FigureSelector(figures, chunks, citations)
        self._passages_read = passages_read
        self._evidence_tokens = evidence_tokens
        self._expansion_tokens = expansion_tokens
        self._question_chars = question_chars
        self._records = records

    async def answer(self, question: Question, listener: AnswerListener | None = None) -> Answer:
        """The answer to one question of one channel; never raises for a failing engine or model.

        ``listener`` is shown what a model writes, as far as it is proven.
        """
        started = time.perf_counter()
        question = replace(question, language=await self._languages.choose(question))
        trace = Trace(self._passages_read)
        with collected_calls() as trace.calls:
            try:
                answer = await self._reply(question, trace, listener)
            except InfrastructureError as error:
                log.warning("question %s failed: %s", question.id, type(error).__name__)
                answer = _failed(question.language)
        total = _milliseconds(started)
        answer = replace(answer, milliseconds=replace(answer.milliseconds, total=total))
        _log(question, answer)
        if self._records and not question.is_trial:
            self._records.take(trace.record(question, answer))
        return answer

    async def _reply(self, question: Question, trace: Trace, listener: AnswerListener | None) -> Answer:
        if (chat := reply_to(question)) is not None:
            return chat
        words = reply_words(question.language)
        if len(question.text) > self._question_chars:
            too_long = words.question_too_long(limit=self._question_chars)
            return Answer(AnswerState.CHAT, too_long, language=words.language)
        understood = await self._follow_ups.understand(question)
        started = time.perf_counter()
        asked = await self._metadata_filters.narrow(understood)
        search = trace.search(asked, await self._retriever.retrieve(asked))
        retrieved = time.perf_counter()
        answer = await self._answer_from(search, trace, listener)
        spent = Milliseconds(round(1000 * (retrieved - started)), _milliseconds(retrieved))
        standalone = "" if understood.text == question.text else understood.text
        passages = answer.passages or search.retrieval.passages
        return replace(
            answer, passages=passages, milliseconds=spent, standalone=standalone, language=words.language
        )

    async def _answer_from(
        self, search: SearchTrace, trace: Trace, listener: AnswerListener | None
    ) -> Answer:
        question, retrieval = search.question, search.retrieval
        if (figure := await self._figure_selector.answer(question.channel, retrieval)) is not None:
            return figure
        if wants_figure(retrieval.question.text):
            return await self._abstain(question, retrieval)
        if not await self._is_enough(search):
            wide = replace(question, is_wide=True)
            search = trace.search(wide, await self._retriever.retrieve(wide))
            if not await self._is_enough(search):
                return await self._abstain(question, retrieval)
        written = await self._writer.write(search.retrieval.question, search.evidence, listener)
        trace.attempts = written.attempts
        if not written.cited:
            return await self._abstain(question, search.retrieval)
        return Answer(
            state=AnswerState.PARTIAL if written.is_partial else AnswerState.GROUNDED,
            text=written.text,
            citations=await self._citations.cite(question.channel, written.cited),
            figures=await self._figure_selector.figures_for(
                question.channel, search.retrieval, written.cited
            ),
            passages=search.retrieval.passages,
        )

    async def _is_enough(self, search: SearchTrace) -> bool:
        """Whether an answer may be written from what was found; reads it, and what stands around it."""
        found = await gather_evidence(
            search.retrieval.passages, self._chunks, most=self._passages_read, tokens=self._evidence_tokens
        )
        search.read = len(found)
        search.evidence = await Expansion(found, self._chunks, self._expansion_tokens).expand()
        search.is_enough = self._gate.opens(search.retrieval.question, search.evidence)
        return search.is_enough

    async def _abstain(self, question: Question, retrieval: Retrieval) -> Answer:
        """No words answer it: the figure that it speaks of, if there is one, else that nothing does."""
        figure = await self._figure_selector.answer(question.channel, retrieval, is_last_resort=True)
        return figure or await self._abstention.abstain(question, retrieval.passages)


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

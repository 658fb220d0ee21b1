"""The answer pipeline: understand, retrieve, judge, write, cite.

Each stage returns the input of the next. ``Answering.answer`` is the one use case that every platform calls.
It never raises for a failing or slow engine or model: the answer says so instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from uuid import UUID

from bot.answer_settings import AnswerSettings
from bot.answers.citations.citations import CitationService
from bot.answers.citations.passages import write_passages
from bot.answers.compound_questions import subquestions, trace_each
from bot.answers.generation.abstention import Abstention
from bot.answers.generation.answer_writer import AnswerWriter, Deadline, WritingTask, WrittenAnswer
from bot.answers.generation.document_comparison import judge_each, nothing_in, retrieve_each, spanned
from bot.answers.generation.figures import FigureSelector, number_of
from bot.answers.generation.judge import NEAR_PROBABILITY, Judge
from bot.answers.passage_search import cite_passages
from bot.answers.retrieval.reranking import ContextExpansion, gather_evidence, read_beside
from bot.answers.retrieval.web_search import WebSearch
from bot.answers.rewriting.query_rewriting import FollowUpRewriter
from bot.answers.rewriting.question_translation import QuestionTranslator
from bot.answers.search_notes import SearchNotes
from bot.answers.trace import QuestionRecord, SearchAttempt, TimedListener, Trace
from bot.answers.trace_writer import TraceWriter
from bot.answers.understanding.answer_types import wants_figure, wants_table, wants_whole_list
from bot.answers.understanding.channel_documents import ChannelView
from bot.answers.understanding.channel_folders import ChannelFolders
from bot.answers.understanding.question_codes import split_by_codes
from bot.answers.understanding.question_terms import spoken_language
from bot.core.models import Answer, AnswerState, Language, Milliseconds, Question, StageTime
from bot.core.ports import AnswerListener, FoundPassage, Retriever
from bot.core.wording import reply_words
from storage.documents.catalog import Catalog
from storage.errors import InfrastructureError
from storage.queues.reading_repair import SelfHealingReadings
from storage.task_group import gather_or_cancel

log = logging.getLogger(__name__)

# Minimum number of passages read per compared document.
PASSAGES_COMPARED = 2
# Concurrency limit for the channels that one direct message searches.
CHANNELS_AT_ONCE = 4

T = TypeVar("T")
# Replies to a message that is a command, given the question and the documents of each channel asked; None: a
# search is needed.
CommandReply = Callable[[Sequence[tuple[Question, ChannelView]]], Awaitable[Answer | None]]


@dataclass(frozen=True, slots=True)
class _ChannelRun:
    """Per-channel state of a question: documents, trace, deadline, listener."""

    question: Question
    view: ChannelView
    trace: Trace
    deadline: Deadline
    listener: AnswerListener | None


class Answering:
    """Runs the pipeline for questions of all channels."""

    def __init__(
        self,
        settings: AnswerSettings,
        *,
        retriever: Retriever,
        writing: AnswerWriter,
        follow_ups: FollowUpRewriter,
        judge: Judge,
        readings: SelfHealingReadings,
        catalog: Catalog,
        citations: CitationService,
        records: TraceWriter | None = None,
        web: WebSearch | None = None,
        reply_to_command: CommandReply | None = None,
        folders: ChannelFolders | None = None,
        notes: SearchNotes | None = None,
        translator: QuestionTranslator | None = None,
    ) -> None:
        self._retriever = retriever
        self._writer = writing
        self._judge = judge
        self._readings = readings
        self._catalog = catalog
        self._citations = citations
        self._follow_ups = follow_ups
        self._translator = translator
        self._abstention = Abstention(citations)
        self._figure_selector = FigureSelector(readings)
        self._settings = settings
        self._records = records
        self._web = web
        self._reply_to_command = reply_to_command
        self._folders = folders
        self._notes = notes or SearchNotes()

    async def answer(self, question: Question, listener: AnswerListener | None = None) -> Answer:
        """Answer a message and store its trace; never raises for a failing engine or model.

        If a direct chat searches several channels, the most confident one answers. ``listener`` receives the
        verified sentences while the rest is written.
        """
        record = await self.trace(question, listener)
        log.info("%s", record.log_line())
        if self._records:
            self._records.enqueue(record)
        return record.answer

    async def trace(self, question: Question, listener: AnswerListener | None = None) -> QuestionRecord:
        """Answer a message and return the full record, without storing or logging it."""
        if not self._writer.has_model:
            return await trace_each(self._trace, question)
        return await self._trace(replace(question, subquestions=subquestions(question.text)), listener)

    async def search(self, question: Question, limit: int) -> Sequence[FoundPassage]:
        """Return the passages found for a query, best first; see ``bot.core.ports.SearchPassages``."""
        (run,) = await self._start_runs(question, Deadline(self._settings.answer_seconds), None)
        async with run.deadline.limit():
            found = await self._retriever.retrieve(await run.view.narrow(run.question))
            read, tokens = self._readings, self._settings.evidence_tokens
            evidence = await gather_evidence(found.passages, read, max_passages=limit, tokens=tokens)
            return await cite_passages(run.question, found, evidence, self._writer, self._citations)

    async def _trace(self, question: Question, listener: AnswerListener | None = None) -> QuestionRecord:
        started = time.perf_counter()
        timed = TimedListener(listener) if listener else None
        runs = await self._start_runs(question, Deadline(self._settings.answer_seconds), timed)
        run, language = runs[0], runs[0].question.language
        try:
            run, answer = await self._run_stages(runs)
        except (InfrastructureError, TimeoutError) as error:
            log.warning("question failed: question=%s: %s", question.id, type(error).__name__)
            answer = Answer(AnswerState.FAILED, reply_words(language).engine_failed, language=language)
        total = _milliseconds(started)
        first = round(1000 * (timed.began - started)) if timed and timed.began else total
        answer = replace(answer, milliseconds=replace(answer.milliseconds, total=total, first=first))
        return QuestionRecord(run.question, answer, run.trace)

    async def _start_runs(
        self, question: Question, deadline: Deadline, listener: AnswerListener | None
    ) -> list[_ChannelRun]:
        """Create the state of each channel searched, with its documents and its part of the history."""
        asked = [replace(question, channel=one.channel, history=one.history) for one in question.members]
        began, stages, runs = time.perf_counter(), list[StageTime](), []
        for one in asked or [question]:
            view = ChannelView(self._catalog, one.channel, self._folders)
            language = spoken_language(one) or await view.language() or Language.ENGLISH
            trace = Trace(self._settings.passages_read, began=began, stages=stages)
            typed = replace(one, language=language, typed=one.text)
            runs.append(_ChannelRun(typed, view, trace, deadline, listener))
        return runs

    async def _run_stages(self, runs: Sequence[_ChannelRun]) -> tuple[_ChannelRun, Answer]:
        if reply := await self._reply(runs):
            return runs[0], reply
        timing = runs[0].trace.timing
        with timing("understand"):
            queries = await _run_per_channel(self._understand, ((one,) for one in runs))
        while True:
            started = time.perf_counter()
            with timing("retrieve"):
                found = await _run_per_channel(self._search, zip(queries, runs, strict=True))
            retrieved = time.perf_counter()
            with timing("judge"):
                searches = await _run_per_channel(self._judge_all, zip(found, runs, strict=True))
            with timing("write"):
                run, judged, written = await self._write_most_confident(zip(runs, searches, strict=True))
            if await self._is_approved(judged.question, written):
                break  # else an admin revoked a cited web page during the run: search again without it
        with timing("cite"), run.trace.collecting_calls():
            answer = await self._cite(judged, written, run)
        question = judged.question
        asked = question.unfiltered or question.text
        return run, replace(
            answer,
            passages=answer.passages or judged.retrieval.passages,
            milliseconds=Milliseconds(round(1000 * (retrieved - started)), _milliseconds(retrieved)),
            standalone="" if asked == run.question.text else asked,
            corrections=judged.retrieval.question.corrections,
            unknown=judged.retrieval.question.unknown,
            filter=question.filter,
            language=question.language,
            answered_from=question.origin if question.members else None,
        )

    async def _reply(self, runs: Sequence[_ChannelRun]) -> Answer | None:
        """Return the reply to a command or an overlong question; None if a search is needed."""
        question, deadline = runs[0].question, runs[0].deadline
        async with deadline.limit():
            asked = [(one.question, one.view) for one in runs]
            if self._reply_to_command and (reply := await self._reply_to_command(asked)):
                return reply
        if len(question.text) <= self._settings.question_chars:
            return None
        too_long = reply_words(question.language).question_too_long(limit=self._settings.question_chars)
        return Answer(AnswerState.CHAT, too_long, language=question.language)

    async def _understand(self, run: _ChannelRun) -> Sequence[Question]:
        """Return the queries: as typed, rewritten or both, plus one in the documents' language."""
        question = run.question
        async with run.deadline.limit():
            queries: Sequence[Question] = (question,)
            if question.history:
                queries = await self._follow_ups.queries(question, run.view)
            if self._translator and (one := await self._translator.reading(queries[-1], run.view)):
                queries = (*queries, one)
            return [await run.view.narrow(one) for one in queries]

    async def _search(self, queries: Sequence[Question], run: _ChannelRun) -> Sequence[SearchAttempt]:
        return await gather_or_cancel(*(self._retrieve(one, run) for one in queries))

    async def _retrieve(self, question: Question, run: _ChannelRun) -> SearchAttempt:
        """Retrieve reranked passages; read evidence from them and expand its context."""
        async with run.deadline.limit():
            retrieval = await retrieve_each(self._retriever, question)
            if self._web:
                retrieval = await self._web.extend(question, retrieval)
            text = "" if question.compared or question.subquestions else retrieval.question.text
            about, others = split_by_codes(text, retrieval.passages)
            search = run.trace.search(question, replace(retrieval, passages=(*about, *others)))
            if wants_figure(search.retrieval.question.text):
                return search
            found = await gather_evidence(
                about,
                self._readings,
                max_passages=max(self._settings.passages_read, PASSAGES_COMPARED * len(question.compared)),
                tokens=self._settings.evidence_tokens,
            )
            search.passages_read = len(found)
            search.evidence = await ContextExpansion(
                found, self._readings, self._settings.expansion_tokens
            ).expand()
            return search

    async def _judge_all(self, searches: Sequence[SearchAttempt], run: _ChannelRun) -> SearchAttempt:
        """Judge all searches and return the best; if it found nothing, try a wider one."""
        search, *reworded = [await self._judge_search(one) for one in searches]
        for other in reworded:
            search = other if _is_preferred(other, search) else search
        if search.found_nothing:
            with contextlib.suppress(TimeoutError):  # best effort: on timeout, abstain with the first result
                wide = await self._judge_search(
                    await self._retrieve(replace(search.question, is_wide=True), run)
                )
                search = search if wide.found_nothing else wide
        run.trace.judged = search
        return search

    async def _judge_search(self, search: SearchAttempt) -> SearchAttempt:
        """Rank the quotes and judge the evidence, unless only a figure may answer."""
        if search.evidence is not None:
            question = search.retrieval.question
            quotes = await self._writer.rank_quotes(question, search.evidence)
            if wants_whole_list(question.text) and (best := quotes.best):
                beside = await read_beside(best, search.evidence, self._readings)
                quotes = replace(quotes, beside=beside)
            search.quotes = quotes
            search.verdict = self._judge.verdict(question, search.retrieval.passages, quotes.candidates)
            if search.question.compared:
                self._judge_compared(search)
        return search

    def _judge_compared(self, search: SearchAttempt) -> None:
        """Judge each compared document separately; the best verdict counts."""
        question, passages, quotes = search.retrieval.question, search.retrieval.passages, search.quotes
        if quotes is not None:
            compared = search.question.compared
            verdicts = judge_each(self._judge, question, compared, passages, quotes.candidates)
            search.verdict = max(verdicts.values(), key=lambda one: one.probability)
            search.answering = tuple(one for one in compared if verdicts[one].probability >= NEAR_PROBABILITY)

    async def _write_most_confident(
        self, searches: Iterable[tuple[_ChannelRun, SearchAttempt]]
    ) -> tuple[_ChannelRun, SearchAttempt, WrittenAnswer]:
        """Write the answer of the most confident channel; fall back to the next on NOT_FOUND."""
        most_confident_first = sorted(searches, key=lambda one: _confidence(one[1]), reverse=True)
        answers: list[tuple[_ChannelRun, SearchAttempt, WrittenAnswer]] = []
        for run, search in most_confident_first:
            with run.trace.collecting_calls():
                answers.append((run, search, await self._write(search, run)))
            if answers[-1][2].state is not AnswerState.NOT_FOUND:
                return answers[-1]
        return answers[0]

    async def _write(self, search: SearchAttempt, run: _ChannelRun) -> WrittenAnswer:
        """Write a model's verified sentences, quoted passages, the requested figure, or NOT_FOUND."""
        retrieval, written = search.retrieval, WrittenAnswer(AnswerState.NOT_FOUND)
        if search.quotes and search.verdict:
            task = WritingTask(
                retrieval.question,
                search.evidence or (),
                search.quotes,
                search.verdict,
                search.answering,
                search.question.compared,
            )
            written = await self._writer.write(task, run.deadline, run.listener)
            run.trace.attempts = written.attempts
        if written.state is AnswerState.NOT_FOUND:
            return await self._figure_selector.write(retrieval) or written
        asked = search.question.compared if search.answering else spanned(retrieval, written.cited)
        if asked:
            written = await self._with_gaps(written, asked, run)
        if retrieval.figures or wants_table(retrieval.question.text):
            evidence = search.evidence or ()
            figures = await self._figure_selector.figures_for_answer(retrieval, written.cited, evidence)
            return replace(written, figures=figures)
        return written

    @staticmethod
    async def _with_gaps(written: WrittenAnswer, compared: Sequence[UUID], run: _ChannelRun) -> WrittenAnswer:
        """Append which of the compared documents the answer says nothing about."""
        words, documents = reply_words(run.question.language), await run.view.documents()
        missing = nothing_in(words, compared, documents, written.cited)
        return replace(written, text="\n".join(filter(None, (written.text, missing))))

    async def _is_approved(self, question: Question, written: WrittenAnswer) -> bool:
        """True if every cited web page is still approved."""
        sources = [one.passage.publication for one in written.cited]
        pages = {one.file for one in sources if one.web}
        return not pages or self._web is None or await self._web.approves(question.channel, pages)

    async def _cite(self, search: SearchAttempt, written: WrittenAnswer, run: _ChannelRun) -> Answer:
        """Store and sign the citations of an answer; write the abstention for NOT_FOUND."""
        question, retrieval = search.question, search.retrieval
        is_search = written.state in {AnswerState.NOT_FOUND, AnswerState.PASSAGES}
        notes = await self._notes.write(question, retrieval) if is_search else ()
        if written.state is AnswerState.NOT_FOUND:
            no = await self._abstention.abstain(question, retrieval, run.view, search.verdict)
            return replace(no, text="\n".join(filter(None, (written.text, no.text, *notes))))
        words = reply_words(question.language)
        citations = await self._citations.cite(question.channel, written.cited)
        figures = [
            await self._citations.show_figure(
                question.channel,
                words,
                one.publication,
                one.figure,
                number_of(one.publication, one.figure, written.cited),
            )
            for one in written.figures
        ]
        text, headings = write_passages(written.text, written.passages, citations, words, notes)
        return Answer(
            state=written.state,
            text=text,
            citations=citations,
            figures=tuple(figures),
            passages=retrieval.passages,
            is_generated=written.is_generated,
            headings=headings,
        )


async def _run_per_channel(work: Callable[..., Awaitable[T]], runs: Iterable[Sequence[object]]) -> list[T]:
    """Run ``work`` per channel, at most CHANNELS_AT_ONCE at a time; the last argument is its state."""
    slots = asyncio.Semaphore(CHANNELS_AT_ONCE)

    async def do(*arguments: Any) -> T:
        async with slots:
            with arguments[-1].trace.collecting_calls():
                return await work(*arguments)

    return list(await gather_or_cancel(*(do(*one) for one in runs)))


def _confidence(search: SearchAttempt) -> float:
    """Return the confidence (0-1) that a channel answers.

    It is the verdict's probability; without a verdict (figure requests), the score of the best passage.
    """
    if search.verdict is not None:
        return search.verdict.probability
    return max((one.score for one in search.retrieval.passages), default=0.0)


def _is_preferred(reworded: SearchAttempt, typed: SearchAttempt) -> bool:
    """True if a rewritten or translated query is more likely answered; True without verdicts."""
    if reworded.verdict is None or typed.verdict is None:
        return True
    return reworded.verdict.probability > typed.verdict.probability


def _milliseconds(since: float) -> int:
    return round(1000 * (time.perf_counter() - since))

"""Compound questions: questions of one message that have answers of their own.

Without a model each is answered separately, and the replies are joined in order. A model answers the message
as a whole, from what each question finds, because a later one may need words of the first ("how long is the
runway in Venice, and how strong was the wind?"). A question about a detail of the first one ("and who signs
it?") stays with it: one search finds both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

from bot.answers.rewriting.rule_rewriter import ASKING_WORD, content_words, may_depend_on_thread
from bot.answers.trace import QuestionRecord, Trace
from bot.answers.understanding.answer_types import asks_whether, compares
from bot.answers.understanding.question_terms import exact_words
from bot.core.models import Answer, AnsweredFrom, AnswerState, Milliseconds, Question
from storage.task_group import gather_or_cancel
from storage.text.analyzer import fold

MAX_QUESTIONS = 3
MAX_CHARS = 500
MIN_NAMED = 2

TraceQuestion = Callable[[Question], Coroutine[Any, Any, QuestionRecord]]

_SENTENCE = re.compile(r"(?<=\?)\s+(?=\S)")
_CLAUSE = re.compile(
    rf"""[,;]?\s+(?:and|und|et|y|e|en)\s+(?:also\s+)?
    (?=(?:{ASKING_WORD.pattern})\s+(?!to\b)
      |(?:is|are|do|does|did|can|could|may|must|should|will)\s+(?:it|they|i|we|you|there|this|the|an?|my|our)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
# Question words of German ("was") and Italian ("come") that are plain verbs in English.
_ENGLISH_VERBS = {"was", "come"}
# The alternatives at the end of a question: "which took longer, A or B?". Dutch "of" is English, too.
_ALTERNATIVES = re.compile(
    r"(?P<asked>\S.*?)[,:]\s+(?P<one>[^,:?]+?)\s+(?:or|vs\.?|versus|oder|ou|o)\s+(?P<other>[^,:?]+)\?*",
    re.IGNORECASE,
)
_MARK = re.compile(r"\[(\d{1,3})\]")

T = TypeVar("T")

_ANSWERED = (AnswerState.GROUNDED, AnswerState.PARTIAL, AnswerState.PASSAGES)


async def trace_each(trace: TraceQuestion, question: Question) -> QuestionRecord:
    """Answer the questions of a message concurrently, without a model, and join the records."""
    texts = split_questions(question.text)
    if len(texts) < 2:
        return await trace(question)
    parts = [replace(question, text=text, message=question.text) for text in texts]
    records = await gather_or_cancel(*map(trace, parts))
    return _joined(question, texts, records)


def subquestions(text: str) -> tuple[str, ...]:
    """Return what to search besides a message that a model answers: its questions, or its alternatives."""
    texts = split_questions(text)
    return tuple(texts if len(texts) > 1 else split_alternatives(text))


def split_questions(text: str) -> list[str]:
    """Split a message into up to MAX_QUESTIONS questions; return it whole if it is not compound.

    A question ends at "?", or before an "and" that opens another question. Introductory text stays with the
    question that follows it.
    """
    if len(text) > MAX_CHARS or compares(text):
        return [text]
    parts = list(chain.from_iterable(map(_clauses, _SENTENCE.split(text.strip()))))
    is_split = 1 < len(parts) <= MAX_QUESTIONS and len(content_words(parts[0])) >= MIN_NAMED
    return parts if is_split and all(map(_is_standalone, parts[1:])) else [text]


def split_alternatives(text: str) -> list[str]:
    """Return a question about two alternatives once for each: "which took longer, A?", "... B?"."""
    found = _ALTERNATIVES.fullmatch(text.strip()) if len(text) <= MAX_CHARS else None
    is_named = found and content_words(found["one"]) and content_words(found["other"])
    return [f"{found['asked']}, {found[one]}?" for one in ("one", "other")] if found and is_named else []


def _clauses(sentence: str) -> Iterator[str]:
    start, folded = 0, fold(sentence)
    for match in _CLAUSE.finditer(folded if len(folded) == len(sentence) else sentence):
        before = sentence[start : match.start()]
        if _asks_once(fold(before)) and content_words(before):
            yield before
            start = match.end()
    yield sentence[start:]


def _asks_once(clause: str) -> bool:
    """True if a clause opens with a question word and has no second one.

    "Who is the person who approves and who signs?" is one question.
    """
    first, *others = [*ASKING_WORD.finditer(clause), None]
    if first is None:
        return asks_whether(clause)
    is_alone = all(other is None or other[0].casefold() in _ENGLISH_VERBS for other in others)
    return is_alone and not content_words(clause[: first.start()])


def _is_standalone(part: str) -> bool:
    """True if a later question states a subject, so that it does not depend on the previous one.

    "And who approves it?", "which year?" and "and for the Reims F172?" ask for details of the previous one.
    """
    naming, names = content_words(part), exact_words(part)
    asks = _asks_once(fold(part)) or asks_whether(part)
    is_named = len(naming) >= MIN_NAMED and any(word not in names for word in naming)
    return asks and is_named and not may_depend_on_thread(part)


def _heading(text: str) -> str:
    text = text.strip().rstrip("?.! ")
    return f"{text[:1].upper()}{text[1:]}?"


def _joined(question: Question, texts: Sequence[str], records: Sequence[QuestionRecord]) -> QuestionRecord:
    traces = [one.trace for one in records]
    trace = Trace(
        traces[0].most_read,
        [search for one in traces for search in one.searches],
        next((one.judged for one in traces if one.judged), None),
        [attempt for one in traces for attempt in one.attempts],
        [call for one in traces for call in one.calls],
        traces[0].began,
        [stage for one in traces for stage in one.stages],
    )
    asked = replace(question, language=records[0].question.language)
    return QuestionRecord(asked, join_answers(texts, [one.answer for one in records]), trace)


def join_answers(texts: Sequence[str], answers: Sequence[Answer]) -> Answer:
    """Join the replies to several questions under headings, with citations numbered throughout."""
    shifted, last = list[Answer](), 0
    for one in answers:
        shifted.append(_shifted(one, last))
        last += max((citation.number for citation in one.citations), default=0)
    said = _without_repeated_notes([one.text for one in shifted])
    paragraphs = [f"{_heading(text)}\n{one}" for text, one in zip(texts, said, strict=True)]
    state = _state([one.state for one in shifted])
    return replace(
        shifted[0],
        state=state,
        text="\n\n".join(paragraphs),
        citations=_all(one.citations for one in shifted),
        figures=_all(one.figures for one in shifted),
        passages=_all(one.passages for one in shifted),
        nearest=next(
            (one.nearest for one in shifted if one.nearest and state is AnswerState.NOT_FOUND), None
        ),
        unread=tuple(dict.fromkeys(_all(one.unread for one in shifted))),
        milliseconds=_longest([one.milliseconds for one in shifted]),
        standalone=_standalone(texts, shifted),
        corrections=_all(one.corrections for one in shifted),
        unknown=_all(one.unknown for one in shifted),
        filter=next((one.filter for one in shifted if one.filter), None),
        is_generated=any(one.is_generated for one in shifted),
        answered_from=_origin([one.answered_from for one in shifted if one.answered_from]),
        headings=_all(one.headings for one in shifted),
    )


def _shifted(answer: Answer, by: int) -> Answer:
    return replace(
        answer,
        text=_MARK.sub(lambda mark: f"[{int(mark[1]) + by}]", answer.text),
        citations=tuple(replace(one, number=one.number + by) for one in answer.citations),
        figures=tuple(replace(one, number=one.number + by if one.number else 0) for one in answer.figures),
    )


def _without_repeated_notes(texts: Sequence[str]) -> list[str]:
    """Remove the trailing lines that all replies share (notes on the channel) from all but the last."""
    lines = [text.split("\n") for text in texts]
    shared = 0
    while all(len(one) > shared + 1 and one[-shared - 1] == lines[0][-shared - 1] for one in lines):
        shared += 1
    *others, last = texts
    return [*("\n".join(one[: len(one) - shared]).rstrip() for one in lines[: len(others)]), last]


def _state(states: Sequence[AnswerState]) -> AnswerState:
    """Return the joined state.

    GROUNDED if all parts are, PASSAGES if everything answered is only quoted, else PARTIAL.
    """
    asked = [one for one in states if one is not AnswerState.CHAT]
    answered = [one for one in asked if one in _ANSWERED]
    if not answered:
        return next((one for one in asked if one is AnswerState.NOT_FOUND), states[-1])
    if set(answered) == {AnswerState.PASSAGES}:
        return AnswerState.PASSAGES
    return AnswerState.GROUNDED if set(asked) == {AnswerState.GROUNDED} else AnswerState.PARTIAL


def _all(parts: Iterable[Iterable[T]]) -> tuple[T, ...]:
    return tuple(chain.from_iterable(parts))


def _standalone(texts: Sequence[str], answers: Sequence[Answer]) -> str:
    if not any(one.standalone for one in answers):
        return ""
    return " ".join(_heading(one.standalone or text) for text, one in zip(texts, answers, strict=True))


def _longest(times: Sequence[Milliseconds]) -> Milliseconds:
    """Return the maximum per part, since the questions run concurrently; ``first`` is the first one's."""
    return Milliseconds(
        max(one.retrieve for one in times),
        max(one.answer for one in times),
        max(one.total for one in times),
        times[0].first,
    )


def _origin(origins: Sequence[AnsweredFrom]) -> AnsweredFrom | None:
    if not origins:
        return None
    tenants = tuple(dict.fromkeys(_all(one.tenants for one in origins)))
    names = {one.name for one in origins}
    return AnsweredFrom(tenants, names.pop() if len(names) == 1 else "")

"""Thread memory: recalls a thread's last turns for a question, stores the new turn, deletes expired ones."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import replace

from bot.core.models import Answer, AnswerState, Question
from bot.core.plaintext import replace_invalid_chars, shorten
from bot.core.ports import AnswerListener, ExpiringStore, QuestionAnswering
from storage.chat.thread_memory import ThreadMemory
from storage.chat_models import NewTurn
from storage.errors import DatabaseUnavailable
from storage.task_group import cancel_and_wait

INTERVAL_SECONDS = 3600.0
# Between two batches of deletions, to let other writers in.
PAUSE_SECONDS = 1.0

log = logging.getLogger(__name__)

# No follow-up refers to a greeting or a failure.
REMEMBERED = {AnswerState.GROUNDED, AnswerState.PARTIAL, AnswerState.PASSAGES, AnswerState.NOT_FOUND}
# Stored characters of a question and of an answer.
MAX_QUESTION_CHARS, MAX_ANSWER_CHARS = 500, 800


@contextlib.asynccontextmanager
async def running_retention(memory: ExpiringStore) -> AsyncIterator[None]:
    """Delete expired entries immediately, and again every hour, until the context ends."""

    async def forget() -> None:
        while True:
            try:
                erased = await memory.delete_expired()
            except DatabaseUnavailable as error:
                log.warning("retention run failed, retrying: %s", error)
                erased = 0
            await asyncio.sleep(PAUSE_SECONDS if erased else INTERVAL_SECONDS)

    running = asyncio.create_task(forget(), name="retention")
    try:
        yield
    finally:
        await cancel_and_wait(running)


async def answer_in_thread(
    answering: QuestionAnswering,
    memory: ThreadMemory,
    question: Question,
    thread: str | None,
    listener: AnswerListener | None = None,
) -> Answer:
    """Answer a question of the console or the command line in its thread.

    The thread's history is recalled first, and the new turn is stored afterwards; without a thread there is
    no history. The answer is not lost if its turn cannot be stored. Chats store turn and answer together
    instead.

    Raises:
        storage.errors.DatabaseUnavailable: the history cannot be read.
    """
    if thread is None:
        return await answering.answer(question, listener)
    history = await memory.recall(question.channel.id, thread, question.asked_at)
    question = replace(question, history=history, thread=thread)
    answer = await answering.answer(question, listener)
    if turn := turn_of(question, thread, answer):
        try:
            await memory.store(turn)
        except DatabaseUnavailable:
            log.warning("turn not stored: question=%s", question.id)
    return answer


def turn_of(question: Question, thread: str, answer: Answer) -> NewTurn | None:
    """Return the turn that a thread stores for a question; None if there is nothing to remember."""
    if answer.state not in REMEMBERED:
        return None
    return NewTurn(
        key=question.id,
        channel_id=question.conversation_channel.id,
        thread=thread,
        question=shorten(replace_invalid_chars(question.text), MAX_QUESTION_CHARS),
        standalone=shorten(replace_invalid_chars(answer.standalone or question.text), MAX_QUESTION_CHARS),
        answer=shorten(replace_invalid_chars(answer.text), MAX_ANSWER_CHARS),
        versions=cited_versions(answer),
        asked_at=question.asked_at,
    )


def cited_versions(answer: Answer) -> tuple[int, ...]:
    """Return the distinct versions that an answer cites."""
    return tuple(sorted({one.version_id for one in answer.citations if not one.host}))

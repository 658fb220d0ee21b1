"""Gives a question the last turns of its thread, stores its own turn, and deletes turns that are too old."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import replace

from bot.core.models import Answer, AnswerState, Question
from bot.core.plaintext import mend, shorten
from bot.core.ports import AnswerListener, Expiring, QuestionAnswering
from storage.chat.thread_memory import ThreadMemory
from storage.chat_models import NewTurn
from storage.errors import DatabaseUnavailable
from storage.task_group import cancel_and_wait

INTERVAL_SECONDS = 3600.0
# Between two portions: others want to write meanwhile.
PAUSE_SECONDS = 1.0

log = logging.getLogger(__name__)

# A greeting or a failure is nothing that the next question leans on.
REMEMBERED = {AnswerState.GROUNDED, AnswerState.PARTIAL, AnswerState.PASSAGES, AnswerState.NOT_FOUND}
# Characters kept of a question and of an answer.
QUESTION, ANSWER = 500, 800


@contextlib.asynccontextmanager
async def expiring(memory: Expiring, every: float = INTERVAL_SECONDS) -> AsyncIterator[None]:
    """Let a memory forget at once and then every so many seconds, until the context ends."""

    async def forget() -> None:
        while True:
            try:
                erased = await memory.delete_expired()
            except DatabaseUnavailable as error:
                log.warning("what is old enough to be forgotten stays for now: %s", error)
                erased = 0
            await asyncio.sleep(PAUSE_SECONDS if erased else every)

    running = asyncio.create_task(forget(), name="forgetting")
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
    """Return the answer of the console or the command line; chats keep a turn together with its answer.

    The question is asked after what its thread said before, and its turn is kept there; without a thread it
    stands alone. An answer is not lost because its turn cannot be kept.

    Raises:
        storage.errors.DatabaseUnavailable: nothing can be recalled just now.
    """
    if thread is None:
        return await answering.answer(question, listener)
    history = await memory.recall(question.channel.id, thread, question.asked_at)
    question = replace(question, history=history, thread=thread)
    answer = await answering.answer(question, listener)
    if turn := turn_of(question, thread, answer):
        try:
            await memory.keep(turn)
        except DatabaseUnavailable:
            log.warning("question=%s is not remembered by its thread", question.id)
    return answer


def turn_of(question: Question, thread: str, answer: Answer) -> NewTurn | None:
    """What a thread remembers of a question; None when that is nothing."""
    if answer.state not in REMEMBERED:
        return None
    return NewTurn(
        key=question.id,
        channel_id=question.asked_in.id,
        thread=thread,
        question=shorten(mend(question.text), QUESTION),
        standalone=shorten(mend(answer.standalone or question.text), QUESTION),
        answer=shorten(mend(answer.text), ANSWER),
        versions=cited_versions(answer),
        asked_at=question.asked_at,
    )


def cited_versions(answer: Answer) -> tuple[int, ...]:
    """Return the versions that an answer cites, each once."""
    return tuple(sorted({one.version_id for one in answer.citations if not one.host}))

"""Determines the reply to an inbox item: an answer, a change note, an upload's status or an error message."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bot.answers.understanding.question_terms import language_of
from bot.chat.conversation.answer_json import answer_from_json, answer_to_json
from bot.chat.conversation.direct_chats import DirectChats
from bot.chat.conversation.memory import turn_of
from bot.core.models import Answer, AnswerState, Language, Question
from bot.core.ports import AnswerListener, IngestUpload, NoteWriter, QuestionAnswering
from bot.core.wording import reply_words
from storage.chat.answer_sources import NOTE
from storage.chat.channels import Channels
from storage.chat.thread_memory import ThreadMemory
from storage.chat_models import UPLOAD_KEY, InboxItem, NewTurn


@dataclass(frozen=True, slots=True)
class InboxReply:
    """A reply, and whether it is stored already."""

    answer: Answer
    # The turn to store in the thread's memory.
    turn: NewTurn | None = None
    is_kept: bool = False


class InboxReplies:
    """Computes replies; posts and stores nothing."""

    def __init__(
        self,
        channels: Channels,
        answering: QuestionAnswering,
        memory: ThreadMemory,
        direct: DirectChats,
        *,
        notes: NoteWriter | None = None,
        take_upload: IngestUpload | None = None,
    ) -> None:
        """Create the service; the arguments are those of ``Conversation``."""
        self._channels = channels
        self._answering = answering
        self._memory = memory
        self._direct = direct
        self._notes = notes
        self._take_upload = take_upload

    async def is_due(self, item: InboxItem, note: dict[str, Any]) -> bool:
        """True if a note has something to report to someone who may read its page."""
        tenant = await self._notes.due(note) if self._notes else None
        return tenant is not None and await self._direct.may_read(item, [tenant])

    async def reply(self, item: InboxItem, listener: AnswerListener, *, is_given_up: bool) -> InboxReply:
        """Return the stored answer, or a new one; if ``is_given_up``, an error message.

        A stored answer is only shown if its asker may still read the channels it draws on.
        """
        if is_given_up:
            return InboxReply(_failure(item))
        kept = answer_from_json(item.answer) if item.answer is not None else None
        shown = kept.answered_from.tenants if kept and kept.answered_from else ()
        if refusal := await self._direct.refusal(item, shown):
            return InboxReply(refusal)
        if kept is not None:
            return InboxReply(kept, is_kept=True)
        if told := await self._tell(item):
            return InboxReply(told)
        question = await self._question(item)
        if isinstance(question, Answer):
            return InboxReply(question)
        answer = await self._answering.answer(question, listener)
        return InboxReply(answer, turn_of(question, item.thread, answer))

    async def _tell(self, item: InboxItem) -> Answer | None:
        """Return a change note or an upload's status; None if the item is a question."""
        if (note := item.address.get(NOTE)) and self._notes:
            return await self._notes.write(note)
        return await self._take_upload(item) if UPLOAD_KEY in item.address and self._take_upload else None

    async def _question(self, item: InboxItem) -> Question | Answer:
        """Build the question with its thread's history; ``DirectChats`` does so for a direct chat."""
        chat = await self._channels.get(item.channel_id)
        question = Question(
            str(item.id),
            item.text,
            chat,
            item.received_at,
            thread=item.thread,
            asker=str(item.address.get("asker", "")),
        )
        if chat.is_direct:
            return await self._direct.question(item, question)
        history = await self._memory.recall(chat.id, item.thread, item.received_at)
        return replace(question, history=history)


def language_of_item(item: InboxItem) -> Language:
    """Return the language of a question, or of the text sent with a file; English if uncertain."""
    said = item.address.get(UPLOAD_KEY, {}).get("language")
    return Language(said) if said else language_of(item.text) or Language.ENGLISH


def stopped_answer(item: InboxItem) -> dict[str, Any]:
    """Return the reply that replaces the answer of a cancelled question, as a JSON value."""
    language = language_of_item(item)
    return answer_to_json(Answer(AnswerState.CHAT, reply_words(language).stopped, language=language))


def _failure(item: InboxItem) -> Answer:
    language = language_of_item(item)
    words = reply_words(language)
    failed = words.upload_failed if UPLOAD_KEY in item.address else words.engine_failed
    return Answer(AnswerState.FAILED, failed, language=language)

"""Commands about the thread: its last sources, explanations, forgetting, page subscriptions."""

from __future__ import annotations

from dataclasses import replace

from bot.answers.citations.citations import CitationService
from bot.chat.commands.link_renewal import renewed_sources
from bot.chat.conversation.explanation import explain
from bot.core.models import Answer, Citation, Question
from bot.core.plaintext import escape_markers
from bot.core.wording import ReplyWords
from storage.chat.answer_sources import Subscriptions
from storage.chat.thread_memory import ThreadMemory
from storage.chat.traces import QuestionRecords, StoredRecord
from storage.models import CitedPlace
from storage.sql.audit import AuditedAction


class ThreadCommands:
    """Replies about the thread that they are asked for in."""

    def __init__(
        self,
        memory: ThreadMemory,
        records: QuestionRecords,
        citations: CitationService,
        subscriptions: Subscriptions,
    ) -> None:
        self._memory = memory
        self._records = records
        self._citations = citations
        self._subscriptions = subscriptions

    async def sources(self, question: Question, words: ReplyWords) -> Answer:
        """Return the sources of the thread's last answer, with fresh links.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached.
        """
        asked, citations = await self._last_citations(question)
        origin = asked.origin if asked.members else None
        return renewed_sources(citations, words, words.sources_again, origin)

    async def subscribe(self, question: Question, number: str, words: ReplyWords) -> str:
        """Subscribe the thread to a page that its last answer cites: by its number, or the first.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached.
        """
        asked, citations = await self._last_citations(question)
        cited = [one for one in citations if not one.host]
        chosen = next((one for one in cited if number in ("", str(one.number))), None)
        if chosen is None:
            return words.nothing_to_subscribe
        shown = CitedPlace(chosen.version_id, chosen.page, chosen.quote)
        of = asked.origin.name if asked.members else ""
        if not await self._subscriptions.add(question.id, shown, words.language.value, of):
            return words.nothing_to_subscribe
        name = words.document_named(title=escape_markers(chosen.name or chosen.title))
        return words.subscribed(page=chosen.page, document=name)

    async def unsubscribe(self, question: Question, words: ReplyWords) -> str:
        """Remove the thread's subscriptions."""
        thread = question.thread or ""
        return words.unsubscribed(await self._subscriptions.remove(question.conversation_channel.id, thread))

    async def explain(self, question: Question, words: ReplyWords) -> str:
        """Explain why the thread's last answer came out as it did, like *Why?* below it.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached.
        """
        _, kept = await self._last_record(question)
        channels = {one.id for one in question.asked_channels}
        if kept is None or kept.record["answered_from"]["channel_id"] not in channels:
            return words.incomplete
        return explain(kept.record, words)

    async def _last_record(self, question: Question) -> tuple[tuple[int, ...], StoredRecord | None]:
        """Return the versions that the thread's last answer cites, and its record."""
        chat = question.conversation_channel.id
        last = await self._memory.last(chat, question.thread) if question.thread is not None else None
        return (last[1], await self._records.get(chat, last[0])) if last else ((), None)

    async def _last_citations(self, question: Question) -> tuple[Question, tuple[Citation, ...]]:
        """Return the sources of the thread's last answer, and the question as asked of their channel.

        There are none if that channel is no longer searched, as after its asker has left it.
        """
        versions, kept = await self._last_record(question)
        if kept is None:
            return question, ()
        origin, shown = kept.record["answered_from"]["channel_id"], kept.record["citations"]
        channel = next((one for one in question.asked_channels if one.id == origin), None)
        if channel is None:
            return question, ()
        return replace(question, channel=channel), await self._citations.renew_links(channel, versions, shown)

    async def forget(self, question: Question, words: ReplyWords) -> str:
        """Erase the thread's memory, and record in the audit log who asked for it.

        Raises:
            storage.errors.DatabaseUnavailable: nothing was erased.
        """
        if question.thread is None:
            return words.nothing_to_forget
        action = AuditedAction(
            question.asker, "forget", question.conversation_channel.tenant, question.thread
        )
        count = await self._memory.erase(question.conversation_channel.id, question.thread, action)
        return words.forgot(count) if count else words.nothing_to_forget

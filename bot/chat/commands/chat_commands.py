"""Chat commands answered from SQL, without a search: small talk, help, documents, the thread, the bot itself.

Replies have no passages or buttons, and no thread remembers them. But an outline quotes its document, and the
sources of an answer can be shown again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from bot.answers.document_outline import DocumentOutlines
from bot.answers.understanding.channel_documents import (
    ChannelView,
    document_day,
    documents_by_name,
    match_documents,
)
from bot.answers.understanding.document_filters import read_days
from bot.answers.understanding.question_terms import language_of
from bot.chat.commands.admin_commands import ADMINS_ONLY, AdminCommands
from bot.chat.commands.chat_intents import BY_DATE, ChatCommand, ChatIntent, recognize
from bot.chat.commands.document_list import DocumentList
from bot.chat.commands.thread_commands import ThreadCommands
from bot.chat.commands.upload_commands import UploadCommands
from bot.core.models import Answer, AnsweredFrom, AnswerState, Language, Question
from bot.core.plaintext import escape_markers, shorten
from bot.core.wording import ReplyWords, reply_words
from storage.chat.notifications import Notices
from storage.errors import InfrastructureError
from storage.models import Channel, DocumentStatus

MAX_EXAMPLES = 3
# Versions whose suggested questions are considered as examples.
MAX_VERSIONS = 50
NAME_CHARS = 80

log = logging.getLogger(__name__)


class ChatCommands:
    """Replies to messages that ask nothing about the content of documents."""

    def __init__(
        self,
        notices: Notices | None = None,
        *,
        has_model: bool = False,
        kept_days: int | None = None,
        thread: ThreadCommands | None = None,
        admin: AdminCommands | None = None,
        uploads: UploadCommands | None = None,
        outlines: DocumentOutlines | None = None,
    ) -> None:
        """Create the commands.

        Args:
            notices: stores suggested questions; None: help shows no examples.
            kept_days: retention of questions and answers in days; None: not mentioned.
            thread: commands about the thread; None: they are treated as questions.
            admin: admin commands; None: as above.
        """
        self._notices = notices
        self._has_model = has_model
        self._kept_days = kept_days
        self._thread = thread
        self._admin = admin
        self._uploads = uploads
        self._outlines = outlines

    async def reply_to_message(self, asked: Sequence[tuple[Question, ChannelView]]) -> Answer | None:
        """Return the reply to a message that is a command; None if it is none, or if a search is needed.

        In a direct chat, which asks several channels, commands about documents run per channel, and the reply
        names the channels; all others run once. Raises as ``reply``.
        """
        question, _ = asked[0]
        command, members = recognize(question.text, question.language), question.members
        if command is None:
            return None
        if members and command.intent in _OF_DOCUMENTS:
            replies = [(one, await self.reply(command, one, view)) for one, view in asked]
            return _joined([(one.channel, reply) for one, reply in replies if reply])
        reply = await self.reply(command, *asked[0])
        if reply is None or reply.answered_from or not members:
            return reply
        return replace(reply, answered_from=AnsweredFrom(tuple(one.channel.tenant for one in members)))

    async def reply(self, command: ChatCommand, question: Question, view: ChannelView) -> Answer | None:
        """Return the reply, in the language of the message; None if a search is needed.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached, and the reply needs it.
        """
        if command.intent is ChatIntent.DOCUMENT_OUTLINE:
            return await self._outline(command, question, await view.documents())
        if command.intent is ChatIntent.SOURCES and self._thread:
            return await self._thread.sources(question, reply_words(command.language))
        if command.intent is ChatIntent.HUMAN:
            return await self._people(question, command.language)
        text = await self._write(command, question, view)
        return Answer(AnswerState.CHAT, text, language=command.language) if text else None

    async def _write(self, command: ChatCommand, question: Question, view: ChannelView) -> str | None:
        words = reply_words(command.language)
        fixed = {
            ChatIntent.GREETING: words.greeting,
            ChatIntent.THANKS: words.thanks,
            ChatIntent.GOODBYE: words.goodbye,
            ChatIntent.ACKNOWLEDGEMENT: words.acknowledged,
            ChatIntent.ABOUT_THE_BOT: self._about(words),
            ChatIntent.INCOMPLETE: words.incomplete,
        }
        if command.intent in fixed:
            return fixed[command.intent]
        if command.intent in _OF_THREADS:
            return await self._run_thread_command(command, question, words)
        if command.intent in ADMINS_ONLY or command.intent is ChatIntent.REMOVE_UPLOAD:
            return await self._run_restricted(command, question, view, words)
        if command.intent is not ChatIntent.HELP:
            documents = await view.documents()
            if not documents and question.documents is None:
                return words.no_documents(question.channel, await view.folder())
            return _of_documents(command, question, documents)
        examples = [f"• {text}" for text in await self._examples(question, command.language)]
        return "\n".join([words.help, *([words.try_asking] if examples else []), *examples])

    async def _people(self, question: Question, language: Language) -> Answer:
        """Return the people to ask instead of the bot, if any are known."""
        people = await self._uploads.people(question) if self._uploads else ()
        words = reply_words(language)
        text = words.people_to_ask if people else words.nobody_to_ask
        return Answer(AnswerState.CHAT, text, language=language, people=people)

    async def _run_thread_command(
        self, command: ChatCommand, question: Question, words: ReplyWords
    ) -> str | None:
        if command.intent is ChatIntent.WHY:
            return await self._thread.explain(question, words) if self._thread else words.incomplete
        if self._thread is None:
            return None
        if command.intent is ChatIntent.SUBSCRIBE:
            return await self._thread.subscribe(question, command.name, words)
        if command.intent is ChatIntent.UNSUBSCRIBE:
            return await self._thread.unsubscribe(question, words)
        return await self._thread.forget(question, words)

    async def _run_restricted(
        self, command: ChatCommand, question: Question, view: ChannelView, words: ReplyWords
    ) -> str | None:
        """Execute a command that only some people may use."""
        if command.intent is ChatIntent.REMOVE_UPLOAD:
            return await self._uploads.remove(command.name, question, words) if self._uploads else None
        reply = self._admin and self._admin.reply(command, question, await view.documents(), words)
        return await reply if reply else None

    async def _outline(
        self, command: ChatCommand, question: Question, documents: Sequence[DocumentStatus]
    ) -> Answer | None:
        """Return the outline of a document, or ask which one is meant; None if a search is needed.

        Without a name, it is the document that the last answer cited, or the only one there is.
        """
        words, scope = reply_words(command.language), question.documents
        live = [one for one in documents if one.state == "live" and (scope is None or one.document in scope)]
        cited = question.history[-1].documents if question.history else ()
        at_hand = [one for one in live if one.document in cited] if len(cited) == 1 else live
        meant = match_documents(command.name, live) if command.name else at_hand
        if len(meant) == 1 and self._outlines:
            name = escape_markers(meant[0].title or PurePosixPath(meant[0].file).name)
            return await self._outlines.write(question.channel, meant[0].document, name, words)
        if not (meant and command.is_certain):
            return None
        return Answer(AnswerState.CHAT, DocumentList(words, meant).write_choice(), language=command.language)

    def _about(self, words: ReplyWords) -> str:
        said = [words.about, words.about_model if self._has_model else words.about_quotes]
        kept = [] if self._kept_days is None else [words.kept_for(self._kept_days)]
        return " ".join([*said, words.about_channel, *kept])

    async def _examples(self, question: Question, language: Language) -> Sequence[str]:
        """Return suggested questions about the documents searched here, in the asker's language first.

        A failing database costs help its examples, nothing more.
        """
        if self._notices is None or question.documents is not None:
            return ()
        try:
            suggested = [
                one
                for channel in question.asked_channels
                for one in await self._notices.sample_questions(channel.id, MAX_VERSIONS)
            ]
        except InfrastructureError as error:
            log.warning("no examples for help: question=%s: %s", question.id, type(error).__name__)
            return ()
        distinct = dict.fromkeys(" ".join(text.split()) for _, text in suggested)
        return sorted(distinct, key=lambda text: language_of(text) is not language)[:MAX_EXAMPLES]


def _of_documents(
    command: ChatCommand, question: Question, documents: Sequence[DocumentStatus]
) -> str | None:
    """Return the reply about the channel's documents; None if a name matches none: it may be a question."""
    words, scope = reply_words(command.language), question.documents
    if scope is not None:
        documents = [one for one in documents if one.document in scope]
    if not documents:
        return words.no_such_document
    if command.intent is ChatIntent.DOCUMENT_LIST:
        return DocumentList(words, documents).write()
    if command.intent in BY_DATE or command.intent in _STATES:
        return DocumentList(words, documents).write_such(
            partial(_is_meant, command), _none_such(command, words)
        )
    if command.intent is ChatIntent.NEWS:
        return DocumentList(words, documents).write_news(question.asked_at)
    if found := documents_by_name(command.name, documents):
        return DocumentList(words, found).write_found()
    name = shorten(command.name, NAME_CHARS)
    return words.no_document_named(name=name) if command.is_certain else None


def _none_such(command: ChatCommand, words: ReplyWords) -> Callable[[int], str]:
    """Return a function that says, given the number of searchable documents, that none matches."""
    if command.intent is ChatIntent.UNREAD_DOCUMENTS:
        return words.all_read
    is_reading = command.intent is ChatIntent.DOCUMENTS_BEING_READ
    return lambda _: words.none_being_read if is_reading else words.no_such_documents


_OF_THREADS = {
    ChatIntent.WHY,
    ChatIntent.SOURCES,
    ChatIntent.FORGET,
    ChatIntent.SUBSCRIBE,
    ChatIntent.UNSUBSCRIBE,
}
_STATES = {
    ChatIntent.UNREAD_DOCUMENTS: {"quarantined"},
    ChatIntent.DOCUMENTS_BEING_READ: {"waiting", "reading"},
}


_OF_DOCUMENTS = {
    ChatIntent.NEWS,
    ChatIntent.DOCUMENT_LIST,
    ChatIntent.DOCUMENT_PRESENCE,
    ChatIntent.DOCUMENT_OUTLINE,
    ChatIntent.RETRY,
    *BY_DATE,
    *_STATES,
}


def _joined(replies: Sequence[tuple[Channel, Answer]]) -> Answer | None:
    """Join the replies of several channels: the first that quotes a document, else all below their names."""
    said = [one for one in replies if one[1].citations][:1] or replies
    if not said:
        return None
    (first, answer), tenants = said[0], tuple(channel.tenant for channel, _ in said)
    if len(said) == 1:
        return replace(answer, answered_from=AnsweredFrom(tenants, first.name))
    saying: dict[str, list[str]] = {}
    for channel, one in said:
        saying.setdefault(one.text, []).append(channel.name)
    text = "\n\n".join(f"{', '.join(names)}\n{text}" for text, names in saying.items())
    return replace(answer, text=text, answered_from=AnsweredFrom(tenants))


def _is_meant(command: ChatCommand, document: DocumentStatus) -> bool:
    """True if a document has the state or the date that was asked for."""
    if command.intent in _STATES:
        return document.state in _STATES[command.intent]
    counted, days = document_day(document.metadata, document.arrived_at), read_days(command.name)
    if counted is None or days is None:
        return False
    if command.intent is ChatIntent.DOCUMENTS_SINCE:
        return counted.day >= days[0]
    if command.intent is ChatIntent.DOCUMENTS_UNTIL:
        return counted.day <= days[1]
    return days[0] <= counted.day <= days[1]

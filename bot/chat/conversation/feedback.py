"""Feedback on answers from any platform: stored with the question's record, explained from it.

It never changes the ranking. The platform says who gives it and where; answers of other channels do not exist
for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.chat.conversation.explanation import explain
from bot.core.models import Language
from bot.core.wording import reply_words
from storage.chat.feedback import FeedbackStore, FeedbackVerdict, hash_person
from storage.chat.inbox import Inbox
from storage.chat.traces import QuestionRecords
from storage.models import ChannelKey

# Pages offered as the right one.
MAX_PAGES = 12
# Reasons offered for a thumbs down.
REASONS = (
    FeedbackVerdict.WRONG_PAGE,
    FeedbackVerdict.WRONG_ANSWER,
    FeedbackVerdict.SHOULD_HAVE_FOUND,
    FeedbackVerdict.OUTDATED,
)


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """The question whose answer the feedback is about."""

    channel_id: int
    # Id of its record.
    id: str
    # Language of the replies to the person.
    language: Language = Language.ENGLISH


@dataclass(frozen=True, slots=True)
class FeedbackReply:
    """The private reply to feedback."""

    text: str
    # Reasons offered for a thumbs down, with their labels.
    reasons: Sequence[tuple[FeedbackVerdict, str]] = ()
    # Labels of the pages offered as the right one, in the order of ``page``.
    pages: Sequence[str] = ()
    # The heading above these pages.
    right_page: str = ""
    # Label of the button that asks a person; '' for none.
    ask_person: str = ""


class AnswerFeedback:
    """Stores the feedback of all platforms.

    Calls raise storage.errors.DatabaseUnavailable if the database does not work.
    """

    def __init__(
        self, inbox: Inbox, records: QuestionRecords, store: FeedbackStore, *, offers_person: bool = False
    ) -> None:
        """``offers_person``: a thumb down offers to ask a person."""
        self._offers_person = offers_person
        self._inbox = inbox
        self._records = records
        self._store = store

    async def question_of(
        self, key: ChannelKey, message_key: str, language: Language
    ) -> AnsweredQuestion | None:
        """Return the question in a message of this channel; None if it is none, or not retained."""
        found = await self._inbox.question_of(key.tenant, message_key)
        return AnsweredQuestion(*found, language) if found else None

    async def question_of_reply(self, key: ChannelKey, message: str) -> AnsweredQuestion | None:
        """Return the question that our message with this id answered; None if it is not retained."""
        found = await self._inbox.question_of_reply(key.tenant, message)
        if found is None:
            return None
        channel_id, question, language = found
        return AnsweredQuestion(channel_id, question, Language(language or Language.ENGLISH))

    async def take(
        self,
        asked: AnsweredQuestion | None,
        person: tuple[str, str],
        verdict: FeedbackVerdict,
        *,
        page: int | None = None,
        comment: str = "",
        language: Language = Language.ENGLISH,
    ) -> FeedbackReply:
        """Store a person's feedback, replacing what they said before.

        Args:
            asked: the question; None if it is gone.
            person: installation and user, from the platform.
            page: index of the right page among those offered, from 0.
            language: of the reply if the question is gone.
        """
        words = reply_words(asked.language if asked else language)
        pages = (await self._store.candidates(asked.channel_id, asked.id))[:MAX_PAGES] if asked else []
        file, number = pages[page] if page is not None and 0 <= page < len(pages) else ("", 0)
        if asked is None or not await self._store.upsert(
            asked.channel_id,
            asked.id,
            hash_person(*person),
            verdict,
            file=file,
            page=number,
            comment=comment,
        ):
            return FeedbackReply(words.feedback_expired)
        if verdict is not FeedbackVerdict.BAD or comment:
            return FeedbackReply(words.feedback_thanks)
        return FeedbackReply(
            words.what_was_wrong,
            [(one, getattr(words, one.value)) for one in REASONS],
            [words.page_of(page=number, file=file) for file, number in pages],
            words.right_page,
            words.ask_person if self._offers_person else "",
        )

    async def why(self, asked: AnsweredQuestion | None, language: Language = Language.ENGLISH) -> str:
        """Explain why the answer came out as it did."""
        words = reply_words(asked.language if asked else language)
        kept = await self._records.get(asked.channel_id, asked.id) if asked else None
        return explain(kept.record, words) if kept else words.feedback_expired

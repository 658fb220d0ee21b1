"""What a person says of an answer: taken from any platform, kept with the record, explained from it.

It never changes how anything is ranked. A platform says who speaks and where; an answer of another channel
is not there for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.core.conversation.explanation import explain
from bot.core.models import Language
from bot.core.wording import reply_words
from storage.chat.feedback import FeedbackStore, FeedbackVerdict, person_of
from storage.chat.inbox import Inbox
from storage.chat.traces import QuestionRecords
from storage.models import ChannelKey

# Pages that a person may choose the right one of.
MAX_PAGES = 12
# What may be said of a bad answer.
REASONS = (
    FeedbackVerdict.WRONG_PAGE,
    FeedbackVerdict.WRONG_ANSWER,
    FeedbackVerdict.SHOULD_HAVE_FOUND,
    FeedbackVerdict.OUTDATED,
)


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """The question whose answer somebody speaks of."""

    channel_id: int
    # Of its record.
    id: str
    # What is said to the person is written in it.
    language: Language = Language.ENGLISH


@dataclass(frozen=True, slots=True)
class FeedbackReply:
    """What is said to the person, and to nobody else."""

    text: str
    # What they may say of a bad answer, each with its words.
    reasons: Sequence[tuple[FeedbackVerdict, str]] = ()
    # Labels of the pages that they may call the right one, in the order of ``page``.
    pages: Sequence[str] = ()
    # The words above these pages.
    right_page: str = ""


class AnswerFeedback:
    """Takes feedback of every platform."""

    def __init__(self, inbox: Inbox, records: QuestionRecords, store: FeedbackStore) -> None:
        self._inbox = inbox
        self._records = records
        self._store = store

    async def question_of(
        self, key: ChannelKey, message_key: str, language: Language
    ) -> AnsweredQuestion | None:
        """Return the question that a message of this channel asked; None: it asked none that is still kept.

        Raises:
            storage.errors.DatabaseUnavailable: the database does not work.
        """
        found = await self._inbox.question_of(key.tenant, message_key)
        return AnsweredQuestion(*found, language) if found else None

    async def question_of_reply(self, key: ChannelKey, message: str) -> AnsweredQuestion | None:
        """The question that our message of this id answered in this channel; None: it is not there any more.

        Raises:
            storage.errors.DatabaseUnavailable: the database does not work.
        """
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
        """Keep what a person says, in place of what they said before.

        Args:
            asked: the question; None: it is not there.
            person: installation and user, as the platform says.
            verdict: what they say.
            page: which of the pages they were offered is the right one, counted from 0.
            comment: in their own words.
            language: of the reply where the question is not there.

        Raises:
            storage.errors.DatabaseUnavailable: the database does not work.
        """
        words = reply_words(asked.language if asked else language)
        pages = (await self._store.candidates(asked.channel_id, asked.id))[:MAX_PAGES] if asked else []
        file, number = pages[page] if page is not None and 0 <= page < len(pages) else ("", 0)
        if asked is None or not await self._store.keep(
            asked.channel_id,
            asked.id,
            person_of(*person),
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
        )

    async def why(self, asked: AnsweredQuestion | None, language: Language = Language.ENGLISH) -> str:
        """Why the answer came out as it did.

        Raises:
            storage.errors.DatabaseUnavailable: the database does not work.
        """
        words = reply_words(asked.language if asked else language)
        kept = await self._records.get(asked.channel_id, asked.id) if asked else None
        return explain(kept.record, words) if kept else words.feedback_expired

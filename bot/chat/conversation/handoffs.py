"""Hands a question to a person: who looks after the documents is told, until somebody marks it as resolved.

The state is feedback on the answer, so it is stored, shown among the gaps and erased like other feedback. The
platform tells only a member of the channel, or an owner that an admin configured for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from bot.answers.citations.citations import CitationService
from bot.chat.conversation.feedback import AnsweredQuestion
from bot.core.models import Answer, AnswerState
from bot.core.plaintext import escape_markers, shorten
from bot.core.wording import reply_words
from storage.chat.channels import Channels
from storage.chat.feedback import FeedbackStore, FeedbackVerdict, hash_person
from storage.chat.traces import QuestionRecords
from storage.chat.uploads import Uploads
from storage.errors import UnknownChannel
from storage.models import Channel

QUESTION_CHARS, REPLY_CHARS = 500, 700

# Returns the configured owners of a channel's folders, as in FOOTNOTE_ADMINS.
FindOwners = Callable[[Channel], Sequence[str]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A person who may be told, as in FOOTNOTE_ADMINS."""

    id: str
    # An admin configured them for this channel: they need not be a member.
    is_owner: bool

    @property
    def user(self) -> str:
        """The platform's id."""
        return self.id.rpartition(":")[2]


@dataclass(frozen=True, slots=True)
class Handoff:
    """A question that a person is asked to look at."""

    # Question, reply and sources, as a message.
    message: Answer
    # The channel that the documents are from.
    channel: Channel
    # In the order in which they are tried.
    candidates: tuple[Candidate, ...]


class Handoffs:
    """Finds whom to tell, and stores what is open.

    Calls raise storage.errors.DatabaseUnavailable if the database does not work.
    """

    def __init__(
        self,
        records: QuestionRecords,
        feedback: FeedbackStore,
        channels: Channels,
        uploads: Uploads,
        citations: CitationService,
        *,
        find_owners: FindOwners,
        admins: Collection[str] = (),
    ) -> None:
        self._records = records
        self._feedback = feedback
        self._channels = channels
        self._uploads = uploads
        self._citations = citations
        self._find_owners = find_owners
        self._admins = tuple(admins)

    async def prepare(self, asked: AnsweredQuestion, asker: str) -> Handoff | None:
        """Return what to tell whom about an answer; None if its record is gone.

        Candidates are the owners of the channel's folders, then who uploaded its files, then admins, all of
        the asker's installation. ``asker``: as in FOOTNOTE_ADMINS.
        """
        kept = await self._records.get(asked.channel_id, asked.id)
        if kept is None:
            return None
        try:
            channel = await self._channels.get(kept.record["answered_from"]["channel_id"])
        except UnknownChannel:
            return None
        owners = self._find_owners(channel)
        uploads = await self._uploads.of_channel(channel.id)
        others = (*(one.uploader for one in reversed(uploads)), *self._admins)
        home = asker.rpartition(":")[0] + ":"
        known = dict.fromkeys(one for one in (*owners, *others) if one.startswith(home) and one != asker)
        words = reply_words(asked.language)
        question = escape_markers(shorten(kept.record["question"], QUESTION_CHARS))
        lines = [words.person_needed, words.document_named(title=question)]
        cited = kept.record["citations"]
        # Without sources, a direct chat's reply may be about several channels.
        if cited or channel.id == asked.channel_id:
            lines += ["", _shortened(kept.record["answer"])]
        citations = await self._citations.renew_by_id(channel, cited)
        message = Answer(AnswerState.CHAT, "\n".join(lines), citations, language=asked.language)
        return Handoff(message, channel, tuple(Candidate(one, one in owners) for one in known))

    async def open(self, asked: AnsweredQuestion, person: tuple[str, str]) -> bool:
        """Store that a person is needed; False if that is stored already, or the record is gone."""
        if await self._feedback.needs_person(asked.channel_id, asked.id):
            return False
        verdict = FeedbackVerdict.NEEDS_PERSON
        return await self._feedback.upsert(asked.channel_id, asked.id, hash_person(*person), verdict)

    async def resolve(self, asked: AnsweredQuestion) -> bool:
        """Store that nobody is needed any more; False if nobody was."""
        return await self._feedback.resolve(asked.channel_id, asked.id)


def _shortened(reply: str) -> str:
    return reply if len(reply) <= REPLY_CHARS else f"{reply[:REPLY_CHARS].rsplit(' ', 1)[0]}…"

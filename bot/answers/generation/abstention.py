"""Not-found replies: words that no document mentions, at most one closest page, unreadable files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from bot.answers.citations.citations import CitationService
from bot.answers.generation.judge import Verdict
from bot.answers.understanding.channel_documents import ChannelView
from bot.answers.understanding.question_terms import subject_words
from bot.core.models import (
    Answer,
    AnswerState,
    MemberChannel,
    NearestPage,
    Question,
    Retrieval,
    UnreadFile,
)
from bot.core.wording import ReplyWords, reply_words
from storage.models import DocumentStatus

# Minimum cosine, on the scale of ``CosineCalibration``, for the closest page to be linked: on the tuning half
# .76 of the answerable questions that end in a not-found reply reach it, and .28 of the off-topic ones.
MIN_CLOSEST = 0.3
# Minimum score of the first passage for the same where no vectors were compared: .71 and .16 reach it.
MIN_CLOSEST_RANK = 0.65


class Abstention:
    """Writes the reply to a question that the channel's documents do not answer."""

    def __init__(self, citations: CitationService) -> None:
        self._citations = citations

    async def abstain(
        self, question: Question, retrieval: Retrieval, view: ChannelView, verdict: Verdict | None
    ) -> Answer:
        """Write a not-found reply; without a verdict it links no closest page.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached.
        """
        words, channel, scope = reply_words(question.language), question.channel, question.documents
        if scope is not None and not scope:
            return Answer(AnswerState.NOT_FOUND, words.no_such_document)
        statuses = [one for one in await view.documents() if scope is None or one.document in scope]
        best = next((one for one in retrieval.passages if not one.publication.web), None)
        nearest = await self._citations.nearest(channel, best) if best and _is_close(verdict) else None
        asked = retrieval.question
        unknown = (verdict.missing_codes if verdict else ()) or subject_words(
            asked.text, asked.unknown, question.language
        )
        unread = tuple(
            UnreadFile(status.file, status.reason or "")
            for status in statuses
            if status.state == "quarantined"
        )
        said = _sentences(words, statuses, nearest, unknown, question.members)
        if not said:
            said.append(words.no_documents(channel, await view.folder()))
        return Answer(
            state=AnswerState.NOT_FOUND,
            text="\n".join(said),
            nearest=nearest,
            unread=unread,
        )


def _is_close(verdict: Verdict | None) -> bool:
    """True if the first passage is near enough to the question to be linked."""
    if verdict is None:
        return False
    cosine = verdict.signals.passage
    return verdict.signals.rank >= MIN_CLOSEST_RANK if cosine is None else cosine >= MIN_CLOSEST


def _sentences(
    words: ReplyWords,
    statuses: Sequence[DocumentStatus],
    nearest: NearestPage | None,
    unknown: Sequence[str],
    members: Sequence[MemberChannel],
) -> list[str]:
    live = sum(status.state == "live" for status in statuses)
    waiting = sum(status.state in {"waiting", "reading"} for status in statuses)
    unread = [PurePosixPath(status.file).name for status in statuses if status.state == "quarantined"]
    names = [one.channel.name for one in members]
    missed = words.found_in_no_channel(names) if members else words.not_found_in(live)
    said = [missed] if live else []
    if live and unknown and len(members) < 2:
        said.append(words.mentioned_nowhere(unknown, live))
    if nearest:
        said.append(words.nearest(title=nearest.name, page=nearest.page))
    if waiting:
        said.append(words.still_reading(waiting))
    if unread:
        said = said or [words.not_found]
        said.append(words.unreadable_files(unread))
    return said

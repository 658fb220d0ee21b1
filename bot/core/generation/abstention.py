""" "Not in your documents": an answer of its own that says what was searched and what was not.

Decides before anybody writes whether the evidence can answer at all.

Likeness of meaning, with the share of the question's idf weight that a passage covers, was the steadiest
signal for questions off the subject; it runs before a model too, because a model invents.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from bot.core.citations.citations import CitationService
from bot.core.models import (
    AnalyzedQuestion,
    Answer,
    AnswerState,
    Evidence,
    NearestPage,
    Passage,
    Question,
    UnreadFile,
)
from bot.core.understanding.question_terms import QuestionTerms
from bot.core.wording import ReplyWords, reply_words
from storage.documents.catalog import Catalog
from storage.models import Channel, DocumentStatus, Platform

COVERAGE = 0.3
"""What covering all of a question's words adds to a cosine."""


class EvidenceGate:
    """Lets a question through when one passage is near enough to it."""

    def __init__(
        self, *, least_likeness: float = 0.35, enough_coverage: float = 0.6, least_words: float = 0.35
    ) -> None:
        """Nothing is asked here yet.

        Args:
            least_likeness: of cosine and weighed coverage together; measured for the bundled embedder.
            enough_coverage: opens by itself, so that codes and names count without any meaning.
            least_words: coverage of a passage that has no vector to compare.
        """
        self._least_likeness = least_likeness
        self._enough_coverage = enough_coverage
        self._least_words = least_words

    def opens(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> bool:
        """Whether an answer may be written from this evidence."""
        wordings = [QuestionTerms(wording) for wording in (question, *question.wordings)]
        return any(self._is_enough(asked, item.passage) for asked in wordings for item in evidence)

    def _is_enough(self, asked: QuestionTerms, passage: Passage) -> bool:
        coverage = asked.coverage(passage.terms)
        if passage.vector is None:
            return coverage >= self._least_words
        is_like = passage.vector + COVERAGE * coverage >= self._least_likeness
        return is_like or coverage >= self._enough_coverage


class Abstention:
    """Writes the answer for a question that the channel's documents do not answer."""

    def __init__(self, documents: Catalog, citations: CitationService) -> None:
        self._documents = documents
        self._citations = citations

    async def abstain(self, question: Question, passages: Sequence[Passage]) -> Answer:
        """What was searched, the nearest page, what is still being read and what could not be.

        Raises:
            storage.errors.InfrastructureError: the channel's documents are not known just now.
        """
        words, channel, scope = reply_words(question.language), question.channel, question.documents
        if scope is not None and not scope:
            return Answer(AnswerState.NOT_FOUND, words.no_such_document)
        statuses = [
            one
            for one in await self._documents.documents(channel.id)
            if scope is None or one.document in scope
        ]
        nearest = await self._citations.nearest(channel, passages[0]) if passages else None
        unread = tuple(
            UnreadFile(status.file, status.reason or "")
            for status in statuses
            if status.state == "quarantined"
        )
        return Answer(
            state=AnswerState.NOT_FOUND,
            text="\n".join(
                _sentences(words, statuses, nearest, unread, passages) or [_empty(words, channel)]
            ),
            nearest=nearest,
            unread=unread,
        )


def _sentences(
    words: ReplyWords,
    statuses: Sequence[DocumentStatus],
    nearest: NearestPage | None,
    unread: Sequence[UnreadFile],
    passages: Sequence[Passage],
) -> list[str]:
    live = sum(status.state == "live" for status in statuses)
    waiting = sum(status.state in {"waiting", "reading"} for status in statuses)
    said = [f"{words.not_found} {words.searched(live)}"] if live else []
    if nearest:
        title = passages[0].publication.title or PurePosixPath(nearest.file).name
        said.append(words.nearest(title=title, page=nearest.page))
    if waiting:
        said.append(words.still_reading(waiting))
    if unread:
        said = said or [words.not_found]
        said.append(words.unread([PurePosixPath(item.file).name for item in unread]))
    return said


def _empty(words: ReplyWords, channel: Channel) -> str:
    """Where the channel's PDFs go: a local channel's folder has its name, any other the tenant's."""
    return words.empty_channel(folder=channel.name if channel.platform is Platform.LOCAL else channel.tenant)

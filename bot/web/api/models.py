"""Requests and responses of the API, from which its OpenAPI document is made.

An answer is made from the JSON form that the outbox stores: the fields here choose which of it is public.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from bot.chat.conversation.answer_json import answer_to_json
from bot.core.models import Answer, AnswerState
from bot.core.ports import FoundPassage
from storage.chat.feedback import MAX_COMMENT_CHARS, FeedbackVerdict
from storage.models import DocumentStatus

MAX_CHANNEL_CHARS = 300
MAX_THREAD_CHARS = 200
MAX_PASSAGES = 20
# Text with at least one character that is not blank.
Text = Annotated[str, StringConstraints(pattern=r"\S")]
ChannelName = Annotated[
    str | None,
    Field(
        max_length=MAX_CHANNEL_CHARS,
        description="Name of a local channel, or tenant name, as `footnote channels` lists them. "
        "Optional for a token of one channel, and if there is only one channel.",
    ),
]
# Left, top, right and bottom edge.
Edges = Annotated[
    tuple[float, float, float, float],
    Field(description="Fractions (0-1) of the page: left, top, right and bottom edge."),
]


class _Body(BaseModel):
    """Body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    channel: ChannelName = None


class AskRequest(_Body):
    """Question to be answered."""

    question: Text
    thread: Annotated[
        Text | None,
        Field(max_length=MAX_THREAD_CHARS, description="Names a conversation, for follow-up questions."),
    ] = None


class SearchRequest(_Body):
    """Query for passages."""

    query: Text
    limit: Annotated[int, Field(ge=1, le=MAX_PASSAGES, description="Passages returned at most.")] = 8


class FeedbackRequest(_Body):
    """Feedback on an answer; a later one of the same token replaces it."""

    question: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", description="Id of the answer.")]
    verdict: FeedbackVerdict
    comment: Annotated[str, Field(max_length=MAX_COMMENT_CHARS)] = ""


class PageRequest(_Body):
    """Page to be read, for assistants."""

    document: Annotated[
        Text, Field(max_length=1000, description="Id of the document, or its file as citations name it.")
    ]
    page: Annotated[int, Field(ge=1, description="Counts from 1.")]


class CitationView(BaseModel):
    """Quote with its page and its signed link."""

    number: Annotated[int, Field(description="The [n] of the text.")]
    id: Annotated[int | None, Field(description="Opens `/citations/{id}`; null for a web page.")]
    title: str
    file: str
    page: Annotated[int | None, Field(description="Counts from 1; null for a web page.")]
    section: tuple[str, ...]
    quote: str
    boxes: tuple[Edges, ...]
    url: Annotated[str, Field(description="Signed link to the marked page. Anyone who has it can open it.")]


class FigureView(BaseModel):
    """Figure shown with an answer."""

    file: str
    page: int
    caption: str
    box: Edges
    url: Annotated[str, Field(description="Signed link to its marked page.")]
    image: Annotated[str, Field(description="Signed link to its picture.")]


class NearestView(BaseModel):
    """Closest page if nothing answers the question."""

    name: str
    file: str
    page: int
    url: str


class UnreadView(BaseModel):
    """File of the channel that could not be read."""

    file: str
    reason: str


class AnswerView(BaseModel):
    """Answer with its sources."""

    id: Annotated[str, Field(description="Id of the question, for feedback and `footnote records`.")]
    channel: str
    state: Annotated[
        AnswerState,
        Field(
            description="grounded: verified sentences of a model; partial: some were left out; passages: "
            "quotes, without a model; not_found: no answer; chat: no search was needed."
        ),
    ]
    language: str
    text: Annotated[str, Field(description="With [n] marks that refer to citations.")]
    citations: tuple[CitationView, ...]
    figures: tuple[FigureView, ...]
    nearest: NearestView | None
    unread: tuple[UnreadView, ...]
    is_generated: Annotated[bool, Field(description="True if a model worded any of it.")]

    @classmethod
    def of(cls, answer: Answer, id_: str, channel: str) -> Self:
        """Return the public part of an answer."""
        said = answer_to_json(answer)
        for one in said["citations"]:
            one |= {"id": one["citation_id"] or None, "page": one["page"] or None}
        return cls.model_validate(said | {"id": id_, "channel": channel})


class PartialAnswer(BaseModel):
    """Beginning of an answer while the rest is written; the answer's text begins with it."""

    text: str


class PassageView(CitationView):
    """Passage that was found, cited by its best sentence."""

    document: UUID
    text: Annotated[str, Field(description="The whole passage.")]
    score: Annotated[float, Field(description="Relevance, 0-1.")]

    @classmethod
    def of(cls, found: FoundPassage) -> Self:
        """Return the public part of a passage."""
        one = found.citation
        return cls(
            number=one.number,
            id=one.citation_id or None,
            title=one.title,
            file=one.file,
            page=one.page or None,
            section=one.section,
            quote=one.quote,
            boxes=one.boxes,
            url=one.url,
            document=found.document,
            text=found.text,
            score=found.score,
        )


class SearchResults(BaseModel):
    """Passages found, best first."""

    channel: str
    passages: list[PassageView]


class PageContent(BaseModel):
    """Page of a document, for assistants."""

    document: UUID
    title: str
    file: str
    page: int
    text: str
    url: Annotated[str, Field(description="Signed link to the page.")]


class StoredCitation(BaseModel):
    """Citation as it was shown, with a new link."""

    id: int
    document: UUID
    title: str
    file: str
    page: int
    quote: str
    boxes: tuple[Edges, ...]
    url: Annotated[str, Field(description="Signed link to the marked page, made now.")]


class DocumentView(BaseModel):
    """Document of a channel."""

    id: UUID
    file: str
    title: str
    pages: int
    state: Annotated[str, Field(description="waiting, reading, live or quarantined (unreadable).")]
    reason: Annotated[str | None, Field(description="Why it cannot be read.")]
    arrived_at: datetime | None
    metadata: dict[str, str]

    @classmethod
    def of(cls, one: DocumentStatus) -> Self:
        """Return the public part of a document's status."""
        return cls(
            id=one.document,
            file=one.file,
            title=one.title,
            pages=one.pages,
            state=one.state,
            reason=one.reason,
            arrived_at=one.arrived_at,
            metadata={name: field.day or field.value for name, field in one.metadata.items()},
        )


class DocumentListing(BaseModel):
    """Documents of a channel, by file name."""

    channel: str
    documents: list[DocumentView]


class UploadedFile(BaseModel):
    """Stored file; its document is listed under this name once a scan has found it."""

    channel: str
    file: str
    sha256: str


class FieldProblem(BaseModel):
    """Mistake in a field of a request."""

    pointer: Annotated[str, Field(description="JSON pointer to the field.")]
    detail: str


class Problem(BaseModel):
    """Error (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] = []

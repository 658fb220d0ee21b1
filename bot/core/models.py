"""Value types passed between the stages of a question, and those of model calls."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from storage.chat_models import Turn
from storage.models import (
    Box,
    Channel,
    Figure,
    LivePublication,
    Sections,
    TenantName,
    WordBox,
    section_at,
)

# Asker id of the command line and the local console, which other machines cannot reach.
LOCAL_ASKER = "local"


class Language(StrEnum):
    """A reply language, as its ISO 639-1 code."""

    ENGLISH = "en"
    GERMAN = "de"
    FRENCH = "fr"
    SPANISH = "es"
    ITALIAN = "it"
    PORTUGUESE = "pt"
    DUTCH = "nl"


@dataclass(frozen=True, slots=True)
class Usage:
    """Token usage of a model's reply, as its endpoint counts it."""

    prompt: int
    completion: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt exactly as a model received it."""

    system: str
    user: str
    # A JSON schema for the reply was sent along.
    with_schema: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete model reply: its ``finish_reason`` was "stop"."""

    text: str
    usage: Usage | None


@dataclass(slots=True)
class AuxiliaryCall:
    """A model call that supports an answer without writing it: rewriting a query, judging passages."""

    purpose: str
    # In the order they were sent.
    prompts: list[Prompt] = field(default_factory=list)
    usage: Usage | None = None
    # Error class name if there was no usable reply.
    error: str | None = None


# Auxiliary calls of the current question. A context variable, because the adapters that make them are far
# from the question's trace.
COLLECTED_CALLS: ContextVar[list[AuxiliaryCall]] = ContextVar("auxiliary_calls")


@contextmanager
def auxiliary_call(purpose: str) -> Iterator[AuxiliaryCall]:
    """Yield the record of a model call made in this block, for the caller to fill in.

    It is collected if the question's trace is collecting.
    """
    call = AuxiliaryCall(purpose)
    COLLECTED_CALLS.get([]).append(call)
    try:
        yield call
    except BaseException as error:  # cancelled by its deadline, the call was sent all the same
        call.error = type(error).__name__
        raise


@dataclass(frozen=True, slots=True)
class Synonym:
    """Terms of a question and equivalent terms in its channel."""

    # Analyzed terms of the question.
    terms: tuple[str, ...]
    # Equivalent analyzed terms that a document may contain.
    equivalents: tuple[str, ...]
    # ``said`` as it was written.
    text: str


@dataclass(frozen=True, slots=True)
class Correction:
    """A misspelt word and the word of the channel's vocabulary that is searched for instead."""

    typed: str
    word: str


@dataclass(frozen=True, slots=True)
class AppliedFilter:
    """The document filters of a question, worded for the reply, with the number of matches."""

    conditions: tuple[str, ...]
    # Documents searched; 0: none matched, so all were searched.
    kept: int
    # Of these, undated documents that matched by their arrival date.
    by_arrival: int = 0


@dataclass(frozen=True, slots=True)
class MemberChannel:
    """A channel that the asker is a member of, as the platform confirmed when the question came."""

    channel: Channel
    # Earlier turns of the direct chat about this channel's documents, oldest first.
    history: tuple[Turn, ...] = ()


@dataclass(frozen=True, slots=True)
class AnsweredFrom:
    """The channels that an answer in a direct chat draws on."""

    # The answer is shown again only to members of all these.
    tenants: tuple[TenantName, ...]
    # Display name, if it is a single channel.
    name: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question in one channel; the channel comes from a verified envelope, never from the text."""

    id: str
    text: str
    # The channel whose documents are searched.
    channel: Channel
    asked_at: datetime
    # Filter by document; None: all documents of the channel.
    documents: frozenset[UUID] | None = None
    # ``documents`` only leaves out some kinds, so approved web pages may answer as well.
    is_exclusion: bool = False
    filter: AppliedFilter | None = None
    # The text before filter words were removed from it, if any were.
    unfiltered: str = ""
    # The text as typed, before any rewriting or spelling correction; '' if ``text`` is that.
    typed: str = ""
    # The whole message, if it holds several questions: its keywords open domains of web pages.
    message: str = ""
    # The questions of a message that a model answers as one: each is searched separately.
    subquestions: tuple[str, ...] = ()
    # Several documents that it names and asks about: each is searched separately, in this order.
    compared: tuple[UUID, ...] = ()
    # Earlier turns of its thread, oldest first.
    history: tuple[Turn, ...] = ()
    # Synonyms of its words from the channel's glossary.
    synonyms: tuple[Synonym, ...] = ()
    # Retry of a search that found too little: only filters that a person set still apply.
    is_wide: bool = False
    # Language of the reply.
    language: Language = Language.ENGLISH
    # The direct chat it was asked in, if the documents belong to a library or a channel.
    chat: Channel | None = None
    # The asker's channels, if a direct chat searches those: each is searched separately, and ``channel`` is
    # one of them.
    members: tuple[MemberChannel, ...] = ()
    # Thread id within the channel; None: no thread, no history.
    thread: str | None = None
    # Who asks, in the format of FOOTNOTE_ADMINS, from a verified envelope; '' if unknown.
    asker: str = ""

    @property
    def conversation_channel(self) -> Channel:
        """The channel of the conversation: stores its memory and trace, and takes them along when deleted."""
        return self.chat or self.channel

    @property
    def asked_channels(self) -> tuple[Channel, ...]:
        """All channels searched."""
        return tuple(one.channel for one in self.members) or (self.channel,)

    @property
    def origin(self) -> AnsweredFrom:
        """Source note of an answer from its channel."""
        return AnsweredFrom((self.channel.tenant,), self.channel.name)


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as retrieved for one question."""

    publication: LivePublication
    ordinal: int
    text: str
    first_page: int
    last_page: int
    heading_path: tuple[str, ...]
    # Final relevance, 0-1.
    score: float
    # Raw BM25, higher is better; None if the lexical search did not return it.
    bm25: float | None
    # Cosine similarity; None if the vector search did not return it.
    vector: float | None
    # Analyzed terms of title, headings and text.
    terms: Container[str] = frozenset()
    # Components of the score by name, each 0-1, before weighting.
    parts: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class AnalyzedQuestion:
    """A question's text with its terms, IDF weights and embedding in its channel."""

    text: str
    # Analyzed terms, with repetitions.
    terms: tuple[str, ...]
    # IDF within the channel per term that has weight; 0 for a term in every chunk.
    idf: Mapping[str, float]
    # L2-normalised embedding; None if the channel was searched lexically only.
    vector: Sequence[float] | None
    # Synonyms of its words from the channel's glossary.
    synonyms: tuple[Synonym, ...] = ()
    # Paraphrases by a model, each searched for as well (multi-query).
    paraphrases: tuple[AnalyzedQuestion, ...] = ()
    # Spelling corrections; ``text`` contains the best one for each word.
    corrections: tuple[Correction, ...] = ()
    # The text as typed, which models are asked instead of ``text``; '' if they are the same.
    typed: str = ""
    # Content words, as typed, that occur in no document of the channel.
    unknown: tuple[str, ...] = ()
    # Language of the reply.
    language: Language = Language.ENGLISH


@dataclass(frozen=True, slots=True)
class FoundFigure:
    """A retrieved figure, scored like a passage."""

    publication: LivePublication
    # Index among the figures of its reading, from 0.
    number: int
    bm25: float | None
    vector: float | None


@dataclass(frozen=True, slots=True)
class ChosenFigure:
    """A figure selected for an answer."""

    publication: LivePublication
    figure: Figure
    # Index among the figures of its reading, from 0.
    number: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """A retrieved passage that did not become a candidate."""

    passage: Passage
    # The candidate that it duplicates; None: its rank was too low.
    repeats: Passage | None = None


@dataclass(frozen=True, slots=True)
class OpenedWeb:
    """A domain of approved web pages that keywords in the question opened."""

    domain: str
    # The keywords found in the question.
    keywords: tuple[str, ...]
    # Approved pages that were searched.
    pages: tuple[str, ...] = ()
    # Approved pages whose text was not available yet.
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The result of a retriever."""

    question: AnalyzedQuestion
    # Candidates in final order, at least 20 if there are that many.
    passages: tuple[Passage, ...]
    # Figures retrieved along with them, best first.
    figures: tuple[FoundFigure, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    # Hits dropped because their publication was no longer live after the search.
    not_live: int = 0
    # Tokens embedded for this search.
    embedded: int = 0
    # Domains of web pages that were searched as well.
    web: tuple[OpenedWeb, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage to answer from, with its number in this question."""

    number: int
    passage: Passage
    # (offset, page) of each page start in the passage's text; the first offset is 0.
    page_starts: tuple[tuple[int, int], ...]
    # Bounding boxes by text offset: for citations only, never part of a prompt.
    words: Sequence[WordBox] = ()
    # (offset, headings) of each section, as in a chunk.
    sections: Sections = ()

    def __post_init__(self) -> None:
        if not self.sections:
            object.__setattr__(self, "sections", ((0, self.passage.heading_path),))

    def section_at(self, offset: int) -> tuple[str, ...]:
        """Return the heading path at an offset of the passage's text."""
        return section_at(self.sections, offset)


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that an answerer claims to quote from a passage; trusted only once located."""

    # The passage number that the answerer gave: a hint, not to be trusted.
    passage: int
    text: str
    # Offset in that passage's text, if the answerer copied the words itself.
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a draft with its supporting quotes."""

    text: str
    quotes: tuple[Quote, ...]
    # In a verbatim draft: its text says where the quotes are, and is shown instead of them.
    is_reference: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """An answerer's unverified answer; no claims: it found none."""

    claims: tuple[Claim, ...]
    # The claims are quotes from the documents, not sentences about them.
    verbatim: bool = False
    # False if the model says that the evidence does not answer the question.
    is_sufficient: bool = True
    # The part of the question that the evidence does not answer, in the model's words; '' if none.
    missing: str = ""
    # None: no model wrote it, or its endpoint reports no usage.
    usage: Usage | None = None
    # All prompts sent for it.
    prompts: tuple[Prompt, ...] = ()


@dataclass(frozen=True, slots=True)
class QuotedPart:
    """The sentence, list item or table row of a quote, as the entailment judge reads it."""

    # Document title, file name and the two innermost headings.
    names: tuple[str, ...]
    # Includes the lead-in of its list or the header of its table.
    text: str


@dataclass(frozen=True, slots=True)
class QuotedSentence:
    """A model's sentence with its supporting sources."""

    text: str
    sources: tuple[QuotedPart, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The entailment verdict on the sentences of one answer."""

    # Per sentence: True if its sources fully support it.
    is_supported: Sequence[bool]
    # The part of the question that the supported sentences do not answer; '' if none.
    missing: str = ""


class AnswerState(StrEnum):
    """The outcome of a question."""

    # Written by a model, every sentence verified.
    GROUNDED = "grounded"
    # Like GROUNDED, but a part was dropped or is missing, and the text says so.
    PARTIAL = "partial"
    # Search results without a model: citations only, with no claim that they answer.
    PASSAGES = "passages"
    # Abstention, without citations.
    NOT_FOUND = "not_found"
    # Help or small talk, without documents.
    CHAT = "chat"
    # An engine or model failed and no fallback could answer.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation as shown."""

    number: int
    title: str
    file: str
    # The page with most of the quote; 0 for a web page.
    page: int
    quote: str
    # Bounding boxes of the quote on ``page``; empty if it could not be located.
    boxes: tuple[Box, ...]
    url: str
    # The cited version; unique per document, whereas two documents may have equal paths.
    version_id: int = 0
    # The document's name, unique in its channel, with its version.
    name: str = ""
    # Heading path of the quote, outermost first.
    section: tuple[str, ...] = ()
    # Metadata shown next to the name: SOP id, department, date.
    details: tuple[str, ...] = ()
    # The page's text comes from OCR and may have wrong letters or digits.
    is_ocr: bool = False
    # Host of an approved web page, whose URL is ``file``; '' for a PDF.
    host: str = ""
    # When a web page was fetched, ISO 8601 in UTC.
    fetched: str = ""
    # Row id in ``citation``, for counting how often its link is opened; 0 for web pages.
    citation_id: int = 0

    @property
    def kind(self) -> str:
        """``web`` or ``pdf``, as in JSON output."""
        return "web" if self.host else "pdf"


@dataclass(frozen=True, slots=True)
class AnswerFigure:
    """A figure shown with an answer."""

    file: str
    page: int
    # The document's caption, else a model's description; '' if there is neither.
    caption: str
    box: Box
    # Opens its page with the figure highlighted.
    url: str
    # URL of its picture.
    image: str
    # The [n] of the sentence about it; 0 if there is none.
    number: int = 0
    # The picture shows a table.
    is_table: bool = False


@dataclass(frozen=True, slots=True)
class NearestPage:
    """The closest page if nothing answered the question."""

    file: str
    page: int
    url: str
    # The document's name, as in citations.
    name: str


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A file of the channel that could not be read, with the reason."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Milliseconds:
    """Timings of the parts of an answer."""

    retrieve: int = 0
    answer: int = 0
    total: int = 0
    # Until the first words were shown; equals ``total`` if nothing was streamed.
    first: int = 0


@dataclass(frozen=True, slots=True)
class StageTime:
    """Start and duration of one run of a pipeline stage."""

    name: str
    # Value of ``time.perf_counter()``.
    began: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to a question, independent of the platform."""

    state: AnswerState
    # Has [n] markers; never a link, mention or image.
    text: str
    citations: tuple[Citation, ...] = ()
    figures: tuple[AnswerFigure, ...] = ()
    passages: tuple[Passage, ...] = ()
    nearest: NearestPage | None = None
    unread: tuple[UnreadFile, ...] = ()
    milliseconds: Milliseconds = field(default_factory=Milliseconds)
    # The query searched for, if it differs from the typed text.
    standalone: str = ""
    # Spelling corrections made before the search.
    corrections: tuple[Correction, ...] = ()
    # Words of the question that occur in no document of the channel.
    unknown: tuple[str, ...] = ()
    filter: AppliedFilter | None = None
    # Language of everything but the quotes.
    language: Language = Language.ENGLISH
    # True if a model worded any of it; otherwise every answering sentence is verbatim.
    is_generated: bool = False
    # The channels it draws on, if it was not asked in one of them.
    answered_from: AnsweredFrom | None = None
    # People to ask instead, in the format of FOOTNOTE_ADMINS.
    people: tuple[str, ...] = ()
    # Lines of its text that name the source of the passages below them.
    headings: tuple[str, ...] = ()

    @property
    def channel_name(self) -> str:
        """Display name of the channel that answered; '' if that is self-evident."""
        return self.answered_from.name if self.answered_from else ""


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A notice on a posted answer that a cited document was replaced or withdrawn."""

    line: str
    # Opens the same passage in the newer version; None if there is none.
    page: CitedPage | None


@dataclass(frozen=True, slots=True)
class LocatedQuote:
    """A quote located in the text of a passage."""

    passage: Passage
    start: int
    end: int
    page: int
    # Verbatim text of the passage; an ellipsis separates a list's lead-in from the item.
    quote: str
    boxes: tuple[Box, ...]
    # Heading path at its end, as text before that may only introduce it.
    section: tuple[str, ...]
    # Parts of a quote that crosses a page break, one per page, the main one first.
    parts: tuple[LocatedQuote, ...] = ()


@dataclass(frozen=True, slots=True)
class CitedPage:
    """A source button: all citations of an answer on one page of one document."""

    numbers: tuple[int, ...]
    # ``p. N · name · section``, without the numbers.
    label: str
    # ``Page N of file.pdf``, for clients without buttons.
    fallback: str
    url: str

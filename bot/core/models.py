"""The values that the stages of a question hand to one another, and those of model calls."""

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
    PlacedWord,
    Sections,
    TenantName,
    section_at,
)

# Whoever uses this machine itself: its console, which strangers cannot reach, or its command line.
LOCAL_ASKER = "local"


class Language(StrEnum):
    """A language that replies are written in, as its ISO 639-1 code."""

    ENGLISH = "en"
    GERMAN = "de"
    FRENCH = "fr"
    SPANISH = "es"
    ITALIAN = "it"
    PORTUGUESE = "pt"
    DUTCH = "nl"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a model's reply cost, as its endpoint counts tokens."""

    prompt: int
    completion: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model was sent, word for word."""

    system: str
    user: str
    # A JSON schema of the reply was sent along.
    with_schema: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply: its ``finish_reason`` was "stop"."""

    text: str
    usage: Usage | None


@dataclass(slots=True)
class AuxiliaryCall:
    """A call to a model that writes no answer, but helps one: it words a question, or judges passages."""

    purpose: str
    # All that were sent, in order.
    prompts: list[Prompt] = field(default_factory=list)
    usage: Usage | None = None
    # What came instead of a reply that is of use.
    error: str | None = None


# Those made for the question at hand: by whatever implements a port, far from where its trace is.
COLLECTED_CALLS: ContextVar[list[AuxiliaryCall]] = ContextVar("auxiliary_calls")


@contextmanager
def auxiliary_call(purpose: str) -> Iterator[AuxiliaryCall]:
    """Yield a call that is made in here, to be filled in; collected, if anybody does."""
    call = AuxiliaryCall(purpose)
    COLLECTED_CALLS.get([]).append(call)
    try:
        yield call
    except BaseException as error:  # one that is cut off by its deadline was sent all the same
        call.error = type(error).__name__
        raise


@dataclass(frozen=True, slots=True)
class Synonym:
    """Words of a question, and others that say the same in its channel."""

    # Terms of the question.
    asked: tuple[str, ...]
    # Terms that a document may have instead.
    said: tuple[str, ...]
    # The same as it was written.
    text: str


@dataclass(frozen=True, slots=True)
class Correction:
    """A misspelt word, and a word of the channel's documents that is searched for in its place."""

    typed: str
    word: str


@dataclass(frozen=True, slots=True)
class AppliedFilter:
    """What a question says, in the words of its reply, of the documents that may answer; how many fit."""

    conditions: tuple[str, ...]
    # Documents that were searched; 0: none fits, and all were searched.
    kept: int
    # Of them, those that are undated and fit by the day on which they arrived.
    by_arrival: int = 0


@dataclass(frozen=True, slots=True)
class MemberChannel:
    """A channel of which a platform said, when a question was asked, that its asker is a member."""

    channel: Channel
    # What the direct chat said before of this channel's documents, newest last.
    history: tuple[Turn, ...] = ()


@dataclass(frozen=True, slots=True)
class AnsweredFrom:
    """What a direct chat is shown of the channels that its person is a member of."""

    # All that something is said of: who has left one of them is not shown it again.
    tenants: tuple[TenantName, ...]
    # What people call the channel, where it is one.
    name: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question in one channel. The channel comes from a verified envelope, never from the text."""

    id: str
    text: str
    # Whose documents are searched.
    channel: Channel
    asked_at: datetime
    # Only these may answer; None: every one of the channel.
    documents: frozenset[UUID] | None = None
    # ``documents`` are all but those of kinds that it excludes: what is no document may answer, too.
    is_exclusion: bool = False
    filter: AppliedFilter | None = None
    # Its text with these words, where they were taken out.
    unfiltered: str = ""
    # As its person wrote it: no rewording or correction of ``text`` replaces it. '' where text is that.
    typed: str = ""
    # The whole message where it is one of several questions in it: what opens domains of web pages.
    message: str = ""
    # Several documents that it names and asks about: each is searched by itself, in this order.
    compared: tuple[UUID, ...] = ()
    # What its thread said before, newest last.
    history: tuple[Turn, ...] = ()
    # What else its words are called here.
    synonyms: tuple[Synonym, ...] = ()
    # A second search after one that found too little: only what a person set narrows it.
    is_wide: bool = False
    # What its reply is written in.
    language: Language = Language.ENGLISH
    # Nobody asked it: it was made up to see whether a document answers.
    is_trial: bool = False
    # The direct chat in which it was asked, where the documents are a library's or a channel's.
    chat: Channel | None = None
    # The channels that a direct chat asks, where these are its asker's own: each is searched by itself, and
    # ``channel`` is one of them.
    members: tuple[MemberChannel, ...] = ()
    # Within the channel; None: it stands alone.
    thread: str | None = None
    # Who asks, as FOOTNOTE_ADMINS names people, from a verified envelope; '' where that is not known.
    asker: str = ""

    @property
    def asked_in(self) -> Channel:
        """Whose conversation it belongs to: its memory and its trace are kept there, and go with it."""
        return self.chat or self.channel

    @property
    def asked_channels(self) -> tuple[Channel, ...]:
        """All whose documents are searched."""
        return tuple(one.channel for one in self.members) or (self.channel,)

    @property
    def origin(self) -> AnsweredFrom:
        """What an answer of its channel says of where it comes from."""
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
    # Raw BM25, higher is better; None when the words leg did not find it.
    bm25: float | None
    # Cosine; None when the vector leg did not find it.
    vector: float | None
    # The analyzer's, of title, headings and text.
    terms: Container[str] = frozenset()
    # What its score is made of, each part 0-1 and by its name, before weights.
    parts: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class AnalyzedQuestion:
    """A question's text with what the search knows of it in its channel."""

    text: str
    # The analyzer's terms, repeated as they occur.
    terms: tuple[str, ...]
    # How rare each term that weighs something is in the channel: 0 for one that every chunk holds.
    idf: Mapping[str, float]
    # L2-normalised embedding; None when the channel was searched by words alone.
    vector: Sequence[float] | None
    # What else its words are called here.
    synonyms: tuple[Synonym, ...] = ()
    # The same question in a model's words, each searched for beside it.
    wordings: tuple[AnalyzedQuestion, ...] = ()
    # What was misspelt; ``text`` has the first word of each.
    corrections: tuple[Correction, ...] = ()
    # As its person wrote it: what a model is asked, beside what was searched for. '' where text is that.
    typed: str = ""
    # Its content words, as typed, that stand in no document of the channel.
    unknown: tuple[str, ...] = ()
    # What its reply is written in.
    language: Language = Language.ENGLISH


@dataclass(frozen=True, slots=True)
class FoundFigure:
    """A figure that a search came upon."""

    publication: LivePublication
    # Counted from 0 among the figures of its reading.
    number: int
    bm25: float | None
    # Scores as of a passage.
    vector: float | None


@dataclass(frozen=True, slots=True)
class ChosenFigure:
    """A figure that an answer shows."""

    publication: LivePublication
    figure: Figure
    # Counted from 0 among the figures of its reading.
    number: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """A passage that was found and is no candidate."""

    passage: Passage
    # The candidate that says the same; None: it ranked too low.
    repeats: Passage | None = None


@dataclass(frozen=True, slots=True)
class OpenedWeb:
    """A domain of approved web pages that a question opened."""

    domain: str
    # Those that the question holds.
    keywords: tuple[str, ...]
    # The approved pages that were searched.
    pages: tuple[str, ...] = ()
    # Those of which no text was there yet.
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a retriever found."""

    question: AnalyzedQuestion
    # Candidates in final order, at least 20 when there are that many.
    passages: tuple[Passage, ...]
    # Those found beside them, the best first.
    figures: tuple[FoundFigure, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    # Hits that fell, because their publication was not live after the search.
    not_live: int = 0
    # Tokens of what was embedded for it.
    embedded: int = 0
    # Domains of web pages that it was looked for in, too.
    web: tuple[OpenedWeb, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage the answerer reads, with the number it goes by in this question."""

    number: int
    passage: Passage
    # (offset, page) wherever a page begins in the passage's text; the first offset is 0.
    page_starts: tuple[tuple[int, int], ...]
    # The text's offset -> box map: for citations only, never part of a prompt.
    words: Sequence[PlacedWord] = ()
    # (offset, headings) of each section, as in a chunk.
    sections: Sections = ()

    def __post_init__(self) -> None:
        if not self.sections:
            object.__setattr__(self, "sections", ((0, self.passage.heading_path),))

    def section_at(self, offset: int) -> tuple[str, ...]:
        """Return the headings above an offset of the passage's text."""
        return section_at(self.sections, offset)


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that an answerer says stand in one passage; believed only when they are located."""

    # The number of the passage the answerer named: a hint, never the truth.
    passage: int
    text: str
    # Offset in that passage's text, from an answerer that copied the words itself.
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a draft with the quotes that carry it."""

    text: str
    quotes: tuple[Quote, ...]
    # Of a verbatim draft: its text tells where its quotes stand, and is shown in their place.
    is_reference: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """What an answerer wrote before anybody checked it. No claims: it found no answer."""

    claims: tuple[Claim, ...]
    # The claims are quotes from the documents, not sentences about them.
    verbatim: bool = False
    # False where its model says that the evidence does not answer the question.
    is_sufficient: bool = True
    # What of the question has no answer in the evidence, as its model says; '' where all of it has.
    missing: str = ""
    # None: no model wrote it, or its endpoint does not say.
    usage: Usage | None = None
    # All that a model was sent for it.
    prompts: tuple[Prompt, ...] = ()


@dataclass(frozen=True, slots=True)
class QuotedPart:
    """A sentence, item or row that a quote stands in, as the judge of meaning reads it."""

    # Its document's title and file, and the two innermost headings above it.
    names: tuple[str, ...]
    # With the lead of its list or the header of its table.
    text: str


@dataclass(frozen=True, slots=True)
class QuotedSentence:
    """A model's sentence, and the places that it rests on."""

    text: str
    sources: tuple[QuotedPart, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict on the sentences of one answer."""

    # For each sentence: True if its sources bear it out entirely.
    is_borne_out: Sequence[bool]
    # What of the question the sentences that are borne out leave unanswered; '' where nothing.
    missing: str = ""


class AnswerState(StrEnum):
    """How an answer ended."""

    # A model answered, and all that it wrote is verified.
    GROUNDED = "grounded"
    # The same, but something was dropped or is missing, and the text says so.
    PARTIAL = "partial"
    # A search without a model: the citations are what it shows, and nothing claims that they answer.
    PASSAGES = "passages"
    # A plain no: it cites nothing.
    NOT_FOUND = "not_found"
    # Help, greetings: no documents involved.
    CHAT = "chat"
    # An engine or model failed and no fallback could answer.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Citation:
    """A passage as shown."""

    number: int
    title: str
    file: str
    # Where most of the quote lies; 0: it is a web page, which has none.
    page: int
    quote: str
    # The quote's rectangles on ``page``; empty when nothing could be located.
    boxes: tuple[Box, ...]
    url: str
    # The version that holds it; no two documents share one, though their paths may be equal.
    version_id: int = 0
    # What the document is called in its channel, where no other one is called so; with its version.
    name: str = ""
    # The headings that the quote stands under, from the top.
    section: tuple[str, ...] = ()
    # What the document says of itself beside its name: SOP id, department, day.
    details: tuple[str, ...] = ()
    # The page's text was read from its picture, and may be wrong in a letter or a digit.
    is_ocr: bool = False
    # Of an approved web page, whose address is ``file``; '' of a PDF.
    host: str = ""
    # When a web page was fetched, in ISO 8601 and UTC.
    fetched: str = ""
    # By which it is kept, and openings of its link are counted; 0 of a web page.
    citation_id: int = 0

    @property
    def kind(self) -> str:
        """``web`` or ``pdf``, as other programs are told."""
        return "web" if self.host else "pdf"


@dataclass(frozen=True, slots=True)
class AnswerFigure:
    """A figure shown with an answer."""

    file: str
    page: int
    # The document's own words for it, else what a model says of it; '' where neither is known.
    caption: str
    box: Box
    # Opens its page with the figure marked.
    url: str
    # URL of its picture.
    image: str
    # The [n] of the sentence that speaks of it; 0: there is none.
    number: int = 0
    # It is the picture of a table.
    is_table: bool = False


@dataclass(frozen=True, slots=True)
class NearestPage:
    """The page that came nearest when nothing answered the question."""

    file: str
    page: int
    url: str
    # Of its document, as sources call it in its channel.
    name: str


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A file of the channel that could not be read, and why."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Milliseconds:
    """How long the parts of an answer took."""

    retrieve: int = 0
    answer: int = 0
    total: int = 0
    # Until the first words were shown: as the total, where nothing was shown before all of it.
    first: int = 0


@dataclass(frozen=True, slots=True)
class StageTime:
    """When a stage of answering was gone through."""

    name: str
    # By ``time.perf_counter``.
    began: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person gets, whatever the platform."""

    state: AnswerState
    # With [n] marks; never a link, mention or image.
    text: str
    citations: tuple[Citation, ...] = ()
    figures: tuple[AnswerFigure, ...] = ()
    passages: tuple[Passage, ...] = ()
    nearest: NearestPage | None = None
    unread: tuple[UnreadFile, ...] = ()
    milliseconds: Milliseconds = field(default_factory=Milliseconds)
    # What was searched for, when it is not what was typed.
    standalone: str = ""
    # Words that were taken for misspelt, and what was searched for in their place.
    corrections: tuple[Correction, ...] = ()
    # Words of the question that stand in no document of the channel.
    unknown: tuple[str, ...] = ()
    filter: AppliedFilter | None = None
    # What is said beside the documents' own words.
    language: Language = Language.ENGLISH
    # A model worded some of it; else all that answers is quoted word for word.
    is_generated: bool = False
    # The channels that it shows something of, where it is not asked in one of them.
    answered_from: AnsweredFrom | None = None
    # Whom it names to ask, as FOOTNOTE_ADMINS names people.
    people: tuple[str, ...] = ()
    # Lines of its text that name the places of the passages below them.
    headings: tuple[str, ...] = ()

    @property
    def channel_name(self) -> str:
        """What people call the channel that it comes from; '' where that goes without saying."""
        return self.answered_from.name if self.answered_from else ""


@dataclass(frozen=True, slots=True)
class SourceChange:
    """What a posted answer says of a cited document that was replaced or withdrawn since."""

    line: str
    # Opens the same passage in the newer version; None: there is none.
    page: CitedPage | None


@dataclass(frozen=True, slots=True)
class LocatedQuote:
    """A quote found in the text of a passage."""

    passage: Passage
    start: int
    end: int
    page: int
    # The passage's own words, as they stand there; a dotted gap between an item's lead and the item.
    quote: str
    boxes: tuple[Box, ...]
    # The headings above its end: what comes before may only introduce it.
    section: tuple[str, ...]
    # Parts of a quote that runs over a page's end, one for each page, the main one first.
    parts: tuple[LocatedQuote, ...] = ()


@dataclass(frozen=True, slots=True)
class CitedPage:
    """One source button: all citations of an answer that stand on one page of one document."""

    numbers: tuple[int, ...]
    # ``p. N · name · section``, without the numbers.
    label: str
    # ``Page N of file.pdf``, where a button cannot be shown.
    fallback: str
    url: str

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

LOCAL_ASKER = "local"
"""Whoever uses this machine itself: its console, which strangers cannot reach, or its command line."""


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
    with_schema: bool
    """A JSON schema of the reply was sent along."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply: its ``finish_reason`` was "stop"."""

    text: str
    usage: Usage | None


@dataclass(slots=True)
class AuxiliaryCall:
    """A call to a model that writes no answer, but helps one: it words a question, or judges passages."""

    purpose: str
    prompts: list[Prompt] = field(default_factory=list)
    """All that were sent, in order."""
    usage: Usage | None = None
    error: str | None = None
    """What came instead of a reply that is of use."""


COLLECTED_CALLS: ContextVar[list[AuxiliaryCall]] = ContextVar("auxiliary_calls")
"""Those made for the question at hand: by whatever implements a port, far from where its trace is."""


@contextmanager
def auxiliary_call(purpose: str) -> Iterator[AuxiliaryCall]:
    """A call that is made in here, to be filled in; collected, if anybody does."""
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

    asked: tuple[str, ...]
    """Terms of the question."""
    said: tuple[str, ...]
    """Terms that a document may have instead."""
    text: str
    """The same as it was written."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A misspelt word, and a word of the channel's documents that is searched for in its place."""

    typed: str
    word: str


@dataclass(frozen=True, slots=True)
class AppliedFilter:
    """What a question says, in the words of its reply, of the documents that may answer; how many fit."""

    conditions: tuple[str, ...]
    kept: int
    """Documents that were searched; 0: none fits, and all were searched."""
    by_arrival: int = 0
    """Of them, those that are undated and fit by the day on which they arrived."""


@dataclass(frozen=True, slots=True)
class MemberChannel:
    """A channel of which a platform said, when a question was asked, that its asker is a member."""

    channel: Channel
    history: tuple[Turn, ...] = ()
    """What the direct chat said before of this channel's documents, newest last."""


@dataclass(frozen=True, slots=True)
class AnsweredFrom:
    """What a direct chat is shown of the channels that its person is a member of."""

    tenants: tuple[TenantName, ...]
    """All that something is said of: who has left one of them is not shown it again."""
    name: str = ""
    """What people call the channel, where it is one."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question in one channel. The channel comes from a verified envelope, never from the text."""

    id: str
    text: str
    channel: Channel
    """Whose documents are searched."""
    asked_at: datetime
    documents: frozenset[UUID] | None = None
    """Only these may answer; None: every one of the channel."""
    is_exclusion: bool = False
    """``documents`` are all but those of kinds that it excludes: what is no document may answer, too."""
    filter: AppliedFilter | None = None
    unfiltered: str = ""
    """Its text with these words, where they were taken out."""
    # As its person wrote it: no rewording or correction of ``text`` replaces it. '' where text is that.
    typed: str = ""
    # The whole message where it is one of several questions in it: what opens domains of web pages.
    message: str = ""
    compared: tuple[UUID, ...] = ()
    """Several documents that it names and asks about: each is searched by itself, in this order."""
    history: tuple[Turn, ...] = ()
    """What its thread said before, newest last."""
    synonyms: tuple[Synonym, ...] = ()
    """What else its words are called here."""
    is_wide: bool = False
    """A second search after one that found too little: only what a person set narrows it."""
    language: Language = Language.ENGLISH
    """What its reply is written in."""
    is_trial: bool = False
    """Nobody asked it: it was made up to see whether a document answers."""
    chat: Channel | None = None
    """The direct chat in which it was asked, where the documents are a library's or a channel's."""
    members: tuple[MemberChannel, ...] = ()
    """The channels that a direct chat asks, where these are its asker's own: each is searched by itself, and
    ``channel`` is one of them."""
    thread: str | None = None
    """Within the channel; None: it stands alone."""
    asker: str = ""
    """Who asks, as FOOTNOTE_ADMINS names people, from a verified envelope; '' where that is not known."""

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
    score: float
    """Final relevance, 0-1."""
    bm25: float | None
    """Raw BM25, higher is better; None when the words leg did not find it."""
    vector: float | None
    """Cosine; None when the vector leg did not find it."""
    terms: Container[str] = frozenset()
    """The analyzer's, of title, headings and text."""
    parts: tuple[tuple[str, float], ...] = ()
    """What its score is made of, each part 0-1 and by its name, before weights."""


@dataclass(frozen=True, slots=True)
class AnalyzedQuestion:
    """A question's text with what the search knows of it in its channel."""

    text: str
    terms: tuple[str, ...]
    """The analyzer's terms, repeated as they occur."""
    idf: Mapping[str, float]
    """How rare each term that weighs something is in the channel: 0 for one that every chunk holds."""
    vector: Sequence[float] | None
    """L2-normalised embedding; None when the channel was searched by words alone."""
    synonyms: tuple[Synonym, ...] = ()
    """What else its words are called here."""
    wordings: tuple[AnalyzedQuestion, ...] = ()
    """The same question in a model's words, each searched for beside it."""
    corrections: tuple[Correction, ...] = ()
    """What was misspelt; ``text`` has the first word of each."""
    # As its person wrote it: what a model is asked, beside what was searched for. '' where text is that.
    typed: str = ""
    unknown: tuple[str, ...] = ()
    """Its content words, as typed, that stand in no document of the channel."""
    language: Language = Language.ENGLISH
    """What its reply is written in."""


@dataclass(frozen=True, slots=True)
class FoundFigure:
    """A figure that a search came upon."""

    publication: LivePublication
    number: int
    """Counted from 0 among the figures of its reading."""
    bm25: float | None
    vector: float | None
    """Scores as of a passage."""


@dataclass(frozen=True, slots=True)
class ChosenFigure:
    """A figure that an answer shows."""

    publication: LivePublication
    figure: Figure
    number: int
    """Counted from 0 among the figures of its reading."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A passage that was found and is no candidate."""

    passage: Passage
    repeats: Passage | None = None
    """The candidate that says the same; None: it ranked too low."""


@dataclass(frozen=True, slots=True)
class OpenedWeb:
    """A domain of approved web pages that a question opened."""

    domain: str
    keywords: tuple[str, ...]
    """Those that the question holds."""
    pages: tuple[str, ...] = ()
    """The approved pages that were searched."""
    missing: tuple[str, ...] = ()
    """Those of which no text was there yet."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a retriever found."""

    question: AnalyzedQuestion
    passages: tuple[Passage, ...]
    """Candidates in final order, at least 20 when there are that many."""
    figures: tuple[FoundFigure, ...] = ()
    """Those found beside them, the best first."""
    rejected: tuple[Rejected, ...] = ()
    not_live: int = 0
    """Hits that fell, because their publication was not live after the search."""
    embedded: int = 0
    """Tokens of what was embedded for it."""
    web: tuple[OpenedWeb, ...] = ()
    """Domains of web pages that it was looked for in, too."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage the answerer reads, with the number it goes by in this question."""

    number: int
    passage: Passage
    page_starts: tuple[tuple[int, int], ...]
    """(offset, page) wherever a page begins in the passage's text; the first offset is 0."""
    words: Sequence[PlacedWord] = ()
    """The text's offset -> box map: for citations only, never part of a prompt."""
    sections: Sections = ()
    """(offset, headings) of each section, as in a chunk."""

    def __post_init__(self) -> None:
        if not self.sections:
            object.__setattr__(self, "sections", ((0, self.passage.heading_path),))

    def section_at(self, offset: int) -> tuple[str, ...]:
        """Return the headings above an offset of the passage's text."""
        return section_at(self.sections, offset)


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that an answerer says stand in one passage; believed only when they are located."""

    passage: int
    """The number of the passage the answerer named: a hint, never the truth."""
    text: str
    start: int | None = None
    """Offset in that passage's text, from an answerer that copied the words itself."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a draft with the quotes that carry it."""

    text: str
    quotes: tuple[Quote, ...]
    is_reference: bool = False
    """Of a verbatim draft: its text tells where its quotes stand, and is shown in their place."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What an answerer wrote before anybody checked it. No claims: it found no answer."""

    claims: tuple[Claim, ...]
    verbatim: bool = False
    """The claims are quotes from the documents, not sentences about them."""
    is_sufficient: bool = True
    """False where its model says that the evidence does not answer the question."""
    # What of the question has no answer in the evidence, as its model says; '' where all of it has.
    missing: str = ""
    usage: Usage | None = None
    """None: no model wrote it, or its endpoint does not say."""
    prompts: tuple[Prompt, ...] = ()
    """All that a model was sent for it."""


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
    page: int
    """Where most of the quote lies; 0: it is a web page, which has none."""
    quote: str
    boxes: tuple[Box, ...]
    """The quote's rectangles on ``page``; empty when nothing could be located."""
    url: str
    version_id: int = 0
    """The version that holds it; no two documents share one, though their paths may be equal."""
    name: str = ""
    """What the document is called in its channel, where no other one is called so; with its version."""
    section: tuple[str, ...] = ()
    """The headings that the quote stands under, from the top."""
    details: tuple[str, ...] = ()
    """What the document says of itself beside its name: SOP id, department, day."""
    is_ocr: bool = False
    """The page's text was read from its picture, and may be wrong in a letter or a digit."""
    host: str = ""
    """Of an approved web page, whose address is ``file``; '' of a PDF."""
    fetched: str = ""
    """When a web page was fetched, in ISO 8601 and UTC."""
    citation_id: int = 0
    """By which it is kept, and openings of its link are counted; 0 of a web page."""

    @property
    def kind(self) -> str:
        """``web`` or ``pdf``, as other programs are told."""
        return "web" if self.host else "pdf"


@dataclass(frozen=True, slots=True)
class AnswerFigure:
    """A figure shown with an answer."""

    file: str
    page: int
    caption: str
    """The document's own words for it, else what a model says of it; '' where neither is known."""
    box: Box
    url: str
    """Opens its page with the figure marked."""
    image: str
    """URL of its picture."""
    number: int = 0
    """The [n] of the sentence that speaks of it; 0: there is none."""
    is_table: bool = False
    """It is the picture of a table."""


@dataclass(frozen=True, slots=True)
class NearestPage:
    """The page that came nearest when nothing answered the question."""

    file: str
    page: int
    url: str
    name: str
    """Of its document, as sources call it in its channel."""


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
    first: int = 0
    """Until the first words were shown: as the total, where nothing was shown before all of it."""


@dataclass(frozen=True, slots=True)
class StageTime:
    """When a stage of answering was gone through."""

    name: str
    began: float
    """By ``time.perf_counter``."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person gets, whatever the platform."""

    state: AnswerState
    text: str
    """With [n] marks; never a link, mention or image."""
    citations: tuple[Citation, ...] = ()
    figures: tuple[AnswerFigure, ...] = ()
    passages: tuple[Passage, ...] = ()
    nearest: NearestPage | None = None
    unread: tuple[UnreadFile, ...] = ()
    milliseconds: Milliseconds = field(default_factory=Milliseconds)
    standalone: str = ""
    """What was searched for, when it is not what was typed."""
    corrections: tuple[Correction, ...] = ()
    """Words that were taken for misspelt, and what was searched for in their place."""
    unknown: tuple[str, ...] = ()
    """Words of the question that stand in no document of the channel."""
    filter: AppliedFilter | None = None
    language: Language = Language.ENGLISH
    """What is said beside the documents' own words."""
    is_generated: bool = False
    """A model worded some of it; else all that answers is quoted word for word."""
    answered_from: AnsweredFrom | None = None
    """The channels that it shows something of, where it is not asked in one of them."""
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
    page: CitedPage | None
    """Opens the same passage in the newer version; None: there is none."""


@dataclass(frozen=True, slots=True)
class LocatedQuote:
    """A quote found in the text of a passage."""

    passage: Passage
    start: int
    end: int
    page: int
    quote: str
    """The passage's own words, as they stand there; a dotted gap between an item's lead and the item."""
    boxes: tuple[Box, ...]
    section: tuple[str, ...]
    """The headings above its end: what comes before may only introduce it."""
    parts: tuple[LocatedQuote, ...] = ()
    """Parts of a quote that runs over a page's end, one for each page, the main one first."""


@dataclass(frozen=True, slots=True)
class CitedPage:
    """One source button: all citations of an answer that stand on one page of one document."""

    numbers: tuple[int, ...]
    label: str
    """``p. N · name · section``, without the numbers."""
    fallback: str
    """``Page N of file.pdf``, where a button cannot be shown."""
    url: str

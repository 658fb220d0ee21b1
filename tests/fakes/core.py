"""Small real values for tests of the core, and fakes of its ports."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import numpy as np

from bot.answer_settings import AnswerSettings
from bot.answers.citations.citations import CitationService
from bot.answers.document_outline import DocumentOutlines
from bot.answers.generation.answer_writer import AnswerWriter
from bot.answers.generation.entailment import Entailment
from bot.answers.generation.extractive import ExtractiveAnswerer
from bot.answers.generation.judge import Judge
from bot.answers.pipeline import Answering
from bot.answers.retrieval.hybrid_retriever import (
    HybridRetriever,
    QueryExpansionRetriever,
    inverse_frequency,
)
from bot.answers.rewriting.query_rewriting import FollowUpRewriter, ModelRewriter
from bot.answers.understanding.question_terms import weighted_terms
from bot.answers.understanding.spelling_correction import SpellingCorrector
from bot.answers.verification.claims import (
    JudgedClaim,
    VerifiedDraft,
    join_sentences,
    locate_all,
    number_quotes,
    unique_quotes,
    verify,
)
from bot.chat.commands.chat_commands import ChatCommands
from bot.core.errors import ModelReplyUnusable
from bot.core.models import (
    AnalyzedQuestion,
    Claim,
    Draft,
    Evidence,
    Language,
    LocatedQuote,
    Passage,
    Question,
)
from bot.core.ports import Generator, OnClaim
from bot.core.wording import reply_words
from storage.chat_models import GlossaryEntry
from storage.index.base import Hit, PendingVector
from storage.models import (
    Box,
    Channel,
    ChannelKey,
    Chunk,
    CitationRecord,
    CitedPlace,
    DocumentStatus,
    Figure,
    LivePublication,
    Platform,
    Rung,
    WordBox,
)
from storage.text.analyzer import analyze, index_terms
from storage.text.token_counts import count_tokens

WORDS = reply_words(Language.ENGLISH)
ASKED_AT = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def make_channel(name: str = "it") -> Channel:
    return Channel(1, ChannelKey(Platform.LOCAL, "", name).tenant, Platform.LOCAL, name, 0)


def make_publication(file: str = "sop-it-04.pdf", title: str = "Backup and Recovery") -> LivePublication:
    return LivePublication(
        id=uuid5(NAMESPACE_URL, file),
        channel_id=1,
        document_id=uuid5(NAMESPACE_URL, "document" + file),
        version_id=sum(file.encode()),
        reading_id=uuid5(NAMESPACE_URL, "reading" + file),
        sha256="0" * 64,
        rung=Rung.FULL,
        file=file,
        title=title,
        pages=2,
        chunks=100,
    )


def place_words(text: str, page_starts: Sequence[tuple[int, int]]) -> tuple[WordBox, ...]:
    """Return every word in its own box: a line per line of text, an em of 0.01."""
    words = []
    for start, end in _words(text):
        page = [page for offset, page in page_starts if offset <= start][-1]
        line = text.count("\n", 0, start)
        column = start - (text.rfind("\n", 0, start) + 1)
        box = Box(column / 1000, line / 100, (column + end - start) / 1000, (line + 0.8) / 100)
        words.append(WordBox(start, end, page, line, box))
    return tuple(words)


def _words(text: str) -> list[tuple[int, int]]:
    at, found = 0, []
    for word in text.split():
        at = text.index(word, at)
        found.append((at, at + len(word)))
        at += len(word)
    return found


def make_passage(
    text: str, *, file: str = "sop-it-04.pdf", title: str = "Backup and Recovery", ordinal: int = 0,
    page: int = 1, last_page: int | None = None, score: float = 1.0, vector: float | None = None,
    heading_path: tuple[str, ...] = (),
) -> Passage:  # fmt: skip
    return Passage(
        make_publication(file, title),
        ordinal,
        text,
        page,
        last_page or page,
        heading_path,
        score,
        1.0,
        vector,
        frozenset(index_terms(title, heading_path, text).split()),
    )


def make_evidence(
    *passages: Passage, page_starts: tuple[tuple[int, int], ...] | None = None
) -> list[Evidence]:
    return [
        Evidence(
            number,
            passage,
            starts := page_starts or ((0, passage.first_page),),
            place_words(passage.text, starts),
        )
        for number, passage in enumerate(passages, start=1)
    ]


def ask(text: str, *corpus: str, vector: Sequence[float] | None = None) -> AnalyzedQuestion:
    """Return a question as analyzed in a channel with these texts."""
    terms = analyze(text)
    texts = [set(analyze(other)) for other in corpus]
    holding = {term: sum(term in held for held in texts) for term in terms if term in weighted_terms(text)}
    idf = {term: inverse_frequency(len(texts), number) for term, number in holding.items()}
    return AnalyzedQuestion(text, tuple(terms), idf, vector)


@dataclass(frozen=True)
class Written:
    """A verified draft as displayed."""

    text: str
    cited: tuple[LocatedQuote, ...]
    faults: tuple[str, ...]


def verify_quotes(draft: Draft, evidence: Sequence[Evidence]) -> Written:
    """Return what verification leaves of a verbatim draft, a line per claim."""
    verified = verify(draft, evidence)
    lines, cited = number_quotes(verified.claims)
    return Written("\n".join(lines), cited, verified.faults)


def judge(claim: Claim, evidence: Sequence[Evidence], entailment: Entailment) -> JudgedClaim:
    """Judge a claim by the lexical entailment of its quotes."""
    places = locate_all(claim, evidence)
    return JudgedClaim(claim, places, entailment.check(claim, unique_quotes(places)))


def verify_sentences(draft: Draft, evidence: Sequence[Evidence], question: str = "") -> Written:
    """Return what lexical entailment leaves of a model's draft."""
    asked = ask(question, *(item.passage.text for item in evidence))
    entailment = Entailment(asked, evidence)
    verified = VerifiedDraft(tuple(judge(claim, evidence, entailment) for claim in draft.claims))
    lines, cited = number_quotes(verified.claims, by_page=True)
    return Written(join_sentences(lines), cited, verified.faults)


class HashEmbedder:
    """Embeds a text as its normalized term counts: equal words, equal meaning."""

    def count(self, text: str) -> int:
        return len(analyze(text))

    async def aembed(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in enumerate(texts):
            for term in analyze(text):
                vectors[row, sum(term.encode()) * 31 % 64] += 1
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(norms == 0, 1, norms)


@dataclass
class Found:
    words: list[Hit]
    vectors: list[Hit]
    publications: dict[UUID, LivePublication]
    words_only: frozenset[UUID] = frozenset()
    not_live: int = 0


@dataclass
class Shelf:
    """A channel's chunks in memory: searched by counting shared terms, and read back with their boxes."""

    passages: list[Passage] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    error: Exception | None = None
    has_vectors: bool = True
    # Files with figures; each has all of them.
    illustrated: tuple[str, ...] = ("sop-it-04.pdf",)
    # Terms whose frequencies were requested.
    counted: set[str] = field(default_factory=set)

    async def search(
        self, channel: Channel, terms: Sequence[str], vector: PendingVector | None,
        groups: tuple[frozenset[str], ...] = (), *, limit: int,
    ) -> Found:  # fmt: skip
        if self.error:
            raise self.error
        figures = [
            self._as_passage(*one) for one in itertools.product(range(len(self.figures)), self.illustrated)
        ]
        held = [*([] if groups else self.passages), *figures]
        words = [self._hit(passage, self._overlap(passage, terms)) for passage in held]
        vectors = []
        if self.has_vectors and vector is not None and held:
            embedded = await HashEmbedder().aembed([passage.text for passage in held])
            cosines = embedded @ np.asarray(await vector)
            vectors = [self._hit(*pair) for pair in zip(held, map(float, cosines), strict=True)]
        return Found(
            _best([hit for hit in words if hit.score], limit),
            _best(vectors, limit),
            {passage.publication.id: passage.publication for passage in held},
        )

    async def document_frequencies(
        self, channel: Channel, terms: Collection[str]
    ) -> tuple[int, dict[str, int]]:
        self.counted.update(terms)
        held = [set(analyze(passage.text)) for passage in self.passages]
        return len(held), {term: sum(term in one for one in held) for term in terms}

    async def chunks_at(self, places: Sequence[tuple[UUID, int]]) -> list[Chunk]:
        """Return the chunks; those that no passage is made of are empty."""
        held = {(one.publication.reading_id, one.ordinal): one for one in reversed(self.passages)}
        return [_as_chunk(held.get(place) or make_passage("", ordinal=place[1])) for place in places]

    async def figure(self, reading_id: UUID, number: int) -> Figure:
        return self.figures[number]

    def _as_passage(self, number: int, file: str) -> Passage:
        """Return a figure as indexed, after its publication's chunks."""
        figure, publication = self.figures[number], make_publication(file)
        passage = make_passage(figure.embedding_text, page=figure.page)
        return replace(passage, publication=publication, ordinal=publication.chunks + number)

    @staticmethod
    def _overlap(passage: Passage, terms: Sequence[str]) -> float:
        held = analyze(passage.publication.title + " " + passage.text)
        return float(sum(term in held for term in terms))

    @staticmethod
    def _hit(passage: Passage, score: float) -> Hit:
        return Hit(
            passage.publication.id, passage.ordinal, passage.text, passage.first_page, passage.last_page,
            passage.heading_path, score, " ".join(passage.terms),
        )  # fmt: skip


def _as_chunk(passage: Passage) -> Chunk:
    text, starts = passage.text, ((0, passage.first_page),)
    words = place_words(text, starts)
    return Chunk(passage.ordinal, text, count_tokens(text), passage.heading_path, words, starts)


def _best(hits: list[Hit], limit: int) -> list[Hit]:
    return sorted(hits, key=lambda hit: -hit.score)[:limit]


@dataclass
class Register:
    """An in-memory store of citations and links that also lists the channel's documents."""

    statuses: list[DocumentStatus] = field(default_factory=list)
    kept: list[CitationRecord] = field(default_factory=list)
    # Number of reads of the document list.
    reads: int = 0
    # Live publications, for lookups of single documents.
    publications: list[LivePublication] = field(default_factory=list)

    async def add(self, channel_id: int, shown: Sequence[CitedPlace]) -> Sequence[CitationRecord]:
        for one in shown:
            placed = tuple(Box(*box) for box in one.boxes)
            number = len(self.kept) + 1
            self.kept.append(
                CitationRecord(number, channel_id, one.version_id, one.page, one.quote, placed, ASKED_AT)
            )
        return self.kept[len(self.kept) - len(shown) :]

    def page_url(self, channel: Channel, citation: CitationRecord) -> str:
        return f"https://example.test/v/{channel.id}-{citation.id}"

    def figure_url(self, channel: Channel, citation: CitationRecord) -> str:
        return f"https://example.test/f/{channel.id}-{citation.id}"

    async def has_live(self, channel_id: int) -> bool:
        return any(status.state == "live" for status in self.statuses)

    async def live_document(self, channel_id: int, document: UUID) -> LivePublication | None:
        return next((one for one in self.publications if one.document_id == document), None)

    async def live_by_name(
        self, channel_id: int, titles: Collection[str], files: Collection[str]
    ) -> list[LivePublication]:
        return [one for one in self.publications if one.title in titles or one.file in files]

    async def live_versions(self, channel_id: int, versions: Collection[int]) -> list[LivePublication]:
        return [one for one in self.publications if one.version_id in versions]

    async def active_documents(self, channel_id: int) -> list[DocumentStatus]:
        self.reads += 1
        return [one for one in self.statuses if one.state != "deleted"]


def make_status(file: str, state: str = "live", reason: str | None = None) -> DocumentStatus:
    rung = Rung.FULL if state == "live" else None
    return DocumentStatus("it", uuid5(NAMESPACE_URL, file), "0" * 64, file, "", 2, state, rung, reason)


class BrokenOff(ModelReplyUnusable):
    """A reply that is cut off after these claims."""

    def __init__(self, *claims: Claim) -> None:
        super().__init__("broken off")
        self.claims = claims


class Looker:
    """A listener that records everything shown to it."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def show(self, text: str) -> None:
        self.seen.append(text)


class Scripted:
    """A model that returns prepared drafts, or raises prepared errors, in turn."""

    def __init__(self, *turns: Draft | Exception) -> None:
        self.turns = list(turns)
        self.asked: list[AnalyzedQuestion] = []
        self.stood: list[tuple[str, ...]] = []

    async def draft(
        self,
        question: AnalyzedQuestion,
        evidence: Sequence[Evidence],
        *,
        verified_sentences: Sequence[str] = (),
        on_claim: OnClaim | None = None,
    ) -> Draft:
        self.asked.append(question)
        self.stood.append(tuple(verified_sentences))
        turn = self.turns.pop(0)
        for claim in getattr(turn, "claims", ()) if on_claim else ():
            on_claim(claim)
        if isinstance(turn, Exception):
            raise turn
        return turn


@dataclass
class Vocabulary:
    """The vocabulary of each channel; counts its requests."""

    words_of: Mapping[int, Mapping[str, int]]
    error: Exception | None = None
    asked: int = 0

    async def words(self, channel_id: int) -> Mapping[str, int]:
        self.asked += 1
        if self.error:
            raise self.error
        return self.words_of.get(channel_id, {})


@dataclass
class Book:
    """A glossary in memory."""

    known: tuple[GlossaryEntry, ...] = ()

    async def entries(self, channel: Channel) -> Sequence[GlossaryEntry]:
        return self.known


@dataclass
class World:
    """A channel with everything that answering needs."""

    shelf: Shelf
    register: Register
    ids: itertools.count[int] = field(default_factory=itertools.count)
    judge: Judge = field(default_factory=lambda: Judge(answer_probability=0.53))

    def answering(
        self,
        *models: Generator,
        vocabulary: Vocabulary | None = None,
        rewriter: ModelRewriter | None = None,
        commands: ChatCommands | None = None,
        **more: Any,
    ) -> Answering:
        """Return an Answering; ``vocabulary`` is for spelling correction, ``rewriter`` for follow-ups.

        ``more``: settings, and further parts.
        """
        chosen = {name: more.pop(name) for name in AnswerSettings.model_fields if name in more}
        settings = AnswerSettings().model_copy(update=chosen)
        embedder = HashEmbedder()
        citations = CitationService(self.register, self.register, self.register)
        commands = commands or ChatCommands(outlines=DocumentOutlines(self.register, self.shelf, citations))
        retriever = HybridRetriever(self.shelf, embedder, settings)
        return Answering(
            settings,
            retriever=QueryExpansionRetriever(retriever, Book(), speller=SpellingCorrector(vocabulary))
            if vocabulary
            else retriever,
            writing=AnswerWriter(ExtractiveAnswerer(embedder), models),
            follow_ups=FollowUpRewriter(embedder, rewriter),
            judge=self.judge,
            readings=self.shelf,
            catalog=self.register,
            citations=citations,
            reply_to_command=commands.reply_to_message,
            **more,
        )

    def question(self, text: str) -> Question:
        return Question(f"q{next(self.ids)}", text, make_channel(), ASKED_AT)


BACKUPS = (
    "Backups run daily at 2:00 AM. The IT department checks the report every morning.\n"
    "A failed backup is repeated within 4 hours and noted in form IT-17."
)
TRAVEL = "Travel costs are refunded within 30 days. Keep every receipt, or the claim is refused."

"""Chooses the figures of an answer: the one that a question asks for, or those of the chunks it cites.

A figure is believed to be meant by its words alone: its caption, what stands in it and the headings it
stands under. A question that speaks of no figure brings one only when a cited sentence names it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.core.asking import Asked
from bot.core.citation_desk import CitationDesk
from bot.core.citing import verify
from bot.core.figure_questions import FigureQuestion, figure_question, speaks_of
from bot.core.models import (
    Answer,
    AnswerState,
    Claim,
    Draft,
    Evidence,
    Figure,
    FoundFigure,
    LocatedQuote,
    Passage,
    Quote,
    Retrieval,
)
from bot.core.naming import called, name_shares
from bot.core.ports import ChunkReader, FigureReader
from bot.core.reply_words import ReplyWords, reply_words
from storage.analyzer import analyze
from storage.figure_models import Figure as KnownFigure
from storage.models import Channel

MOST_SHOWN = 3
MOST_READ = 24
"""Figures that are looked at for one question."""

LEAST_MEANT, LEAST_OWN = 0.6, 0.3
"""Shares of the weight of what a figure is asked for by: all that its words, headings and document's names
cover at least, and what its own words do."""

LEAST_UNCALLED = 0.6
"""As ``LEAST_OWN``, where something is to be shown that the question does not call a figure."""

LEAST_NUMBERED = 0.3
"""As ``LEAST_MEANT``, where the question gives the figure's number: the rest tells the document at most."""

LEAST_TIED = 0.4
"""Share of a prose question's weight that a figure's own words cover at least, when a cited sentence speaks
of it. Measured with 26 questions on 8 documents: the four figures that belonged there covered .45 to 1."""


@dataclass(frozen=True, slots=True)
class _Meant:
    """A figure that may be meant."""

    found: FoundFigure
    figure: KnownFigure
    rank: float


class Illustrator:
    """Finds the figures that belong to an answer."""

    def __init__(self, figures: FigureReader, chunks: ChunkReader, desk: CitationDesk) -> None:
        self._figures = figures
        self._chunks = chunks
        self._desk = desk

    async def answer(
        self, channel: Channel, retrieval: Retrieval, *, is_last_resort: bool = False
    ) -> Answer | None:
        """The figure that a question wants to see, as its answer; None when it wants none, or none is meant.

        ``is_last_resort``: no words answer it, so a figure that it merely speaks of is better than nothing.

        Raises:
            storage.errors.InfrastructureError: readings cannot be reached, or citations not be kept.
        """
        asked = figure_question(retrieval.question.text)
        is_answer = asked is not None and (asked.wants_it or (is_last_resort and asked.is_particular))
        meant = await self._meant(asked, retrieval) if asked and is_answer else []
        if not meant:
            return None
        words = reply_words(retrieval.question.language)
        evidence = [await self._evidence(number, one) for number, one in enumerate(meant, start=1)]
        named = [(item, one) for item, one in zip(evidence, meant, strict=True) if one.figure.caption]
        claims = [Claim(one.figure.caption, (Quote(item.number, one.figure.caption),)) for item, one in named]
        verified = verify(Draft(tuple(claims), verbatim=True), evidence)
        cited = list(verified.cited) if not verified.dropped and len(named) == len(meant) else []
        text = verified.text
        if not cited:
            cited = [_of_its_own(item, one) for item, one in zip(evidence, meant, strict=True)]
            text = "\n".join(
                words.figure_on(page=one.page, number=number) for number, one in enumerate(cited, start=1)
            )
        return Answer(
            AnswerState.GROUNDED,
            f"{words.figures_lead(len(meant))}\n{text}",
            citations=await self._desk.cite(channel, cited),
            figures=await self._shown(channel, words, meant),
        )

    async def beside(
        self, channel: Channel, retrieval: Retrieval, cited: Sequence[LocatedQuote]
    ) -> tuple[Figure, ...]:
        """The figures that go with an answer in words, at most ``MOST_SHOWN``.

        Raises:
            storage.errors.InfrastructureError: as ``answer``.
        """
        asked = figure_question(retrieval.question.text)
        is_asked_for = asked and asked.is_sure and asked.is_particular
        meant = self._meant(asked, retrieval) if asked and is_asked_for else self._tied(retrieval, cited)
        return await self._shown(channel, reply_words(retrieval.question.language), await meant)

    async def _meant(self, asked: FigureQuestion, retrieval: Retrieval) -> list[_Meant]:
        """What a question that speaks of a figure means, the best first."""
        weights = {term: retrieval.question.idf.get(term, 1.0) for term in asked.subject}
        named = name_shares(retrieval.question.terms, {one.publication for one in retrieval.figures})
        meant = []
        for found, figure in await self._read(retrieval.figures):
            caption, own = _share(weights, [figure.caption]), _share(weights, _words(figure))
            about = [*_words(figure), *figure.heading_path, *called(found.publication)]
            if asked.fits(figure.caption, figure.kind) and _is_enough(asked, own, _share(weights, about)):
                rank = caption + own + (found.vector or 0.0) + named[found.publication.id]
                meant.append(_Meant(found, figure, rank))
        ranked = sorted(meant, key=lambda one: -one.rank)
        return ranked[: MOST_SHOWN if asked.wants_several else 1]

    async def _tied(self, retrieval: Retrieval, cited: Sequence[LocatedQuote]) -> list[_Meant]:
        """Figures that the cited sentences speak of, and whose own words are the question's."""
        weights = Asked(retrieval.question).weights
        publications = {quote.passage.publication.id for quote in cited}
        found = [one for one in retrieval.figures if one.publication.id in publications]
        meant = [
            _Meant(one, figure, _share(weights, [figure.caption, figure.text]))
            for one, figure in await self._read(found)
            if _is_tied(one, figure, cited)
        ]
        close = [one for one in meant if one.rank >= LEAST_TIED]
        return sorted(close, key=lambda one: -one.rank)[:MOST_SHOWN]

    async def _read(self, found: Sequence[FoundFigure]) -> list[tuple[FoundFigure, KnownFigure]]:
        return [
            (one, await self._figures.figure(one.publication.reading_id, one.number))
            for one in found[:MOST_READ]
        ]

    async def _evidence(self, number: int, meant: _Meant) -> Evidence:
        """The chunk that a figure stands in, with its words' places."""
        figure, publication = meant.figure, meant.found.publication
        if figure.chunk is None:
            ordinal, page = publication.chunks + meant.found.number, figure.page
            return Evidence(number, Passage(publication, ordinal, "", page, page, (), 1.0, None, None), ())
        (chunk,) = await self._chunks.chunks_at([(publication.reading_id, figure.chunk)])
        passage = Passage(
            publication,
            chunk.ordinal,
            chunk.text,
            chunk.first_page,
            chunk.last_page,
            chunk.heading_path,
            1.0,
            None,
            None,
        )
        return Evidence(number, passage, chunk.page_starts, chunk.words)

    async def _shown(
        self, channel: Channel, words: ReplyWords, meant: Iterable[_Meant]
    ) -> tuple[Figure, ...]:
        return tuple(
            [await self._desk.show_figure(channel, words, one.found.publication, one.figure) for one in meant]
        )


def _of_its_own(item: Evidence, meant: _Meant) -> LocatedQuote:
    """A figure whose caption cannot be quoted is marked itself."""
    return LocatedQuote(item.passage, 0, 0, meant.figure.page, "", (meant.figure.box,))


def _is_tied(found: FoundFigure, figure: KnownFigure, cited: Sequence[LocatedQuote]) -> bool:
    """Whether a figure stands in a chunk, or on a page, that is cited, and the quote there speaks of it."""
    own = [quote for quote in cited if quote.passage.publication.id == found.publication.id]
    near = [one for one in own if figure.chunk == one.passage.ordinal or figure.page == one.page]
    return any(speaks_of(quote.quote, figure.caption) for quote in near)


def _is_enough(asked: FigureQuestion, own: float, about: float) -> bool:
    """Whether a figure says enough of what it is asked for by: its own words, and all that is about it."""
    if asked.number:
        return about >= LEAST_NUMBERED
    return about >= LEAST_MEANT and own >= (LEAST_OWN if asked.names_one else LEAST_UNCALLED)


def _words(figure: KnownFigure) -> list[str]:
    return [figure.caption, figure.description, figure.text]


def _share(weights: Mapping[str, float], texts: Collection[str]) -> float:
    """Share (0-1) of the weight that these texts cover; 1 where nothing is asked for."""
    held = set(analyze("\n".join(texts)))
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in held) / total if total else 1.0

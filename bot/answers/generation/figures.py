"""Figures of an answer: the one that a question asks for, those that cited chunks mention, or a quoted table.

A figure is matched by words alone: its caption, the words in it and the headings above it. A question that
does not ask for a figure gets one only if a cited sentence refers to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from bot.answers.generation.answer_writer import WrittenAnswer
from bot.answers.retrieval.reranking import evidence_of
from bot.answers.understanding.answer_types import FigureQuestion, figure_question, speaks_of, wants_table
from bot.answers.understanding.channel_documents import document_labels, name_shares
from bot.answers.understanding.question_terms import QuestionTerms
from bot.answers.verification.claims import number_quotes, verify
from bot.answers.verification.table_rows import find_caption, find_table
from bot.core.models import (
    AnswerState,
    ChosenFigure,
    Claim,
    Draft,
    Evidence,
    FoundFigure,
    LocatedQuote,
    Passage,
    Quote,
    Retrieval,
)
from bot.core.wording import reply_words
from storage.models import Box, FigureKind, LivePublication
from storage.models import Figure as KnownFigure
from storage.queues.reading_repair import SelfHealingReadings
from storage.text.analyzer import analyze
from storage.text.word_boxes import bounding_boxes

MAX_FIGURES_SHOWN = 3
# Maximum rows of a table; its chunk has fewer.
MAX_ROWS_SHOWN = 200
# Padding around a table's words as a share of the page: left and right, above and below.
CELL_PADDING = 0.008, 0.003
# Number of a table that is not a figure of its reading.
NO_NUMBER = -1
# Maximum figures compared with one question.
MAX_FIGURES_READ = 24

# Minimum shares of the request's weight: covered by a figure's words, headings and document names, and
# covered by its own words.
MIN_COVERAGE, MIN_OWN_COVERAGE = 0.6, 0.3

# As ``MIN_OWN_COVERAGE``, if something is to be shown that the question does not call a figure.
MIN_IMPLICIT_COVERAGE = 0.6

# As ``MIN_COVERAGE``, if the question gives the figure's number: the rest at most names the document.
MIN_NUMBERED_COVERAGE = 0.3

# Minimum share of a prose question's weight that a figure's own words cover if a cited sentence refers to it.
# Measured with 26 questions on 8 documents: the four figures that belonged there covered .45 to 1.
MIN_CITED_OVERLAP = 0.4

# Bonus for a figure with data, if numbers or a trend are asked for; a caption that covers the whole subject
# adds as much.
DATA = 1.0


class FigureSelector:
    """Selects the figures that belong to an answer."""

    def __init__(self, readings: SelfHealingReadings) -> None:
        self._readings = readings

    async def write(self, retrieval: Retrieval) -> WrittenAnswer | None:
        """Return the requested figures as an answer; None if the question asks for none, or none matches.

        Raises:
            storage.errors.InfrastructureError: readings are unavailable.
        """
        asked = figure_question(retrieval.question.text)
        is_answer = asked is not None and (asked.wants_it or asked.is_particular)
        matches = await self._matches(asked, retrieval) if asked and is_answer else []
        if not matches:
            return None
        words = reply_words(retrieval.question.language)
        evidence = [await self._evidence(number, one) for number, one in enumerate(matches, start=1)]
        named = [(item, one) for item, one in zip(evidence, matches, strict=True) if one.figure.caption]
        claims = [Claim(one.figure.caption, (Quote(item.number, one.figure.caption),)) for item, one in named]
        verified = verify(Draft(tuple(claims), verbatim=True), evidence)
        lines, cited = number_quotes(verified.claims)
        text = "\n".join(lines)
        if not cited or verified.faults or len(named) != len(matches):
            cited = tuple(  # a figure whose caption cannot be quoted is marked itself
                LocatedQuote(
                    item.passage, 0, 0, one.figure.page, "", (one.figure.box,), one.figure.heading_path
                )
                for item, one in zip(evidence, matches, strict=True)
            )
            text = "\n".join(
                words.figure_on(page=one.page, number=number) for number, one in enumerate(cited, start=1)
            )
        text = f"{words.figures_lead(len(matches))}\n{text}"
        return WrittenAnswer(AnswerState.PASSAGES, text, cited, figures=tuple(matches))

    async def figures_for_answer(
        self, retrieval: Retrieval, cited: Sequence[LocatedQuote], evidence: Sequence[Evidence]
    ) -> tuple[ChosenFigure, ...]:
        """Return the figures to show with a text answer, at most ``MAX_FIGURES_SHOWN``.

        It is the one that the question names, or those that cited sentences refer to and whose words are
        those of the question; if a table is asked for, the quoted ones.

        Raises:
            storage.errors.InfrastructureError: readings are unavailable.
        """
        if wants_table(retrieval.question.text) and (tables := _quoted_tables(cited, evidence)):
            return tables
        asked = figure_question(retrieval.question.text)
        if asked and asked.is_sure and asked.is_particular:
            return tuple(await self._matches(asked, retrieval))
        weights = QuestionTerms(retrieval.question).weights
        publications = {quote.passage.publication.id for quote in cited}
        found = [one for one in retrieval.figures if one.publication.id in publications]
        matches = [
            (
                _share(weights, [figure.caption, figure.text]),
                ChosenFigure(one.publication, figure, one.number),
            )
            for one, figure in await self._read(found)
            if referring_quote(one.publication, figure, cited) is not None
        ]
        return tuple(_best([one for one in matches if one[0] >= MIN_CITED_OVERLAP], MAX_FIGURES_SHOWN))

    async def _matches(self, asked: FigureQuestion, retrieval: Retrieval) -> list[ChosenFigure]:
        """Return the figures that a question refers to, best first."""
        weights = {term: retrieval.question.idf.get(term, 1.0) for term in asked.subject}
        named = name_shares(retrieval.question.terms, {one.publication for one in retrieval.figures})
        matches = []
        for found, figure in await self._read(retrieval.figures):
            caption, own = _share(weights, [figure.caption]), _share(weights, _words(figure))
            about = [*_words(figure), *figure.heading_path, *document_labels(found.publication)]
            if asked.fits(figure.caption, figure.kind) and _is_enough(asked, own, _share(weights, about)):
                rank = caption + own + (found.vector or 0.0) + named[found.publication.id]
                if asked.wants_data and figure.holds_data:
                    rank += DATA
                matches.append((rank, ChosenFigure(found.publication, figure, found.number)))
        return _best(matches, MAX_FIGURES_SHOWN if asked.wants_several else 1)

    async def _read(self, found: Sequence[FoundFigure]) -> list[tuple[FoundFigure, KnownFigure]]:
        return [
            (one, await self._readings.figure(one.publication.reading_id, one.number))
            for one in found[:MAX_FIGURES_READ]
        ]

    async def _evidence(self, number: int, chosen: ChosenFigure) -> Evidence:
        """Return the chunk that contains a figure, with the boxes of its words."""
        figure, publication = chosen.figure, chosen.publication
        if figure.chunk is None:
            ordinal, page = publication.chunks + chosen.number, figure.page
            return Evidence(number, Passage(publication, ordinal, "", page, page, (), 1.0, None, None), ())
        (chunk,) = await self._readings.chunks_at([(publication.reading_id, figure.chunk)])
        return evidence_of(number, publication, chunk, score=1.0)


def _best(ranked: Sequence[tuple[float, ChosenFigure]], most: int) -> list[ChosenFigure]:
    return [one for _, one in sorted(ranked, key=lambda one: -one[0])[:most]]


def referring_quote(
    publication: LivePublication, figure: KnownFigure, cited: Sequence[LocatedQuote]
) -> int | None:
    """Return the index of the cited quote that refers to a figure; None if none does.

    It is in the figure's chunk or on its page, and contains its caption or number.
    """
    for place, quote in enumerate(cited):
        is_near = figure.chunk == quote.passage.ordinal or figure.page == quote.page
        if quote.passage.publication.id == publication.id and is_near:
            if speaks_of(quote.quote, figure.caption):
                return place
    return None


def number_of(publication: LivePublication, figure: KnownFigure, cited: Sequence[LocatedQuote]) -> int:
    """Return the [n] for a figure: of the quote that refers to it, else of one inside it; 0: neither."""
    place = referring_quote(publication, figure, cited)
    inside = (
        number
        for number, quote in enumerate(cited, start=1)
        if quote.passage.publication.id == publication.id and _holds(figure, quote)
    )
    return next(inside, 0) if place is None else place + 1


def _holds(figure: KnownFigure, quote: LocatedQuote) -> bool:
    (x0, y0, x1, y1), boxes = figure.box, quote.boxes if quote.page == figure.page else ()
    return bool(boxes) and all(
        x0 <= box.x0 and y0 <= box.y0 and box.x1 <= x1 and box.y1 <= y1 for box in boxes
    )


def _quoted_tables(cited: Sequence[LocatedQuote], evidence: Sequence[Evidence]) -> tuple[ChosenFigure, ...]:
    """Return the tables that contain quotes, limited to the chunks and pages of the quotes."""
    found: dict[tuple[UUID, int, Box], ChosenFigure] = {}
    for quote in cited:
        for item in evidence:
            if item.passage == quote.passage and (table := _table_around(quote, item)):
                publication = item.passage.publication
                found.setdefault(
                    (publication.id, table.page, table.box), ChosenFigure(publication, table, NO_NUMBER)
                )
    return tuple(found.values())[:MAX_FIGURES_SHOWN]


def _table_around(quote: LocatedQuote, item: Evidence) -> KnownFigure | None:
    """Return the table that contains a quote; None if there is none, or it has no name."""
    passage = item.passage
    span = find_table(passage.text, quote.start, MAX_ROWS_SHOWN)
    if span is None or not span[0] <= quote.start < span[1]:
        return None
    boxes = bounding_boxes(item.words, *span).get(quote.page, ())
    name = find_caption(passage.text, span[0]) or next(reversed(quote.section), "")
    if not boxes or not name:
        return None
    left, top, right, bottom = zip(*boxes, strict=True)
    beside, above = CELL_PADDING
    box = Box(
        max(0.0, min(left) - beside),
        max(0.0, min(top) - above),
        min(1.0, max(right) + beside),
        min(1.0, max(bottom) + above),
    )
    return KnownFigure(quote.page, box, FigureKind.TABLE, True, passage.ordinal, quote.section, name, "", "")


def _is_enough(asked: FigureQuestion, own: float, about: float) -> bool:
    """True if a figure covers enough of the request: by its own words, and by all that describes it."""
    if asked.number:
        return about >= MIN_NUMBERED_COVERAGE
    return about >= MIN_COVERAGE and own >= (MIN_OWN_COVERAGE if asked.names_one else MIN_IMPLICIT_COVERAGE)


def _words(figure: KnownFigure) -> list[str]:
    return [figure.caption, figure.description, figure.text]


def _share(weights: Mapping[str, float], texts: Collection[str]) -> float:
    """Return the share (0-1) of the weight that these texts cover; 1 if nothing is asked for."""
    held = set(analyze("\n".join(texts)))
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in held) / total if total else 1.0

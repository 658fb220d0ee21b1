"""Outlines one document: the sentence that states its purpose, and its top-level headings.

Both are verbatim, located and cited like every quote; no model is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from bot.answers.citations.citations import CitationService
from bot.answers.retrieval.reranking import evidence_of
from bot.answers.verification.claims import VerifiedClaim, number_quotes, place, verify
from bot.core.models import Answer, AnswerState, Claim, Draft, Evidence, Quote
from bot.core.plaintext import escape_markers, shorten
from bot.core.wording import ReplyWords
from storage.documents.catalog import Catalog
from storage.models import Channel
from storage.queues.reading_repair import SelfHealingReadings
from storage.text.analyzer import fold
from storage.text.contents import is_contents_title
from storage.text.sentences import quotables

# Headings listed; further ones are counted.
MAX_HEADINGS = 12
HEADING_CHARS = 120
# Chunks scanned; headings further down in a longer document are not listed.
MAX_CHUNKS = 600
# Minimum number of headings of one level for an outline.
SEVERAL = 3
MIN_SENTENCE_WORDS = 5

# Number of a top-level heading: 7, not 7.2.
_NUMBER = re.compile(
    r"(?:(?:section|chapter|part|appendix|kapitel|chapitre)\s+)?(\d{1,2}|[IVX]{1,4})[.):]?\s+(?=\S)", re.I
)
# Headings, folded, of sections that state a document's purpose.
_PURPOSE = re.compile(
    r"(?:purpose|scope|aims?|objectives?|introduction|overview|summary|abstract|about|zweck|ziele?|geltungsbereich"
    r"|anwendungsbereich|einleitung|einfuhrung|uberblick|zusammenfassung|objet|objectifs?|portee|resume|apercu"
    r"|objetivos?|proposito|alcance|introduccion|resumen|scopo|obiettivi|ambito|introduzione|finalidade"
    r"|introducao|resumo|doel|toepassingsgebied|inleiding|samenvatting)\b"
)
_SENTENCE = re.compile(r"[.!?][\"'”’)\]]*$")


@dataclass(frozen=True, slots=True)
class _Heading:
    """A heading with its position."""

    text: str
    # Heading level; 0 = top level.
    level: int
    item: Evidence
    span: tuple[int, int]

    @property
    def is_numbered(self) -> bool:
        return _NUMBER.match(self.text) is not None

    @property
    def name(self) -> str:
        """The text for comparison, without number, accents and case."""
        return _folded(self.text)


class DocumentOutlines:
    """Writes outlines of live documents."""

    def __init__(self, catalog: Catalog, readings: SelfHealingReadings, citations: CitationService) -> None:
        self._catalog = catalog
        self._readings = readings
        self._citations = citations

    async def write(self, channel: Channel, document: UUID, name: str, words: ReplyWords) -> Answer | None:
        """Return a document's purpose and headings; None if it has neither or is no longer live.

        ``name``: the document's name in its channel.

        Raises:
            storage.errors.InfrastructureError: SQL or the reading cannot be reached.
        """
        publication = await self._catalog.live_document(channel.id, document)
        if publication is None:
            return None
        ordinals = range(min(publication.chunks, MAX_CHUNKS))
        chunks = await self._readings.chunks_at([(publication.reading_id, one) for one in ordinals])
        evidence = [evidence_of(number, publication, chunk) for number, chunk in enumerate(chunks, start=1)]
        headings = [heading for item in evidence for heading in _headings(item)]
        purpose, top = _purpose(evidence), _top(headings, publication.title)
        if not (purpose or top):
            return None
        sections = [_section(one, words) for one in top[:MAX_HEADINGS]]
        lines, cited = number_quotes([*purpose, *sections])
        rest = len(top) - MAX_HEADINGS
        text = [
            words.outline_lead(document=words.document_named(title=name)),
            *lines[: len(purpose)],
            *([words.outline_sections] if sections else []),
            *lines[len(purpose) :],
            *([words.more_documents(count=rest)] if rest > 0 else []),
        ]
        citations = await self._citations.cite(channel, cited)
        return Answer(AnswerState.PASSAGES, "\n".join(text), citations, language=words.language)


def _headings(item: Evidence) -> Iterator[_Heading]:
    """Yield the headings that a chunk opens with: all blocks down to the heading it belongs to.

    A heading that is followed by nothing but further headings is in no chunk's heading path.
    """
    text, path = item.passage.text, item.passage.heading_path
    names = [_plain(heading) for heading in path]
    blocks = [
        (match.start(), match.end(), _plain(match[0])) for match in re.finditer(r"\S(?:.|\n(?!\n))*", text)
    ]
    last = next((place for place, block in enumerate(blocks) if names and block[2] == names[-1]), None)
    for start, end, name in blocks[: last + 1] if last is not None else ():
        level = names.index(name) if name in names else 0
        yield _Heading(" ".join(text[start:end].split()), level, item, (start, end))


def _plain(text: str) -> str:
    return " ".join(text.split())


def _top(headings: Sequence[_Heading], title: str) -> list[_Heading]:
    """Return the headings of the highest level that has several, and those above it, without duplicates.

    If several are numbered, those are the highest level. The title and the table of contents are left out.
    """
    distinct: dict[str, _Heading] = {}
    for one in headings:
        if one.name and one.name != fold(title).casefold() and not is_contents_title(one.name):
            distinct.setdefault(one.name, one)
    found = list(distinct.values())
    ranks = [
        [one for one in found if one.level <= level]
        for level in range(1 + max((one.level for one in found), default=0))
    ]
    ranks.insert(0, [one for one in found if one.is_numbered])
    return next((rank for rank in ranks if len(rank) >= SEVERAL), found)


def _purpose(evidence: Sequence[Evidence]) -> tuple[VerifiedClaim, ...]:
    """Return the first sentence below a heading for the purpose, else below any heading, else of all."""
    read = [one for one in evidence if not any(map(_is_contents, one.passage.heading_path))]
    under = [one for one in read if one.passage.heading_path]
    promised = [one for one in under if any(map(_promises, one.passage.heading_path))]
    return next(filter(None, map(_opening, (*promised, *under, *read))), ())


def _opening(item: Evidence) -> tuple[VerifiedClaim, ...]:
    """Return the first complete sentence of a chunk, as a verified claim."""
    for unit in quotables(item.passage.text):
        above, gap, text = unit.text.rpartition("\n\n")
        if _SENTENCE.search(above):  # context that the sentence refers to; else a heading, to be left out
            above, gap, text = "", "", unit.text
        is_sentence = not unit.is_row and _SENTENCE.search(text) is not None
        if is_sentence and len(text.split()) >= MIN_SENTENCE_WORDS:
            quote = Quote(item.number, text, unit.start + len(above + gap))
            return verify(Draft((Claim(text, (quote,)),), verbatim=True), [item]).claims
    return ()


def _is_contents(heading: str) -> bool:
    return is_contents_title(_folded(heading))


def _promises(heading: str) -> bool:
    return _PURPOSE.match(_folded(heading)) is not None


def _folded(heading: str) -> str:
    return fold(_NUMBER.sub("", heading)).casefold().strip(" :.")


def _section(one: _Heading, words: ReplyWords) -> VerifiedClaim:
    located = place(one.item, *one.span)
    is_ocr = located.page in located.passage.publication.ocr_pages
    label = words.source_label(located.page, escape_markers(shorten(one.text, HEADING_CHARS)), is_ocr=is_ocr)
    return VerifiedClaim(f"• {label}", (located,))

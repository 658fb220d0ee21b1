"""Publishes citations: each is stored in SQL first, so that its link outlives readings and chunks.

A document is cited by a name that is unique in its channel. A title that the document prints, or that an
admin set, takes precedence over the file's /Title or largest heading. A title that several documents share,
or that is the organisation's name, is not distinctive: the file name replaces it, or the path if that is not
unique either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from bot.answers.citations.signed_links import Links
from bot.answers.citations.web_links import web_citation
from bot.answers.understanding.channel_documents import DATE_FIELDS
from bot.answers.verification.claims import plain_quote
from bot.core.models import AnswerFigure, Citation, LocatedQuote, NearestPage, Passage
from bot.core.wording import ReplyWords
from storage.chat.citations import Citations
from storage.documents.catalog import Catalog
from storage.models import Channel, CitationRecord, CitedPlace, FigureKind, LivePublication
from storage.models import Figure as KnownFigure
from storage.task_group import gather_or_cancel


class DocumentNames:
    """Resolves names of documents that are unique in their channel.

    Calls raise storage.errors.InfrastructureError if SQL cannot be reached.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def names(self, channel_id: int, publications: Collection[LivePublication]) -> dict[int, str]:
        """Return the display name in this channel of each publication, by version id."""
        titles = {title for one in publications for title in _titles(one)}
        files = {PurePosixPath(one.file).name for one in publications}
        namesakes = await self._catalog.live_by_name(channel_id, titles, files) if publications else []
        return names_among([*publications, *namesakes], publications)

    async def names_of_versions(self, channel_id: int, versions: Collection[int]) -> dict[int, str]:
        """Return the same for those of these versions that are live."""
        return await self.names(channel_id, await self._catalog.live_versions(channel_id, versions))


class CitationService:
    """Stores citations and signs their links.

    Calls raise storage.errors.InfrastructureError if citations cannot be stored or documents cannot be named.
    """

    def __init__(self, store: Citations, links: Links, catalog: Catalog) -> None:
        self._store = store
        self._links = links
        self._catalog = catalog
        self.names = DocumentNames(catalog)

    async def cite(self, channel: Channel, quotes: Sequence[LocatedQuote]) -> tuple[Citation, ...]:
        """Return one citation per quote, numbered from 1 in this order.

        A PDF citation opens its page by a signed link; that of an approved web page is the page's own URL.
        """
        texts = [plain_quote(quote) for quote in quotes]
        sources = [quote.passage.publication for quote in quotes]
        shown = [  # a web page has no link of ours, which its number would belong to
            CitedPlace(one.version_id, quote.page, text)
            if one.web
            else CitedPlace(one.version_id, quote.page, text, quote.boxes, number)
            for number, (one, quote, text) in enumerate(zip(sources, quotes, texts, strict=True), start=1)
        ]
        files = {one.version_id: one for one in sources if not one.web}
        kept, names = await gather_or_cancel(
            self._store.add(channel.id, shown), self.names.names(channel.id, files.values())
        )
        return tuple(
            web_citation(number, quote, record.quote)
            if quote.passage.publication.web
            else self._citation(channel, number, quote, record, names)
            for number, (quote, record) in enumerate(zip(quotes, kept, strict=True), start=1)
        )

    async def show_figure(
        self,
        channel: Channel,
        words: ReplyWords,
        publication: LivePublication,
        figure: KnownFigure,
        number: int = 0,
    ) -> AnswerFigure:
        """Return a figure with a link to its marked page, and one to its picture.

        ``number``: the [n] of the sentence that refers to it.
        """
        shown = CitedPlace(publication.version_id, figure.page, figure.caption, (figure.box,))
        (record,) = await self._store.add(channel.id, [shown])
        described = words.figure_described(description=figure.description) if figure.description else ""
        return AnswerFigure(
            publication.file,
            figure.page,
            figure.caption or described,
            figure.box,
            self._links.page_url(channel, record),
            self._links.figure_url(channel, record),
            number,
            is_table=figure.kind is FigureKind.TABLE,
        )

    async def nearest(self, channel: Channel, passage: Passage) -> NearestPage:
        """Return the first page of a passage as the closest page; its link marks nothing."""
        publication, page = passage.publication, passage.first_page
        url, names = await gather_or_cancel(
            self.open_page(channel, publication.version_id, page), self.names.names(channel.id, [publication])
        )
        return NearestPage(publication.file, page, url, names[publication.version_id])

    async def open_page(self, channel: Channel, version_id: int, page: int) -> str:
        """Return a link to a page of a version of this channel; it marks nothing."""
        return await self._open(channel, CitedPlace(version_id, page))

    async def renew_links(
        self, channel: Channel, versions: Collection[int], shown: Sequence[Mapping[str, Any]]
    ) -> tuple[Citation, ...]:
        """Return an earlier answer's citations with new links, without those whose documents are gone."""
        records = await self._store.of_versions(channel.id, versions)
        names = await self.names.names_of_versions(channel.id, versions)
        found = []
        for one in shown:
            place = one["number"], one["page"], one["quote"]
            record = next((its for its in records if (its.number, its.page, its.quote) == place), None)
            source = await self._catalog.version_source(record.version_id) if record else None
            if one["kind"] == "web":
                number, host, url = one["number"], one["host"], one["file"]
                fetched = one["fetched"]
                web = Citation(number, host, url, 0, one["quote"], (), url, host=host, fetched=fetched)
                found.append(web)
            elif record and source and not source.is_deleted:
                link = self._links.page_url(channel, record)
                of = one["number"], source.title, source.file, record.page, record.quote, record.boxes, link
                name = names.get(record.version_id, "")
                found.append(Citation(*of, version_id=record.version_id, name=name, citation_id=record.id))
        return tuple(found)

    async def renew_by_id(self, channel: Channel, shown: Sequence[Mapping[str, Any]]) -> tuple[Citation, ...]:
        """Return the same, with the versions looked up by the ids of the citations."""
        known = [await self._store.get(one["id"]) for one in shown if "id" in one]
        versions = {one.version_id for one in known if one and one.channel_id == channel.id}
        return await self.renew_links(channel, versions, shown)

    async def _open(self, channel: Channel, shown: CitedPlace) -> str:
        (record,) = await self._store.add(channel.id, [shown])
        return self._links.page_url(channel, record)

    def _citation(
        self,
        channel: Channel,
        number: int,
        quote: LocatedQuote,
        record: CitationRecord,
        names: Mapping[int, str],
    ) -> Citation:
        publication = quote.passage.publication
        return Citation(
            number=number,
            title=publication.title,
            file=publication.file,
            page=quote.page,
            quote=record.quote,
            boxes=quote.boxes,
            url=self._links.page_url(channel, record),
            version_id=publication.version_id,
            name=names[publication.version_id],
            section=quote.section,
            details=said_beside(publication),
            is_ocr=quote.page in publication.ocr_pages,
            citation_id=record.id,
        )


def names_among(known: Collection[LivePublication], named: Collection[LivePublication]) -> dict[int, str]:
    """Return, by version id, the first candidate name that no other known document has."""
    candidates = {one.version_id: (one.document_id, list(_candidates(one))) for one in known}
    found = {}
    for one in named:
        taken = {
            name.casefold()
            for document, names in candidates.values()
            if document != one.document_id
            for name in names
        }
        own = candidates[one.version_id][1]
        found[one.version_id] = next((name for name in own if name.casefold() not in taken), own[-1])
    return found


def said_beside(publication: LivePublication) -> tuple[str, ...]:
    """Return the details shown with a document's name: SOP id, department and its date."""
    said = {name: one.day or one.value for name, one in publication.metadata.items()}
    titles = " ".join(_titles(publication)).casefold()
    sop_id = said.get("sop_id", "")
    number = "" if sop_id.casefold() in titles else sop_id
    days = [said[name] for name in DATE_FIELDS if name in said]
    return tuple(filter(None, (number, said.get("department", ""), *days[:1])))


def _candidates(publication: LivePublication) -> Iterator[str]:
    """Yield its possible names, the most specific first; the last one is its path."""
    organisation = publication.metadata.get("organisation")
    own = organisation.value.casefold() if organisation else ""
    file = PurePosixPath(publication.file)
    for title in _titles(publication):
        if title.casefold() not in (own, file.name.casefold()):
            yield _with_version(title, publication)
    yield file.name
    yield publication.file


def _titles(publication: LivePublication) -> Sequence[str]:
    printed = publication.metadata.get("title")
    return list(dict.fromkeys(filter(None, (printed.value if printed else "", publication.title))))


def _with_version(title: str, publication: LivePublication) -> str:
    """Return ``Handbook v3``; a title that already ends with its version stays as it is."""
    version = publication.metadata.get("version")
    if version is None or title.casefold().endswith(version.value.casefold()):
        return title
    value = version.value
    return f"{title} {value if value[:1] in 'vV' else f'v{value}'}"

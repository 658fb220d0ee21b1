"""Makes citations public: each is kept in SQL first, so that its link outlives readings and chunks."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.citations.signed_links import Links
from bot.core.citations.web_links import web_citation
from bot.core.models import AnswerFigure, Citation, LocatedQuote, NearestPage, Passage
from bot.core.understanding import channel_documents
from bot.core.verification.claims import plain_quote
from bot.core.wording import ReplyWords
from storage.chat.citations import Citations
from storage.chat_models import ShownWeb
from storage.models import Channel, CitationRecord, LivePublication, Shown
from storage.models import Figure as KnownFigure


class CitationService:
    """Stores what is shown and signs the links to it."""

    def __init__(self, store: Citations, links: Links) -> None:
        self._store = store
        self._links = links

    async def cite(self, channel: Channel, quotes: Sequence[LocatedQuote]) -> tuple[Citation, ...]:
        """One citation per quote, numbered from 1 in this order.

        A PDF's opens its page by a signed link, an approved web page's is that page's own address.

        Raises:
            storage.errors.InfrastructureError: citations cannot be kept.
        """
        texts = [plain_quote(quote) for quote in quotes]
        sources = [quote.passage.publication for quote in quotes]
        records = iter(
            await self._store.add(
                channel.id,
                [
                    Shown(one.version_id, quote.page, text, quote.boxes)
                    for one, quote, text in zip(sources, quotes, texts, strict=True)
                    if not one.web
                ],
            )
        )
        web = [
            ShownWeb(one.file, one.sha256, text) for one, text in zip(sources, texts, strict=True) if one.web
        ]
        if web:
            await self._store.add_web(channel.id, web)
        return tuple(
            web_citation(number, quote, text)
            if quote.passage.publication.web
            else self._citation(channel, number, quote, next(records))
            for number, (quote, text) in enumerate(zip(quotes, texts, strict=True), start=1)
        )

    async def show_figure(
        self, channel: Channel, words: ReplyWords, publication: LivePublication, figure: KnownFigure
    ) -> AnswerFigure:
        """A figure with a link that opens its page and marks it.

        Raises:
            storage.errors.InfrastructureError: citations cannot be kept.
        """
        url = await self._open(
            channel, Shown(publication.version_id, figure.page, figure.caption, (figure.box,))
        )
        described = words.figure_described(description=figure.description) if figure.description else ""
        return AnswerFigure(publication.file, figure.page, figure.caption or described, figure.box, url)

    async def nearest(self, channel: Channel, passage: Passage) -> NearestPage:
        """The first page of a passage as the page that came nearest; it marks nothing.

        Raises:
            storage.errors.InfrastructureError: citations cannot be kept.
        """
        publication, page = passage.publication, passage.first_page
        url = await self.open_page(channel, publication.version_id, page)
        return NearestPage(publication.file, page, url)

    async def open_page(self, channel: Channel, version_id: int, page: int) -> str:
        """A link to one page of a version of this channel; it marks nothing.

        Raises:
            storage.errors.InfrastructureError: citations cannot be kept.
        """
        return await self._open(channel, Shown(version_id, page))

    async def _open(self, channel: Channel, shown: Shown) -> str:
        (record,) = await self._store.add(channel.id, [shown])
        return self._links.page_url(channel, record)

    def _citation(
        self, channel: Channel, number: int, quote: LocatedQuote, record: CitationRecord
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
            edition=channel_documents.edition(publication),
            is_ocr=quote.page in publication.ocr_pages,
        )

"""Finds passages of approved web pages, in addition to those of documents, if a question opens their domains.

Pages are fetched in advance. A missing page is fetched in the background for the next question, which the
current one waits for only as long as a setting allows. Web passages are ranked among themselves as documents
are, and merged with those by score: after equally similar ones, or before them if an admin says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from yarl import URL

from bot.answer_settings import AnswerSettings
from bot.answers.retrieval.hybrid_retriever import chunks_of
from bot.answers.retrieval.ranking import Ranking, fuse, rank_order
from bot.answers.understanding.question_terms import searched_terms
from bot.core.models import AnalyzedQuestion, OpenedWeb, Passage, Question, Retrieval
from storage.index.base import PendingVector, Vector, document_facet
from storage.index.live_index import LiveIndex
from storage.models import Channel, LivePublication, WebOrigin
from storage.task_group import gather_or_cancel
from storage.text.analyzer import analyze
from storage.text.sentences import split_units
from storage.web_pages.keyword_gate import OpenedDomain, opened_domains
from storage.web_pages.page_store import WebPage, WebPageStore, approved_pages
from storage.web_pages.web_sources import WebDomain, WebSourcesFile

# Starts a background task that fetches the due pages of a domain.
FetchPages = Callable[[WebDomain], asyncio.Task[None]]

# Chunks of the opened domains that are ranked.
CANDIDATES = 24
# Pause between looks for a page that is being read.
READ_POLL_SECONDS = 0.1
# Differences in cosine, or in coverage of the question, below which similarity counts as equal.
EQUAL_SIMILARITY = 0.01
# Maximum passages of web pages in addition to those of documents.
MAX_PASSAGES = 3


class WebSearch:
    """Searches the pages of the domains that a question opens."""

    def __init__(
        self,
        sources: WebSourcesFile,
        store: WebPageStore,
        index: LiveIndex,
        settings: AnswerSettings,
        *,
        fetch: FetchPages | None = None,
    ) -> None:
        """``fetch``: starts fetching missing pages; None: another process does."""
        self.sources = sources
        self.settings = settings
        self._store = store
        self._index = index
        self._ranking = Ranking(settings)
        self._fetch = fetch

    async def extend(self, question: Question, retrieval: Retrieval) -> Retrieval:
        """Add passages of approved web pages if the question opens their domains.

        A question restricted to certain documents opens none; then no page is read.
        """
        is_kept_to_documents = question.documents is not None and not question.is_exclusion
        if is_kept_to_documents:
            return retrieval
        said = [(one.terms, one.equivalents) for one in retrieval.question.synonyms]
        for look in (self.sources.known, self.sources.current):  # read the file only if a domain opens
            sources = await look()
            domains = sources.domains_for(question.channel)
            opened = opened_domains(
                question.message or question.text,
                domains,
                said,
                hits=self.settings.web_hits,
                most=self.settings.web_domains,
            )
            if not opened:
                return retrieval
        is_web_first = sources.is_web_first(question.channel)
        return await self.merge(question, retrieval, opened, is_web_first=is_web_first)

    async def merge(
        self, question: Question, documents: Retrieval, opened: Sequence[OpenedDomain], *, is_web_first: bool
    ) -> Retrieval:
        """Return the candidates of the documents, merged with the best passages of the opened domains.

        ``is_web_first``: of a page and a document that answer equally well, the page comes first.

        Raises:
            storage.errors.DatabaseUnavailable: the database does not answer.
        """
        looked_into = await gather_or_cancel(
            *(self._pages(one.domain, may_wait=not question.is_wide) for one in opened)
        )
        pages = {page.url: page for own in looked_into for page in own}
        found = await self._search(question, documents.question, pages.values())
        web = [self._shown(one, documents, is_web_first=is_web_first) for one in found]
        ordered = sorted((*documents.passages, *web), key=lambda one: _place(one, is_web_first=is_web_first))
        return replace(
            documents,
            question=_without_known_words(documents.question, web),
            passages=tuple(ordered),
            web=tuple(map(_traced, opened, looked_into)),
        )

    async def approves(self, channel: Channel, urls: Collection[str]) -> bool:
        """True if all of these pages may currently be cited in a channel.

        Raises:
            storage.errors.DatabaseUnavailable: the database does not answer.
        """
        domains = (await self.sources.current()).domains_for(channel)
        return set(urls) <= set(await approved_pages(domains, self._store))

    async def _pages(self, domain: WebDomain, *, may_wait: bool) -> Sequence[WebPage]:
        """Return the stored pages of a domain; wait at most ``web_wait_seconds`` for missing ones."""
        pages = await self._approved(domain)
        is_short = not pages or any(one.is_missing for one in pages)
        if self._fetch is None or not is_short:
            return pages
        fetching = self._fetch(domain)
        if not may_wait or not self.settings.web_wait_seconds:
            return pages
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.web_wait_seconds):
                await asyncio.wait([fetching])
                while True:
                    pages = await self._approved(domain)
                    if not any(one.is_being_read for one in pages):
                        return pages
                    await asyncio.sleep(READ_POLL_SECONDS)
        return await self._approved(domain)

    async def _approved(self, domain: WebDomain) -> Sequence[WebPage]:
        return await self._store.pages(await approved_pages([domain], self._store))

    async def _search(
        self, question: Question, asked: AnalyzedQuestion, pages: Iterable[WebPage]
    ) -> Sequence[Passage]:
        """Return the best passages of these pages, ranked among themselves."""
        known = {page.document: page for page in pages if page.document}
        found = chunks_of(
            await self._index.search(
                await self._store.channel(),
                searched_terms(asked.terms, asked.synonyms),
                _made(asked.vector),
                (frozenset(map(document_facet, known)),),
                CANDIDATES,
            ),
            CANDIDATES,
        )
        shown = {id_: _with_origin(one, known[one.document_id]) for id_, one in found.publications.items()}
        ranked = self._ranking.rank(
            asked,
            (),
            fuse(replace(found, publications=shown), self.settings.words_weight),
            set(shown.values()),
            question.asked_at.date(),
        )
        return ranked.passages[:MAX_PASSAGES]

    def _shown(self, passage: Passage, documents: Retrieval, *, is_web_first: bool) -> Passage:
        """Return a web passage as shown: its snippet, scored below documents' passages that are as similar.

        With ``is_web_first``, above those that are not more similar.
        """
        gaps = list(_gaps(passage, documents.passages))
        equals = [score for gap, score in gaps if abs(gap) < EQUAL_SIMILARITY]
        nearer = [score for gap, score in gaps if gap >= EQUAL_SIMILARITY]
        if is_web_first:
            score = max([min(passage.score, max(nearer, default=1.0)), *equals])
        else:
            score = self.settings.web_share * min(passage.score, max([*nearer, *equals], default=1.0))
        text = snippet(passage.text, documents.question.idf, self.settings.web_snippet_words)
        return replace(passage, text=text, score=score)


def _made(vector: Vector | None) -> PendingVector | None:
    """Return a computed vector in the form of a pending one."""
    if vector is None:
        return None
    made: PendingVector = asyncio.get_running_loop().create_future()
    made.set_result(vector)
    return made


def _with_origin(publication: LivePublication, page: WebPage) -> LivePublication:
    """Return the publication of a page as it is cited; only a date that the page states is shown."""
    host = URL(page.url).host or ""
    return replace(publication, arrived_at=None, web=WebOrigin(host, page.fetched_at))


def _gaps(page: Passage, documents: Sequence[Passage]) -> Iterator[tuple[float, float]]:
    """Yield, for each passage of the documents, (how much more similar than the page it is, its score).

    Cosines of two collections are comparable, their BM25 scores are not; without vectors, the shares of the
    question's weight that the texts cover are compared.
    """
    if page.vector is not None and any(one.vector is not None for one in documents):
        yield from ((one.vector - page.vector, one.score) for one in documents if one.vector is not None)
        return
    covered = dict(page.parts).get("coverage", 0.0)
    yield from ((dict(one.parts).get("coverage", 0.0) - covered, one.score) for one in documents)


def _place(passage: Passage, *, is_web_first: bool) -> tuple[float, bool, str, int]:
    """Return a sort key: best first; of equals the documents first, or the web pages."""
    negated, file, ordinal = rank_order(passage)
    return negated, (passage.publication.web is None) == is_web_first, file, ordinal


def _without_known_words(question: AnalyzedQuestion, web: Sequence[Passage]) -> AnalyzedQuestion:
    """Return the question without the unknown words that a page contains."""
    unknown = [
        word
        for word in question.unknown
        if not any(term in one.terms for one in web for term in analyze(word))
    ]
    return replace(question, unknown=tuple(unknown))


def _traced(opened: OpenedDomain, pages: Sequence[WebPage]) -> OpenedWeb:
    texts = tuple(one.url for one in pages if one.document)
    missing = tuple(one.url for one in pages if not one.document)
    return OpenedWeb(opened.domain.name, opened.keywords, texts, missing)


def snippet(text: str, weights: Mapping[str, float], words: int) -> str:
    """Return the best part of a text: consecutive whole sentences of at most ``words`` words.

    The best part covers most of the question's weight; of equals the first. A single sentence may be longer.
    ``weights``: term of the question -> idf.
    """
    if len(text.split()) <= words:
        return text
    units = split_units(text)
    parts = []
    for first, unit in enumerate(units):
        fitting = (
            one.end for one in reversed(units[first:]) if len(text[unit.start : one.end].split()) <= words
        )
        parts.append(text[unit.start : next(fitting, unit.end)])
    held = [sum(weights.get(term, 0.0) for term in set(analyze(part))) for part in parts]
    return parts[held.index(max(held))]

"""Finds passages of the approved web pages whose domains a question opens, beside those of the documents.

A page is fetched beforehand. One that is not there yet is fetched in the background for the next question,
and waited for only as long as a setting allows. Pages are ranked among themselves as documents are, and take
their places among those by their scores, behind what is as near, or before it where an admin says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.core.models import AnalyzedQuestion, OpenedWeb, Passage, Question, Retrieval
from bot.core.retrieval.ranking import USUAL, Ranking, fuse, rank_order
from bot.core.understanding.question_terms import searched_terms
from storage.models import Channel
from storage.task_group import gather_or_cancel
from storage.text.analyzer import analyze
from storage.text.sentences import split_units
from storage.web_pages.opened_domains import OpenedDomain, opened_domains
from storage.web_pages.page_index import WebPageIndex
from storage.web_pages.page_store import WebPage, WebPageStore, approved_pages
from storage.web_pages.web_sources import WebDomain, WebSourcesFile

# Has what is due of a domain fetched, by a task that goes on by itself.
FetchPages = Callable[[WebDomain], asyncio.Task[None]]

# Chunks of the opened domains that are ranked.
CANDIDATES = 24
# What differs by less in its cosine, or in what it covers of the question, is as near to it.
SAME = 0.01
# Passages of web pages beside those of documents.
MAX_PASSAGES = 3


@dataclass(frozen=True, slots=True)
class WebPolicy:
    """When the web has a part in an answer, and how large a one."""

    # Distinct keywords of a domain that open it.
    hits: int = 2
    # Domains that one question opens.
    domains: int = 2
    # What the score of a web page counts beside a document's.
    share: float = 0.95
    # Words of a page that a model or a quote gets; the sentence that goes beyond is left out.
    snippet_words: int = 80
    # How long a question waits for pages that were never fetched.
    wait_seconds: float = 0


class WebSearch:
    """Searches the pages of the domains that a question opens."""

    def __init__(
        self,
        sources: WebSourcesFile,
        store: WebPageStore,
        index: WebPageIndex,
        *,
        ranking: Ranking = USUAL,
        policy: WebPolicy = WebPolicy(),
        fetch: FetchPages | None = None,
    ) -> None:
        """``fetch``: has missing pages fetched; None: another process does."""
        self.sources = sources
        self.policy = policy
        self._store = store
        self._index = index
        self._ranking = ranking
        self._fetch = fetch

    async def extend(self, question: Question, retrieval: Retrieval) -> Retrieval:
        """Add passages of approved web pages where the question opens their domains.

        One that is kept to certain documents, or that nobody asked, opens none: then nothing is read of them.
        """
        is_kept_to_documents = question.documents is not None and not question.is_exclusion
        if question.is_trial or is_kept_to_documents:
            return retrieval
        said = [(one.asked, one.said) for one in retrieval.question.synonyms]
        for look in (self.sources.known, self.sources.current):  # the file is read where something is opened
            sources = await look()
            domains, policy = sources.of(question.channel), self.policy
            opened = opened_domains(
                question.message or question.text, domains, said, hits=policy.hits, most=policy.domains
            )
            if not opened:
                return retrieval
        is_web_first = sources.is_web_first(question.channel)
        return await self.beside(question, retrieval, opened, is_web_first=is_web_first)

    async def beside(
        self, question: Question, documents: Retrieval, opened: Sequence[OpenedDomain], *, is_web_first: bool
    ) -> Retrieval:
        """Return the candidates of the documents, and among them the best of the opened domains' pages.

        ``is_web_first``: of a page and a document that answer equally, the page comes first.

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
            question=_less_unknown(documents.question, web),
            passages=tuple(ordered),
            web=tuple(map(_traced, opened, looked_into)),
        )

    async def approves(self, channel: Channel, urls: Collection[str]) -> bool:
        """True if all of these pages may be cited in a channel, as the list is now.

        Raises:
            storage.errors.DatabaseUnavailable: the database does not answer.
        """
        domains = (await self.sources.current()).of(channel)
        return set(urls) <= set(await approved_pages(domains, self._store))

    async def _pages(self, domain: WebDomain, *, may_wait: bool) -> Sequence[WebPage]:
        """Return the pages of a domain as they stand, at the latest when the time for waiting is over."""
        pages = await self._store.pages(await approved_pages([domain], self._store))
        is_short = not pages or any(one.is_missing for one in pages)
        if self._fetch is None or not is_short:
            return pages
        fetching = self._fetch(domain)
        if not may_wait or not self.policy.wait_seconds:
            return pages
        await asyncio.wait([fetching], timeout=self.policy.wait_seconds)
        return await self._store.pages(await approved_pages([domain], self._store))

    async def _search(
        self, question: Question, asked: AnalyzedQuestion, pages: Iterable[WebPage]
    ) -> Sequence[Passage]:
        """Return the best passages of some pages, ranked among themselves."""
        terms = searched_terms(asked.terms, asked.synonyms)
        found = await self._index.find(question.channel.id, pages, terms, asked.vector, CANDIDATES)
        ranked = self._ranking.order(
            asked,
            (),
            fuse(found, self._ranking.words_weight),
            set(found.publications.values()),
            question.asked_at.date(),
        )
        return ranked.passages[:MAX_PASSAGES]

    def _shown(self, passage: Passage, documents: Retrieval, *, is_web_first: bool) -> Passage:
        """What a model or a quote gets of it, behind every document's passage that is as near to it.

        With ``is_web_first``, before every one that is no nearer.
        """
        gaps = list(_gaps(passage, documents.passages))
        equals = [score for gap, score in gaps if abs(gap) < SAME]
        nearer = [score for gap, score in gaps if gap >= SAME]
        if is_web_first:
            score = max([min(passage.score, max(nearer, default=1.0)), *equals])
        else:
            score = self.policy.share * min(passage.score, max([*nearer, *equals], default=1.0))
        text = snippet(passage.text, documents.question.idf, self.policy.snippet_words)
        return replace(passage, text=text, score=score)


def _gaps(page: Passage, documents: Sequence[Passage]) -> Iterator[tuple[float, float]]:
    """(how much nearer to the question it is than the page, its score) of each passage of the documents.

    Cosines of two collections can be compared, which their BM25 cannot; while there are none, the share of
    the question's weight that a text covers.
    """
    if page.vector is not None and any(one.vector is not None for one in documents):
        yield from ((one.vector - page.vector, one.score) for one in documents if one.vector is not None)
        return
    covered = dict(page.parts).get("coverage", 0.0)
    yield from ((dict(one.parts).get("coverage", 0.0) - covered, one.score) for one in documents)


def _place(passage: Passage, *, is_web_first: bool) -> tuple[float, bool, str, int]:
    """Best first; of equals the documents first, or the web pages."""
    negated, file, ordinal = rank_order(passage)
    return negated, (passage.publication.web is None) == is_web_first, file, ordinal


def _less_unknown(question: AnalyzedQuestion, web: Sequence[Passage]) -> AnalyzedQuestion:
    """Return the question, of whose words those are known, too, that a page holds."""
    unknown = [
        word
        for word in question.unknown
        if not any(term in one.terms for one in web for term in analyze(word))
    ]
    return replace(question, unknown=tuple(unknown))


def _traced(opened: OpenedDomain, pages: Sequence[WebPage]) -> OpenedWeb:
    texts = tuple(one.url for one in pages if one.sha256)
    missing = tuple(one.url for one in pages if not one.sha256)
    return OpenedWeb(opened.domain.name, opened.keywords, texts, missing)


def snippet(text: str, weights: Mapping[str, float], words: int) -> str:
    """Return the best part of a text: whole sentences that follow one another, of at most so many words.

    The best one holds most of the question's weight, and stands first of equals; a single sentence may be
    longer. ``weights``: term of the question -> idf.
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

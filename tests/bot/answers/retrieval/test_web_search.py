"""Approved web pages next to documents: keyword gate, snippets and ranking."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from fakes.core import (
    ASKED_AT,
    Register,
    Shelf,
    Vocabulary,
    World,
    ask,
    make_channel,
    make_passage,
    make_status,
)
from fakes.model_server import byte_server, completion, response
from fakes.term_embedder import TermEmbedder
from fakes.web_shelf import PageChunk, WebShelf
from harness.empty_homes import make_sqlite

from bot.answer_settings import AnswerSettings
from bot.answers.pipeline import Answering
from bot.answers.retrieval.reranking import ContextExpansion, gather_evidence
from bot.answers.retrieval.web_search import FetchPages, WebSearch, snippet
from bot.answers.trace_writer import writing_traces
from bot.answers.understanding.spelling_correction import SpellingCorrector
from bot.cli.json_output import answer_line
from bot.cli.records import render_record
from bot.core.models import Correction, OpenedWeb, Passage, Question, Retrieval
from bot.llm.generator import ModelGenerator
from storage.chat.traces import QuestionRecords
from storage.index.live_index import SearchHits
from storage.sql.database import Database
from storage.web_pages.keyword_gate import opened_domains
from storage.web_pages.page_store import WebPageStore
from storage.web_pages.web_sources import WebDomain, WebSources, WebSourcesFile

DEPOSITS, REPAIRS = "https://example.org/deposits", "https://example.org/repairs"
FILE = f"""
[[domain]]
name = "tenancy"
keywords = ["deposit", "landlord"]
urls = ["{DEPOSITS}"]

[[domain]]
name = "repairs"
keywords = ["boiler", "landlord", "repair"]
urls = ["{REPAIRS}"]
channels = ["housing"]
"""
DEPOSIT_CHUNKS = (
    PageChunk("A landlord must protect your deposit within 30 days.", anchor="protect"),
    PageChunk("The deposit is paid back within 10 days.", ("At the end",)),
)
USUAL = AnswerSettings()
ASKED = "When must my landlord protect the deposit?"


class UntouchedStore(WebPageStore):
    """A store that must not be used."""

    def __getattribute__(self, name: str) -> object:
        """Raise AssertionError for any access."""
        raise AssertionError(f"the web part was touched: {name}")


@dataclass
class Web:
    """A home with two pages, next to documents."""

    path: Path
    shelf: WebShelf
    documents: tuple[Passage, ...]
    # Vector of the question.
    vector: Sequence[float] | None = None

    @property
    def store(self) -> WebPageStore:
        """The pages."""
        return self.shelf.store

    def search(
        self,
        settings: AnswerSettings = USUAL,
        store: WebPageStore | None = None,
        fetch: FetchPages | None = None,
        sources: WebSourcesFile | None = None,
    ) -> WebSearch:
        """Return the web search under test."""
        sources = sources or WebSourcesFile(self.path)
        return WebSearch(sources, store or self.store, self.shelf.search, settings, fetch=fetch)

    def answering(self, **options: Any) -> Answering:
        """Return answering for a channel with the documents and the web; ``options`` as for ``search``."""
        world = World(Shelf(list(self.documents)), Register([make_status("sop-it-04.pdf")]))
        return world.answering(web=self.search(**options))

    async def beside(self, text: str = ASKED, channel: str = "it", **options: Any) -> Retrieval:
        """Return the result of a question that opens its domains."""
        search, asked = self.search(**options), question(text, channel)
        sources = await search.sources.current()
        opened = opened_domains(text, sources.domains_for(asked.channel))
        texts = [one.text for one in self.documents]
        found = Retrieval(ask(text, *texts, vector=self.vector), self.documents)
        return await search.merge(asked, found, opened, is_web_first=sources.is_web_first(asked.channel))

    async def nearest_by_vector(self) -> Passage:
        """Return the best passage of a page, once its chunks and the question have vectors."""
        embedder = TermEmbedder("terms")
        await self.shelf.publish(DEPOSITS, *DEPOSIT_CHUNKS, title="Tenancy deposits", embedder=embedder)
        self.vector = (await embedder.aembed([ASKED]))[0]
        return next(one for one in (await self.beside()).passages if one.publication.web)


def question(text: str, channel: str = "it") -> Question:
    """Return a question in a channel."""
    return Question("q", text, make_channel(channel), ASKED_AT)


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    """Yield two fetched pages and one document."""
    database = await Database.open(make_sqlite(tmp_path))
    (tmp_path / "web_sources.toml").write_text(FILE)
    shelf = WebShelf(database, tmp_path)
    await shelf.store.approve([DEPOSITS, REPAIRS])
    await shelf.publish(DEPOSITS, *DEPOSIT_CHUNKS, title="Tenancy deposits", day="2025-03-02")
    await shelf.publish(REPAIRS, "The landlord repairs a boiler within 2 days.", title="Repairs")
    yield Web(tmp_path, shelf, (make_passage("Backups run daily.", score=0.4),))
    await shelf.aclose()
    await database.aclose()


def files(found: Retrieval) -> list[str]:
    """Return the files and URLs of the candidates, best first."""
    return [one.publication.file for one in found.passages]


async def test_two_keywords_open_the_domains_passages(web: Web) -> None:
    """Shows a web passage ahead of a worse document's, with its origin and the matched keywords."""
    found = await web.beside()
    assert files(found)[0] == DEPOSITS
    assert "sop-it-04.pdf" in files(found)
    assert found.web == (OpenedWeb("tenancy", ("deposit", "landlord"), (DEPOSITS,)),)
    publication = found.passages[0].publication
    assert (publication.title, publication.metadata["last_updated"].day) == ("Tenancy deposits", "2025-03-02")
    assert publication.web is not None
    assert (publication.web.host, publication.anchors) == ("example.org", ("protect", ""))


@pytest.mark.parametrize(
    "asked",
    [
        question("Where is the deposit?"),
        question("Can the landlord come in?"),
        question("When do backups run?"),
        replace(question(ASKED), documents=frozenset({uuid4()})),
    ],
)
async def test_a_question_that_opens_nothing_never_touches_the_pages(web: Web, asked: Question) -> None:
    """Covers too few keywords and a document filter."""
    answering = web.answering(store=UntouchedStore.__new__(UntouchedStore))
    assert not any(one.publication.web for one in (await answering.answer(asked)).passages)


async def test_a_question_with_two_keywords_reads_the_pages(web: Web) -> None:
    """Shows it through the whole answering pipeline."""
    answer = await web.answering().answer(question(ASKED))
    assert answer.passages[0].publication.file == DEPOSITS


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("When must my landlord protect the deposit? Not the drafts.", True),
        ("When must my landlord protect the deposit? Only policies.", False),
        ("When must my landlord protect the deposit? Only since 2023.", False),
        ("When must my landlord protect the deposit according to version 2?", False),
        ("When must my landlord protect the deposit according to sop-it-04.pdf?", False),
    ],
)
async def test_document_filters_exclude_the_web(web: Web, text: str, is_open: bool) -> None:
    """Shows that a filter for certain documents excludes pages, and that an exclusion keeps them."""
    kinds = [("sop-it-04.pdf", "Backup"), ("leave.pdf", "Leave Policy v2"), ("draft.pdf", "Draft of it")]
    documents = [replace(make_status(file), title=title, arrived_at=ASKED_AT) for file, title in kinds]
    documents[1] = replace(documents[1], file="leave_v2.pdf")
    documents[2] = replace(documents[2], arrived_at=ASKED_AT.replace(year=2019))
    world = World(Shelf(list(web.documents)), Register(documents))
    answer = await world.answering(web=web.search()).answer(question(text))
    assert answer.filter is not None
    assert any(one.publication.web for one in answer.passages) is is_open


async def test_a_page_delisted_during_a_search_is_not_found(web: Web) -> None:
    """Shows that the list is read when the pages are searched, not when the question arrives."""

    class SlowShelf(Shelf):
        async def search(self, *args: Any, **options: Any) -> SearchHits:
            (web.path / "web_sources.toml").write_text("")
            return await super().search(*args, **options)

    world = World(SlowShelf(list(web.documents)), Register([make_status("sop-it-04.pdf")]))
    search = web.search()
    await search.sources.current()
    answer = await world.answering(web=search).answer(question(ASKED))
    assert not any(one.publication.web for one in answer.passages)


class CountingSources(WebSourcesFile):
    """Counts reads of the file."""

    looks = 0

    async def current(self) -> WebSources:
        """Count and read."""
        self.looks += 1
        return await super().current()


@pytest.mark.parametrize("text", ["", FILE])
async def test_questions_that_open_no_domain_do_not_read_the_file(web: Web, text: str) -> None:
    """Shows that a question reads no file, with or without a list; a background job notices a new list."""
    (web.path / "web_sources.toml").unlink()
    sources = CountingSources(web.path)
    answering = web.answering(sources=sources)
    await answering.answer(question("When do backups run?"))
    assert sources.looks == 1
    (web.path / "web_sources.toml").write_text(text)
    await sources.current()
    for _ in range(3):
        await answering.answer(question("When do backups run?"))
    assert sources.looks == 2
    assert any(one.publication.web for one in (await answering.answer(question(ASKED))).passages) is bool(
        text
    )


async def test_a_page_delisted_during_generation_is_not_cited(web: Web) -> None:
    """Shows a slow endpoint, a list that changes during the request, and an answer that is regenerated."""
    is_asked, may_answer = asyncio.Event(), asyncio.Event()
    prompts: list[str] = []
    sentences = (
        "A landlord must protect your deposit within 30 days.",
        "A landlord repairs the deposit box within 9 days.",
    )

    async def slow(request: bytes, writer: asyncio.StreamWriter) -> None:
        prompts.append(json.dumps(json.loads(request)["messages"]))
        is_asked.set()
        await may_answer.wait()
        sentence = next(one for one in sentences if one in prompts[-1])
        passage = int(re.findall(r"<passage (\d+)", prompts[-1].split(sentence)[0])[-1])
        claim = {"text": sentence, "quotes": [{"passage": passage, "quote": sentence}]}
        writer.write(response(completion(json.dumps({"sufficient": True, "claims": [claim]}))))
        await writer.drain()

    web.documents = (make_passage(sentences[1], score=0.4),)
    world = World(Shelf(list(web.documents)), Register([make_status("sop-it-04.pdf")]))
    async with byte_server(slow) as url:
        model = ModelGenerator.connect("k", url, AnswerSettings(model_seconds=30), model="m")
        async with aclosing(model):
            answering = world.answering(model, web=web.search())
            running = asyncio.create_task(answering.answer(question(ASKED)))
            await is_asked.wait()
            assert sentences[0] in prompts[0]
            (web.path / "web_sources.toml").write_text("")
            may_answer.set()
            answer = await running
    assert len(prompts) == 2
    assert sentences[0] not in prompts[1]
    assert answer.text == f"{sentences[1]} [1]"
    assert [one.file for one in answer.citations] == ["sop-it-04.pdf"]
    assert not any(one.publication.web for one in answer.passages)


async def test_a_record_stores_a_web_citation_like_json(web: Web) -> None:
    """Shows kind, URL, host and time of a web citation in its record, and no page number."""
    kept: list[dict[str, Any]] = []

    class Kept(QuestionRecords):
        def __init__(self) -> None:
            pass

        async def keep(
            self, key: str, channel_id: int, asked_at: datetime, state: str, record: dict[str, Any]
        ) -> None:
            kept.append(record)

    web.documents = (make_passage("A landlord repairs the deposit box within 9 days.", score=0.4),)
    world = World(Shelf(list(web.documents)), Register([make_status("sop-it-04.pdf")]))
    async with writing_traces(Kept()) as records:
        answer = await world.answering(web=web.search(), records=records).answer(question(ASKED))
    (line,) = answer_line(answer, id=1, question=ASKED, channel="it")["citations"]
    (record,) = kept
    (citation,) = record["citations"]
    assert (line["kind"], line["file"], line["page"], line["host"]) == ("web", DEPOSITS, None, "example.org")
    assert citation == {name: line[name] for name in line if name not in {"title", "url"}} | {"boxes": 0}
    assert {one["page"] for one in record["searches"][0]["candidates"] if "fetched" in one} == {None}
    assert {f"  file: {DEPOSITS}", "  page: -"} <= set(render_record(record))


async def test_no_keyword_is_a_misspelling_but_other_words_may_be(web: Web) -> None:
    """Shows that a word that occurs only on the web is not corrected to a document's word."""
    (web.path / "web_sources.toml").write_text(FILE.replace('"deposit"', '"databasis"'))
    vocabulary = Vocabulary({1: {"databases": 3, "reports": 2}})
    corrector = SpellingCorrector(vocabulary, web_sources=WebSourcesFile(web.path))
    typed = ["Databasis", "repotrs"]
    assert await corrector.correct(make_channel(), typed) == (Correction("repotrs", "reports"),)


async def test_a_domain_is_opened_in_its_channels_only(web: Web) -> None:
    """Shows that another channel's domain stays closed, however many keywords match."""
    asked = "Must the landlord repair the boiler, and who holds the deposit?"
    assert [one.domain for one in (await web.beside(asked)).web] == ["tenancy"]
    assert [one.domain for one in (await web.beside(asked, "housing")).web] == ["repairs", "tenancy"]
    assert REPAIRS not in files(await web.beside(asked))


async def test_documents_come_first_at_equal_scores(web: Web) -> None:
    """Shows that a document wins a tie, unless a setting changes that."""
    (best, *_) = [one for one in (await web.beside()).passages if one.publication.web]
    equal = best.score / USUAL.web_share
    web.documents = (make_passage("A landlord protects it within 30 days.", score=equal),)
    assert files(await web.beside())[0] == "sop-it-04.pdf"
    assert files(await web.beside(settings=AnswerSettings(web_share=1.1)))[0] == DEPOSITS


async def test_a_document_of_equal_similarity_comes_first(web: Web) -> None:
    """Shows that a web copy of a document ranks below it, whatever its score among web pages."""
    nearest = await web.nearest_by_vector()
    copy = make_passage("A copy of it.", score=0.1, vector=nearest.vector)
    web.documents = (copy,)
    assert files(await web.beside())[0] == "sop-it-04.pdf"
    web.documents = (replace(copy, vector=0.0),)
    assert files(await web.beside())[0] == DEPOSITS


async def test_a_channel_can_rank_its_web_pages_first(web: Web) -> None:
    """Shows a page ahead of documents of equal similarity, and behind more similar ones."""
    nearest = await web.nearest_by_vector()
    copy = make_passage("A copy of it.", score=1.0, vector=nearest.vector)
    web.documents = (copy,)
    assert files(await web.beside())[0] == "sop-it-04.pdf"
    (web.path / "web_sources.toml").write_text('web_first = ["it"]\n' + FILE)
    assert files(await web.beside())[0] == DEPOSITS
    assert files(await web.beside(channel="hr"))[0] == "sop-it-04.pdf"
    web.documents = (replace(copy, vector=(nearest.vector or 0) + 0.1),)
    assert files(await web.beside())[0] == "sop-it-04.pdf"


async def test_without_vectors_equal_coverage_counts_as_equal(web: Web) -> None:
    """Shows the same order for documents that were only read quickly."""
    (page, *_) = [one for one in (await web.beside()).passages if one.publication.web]
    web.documents = (make_passage("A copy of it.", score=0.3),)
    assert files(await web.beside())[0] == DEPOSITS
    web.documents = (replace(web.documents[0], parts=page.parts),)
    assert files(await web.beside())[0] == "sop-it-04.pdf"
    (web.path / "web_sources.toml").write_text('web_first = ["it"]\n' + FILE)
    assert files(await web.beside())[0] == DEPOSITS


async def test_words_of_a_page_are_not_reported_as_unknown(web: Web) -> None:
    """Shows that a reply names only words that occur in no document and on no found page."""
    found = await web.beside("When must my landlord protect the deposit from flooding?")
    documents = replace(found, question=replace(found.question, unknown=("landlord", "flooding")))
    search = web.search()
    opened = opened_domains(ASKED, (await search.sources.current()).domains_for(make_channel()))
    beside = await search.merge(question(ASKED), documents, opened, is_web_first=False)
    assert beside.question.unknown == ("flooding",)


@dataclass
class Fetching:
    """Fetches a page on demand."""

    shelf: WebShelf
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)
    _running: asyncio.Task[None] | None = None

    def __call__(self, domain: WebDomain) -> asyncio.Task[None]:
        """Start the fetch."""
        self.asked.append(domain.name)
        self._running = self._running or asyncio.create_task(self._fetch())
        return self._running

    async def _fetch(self) -> None:
        await self.may_end.wait()
        await self.shelf.publish(NEW, "A landlord returns the deposit within 3 weeks.", title="New")


NEW = "https://example.org/new"


async def with_new_page(web: Web) -> Fetching:
    """Add an unfetched page to the list."""
    (web.path / "web_sources.toml").write_text(FILE.replace(f'["{DEPOSITS}"]', f'["{DEPOSITS}", "{NEW}"]'))
    await web.store.approve([DEPOSITS, REPAIRS, NEW])
    return Fetching(web.shelf)


async def test_a_missing_page_is_fetched_for_the_next_question(web: Web) -> None:
    """Shows that by default no question waits, and that the result names the missing page."""
    fetching = await with_new_page(web)
    found = await web.beside(fetch=fetching)
    assert NEW not in files(found)
    assert found.web == (OpenedWeb("tenancy", ("deposit", "landlord"), (DEPOSITS,), (NEW,)),)
    assert fetching.asked == ["tenancy"]
    fetching.may_end.set()
    while NEW not in files(await web.beside(fetch=fetching)):
        await asyncio.sleep(0)
    count = len(fetching.asked)
    await web.beside(fetch=fetching)
    assert len(fetching.asked) == count


async def test_a_question_waits_for_a_missing_page_up_to_a_limit(web: Web) -> None:
    """Shows the page in the answer if it arrives in time, and an answer without it if not."""
    fetching = await with_new_page(web)
    late = await web.beside(fetch=fetching, settings=AnswerSettings(web_wait_seconds=0.01))
    assert NEW not in files(late)
    fetching.may_end.set()
    patient = AnswerSettings().model_copy(update={"web_wait_seconds": 300})  # longer than people may set it
    assert NEW in files(await web.beside(fetch=fetching, settings=patient))


async def test_a_page_that_just_failed_is_not_fetched_again(web: Web) -> None:
    """Shows that a failed page is not retried for some minutes, however many questions come."""
    fetching = await with_new_page(web)
    assert await web.store.claim(NEW)
    await web.store.record_failure(NEW, "the server answers 404")
    await web.beside(fetch=fetching, settings=AnswerSettings(web_wait_seconds=10))
    assert fetching.asked == []


async def test_a_delisted_page_is_not_found(web: Web) -> None:
    """Shows that the file is read for each question, whatever was fetched before."""
    (web.path / "web_sources.toml").write_text(FILE.replace(DEPOSITS, "https://example.org/other"))
    found = await web.beside()
    assert found.web != ()
    assert DEPOSITS not in files(found)


async def test_a_page_that_changed_answers_with_its_new_text(web: Web) -> None:
    """Shows that its earlier text is not found any more."""
    await web.beside()
    await web.shelf.publish(DEPOSITS, "A landlord protects a deposit in 14 days.", title="Tenancy deposits")
    assert (await web.beside()).passages[0].text == "A landlord protects a deposit in 14 days."


@pytest.mark.parametrize(
    ("url", "title"),
    [("https://example.org/a/fees.pdf", "fees.pdf"), ("https://example.org/", "example.org")],
)
async def test_a_page_without_a_title_is_called_by_its_name(web: Web, url: str, title: str) -> None:
    """Shows that no URL is part of the model's prompt."""
    (web.path / "web_sources.toml").write_text(FILE.replace(DEPOSITS, url))
    await web.store.approve([url])
    await web.shelf.publish(url, "A landlord keeps a deposit.")
    found = [one.publication for one in (await web.beside()).passages if one.publication.web]
    assert [one.title for one in found] == [title]


async def test_evidence_of_a_page_needs_no_reading(web: Web) -> None:
    """Shows that a web passage is used as found: one page, no boxes, no expansion."""

    class NoReadings:
        async def chunks_at(self, places: object) -> list[object]:
            assert not places
            return []

    found = [one for one in (await web.beside()).passages if one.publication.web]
    evidence = await gather_evidence(found, NoReadings(), max_passages=8, tokens=1000)  # type: ignore[arg-type]
    assert [item.page_starts for item in evidence] == [((0, 1),)] * len(found)
    assert await ContextExpansion(evidence, NoReadings(), 1000).expand() == evidence  # type: ignore[arg-type]


async def test_pages_are_found_by_similarity_once_they_have_vectors(web: Web) -> None:
    """Shows that pages with vectors are compared in the question's space, and others found by words."""
    asked = "Must the landlord repair the boiler, and who holds the deposit?"
    await web.nearest_by_vector()
    found = (await web.beside(asked, "housing")).passages
    compared = {one.publication.file: one.vector for one in found if one.publication.web}
    assert compared.keys() == {DEPOSITS, REPAIRS}
    assert compared[DEPOSITS] is not None
    assert compared[REPAIRS] is None


def test_a_snippet_is_the_best_whole_sentences() -> None:
    """Shows that the best matching sentences are chosen, never partial ones or too many words."""
    text = "One two three. The deposit is protected. The landlord pays it back. Four five six seven eight."
    assert snippet(text, {"deposit": 1.0, "landlord": 2.0}, 100) == text
    assert (
        snippet(text, {"deposit": 1.0, "landlord": 2.0}, 9)
        == "The deposit is protected. The landlord pays it back."
    )
    assert snippet(text, {"deposit": 1.0}, 5) == "The deposit is protected."
    assert snippet("a b c d e f g deposit.", {"deposit": 1.0}, 3) == "a b c d e f g deposit."

"""Approved web pages beside documents: when they take part, which part of them, and at what place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from fakes.core import ASKED_AT, ask, make_channel, make_passage
from fakes.term_embedder import TermEmbedder
from harness.empty_homes import make_sqlite

from bot.core.models import OpenedWeb, Passage, Question, Retrieval
from bot.core.retrieval.reranking import Expansion, gather_evidence
from bot.core.retrieval.web_retriever import WebPolicy, WebRetriever, snippet
from storage.sql.database import Database
from storage.web_pages.page_index import WebPageIndex
from storage.web_pages.page_store import WebPageStore, WebText, WebTextChunk
from storage.web_pages.web_sources import WebSourcesFile

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
USUAL = WebPolicy()
ASKED = "When must my landlord protect the deposit?"


class Documents:
    """A search of documents that finds the same for every question."""

    def __init__(self, passages: tuple[Passage, ...]) -> None:
        self.passages = passages
        self.vector: Sequence[float] | None = None

    async def retrieve(self, question: Question) -> Retrieval:
        """Its passages."""
        texts = [one.text for one in self.passages]
        return Retrieval(ask(question.text, *texts, vector=self.vector), self.passages)


class UntouchedStore(WebPageStore):
    """Pages that nobody may ask for."""

    def __getattribute__(self, name: str) -> object:
        """Fail whatever is wanted."""
        raise AssertionError(f"the web part was touched: {name}")


@dataclass
class Web:
    """A home with two pages, beside documents."""

    path: Path
    store: WebPageStore
    index: WebPageIndex
    documents: Documents

    def retriever(self, store: WebPageStore | None = None, policy: WebPolicy = USUAL) -> WebRetriever:
        """What is tested."""
        sources = WebSourcesFile(self.path / "web_sources.toml")
        return WebRetriever(self.documents, sources, store or self.store, self.index, policy=policy)

    async def ask(self, text: str = ASKED, channel: str = "it", policy: WebPolicy = USUAL) -> Retrieval:
        """What a question finds."""
        return await self.retriever(policy=policy).retrieve(question(text, channel))


def question(text: str, channel: str = "it") -> Question:
    """A question of a channel."""
    return Question("q", text, make_channel(channel), ASKED_AT)


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    """Two pages that were fetched, and one document."""
    database = await Database.open(make_sqlite(tmp_path))
    (tmp_path / "web_sources.toml").write_text(FILE)
    store = WebPageStore(database)
    await store.approve([DEPOSITS, REPAIRS])
    protect = WebTextChunk("A landlord must protect your deposit within 30 days.", 11, (), "protect")
    end = WebTextChunk("The deposit is paid back within 10 days.", 10, ("At the end",))
    await store.keep_text(DEPOSITS, WebText("Tenancy deposits", "2025-03-02", (protect, end)), {})
    repair = WebTextChunk("The landlord repairs a boiler within 2 days.", 9)
    await store.keep_text(REPAIRS, WebText("Repairs", "", (repair,)), {})
    index = WebPageIndex(store, "terms")
    yield Web(tmp_path, store, index, Documents((make_passage("Backups run daily.", score=0.4),)))
    await database.aclose()


def files(found: Retrieval) -> list[str]:
    """Where the candidates come from, best first."""
    return [one.publication.file for one in found.passages]


async def test_a_question_with_two_keywords_gets_the_domains_passages(web: Web) -> None:
    """Shows a web page's passage before a worse document's, with where it comes from, and what opened it."""
    found = await web.ask()
    assert files(found)[0] == DEPOSITS
    assert "sop-it-04.pdf" in files(found)
    assert found.web == (OpenedWeb("tenancy", ("deposit", "landlord")),)
    publication = found.passages[0].publication
    assert (publication.title, publication.metadata["last_updated"].day) == ("Tenancy deposits", "2025-03-02")
    assert publication.web is not None
    assert (publication.web.host, publication.web.anchors) == ("example.org", ("protect", ""))


@pytest.mark.parametrize(
    "text", ["Where is the deposit?", "Can the landlord come in?", "When do backups run?"]
)
async def test_a_question_with_fewer_never_touches_the_web_part(web: Web, text: str) -> None:
    """Shows that a closed web part reads nothing, and changes nothing of what the documents give."""
    untouched = UntouchedStore.__new__(UntouchedStore)
    found = await web.retriever(untouched).retrieve(question(text))
    assert found.passages == web.documents.passages
    assert found.web == ()


async def test_who_asks_in_a_document_or_makes_a_question_up_opens_nothing(web: Web) -> None:
    """Shows that a filter of documents leaves the web out, and so do trials of receipts."""
    untouched = web.retriever(UntouchedStore.__new__(UntouchedStore))
    for asked in (replace(question(ASKED), documents=frozenset()), replace(question(ASKED), is_trial=True)):
        assert (await untouched.retrieve(asked)).web == ()


async def test_a_domain_is_opened_in_its_channels_only(web: Web) -> None:
    """Shows that another channel's domain stays shut, however many keywords hit."""
    asked = "Must the landlord repair the boiler, and who holds the deposit?"
    assert [one.domain for one in (await web.ask(asked)).web] == ["tenancy"]
    assert [one.domain for one in (await web.ask(asked, "housing")).web] == ["repairs", "tenancy"]
    assert REPAIRS not in files(await web.ask(asked))


async def test_documents_come_first_where_both_answer_equally(web: Web) -> None:
    """Shows that an equal score is a document's place, and that a setting may turn that round."""
    (best, *_) = [one for one in (await web.ask()).passages if one.publication.web]
    equal = best.score / WebPolicy().share
    web.documents.passages = (make_passage("A landlord protects it within 30 days.", score=equal),)
    assert files(await web.ask())[0] == "sop-it-04.pdf"
    assert files(await web.ask(policy=WebPolicy(share=1.1)))[0] == DEPOSITS


async def test_a_document_that_is_as_near_in_meaning_comes_first(web: Web) -> None:
    """Shows that a copy of a document on the web stays behind it, whatever its score among its own kind."""
    embedder = TermEmbedder("terms")
    (page,) = await web.store.pages([DEPOSITS])
    text = await web.store.text(page.sha256 or "")
    assert text is not None
    made = await embedder.aembed([chunk.text for chunk in text.chunks])
    await web.store.keep_vectors(page.sha256 or "", "terms", made)
    web.documents.vector = (await embedder.aembed([ASKED]))[0]
    (nearest, *_) = [one for one in (await web.ask()).passages if one.publication.web]
    copy = make_passage("A copy of it.", score=0.1, vector=nearest.vector)
    web.documents.passages = (copy,)
    assert files(await web.ask())[0] == "sop-it-04.pdf"
    web.documents.passages = (replace(copy, vector=0.0),)
    assert files(await web.ask())[0] == DEPOSITS


async def test_what_was_taken_off_the_list_is_not_found_any_more(web: Web) -> None:
    """Shows that the file decides at the time of the question, whatever was fetched before."""
    (web.path / "web_sources.toml").write_text(FILE.replace(DEPOSITS, "https://example.org/other"))
    found = await web.ask()
    assert found.web != ()
    assert DEPOSITS not in files(found)


async def test_a_page_that_changed_answers_with_its_new_text(web: Web) -> None:
    """Shows that a text of the day before is not remembered."""
    await web.ask()
    text = WebText("Tenancy deposits", "", (WebTextChunk("A landlord protects a deposit in 14 days.", 9),))
    await web.store.keep_text(DEPOSITS, text, {})
    assert (await web.ask()).passages[0].text == "A landlord protects a deposit in 14 days."


async def test_evidence_of_a_page_needs_no_reading(web: Web) -> None:
    """Shows that a web passage is read as it was found: one page, no boxes, no neighbours."""

    class NoReadings:
        async def chunks_at(self, places: object) -> list[object]:
            assert not places
            return []

    found = [one for one in (await web.ask()).passages if one.publication.web]
    evidence = await gather_evidence(found, NoReadings(), most=8, tokens=1000)  # type: ignore[arg-type]
    assert [item.page_starts for item in evidence] == [((0, 1),)] * len(found)
    assert await Expansion(evidence, NoReadings(), 1000).expand() == evidence  # type: ignore[arg-type]


async def test_pages_are_found_by_meaning_once_they_have_vectors(web: Web) -> None:
    """Shows that vectors of the question's space are compared, and a page without them found by words."""
    embedder = TermEmbedder("terms")
    asked = "Must the landlord repair the boiler, and who holds the deposit?"
    vector = (await embedder.aembed([asked]))[0]
    (deposits,) = await web.store.pages([DEPOSITS])
    text = await web.store.text(deposits.sha256 or "")
    assert text is not None
    made = await embedder.aembed([chunk.text for chunk in text.chunks])
    await web.store.keep_vectors(deposits.sha256 or "", "terms", made)
    found = await web.index.find(1, [DEPOSITS, REPAIRS], ["landlord"], vector, 8)
    names = {one.file: one.id for one in found.publications.values()}
    assert {hit.publication for hit in found.vectors} == {names[DEPOSITS]}
    assert found.words_only == {names[REPAIRS]}
    assert [hit.publication for hit in found.words] == [names[REPAIRS], names[DEPOSITS]]


def test_a_snippet_is_the_best_whole_sentences() -> None:
    """Shows that what holds most of the question is chosen, and never half a sentence or too many words."""
    text = "One two three. The deposit is protected. The landlord pays it back. Four five six seven eight."
    assert snippet(text, {"deposit": 1.0, "landlord": 2.0}, 100) == text
    assert (
        snippet(text, {"deposit": 1.0, "landlord": 2.0}, 9)
        == "The deposit is protected. The landlord pays it back."
    )
    assert snippet(text, {"deposit": 1.0}, 5) == "The deposit is protected."
    assert snippet("a b c d e f g deposit.", {"deposit": 1.0}, 3) == "a b c d e f g deposit."

"""The composition root: knows every concrete class; ``engines.py`` opens what it stands on, ``searching.py``
puts together how it searches, ``serving.py`` goes on from here for ``serve``.

Each ``open_...`` is an async context manager: what it opens it closes, in reverse order. Tests build
the same program through these functions with other settings.

SDKs that take long to import are imported where they are chosen: `footnote ask` starts a second sooner.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from pydantic import SecretStr

from bot.core.answering import Answering
from bot.core.citation_desk import CitationService
from bot.core.extractive import ExtractiveAnswerer
from bot.core.gate import EvidenceGate
from bot.core.link_keys import KeyRing
from bot.core.links import Links
from bot.core.recording import writing_traces
from bot.core.rewriting import ModelRewriter
from bot.core.writing import AnswerWriter
from bot.engines import Settings, Stores, open_embedder, open_index, open_pdf_process, open_stores
from bot.listening import base_url, read_server_url
from bot.searching import open_retriever
from bot.settings import BotSettings
from storage.embedding import Embedder, QueryEmbedder
from storage.errors import SettingsError
from storage.index.contract import Index
from storage.index.live import LiveIndex
from storage.kept_sentences import SentenceVectorStore
from storage.pdf.process import PdfProcess

if TYPE_CHECKING:
    from bot.generator import ModelGenerator
    from ingestion.app import Ingestion
    from ingestion.read.vision_endpoint import VisionEndpoint
    from ingestion.settings import IngestionSettings


@asynccontextmanager
async def open_answering(settings: Settings) -> AsyncIterator[tuple[Stores, Answering]]:
    """Everything that answers questions, for a command that asks and ends."""
    async with (
        open_stores(settings) as storage,
        open_embedder(storage) as embedder,
        open_index(storage) as index,
        build_answering(storage, embedder, index, make_links(settings)) as answering,
    ):
        yield storage, answering


@asynccontextmanager
async def build_answering(
    storage: Stores, embedder: Embedder, index: Index, links: Links
) -> AsyncIterator[Answering]:
    """Put the use case together; a model's connections are closed at the end."""
    settings = storage.settings.bot
    search = LiveIndex(index, storage.catalog, embedder.space)
    asking = QueryEmbedder(embedder, storage.settings.storage.embed_question_seconds)
    kept = SentenceVectorStore(storage.readings, embedder.space)
    async with AsyncExitStack() as stack:
        models = _models(settings)
        for model in models:
            stack.push_async_callback(model.aclose)
        yield Answering(
            retriever=await stack.enter_async_context(open_retriever(storage, search, asking, kept)),
            writing=AnswerWriter(ExtractiveAnswerer(asking, kept), models),
            rewriter=ModelRewriter(models[0]) if models else None,
            gate=EvidenceGate(least_likeness=settings.least_likeness),
            chunks=storage.readings,
            figures=storage.readings,
            documents=storage.catalog,
            citations=CitationService(storage.citations, links),
            passages_read=settings.passages_read,
            evidence_tokens=settings.evidence_tokens,
            expansion_tokens=settings.expansion_tokens,
            question_chars=settings.question_chars,
            records=await stack.enter_async_context(writing_traces(storage.records)),
        )


def _models(settings: BotSettings) -> list[ModelGenerator]:
    """The configured models, in the order in which they are asked.

    Raises:
        SettingsError: a second one is set by halves, or without a first.
    """
    second = _second_model(settings)
    if settings.openai_api_key is None and settings.openai_base_url is None:
        if second:
            raise SettingsError("FOOTNOTE_SECOND_MODEL: set a first one by OPENAI_API_KEY or OPENAI_BASE_URL")
        return []
    first = _Named(settings.openai_model, settings.openai_base_url, settings.openai_api_key)
    return [_connect(one, settings) for one in (first, second) if one]


class _Named(NamedTuple):
    """A model, where it is, and the key to it."""

    model: str
    url: str | None
    key: SecretStr | None


def _second_model(settings: BotSettings) -> _Named | None:
    """Where no URL is set it is one more model of the first endpoint, whose key goes to no other place."""
    model, url, key = settings.second_model, settings.second_model_url, settings.second_model_key
    if model is None:
        if url or key:
            raise SettingsError("FOOTNOTE_SECOND_MODEL: name the model at the second endpoint")
        return None
    if url is None:
        return _Named(model, settings.openai_base_url, key or settings.openai_api_key)
    return _Named(model, url, key)


def _connect(named: _Named, settings: BotSettings) -> ModelGenerator:
    """An endpoint of one's own may want no key."""
    from bot.generator import ModelGenerator

    return ModelGenerator.connect(
        named.key.get_secret_value() if named.key else "none",
        named.url,
        model=named.model,
        seconds=settings.model_seconds,
        tokens=settings.model_tokens,
    )


def make_links(settings: Settings) -> Links:
    """Links under the public URL, else under where this home's ``serve`` listens.

    Raises:
        SettingsError: the file of the signing keys is damaged.
    """
    bot = settings.bot
    keys = KeyRing(settings.home / "link_keys.json")
    try:
        keys.keys()
    except (ValueError, KeyError, TypeError):
        raise SettingsError(
            f"{settings.home / 'link_keys.json'} is damaged: put back a copy, or delete it; links made "
            "until now then end"
        ) from None
    public = bot.public_url or read_server_url(settings.home) or base_url(bot.host, bot.port)
    return Links(
        keys,
        public,
        timedelta(days=bot.link_days),
        lambda: datetime.now(UTC),
        bot.button_opens,
    )


def build_ingestion(storage: Stores, embedder: Embedder, index: Index, pdf: PdfProcess) -> Ingestion:
    """Put the ingestion room together; nothing runs yet."""
    from ingestion.app import Ingestion

    return Ingestion(
        storage.settings.ingestion,
        max_file_mb=storage.settings.storage.max_file_mb,
        database=storage.database,
        blobs=storage.blobs,
        files=storage.files,
        pdf=pdf,
        embedder=embedder,
        index=index,
        channels=storage.channels,
        passwords=storage.passwords,
        vision=_vision(storage.settings.ingestion),
    )


def _vision(settings: IngestionSettings) -> VisionEndpoint | None:
    """The model that describes figures, where one is set.

    Raises:
        SettingsError: the endpoint is named and its model is not.
    """
    if settings.vision_url is None:
        return None
    if settings.vision_model is None:
        raise SettingsError("FOOTNOTE_VISION_MODEL: name the vision model at FOOTNOTE_VISION_URL")
    from ingestion.read.vision_endpoint import VisionEndpoint

    key = settings.vision_key.get_secret_value() if settings.vision_key else None
    return VisionEndpoint(settings.vision_url, settings.vision_model, key)


@asynccontextmanager
async def open_ingestion(settings: Settings) -> AsyncIterator[tuple[Stores, Ingestion]]:
    """Everything that reads PDFs, for a command that ingests and ends."""
    async with (
        open_stores(settings) as storage,
        open_embedder(storage) as embedder,
        open_index(storage) as index,
        open_pdf_process(storage) as pdf,
    ):
        yield storage, build_ingestion(storage, embedder, index, pdf)
